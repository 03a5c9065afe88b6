#include "support/daemon.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "support/check.h"

enum { ARGS_MAX = 16 };

/* Start without waiting; `ready` is the writing end of a pipe, or -1. */
static void launch(struct daemon *d, const char *folder, char *const *more, int ready)
{
        static char ready_fd[] = "--ready-fd";
        char program[512], number[16];
        const char *build = getenv("SPANCL_BUILD_DIR");
        snprintf(program, sizeof(program), "%s/bin/spancld", build ? build : ".");
        snprintf(number, sizeof(number), "%d", ready);
        char *args[ARGS_MAX] = { program, (char[]){ "--backend" }, (char[]){ "reference" } };
        int n = 3;
        if (ready >= 0) {
                args[n++] = ready_fd;
                args[n++] = number;
        }
        for (int i = 0; more && more[i] && n < ARGS_MAX - 1; i++)
                args[n++] = more[i];
        snprintf(d->folder, sizeof(d->folder), "/tmp/spancl-test.XXXXXX");
        if (folder)
                snprintf(d->folder, sizeof(d->folder), "%s", folder);
        else
                assert_non_null(mkdtemp(d->folder));
        snprintf(d->log, sizeof(d->log), "%s/log", d->folder);
        d->pid = fork();
        assert_true(d->pid >= 0);
        if (d->pid)
                return;
        int log = open(d->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(log, STDERR_FILENO);
        dup2(log, STDOUT_FILENO);
        setenv("TMPDIR", d->folder, 1);
        if (ready >= 0)
                fcntl(ready, F_SETFD, 0);
        execv(program, args);
        _exit(127);
}

void daemon_start_in(struct daemon *d, const char *folder, char *const *more)
{
        int fds[2];
        char text[64] = "";
        static char listen[] = "--listen", anywhere[] = "localhost:0", log[] = "--log",
                    info[] = "info";
        char *args[ARGS_MAX] = { log, info };
        int n = 2;
        if (!more || !more[0] || strcmp(more[0], "--socket")) {
                args[n++] = listen;
                args[n++] = anywhere;
        }
        for (int i = 0; more && more[i]; i++)
                args[n++] = more[i];
        assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
        launch(d, folder, args, fds[1]);
        close(fds[1]);
        assert_true(read(fds[0], text, sizeof(text) - 1) > 0);
        close(fds[0]);
        assert_int_equal(sscanf(text, "ready %u\n", &d->port), 1);
        snprintf(d->address, sizeof(d->address), "tcp:localhost:%u", d->port);
}

void daemon_start(struct daemon *d, char *const *more)
{
        daemon_start_in(d, NULL, more);
}

int daemon_wait_end(struct daemon *d)
{
        for (int i = 0; i < 1000; i++) {
                int status;
                if (waitpid(d->pid, &status, WNOHANG) == d->pid)
                        return status;
                usleep(20000);
        }
        kill(d->pid, SIGKILL);
        waitpid(d->pid, NULL, 0);
        return -1;
}

/* The caller frees it. */
static char *read_log(const struct daemon *d)
{
        char *text = mem_zalloc(1 << 20);
        FILE *f = fopen(d->log, "r");
        if (f) {
                size_t n = fread(text, 1, (1 << 20) - 1, f);
                text[n] = 0;
                fclose(f);
        }
        return text;
}

bool daemon_logged(const struct daemon *d, const char *what)
{
        char *text = read_log(d);
        bool found = strstr(text, what) != NULL;
        if (!found)
                print_error("not in the log: %s\n%s\n", what, text);
        mem_free(text);
        return found;
}

bool daemon_comes_to_log(const struct daemon *d, const char *what)
{
        for (int i = 0; i < 500; i++) {
                char *text = read_log(d);
                bool found = strstr(text, what) != NULL;
                mem_free(text);
                if (found)
                        return true;
                usleep(20000);
        }
        return daemon_logged(d, what);
}

int daemon_count_scratch(const struct daemon *d)
{
        int n = 0;
        DIR *dir = opendir(d->folder);
        for (struct dirent *e; dir && (e = readdir(dir));)
                n += !strncmp(e->d_name, "spancld.", 8);
        if (dir)
                closedir(dir);
        return n;
}

bool daemon_has_scratch(const struct daemon *d, int most)
{
        for (int i = 0; i < 500 && daemon_count_scratch(d) > most; i++)
                usleep(20000);
        return daemon_count_scratch(d) <= most;
}

int daemon_run(struct daemon *d, char *const *args)
{
        launch(d, NULL, args, -1);
        int status = daemon_wait_end(d);
        return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

void daemon_forget(struct daemon *d)
{
        /* Files that drivers were writing when their worker was killed may still be there. */
        char command[512];
        snprintf(command, sizeof(command), "rm -rf '%s'", d->folder);
        assert_int_equal(system(command), 0);
}

void daemon_stop(struct daemon *d)
{
        kill(d->pid, SIGTERM);
        int status = daemon_wait_end(d);
        if (!WIFEXITED(status) || WEXITSTATUS(status))
                daemon_logged(d, "(a clean end)");
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
        assert_true(daemon_has_scratch(d, 0));
        daemon_forget(d);
}

int daemon_children(const struct daemon *d, pid_t out[DAEMON_CHILDREN_MAX])
{
        char path[64];
        int n = 0;
        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)d->pid, (int)d->pid);
        FILE *f = fopen(path, "r");
        while (f && n < DAEMON_CHILDREN_MAX && fscanf(f, "%d", &out[n]) == 1)
                n++;
        if (f)
                fclose(f);
        return n;
}

pid_t daemon_warm_worker(const struct daemon *d)
{
        pid_t all[DAEMON_CHILDREN_MAX];
        for (int i = 0; i < 500; i++) {
                char *text = read_log(d);
                int n = daemon_children(d, all);
                char ready[64];
                for (int k = n - 1; k >= 0; k--) {
                        snprintf(ready, sizeof(ready), "worker %d is ready", (int)all[k]);
                        char taken[64];
                        snprintf(taken, sizeof(taken), "worker %d takes", (int)all[k]);
                        if (strstr(text, ready) && !strstr(text, taken)) {
                                mem_free(text);
                                return all[k];
                        }
                }
                mem_free(text);
                usleep(20000);
        }
        fail_msg("no warm worker");
        return -1;
}

void daemon_join(const struct daemon *d, struct probe *p)
{
        probe_init(p, d->address);
        assert_int_equal(probe_attach(p, 0), 0);
}

void daemon_assert_serves(const struct daemon *d)
{
        struct probe p;
        probe_init(&p, d->address);
        int r = probe_attach(&p, 0);
        if (r) {
                char *log = read_log(d);
                print_error("%s\n%s", p.reply.text, log);
                mem_free(log);
        }
        assert_int_equal(r, 0);
        assert_int_equal(probe_ping(&p), 0);
        probe_fini(&p);
}
