#include "daemon/system/refusals.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/log.h"
#include "os/clock.h"
#include "sandbox/calls.h"

#define LOG "sandbox"

/* The kernel's structures, with room for later versions. */
union request {
        struct seccomp_notif notif;
        char space[512];
};

union response {
        struct seccomp_notif_resp resp;
        char space[512];
};

/* Take a line from the budget of all sessions. Only the supervisor's thread calls it. */
static bool has_budget(void)
{
        static uint64_t due_ns; /* the time at which the rate would have allowed all lines */
        uint64_t now = clock_now_ns();
        if (due_ns < now)
                due_ns = now;
        if (due_ns - now > (uint64_t)REFUSALS_LINES_ALL * REFUSALS_LINE_NS)
                return false;
        due_ns += REFUSALS_LINE_NS;
        return true;
}

static void report(struct refusals *r, int worker, const struct seccomp_data *call)
{
        char text[CALLS_TEXT_MAX];
        uint64_t key;
        bool expected = calls_describe(call, text, &key);
        for (unsigned i = 0; i < r->lines; i++)
                if (r->reported[i] == key)
                        return;
        if (r->lines == REFUSALS_LINES || !has_budget())
                return;
        r->reported[r->lines++] = key;
        log_at(expected ? LOG_INFO : LOG_WARN, LOG,
               "worker %d: the system call %s was refused (--sandbox-allow)", worker, text);
}

bool refusals_answer(struct refusals *r, int worker)
{
        union request request;
        union response response;
        memset(&request, 0, sizeof(request));
        memset(&response, 0, sizeof(response));
        struct pollfd p = { .fd = r->fd, .events = POLLIN };
        bool any = poll(&p, 1, 0) > 0 && (p.revents & POLLIN); /* else the ioctl might wait */
        if (any && ioctl(r->fd, SECCOMP_IOCTL_NOTIF_RECV, &request) == 0) {
                report(r, worker, &request.notif.data);
                response.resp.id = request.notif.id;
                response.resp.error = -EPERM;
                /* The send fails if the thread has ended meanwhile, and then needs no answer. */
                (void)ioctl(r->fd, SECCOMP_IOCTL_NOTIF_SEND, &response);
                if (++r->answers < REFUSALS_MAX)
                        return true;
                log_warn(LOG,
                         "worker %d: %d system calls were refused; further ones are not logged",
                         worker, REFUSALS_MAX);
        } else if (any ? errno == ENOENT || errno == EINTR : !p.revents) {
                return true; /* a signal has ended the thread or its call */
        }
        close(r->fd);
        r->fd = -1;
        return false;
}
