#include "daemon/supervisor/introduce.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/log.h"
#include "daemon/control.h"
#include "os/clock.h"
#include "os/passing.h"

enum {
        AGAIN_MS = 1000, /* after a failure */
        ANEW_MS = 100,   /* after the dialler ended on purpose (files_outdated) */
};

static void gone(struct supervisor *s)
{
        if (s->dialler.control >= 0)
                close(s->dialler.control);
        child_log_close(&s->dialler.log, DIALLER_NAME, clock_now_ns());
        s->dialler = (struct dialler_process){
                .control = -1,
                .log.fd = -1,
                .again_ns = clock_now_ns() + AGAIN_MS * MS,
        };
}

static int start(struct supervisor *s)
{
        static char word[] = "--dialler";
        int pair[2], log;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return SP_E_LIMIT;
        s->dialler.control = pair[0];
        s->dialler.log_source.kind = SOURCE_DIALLER_LOG;
        int r = child_log_open(&s->dialler.log, &s->spawner.log_budget, &log);
        if (!r) {
                r = run_self(&s->spawner, (char *[]){ word, NULL }, (char *[]){ NULL }, pair[1],
                             log, &s->dialler.pid);
                close(log);
        }
        close(pair[1]);
        return r ? r : supervisor_watch(s, s->dialler.log.fd, &s->dialler.log_source);
}

void dialler_provide(struct supervisor *s)
{
        if (s->dialler.pid || s->stopping || clock_now_ns() < s->dialler.again_ns)
                return;
        int r = start(s);
        if (r < 0) {
                log_error(LOG, "the dialler can't be started: %s", status_text(r));
                s->dialler.pid = 0;
                gone(s);
                return;
        }
        s->dialler.again_ns = UINT64_MAX;
        list_each(w, &s->workers, struct worker, link) introduce(s, w);
}

uint64_t dialler_deadline(const struct supervisor *s)
{
        return s->dialler.again_ns;
}

bool dialler_ended(struct supervisor *s, pid_t pid, int status)
{
        if (!pid || pid != s->dialler.pid)
                return false;
        gone(s);
        if (WIFEXITED(status) && !WEXITSTATUS(status))
                s->dialler.again_ns = clock_now_ns() + ANEW_MS * MS;
        else if (!s->stopping)
                log_error(LOG, "the dialler has ended; it is started again");
        return true;
}

void dialler_stop(struct supervisor *s)
{
        pid_t pid = s->dialler.pid;
        gone(s);
        if (!pid)
                return;
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
}

void introduce(struct supervisor *s, struct worker *w)
{
        const struct bytes nothing = { 0 };
        int pair[2];
        if (!s->dialler.pid || w->gone)
                return;
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0) {
                log_warn(LOG, "out of descriptors: a session gets no links to other servers");
                return;
        }
        /* Neither the dialler nor the supervisor takes descriptors from a worker. */
        passing_refuse(pair[0]);
        if (control_send(s->dialler.control, CONTROL_DIALLER, nothing, pair[0]) < 0 ||
            control_send(w->control, CONTROL_DIALLER, nothing, pair[1]) < 0)
                log_warn(LOG, "a session gets no links to other servers");
        close(pair[0]);
        close(pair[1]);
}
