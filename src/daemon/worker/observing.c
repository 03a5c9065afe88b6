#include "daemon/worker/observing.h"

#include <stdatomic.h>

#include "base/log.h"
#include "base/mem.h"
#include "loop/link.h"
#include "os/clock.h"
#include "os/thread.h"
#include "session/hello.h"

#define LOG "worker"

enum {
        OBSERVERS_MAX = 4,
        SLICE_MS = 100,   /* how soon a thread notices the session's end */
        SILENT_S = 30,    /* for an observer that says nothing */
        FAREWELL_S = 5,   /* for the records of a session that has ended */
        LAST_REQUEST = 1, /* of an answer that was not asked for */
};

struct observer {
        bool used;
        thread_id thread;
        struct conn *conn; /* until the thread has it */
        atomic_bool done;

        /* The thread's own. */
        struct session *session;
        struct link lanes[SESSION_LANES];
        uint64_t heard_ns, moved; /* when something last came or went, and how much had then */
        bool observes, answered;
};

static struct {
        struct server_loop *loop;
        struct observer all[OBSERVERS_MAX];
        atomic_bool over;
} observing;

/* ---- messages ------------------------------------------------------------------------------- */

static int on_clock_query(void *user, const struct wire_clock_query *m)
{
        struct observer *o = user;
        if (!session_has_room(o->session)) /* it asks, but does not take the answers */
                return SP_E_LIMIT;
        return session_send(o->session, clock_reply, .time_ns = m->time_ns,
                            .remote_ns = clock_now_ns());
}

static int on_trace_start(void *user, const struct wire_trace_start *m)
{
        struct observer *o = user;
        (void)m;
        if (o->observes)
                return 0;
        int r = server_loop_observe(observing.loop, true);
        o->observes = !r;
        return r;
}

static int answer(struct observer *o, uint64_t request)
{
        auto_clean(buf_fini) struct buf info = { 0 };
        o->answered = true;
        int r = server_loop_get_observed(observing.loop, &info);
        if (r < 0) /* none rather than half of it */
                info.size = 0;
        return session_send(o->session, trace, .request = request,
                            .threads = bytes_of(info.data, info.size));
}

static int on_trace_query(void *user, const struct wire_trace_query *m)
{
        struct observer *o = user;
        return o->observes && !o->answered ? answer(o, m->request) : SP_E_PROTO;
}

static int on_close(void *user, const struct wire_close *m)
{
        (void)user, (void)m;
        return SP_E_GONE;
}

static int on_message(void *user, struct bytes msg)
{
        static const struct wire_handlers handlers = {
                .clock_query = on_clock_query,
                .trace_start = on_trace_start,
                .trace_query = on_trace_query,
                .close = on_close,
        };
        return wire_dispatch(&handlers, user, msg);
}

/* An observer has no bulk data. */
static int on_place(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                    void **ret)
{
        (void)user, (void)transfer, (void)offset, (void)inlined, (void)len, (void)ret;
        return SP_E_PROTO;
}

static int on_arrived(void *user, uint64_t transfer, uint64_t offset, size_t len,
                      uint64_t *ret_below)
{
        (void)user, (void)transfer, (void)offset, (void)len, (void)ret_below;
        return SP_E_PROTO;
}

static const struct session_ops ops = { on_message, on_place, on_arrived };

/* ---- the thread ----------------------------------------------------------------------------- */

/* Send and receive. False: the observer is gone, or is to go. */
static bool go_on(struct observer *o, uint64_t *until_ns)
{
        const uint64_t second = 1000000000;
        struct link *k = &o->lanes[0];
        uint64_t now = clock_now_ns();
        if (atomic_load(&observing.over) && *until_ns == UINT64_MAX) {
                *until_ns = now + FAREWELL_S * second;
                if (!o->observes || (!o->answered && answer(o, LAST_REQUEST) < 0))
                        return false;
        }
        const struct session_stats *stats = session_get_stats(o->session);
        if (stats->bytes_sent + stats->bytes_received != o->moved)
                o->heard_ns = now;
        o->moved = stats->bytes_sent + stats->bytes_received;
        if (now >= *until_ns || now >= o->heard_ns + SILENT_S * second)
                return false;
        int r = link_flush(k, SIZE_MAX, NULL);
        if (r < 0 && r != SP_E_AGAIN)
                return false;
        (void)!link_wait(o->lanes, SLICE_MS);
        return link_receive(k, LINK_BUDGET, NULL) >= 0;
}

static void *observe(void *arg)
{
        struct observer *o = arg;
        uint64_t until_ns = UINT64_MAX;
        thread_name("spancl-observe");
        o->heard_ns = clock_now_ns();
        int r = session_new(&(struct session_params){ .ops = &ops, .user = o }, &o->session);
        if (r < 0)
                conn_close(o->conn);
        else
                r = link_up(&o->lanes[0], o->session, 0, o->conn, 0);
        while (r >= 0 && go_on(o, &until_ns))
                ;
        link_down(&o->lanes[0]);
        o->session = session_free(o->session);
        if (o->observes)
                (void)!server_loop_observe(observing.loop, false);
        atomic_store(&o->done, true);
        return NULL;
}

/* ---- the main thread ------------------------------------------------------------------------ */

static int reply(struct conn *conn, int status, const char *text)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        const struct wire_hello_reply m = {
                .version = status ? 0 : WIRE_VERSION,
                .status = status,
                .time_ns = clock_now_ns(),
                .text = bytes_str(text),
        };
        int r = hello_put_reply(&out, &m);
        struct iovec iov = { out.data, out.size };
        return r < 0 ? r : conn->ops->sendv(conn, &iov, 1) == (ssize_t)out.size ? 0 : SP_E_LINK;
}

/* Find a place that no thread uses. NULL: there is none. */
static struct observer *free_place(void)
{
        struct observer *found = NULL;
        for (size_t i = 0; i < OBSERVERS_MAX; i++) {
                struct observer *o = &observing.all[i];
                if (o->used && atomic_load(&o->done)) {
                        thread_join(o->thread);
                        *o = (struct observer){ 0 };
                }
                found = o->used ? found : o;
        }
        return found;
}

void observing_begin(struct server_loop *l, struct conn *conn)
{
        struct observer *o = free_place();
        int r = o ? reply(conn, 0, "")
                  : reply(conn, SP_E_LIMIT, "as many as may do so observe this session already");
        if (!o || r < 0) {
                conn_close(conn);
                return;
        }
        observing.loop = l;
        o->conn = conn;
        if (thread_start(&o->thread, false, observe, o) < 0) {
                log_warn(LOG, "no thread can be started for an observer");
                conn_close(conn);
                return;
        }
        o->used = true;
        log_info(LOG, "an observer has the session recorded");
}

void observing_end(void)
{
        atomic_store(&observing.over, true);
        for (size_t i = 0; i < OBSERVERS_MAX; i++)
                if (observing.all[i].used)
                        thread_join(observing.all[i].thread);
}
