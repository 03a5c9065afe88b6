/* What a worker can't do: each claim in a process of its own, shut in as a worker is. */
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/sandbox.h"

static char folder[] = "/tmp/spancl-test-sandbox.XXXXXX";
static char scratch[64], cache[64], secret[64];

static bool has_landlock(void)
{
        return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
}

/* Run it in a sandbox with these options: its exit status; 100: the sandbox could not be entered. */
static int within(int (*claim)(void), char *const *more)
{
        char *argv[8] = { (char[]){ "spancld" } };
        int argc = 1;
        for (; more && more[argc - 1]; argc++)
                argv[argc] = more[argc - 1];
        pid_t pid = fork();
        if (!pid) {
                struct config_options o;
                char *error = NULL;
                if (config_options_parse(argc, argv, &o, &error) < 0 ||
                    !sandbox_user(&o, scratch) || !sandbox_enter(&o, scratch, cache))
                        _exit(100);
                _exit(claim());
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool can_open(const char *path, int flags)
{
        int fd = open(path, flags | O_CLOEXEC, 0600);
        if (fd >= 0)
                close(fd);
        return fd >= 0;
}

static int is_mitigated(void)
{
        char line[128];
        bool is = false;
        FILE *f = fopen("/proc/self/status", "r");
        while (f && fgets(line, sizeof(line), f))
                is |= !strncmp(line, "Speculation", 11) && strstr(line, "mitigated");
        if (f)
                fclose(f);
        return is;
}

static void the_processor_is_not_held_back(void **state)
{
        (void)state;
        assert_int_equal(within(is_mitigated, NULL), is_mitigated());
}

static int reads_the_secret(void)
{
        return can_open(secret, O_RDONLY);
}

static void other_files_of_the_user_cannot_be_read(void **state)
{
        (void)state;
        assert_int_equal(within(reads_the_secret, NULL), has_landlock() ? 0 : 1);
        assert_int_equal(within(reads_the_secret, (char *[]){ (char[]){ "--sandbox=0" }, NULL }),
                         1);
        char option[128];
        snprintf(option, sizeof(option), "--sandbox-read=/nowhere:%s", folder);
        assert_int_equal(within(reads_the_secret, (char *[]){ option, NULL }), 1);
}

static int uses_its_own(void)
{
        char path[128];
        snprintf(path, sizeof(path), "%s/file", scratch);
        bool ok = can_open(path, O_RDWR | O_CREAT) && !unlink(path);
        snprintf(path, sizeof(path), "%s/file", cache);
        ok = ok && can_open(path, O_RDWR | O_CREAT) && !unlink(path);
        ok = ok && can_open("/etc/hosts", O_RDONLY) && can_open("/dev/null", O_RDWR) &&
             can_open("/proc/self/maps", O_RDONLY);
        ok = ok && !strcmp(getenv("TMPDIR"), scratch);
        return ok && system("cat /proc/cpuinfo >/dev/null && ls /usr/lib >/dev/null") == 0;
}

static void what_drivers_need_is_there(void **state)
{
        (void)state;
        assert_int_equal(within(uses_its_own, NULL), 1);
}

static int writes_elsewhere(void)
{
        bool shared = access("/dev/kfd", F_OK) && access("/dev/nvidiactl", F_OK) &&
                      can_open("/dev/shm/spancl-test", O_RDWR | O_CREAT);
        return shared || can_open("/usr/spancl-test", O_RDWR | O_CREAT) ||
               can_open("/tmp/spancl-test", O_RDWR | O_CREAT) || can_open("/etc/hosts", O_RDWR);
}

static void nothing_else_can_be_written(void **state)
{
        (void)state;
        if (has_landlock())
                assert_int_equal(within(writes_elsewhere, NULL), 0);
}

static int touches_others(void)
{
        return ptrace(PTRACE_ATTACH, getppid(), NULL, NULL) == 0 || can_open("/proc/1/mem", O_RDWR);
}

static void other_processes_cannot_be_looked_into(void **state)
{
        (void)state;
        assert_int_equal(within(touches_others, NULL), 0);
}

static int administers(void)
{
        errno = 0;
        int bad = mount("none", scratch, "tmpfs", 0, NULL) == 0 || errno != EPERM;
        bad |= syscall(SYS_bpf, 0, NULL, 0) == 0 || errno != EPERM;
        bad |= unshare(CLONE_NEWNS) == 0;
        bad |= setuid(0) == 0 && geteuid() == 0 && chown("/etc/hosts", 1, 1) == 0;
        return bad;
}

static void the_host_cannot_be_administered(void **state)
{
        (void)state;
        assert_int_equal(within(administers, NULL), 0);
}

static bool makes_socket(int family)
{
        int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd >= 0)
                close(fd);
        return fd >= 0;
}

static int reaches_services(void)
{
        int pair[2];
        bool bad = makes_socket(AF_UNIX) || makes_socket(AF_ALG) || makes_socket(AF_VSOCK);
        bool good = makes_socket(AF_INET) && makes_socket(AF_NETLINK) &&
                    socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0;
        return bad || !good;
}

static int makes_unix_sockets(void)
{
        return makes_socket(AF_UNIX);
}

static void services_of_the_host_cannot_be_reached(void **state)
{
        (void)state;
        assert_int_equal(within(reaches_services, NULL), 0);
        /* Then peers may be behind one. */
        char *const sockets[] = { (char[]){ "--socket=/nowhere" }, NULL };
        assert_int_equal(within(makes_unix_sockets, sockets), 1);
}

static int is_nobody(void)
{
        struct stat st;
        const struct passwd *nobody = getpwnam("nobody");
        return nobody && geteuid() == nobody->pw_uid && getuid() == nobody->pw_uid &&
               getegid() == nobody->pw_gid && !stat(scratch, &st) && st.st_uid == nobody->pw_uid &&
               setuid(0) < 0;
}

static void root_becomes_the_user_named(void **state)
{
        (void)state;
        assert_int_equal(within(is_nobody, (char *[]){ (char[]){ "--user=no such user" }, NULL }),
                         100);
        if (geteuid() || !getpwnam("nobody"))
                return;
        assert_int_equal(chmod(folder, 0755), 0);
        assert_int_equal(within(is_nobody, (char *[]){ (char[]){ "--user=nobody" }, NULL }), 1);
        assert_int_equal(chmod(folder, 0700), 0);
        assert_int_equal(chown(scratch, 0, 0), 0);
}

static int is_limited(void)
{
        struct rlimit core, data;
        return !getrlimit(RLIMIT_CORE, &core) && !core.rlim_max && !getrlimit(RLIMIT_DATA, &data) &&
               data.rlim_max == 4096ull << 20;
}

static void memory_has_the_limit_given(void **state)
{
        (void)state;
#ifdef __SANITIZE_THREAD__
        skip(); /* it needs more memory than any limit */
#endif
        assert_int_equal(
                within(is_limited, (char *[]){ (char[]){ "--session-memory=4096" }, NULL }), 1);
}

int main(void)
{
        if (!mkdtemp(folder))
                return 1;
        snprintf(scratch, sizeof(scratch), "%s/scratch", folder);
        snprintf(cache, sizeof(cache), "%s/cache", folder);
        snprintf(secret, sizeof(secret), "%s/secret", folder);
        if (mkdir(scratch, 0700) < 0 || !can_open(secret, O_RDWR | O_CREAT))
                return 1;
        setenv("XDG_CACHE_HOME", folder, 1);
        unsetenv("LD_LIBRARY_PATH");
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_processor_is_not_held_back),
                cmocka_unit_test(other_files_of_the_user_cannot_be_read),
                cmocka_unit_test(what_drivers_need_is_there),
                cmocka_unit_test(nothing_else_can_be_written),
                cmocka_unit_test(other_processes_cannot_be_looked_into),
                cmocka_unit_test(the_host_cannot_be_administered),
                cmocka_unit_test(services_of_the_host_cannot_be_reached),
                cmocka_unit_test(root_becomes_the_user_named),
                cmocka_unit_test(memory_has_the_limit_given),
        };
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        char command[128];
        snprintf(command, sizeof(command), "rm -rf '%s'", folder);
        return system(command) ? 1 : r;
}
