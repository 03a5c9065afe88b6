#include "os/process/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Make the pipe and the child. Returns 0 in the child, with the pipe's writing end in *ret_to. */
static int start(struct child *ret, int *ret_to)
{
        int ends[2];
        if (pipe(ends) < 0)
                return SP_E_LIMIT;
        int id = fork();
        if (!id) {
                close(ends[0]);
                *ret_to = ends[1];
                return 0;
        }
        close(ends[1]);
        if (id < 0) {
                int error = errno;
                close(ends[0]);
                errno = error;
                return SP_E_LIMIT;
        }
        *ret = (struct child){ .id = id, .output = ends[0] };
        return id;
}

int child_start(char *const argv[], int (*failed)(char *const argv[]), struct child *ret)
{
        int to, r = start(ret, &to);
        if (r)
                return r < 0 ? r : 0;
        dup2(to, STDOUT_FILENO);
        close(to);
        execvp(argv[0], argv);
        _exit(failed(argv));
}

int child_run(int (*run)(void *user, int to), void *user, unsigned limit_s, struct child *ret)
{
        int to;
        fflush(NULL); /* before the copy has the same text */
        int r = start(ret, &to);
        if (r)
                return r < 0 ? r : 0;
        alarm(limit_s);
        exit(run(user, to));
}

enum child_end child_wait(struct child *c, int *ret_number)
{
        int status;
        close(c->output);
        c->output = -1;
        if (waitpid(c->id, &status, 0) < 0)
                return CHILD_LOST;
        *ret_number = WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status);
        return WIFEXITED(status)             ? CHILD_EXITED
               : WTERMSIG(status) == SIGALRM ? CHILD_TOO_LONG
                                             : CHILD_KILLED;
}
