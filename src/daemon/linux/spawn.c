#include "daemon/system/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/control.h"
#include "daemon/system/scratch.h"
#include "os/clock.h"
#include "transport/keys.h"

#define LOG "supervisor"

enum { FINI_MS = 2000 };

/* Copy the environment without the variables that give access to the host as this user. No driver
 * needs them, and a worker runs clients' code. */
static char **worker_environment(void)
{
        static const char *const ours[] = {
                "NOTIFY_SOCKET=",
                "LISTEN_PID=",
                "LISTEN_FDS=",
                "WATCHDOG_PID=",
                "CREDENTIALS_DIRECTORY=",
                "DBUS_SESSION_BUS_ADDRESS=",
                "SSH_AUTH_SOCK=",
                "GPG_AGENT_INFO=",
        };
        size_t n = 0, count = 0;
        while (environ[count])
                count++;
        char **env = mem_alloc((count + 1) * sizeof(*env));
        for (size_t i = 0; env && i < count; i++) {
                bool keep = true;
                for (size_t k = 0; k < array_size(ours) && keep; k++)
                        keep = strncmp(environ[i], ours[k], strlen(ours[k])) != 0;
                if (keep)
                        env[n++] = environ[i];
        }
        if (env)
                env[n] = NULL;
        return env;
}

/* Run a program. Its descriptors are `input` (-1: /dev/null), the supervisor's standard output, `log` and, unless it is
 * -1, `control`. */
static int run(const char *path, char *const *argv, int input, int control, int log, pid_t *ret_pid)
{
        char **env = worker_environment();
        if (!env)
                return SP_E_NOMEM;
        posix_spawn_file_actions_t files;
        posix_spawnattr_t attr;
        sigset_t none, standard;
        sigemptyset(&none);
        sigfillset(&standard);
        posix_spawn_file_actions_init(&files);
        posix_spawnattr_init(&attr);
        if (input < 0)
                posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        else
                posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
        posix_spawn_file_actions_adddup2(&files, log, STDERR_FILENO);
        if (control >= 0)
                posix_spawn_file_actions_adddup2(&files, control, CONTROL_FD);
        posix_spawn_file_actions_addclosefrom_np(&files,
                                                 control >= 0 ? CONTROL_FD + 1 : CONTROL_FD);
        posix_spawnattr_setsigmask(&attr, &none);
        posix_spawnattr_setsigdefault(&attr, &standard);
        /* The process gets a process group of its own, so that a terminal's ^C reaches the
         * supervisor only. */
        posix_spawnattr_setpgroup(&attr, 0);
        posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                                POSIX_SPAWN_SETPGROUP);
        int r = posix_spawn(ret_pid, path, &files, &attr, argv, env);
        posix_spawnattr_destroy(&attr);
        posix_spawn_file_actions_destroy(&files);
        mem_free(env);
        return r ? SP_E_LIMIT : 0;
}

/* The supervisor moves a worker into its group when the worker has sent its number. */
int run_own(char *const *argv, unsigned group, int control, int log, pid_t *ret_pid)
{
        (void)group;
        return run("/proc/self/exe", argv, -1, control, log, ret_pid);
}

int run_program(const char *path, char *const *argv, int input, int log, pid_t *ret_pid)
{
        return run(path, argv, input, -1, log, ret_pid);
}

static void zygote_gone(struct spawner *s)
{
        if (s->zygote >= 0)
                close(s->zygote);
        s->zygote = -1;
        s->loading = false;
}

void spawner_init(struct spawner *s, const struct config_options *o, int argc, char **argv)
{
        static char zygote[] = "--zygote";
        int pair[2], log;
        *s = (struct spawner){ .argc = argc, .argv = argv, .zygote = -1, .log.fd = -1 };
        if (strcmp(config_option_text(o, CONFIG_backend), "native") != 0 ||
            !*config_option_text(o, CONFIG_preload))
                return;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return;
        if (child_log_open(&s->log, &s->log_budget, &log) == 0) {
                s->loading = !run_self(s, (char *[]){ zygote, NULL }, (char *[]){ NULL }, 0,
                                       pair[1], log, &s->zygote_pid);
                close(log);
        }
        close(pair[1]);
        s->zygote = pair[0];
        if (!s->loading)
                zygote_gone(s);
}

void spawner_give_up(struct spawner *s)
{
        zygote_gone(s);
        if (s->zygote_pid)
                kill(s->zygote_pid, SIGKILL);
}

void spawner_fini(struct spawner *s)
{
        spawner_give_up(s);
        s->zygote_pid = 0;
        child_log_close(&s->log, SPAWN_ZYGOTE, clock_now_ns());
        uint64_t deadline = clock_now_ns() + FINI_MS * 1000000ull;
        while (waitpid(-1, NULL, WNOHANG) >= 0 && clock_now_ns() < deadline)
                usleep(1000);
}

bool spawner_receive(struct spawner *s)
{
        static struct control c;
        int r = control_receive(s->zygote, &c);
        control_drop(&c);
        s->loading &= r == SP_E_AGAIN;
        if (r != SP_E_LINK)
                return true;
        log_debug(LOG, "sessions load their drivers themselves");
        zygote_gone(s);
        return false;
}

int spawn_worker(struct spawner *s, const char *scratch_dir, const char *devices, const char *owner,
                 unsigned group, int control, int log, pid_t *ret_pid)
{
        pid_t between;
        *ret_pid = 0;
        size_t n = strlen(scratch_dir) + strlen(devices) + strlen(owner) + 3;
        char text[CONTROL_MAX];
        if (s->zygote >= 0 && n <= sizeof(text)) {
                n = (size_t)(stpcpy(text, scratch_dir) - text) + 1;
                n = (size_t)(stpcpy(text + n, devices) - text) + 1;
                n = (size_t)(stpcpy(text + n, owner) - text) + 1;
                if (control_send_fork(s->zygote, bytes_of(text, n), control, log) == 0)
                        return 0;
        }
        static char word[] = "--worker", option[] = "--devices";
        char *const first[] = { word, (char *)(uintptr_t)scratch_dir, (char *)(uintptr_t)owner,
                                NULL };
        /* If an option comes twice, the last one counts. */
        char *const last[] = { *devices ? option : NULL, (char *)(uintptr_t)devices, NULL };
        return run_self(s, first, last, group, control, log, &between);
}
