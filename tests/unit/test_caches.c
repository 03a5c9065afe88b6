/* Where what is compiled for sessions is kept. */
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

#include "daemon/upkeep/caches.h"

static char base[] = "/tmp/spancl-test-caches.XXXXXX";
static char cache[64], scratch[64], uploads[PATH_MAX]; /* uploads: of the last use() */

static bool is_below(const char *path, const char *folder)
{
        size_t n = strlen(folder);
        return !strncmp(path, folder, n) && (!path[n] || path[n] == '/');
}

static void use(const char *owner, char engine[PATH_MAX], char drivers[PATH_MAX])
{
        char option[96], *error = NULL;
        struct config_options o;
        struct caches all;
        snprintf(option, sizeof(option), "--cache=%s", cache);
        char *argv[] = { (char[]){ "spancld" }, option };
        assert_int_equal(config_options_parse(2, argv, &o, &error), 0);
        caches_use(&o, owner, scratch, &all);
        snprintf(engine, PATH_MAX, "%s", all.programs);
        snprintf(uploads, PATH_MAX, "%s", all.uploads);
        snprintf(drivers, PATH_MAX, "%s", getenv("XDG_CACHE_HOME"));
        config_options_fini(&o);
}

/* A session may write to the engine's folder and to those that drivers make in theirs. The
 * server opens all of them for the next session, with its own rights. So none may be replaced
 * by a link. */
static void no_folder_that_the_server_opens_is_in_one_that_a_session_may_change(void **state)
{
        static const char *const owners[] = { "", "0123abcd", "token" };
        char engine[PATH_MAX], drivers[PATH_MAX];
        (void)state;
        for (size_t i = 0; i < sizeof(owners) / sizeof(*owners); i++) {
                struct stat st;
                use(owners[i], engine, drivers);
                assert_int_equal(stat(engine, &st), 0);
                assert_int_equal(stat(drivers, &st), 0);
                assert_false(is_below(drivers, engine));
                assert_false(is_below(cache, engine) && *owners[i]);
        }
}

/* Presence in a store must tell nobody of another client's data. */
static void only_a_client_with_a_key_has_a_store_of_uploads(void **state)
{
        char engine[PATH_MAX], drivers[PATH_MAX], first[PATH_MAX];
        (void)state;
        use("", engine, drivers);
        assert_string_equal(uploads, "");
        use("token", engine, drivers);
        assert_string_equal(uploads, "");
        use("0123abcd", engine, drivers);
        assert_true(*uploads && !is_below(uploads, engine) && !is_below(uploads, drivers));
        assert_false(is_below(engine, uploads) || is_below(drivers, uploads));
        snprintf(first, sizeof(first), "%s", uploads);
        use("4567cdef", engine, drivers);
        assert_true(*uploads && !is_below(uploads, first) && !is_below(first, uploads));
}

static void clients_have_folders_of_their_own(void **state)
{
        char engine[2][PATH_MAX], drivers[2][PATH_MAX];
        (void)state;
        use("0123abcd", engine[0], drivers[0]);
        use("4567cdef", engine[1], drivers[1]);
        assert_string_not_equal(drivers[0], drivers[1]);
        assert_false(is_below(engine[1], drivers[0]));
        use("", engine[1], drivers[1]);
        assert_string_equal(engine[1], cache); /* as clients' own processes of this host have it */
        assert_string_not_equal(drivers[0], drivers[1]);
}

int main(void)
{
        if (!mkdtemp(base))
                return 1;
        snprintf(cache, sizeof(cache), "%s/cache", base);
        snprintf(scratch, sizeof(scratch), "%s/scratch", base);
        if (mkdir(scratch, 0700) < 0)
                return 1;
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(
                        no_folder_that_the_server_opens_is_in_one_that_a_session_may_change),
                cmocka_unit_test(only_a_client_with_a_key_has_a_store_of_uploads),
                cmocka_unit_test(clients_have_folders_of_their_own),
        };
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        char command[128];
        snprintf(command, sizeof(command), "rm -rf '%s'", base);
        return system(command) ? 1 : r;
}
