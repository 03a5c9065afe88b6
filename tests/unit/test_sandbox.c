/* The walls around a worker: each claim in a process of its own, shut in as a worker is. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
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
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "sandbox/namespaces.h"
#include "sandbox/sandbox.h"
#include "sandbox/user.h"

static char folder[] = "/tmp/spancl-test-sandbox.XXXXXX";
static char scratch[64], cache[64], secret[64];

static bool has_landlock(void)
{
        return syscall(SYS_landlock_create_ruleset, NULL, 0, 1) > 0;
}

enum { NOT_ENTERED = 100, NOT_HERE = 101 };

static void options(struct config_options *o, char *const *more)
{
        char *argv[8] = { (char[]){ "spancld" } };
        char *error = NULL;
        int argc = 1;
        for (; more && more[argc - 1]; argc++)
                argv[argc] = more[argc - 1];
        if (config_options_parse(argc, argv, o, &error) < 0)
                _exit(NOT_ENTERED);
}

static _Noreturn void enter_and_claim(const struct config_options *o, int (*claim)(void))
{
        struct user user;
        if (!user_lay_aside(&user, o, scratch) ||
            !sandbox_enter(&user, o,
                           &(struct sandbox_folders){ .scratch = scratch, .programs = cache },
                           NULL))
                _exit(NOT_ENTERED);
        _exit(claim());
}

static int exit_status(pid_t pid)
{
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* Run it in a sandbox with these options: its exit status; NOT_ENTERED: the sandbox could not be entered. */
static int within(int (*claim)(void), char *const *more)
{
        struct config_options o;
        pid_t pid = fork();
        if (!pid) {
                options(&o, more);
                enter_and_claim(&o, claim);
        }
        return exit_status(pid);
}

/* The same in namespaces; NOT_HERE: this host lets it have none. */
static int within_namespaces(int (*claim)(void), char *const *more)
{
        struct config_options o;
        pid_t between = fork();
        if (!between) {
                options(&o, more);
                pid_t self = getpid();
                if (namespaces_leave(&o))
                        _exit(NOT_HERE);
                pid_t pid = fork();
                if (!pid) {
                        if (namespaces_enter(self))
                                _exit(NOT_HERE);
                        enter_and_claim(&o, claim);
                }
                int status;
                _exit(waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status)
                                                                           : 1);
        }
        return exit_status(between);
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

static void files_that_drivers_need_are_there(void **state)
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
        bad |= syscall(SYS_setuid, 0) == 0 && geteuid() == 0 && chown("/etc/hosts", 1, 1) == 0;
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

static bool makes_any_socket(void)
{
        static const int families[] = { AF_UNIX,      AF_INET, AF_INET6, AF_NETLINK,
                                        AF_PACKET,    AF_ALG,  AF_VSOCK, AF_XDP,
                                        AF_BLUETOOTH, AF_TIPC, AF_UNSPEC };
        static const int types[] = { SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET };
        for (size_t i = 0; i < sizeof(families) / sizeof(families[0]); i++)
                for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++) {
                        int fd = socket(families[i], types[k] | SOCK_CLOEXEC, 0);
                        if (fd >= 0)
                                return true;
                }
        return false;
}

static int has_sockets(void)
{
        int pair[2];
        return makes_any_socket() ? 2 : socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0;
}

static void a_socket_cannot_be_made(void **state)
{
        (void)state;
        assert_int_equal(within(has_sockets, (char *[]){ (char[]){ "--fabric=off" }, NULL }), 1);
        /* The sockets of spancld do not matter: peers behind Unix sockets are the dialler's business, too. */
        assert_int_equal(within(has_sockets, (char *[]){ (char[]){ "--fabric=off" },
                                                         (char[]){ "--socket=/nowhere" }, NULL }),
                         1);
}

/* A Unix socket that binds an abstract name, but no other socket, and no connection. */
static int has_a_local_socket(void)
{
        const struct sockaddr_un name = { AF_UNIX, "\0spancl-test" };
        int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool binds = fd >= 0 && bind(fd, (const struct sockaddr *)&name, sizeof(name)) == 0;
        bool more = makes_socket(AF_UNIX) || makes_socket(AF_INET) || makes_socket(AF_NETLINK) ||
                    connect(fd, (const struct sockaddr *)&name, sizeof(name)) == 0 ||
                    errno != EPERM;
        return more ? 2 : binds;
}

/* Without a network namespace, a session could take the abstract name of a service. */
static void a_worker_with_cuda_makes_unix_sockets_in_its_own_namespace(void **state)
{
        (void)state;
        char *with[] = { (char[]){ "--fabric=off" }, (char[]){ "--media=device=cuda:0" }, NULL };
        char *without[] = { (char[]){ "--fabric=off" }, (char[]){ "--media=device=vaapi" }, NULL };
        assert_int_equal(within(has_sockets, with), 1);
        int r = within_namespaces(has_a_local_socket, with);
        if (r == NOT_HERE)
                skip();
        assert_int_equal(r, 1);
        assert_int_equal(within_namespaces(has_sockets, without), 1);
}

/* A process of the worker's names a thread, as CUDA's library does. */
static int names_a_thread(void)
{
        pid_t pid = fork();
        if (!pid) {
                char name[64];
                snprintf(name, sizeof(name), "/proc/self/task/%d/comm", (int)getpid());
                _exit(can_open(name, O_WRONLY | O_CREAT | O_TRUNC));
        }
        int status;
        bool exited = waitpid(pid, &status, 0) == pid && WIFEXITED(status);
        /* All users of a host may write to the last one. */
        bool host = can_open("/proc/sys/kernel/core_pattern", O_WRONLY) ||
                    can_open("/proc/sysrq-trigger", O_WRONLY) ||
                    can_open("/proc/pressure/cpu", O_RDWR);
        return !exited || host ? 2 : WEXITSTATUS(status);
}

static void a_worker_with_cuda_starts_processes_that_name_threads(void **state)
{
        (void)state;
        char *with[] = { (char[]){ "--fabric=off" }, (char[]){ "--media=device=cuda:0" }, NULL };
        char *without[] = { (char[]){ "--fabric=off" }, (char[]){ "--media=device=vaapi" }, NULL };
        if (!has_landlock())
                skip();
        assert_int_equal(within(names_a_thread, with), 0); /* others' processes are in /proc, too */
        int r = within_namespaces(names_a_thread, with);
        if (r == NOT_HERE)
                skip();
        assert_int_equal(r, 1);
        assert_int_equal(within_namespaces(names_a_thread, without), 0);
}

static const char gpu[] = "/dev/nvidia31";

/* A process that decodes opens the GPU's node again behind its own walls. */
static int opens_the_gpu_again(void)
{
        return sandbox_enter_media(false, true) && can_open(gpu, O_RDWR);
}

static int forget_gpu(void **state)
{
        (void)state;
        unlink(gpu);
        return 0;
}

static void a_process_that_decodes_reaches_the_gpu(void **state)
{
        (void)state;
        char *with[] = { (char[]){ "--fabric=off" }, (char[]){ "--media=device=cuda:0" }, NULL };
        /* The node is /dev/null's. */
        if (!has_landlock() || (mknod(gpu, S_IFCHR | 0666, makedev(1, 3)) < 0 && errno != EEXIST))
                skip();
        assert_int_equal(chmod(gpu, 0666), 0);
        int r = within_namespaces(opens_the_gpu_again, with);
        if (r == NOT_HERE)
                skip();
        assert_int_equal(r, 1);
}

static int handed; /* a connection, as the supervisor and the dialler hand them over */
static struct sockaddr_in elsewhere = { .sin_family = AF_INET };

static int turns_its_connection(void)
{
        const struct sockaddr none = { .sa_family = AF_UNSPEC };
        const struct sockaddr_in any = { .sin_family = AF_INET };
        const struct sockaddr *to = (const struct sockaddr *)&elsewhere;
        bool turned = connect(handed, &none, sizeof(none)) == 0;
        turned |= sendto(handed, "", 1, MSG_FASTOPEN, to, sizeof(elsewhere)) == 0;
        turned |= bind(handed, (const struct sockaddr *)&any, sizeof(any)) == 0;
        turned |= connect(handed, to, sizeof(elsewhere)) == 0 || listen(handed, 1) == 0;
        return turned ? 2 : send(handed, "x", 1, 0) == 1;
}

static void a_connection_cannot_be_turned_elsewhere(void **state)
{
        (void)state;
        int listeners[2];
        struct sockaddr_in at[2];
        for (int i = 0; i < 2; i++) {
                socklen_t size = sizeof(at[i]);
                at[i] = (struct sockaddr_in){ .sin_family = AF_INET,
                                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
                listeners[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
                assert_int_equal(bind(listeners[i], (struct sockaddr *)&at[i], size), 0);
                assert_int_equal(listen(listeners[i], 4), 0);
                assert_int_equal(getsockname(listeners[i], (struct sockaddr *)&at[i], &size), 0);
        }
        handed = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        elsewhere = at[1];
        assert_int_equal(connect(handed, (struct sockaddr *)&at[0], sizeof(at[0])), 0);
        assert_int_equal(
                within(turns_its_connection, (char *[]){ (char[]){ "--fabric=off" }, NULL }), 1);
        /* Once the other side has gone, too. */
        int there = accept4(listeners[0], NULL, NULL, SOCK_CLOEXEC);
        const struct linger reset = { .l_onoff = 1 };
        assert_int_equal(setsockopt(there, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset)), 0);
        close(there);
        assert_int_equal(
                within(turns_its_connection, (char *[]){ (char[]){ "--fabric=off" }, NULL }), 0);
        /* The test itself can: this is about the sandbox. */
        assert_int_equal(turns_its_connection(), 2);
        close(handed);
        for (int i = 0; i < 2; i++)
                close(listeners[i]);
}

static int has_internet_sockets(void)
{
        bool bad = makes_socket(AF_UNIX) || makes_socket(AF_ALG) || makes_socket(AF_VSOCK);
        return !bad && makes_socket(AF_INET) && makes_socket(AF_NETLINK);
}

static void a_named_fabric_lets_workers_make_internet_sockets(void **state)
{
        (void)state;
        assert_int_equal(
                within(has_internet_sockets, (char *[]){ (char[]){ "--fabric=tcp" }, NULL }), 1);
}

static int resolves_and_connects(void)
{
        struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
        bool ok = getaddrinfo("localhost", "1", &hints, &list) == 0;
        return ok && makes_socket(AF_INET) && makes_socket(AF_UNIX);
}

static int reads_and_writes(void)
{
        return can_open(secret, O_RDONLY) || can_open("/etc/passwd", O_RDONLY) ||
               can_open("/bin/sh", O_RDONLY) || can_open("/tmp/spancl-test", O_RDWR | O_CREAT) ||
               can_open("/etc/hosts", O_RDWR) || mount("none", "/tmp", "tmpfs", 0, NULL) == 0;
}

static bool is_filtered; /* this process has a filter of system calls */

static int within_dialler(int (*claim)(void))
{
        pid_t pid = fork();
        if (!pid) {
                char *argv[] = { (char[]){ "spancld" }, NULL };
                struct config_options o;
                char *error = NULL;
                if (config_options_parse(1, argv, &o, &error) < 0 || !sandbox_enter_dialler(&o))
                        _exit(100);
                _exit(claim());
        }
        int status;
        assert_int_equal(waitpid(pid, &status, 0), pid);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void the_dialler_connects_and_does_nothing_else(void **state)
{
        (void)state;
        assert_int_equal(within_dialler(resolves_and_connects), 1);
        if (has_landlock())
                assert_int_equal(within_dialler(reads_and_writes), 0);
}

static int reaches_anything(void)
{
        int pair[2];
        char *argv[] = { (char[]){ "sh" }, NULL };
        if (reads_and_writes() || can_open("/proc/self/maps", O_RDONLY) ||
            can_open("/usr/lib", O_RDONLY) || can_open("/dev/null", O_RDWR) ||
            (is_filtered && makes_any_socket()))
                return 1;
        (void)execv("/bin/sh", argv);
        return socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0 && is_filtered ? 2 : 0;
}

/* Run the claim in the sandbox of a process media-av. */
static int within_media(bool own, bool device, int (*claim)(void))
{
        pid_t pid = fork();
        if (!pid) {
                is_filtered = own;
                _exit(sandbox_enter_media(own, device) ? claim() : 100);
        }
        return exit_status(pid);
}

static void the_process_of_a_media_stream_reaches_nothing(void **state)
{
        (void)state;
        if (!has_landlock())
                skip();
        for (int own = 0; own < 2; own++)
                assert_int_equal(within_media(own, false, reaches_anything), 0);
}

/* 1: what a driver needs; 2: more. */
static int reaches_what_drivers_need(void)
{
        char *argv[] = { (char[]){ "sh" }, (char[]){ "-c" }, (char[]){ "exit 4" }, NULL };
        bool needed = can_open("/usr/lib", O_RDONLY) && can_open("/proc/self/maps", O_RDONLY) &&
                      can_open("/dev/null", O_RDWR);
        bool more = can_open(secret, O_RDONLY) || can_open("/etc/passwd", O_RDONLY) ||
                    can_open("/etc/hosts", O_RDONLY) || can_open("/root", O_RDONLY) ||
                    can_open("/tmp/spancl-test", O_RDWR | O_CREAT) ||
                    can_open("/usr/lib/spancl-test", O_RDWR | O_CREAT) ||
                    (is_filtered && makes_any_socket());
        (void)execv("/bin/sh", argv);
        return (needed ? 1 : 0) | (more ? 2 : 0);
}

static void the_process_of_a_media_stream_with_a_device_reaches_what_drivers_need(void **state)
{
        (void)state;
        if (!has_landlock())
                skip();
        for (int own = 0; own < 2; own++)
                assert_int_equal(within_media(own, true, reaches_what_drivers_need), 1);
}

/* Find out what a process of sources reaches. 1: the named file; 2: more; 4: sockets of IP; 8: others. */
static int reach_of_streams(bool network)
{
        const char *files[] = { secret, NULL };
        const struct sandbox_streams streams = { .files = files,
                                                 .folders = files + 1,
                                                 .network = network };
        if (!sandbox_enter_streams(&streams))
                return 100;
        bool more = can_open(secret, O_RDWR) || can_open(folder, O_RDONLY) ||
                    can_open("/proc/self/maps", O_RDONLY) || can_open("/bin/sh", O_RDONLY) ||
                    can_open("/root", O_RDONLY) || can_open("/etc/passwd", O_RDONLY) ||
                    can_open("/etc/shadow", O_RDONLY) || can_open("/etc/ssl/private", O_RDONLY) ||
                    prctl(PR_GET_DUMPABLE) || can_open("/etc/hosts", O_RDONLY) != network;
        return (can_open(secret, O_RDONLY) ? 1 : 0) | (more ? 2 : 0) |
               (makes_socket(AF_INET) ? 4 : 0) |
               (makes_socket(AF_UNIX) || makes_socket(AF_PACKET) ? 8 : 0);
}

static void sources_of_streams_reach_their_files_and_the_network(void **state)
{
        (void)state;
        if (!has_landlock())
                skip();
        for (int network = 0; network < 2; network++) {
                pid_t pid = fork();
                if (!pid)
                        _exit(reach_of_streams(network));
                assert_int_equal(exit_status(pid), network ? 5 : 1);
        }
}

/* Find out what a process of sinks can write. 1: new files in the folder; 2: it can read there, or write elsewhere;
 * 4: a process of one stream can make a file; 8: it can write one; 16: it gets more descriptors; 32: a file is too
 * large. */
static int reach_of_sinks(void)
{
        const char *folders[] = { scratch, NULL };
        const struct sandbox_streams streams = { .files = folders + 1,
                                                 .folders = folders,
                                                 .bytes_max = 100 };
        char made[128], other[128];
        snprintf(made, sizeof(made), "%s/sink.mkv", scratch);
        snprintf(other, sizeof(other), "%s/other.mkv", scratch);
        signal(SIGXFSZ, SIG_IGN);
        if (!sandbox_enter_streams(&streams))
                return 100;
        int fd = open(made, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        int found = fd >= 0 ? 1 : 0;
        if (can_open(made, O_RDONLY) || can_open(secret, O_WRONLY) || can_open(scratch, O_RDONLY) ||
            mkdir(other, 0700) == 0 || unlink(made) == 0 || makes_socket(AF_INET))
                found |= 2;
        if (!sandbox_enter_stream(10))
                return 100;
        close(open(other, O_WRONLY | O_CREAT, 0600));
        found |= access(other, F_OK) == 0 ? 4 : 0;
        found |= can_open(made, O_WRONLY) ? 8 : 0;
        found |= write(fd, "0123456789", 10) != 10 || write(fd, "0", 1) == 1 ? 32 : 0;
        sandbox_deny_descriptors();
        for (int i = 0; i < 3; i++)
                (void)dup2(fd, i);
        return found | (dup(0) >= 0 || makes_socket(AF_UNIX) ? 16 : 0);
}

static void processes_of_sinks_write_what_is_open(void **state)
{
        (void)state;
        if (!has_landlock())
                skip();
        pid_t pid = fork();
        if (!pid)
                _exit(reach_of_sinks());
        assert_int_equal(exit_status(pid), 1);
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
                         NOT_ENTERED);
        if (geteuid() || !getpwnam("nobody"))
                return;
        assert_int_equal(chmod(folder, 0755), 0);
        assert_int_equal(within(is_nobody, (char *[]){ (char[]){ "--user=nobody" }, NULL }), 1);
        assert_int_equal(chmod(folder, 0700), 0);
        assert_int_equal(chown(scratch, 0, 0), 0);
}

/* Is this process the first one, and the only one in /proc? */
static bool sees_itself_only(void)
{
        unsigned n = 0;
        DIR *dir = opendir("/proc");
        for (struct dirent *e; dir && (e = readdir(dir));)
                n += e->d_name[0] >= '0' && e->d_name[0] <= '9';
        if (dir)
                closedir(dir);
        return n == 1 && getpid() == 1;
}

static bool has_no_network(void)
{
        char line[256];
        bool has = false;
        FILE *f = fopen("/proc/net/dev", "re");
        while (f && fgets(line, sizeof(line), f))
                has |= strchr(line, ':') && !strstr(line, "lo:");
        if (f)
                fclose(f);
        return f && !has;
}

static int is_alone(void)
{
        struct stat st;
        return sees_itself_only() && has_no_network() && stat(secret, &st) < 0 && errno == ENOENT &&
               stat("/home", &st) < 0 && mkdir("/home", 0700) < 0;
}

static int leaves_a_file(void)
{
        char path[128];
        snprintf(path, sizeof(path), "%s/left", cache);
        if (geteuid() < 0x70000000)
                return NOT_HERE;
        return can_open(path, O_RDWR | O_CREAT);
}

static void a_session_sees_only_itself(void **state)
{
        (void)state;
        int alone = within_namespaces(is_alone, NULL);
        if (alone == NOT_HERE)
                skip();
        assert_int_equal(alone, 1);
        assert_int_equal(within_namespaces(uses_its_own, NULL), 1);
        assert_int_equal(
                within_namespaces(is_alone, (char *[]){ (char[]){ "--namespaces=0" }, NULL }), 0);
        assert_int_equal(within_namespaces(writes_elsewhere, NULL), 0);
        if (geteuid() || !getpwnam("nobody"))
                return;
        assert_int_equal(chmod(folder, 0755), 0);
        assert_int_equal(
                within_namespaces(is_nobody, (char *[]){ (char[]){ "--user=nobody" }, NULL }), 1);
        assert_int_equal(chmod(folder, 0700), 0);
        assert_int_equal(chown(scratch, 0, 0), 0);
}

/* Where the file system can translate owners: docs/SECURITY.md. */
static void a_session_of_root_has_a_user_of_its_own(void **state)
{
        struct stat st;
        char path[128];
        (void)state;
        int left = geteuid() ? NOT_HERE : within_namespaces(leaves_a_file, NULL);
        if (left == NOT_HERE)
                skip();
        assert_int_equal(left, 1);
        snprintf(path, sizeof(path), "%s/left", cache);
        assert_int_equal(stat(path, &st), 0);
        assert_int_equal(st.st_uid, 0);
        assert_int_equal(unlink(path), 0);
}

static int is_limited(void)
{
        struct rlimit core, data;
        return !getrlimit(RLIMIT_CORE, &core) && !core.rlim_max && !getrlimit(RLIMIT_DATA, &data) &&
               data.rlim_max == 4096ull << 20;
}

static bool at_most(int resource, rlim_t max)
{
        struct rlimit r;
        return !getrlimit((__rlimit_resource_t)resource, &r) && r.rlim_cur <= max &&
               r.rlim_max <= max;
}

/* A process whose parent has ended becomes this one's child. */
static bool adopts(void)
{
        int ends[2];
        pid_t self = getpid(), of = 0;
        if (pipe(ends) < 0)
                return false;
        pid_t child = fork();
        if (!child) {
                pid_t parent = getpid();
                if (fork() == 0) {
                        while (getppid() == parent)
                                usleep(1000);
                        of = getppid();
                        _exit(write(ends[1], &of, sizeof(of)) != sizeof(of));
                }
                _exit(0);
        }
        close(ends[1]);
        bool told =
                waitpid(child, NULL, 0) == child && read(ends[0], &of, sizeof(of)) == sizeof(of);
        close(ends[0]);
        return told && of == self && wait(NULL) > 0;
}

static int takes_little_of_the_host(void)
{
        return at_most(RLIMIT_MSGQUEUE, 0) && at_most(RLIMIT_RTPRIO, 0) &&
               at_most(RLIMIT_NICE, 0) && at_most(RLIMIT_NOFILE, 8192) &&
               at_most(RLIMIT_SIGPENDING, 1024) && adopts();
}

static void kernel_objects_of_a_session_have_limits(void **state)
{
        (void)state;
        assert_int_equal(within(takes_little_of_the_host, NULL), 1);
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
                cmocka_unit_test(files_that_drivers_need_are_there),
                cmocka_unit_test(nothing_else_can_be_written),
                cmocka_unit_test(other_processes_cannot_be_looked_into),
                cmocka_unit_test(the_host_cannot_be_administered),
                cmocka_unit_test(a_socket_cannot_be_made),
                cmocka_unit_test(a_worker_with_cuda_makes_unix_sockets_in_its_own_namespace),
                cmocka_unit_test(a_worker_with_cuda_starts_processes_that_name_threads),
                cmocka_unit_test_teardown(a_process_that_decodes_reaches_the_gpu, forget_gpu),
                cmocka_unit_test(a_connection_cannot_be_turned_elsewhere),
                cmocka_unit_test(a_named_fabric_lets_workers_make_internet_sockets),
                cmocka_unit_test(the_dialler_connects_and_does_nothing_else),
                cmocka_unit_test(the_process_of_a_media_stream_reaches_nothing),
                cmocka_unit_test(
                        the_process_of_a_media_stream_with_a_device_reaches_what_drivers_need),
                cmocka_unit_test(sources_of_streams_reach_their_files_and_the_network),
                cmocka_unit_test(processes_of_sinks_write_what_is_open),
                cmocka_unit_test(root_becomes_the_user_named),
                cmocka_unit_test(a_session_sees_only_itself),
                cmocka_unit_test(a_session_of_root_has_a_user_of_its_own),
                cmocka_unit_test(memory_has_the_limit_given),
                cmocka_unit_test(kernel_objects_of_a_session_have_limits),
        };
        int r = cmocka_run_group_tests(tests, NULL, NULL);
        char command[128];
        snprintf(command, sizeof(command), "rm -rf '%s'", folder);
        return system(command) ? 1 : r;
}
