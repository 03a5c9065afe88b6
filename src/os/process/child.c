#include "os/process/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void close_end(int fd)
{
        if (fd >= 0)
                close(fd);
}

/* Make the child, and the pipe if `piped`. Returns 0 in the child, with the pipe's writing end, or -1, in *ret_to. */
static int start(bool piped, struct child *ret, int *ret_to)
{
        int ends[2] = { -1, -1 };
        if (piped && pipe(ends) < 0)
                return SP_E_LIMIT;
        int id = fork();
        if (!id) {
                close_end(ends[0]);
                *ret_to = ends[1];
                return 0;
        }
        close_end(ends[1]);
        if (id < 0) {
                int error = errno;
                close_end(ends[0]);
                errno = error;
                return SP_E_LIMIT;
        }
        *ret = (struct child){ .id = id, .output = ends[0] };
        return id;
}

int child_start(char *const argv[], bool capture, int (*failed)(char *const argv[]),
                struct child *ret)
{
        int to, r = start(capture, ret, &to);
        if (r)
                return r < 0 ? r : 0;
        if (capture) {
                dup2(to, STDOUT_FILENO);
                close(to);
        }
        execvp(argv[0], argv);
        _exit(failed(argv));
}

int child_run(int (*run)(void *user, int to), void *user, unsigned limit_s, struct child *ret)
{
        int to;
        fflush(NULL); /* before the copy has the same text */
        int r = start(true, ret, &to);
        if (r)
                return r < 0 ? r : 0;
        alarm(limit_s);
        exit(run(user, to));
}

enum child_end child_wait(struct child *c, int *ret_number)
{
        int status;
        close_end(c->output);
        c->output = -1;
        if (waitpid(c->id, &status, 0) < 0)
                return CHILD_LOST;
        *ret_number = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
        return WIFEXITED(status)             ? CHILD_EXITED
               : WTERMSIG(status) == SIGALRM ? CHILD_TOO_LONG
                                             : CHILD_KILLED;
}
