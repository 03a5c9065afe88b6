/* The birth and the end of a worker, and work beside the supervisor. */
#include <stdio.h>

#include "daemon/system/birth.h"
#include "daemon/system/child.h"
#include "daemon/system/lifetime.h"
#include "daemon/system/orphans.h"
#include "daemon/system/refusals.h"
#include "daemon/system/rights.h"
#include "daemon/worker/worker.h"
#include "os/process/process.h"
#include "os/windows/process/children.h"

/* ---- birth ----------------------------------------------------------------------------------- */

/* The supervisor has the number of its child, which is in its job already. */
bool birth(const struct config_options *o, pid_t supervisor)
{
        (void)o, (void)supervisor;
        return true;
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* The worker's job object ends it with the supervisor. */
void lifetime_of_supervisor(void)
{
}

static void CALLBACK on_overdue(void *user, BOOLEAN timed_out)
{
        (void)user, (void)timed_out;
        process_exit(WORKER_OVERDUE);
}

void lifetime_limit(unsigned seconds)
{
        HANDLE timer;
        (void)CreateTimerQueueTimer(&timer, NULL, on_overdue, NULL, seconds * 1000, 0,
                                    WT_EXECUTEONLYONCE);
}

/* exit() would end the thread of lifetime_limit first. */
int lifetime_end(int status)
{
        (void)fflush(NULL);
        process_exit(status);
}

/* The supervisor ends the session and its copies of the connections. */
void lifetime_give_up(int status)
{
        process_exit(status);
}

/* A session's job object has one process, and ends with the session. */
void orphans_adopt(void)
{
}

bool orphans_end(struct supervisor *s)
{
        (void)s;
        return false;
}

/* No filter of system calls refuses any. */
bool refusals_answer(struct refusals *r, int worker)
{
        (void)r, (void)worker;
        return false;
}

/* ---- work beside the supervisor -------------------------------------------------------------- */

struct work {
        void (*run)(void *user);
        void *user;
};

static DWORD WINAPI run(void *arg)
{
        struct work w = *(struct work *)arg;
        HeapFree(GetProcessHeap(), 0, arg);
        (void)SetThreadPriority(GetCurrentThread(), THREAD_PRIORITY_LOWEST);
        w.run(w.user);
        return 0;
}

/* A thread that counts as a child. It must not use what the supervisor changes meanwhile. It has no time limit, because
 * a thread that is ended from outside may hold locks. */
pid_t child_fork(void (*work)(void *user), void *user, unsigned limit_s)
{
        DWORD id;
        struct work *w = HeapAlloc(GetProcessHeap(), 0, sizeof(*w));
        (void)limit_s;
        if (!w)
                return -1;
        *w = (struct work){ work, user };
        HANDLE thread = CreateThread(NULL, 0, run, w, CREATE_SUSPENDED, &id);
        if (!thread) {
                HeapFree(GetProcessHeap(), 0, w);
                return -1;
        }
        if (!children_add((pid_t)id, thread)) /* it never runs */
                return -1;
        (void)ResumeThread(thread);
        return (pid_t)id;
}

/* ---- rights ---------------------------------------------------------------------------------- */

bool rights_become(const char *name)
{
        return !*name;
}

bool rights_become_thread(unsigned user, unsigned group)
{
        (void)user, (void)group;
        return false;
}

void rights_gain_none(void)
{
}

int rights_give_up(unsigned files)
{
        (void)files;
        return 0;
}
