#include "loop/lane_thread.h"

#include <errno.h>

#include "base/mem.h"
#include "loop/spin.h"
#include "os/file.h"
#include "os/thread.h"
#include "os/wakeup.h"
#include "trace/trace.h"

enum {
        /* Two cores for each lane, one of which is often the other side's. */
        CORES_SOME = 4,
        CORES_MANY = 8,
        LANES_EACH = 3, /* with fewer cores, or where other links want them, too */
        /* Bytes in one direction before the other gets its turn. A thread that only received would
         * keep the other side waiting for data. */
        TURN = 256 << 10,
        /* A transfer is several bursts, between which the device or the other side works on the
         * data. */
        SPIN_LONGER = 4,
};

struct lane_thread {
        struct lane_thread_params params;
        struct spin spin;
        thread_id thread;
        int wake_fd;
        bool asleep, stop; /* the session's lock guards them */
};

unsigned lane_thread_lanes(size_t links)
{
        unsigned cores = thread_cores();
        unsigned lanes = cores >= CORES_MANY   ? SESSION_LANES - 1
                         : cores >= CORES_SOME ? LANES_EACH
                                               : 1;
        return links > 1 && lanes > LANES_EACH ? LANES_EACH : lanes;
}

bool lane_thread_takes(const struct conn *conn)
{
        return conn->ops->caps & TRANSPORT_WIDE;
}

/* Send and receive. Returns whether there is more to do at once. */
static bool work(struct lane_thread *c) REQUIRES(*c->params.lock)
{
        const struct lane_thread_params *p = &c->params;
        if (!p->link->conn)
                return false;
        const struct session_stats *stats = session_get_stats(p->link->session);
        uint64_t before = stats->bulk_received + stats->bulk_sent;
        int r = p->link->blocked ? 0 : link_flush(p->link, TURN, p->lock);
        bool more = r == SP_E_BUSY;
        if (r == 0 || r == SP_E_BUSY || r == SP_E_AGAIN)
                r = link_receive(p->link, TURN, p->lock);
        more |= r > 0;
        if (more) /* meanwhile the other side may have made room */
                p->link->blocked = false;
        if (r < 0) {
                bool known = !p->link->conn || p->link->doomed; /* somebody took it down */
                link_down(p->link);
                if (known)
                        return false;
        }
        if (stats->bulk_received + stats->bulk_sent != before)
                spin_hope(&c->spin);
        if (r < 0 || stats->bulk_received + stats->bulk_sent != before)
                p->moved(p->user, p->link, r < 0 ? r : 0);
        return more && r >= 0;
}

/* Stop polling the link's conn without the lock, and go to sleep. False: the link was taken down
 * meanwhile. */
static bool poll_others(struct lane_thread *c) EXCLUDES(*c->params.lock)
{
        link_lock_take(c->params.lock);
        link_try_end(c->params.link);
        bool there = c->params.link->conn;
        link_lock_release(c->params.lock);
        return there;
}

static void sleep_in_poll(struct lane_thread *c) REQUIRES(*c->params.lock)
{
        const struct lane_thread_params *p = &c->params;
        struct pollfd fds[3] = { { .fd = c->wake_fd, .events = POLLIN } };
        nfds_t n = 1 + (nfds_t)link_poll(p->link, fds + 1);
        struct conn *conn = link_poll_begin(p->link);
        c->asleep = true;
        link_lock_release(c->params.lock);
        struct spin_on on = { .fds = fds, .count = n, .conns = &conn, .conn_count = conn != NULL };
        int r = spin_poll(&c->spin, &on);
        if (!r && (!conn || poll_others(c))) {
                TRACE_SPAN(poll, n);
                if (spin_sleep(&c->spin, &on, UINT64_MAX) < 0 && errno != EINTR)
                        thread_yield();
        }
        if (fds[0].revents)
                wakeup_clear(c->wake_fd);
        link_lock_take(c->params.lock);
        if (r && conn)
                link_try_end(p->link);
        c->asleep = false;
        if (p->link->conn && conn_polled(p->link->conn, fds + 1, n - 1) & CONN_OUT)
                p->link->blocked = false;
}

static void *run(void *arg)
{
        struct lane_thread *c = arg;
        thread_name("spancl-bulk");
        link_lock_take(c->params.lock);
        while (!c->stop)
                /* Bytes that came while it received, unlocked, found it awake. */
                if (!work(c) && !c->stop && !link_can_send(c->params.link))
                        sleep_in_poll(c);
        link_lock_release(c->params.lock);
        return NULL;
}

int lane_thread_start(const struct lane_thread_params *params, struct lane_thread **ret)
{
        struct lane_thread *c = mem_zalloc(sizeof(*c));
        if (!c)
                return SP_E_NOMEM;
        c->params = *params;
        c->wake_fd = wakeup_new();
        if (c->wake_fd < 0) {
                mem_free(c);
                return SP_E_LIMIT;
        }
        spin_init(&c->spin, SPIN_LONGER * params->spin_ns, 0);
        spin_never_yield(&c->spin); /* what many threads copy does not come sooner by their turns */
        int r = thread_start(&c->thread, false, run, c);
        if (r < 0) {
                file_close(c->wake_fd);
                mem_free(c);
                return r;
        }
        *ret = c;
        return 0;
}

void lane_thread_rouse(struct lane_thread *c)
{
        if (!c->asleep)
                return;
        c->asleep = false;
        wakeup_set(c->wake_fd);
}

void lane_thread_request_stop(struct lane_thread *c)
{
        if (!c)
                return;
        c->stop = true;
        lane_thread_rouse(c);
}

struct lane_thread *lane_thread_free(struct lane_thread *c)
{
        if (!c)
                return NULL;
        thread_join(c->thread);
        file_close(c->wake_fd);
        mem_free(c);
        return NULL;
}

void lane_threads_rouse(struct lane_thread *const *lane_threads, const struct session *s)
{
        size_t roused = 0;
        for (unsigned i = 1; i < session_lanes_used(s); i++) {
                struct lane_thread *c = lane_threads[i];
                if (!c || !c->asleep || !c->params.link->conn)
                        continue;
                /* The place that it waits for may be there now. */
                if (c->params.link->waiting)
                        lane_thread_rouse(c);
                else if (!c->params.link->blocked && session_lane_has_pending(s, i) &&
                         roused < session_bulk_lanes(s, SESSION_LANES)) {
                        lane_thread_rouse(c);
                        roused++;
                }
        }
}
