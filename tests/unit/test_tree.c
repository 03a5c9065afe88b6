/* Folders that a hostile session has written to are removed and trimmed, and nothing outside them is touched. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/system/tree.h"

static char base[] = "/tmp/spancl-test-tree.XXXXXX";

static const char *at(const char *name)
{
        static char paths[4][512];
        static unsigned n;
        char *p = paths[n++ % 4];
        snprintf(p, sizeof(paths[0]), "%s/%s", base, name);
        return p;
}

static bool there(const char *name)
{
        struct stat st;
        return lstat(at(name), &st) == 0;
}

/* A file of so many KiB, written so long ago. */
static void file(const char *name, size_t kib, time_t age_s)
{
        static char block[1024] = "x";
        int fd = open(at(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        assert_true(fd >= 0);
        for (size_t i = 0; i < kib; i++)
                assert_int_equal(write(fd, block, sizeof(block)), sizeof(block));
        const struct timespec when[2] = { { .tv_sec = time(NULL) - age_s },
                                          { .tv_sec = time(NULL) - age_s } };
        assert_int_equal(futimens(fd, when), 0);
        close(fd);
}

static void folder(const char *name)
{
        assert_int_equal(mkdir(at(name), 0700), 0);
}

static void the_last_write_is_kept(void **state)
{
        (void)state;
        folder("cache");
        folder("cache/a");
        file("cache/old", 64, 300);
        file("cache/a/older", 64, 400);
        file("cache/a/new", 64, 100);
        assert_true(tree_trim(at("cache"), 1 << 20, 0) == 0);
        assert_true(there("cache/a/older"));
        assert_true(tree_trim(at("cache"), 150 << 10, 0) >= 64 << 10);
        assert_false(there("cache/a/older"));
        assert_true(there("cache/old") && there("cache/a/new"));
        file("cache/to-come", 64, -100000);
        file("cache/now", 64, 0);
        (void)tree_trim(at("cache"), 0, 60);
        assert_true(there("cache/now"));
        assert_false(there("cache/to-come") || there("cache/old") || there("cache/a/new"));
        (void)tree_trim(at("cache"), 0, 0);
        assert_false(there("cache/now"));
        assert_true(there("cache/a")); /* a session's sandbox names it */
        tree_remove(at("cache"));
        assert_false(there("cache"));
}

static void links_are_not_followed(void **state)
{
        (void)state;
        folder("outside");
        file("outside/precious", 64, 1000);
        folder("cache");
        assert_int_equal(symlink(at("outside"), at("cache/folder")), 0);
        assert_int_equal(symlink(at("outside/precious"), at("cache/file")), 0);
        assert_int_equal(symlink(at("outside"), at("instead")), 0);
        (void)tree_trim(at("cache"), 0, 0);
        assert_false(there("cache/folder") || there("cache/file"));
        assert_int_equal(symlink(at("outside"), at("cache/folder")), 0);
        tree_remove(at("cache"));
        assert_false(there("cache"));
        (void)tree_trim(at("instead"), 0, 0);
        tree_remove(at("instead"));
        assert_true(there("instead") && there("outside/precious"));
        assert_int_equal(unlink(at("instead")), 0);
        tree_remove(at("outside"));
}

/* Puts a link into the place of a folder and back, all the time. */
static void swap_for_ever(void)
{
        for (;;) {
                (void)mkdir(at("cache/x"), 0700);
                (void)rename(at("cache/x"), at("cache/y"));
                (void)!symlink(at("outside"), at("cache/x"));
                (void)unlink(at("cache/x"));
                (void)rename(at("cache/y"), at("cache/x"));
        }
}

static void links_that_come_meanwhile_are_not_followed(void **state)
{
        (void)state;
        folder("outside");
        file("outside/precious", 4, 1000);
        folder("cache");
        pid_t pid = fork();
        if (!pid)
                swap_for_ever();
        for (int i = 0; i < 3000; i++)
                (void)tree_trim(at("cache"), 0, 0);
        for (int i = 0; i < 300; i++)
                tree_remove(at(i % 2 ? "cache/x" : "cache/y"));
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, NULL, 0), pid);
        assert_true(there("outside/precious"));
        tree_remove(at("cache"));
        tree_remove(at("outside"));
        assert_false(there("cache") || there("outside"));
}

static void folders_may_be_deep_and_closed(void **state)
{
        (void)state;
        folder("deep");
        pid_t pid = fork();
        if (!pid) {
                bool ok = chdir(at("deep")) == 0;
                for (int i = 0; i < 3000 && ok; i++)
                        ok = mkdir("folder-with-a-name", 0700) == 0 &&
                             chdir("folder-with-a-name") == 0;
                close(open("file", O_WRONLY | O_CREAT, 0));
                _exit(!ok || chmod(".", 0));
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        assert_int_equal(chmod(at("deep"), 0500), 0);
        tree_remove(at("deep"));
        assert_false(there("deep"));
}

/* The same without root's powers, which need no mode. */
static void folders_may_be_closed_to_an_ordinary_user(void **state)
{
        (void)state;
        if (geteuid()) {
                folders_may_be_deep_and_closed(state);
                return;
        }
        pid_t pid = fork();
        assert_int_equal(chmod(base, 0777), 0);
        if (!pid) {
                if (setgid(65534) < 0 || setuid(65534) < 0)
                        _exit(1);
                folder("own");
                folder("own/closed");
                file("own/closed/file", 1, 0);
                chmod(at("own/closed"), 0);
                chmod(at("own"), 0100);
                tree_remove(at("own"));
                _exit(there("own"));
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
}

static void the_size_of_files_is_measured(void **state)
{
        (void)state;
        folder("size");
        folder("size/a");
        file("size/b", 64, 0);
        file("size/a/c", 64, 0);
        uint64_t all = tree_measure(at("size"), 1 << 20, 4096);
        assert_true(all >= 128 << 10 && all < 192 << 10);
        assert_int_equal(link(at("size/b"), at("size/a/b")), 0); /* the same file */
        assert_true(tree_measure(at("size"), 1 << 20, 4096) == all);
        assert_int_equal(symlink("/usr", at("size/usr")), 0); /* is not followed */
        assert_true(tree_measure(at("size"), 1 << 20, 4096) <= all + 4096);
        assert_true(tree_measure(at("size"), 1 << 20, 100 << 10) >= 500 << 10);
        assert_true(tree_measure(at("size"), 100 << 10, 0) == UINT64_MAX);
        assert_true(tree_measure(at("nothing"), 1 << 20, 0) == 0);
        tree_remove(at("size"));
        /* Too deep to be seen to its end. */
        char path[4 * TREE_DEPTH_MEASURED] = "deep";
        folder("deep");
        for (int i = 0; i <= TREE_DEPTH_MEASURED; i++) {
                strcat(path, "/d");
                folder(path);
        }
        assert_true(tree_measure(at("deep"), 1 << 30, 0) == UINT64_MAX);
        tree_remove(at("deep"));
}

int main(void)
{
        if (!mkdtemp(base))
                return 1;
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_last_write_is_kept),
                cmocka_unit_test(the_size_of_files_is_measured),
                cmocka_unit_test(links_are_not_followed),
                cmocka_unit_test(links_that_come_meanwhile_are_not_followed),
                cmocka_unit_test(folders_may_be_deep_and_closed),
                cmocka_unit_test(folders_may_be_closed_to_an_ordinary_user),
        };
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        tree_remove(base);
        return r;
}
