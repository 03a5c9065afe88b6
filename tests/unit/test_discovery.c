/* Records of discovery: the lines of sources, which may come from anybody, and the programs that
 * write them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"
#include "base/mem.h"
#include "discovery/discovery.h"
#include "discovery/records.h"
#include "os/clock.h"
#include "os/process/detached.h"

#define KEY "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"

/* ---- lines ---------------------------------------------------------------------------------- */

static bool reads(const char *line, struct discovered *ret)
{
        enum discovered_event event;
        const char *why;
        int r = discovered_parse(line, strlen(line), &event, ret, &why);
        assert_true(r == 0 ? !why : why != NULL);
        return r == 0;
}

static void a_record_has_all_members(void **state)
{
        (void)state;
        struct discovered d;
        assert_true(
                reads("{\"event\":\"appears\",\"id\":\"i\",\"name\":\"gpu \\u00e91\",\"addresses\":"
                      "[\"192.0.2.5\",\"fe80::1%eth0\"],\"port\":7777,\"types\":\"gpu,cpu\","
                      "\"key\":\"" KEY "\",\"protocol\":7,\"load\":3,\"kind\":\"pocl\","
                      "\"later\":[{\"x\":null},-1.5e+3,true]}",
                      &d));
        assert_string_equal(d.id, "i");
        assert_string_equal(d.name, "gpu \xc3\xa9"
                                    "1");
        assert_int_equal(d.address_count, 2);
        assert_string_equal(d.addresses[1], "fe80::1%eth0");
        assert_int_equal(d.port, 7777);
        assert_int_equal(d.types, DISCOVERED_GPU | DISCOVERED_CPU);
        assert_string_equal(d.key, KEY);
        assert_int_equal(d.protocol, 7);
        assert_int_equal(d.load, 3);
        assert_int_equal(d.kind, DISCOVERED_POCL);
}

static void a_line_of_a_file_needs_a_name_addresses_and_a_port(void **state)
{
        (void)state;
        struct discovered d;
        assert_true(reads("{\"name\":\"a\",\"addresses\":[\"::1\"],\"port\":1}", &d));
        assert_string_equal(d.id, "a");
        assert_true(reads("{\"id\":\"x\",\"addresses\":[\"::1\"],\"port\":1}", &d));
        assert_string_equal(d.name, "::1");
        assert_false(reads("{\"name\":\"a\",\"port\":1}", &d));
        assert_false(reads("{\"name\":\"a\",\"addresses\":[\"::1\"]}", &d));
        assert_false(reads("{\"addresses\":[\"::1\"],\"port\":1}", &d));
}

static void hostile_lines_are_refused(void **state)
{
        (void)state;
        static const char *const values[] = {
                "\"name\":\"\\u001b[2J\"",
                "\"name\":\"a\\nb\"",
                "\"name\":\"\\u202egpu\"",
                "\"name\":\"a\\u0000b\"",
                "\"name\":\"\x1b[2J\"",
                "\"name\":\"\xc0\xaf\"",
                "\"name\":\"\xff\"",
                "\"name\":\"\\ud800\"",
                "\"name\":\"\\u009b2J\"",
                "\"name\":\"\"",
                "\"name\":1",
                "\"name\":\"a\",\"name\":\"b\"",
                "\"port\":0",
                "\"port\":65536",
                "\"port\":-1",
                "\"port\":1.0",
                "\"port\":\"7777\"",
                "\"port\":18446744073709551617",
                "\"addresses\":[]",
                "\"addresses\":\"::1\"",
                "\"addresses\":[\"localhost\"]",
                "\"addresses\":[\"0.0.0.0\"]",
                "\"addresses\":[\"ff02::1%eth0\"]",
                "\"addresses\":[\"224.0.0.1\"]",
                "\"addresses\":[\"::1%$(reboot)\"]",
                "\"addresses\":[\"::1\"",
                "\"key\":\"abcd\"",
                "\"key\":\"" KEY "00\"",
                "\"types\":\"gpu,,cpu\"",
                "\"types\":\"toaster\"",
                "\"kind\":\"other\"",
                "\"event\":\"explodes\"",
                "\"load\":-1",
                "\"x\":[[[[[[[[[]]]]]]]]]",
                "\"x\":nul",
                "\"x\":01",
                "\"x\":",
                "\"x\"",
                "x:1",
                "\"x\":1,",
        };
        struct discovered d;
        char line[512];
        for (size_t i = 0; i < array_size(values); i++) {
                bool has[] = { strstr(values[i], "name"), strstr(values[i], "addresses"),
                               strstr(values[i], "port") };
                snprintf(line, sizeof(line), "{%s%s%s%s}", has[0] ? "" : "\"name\":\"n\",",
                         has[1] ? "" : "\"addresses\":[\"::1\"],", has[2] ? "" : "\"port\":1,",
                         values[i]);
                if (reads(line, &d))
                        fail_msg("%s", line);
        }
        static const char *const lines[] = {
                "", "[]", "null", "{", "{}", "{}{}", "{\"event\":\"gone\"}"
        };
        for (size_t i = 0; i < array_size(lines); i++)
                assert_false(reads(lines[i], &d));
}

/* ---- sets ----------------------------------------------------------------------------------- */

static struct records set;

static bool feed(const char *text)
{
        return records_feed(&set, "test", text, strlen(text));
}

static void records_appear_change_and_go(void **state)
{
        (void)state;
        memset(&set, 0, sizeof(set));
        assert_true(feed("{\"id\":\"a\",\"addresses\":[\"::1\"],\"port\":1}\n"));
        assert_false(feed("{\"id\":\"a\",\"addresses\":[\"::1\"],\"port\":1}\n"));
        assert_false(feed("{\"id\":\"b\",\"addr")); /* a piece of a line */
        assert_true(feed("esses\":[\"::1\"],\"port\":2}\n{\"event\":\"settled\"}\n"));
        assert_int_equal(set.count, 2);
        assert_true(set.settled);
        assert_true(
                feed("{\"event\":\"changes\",\"id\":\"a\",\"addresses\":[\"::1\"],\"port\":3}\n"));
        assert_int_equal(set.list[0].port, 3);
        assert_true(feed("{\"event\":\"gone\",\"id\":\"a\"}\n"));
        assert_false(feed("{\"event\":\"gone\",\"id\":\"a\"}\n"));
        assert_int_equal(set.count, 1);
        assert_string_equal(set.list[0].id, "b");
        records_fini(&set);
}

static void floods_have_bounds(void **state)
{
        (void)state;
        char line[128];
        memset(&set, 0, sizeof(set));
        log_threshold = LOG_NONE;
        for (int i = 0; i < 10000; i++) {
                snprintf(line, sizeof(line), "{\"id\":\"%d\",\"addresses\":[\"::1\"],\"port\":1}\n",
                         i);
                feed(line);
        }
        assert_int_equal(set.count, RECORDS_MAX);
        assert_true(set.logged_full && !set.logged_bad);
        /* A line of 64 KiB is passed over; the next one counts. */
        feed("{\"id\":\"0\",\"addresses\":[\"::1\"],\"port\":1,\"x\":\"");
        for (int i = 0; i < 1024; i++)
                feed("0123456789012345678901234567890123456789012345678901234567890123");
        assert_false(feed("\"}\n"));
        assert_true(feed("{\"event\":\"gone\",\"id\":\"0\"}\n"));
        assert_true(set.logged_bad);
        log_threshold = LOG_WARN;
        records_fini(&set);
}

/* ---- trust ---------------------------------------------------------------------------------- */

static void only_servers_with_known_keys_or_local_records_of_loopback_are_used(void **state)
{
        (void)state;
        static char servers[] = KEY " gpu1:7777\n";
        struct trust t = { .servers = servers };
        struct server_spec spec;
        struct discovered known, stranger, bare, far;
        assert_true(reads(
                "{\"name\":\"a\",\"addresses\":[\"192.0.2.1\",\"fe80::2%lo\"],\"port\":1,\"key\":\"" KEY
                "\"}",
                &known));
        stranger = known;
        stranger.key[0] = 'f';
        assert_true(
                reads("{\"name\":\"a\",\"addresses\":[\"127.0.0.1\",\"::1\"],\"port\":1}", &bare));
        far = bare;
        strcpy(far.addresses[1], "192.0.2.1");
        assert_int_equal(trust_judge(&t, &known, false), DISCOVERED_USED);
        assert_int_equal(trust_judge(&t, &stranger, false), DISCOVERED_NOT_PAIRED);
        assert_int_equal(trust_judge(&t, &stranger, true), DISCOVERED_NOT_PAIRED);
        assert_int_equal(trust_judge(&t, &bare, false), DISCOVERED_NOT_PAIRED);
        assert_int_equal(trust_judge(&t, &bare, true), DISCOVERED_USED_HERE);
        assert_int_equal(trust_judge(&t, &far, true), DISCOVERED_NOT_PAIRED);
        known.protocol = 1000;
        assert_int_equal(trust_judge(&t, &known, true), DISCOVERED_OTHER);
        known.kind = DISCOVERED_POCL;
        assert_int_equal(trust_judge(&t, &known, true), DISCOVERED_FOREIGN);

        assert_int_equal(discovered_spec(&known, DISCOVERED_USED, 1, &spec), 0);
        assert_string_equal(spec.address, "tls:[fe80::2%lo]:1#" KEY "+");
        assert_string_equal(spec.name, "a ([fe80::2%lo]:1)");
        server_spec_fini(&spec);
        assert_int_equal(discovered_spec(&bare, DISCOVERED_USED_HERE, 0, &spec), 0);
        assert_string_equal(spec.address, "tcp:127.0.0.1:1");
        server_spec_fini(&spec);
        assert_int_equal(discovered_spec(&far, DISCOVERED_USED_HERE, 1, &spec), SP_E_INVAL);
        assert_int_equal(discovered_spec(&bare, DISCOVERED_NOT_PAIRED, 0, &spec), SP_E_INVAL);
}

/* ---- programs ------------------------------------------------------------------------------- */

static atomic_int children_told;

static void on_child(int signal)
{
        (void)signal;
        children_told++;
}

/* Read all until the program ends. */
static void read_output(int fd, char *ret, size_t size)
{
        struct pollfd p = { .fd = fd, .events = POLLIN };
        size_t n = 0;
        ssize_t got = 1;
        while (got) {
                assert_int_equal(poll(&p, 1, 60000), 1);
                got = read(fd, ret + n, size - 1 - n);
                if (got < 0)
                        assert_int_equal(errno, EAGAIN);
                else
                        n += (size_t)got;
        }
        ret[n] = 0;
}

static void the_application_sees_no_child(void **state)
{
        (void)state;
        char *const argv[] = { "/bin/sh", "-c", "echo $VALUE; read x; echo end $x", NULL };
        char text[256];
        int fd, other = dup(1);
        struct sigaction before, on = { .sa_handler = on_child };
        sigaction(SIGCHLD, &on, &before);
        setenv("VALUE", "kept", 1);
        assert_int_equal(detached_start(argv, false, &fd), 0);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
        assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
        read_output(fd, text, sizeof(text));
        assert_string_equal(text, "kept\nend\n");
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
        assert_int_equal(children_told, 0);
        sigaction(SIGCHLD, &before, NULL);
        close(fd);
        close(other);
}

/* Bits of signals in /proc/PID/status, as the program prints them. */
static void a_program_gets_default_signals_and_no_descriptors(void **state)
{
        (void)state;
        char *const argv[] = { "/bin/sh", "-c", "exec sed -n '/^Sig[BIC]/p' /proc/self/status",
                               NULL };
        char *const list[] = { "/bin/ls", "/proc/self/fd", NULL };
        char text[512];
        int fd, leak = dup(1); /* not closed on exec */
        sigset_t usr, before;
        sigemptyset(&usr);
        sigaddset(&usr, SIGUSR1);
        pthread_sigmask(SIG_BLOCK, &usr, &before);
        signal(SIGPIPE, SIG_IGN);
        assert_int_equal(detached_start(argv, false, &fd), 0);
        read_output(fd, text, sizeof(text));
        assert_string_equal(text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n"
                                  "SigCgt:\t0000000000000000\n");
        close(fd);
        signal(SIGPIPE, SIG_DFL);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        assert_int_equal(detached_start(list, false, &fd), 0);
        read_output(fd, text, sizeof(text));
        assert_string_equal(text, "0\n1\n2\n3\n"); /* 3: the folder */
        close(fd);
        close(leak);
}

static void a_quiet_program_has_no_standard_error(void **state)
{
        (void)state;
        char *const argv[] = { "/bin/sh", "-c", "readlink /proc/$$/fd/2", NULL };
        char text[64];
        int fd;
        assert_int_equal(detached_start(argv, true, &fd), 0);
        read_output(fd, text, sizeof(text));
        assert_string_equal(text, "/dev/null\n");
        close(fd);
}

static void a_program_that_is_not_there_is_an_error(void **state)
{
        (void)state;
        char *const argv[] = { "/nowhere/at/all", NULL };
        int fd = -7;
        assert_int_equal(detached_start(argv, false, &fd), SP_E_NOENT);
        assert_int_equal(errno, ENOENT);
        assert_int_equal(fd, -7);
}

static void a_program_that_is_not_there_leaves_a_number_to_collect(void **state)
{
        (void)state;
        char *const argv[] = { "/nowhere/at/all", NULL };
        int fd, id = -7;
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        assert_int_equal(detached_start_socket(argv, false, &fd, &id), SP_E_NOENT);
        assert_true(id > 0);
        while (!detached_collect(id))
                usleep(1000);
        assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
        assert_int_equal(errno, ECHILD);
        prctl(PR_SET_CHILD_SUBREAPER, 0);
        assert_true(detached_collect(0));
}

/* ---- discovery ------------------------------------------------------------------------------ */

struct heard {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        size_t count;
        unsigned port;
        enum discovered_use use;
        bool settled;
        unsigned calls;
};

static bool hear(void *user, const struct discovery_item *items, size_t count, bool settled)
{
        struct heard *h = user;
        pthread_mutex_lock(&h->lock);
        h->calls++;
        h->count = count;
        h->settled = settled;
        h->port = count ? items[0].record->port : 0;
        h->use = count ? items[0].use : DISCOVERED_OTHER;
        pthread_cond_broadcast(&h->changed);
        pthread_mutex_unlock(&h->lock);
        return false;
}

static void await(struct heard *h, size_t count, unsigned port)
{
        pthread_mutex_lock(&h->lock);
        while (!h->settled || h->count != count || h->port != port)
                pthread_cond_wait(&h->changed, &h->lock);
        pthread_mutex_unlock(&h->lock);
}

static void write_file(const char *path, const char *text)
{
        char other[128];
        snprintf(other, sizeof(other), "%s.new", path);
        FILE *f = fopen(other, "w");
        assert_non_null(f);
        fputs(text, f);
        fclose(f);
        assert_int_equal(rename(other, path), 0);
}

static void a_file_is_watched(void **state)
{
        (void)state;
        struct heard h = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER };
        struct discovery *d;
        char folder[] = "/tmp/spancl-discovery-XXXXXX", path[64], source[80], *error = NULL;
        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/servers", folder);
        snprintf(source, sizeof(source), "file:%s", path);
        assert_int_equal(discovery_new(source, hear, &h, &d, &error), 0);
        await(&h, 0, 0);
        write_file(path, "# ours\n\n{\"name\":\"a\",\"addresses\":[\"::1\"],\"port\":5}");
        await(&h, 1, 5);
        assert_int_equal(h.use, DISCOVERED_USED_HERE);
        write_file(path, "{\"name\":\"a\",\"addresses\":[\"::1\"],\"port\":6}\n"
                         "{\"name\":\"b\",\"addresses\":[\"::1\"],\"port\":7}\n");
        await(&h, 2, 6);
        write_file(path, "{\"name\":\"b\",\"addresses\":[\"::1\"],\"port\":7}\n");
        await(&h, 1, 7);
        assert_int_equal(unlink(path), 0);
        await(&h, 0, 0);
        discovery_free(d);
        assert_int_equal(rmdir(folder), 0);
}

static void a_source_that_ends_counts_as_settled(void **state)
{
        (void)state;
        struct heard h = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER };
        struct discovery *d;
        char *error = NULL;
        assert_int_equal(discovery_new("exec:/bin/true", hear, &h, &d, &error), 0);
        await(&h, 0, 0);
        discovery_free(d);
}

/* Run a program of this text as a source, until it has reported one server with this port. */
static void hear_program(struct heard *h, const char *text, unsigned port)
{
        struct discovery *d;
        char folder[] = "/tmp/spancl-discovery-XXXXXX", path[64], source[80], *error = NULL;
        assert_non_null(mkdtemp(folder));
        snprintf(path, sizeof(path), "%s/program", folder);
        snprintf(source, sizeof(source), "exec:%s", path);
        write_file(path, text);
        assert_int_equal(chmod(path, 0700), 0);
        assert_int_equal(discovery_new(source, hear, h, &d, &error), 0);
        await(h, 1, port);
        discovery_free(d);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(rmdir(folder), 0);
}

static void the_last_line_of_a_program_needs_no_newline(void **state)
{
        (void)state;
        struct heard h = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER };
        hear_program(
                &h, "#!/bin/sh\nprintf '{\"name\":\"a\",\"addresses\":[\"::1\"],\"port\":5}'\n", 5);
}

/* Each line of it is a change. */
static void a_program_that_changes_its_mind_all_the_time_is_heard_now_and_then(void **state)
{
        (void)state;
        struct heard h = { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER };
        uint64_t begin = clock_now_ns();
        hear_program(&h,
                     "#!/bin/sh\nfor i in $(seq 9999); do\n"
                     "echo '{\"name\":\"a\",\"addresses\":[\"::1\"],\"port\":'$i'}'\ndone\n",
                     9999);
        assert_in_range(h.calls, 1, 2 + (clock_now_ns() - begin) / 100000000);
}

static void other_names_are_not_sources(void **state)
{
        (void)state;
        static const char *const names[] = { "avahi", "file:servers", "exec:", "exec:sh",
                                             "mdns,x" };
        log_threshold = LOG_NONE;
        for (size_t i = 0; i < array_size(names); i++) {
                struct discovery *d;
                char *error = NULL;
                assert_int_equal(discovery_new(names[i], hear, NULL, &d, &error), SP_E_INVAL);
                assert_non_null(strstr(error, "is not a source"));
                mem_free(error);
        }
        log_threshold = LOG_WARN;
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_record_has_all_members),
                cmocka_unit_test(a_line_of_a_file_needs_a_name_addresses_and_a_port),
                cmocka_unit_test(hostile_lines_are_refused),
                cmocka_unit_test(records_appear_change_and_go),
                cmocka_unit_test(floods_have_bounds),
                cmocka_unit_test(
                        only_servers_with_known_keys_or_local_records_of_loopback_are_used),
                cmocka_unit_test(the_application_sees_no_child),
                cmocka_unit_test(a_program_gets_default_signals_and_no_descriptors),
                cmocka_unit_test(a_quiet_program_has_no_standard_error),
                cmocka_unit_test(a_program_that_is_not_there_is_an_error),
                cmocka_unit_test(a_program_that_is_not_there_leaves_a_number_to_collect),
                cmocka_unit_test(a_file_is_watched),
                cmocka_unit_test(a_source_that_ends_counts_as_settled),
                cmocka_unit_test(the_last_line_of_a_program_needs_no_newline),
                cmocka_unit_test(
                        a_program_that_changes_its_mind_all_the_time_is_heard_now_and_then),
                cmocka_unit_test(other_names_are_not_sources),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
