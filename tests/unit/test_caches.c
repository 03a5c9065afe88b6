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
static char cache[64], scratch[64];

static bool is_below(const char *path, const char *folder)
{
        size_t n = strlen(folder);
        return !strncmp(path, folder, n) && (!path[n] || path[n] == '/');
}

static void use(const char *owner, char engine[PATH_MAX], char drivers[PATH_MAX])
{
        char option[96], *error = NULL;
        struct config_options o;
        snprintf(option, sizeof(option), "--cache=%s", cache);
        char *argv[] = { (char[]){ "spancld" }, option };
        assert_int_equal(config_options_parse(2, argv, &o, &error), 0);
        caches_use(&o, owner, scratch, engine);
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
                cmocka_unit_test(clients_have_folders_of_their_own),
        };
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        char command[128];
        snprintf(command, sizeof(command), "rm -rf '%s'", base);
        return system(command) ? 1 : r;
}
