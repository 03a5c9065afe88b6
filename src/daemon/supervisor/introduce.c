#include "daemon/supervisor/introduce.h"

#include "base/log.h"
#include "daemon/control.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/net/socket.h"
#include "os/passing.h"

enum {
        AGAIN_MS = 1000, /* after a failure */
        ANEW_MS = 100,   /* after the dialler ended on purpose (files_outdated) */
};

void dialler_provide(struct supervisor *s)
{
        static char word[] = "--dialler", local[] = "1", remote[] = "0";
        if (s->dialler.pid || s->stopping || clock_now_ns() < s->dialler.again_ns)
                return;
        int r = helper_start(s, &s->dialler,
                             (char *[]){ word, s->listeners.local ? local : remote, NULL });
        if (r < 0) {
                log_error(LOG, "the dialler can't be started: %s", status_text(r));
                helper_gone(s, &s->dialler, AGAIN_MS);
                return;
        }
        list_each(w, &s->workers, struct worker, link) introduce(s, w);
}

bool dialler_ended(struct supervisor *s, pid_t pid, int status)
{
        bool meant = WIFEXITED(status) && !WEXITSTATUS(status);
        if (!helper_ended(s, &s->dialler, pid, meant ? ANEW_MS : AGAIN_MS))
                return false;
        if (!meant && !s->stopping)
                log_error(LOG, "the dialler has ended; it is started again");
        return true;
}

void introduce(struct supervisor *s, struct worker *w)
{
        const struct bytes nothing = { 0 };
        int pair[2];
        if (!s->dialler.pid || w->gone)
                return;
        if (!socket_pair_packets(pair)) {
                log_warn(LOG, "out of descriptors: a session gets no links to other servers");
                return;
        }
        /* Neither the dialler nor the supervisor takes descriptors from a worker. */
        passing_refuse(pair[0]);
        if (control_send(s->dialler.control, CONTROL_DIALLER, nothing, pair[0]) < 0 ||
            control_send(w->control, CONTROL_DIALLER, nothing, pair[1]) < 0)
                log_warn(LOG, "a session gets no links to other servers");
        (void)file_close(pair[0]);
        (void)file_close(pair[1]);
}
