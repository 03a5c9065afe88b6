/* The system calls that a worker can make: each claim in a process of its own, behind the filter. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sandbox/call_table.h"
#include "sandbox/calls.h"

static char folder[] = "/tmp/spancl-test-calls.XXXXXX";
static char own_file[64];

static const struct calls_params strict = { .allowed = "" };

/* Make the claim in a process with this filter: its exit status; 100: there is no filter. */
static int within(int (*claim)(void), const struct calls_params *p)
{
        pid_t pid = fork();
        if (!pid) {
                if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || !calls_restrict(p, NULL))
                        _exit(100);
                _exit(claim());
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

enum { NUMBERS = 1024 }; /* more than there are calls */

/* The error that the filter returns for a call whose arguments do not matter; -1: it lets it through, or it depends. */
static int expected_error(unsigned number)
{
        for (size_t i = 0; i < array_size(calls); i++) {
                if (calls[i].number != number)
                        continue;
                enum rule rule = calls[i].rule;
                bool refused = rule == REFUSE || rule == EXPECTED || rule == FILES ||
                               rule == NETWORK || rule == CONNECT;
                return refused ? EPERM : rule == ABSENT ? ENOSYS : -1;
        }
        return ENOSYS;
}

static int makes_what_is_not_allowed(void)
{
        int bad = 0;
        for (unsigned i = 0; i < NUMBERS; i++) {
                int expected = expected_error(i);
                if (expected < 0)
                        continue;
                if (syscall(i, -1l, -1l, -1l, -1l, -1l, -1l) >= 0 || errno != expected) {
                        fprintf(stderr, "system call %u: %s\n", i, strerror(errno));
                        bad++;
                }
        }
        return bad > 99 ? 99 : bad;
}

static void entries_not_in_the_table_are_refused(void **state)
{
        (void)state;
        assert_int_equal(within(makes_what_is_not_allowed, &strict), 0);
}

static bool is_refused(long result)
{
        return result == -1 && errno == EPERM;
}

#define TRY(WHAT)                                               \
        do {                                                    \
                if (!(WHAT)) {                                  \
                        fprintf(stderr, "not so: %s\n", #WHAT); \
                        return 1;                               \
                }                                               \
        } while (0)

static int names_others(void)
{
        struct rlimit limit;
        cpu_set_t cpus;
        struct sched_param param = { 0 };
        pid_t other = getppid(), own = getpid();
        CPU_ZERO(&cpus);
        TRY(is_refused(prlimit(other, RLIMIT_NOFILE, NULL, &limit)));
        TRY(prlimit(0, RLIMIT_NOFILE, NULL, &limit) == 0);
        TRY(prlimit(own, RLIMIT_NOFILE, NULL, &limit) == 0);
        TRY(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
        TRY(is_refused(sched_setaffinity(other, sizeof(cpus), &cpus)));
        TRY(sched_setaffinity(0, sizeof(cpus), &cpus) == 0);
        TRY(is_refused(sched_setscheduler(other, SCHED_OTHER, &param)));
        TRY(sched_setscheduler(0, SCHED_OTHER, &param) == 0);
        TRY(is_refused(setpriority(PRIO_PROCESS, (id_t)other, 1)));
        TRY(is_refused(setpriority(PRIO_USER, 0, 1)));
        TRY(setpriority(PRIO_PROCESS, 0, 1) == 0);
        TRY(is_refused(syscall(SYS_ioprio_set, 1, other, 0)));
        TRY(is_refused(kill(other, 0)));
        TRY(is_refused(kill(-1, 0)));
        TRY(kill(own, 0) == 0);
        TRY(is_refused(setpgid(0, getpgid(other))));
        TRY(setpgid(0, 0) == 0);
        TRY(is_refused(syscall(SYS_kcmp, own, other, 0, 0, 1)));
        TRY(syscall(SYS_kcmp, own, own, 0, 0, 0) == 0); /* KCMP_FILE */
        TRY(is_refused(syscall(SYS_get_robust_list, other, NULL, NULL)));
        TRY(is_refused(syscall(SYS_tgkill, other, other, 0)));
        TRY(is_refused(syscall(SYS_tkill, other, 0)));
        TRY(is_refused(syscall(SYS_migrate_pages, other, 0, NULL, NULL)));
        TRY(is_refused(syscall(SYS_move_pages, other, 0ul, NULL, NULL, NULL, 0)));
        TRY(is_refused(fcntl(STDERR_FILENO, F_SETOWN, other)));
        TRY(is_refused(fcntl(STDERR_FILENO, F_SETSIG, SIGKILL)));
        return 0;
}

static void other_processes_cannot_be_named(void **state)
{
        (void)state;
        assert_int_equal(within(names_others, &strict), 0);
}

static int asks_for_more(void)
{
        static const unsigned long spaces[] = { CLONE_NEWNS,    CLONE_NEWUSER, CLONE_NEWPID,
                                                CLONE_NEWNET,   CLONE_NEWIPC,  CLONE_NEWUTS,
                                                CLONE_NEWCGROUP };
        for (size_t i = 0; i < array_size(spaces); i++)
                TRY(is_refused(syscall(SYS_clone, spaces[i] | SIGCHLD, 0, 0, 0, 0)));
        TRY(is_refused(syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0)));
        TRY(syscall(SYS_clone3, NULL, 0) == -1 && errno == ENOSYS);
        TRY(is_refused(prctl(PR_SET_SECCOMP, 0, 0, 0, 0)));
        TRY(is_refused(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)));
        TRY(prctl(PR_SET_NAME, "name", 0, 0, 0) == 0);
        TRY(is_refused(personality(ADDR_NO_RANDOMIZE)));
        TRY(personality(0xffffffff) >= 0);
        TRY(is_refused(ioctl(STDIN_FILENO, TIOCSTI, "x")));
        TRY(is_refused(ioctl(STDIN_FILENO, TIOCLINUX, "x")));
        TRY(is_refused(ioctl(STDIN_FILENO, TIOCCONS, 0)));
        TRY(is_refused(ioctl(STDIN_FILENO, FIOSETOWN, 0)));
        /* A request may come with the bits above it that C makes of a negative int. */
        TRY(is_refused(syscall(SYS_ioctl, STDIN_FILENO, TIOCSTI | 0xffffffff00000000, "x")));
        TRY(is_refused(syscall(SYS_prctl, PR_SET_MM | 0x100000000, 0, 0, 0, 0)));
#ifdef __x86_64__
        TRY(syscall(0x40000000 | SYS_getpid) == -1 && errno == ENOSYS); /* x32 */
        long i386 = 20;                                                 /* its getpid */
        __asm__ volatile("int $0x80" : "+a"(i386) : : "memory");
        TRY(i386 == -ENOSYS);
#endif
        return 0;
}

static void arguments_that_reach_out_are_refused(void **state)
{
        (void)state;
        assert_int_equal(within(asks_for_more, &strict), 0);
}

static int changes_files(void)
{
        int fd = open(own_file, O_RDONLY | O_CLOEXEC);
        struct stat st;
        TRY(fd >= 0 && fstat(fd, &st) == 0);
        TRY(is_refused(fchmod(fd, st.st_mode & 07777)));
        TRY(is_refused(chmod(folder, 0700)));
        TRY(is_refused(futimens(fd, NULL)));
        TRY(is_refused(fchown(fd, (uid_t)-1, (gid_t)-1)));
        TRY(is_refused(fsetxattr(fd, "user.x", "", 0, 0)));
        TRY(is_refused(syscall(452 /* fchmodat2 */, AT_FDCWD, folder, 0700, 0)));
        close(fd);
        return 0;
}

static void attributes_of_files_cannot_be_changed(void **state)
{
        (void)state;
        assert_int_equal(within(changes_files, &strict), 0);
}

static int changes_own_files(void)
{
        TRY(chmod(own_file, 0644) == 0);
        TRY(utimensat(AT_FDCWD, own_file, NULL, 0) == 0);
        TRY(is_refused(mknod(own_file, S_IFIFO | 0600, 0)));
        return 0;
}

static void own_files_can_be_changed(void **state)
{
        (void)state;
        const struct calls_params p = { .own_files = true, .allowed = "" };
        assert_int_equal(within(changes_own_files, &p), 0);
}

static int ends_its_child(void)
{
        int status;
        pid_t child = fork();
        if (!child) {
                raise(SIGTERM);
                pause();
        }
        TRY(child > 0 && kill(child, SIGTERM) == 0 && waitpid(child, &status, 0) == child);
        return !WIFSIGNALED(status);
}

/* Without a namespace the filter does not know a child's number. */
static void own_processes_can_be_named(void **state)
{
        (void)state;
        const struct calls_params p = { .own_pids = true, .allowed = "" };
        assert_int_equal(within(ends_its_child, &p), 0);
}

static bool makes_socket(int family)
{
        int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0)
                close(fd);
        return fd >= 0 || errno != EPERM;
}

static int makes_sockets(void)
{
        int pair[2];
        bool unix_pair = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0 &&
                         socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0 &&
                         socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) < 0;
        return makes_socket(AF_INET) | makes_socket(AF_INET6) << 1 | makes_socket(AF_UNIX) << 2 |
               makes_socket(AF_NETLINK) << 3 | unix_pair << 4;
}

/* The allocator's: CUDA's library listens on a socket with a name. */
static int listens_and_reaches_nobody(void)
{
        const struct sockaddr_un any = { .sun_family = AF_UNIX };
        const struct sockaddr *name = (const struct sockaddr *)(const void *)&any;
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        TRY(fd >= 0 && bind(fd, name, sizeof(any.sun_family)) == 0 && listen(fd, 1) == 0);
        TRY(is_refused(connect(fd, name, sizeof(any))));
        TRY(is_refused(socket(AF_UNIX, SOCK_DGRAM, 0)));
        TRY(is_refused(socket(AF_UNIX, SOCK_RAW | SOCK_NONBLOCK, 0))); /* the same for Linux */
        TRY(is_refused(socket(AF_INET, SOCK_STREAM, 0)));
        return 0;
}

static void unconnected_sockets_reach_nobody(void **state)
{
        (void)state;
        const int local[] = { AF_UNIX };
        const struct calls_params p = {
                .families = local, .family_count = 1, .unconnected = true, .allowed = ""
        };
        assert_int_equal(within(listens_and_reaches_nobody, &p), 0);
}

static void sockets_have_the_families_given(void **state)
{
        (void)state;
        const int inet[] = { AF_INET, AF_INET6 };
        const struct calls_params p = { .families = inet, .family_count = 2, .allowed = "" };
        assert_int_equal(within(makes_sockets, &p), 16 | 2 | 1);
        assert_int_equal(within(makes_sockets, &strict), 16);
}

static int has_shared_memory(void)
{
        int id = shmget(IPC_PRIVATE, 4096, 0600);
        TRY(id >= 0 && shmctl(id, IPC_RMID, NULL) == 0);
        TRY(is_refused(syscall(SYS_msgget, 0, 0600)));
        return 0;
}

static void calls_can_be_allowed(void **state)
{
        (void)state;
        char text[128];
        const struct calls_params p = { .allowed = "shmctl,shmget" };
        assert_int_equal(within(has_shared_memory, &p), 0);
        assert_true(calls_known("shmget,shmat", text, sizeof(text)));
        assert_true(calls_known("", text, sizeof(text)));
        assert_false(calls_known("shmget,shmatt", text, sizeof(text)));
        assert_string_equal(text, "shmatt is no system call; the nearest name is shmat");
}

static int runs_programs(void)
{
        char command[128];
        snprintf(command, sizeof(command), "exec 3<>'%s' && cat <&3 | sort >/dev/null", own_file);
        return system(command);
}

static void programs_run(void **state)
{
        (void)state;
        assert_int_equal(within(runs_programs, &strict), 0);
}

int main(void)
{
        if (!mkdtemp(folder))
                return 1;
        snprintf(own_file, sizeof(own_file), "%s/file", folder);
        int fd = open(own_file, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
        if (fd < 0)
                return 1;
        close(fd);
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(entries_not_in_the_table_are_refused),
                cmocka_unit_test(other_processes_cannot_be_named),
                cmocka_unit_test(arguments_that_reach_out_are_refused),
                cmocka_unit_test(attributes_of_files_cannot_be_changed),
                cmocka_unit_test(own_files_can_be_changed),
                cmocka_unit_test(own_processes_can_be_named),
                cmocka_unit_test(sockets_have_the_families_given),
                cmocka_unit_test(unconnected_sockets_reach_nobody),
                cmocka_unit_test(calls_can_be_allowed),
                cmocka_unit_test(programs_run),
        };
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        (void)unlink(own_file);
        (void)rmdir(folder);
        return r;
}
