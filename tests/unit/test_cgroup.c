/* Control groups: the real ones, where this process may make some. A "spancld" is a process of
 * the test in a group of the test's own. */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sandbox/cgroup.h"

enum { WAIT_MS = 60000, SKIPPED = 77 }; /* a watchdog */

static char home[PATH_MAX]; /* the test's own group; "": there is none */

static bool write_to(const char *group, const char *file, const char *text)
{
        char path[PATH_MAX + 64];
        snprintf(path, sizeof(path), "%s/%s", group, file);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
        if (fd >= 0)
                close(fd);
        return ok;
}

static void make_home(void)
{
        char line[3 * PATH_MAX], where[PATH_MAX] = "", own[PATH_MAX] = "";
        FILE *f = fopen("/proc/self/mounts", "re");
        while (f && fgets(line, sizeof(line), f))
                if (strstr(line, " cgroup2 "))
                        sscanf(line, "%*s %4000s", where);
        if (f)
                fclose(f);
        f = fopen("/proc/self/cgroup", "re");
        while (f && fgets(line, sizeof(line), f))
                if (!strncmp(line, "0::/", 4))
                        sscanf(line + 3, "%4000s", own);
        if (f)
                fclose(f);
        snprintf(line, sizeof(line), "%s%s/spancl-test.%d", where, strcmp(own, "/") ? own : "",
                 (int)getpid());
        if (*where && *own && mkdir(line, 0755) == 0)
                snprintf(home, sizeof(home), "%.4000s", line);
}

/* A group that hands controllers on takes no process: no spancld can be started beside another then. */
static void open_home(void)
{
        static const char *const controllers[] = { "-io", "-cpu", "-pids", "-memory" };
        char pattern[PATH_MAX + 16];
        glob_t found;
        snprintf(pattern, sizeof(pattern), "%s/spancld.*", home);
        if (glob(pattern, 0, NULL, &found) != 0)
                return;
        for (size_t i = 0; i < found.gl_pathc; i++)
                for (size_t k = 0; k < array_size(controllers); k++)
                        (void)write_to(found.gl_pathv[i], "cgroup.subtree_control", controllers[k]);
        for (size_t k = 0; k < array_size(controllers); k++)
                (void)write_to(home, "cgroup.subtree_control", controllers[k]);
        globfree(&found);
}

/* Run it as the only process of the group `home`. Its exit status. */
static int within(int (*part)(struct cgroups *c), const char *memory, const char *processes)
{
        open_home();
        pid_t pid = fork();
        if (!pid) {
                struct config_options o;
                struct cgroups c;
                char *error = NULL, m[64], p[64];
                snprintf(m, sizeof(m), "--session-memory=%s", memory);
                snprintf(p, sizeof(p), "--session-processes=%s", processes);
                char *argv[] = { (char[]){ "spancld" }, m, p };
                if (!write_to(home, "cgroup.procs", "0") ||
                    config_options_parse(3, argv, &o, &error) < 0)
                        _exit(100);
                prctl(PR_SET_CHILD_SUBREAPER, 1);
                cgroups_init(&c, &o);
                if (c.base < 0)
                        _exit(101);
                int r = part(&c);
                cgroups_fini(&c);
                _exit(r);
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static unsigned folders(void)
{
        struct stat st;
        return stat(home, &st) == 0 ? (unsigned)st.st_nlink - 2 : 0;
}

/* A child that does this once it is in the group. */
static pid_t start(struct cgroups *c, unsigned number, void (*what)(void))
{
        int gate[2];
        char byte;
        if (pipe(gate) < 0)
                _exit(102);
        pid_t pid = fork();
        if (!pid) {
                close(gate[1]);
                if (read(gate[0], &byte, 1) != 1)
                        _exit(103);
                what();
                for (;;)
                        pause();
        }
        close(gate[0]);
        if (cgroup_add(c, number, pid) < 0 || write(gate[1], "x", 1) != 1)
                _exit(104);
        close(gate[1]);
        return pid;
}

static int tell[2]; /* what processes write to as long as they live */

/* 200 processes, each with another session id and half of them without a parent. */
static void leave_many(void)
{
        close(tell[0]);
        for (int i = 0; i < 200; i++) {
                if (fork())
                        continue;
                if (i % 2 && fork())
                        _exit(0);
                setsid();
                signal(SIGTERM, SIG_IGN);
                (void)!write(tell[1], "x", 1);
                for (;;)
                        pause();
        }
}

/* Nobody holds the pipe's end any more. */
static bool all_gone(void)
{
        char bytes[256];
        alarm(WAIT_MS / 1000);
        while (read(tell[0], bytes, sizeof(bytes)) > 0)
                ;
        alarm(0);
        return true;
}

static void expect(int count)
{
        char byte;
        while (count && read(tell[0], &byte, 1) == 1)
                count--;
}

static void reap(struct cgroups *c)
{
        for (int i = 0; i < WAIT_MS && c->ended.size; i++) {
                while (waitpid(-1, NULL, WNOHANG) > 0)
                        ;
                cgroups_reap(c);
                usleep(1000);
        }
}

static int ends_them(struct cgroups *c)
{
        unsigned one, other;
        if (cgroup_make(c, &one) < 0 || cgroup_make(c, &other) < 0 || !one || one == other ||
            pipe(tell) < 0)
                return 1;
        (void)start(c, one, leave_many);
        close(tell[1]);
        expect(200);
        cgroup_end(c, one);
        if (!all_gone())
                return 2;
        reap(c);
        cgroup_end(c, other);
        return c->ended.size ? 3 : 0;
}

static void everything_in_a_group_is_ended(void **state)
{
        (void)state;
        if (!*home)
                skip();
        assert_int_equal(within(ends_them, "0", "0"), 0);
        assert_int_equal(folders(), 0);
}

static void stay(void)
{
}

static int dies(struct cgroups *c)
{
        unsigned n;
        if (cgroup_make(c, &n) < 0)
                return 1;
        close(tell[0]);
        (void)start(c, n, stay);
        (void)!write(tell[1], "x", 1);
        close(tell[1]);
        kill(getpid(), SIGKILL);
        return 2;
}

static int looks(struct cgroups *c)
{
        (void)c;
        return 0;
}

static void the_next_spancld_ends_the_processes_of_a_dead_one_and_no_others(void **state)
{
        (void)state;
        char foreign[PATH_MAX + 64];
        if (!*home)
                skip();
        /* A group of somebody else, with a process in it. */
        snprintf(foreign, sizeof(foreign), "%s/spanclx", home);
        assert_int_equal(mkdir(foreign, 0755), 0);
        pid_t other = fork();
        if (!other)
                for (;;)
                        pause();
        char text[16];
        snprintf(text, sizeof(text), "%d", (int)other);
        assert_true(write_to(foreign, "cgroup.procs", text));
        assert_int_equal(pipe(tell), 0);
        assert_int_equal(within(dies, "0", "0"), -SIGKILL);
        close(tell[1]);
        expect(1);
        assert_int_equal(folders(), 2);
        assert_int_equal(within(looks, "0", "0"), 0);
        assert_true(all_gone());
        close(tell[0]);
        assert_int_equal(folders(), 1);
        assert_int_equal(waitpid(other, NULL, WNOHANG), 0);
        kill(other, SIGKILL);
        assert_int_equal(waitpid(other, NULL, 0), other);
        assert_int_equal(rmdir(foreign), 0);
}

static int meets_another(struct cgroups *c)
{
        unsigned n;
        if (cgroup_make(c, &n) < 0)
                return 1;
        pid_t pid = start(c, n, stay);
        if (within(looks, "0", "0"))
                return 2;
        if (waitpid(pid, NULL, WNOHANG) != 0)
                return 3;
        cgroup_end(c, n);
        reap(c);
        return c->ended.size ? 4 : 0;
}

static void a_living_spancld_keeps_its_groups(void **state)
{
        (void)state;
        if (!*home)
                skip();
        assert_int_equal(within(meets_another, "0", "0"), 0);
        assert_int_equal(folders(), 0);
}

/* It has another number here than its folder has. */
static void a_spancld_in_another_pid_namespace_keeps_its_groups(void **state)
{
        int ready[2], status;
        char byte;
        (void)state;
        if (!*home)
                skip();
        open_home();
        assert_int_equal(pipe(ready), 0);
        pid_t between = fork();
        if (!between) {
                struct config_options o;
                struct cgroups c;
                char *error = NULL, *argv[] = { (char[]){ "spancld" } };
                close(ready[0]);
                if (!write_to(home, "cgroup.procs", "0") || unshare(CLONE_NEWPID) < 0)
                        _exit(SKIPPED);
                pid_t inner = fork();
                if (!inner) {
                        prctl(PR_SET_PDEATHSIG, SIGKILL);
                        if (config_options_parse(1, argv, &o, &error) < 0)
                                _exit(1);
                        cgroups_init(&c, &o);
                        (void)!write(ready[1], "x", 1);
                        for (;;)
                                pause();
                }
                close(ready[1]);
                waitpid(inner, NULL, 0);
                _exit(1);
        }
        close(ready[1]);
        bool began = read(ready[0], &byte, 1) == 1;
        close(ready[0]);
        if (began)
                assert_int_equal(within(looks, "0", "0"), 0);
        pid_t ended = waitpid(between, &status, WNOHANG);
        if (!ended)
                kill(between, SIGKILL);
        if (!ended)
                waitpid(between, NULL, 0);
        if (!began)
                skip();
        assert_int_equal(ended, 0);
        assert_int_equal(within(looks, "0", "0"), 0); /* it removes the folder */
}

static void take_files_in_memory(void)
{
        int fd = memfd_create("test", MFD_CLOEXEC);
        (void)!fallocate(fd, 0, 0, 1 << 30);
        _exit(1);
}

static int limits_memory(struct cgroups *c)
{
        unsigned one, other;
        int status;
        if (!c->memory)
                return SKIPPED;
        if (cgroup_make(c, &one) < 0 || cgroup_make(c, &other) < 0)
                return 1;
        pid_t honest = start(c, other, stay), greedy = start(c, one, take_files_in_memory);
        if (waitpid(greedy, &status, 0) != greedy || !WIFSIGNALED(status) ||
            WTERMSIG(status) != SIGKILL)
                return 2;
        if (cgroup_end_of(c, one) != CGROUP_OVER_LIMIT || cgroup_end_of(c, other) != CGROUP_ALIVE ||
            waitpid(honest, NULL, WNOHANG) != 0)
                return 3;
        cgroup_end(c, one);
        cgroup_end(c, other);
        reap(c);
        return 0;
}

static void files_in_memory_count(void **state)
{
        (void)state;
        int r = *home ? within(limits_memory, "64", "0") : SKIPPED;
        if (r == SKIPPED)
                skip(); /* no memory controller */
        assert_int_equal(r, 0);
}

static void fork_for_ever(void)
{
        close(tell[0]);
        for (int i = 0; i < 5000; i++) {
                pid_t pid = fork();
                if (pid < 0)
                        break;
                if (!pid)
                        for (;;)
                                pause();
                (void)!write(tell[1], "x", 1);
        }
        close(tell[1]);
        for (;;)
                pause();
}

static int limits_processes(struct cgroups *c)
{
        unsigned one;
        int count = 0;
        char byte;
        if (!c->pids)
                return SKIPPED;
        if (cgroup_make(c, &one) < 0 || pipe(tell) < 0)
                return 1;
        (void)start(c, one, fork_for_ever);
        close(tell[1]);
        fcntl(tell[0], F_SETFL, O_NONBLOCK);
        for (int i = 0; i < 2000; i++) {
                while (read(tell[0], &byte, 1) == 1)
                        count++;
                usleep(1000);
        }
        cgroup_end(c, one);
        reap(c);
        return count > 0 && (uint64_t)count < c->process_count ? 0 : 2;
}

static void processes_have_a_limit(void **state)
{
        (void)state;
        int r = *home ? within(limits_processes, "0", "16") : SKIPPED;
        if (r == SKIPPED)
                skip(); /* no pids controller */
        assert_int_equal(r, 0);
}

/* One of many that begin at the same time: each looks for what dead ones have left. */
static int has_its_groups(struct cgroups *c)
{
        int bad = 0;
        for (int i = 0; i < 40 && !bad; i++) {
                unsigned number = 0;
                bad = cgroup_make(c, &number) < 0;
                usleep(1000);
                pid_t pid = fork();
                if (!pid)
                        for (;;)
                                pause();
                bad |= pid < 0 || cgroup_add(c, number, pid) < 0;
                kill(pid, SIGKILL);
                waitpid(pid, NULL, 0);
                cgroup_end(c, number);
        }
        return bad;
}

static void spanclds_that_begin_together_keep_their_groups(void **state)
{
        enum { ALL = 16, ROUNDS = 8 };
        char path[PATH_MAX + 32];
        (void)state;
        snprintf(path, sizeof(path), "%s/cgroup.controllers", home);
        FILE *f = *home ? fopen(path, "re") : NULL;
        bool together = f && fgetc(f) == EOF; /* open_home() */
        if (f)
                fclose(f);
        if (!together)
                skip();
        for (int round = 0; round < ROUNDS; round++) {
                pid_t all[ALL];
                int bad = 0;
                open_home();
                for (int i = 0; i < ALL; i++) {
                        all[i] = fork();
                        if (!all[i])
                                _exit(within(has_its_groups, "0", "0"));
                }
                for (int i = 0; i < ALL; i++) {
                        int status = -1;
                        waitpid(all[i], &status, 0);
                        bad += status != 0;
                }
                assert_int_equal(bad, 0);
        }
}

int main(void)
{
        make_home();
        if (!*home)
                print_message("no control group can be made here: skipped\n");
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(everything_in_a_group_is_ended),
                cmocka_unit_test(the_next_spancld_ends_the_processes_of_a_dead_one_and_no_others),
                cmocka_unit_test(a_living_spancld_keeps_its_groups),
                cmocka_unit_test(spanclds_that_begin_together_keep_their_groups),
                cmocka_unit_test(a_spancld_in_another_pid_namespace_keeps_its_groups),
                cmocka_unit_test(files_in_memory_count),
                cmocka_unit_test(processes_have_a_limit),
        };
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        if (*home)
                (void)rmdir(home);
        return r;
}
