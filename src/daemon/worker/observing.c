#include "daemon/worker/observing.h"

#include <stdatomic.h>

#include "base/log.h"
#include "base/mem.h"
#include "loop/link.h"
#include "os/clock.h"
#include "os/condition.h"
#include "os/thread.h"
#include "session/hello.h"

#define LOG "worker"

enum {
        OBSERVERS_MAX = 4,
        SLICE_MS = 100, /* how soon a thread notices the session's end */
        SILENT_S = 30,  /* for an observer that says nothing */
        LONGEST_S =
                24 * 60 * 60 + 60, /* for a recording: a minute longer than `--for` can ask for */
        FAREWELL_SILENT_S = 2,     /* after the session's end, without any byte that is sent */
        FAREWELL_S = 6,   /* the same in all; END_SECONDS of the worker is the bound for both */
        LAST_REQUEST = 1, /* of an answer that was not asked for */
        REPLIES_WITH_ANSWER = 64, /* clock_reply messages that may wait behind the records */
};

struct observer {
        bool used;
        uint64_t number; /* the supervisor's, for its key */
        thread_id thread;
        struct conn *conn; /* until the thread has it */
        atomic_bool dropped, done;
        bool parted; /* it no longer uses the server loop; guarded by observing.lock */

        /* The thread's own. */
        struct session *session;
        struct link lanes[SESSION_LANES];
        struct silence_clock acks;
        uint64_t begun_ns;
        uint64_t heard_ns, moved; /* when bytes last came or went, and how many had then */
        uint64_t farewell_ns;     /* when its farewell began; 0: it has not */
        unsigned replies;         /* clock_reply messages since the answer */
        bool observes, asked, answered;
};

static struct {
        struct server_loop *loop;
        struct observer all[OBSERVERS_MAX];
        atomic_bool over;
        struct lock lock;
        struct condition changed;
} observing = { .lock = LOCK_INIT };

/* ---- messages ------------------------------------------------------------------------------- */

static int on_clock_query(void *user, const struct wire_clock_query *m)
{
        struct observer *o = user;
        /* It asks, but does not take the answers. Behind the records, which fill the window, a few may wait. */
        if (!session_has_room(o->session) && (!o->answered || ++o->replies > REPLIES_WITH_ANSWER))
                return SP_E_LIMIT;
        return session_send(o->session, clock_reply, .time_ns = m->time_ns,
                            .remote_ns = clock_now_ns());
}

static int on_trace_start(void *user, const struct wire_trace_start *m)
{
        struct observer *o = user;
        (void)m;
        if (o->observes || o->farewell_ns)
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

/* The session may end while the query is on its way. Then the answer has been sent already. */
static int on_trace_query(void *user, const struct wire_trace_query *m)
{
        struct observer *o = user;
        if (o->asked || (!o->observes && !o->answered))
                return SP_E_PROTO;
        o->asked = true;
        return o->answered ? 0 : answer(o, m->request);
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

/* The observer uses the server loop no longer. */
static void part(struct observer *o)
{
        if (o->observes)
                (void)!server_loop_observe(observing.loop, false);
        o->observes = false;
        lock_take(&observing.lock);
        o->parted = true;
        lock_release(&observing.lock);
        condition_broadcast(&observing.changed);
}

/* Send the records, unasked. False: the observer has nothing to wait for. */
static bool begin_farewell(struct observer *o, uint64_t now)
{
        bool stays = o->answered || (o->observes && answer(o, LAST_REQUEST) == 0);
        o->farewell_ns = o->heard_ns = now;
        part(o);
        return stays;
}

/* Has the other host all that was sent? Closing the connection then loses nothing. */
static bool is_sent(struct observer *o, uint64_t now)
{
        return !session_unsent(o->session) && !session_lane_has_pending(o->session, 0) &&
               conn_silence(o->lanes[0].conn, &o->acks, now) != SILENCE_OWES;
}

static bool is_late(struct observer *o, uint64_t now)
{
        const uint64_t second = 1000000000;
        const struct session_stats *stats = session_get_stats(o->session);
        uint64_t moved = stats->bytes_sent + (o->farewell_ns ? 0 : stats->bytes_received);
        if (moved != o->moved)
                o->heard_ns = now;
        o->moved = moved;
        if (o->farewell_ns && now >= o->farewell_ns + FAREWELL_S * second)
                return true;
        return now >= o->heard_ns + (o->farewell_ns ? FAREWELL_SILENT_S : SILENT_S) * second;
}

/* Send and receive. False: the observer is gone, or is to go. */
static bool go_on(struct observer *o)
{
        struct link *k = &o->lanes[0];
        uint64_t now = clock_now_ns();
        bool ends = atomic_load(&observing.over) ||
                    now >= o->begun_ns + LONGEST_S * UINT64_C(1000000000);
        if (atomic_load(&o->dropped))
                return false;
        if (is_late(o, now)) {
                log_info(LOG, o->farewell_ns ? "an observer does not take its records in time"
                                             : "an observer is silent");
                return false;
        }
        if (ends && !o->farewell_ns && !begin_farewell(o, now))
                return false;
        int r = link_flush(k, SIZE_MAX, NULL);
        if ((r < 0 && r != SP_E_AGAIN) || (o->farewell_ns && is_sent(o, now)))
                return false;
        (void)!link_wait(o->lanes, SLICE_MS);
        return link_receive(k, LINK_BUDGET, NULL) >= 0;
}

static void *observe(void *arg)
{
        struct observer *o = arg;
        thread_name("spancl-observe");
        o->begun_ns = o->heard_ns = clock_now_ns();
        int r = session_new(&(struct session_params){ .ops = &ops, .user = o }, &o->session);
        if (r < 0)
                conn_close(o->conn);
        else
                r = link_up(&o->lanes[0], o->session, 0, o->conn, 0);
        while (r >= 0 && go_on(o))
                ;
        part(o);
        link_down(&o->lanes[0]);
        o->session = session_free(o->session);
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

void observing_begin(struct server_loop *l, struct conn *conn, uint64_t number)
{
        struct observer *o = free_place();
        int r = o ? reply(conn, 0, "")
                  : reply(conn, SP_E_LIMIT, "as many as may do so observe this session already");
        if (!o || r < 0) {
                conn_close(conn);
                return;
        }
        if (!observing.loop) { /* later on, threads read it */
                condition_init(&observing.changed);
                observing.loop = l;
        }
        o->conn = conn;
        o->number = number;
        if (thread_start(&o->thread, false, observe, o) < 0) {
                log_warn(LOG, "no thread can be started for an observer");
                conn_close(conn);
                return;
        }
        o->used = true;
        log_info(LOG, "an observer has the session recorded");
}

void observing_drop(uint64_t number)
{
        for (size_t i = 0; i < OBSERVERS_MAX; i++)
                if (observing.all[i].used && observing.all[i].number == number)
                        atomic_store(&observing.all[i].dropped, true);
}

void observing_end(void)
{
        atomic_store(&observing.over, true);
        lock_take(&observing.lock);
        for (size_t i = 0; i < OBSERVERS_MAX; i++)
                while (observing.all[i].used && !observing.all[i].parted)
                        condition_wait(&observing.changed, &observing.lock);
        lock_release(&observing.lock);
}

void observing_wait(void)
{
        for (size_t i = 0; i < OBSERVERS_MAX; i++)
                if (observing.all[i].used)
                        thread_join(observing.all[i].thread);
        if (observing.loop)
                condition_fini(&observing.changed);
}
