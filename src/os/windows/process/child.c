#include "os/process/child.h"

#include <errno.h>
#include <io.h>
#include <signal.h>

#include "os/file.h"
#include "os/windows/process/start.h"

/* The number of a child is its handle, which has at most 30 bits: the system gives small multiples of 4. The number of
 * a program that could not be started is NOT_STARTED with its exit status. */
enum { NOT_STARTED = 1 << 30 };

int child_start(char *const argv[], bool capture, int (*failed)(char *const argv[]),
                struct child *ret)
{
        int ends[2] = { -1, -1 };
        HANDLE process;
        if (capture && !file_pipe(ends))
                return SP_E_LIMIT;
        bool ok = start_program(argv, capture ? (HANDLE)_get_osfhandle(ends[1]) : NULL, &process);
        int id = ok ? (int)(intptr_t)process : NOT_STARTED | failed(argv);
        if (capture)
                (void)file_close(ends[1]);
        *ret = (struct child){ .id = id, .output = ends[0] };
        return 0;
}

/* Windows can't copy a process. */
int child_run(int (*run)(void *user, int to), void *user, unsigned limit_s, struct child *ret)
{
        (void)run, (void)user, (void)limit_s, (void)ret;
        errno = ENOSYS;
        return SP_E_LIMIT;
}

enum child_end child_wait(struct child *c, int *ret_number)
{
        DWORD status;
        if (c->output >= 0)
                (void)file_close(c->output);
        c->output = -1;
        if (c->id & NOT_STARTED) {
                *ret_number = c->id & ~NOT_STARTED;
                return CHILD_EXITED;
        }
        if (!start_wait((HANDLE)(intptr_t)c->id, &status))
                return CHILD_LOST;
        /* The system has no signals: a fault is an exit status that begins with 0xC. */
        *ret_number = status == STATUS_CONTROL_C_EXIT ? SIGINT
                      : status >= 0xC0000000          ? SIGSEGV
                                                      : (int)status;
        return status >= 0xC0000000 ? CHILD_KILLED : CHILD_EXITED;
}
