#include "daemon/system/lifetime.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "daemon/control.h"
#include "daemon/worker/worker.h"
#include "os/net/socket.h"
#include "os/process/process.h"

enum { ORPHAN_SECONDS = 5 }; /* to clean up after the supervisor died */

/* The supervisor died. The main thread notices that too and cleans up, but may hang in a driver. */
static void on_orphaned(int sig)
{
        (void)sig;
        alarm(ORPHAN_SECONDS);
}

/* Exit. The first process of a namespace needs a handler: other signals do not end it. */
static void on_overdue(int sig)
{
        (void)sig;
        _exit(WORKER_OVERDUE);
}

void lifetime_of_supervisor(void)
{
        struct sigaction orphaned = { .sa_handler = on_orphaned, .sa_flags = SA_RESTART };
        struct sigaction overdue = { .sa_handler = on_overdue };
        sigemptyset(&orphaned.sa_mask);
        sigemptyset(&overdue.sa_mask);
        sigaction(SIGHUP, &orphaned, NULL);
        sigaction(SIGALRM, &overdue, NULL);
        prctl(PR_SET_PDEATHSIG, SIGHUP);
}

void lifetime_limit(unsigned seconds)
{
        alarm(seconds);
}

int lifetime_end(int status)
{
        return status;
}

void lifetime_give_up(int status)
{
        uint64_t end = process_files_max();
        for (int fd = CONTROL_FD + 1; (uint64_t)fd < end; fd++)
                socket_shut(fd);
        process_exit(status);
}
