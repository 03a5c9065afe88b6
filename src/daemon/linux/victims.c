#include "daemon/linux/victims.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/system/tree.h"
#include "daemon/worker/worker.h"
#include "sandbox/user.h"

#define LOG "sandbox-test"

enum {
        TCP,
        UDP,
        LOCAL,
        ABSTRACT,
        OPEN_TO_ALL = 0777,
        PROCESSES = 4096, /* more than any session may have */
        DESCRIPTORS = 70000,
};

static bool make_file(const char *folder, const char *name, mode_t mode)
{
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/%s", folder, name);
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0)
                return false;
        bool ok = fchmod(fd, mode) == 0 && write(fd, "prey", 4) == 4;
        close(fd);
        return ok;
}

static bool make_folder(const struct victims *v, const char *name, mode_t mode)
{
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/%s", v->folder, name);
        return mkdir(path, 0700) == 0 && chmod(path, mode) == 0;
}

static bool make_files(struct victims *v)
{
        static const char *const folders[] = { "outside", "outside/empty", "cache",
                                               "cache/spancl" };
        static const char *const closed[] = { "keys", "other", "empty", "first" };
        char path[PATH_MAX];
        bool ok = true;
        for (size_t i = 0; ok && i < array_size(folders); i++)
                ok = make_folder(v, folders[i], OPEN_TO_ALL);
        for (size_t i = 0; ok && i < array_size(closed); i++)
                ok = make_folder(v, closed[i], 0700);
        snprintf(path, sizeof(path), "%s/outside", v->folder);
        ok = ok && make_file(path, "prey", 0666) && make_file(path, "secret", 0644) &&
             make_file(path, "dispensable", 0666) &&
             make_file(v->folder, "keys/identity.pem", 0600) &&
             make_file(v->folder, "other/file", 0600) && make_file(v->folder, "first/file", 0600);
        snprintf(path, sizeof(path), "%s/outside/prey", v->folder);
        (void)!setxattr(path, "user.prey", "x", 1, 0);
        snprintf(v->shared, sizeof(v->shared), "/dev/shm/spancl-attack.%d", (int)getpid());
        if (!make_file("/dev/shm", v->shared + sizeof("/dev/shm"), 0644))
                v->shared[0] = 0;
        return ok;
}

static bool be_user(const struct config_options *o, const char *scratch_dir)
{
        struct user user;
        return user_lay_aside(&user, o, scratch_dir) && user_take_up() &&
               user_become(&user, o, NULL);
}

/* Start a process of the workers' user. It enters the sandbox if it stands for another session's
 * worker. */
static pid_t make_process(const struct victims *v, const struct config_options *o, bool worker)
{
        struct caches caches;
        char scratch[PATH_MAX], done = 0;
        int ready[2];
        if (pipe2(ready, O_CLOEXEC) < 0)
                return 0;
        snprintf(scratch, sizeof(scratch), "%s/%s", v->folder, worker ? "other" : "empty");
        pid_t pid = fork();
        if (!pid) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                setpgid(0, 0);
                if (worker ? !worker_shut_in(o, scratch, "", &caches, NULL) : !be_user(o, scratch))
                        _exit(1);
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                if (write(ready[1], &done, 1) != 1)
                        _exit(1);
                for (;;)
                        pause();
        }
        close(ready[1]);
        bool ok = pid > 0 && read(ready[0], &done, 1) == 1;
        close(ready[0]);
        if (ok)
                return pid;
        if (pid > 0)
                waitpid(pid, NULL, 0);
        return 0;
}

static int make_socket(int family, int type, const void *name, socklen_t size)
{
        int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd >= 0 && (bind(fd, name, size) < 0 || (type == SOCK_STREAM && listen(fd, 64) < 0))) {
                close(fd);
                fd = -1;
        }
        return fd;
}

static void make_sockets(struct victims *v)
{
        const struct sockaddr_in loopback = { .sin_family = AF_INET,
                                              .sin_addr = { htonl(INADDR_LOOPBACK) } };
        struct sockaddr_un path = { .sun_family = AF_UNIX }, name = { .sun_family = AF_UNIX };
        v->sockets[TCP] = make_socket(AF_INET, SOCK_STREAM, &loopback, sizeof(loopback));
        v->sockets[UDP] = make_socket(AF_INET, SOCK_DGRAM, &loopback, sizeof(loopback));
        snprintf(path.sun_path, sizeof(path.sun_path), "%s/service", v->folder);
        v->sockets[LOCAL] = make_socket(AF_UNIX, SOCK_STREAM, &path, sizeof(path));
        (void)!chmod(path.sun_path, OPEN_TO_ALL);
        int n = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "spancl-attack-%d",
                         (int)getpid());
        v->sockets[ABSTRACT] =
                make_socket(AF_UNIX, SOCK_STREAM, &name,
                            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n));
}

static unsigned port_of(int fd)
{
        struct sockaddr_in name = { 0 };
        socklen_t size = sizeof(name);
        return fd >= 0 && getsockname(fd, (struct sockaddr *)&name, &size) == 0
                       ? ntohs(name.sin_port)
                       : 0;
}

/* ---- parameters ------------------------------------------------------------------------------- */

/* Append one parameter, with its NUL; "" if there is no such victim. */
static int put(struct victims *v, bool is, const char *format, ...)
        __attribute__((format(printf, 3, 4)));

static int put(struct victims *v, bool is, const char *format, ...)
{
        char text[PATH_MAX];
        va_list args;
        va_start(args, format);
        int n = vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        return buf_put(&v->params, is ? text : "", is ? (size_t)n + 1 : 1);
}

/* Append all parameters, in the order of params.def. */
static int put_all(struct victims *v, const struct config_options *o)
{
        uint64_t memory = config_option_number(o, CONFIG_session_memory);
        unsigned tcp = port_of(v->sockets[TCP]), udp = port_of(v->sockets[UDP]);
        const char *f = v->folder;
        int r = put(v, true, "%s", v->scratch);
        r = r < 0 ? r : put(v, true, "%s/cache/pocl", f);
        r = r < 0 ? r : put(v, true, "%s/outside/secret", f);
        r = r < 0 ? r : put(v, true, "%s/outside/prey", f);
        r = r < 0 ? r : put(v, true, "%s/outside", f);
        r = r < 0 ? r : put(v, true, "%s/outside/empty", f);
        r = r < 0 ? r : put(v, true, "%s/keys/identity.pem", f);
        r = r < 0 ? r : put(v, true, "%s/other", f);
        r = r < 0 ? r : put(v, true, "%s/empty", f);
        r = r < 0 ? r : put(v, true, "%s/first", f);
        r = r < 0 ? r : put(v, *v->shared, "%s", v->shared);
        r = r < 0 ? r : put(v, true, "%d", (int)getpid());
        r = r < 0 ? r : put(v, true, "%d", (int)getpid()); /* a zygote is forked from it, too */
        r = r < 0 ? r : put(v, v->worker != 0, "%d", (int)v->worker);
        r = r < 0 ? r : put(v, v->bystander != 0, "%d", (int)v->bystander);
        r = r < 0 ? r : put(v, tcp != 0, "%u", tcp); /* the server's own port */
        r = r < 0 ? r : put(v, tcp != 0, "%u", tcp);
        r = r < 0 ? r : put(v, udp != 0, "%u", udp);
        r = r < 0 ? r : put(v, v->sockets[LOCAL] >= 0, "%s/service", f);
        r = r < 0 ? r : put(v, v->sockets[ABSTRACT] >= 0, "spancl-attack-%d", (int)getpid());
        r = r < 0 ? r : put(v, v->sockets[LOCAL] >= 0, "%s/service", f);
        r = r < 0 ? r : put(v, v->segment >= 0, "%d", v->segment);
        r = r < 0 ? r : put(v, v->messages >= 0, "%d", v->messages);
        r = r < 0 ? r : put(v, v->semaphores >= 0, "%d", v->semaphores);
        r = r < 0 ? r : put(v, memory != 0, "%llu", (unsigned long long)memory);
        r = r < 0 ? r : put(v, false, " "); /* nothing measures the attacking process's memory */
        r = r < 0 ? r : put(v, false, " "); /* nor its files */
        r = r < 0 ? r : put(v, true, "%d", PROCESSES);
        r = r < 0 ? r : put(v, true, "%d", DESCRIPTORS);
        return r < 0 ? r : put(v, true, "%d", 0x5b000000 + (int)getpid());
}

int victims_make(struct victims *v, const struct config_options *o)
{
        char path[PATH_MAX];
        const char *base = getenv("TMPDIR");
        *v = (struct victims){ .lock = -1, .sockets = { -1, -1, -1, -1 } };
        snprintf(v->folder, sizeof(v->folder), "%.30s/spancl-sandbox-test.XXXXXX",
                 base && *base == '/' ? base : "/tmp");
        if (!mkdtemp(v->folder)) {
                log_error(LOG, "no folder can be made: %s", strerror(errno));
                v->folder[0] = 0;
                return SP_E_INVAL;
        }
        snprintf(path, sizeof(path), "%s/cache", v->folder);
        setenv("TMPDIR", v->folder, 1);
        setenv("XDG_CACHE_HOME", path, 1);
        unsetenv("POCL_CACHE_DIR");
        unsetenv("CUDA_CACHE_PATH");
        /* The workers' user has to pass through the folder. */
        if (chmod(v->folder, OPEN_TO_ALL) < 0 || !make_files(v) ||
            scratch_make(v->scratch, &v->lock) < 0) {
                log_error(LOG, "the files in %s can't be made: %s", v->folder, strerror(errno));
                return SP_E_INVAL;
        }
        v->segment = shmget(IPC_PRIVATE, 4096, 01666);
        v->messages = msgget(IPC_PRIVATE, 01666);
        v->semaphores = semget(IPC_PRIVATE, 1, 01666);
        v->bystander = make_process(v, o, false);
        v->worker = make_process(v, o, true);
        make_sockets(v);
        if (!v->bystander || !v->worker) {
                log_error(LOG, "this host can't shut sessions in");
                return SP_E_INVAL;
        }
        return put_all(v, o);
}

static void end_process(pid_t pid)
{
        if (pid > 0 && kill(pid, SIGKILL) == 0)
                waitpid(pid, NULL, 0);
}

void victims_remove(struct victims *v)
{
        end_process(v->bystander);
        end_process(v->worker);
        for (size_t i = 0; i < array_size(v->sockets); i++)
                if (v->sockets[i] >= 0)
                        close(v->sockets[i]);
        if (v->segment > 0)
                (void)shmctl(v->segment, IPC_RMID, NULL);
        if (v->messages > 0)
                (void)msgctl(v->messages, IPC_RMID, NULL);
        if (v->semaphores > 0)
                (void)semctl(v->semaphores, 0, IPC_RMID);
        if (*v->shared)
                (void)unlink(v->shared);
        if (v->lock >= 0)
                close(v->lock);
        tree_remove(v->folder);
        buf_fini(&v->params);
}
