#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "config/options.h"
#include "config/servers.h"
#include "config/settings.h"
#include "config/variables.h"

struct parsed {
        struct server_spec *specs;
        size_t count;
};

static struct parsed parse(const char *text)
{
        struct parsed p = { 0 };
        char *error = NULL;
        int r = config_servers_parse(text, "SPANCL_SERVERS", &p.specs, &p.count, &error);
        if (r < 0)
                print_error("'%s': %s\n", text, error);
        assert_int_equal(r, 0);
        return p;
}

static void done(struct parsed p)
{
        config_servers_free(p.specs, p.count);
}

static void a_server_has_a_host_a_port_devices_and_a_peer_host(void **state)
{
        (void)state;
        struct parsed p = parse("  alpha beta:1234/0,2#10.0.0.7:99 [::1]:5/3\t10.1.2.3#x.y ");
        assert_int_equal(p.count, 4);

        assert_string_equal(p.specs[0].address, "tls:alpha:7777");
        assert_string_equal(p.specs[0].name, "alpha");
        assert_string_equal(p.specs[0].peer_host, "alpha");
        assert_int_equal(p.specs[0].peer_port, 7777);
        assert_null(p.specs[0].devices);
        assert_int_equal(p.specs[0].device_count, 0);
        assert_false(p.specs[0].in_process);

        assert_string_equal(p.specs[1].address, "tls:beta:1234");
        assert_string_equal(p.specs[1].name, "beta:1234");
        assert_string_equal(p.specs[1].devices, "0,2");
        assert_int_equal(p.specs[1].device_count, 2);
        assert_int_equal(p.specs[1].device_list[1], 2);
        assert_string_equal(p.specs[1].peer_host, "10.0.0.7");
        assert_int_equal(p.specs[1].peer_port, 99);

        assert_string_equal(p.specs[2].address, "loopback:[::1]:5");
        assert_string_equal(p.specs[2].peer_host, "::1");
        assert_int_equal(p.specs[2].device_list[0], 3);

        assert_string_equal(p.specs[3].address, "tls:10.1.2.3:7777");
        assert_string_equal(p.specs[3].peer_host, "x.y");
        assert_int_equal(p.specs[3].peer_port, 7777);
        done(p);
}

static void only_a_name_of_loopback_may_go_unencrypted(void **state)
{
        (void)state;
        struct parsed p =
                parse("127.0.0.1:1 127.example.org tcp:127.example.org#0.0.0.0 [::ffff:127.0.0.1]");
        assert_int_equal(p.count, 4);
        assert_string_equal(p.specs[0].address, "loopback:127.0.0.1:1");
        assert_string_equal(p.specs[1].address, "tls:127.example.org:7777");
        assert_string_equal(p.specs[2].address, "tcp:127.example.org:7777");
        assert_string_equal(p.specs[2].peer_host, "0.0.0.0");
        assert_string_equal(p.specs[3].address, "loopback:[::ffff:127.0.0.1]:7777");
        assert_string_equal(p.specs[3].peer_host, "::ffff:127.0.0.1");
        done(p);
}

static void other_servers_do_not_reach_a_virtual_machine_by_its_number(void **state)
{
        (void)state;
        struct parsed p = parse("vsock:2 vsock:3:9/1,0#10.0.0.7 vsock-plain:4#unix:/run/s");
        assert_int_equal(p.count, 3);
        assert_string_equal(p.specs[0].address, "vsock:2:7777");
        assert_null(p.specs[0].peer_host);
        assert_string_equal(p.specs[1].address, "vsock:3:9");
        assert_string_equal(p.specs[1].devices, "1,0");
        assert_string_equal(p.specs[1].peer_host, "10.0.0.7");
        assert_string_equal(p.specs[2].address, "vsock-plain:4:7777");
        assert_string_equal(p.specs[2].peer_host, "unix:/run/s");
        done(p);
}

static void sockets_and_the_own_devices_are_servers_too(void **state)
{
        (void)state;
        struct parsed p = parse("unix:/run/spancl.sock unix:/run/s/1,0#h in-process "
                                "in-process:reference/1");
        assert_int_equal(p.count, 4);
        assert_string_equal(p.specs[0].address, "unix:/run/spancl.sock");
        assert_string_equal(p.specs[0].peer_host, "unix:/run/spancl.sock");
        assert_int_equal(p.specs[0].peer_port, 0);
        assert_string_equal(p.specs[1].address, "unix:/run/s");
        assert_string_equal(p.specs[1].devices, "1,0");
        assert_string_equal(p.specs[1].peer_host, "h");
        assert_true(p.specs[2].in_process);
        assert_null(p.specs[2].address);
        assert_string_equal(p.specs[2].backend, "native");
        assert_string_equal(p.specs[3].backend, "reference");
        assert_string_equal(p.specs[3].devices, "1");
        done(p);
}

static void the_error_names_the_text_that_is_no_server(void **state)
{
        (void)state;
        static const char *const wrong[] = {
                "",
                "host:",
                "host:0",
                "host:65536",
                "host:12x",
                "::1",
                "[::1",
                "[]:5",
                "host/",
                "host/a",
                "host/0,",
                "host/,0",
                "host/0,0",
                "host/9999",
                "host#",
                "host#p:0",
                "unix:",
                "unix:x",
                "vsock:",
                "vsock:alpha",
                "vsock:any:7",
                "vsock:2#vsock:3:7777",
                "vsock-plain:2:70000",
                "in-process:cuda",
                ":7777",
                "ho st:x/",
                "in-process#h",
                "host/99999999999999999999",
        };
        for (size_t i = 0; i < array_size(wrong); i++) {
                struct server_spec *specs = NULL;
                size_t count = 0;
                char *error = NULL;
                int r = config_servers_parse(wrong[i], "SPANCL_SERVERS", &specs, &count, &error);
                if (!r)
                        print_error("'%s' was taken\n", wrong[i]);
                assert_int_equal(r, SP_E_INVAL);
                assert_non_null(strstr(error, "SPANCL_SERVERS"));
                assert_null(specs);
                mem_free(error);
        }
}

static void too_many_servers_are_an_error(void **state)
{
        (void)state;
        char text[4 * (CONFIG_SERVERS_MAX + 1) + 1] = "";
        for (int i = 0; i <= CONFIG_SERVERS_MAX; i++)
                strcat(text, "h:1 ");
        struct server_spec *specs = NULL;
        size_t count = 0;
        char *error = NULL;
        assert_int_equal(config_servers_parse(text, "X", &specs, &count, &error), SP_E_INVAL);
        mem_free(error);
}

static void without_a_variable_the_server_is_localhost(void **state)
{
        (void)state;
        struct parsed p = { 0 };
        char *error = NULL;
        unsetenv("SPANCL_SERVERS");
        unsetenv("POCL_REMOTE0_PARAMETERS");
        assert_int_equal(config_servers(&p.specs, &p.count, &error), 0);
        assert_int_equal(p.count, 1);
        assert_string_equal(p.specs[0].address, "loopback:localhost:7777");
        done(p);
}

static void pocl_s_variables_are_understood(void **state)
{
        (void)state;
        struct parsed p = { 0 };
        char *error = NULL;
        unsetenv("SPANCL_SERVERS");
        setenv("POCL_REMOTE0_PARAMETERS", "alpha/0", 1);
        setenv("POCL_REMOTE1_PARAMETERS", "beta:10998/0#10.0.0.2", 1);
        setenv("POCL_REMOTE2_PARAMETERS", "alpha/1", 1);
        setenv("POCL_REMOTE4_PARAMETERS", "never/0", 1);
        assert_int_equal(config_servers(&p.specs, &p.count, &error), 0);
        assert_int_equal(p.count, 2);
        assert_string_equal(p.specs[0].address, "tls:alpha:7777");
        assert_string_equal(p.specs[0].devices, "0,1");
        assert_int_equal(p.specs[0].device_count, 2);
        assert_int_equal(p.specs[0].device_list[1], 1);
        assert_string_equal(p.specs[1].address, "tls:beta:10998");
        assert_string_equal(p.specs[1].peer_host, "10.0.0.2");
        done(p);

        setenv("POCL_REMOTE1_PARAMETERS", "beta", 1);
        assert_int_equal(config_servers(&p.specs, &p.count, &error), SP_E_INVAL);
        assert_non_null(strstr(error, "POCL_REMOTE1_PARAMETERS"));
        mem_free(error);

        setenv("SPANCL_SERVERS", "gamma", 1); /* which comes first */
        assert_int_equal(config_servers(&p.specs, &p.count, &error), 0);
        assert_string_equal(p.specs[0].name, "gamma");
        done(p);
        unsetenv("SPANCL_SERVERS");
        unsetenv("POCL_REMOTE0_PARAMETERS");
}

static void a_wrong_value_is_not_allowed_and_counts_as_the_default(void **state)
{
        (void)state;
        static const struct {
                enum config_id id;
                const char *value, *allowed;
        } cases[] = {
                { CONFIG_client_log, "loud", "error, warn, info, debug" },
                { CONFIG_connect_timeout, "0", "1 to 3600000" },
                { CONFIG_connect_timeout, "-1", "1 to 3600000" },
                { CONFIG_connect_timeout, "10s", "1 to 3600000" },
                { CONFIG_connect_timeout, "99999999999999999999999", "1 to 3600000" },
                { CONFIG_on_loss, "30", "auto, fail, wait, or wait:SECONDS" },
                { CONFIG_on_loss, "wait:", "0 to 86400" },
                { CONFIG_on_loss, "wait:86401", "0 to 86400" },
        };
        static const char *const bad[] = { "",        "auto",   "waits",      "wait:", "wait:-1",
                                           "wait:1s", "wait:0", "wait:86401", "fail:1" };
        char *filter = NULL;
        assert_int_equal(config_check(CONFIG_client_devices, "gpu,count=1", &filter), 0);
        assert_int_equal(config_check(CONFIG_client_devices, "gpus", &filter), SP_E_INVAL);
        assert_non_null(strstr(filter, "SPANCL_DEVICES: 'gpus' is not a term"));
        mem_free(filter);
        for (size_t i = 0; i < array_size(bad); i++) {
                char *error = NULL;
                assert_int_equal(config_check(CONFIG_when_full, bad[i], &error), SP_E_INVAL);
                assert_non_null(strstr(error, "takes fail, wait, or wait:SECONDS with 1 to 86400"));
                mem_free(error);
        }
        for (size_t i = 0; i < array_size(cases); i++) {
                char *error = NULL;
                uint64_t v;
                const struct config_entry *e = config_entry(cases[i].id);
                setenv(e->name, cases[i].value, 1);
                assert_true(config_convert(cases[i].id, e->fallback, &v));
                assert_int_equal(config_number(cases[i].id), v);
                assert_int_equal(config_check(cases[i].id, cases[i].value, &error), SP_E_INVAL);
                assert_non_null(strstr(error, e->name));
                assert_non_null(strstr(error, cases[i].allowed));
                mem_free(error);
                unsetenv(e->name);
        }
}

static void values_have_defaults(void **state)
{
        (void)state;
        setenv("SPANCL_LOG", "", 1); /* as if unset */
        assert_int_equal(config_number(CONFIG_client_log), 1);
        setenv("SPANCL_LOG", "debug", 1);
        assert_int_equal(config_number(CONFIG_client_log), 3);
        unsetenv("SPANCL_LOG");
        assert_int_equal(config_number(CONFIG_connect_timeout), 10000);
}

static void a_wait_is_none_or_for_ever_or_some_seconds(void **state)
{
        (void)state;
        uint64_t v;
        assert_true(config_convert(CONFIG_on_loss, "fail", &v));
        assert_int_equal(v, 0);
        assert_true(config_convert(CONFIG_on_loss, "wait", &v));
        assert_true(v == UINT64_MAX);
        assert_true(config_convert(CONFIG_on_loss, "wait:30", &v));
        assert_true(v == 30000000000);
        assert_true(config_convert(CONFIG_on_loss, "auto", &v));
        assert_true(v == CONFIG_WAIT_AUTO);
        assert_true(config_convert(CONFIG_on_loss, "wait:0", &v));
        assert_int_equal(v, 0);
        assert_true(config_convert(CONFIG_when_full, "wait:86400", &v));
        assert_true(v == 86400000000000);
}

static void every_default_is_allowed(void **state)
{
        (void)state;
        for (enum config_id id = 0; id < CONFIG_COUNT; id++) {
                char *error = NULL;
                const struct config_entry *e = config_entry(id);
                if (*e->fallback)
                        assert_int_equal(config_check(id, e->fallback, &error), 0);
        }
}

static void options_are_parsed(void **state)
{
        (void)state;
        char *argv[] = { "spancld",  "--listen", "a:1",        "--listen=b:2",
                         "--linger", "5",        "--insecure", "--devices=" };
        struct config_options o;
        char *error = NULL;
        assert_int_equal(config_options_parse(array_size(argv), argv, &o, &error), 0);
        assert_int_equal(o.list_count, 2);
        assert_string_equal(o.list[1].value, "b:2");
        assert_int_equal(config_option_number(&o, CONFIG_linger), 5);
        assert_true(config_option_flag(&o, CONFIG_insecure));
        assert_false(config_option_flag(&o, CONFIG_help));
        assert_string_equal(config_option_text(&o, CONFIG_devices), "");
        assert_string_equal(config_option_text(&o, CONFIG_backend), "native");
        assert_int_equal(config_option_number(&o, CONFIG_log), 1);
        config_options_fini(&o);
}

static void an_option_may_come_without_its_value(void **state)
{
        (void)state;
        static const char *const args[] = { "--help", "--advertise", "--advertise=mdns",
                                            "--advertise=off" };
        static const unsigned wanted[] = { 0, 3, 3, 0 };
        for (size_t i = 0; i < array_size(args); i++) {
                char *argv[] = { "spancld", (char *)(uintptr_t)args[i], "--insecure" };
                struct config_options o;
                char *error = NULL;
                assert_int_equal(config_options_parse(array_size(argv), argv, &o, &error), 0);
                assert_int_equal(config_option_number(&o, CONFIG_advertise), wanted[i]);
                assert_true(config_option_flag(&o, CONFIG_insecure));
                config_options_fini(&o);
        }
}

static void wrong_options_are_explained(void **state)
{
        (void)state;
        static const struct {
                const char *arg, *value, *says;
        } cases[] = {
                { "--listn", NULL, "unknown option '--listn'; is it --listen? --help" },
                { "--sesions=3", NULL, "is it --sessions?" },
                { "--toaster", NULL, "unknown option '--toaster'; --help" },
                { "--linger", NULL, "needs a value" },
                { "--linger", "soon", "--linger" },
                { "--linger", "86401", "86400" },
                { "--backend", "cuda", "native, reference" },
                { "--insecure=yes", NULL, "it takes 0 or 1" },
                { "--advertise=smoke", NULL, "off, dht, mdns" },
                { "SPANCL_LOG", "debug", "SPANCL_LOG" },
                { "stray", NULL, "stray" },
        };
        for (size_t i = 0; i < array_size(cases); i++) {
                char *argv[] = { "spancld", (char *)(uintptr_t)cases[i].arg,
                                 (char *)(uintptr_t)cases[i].value };
                struct config_options o;
                char *error = NULL;
                assert_int_equal(config_options_parse(cases[i].value ? 3 : 2, argv, &o, &error),
                                 SP_E_INVAL);
                assert_non_null(strstr(error, cases[i].says));
                mem_free(error);
                config_options_fini(&o);
        }
}

static void out_of_memory_is_reported_and_leaves_nothing(void **state)
{
        (void)state;
        int r = SP_E_NOMEM;
        for (unsigned long n = 1; r == SP_E_NOMEM; n++) {
                struct parsed p = { 0 };
                char *error = NULL;
                mem_fail_at(n);
                r = config_servers_parse("a/0,1#b [::1]:5 unix:/x/0 in-process:reference", "X",
                                         &p.specs, &p.count, &error);
                mem_fail_at(0);
                assert_null(error);
                done(p);
        }
        assert_int_equal(r, 0);
}

static void an_engine_in_the_client_has_options_of_its_variables(void **state)
{
        (void)state;
        struct config_local local;
        const struct config_options *o = &local.options;
        setenv("SPANCL_CONTEXTS", "device", 1);
        setenv("SPANCL_CACHE_SIZE", "3", 1);
        config_local_options("emu:x", true, &local);
        setenv("SPANCL_CONTEXTS", "platform", 1); /* too late */
        assert_int_equal(config_option_number(o, CONFIG_contexts), 2);
        assert_int_equal(config_option_number(o, CONFIG_cache_size), 3);
        assert_string_equal(config_option_text(o, CONFIG_almaif), "emu:x");
        assert_int_equal(config_option_number(o, CONFIG_linger), 0);
        assert_string_equal(config_option_text(o, CONFIG_devices), "");
        unsetenv("SPANCL_CONTEXTS");
        unsetenv("SPANCL_CACHE_SIZE");
        config_local_options(NULL, false, &local);
        assert_int_equal(config_option_number(o, CONFIG_contexts), 0);
        assert_string_equal(config_option_text(o, CONFIG_almaif), "");
        assert_int_equal(config_option_number(NULL, CONFIG_linger), 60);
}

int main(void)
{
        config_settings_read(NULL, NULL); /* not those of the user that runs the tests */
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_server_has_a_host_a_port_devices_and_a_peer_host),
                cmocka_unit_test(only_a_name_of_loopback_may_go_unencrypted),
                cmocka_unit_test(other_servers_do_not_reach_a_virtual_machine_by_its_number),
                cmocka_unit_test(sockets_and_the_own_devices_are_servers_too),
                cmocka_unit_test(the_error_names_the_text_that_is_no_server),
                cmocka_unit_test(too_many_servers_are_an_error),
                cmocka_unit_test(without_a_variable_the_server_is_localhost),
                cmocka_unit_test(pocl_s_variables_are_understood),
                cmocka_unit_test(a_wrong_value_is_not_allowed_and_counts_as_the_default),
                cmocka_unit_test(a_wait_is_none_or_for_ever_or_some_seconds),
                cmocka_unit_test(values_have_defaults),
                cmocka_unit_test(every_default_is_allowed),
                cmocka_unit_test(options_are_parsed),
                cmocka_unit_test(an_option_may_come_without_its_value),
                cmocka_unit_test(wrong_options_are_explained),
                cmocka_unit_test(out_of_memory_is_reported_and_leaves_nothing),
                cmocka_unit_test(an_engine_in_the_client_has_options_of_its_variables),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
