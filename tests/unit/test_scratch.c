/* The folder of a worker, and what a session may have left in it. */
#include "support/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/system/scratch.h"
#include "daemon/system/tree.h"

static char base[] = "/tmp/spancl-test-scratch.XXXXXX";

/* A folder, not held by anybody, and a descriptor of it. */
static int make(char path[SCRATCH_PATH_MAX])
{
        int lock;
        assert_int_equal(scratch_make(path, &lock), 0);
        close(lock);
        int fd = open(path, O_RDONLY | O_DIRECTORY);
        assert_true(fd >= 0);
        return fd;
}

static void touch(int folder, const char *name)
{
        int fd = openat(folder, name, O_WRONLY | O_CREAT, 0600);
        assert_true(fd >= 0);
        close(fd);
}

static bool is_there(const char *path)
{
        return access(path, F_OK) == 0;
}

TEST(all_that_a_session_can_nest_is_removed)
{
        char path[SCRATCH_PATH_MAX];
        int top = make(path), at = dup(top);
        struct rlimit before, few = { 32, 32 };
        char name[251] = "";
        memset(name, 'd', sizeof(name) - 1);
        for (int i = 0; i < 60; i++) { /* deeper than paths, and descriptors, go */
                assert_int_equal(mkdirat(at, name, 0700), 0);
                touch(at, "file");
                assert_int_equal(mkdirat(at, "~1", 0700), 0); /* names that the removal uses */
                touch(at, "~2");
                int next = openat(at, name, O_RDONLY | O_DIRECTORY);
                close(at);
                at = next;
        }
        close(at);
        assert_int_equal(mkdirat(top, "closed", 0700), 0);
        at = openat(top, "closed", O_RDONLY | O_DIRECTORY);
        touch(at, "inside");
        close(at);
        assert_int_equal(fchmodat(top, "closed", 0, 0), 0);
        assert_int_equal(fchmod(top, 0), 0);
        close(top);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        few.rlim_max = before.rlim_max;
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
        assert_int_equal(chmod(path, 0700), 0);
        tree_remove(path);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_false(is_there(path));
}

TEST(without_descriptors_nothing_is_made)
{
        char path[SCRATCH_PATH_MAX];
        int lock, next = dup(STDERR_FILENO);
        struct rlimit before, none;
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
        none = (struct rlimit){ (rlim_t)next, before.rlim_max };
        close(next);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
        for (int i = 0; i < 3; i++)
                assert_int_equal(scratch_make(path, &lock), SP_E_LIMIT);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
        assert_int_equal(rmdir(base), 0); /* it is empty */
        assert_int_equal(mkdir(base, 0700), 0);
}

TEST(links_out_of_it_are_not_followed)
{
        char path[SCRATCH_PATH_MAX], outside[128], file[160];
        int top = make(path);
        snprintf(outside, sizeof(outside), "%s/outside", base);
        snprintf(file, sizeof(file), "%s/precious", outside);
        assert_int_equal(mkdir(outside, 0700), 0);
        assert_int_equal(close(open(file, O_WRONLY | O_CREAT, 0600)), 0);
        assert_int_equal(symlinkat(outside, top, "link"), 0);
        assert_int_equal(mkdirat(top, "folder", 0700), 0);
        close(top);
        tree_remove(path);
        assert_false(is_there(path));
        assert_true(is_there(file));
        /* The folder itself, too, may be a link by then. */
        assert_int_equal(symlink(outside, path), 0);
        tree_remove(path);
        assert_true(is_there(file));
        assert_int_equal(unlink(path), 0);
}

/* A process of the session that is still there swaps a folder and a link, again and again. */
TEST(links_that_come_while_it_is_removed_are_not_followed)
{
        char outside[128], file[160];
        snprintf(outside, sizeof(outside), "%s/swapped", base);
        snprintf(file, sizeof(file), "%s/precious", outside);
        assert_int_equal(mkdir(outside, 0700), 0);
        assert_int_equal(close(open(file, O_WRONLY | O_CREAT, 0600)), 0);
        for (int i = 0; i < 5; i++) {
                char path[SCRATCH_PATH_MAX];
                int top = make(path);
                for (int k = 0; k < 50; k++) {
                        char name[16];
                        snprintf(name, sizeof(name), "%d", k);
                        assert_int_equal(mkdirat(top, name, 0700), 0);
                        int at = openat(top, name, O_RDONLY | O_DIRECTORY);
                        touch(at, "precious");
                        close(at);
                }
                pid_t pid = fork();
                if (!pid) {
                        for (;;)
                                for (int k = 0; k < 50; k++) {
                                        char name[16], other[24];
                                        snprintf(name, sizeof(name), "%d", k);
                                        snprintf(other, sizeof(other), "../x%d", k);
                                        (void)!renameat(top, name, top, other);
                                        (void)!symlinkat(outside, top, name);
                                        (void)!unlinkat(top, name, 0);
                                        (void)!renameat(top, other, top, name);
                                }
                }
                close(top);
                tree_remove(path);
                assert_true(is_there(file));
                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
                tree_remove(path);
        }
}

TEST(files_nobody_holds_are_removed)
{
        char left[SCRATCH_PATH_MAX], held[SCRATCH_PATH_MAX];
        int lock;
        close(make(left));
        assert_int_equal(scratch_make(held, &lock), 0);
        scratch_sweep();
        assert_false(is_there(left));
        assert_true(is_there(held));
        close(lock);
        tree_remove(held);
}

int main(void)
{
        if (!mkdtemp(base))
                return 1;
        setenv("TMPDIR", base, 1);
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(all_that_a_session_can_nest_is_removed),
                cmocka_unit_test(without_descriptors_nothing_is_made),
                cmocka_unit_test(links_out_of_it_are_not_followed),
                cmocka_unit_test(links_that_come_while_it_is_removed_are_not_followed),
                cmocka_unit_test(files_nobody_holds_are_removed),
        };
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        tree_remove(base);
        return r;
}
