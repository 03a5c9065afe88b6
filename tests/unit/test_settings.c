/* Configuration files: their lines, the files that count, and faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "config/faults.h"
#include "config/files.h"
#include "config/lines.h"
#include "config/nearest.h"
#include "config/options.h"
#include "config/servers.h"
#include "config/settings.h"
#include "config/variables.h"
#include "os/folder.h"

/* A folder for the system and one for the user. */
static char root[64], etc[96], home[96];

static int setup(void **state)
{
        (void)state;
        snprintf(root, sizeof(root), "/tmp/spancl-settings.XXXXXX");
        snprintf(etc, sizeof(etc), "%s", folder_make_unique(root) ? root : "");
        strcat(etc, "/etc");
        snprintf(home, sizeof(home), "%s/home", root);
        static const char *const others[] = { "SPANCL_SERVERS", "SPANCL_PROFILE", "SPANCL_LOG",
                                              "SPANCL_BUILD_DIR", "SPANCL_SOURCE_DIR" };
        for (size_t i = 0; i < array_size(others); i++)
                unsetenv(others[i]);
        return folder_make(etc) || folder_make(home);
}

static int teardown(void **state)
{
        (void)state;
        folder_remove(root);
        return 0;
}

static void put(const char *folder, const char *name, const char *text)
{
        char path[256];
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        char *slash = strrchr(path, '/');
        *slash = 0;
        assert_int_equal(folder_make(path), 0);
        *slash = '/';
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(text, f);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(chmod(path, 0644), 0);
}

static char faults[8192];

static void add_fault(void *user, const char *text)
{
        (void)user;
        strncat(faults, text, sizeof(faults) - strlen(faults) - 2);
        strcat(faults, "\n");
}

static void load(void)
{
        config_settings_read(etc, home);
        *faults = 0;
        config_faults(add_fault, NULL);
}

static void faults_name(const char *text)
{
        if (!strstr(faults, text))
                print_error("no '%s' in:\n%s", text, faults);
        assert_non_null(strstr(faults, text));
}

static void lines_are_a_key_and_a_value(void **state)
{
        (void)state;
        char text[] =
                "A=1\n\n  # A=2\n\tB = two words \r\n=x\nnothing\nC=\nD='a # b'\nE=\"\nF=x=y#z";
        static const struct {
                unsigned number;
                const char *key, *value;
        } expected[] = {
                { 1, "A", "1" }, { 4, "B", "two words" }, { 5, NULL, NULL }, { 6, NULL, NULL },
                { 7, "C", "" },  { 8, "D", "a # b" },     { 9, "E", "\"" },  { 10, "F", "x=y#z" },
        };
        char *at = text;
        unsigned number = 0;
        struct config_line line;
        for (size_t i = 0; i < array_size(expected); i++) {
                assert_true(config_lines_next(&at, &number, &line));
                assert_int_equal(line.number, expected[i].number);
                assert_int_equal(!line.key, !expected[i].key);
                if (line.key) {
                        assert_string_equal(line.key, expected[i].key);
                        assert_string_equal(line.value, expected[i].value);
                }
        }
        assert_false(config_lines_next(&at, &number, &line));
}

static void later_places_override_earlier_ones(void **state)
{
        (void)state;
        put(etc, "client.conf",
            "SPANCL_SERVERS=a\nSPANCL_LANES=1\nSPANCL_SPIN=1\nSPANCL_LOG=error\n");
        put(etc, "client.conf.d/20.conf", "SPANCL_LANES=3\n");
        put(etc, "client.conf.d/10.conf", "SPANCL_LANES=2\n");
        put(etc, "client.conf.d/30.txt", "SPANCL_LANES=5\n");
        put(home, "client.conf", "# mine\nSPANCL_SERVERS=b c\nSPANCL_SPIN=\n");
        load();
        assert_string_equal(faults, "");
        assert_string_equal(config_text(CONFIG_servers), "b c");
        assert_int_equal(config_number(CONFIG_lanes), 3);
        assert_int_equal(config_number(CONFIG_client_spin), 50); /* empty: the default */
        assert_false(config_is_set(CONFIG_client_spin));
        struct config_origin o = config_origin(CONFIG_servers);
        assert_int_equal(o.kind, CONFIG_FILE);
        assert_int_equal(o.line, 2);
        assert_non_null(strstr(o.file, "/home/client.conf"));

        setenv("SPANCL_SERVERS", "d", 1);
        assert_string_equal(config_text(CONFIG_servers), "d");
        assert_int_equal(config_origin(CONFIG_servers).kind, CONFIG_ENVIRONMENT);
        setenv("SPANCL_SERVERS", "", 1);
        assert_string_equal(config_text(CONFIG_servers), "localhost");
        unsetenv("SPANCL_SERVERS");
        assert_int_equal(config_origin(CONFIG_client_share).kind, CONFIG_DEFAULT);
}

static void a_profile_overrides_the_files(void **state)
{
        (void)state;
        put(home, "client.conf", "SPANCL_SERVERS=a\nSPANCL_PROFILE=lab\n");
        put(home, "profiles/lab.conf", "SPANCL_SERVERS=b\nSPANCL_PROFILE=x\n");
        put(etc, "profiles/all.conf", "SPANCL_SERVERS=c\n");
        load();
        assert_string_equal(config_text(CONFIG_servers), "b");
        faults_name("lab.conf:2 is ignored: a profile does not name another one");

        setenv("SPANCL_PROFILE", "all", 1);
        load();
        assert_string_equal(config_text(CONFIG_servers), "c");
        setenv("SPANCL_PROFILE", "", 1);
        load();
        assert_string_equal(config_text(CONFIG_servers), "a");
        static const char *const wrong[] = { "../lab", ".x", "a/b", "none" };
        for (size_t i = 0; i < array_size(wrong); i++) {
                setenv("SPANCL_PROFILE", wrong[i], 1);
                load();
                assert_string_equal(config_text(CONFIG_servers), "a");
                faults_name("no profile is used");
        }
        unsetenv("SPANCL_PROFILE");
}

static void a_file_that_others_can_write_does_not_count(void **state)
{
        (void)state;
        char path[256];
        snprintf(path, sizeof(path), "%s/client.conf", home);
        put(home, "client.conf", "SPANCL_SERVERS=a\n");
        assert_int_equal(chmod(path, 0646), 0);
        load();
        assert_false(config_is_set(CONFIG_servers));
        faults_name("chmod go-w");

        assert_int_equal(chmod(path, 0644), 0);
        assert_int_equal(chmod(home, 0777), 0);
        load();
        assert_false(config_is_set(CONFIG_servers));
        faults_name("chmod go-w");
        assert_int_equal(chmod(home, 0755), 0);
        if (!geteuid()) {
                assert_int_equal(chown(path, 12345, 0), 0);
                load();
                assert_false(config_is_set(CONFIG_servers));
                faults_name("belongs to another user");
                assert_int_equal(chown(path, 0, 12345), 0);
                assert_int_equal(chmod(path, 0664), 0);
                load();
                assert_false(config_is_set(CONFIG_servers));
                faults_name("chmod go-w");
                assert_int_equal(chown(path, 0, 0), 0); /* root's group has root alone */
        }
        load();
        assert_string_equal(config_text(CONFIG_servers), "a");
}

static void files_that_are_not_text_do_not_count(void **state)
{
        (void)state;
        char path[256], *large = mem_zalloc(CONFIG_FILE_MAX + 2);
        snprintf(path, sizeof(path), "%s/client.conf", home);
        assert_non_null(large);
        assert_int_equal(mkfifo(path, 0644), 0);
        load();
        faults_name("is not a file");
        assert_int_equal(unlink(path), 0);

        memset(large, '#', CONFIG_FILE_MAX + 1);
        put(home, "client.conf", large);
        load();
        faults_name("is too large");
        mem_free(large);

        put(home, "client.conf", "");
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fwrite("SPANCL_SERVERS=a\0b", 1, 18, f);
        fclose(f);
        load();
        faults_name("is no text");
        assert_false(config_is_set(CONFIG_servers));
}

static void a_wrong_line_is_named(void **state)
{
        (void)state;
        put(home, "client.conf",
            "SPANCL_SERVERS\nSPANCL_LNES=3\nSPANCL_LOG=loud\n--linger=3\nSPANCL_SPIN=1\n");
        load();
        faults_name("client.conf:1 is ignored");
        faults_name(
                "client.conf:2 is ignored: there is no setting 'SPANCL_LNES'; is it SPANCL_LANES");
        faults_name(
                "client.conf:3: SPANCL_LOG: 'loud' is not allowed: it takes one of error, warn, info, debug; "
                "SpanCL uses warn");
        faults_name("client.conf:4 is ignored");
        assert_int_equal(config_number(CONFIG_client_log), 1);
        assert_int_equal(config_number(CONFIG_client_spin), 1);

        char *many = mem_zalloc(4000);
        for (int i = 0; i < 1000; i++)
                strcat(many, "xx\n");
        put(home, "client.conf", many);
        load();
        faults_name("further faults");
        mem_free(many);
}

static void a_variable_that_nothing_reads_is_named(void **state)
{
        (void)state;
        setenv("SPANCL_SERVER", "a", 1);
        setenv("SPANCL_XYZZY", "a", 1);
        setenv("SPANCL_ON_LOSS", "30", 1);
        setenv("POCL_REMOTE0_PARAMETERS", "a/0", 1);
        setenv("POCL_REMOTE3_PARAMETERS", "a/1", 1);
        load();
        faults_name(
                "SPANCL_SERVER is ignored, as SpanCL has none of that name; is it SPANCL_SERVERS\n");
        faults_name("SPANCL_XYZZY is ignored, as SpanCL has none of that name\n");
        faults_name(
                "SPANCL_ON_LOSS: '30' is not allowed: it takes auto, fail, wait, or wait:SECONDS");
        faults_name("SpanCL uses auto");
        faults_name("POCL_REMOTE3_PARAMETERS is ignored, because POCL_REMOTE1_PARAMETERS is unset");
        setenv("SPANCL_SERVERS", "b", 1);
        load();
        assert_null(strstr(faults, "POCL_REMOTE3"));
        unsetenv("SPANCL_SERVERS");
        unsetenv("SPANCL_SERVER");
        unsetenv("SPANCL_XYZZY");
        unsetenv("SPANCL_ON_LOSS");
        unsetenv("POCL_REMOTE0_PARAMETERS");
        unsetenv("POCL_REMOTE3_PARAMETERS");
}

static void variables_of_pocl_come_before_files(void **state)
{
        (void)state;
        struct server_spec *specs;
        size_t count;
        char *error = NULL;
        put(home, "client.conf", "SPANCL_SERVERS=a b\n");
        load();
        assert_int_equal(config_servers(&specs, &count, &error), 0);
        assert_int_equal(count, 2);
        assert_false(specs[0].implied);
        config_servers_free(specs, count);
        setenv("POCL_REMOTE0_PARAMETERS", "c/0", 1);
        assert_int_equal(config_servers(&specs, &count, &error), 0);
        assert_int_equal(count, 1);
        assert_string_equal(specs[0].name, "c");
        config_servers_free(specs, count);
        unsetenv("POCL_REMOTE0_PARAMETERS");
        put(home, "client.conf", "SPANCL_DISCOVERY=none\n");
        load();
        assert_string_equal(config_sources(), "");
        setenv("POCL_DISCOVERY", "1", 1);
        assert_string_equal(config_sources(), "mdns");
        assert_string_equal(config_source_setting(CONFIG_dht_key), "spancl");
        setenv("POCL_REMOTE_DHT_KEY", "lab", 1);
        assert_string_equal(config_sources(), "mdns,dht");
        assert_string_equal(config_source_setting(CONFIG_dht_key), "lab");
        setenv("SPANCL_DHT_KEY", "own", 1);
        assert_string_equal(config_source_setting(CONFIG_dht_key), "own");
        unsetenv("SPANCL_DHT_KEY");
        setenv("POCL_REMOTE_SEARCH_DOMAINS", "lab.example", 1);
        assert_string_equal(config_sources(), "mdns,dns,dht");
        assert_string_equal(config_source_setting(CONFIG_search_domains), "lab.example");
        unsetenv("POCL_REMOTE_DHT_KEY");
        assert_string_equal(config_sources(), "mdns,dns");
        unsetenv("POCL_REMOTE_SEARCH_DOMAINS");
        setenv("SPANCL_DISCOVERY", "none", 1);
        assert_string_equal(config_sources(), "");
        unsetenv("SPANCL_DISCOVERY");
        unsetenv("POCL_DISCOVERY");
        put(home, "client.conf", "SPANCL_SERVERS=a:b\n");
        load();
        assert_int_equal(config_servers(&specs, &count, &error), SP_E_INVAL);
        assert_non_null(strstr(error, "client.conf:1: SPANCL_SERVERS"));
        mem_free(error);
}

static void the_nearest_name_is_found(void **state)
{
        (void)state;
        assert_int_equal(config_distance("kitten", "sitting"), 3);
        assert_int_equal(config_distance("", "abc"), 3);
        assert_int_equal(config_distance("abcdef", "ghijkl"), 6);
        assert_string_equal(config_nearest(CONFIG_CLIENT, "SPANCL_ONLOSS"), "SPANCL_ON_LOSS");
        assert_string_equal(config_nearest(CONFIG_SERVER, "--listn"), "--listen");
        assert_null(config_nearest(CONFIG_CLIENT, "SPANCL_"));
        assert_null(config_nearest(CONFIG_CLIENT, ""));
}

/* ---- spancld.conf --------------------------------------------------------------------------- */

struct server {
        struct config_options given, o;
        struct config_command_line line;
        char *error;
};

static int parse_server(struct server *s, int argc, char **argv)
{
        *s = (struct server){ 0 };
        assert_int_equal(config_options_parse(argc, argv, &s->given, &s->error), 0);
        int r = config_options_file(&s->given, argc, argv, &s->line, &s->error);
        if (r < 0)
                return r;
        return config_options_parse(s->line.argc, s->line.argv, &s->o, &s->error);
}

static void server_done(struct server *s)
{
        config_options_fini(&s->given);
        config_options_fini(&s->o);
        config_command_line_fini(&s->line);
        mem_free(s->error);
}

static void the_command_line_overrides_the_file(void **state)
{
        (void)state;
        char option[256];
        struct server s;
        put(etc, "spancld.conf",
            "# here\nlisten = a:1\nlisten=b:2\nlinger=5\nsessions=7\ninsecure=1\nsocket=/x\n");
        snprintf(option, sizeof(option), "--config=%s/spancld.conf", etc);
        char name[] = "spancld", linger[] = "--linger=6", listen[] = "--listen=c:3",
             secure[] = "--insecure=0", lines[3 * sizeof(option)];
        char *file_alone[] = { name, option }, *both[] = { name, option, linger, listen, secure };
        assert_int_equal(parse_server(&s, 2, file_alone), 0);
        assert_int_equal(s.o.list_count, 3);
        assert_string_equal(s.o.list[1].value, "b:2");
        assert_int_equal(config_option_number(&s.o, CONFIG_linger), 5);
        assert_true(config_option_flag(&s.o, CONFIG_insecure));
        assert_string_equal(config_option_text(&s.o, CONFIG_config), ""); /* not read again */
        assert_null(s.line.overridden);
        server_done(&s);

        assert_int_equal(parse_server(&s, 5, both), 0);
        assert_int_equal(s.o.list_count, 1);
        assert_false(config_option_flag(&s.o, CONFIG_insecure));
        const char *path = strchr(option, '=') + 1;
        snprintf(lines, sizeof(lines), "%s:2: listen, %s:3: listen, %s:7: socket", path, path,
                 path);
        assert_string_equal(s.line.overridden, lines);
        assert_string_equal(s.o.list[0].value, "c:3");
        assert_int_equal(config_option_number(&s.o, CONFIG_linger), 6);
        assert_int_equal(config_option_number(&s.o, CONFIG_sessions), 7);
        server_done(&s);
}

static void a_server_refuses_a_wrong_file(void **state)
{
        (void)state;
        static const struct {
                const char *text, *says;
        } cases[] = {
                { "linger=5\nlingr=3\n",
                  "spancld.conf:2: there is no option 'lingr'; is it linger" },
                { "linger=soon\n", "spancld.conf:1: --linger: 'soon' is not allowed" },
                { "listen\n", "spancld.conf:1: a line is name=value" },
                { "insecure=yes\n", "0 or 1" },
                { "ready-fd=3\n", "only the command line takes --ready-fd" },
                { "config=/x\n", "only the command line takes --config" },
                { "print-dns=lab.example\n", "only the command line takes --print-dns" },
                { "print-avahi=1\n", "only the command line takes --print-avahi" },
                { "advertise=1\n", "spancld.conf:1: --advertise: '1' is not allowed" },
        };
        char option[300], path[256], name[] = "spancld";
        char *argv[] = { name, option };
        struct server s;
        snprintf(path, sizeof(path), "%s/spancld.conf", etc);
        snprintf(option, sizeof(option), "--config=%s", path);
        assert_int_equal(parse_server(&s, 2, argv), SP_E_INVAL);
        assert_non_null(strstr(s.error, "does not exist"));
        server_done(&s);
        for (size_t i = 0; i < array_size(cases); i++) {
                put(etc, "spancld.conf", cases[i].text);
                assert_int_equal(parse_server(&s, 2, argv), SP_E_INVAL);
                if (!strstr(s.error, cases[i].says))
                        print_error("%s\n", s.error);
                assert_non_null(strstr(s.error, cases[i].says));
                server_done(&s);
        }
        put(etc, "spancld.conf", "linger=5\ninsecure=0\n");
        assert_int_equal(parse_server(&s, 2, argv), 0);
        assert_false(config_option_flag(&s.o, CONFIG_insecure));
        server_done(&s);
        assert_int_equal(chmod(path, 0666), 0);
        assert_int_equal(parse_server(&s, 2, argv), SP_E_INVAL);
        assert_non_null(strstr(s.error, "other users can change"));
        server_done(&s);
}

int main(void)
{
#define CLAIM(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
        const struct CMUnitTest tests[] = {
                CLAIM(lines_are_a_key_and_a_value),
                CLAIM(later_places_override_earlier_ones),
                CLAIM(a_profile_overrides_the_files),
                CLAIM(a_file_that_others_can_write_does_not_count),
                CLAIM(files_that_are_not_text_do_not_count),
                CLAIM(a_wrong_line_is_named),
                CLAIM(a_variable_that_nothing_reads_is_named),
                CLAIM(variables_of_pocl_come_before_files),
                CLAIM(the_nearest_name_is_found),
                CLAIM(the_command_line_overrides_the_file),
                CLAIM(a_server_refuses_a_wrong_file),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
