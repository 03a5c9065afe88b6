/* The connections of the session: made, moved, lost and made again. */
#include "session/hello.h"
#include "state.h"

enum {
        TRY_FIRST_MS = 100, /* until lost connections are made again, doubled each time */
        TRY_MAX_MS = 2000,
        WAIT_MAX_MS = 1000,
        HELLO_MS = 5000, /* the answer to a hello */
        ANSWER_MS = 10000,
        EARLY_MAX = 768, /* bytes of messages that go right behind a hello */
        GATHER = 256,    /* smaller pieces are sent together */
};

static const struct spancl_nano_transport *transport(void)
{
        return nano->config.transport;
}

static void wait_ms(uint64_t ms)
{
        const unsigned most = ms < WAIT_MAX_MS ? (unsigned)ms : WAIT_MAX_MS;
        nano->link.now_ms = transport()->wait(transport()->user, most);
}

void nano_end(int status)
{
        if (nano->status)
                return;
        nano->status = status;
        session_end(nano->session, status);
        session_lane_down(nano->session, 0);
        session_lane_down(nano->session, 1);
        for (size_t i = 0; i < NANO_TRANSFERS; i++)
                if (nano->transfers[i].bulk.transfer)
                        nano_transfer_end(&nano->transfers[i], CL_DEVICE_NOT_AVAILABLE);
        for (size_t i = 0; i < NANO_EVENTS; i++)
                if (nano->events[i].object.refs)
                        nano_event_end(&nano->events[i], CL_DEVICE_NOT_AVAILABLE);
}

/* The connections are lost. Try again at once if they carried messages, else after a pause. */
static void lose(void)
{
        struct nano_link *l = &nano->link;
        const uint64_t progress =
                session_next_seq(nano->session) + session_acked_seq(nano->session);
        session_lane_down(nano->session, 0);
        session_lane_down(nano->session, 1);
        l->up[0] = l->up[1] = false;
        l->next_try_ms = l->now_ms;
        if (progress > l->progress || !l->pause_ms) {
                l->progress = progress;
                l->lost_ms = l->now_ms;
                l->pause_ms = TRY_FIRST_MS;
                return;
        }
        /* Connections can be made, but the server answers nothing on them. */
        if (nano->config.retry_ms && l->pause_ms == TRY_MAX_MS &&
            l->now_ms - l->lost_ms >= nano->config.retry_ms) {
                nano_end(SP_E_LINK);
                return;
        }
        l->next_try_ms += l->pause_ms;
        l->pause_ms = 2 * l->pause_ms < TRY_MAX_MS ? 2 * l->pause_ms : TRY_MAX_MS;
}

/* ---- hello ------------------------------------------------------------------------------------ */

static int send_whole(unsigned lane, struct bytes data, uint64_t until_ms)
{
        const uint8_t *p = data.data;
        for (size_t at = 0; at < data.size;) {
                int n = transport()->send(transport()->user, lane, p + at, data.size - at);
                if (n < 0 || (size_t)n > data.size - at || nano->link.now_ms >= until_ms)
                        return SP_E_LINK;
                at += (size_t)n;
                if (!n)
                        wait_ms(until_ms - nano->link.now_ms);
        }
        return 0;
}

static int receive_whole(unsigned lane, uint8_t *to, size_t size, uint64_t until_ms)
{
        for (size_t at = 0; at < size;) {
                int n = transport()->receive(transport()->user, lane, to + at, size - at);
                if (n < 0 || (size_t)n > size - at || nano->link.now_ms >= until_ms)
                        return SP_E_LINK;
                at += (size_t)n;
                if (!n)
                        wait_ms(until_ms - nano->link.now_ms);
        }
        return 0;
}

static int put_hello(struct buf *b, unsigned lane)
{
        const struct wire_hello m = {
                .version_min = WIRE_VERSION,
                .version_max = WIRE_VERSION,
                .lane = lane,
                .session_hi = nano->session_id[0],
                .session_lo = nano->session_id[1],
                .key_hi = nano->key[0],
                .key_lo = nano->key[1],
                .next_seq = lane ? 0 : session_next_seq(nano->session),
                .generation = nano->link.generation,
                .name = bytes_str(nano->config.name ? nano->config.name : "nano"),
        };
        return hello_put(b, &m);
}

/* Exchange hellos on a new connection. SP_E_*. */
static int greet(unsigned lane, uint64_t *ret_next_seq)
{
        uint8_t *at = (uint8_t *)nano->hello;
        struct buf b = { .data = at, .cap = sizeof(nano->hello) };
        const uint64_t until = nano->link.now_ms + HELLO_MS;
        struct wire_hello_reply m;
        int r = put_hello(&b, lane);
        const size_t hello = b.size;
        if (!r && !lane && nano->link.generation)
                r = session_early(nano->session, EARLY_MAX, &b);
        /* Two pieces: the server hands a connection with TLS on where a record ends. */
        if (!r)
                r = send_whole(lane, bytes_of(b.data, hello), until);
        if (!r)
                r = send_whole(lane, bytes_of(b.data + hello, b.size - hello), until);
        if (!r)
                r = receive_whole(lane, at, HELLO_PREFIX, until);
        const int size = r ? r : hello_size(bytes_of(at, HELLO_PREFIX));
        if (size < 0)
                return size;
        if ((size_t)size > sizeof(nano->hello) || size < HELLO_PREFIX)
                return SP_E_PROTO;
        r = receive_whole(lane, at + HELLO_PREFIX, (size_t)size - HELLO_PREFIX, until);
        if (!r)
                r = hello_get_reply(bytes_of(at, (size_t)size), &m);
        if (r)
                return r;
        if (m.status)
                return m.status < 0 && m.status > -20000 ? (int)m.status : SP_E_PROTO;
        if (m.version != WIRE_VERSION || m.features || m.fabric.size)
                return SP_E_PROTO;
        *ret_next_seq = m.next_seq;
        return 0;
}

/* ---- lanes up --------------------------------------------------------------------------------- */

static int attach(unsigned lane)
{
        struct session *s = nano->session;
        uint64_t next_seq = 0;
        wait_ms(0);
        int r = transport()->open(transport()->user, lane) < 0 ? SP_E_LINK : 0;
        wait_ms(0);
        if (!r)
                r = greet(lane, &next_seq);
        if (!r)
                r = session_lane_up(s, lane, next_seq);
        if (!r)
                nano->link.up[lane] = true;
        if (r || lane || !nano->link.generation)
                return r;
        session_early_sent(s);
        r = session_resume(s, nano->link.generation);
        session_ask(s);
        nano->link.resumed++;
        return r;
}

static bool may_work_later(int status)
{
        return status == SP_E_LINK || status == SP_E_REFUSED || status == SP_E_TIMEOUT ||
               status == SP_E_HOST || status == SP_E_UNREACH;
}

int nano_link_begin(void)
{
        int r = attach(0);
        if (r < 0)
                nano_end(r);
        return r;
}

/* Try to make the lost connections again, if it is time. */
static void attach_again(void)
{
        struct nano_link *l = &nano->link;
        if (l->now_ms < l->next_try_ms)
                return;
        l->generation++;
        int r = attach(0);
        if (!r)
                return;
        lose();
        if (!may_work_later(r) ||
            (nano->config.retry_ms && l->now_ms - l->lost_ms >= nano->config.retry_ms))
                nano_end(r);
}

/* ---- bytes ------------------------------------------------------------------------------------ */

/* Returns whether bytes were received; negative: the connection is lost, or the session has ended. */
static int receive_some(unsigned lane)
{
        struct iovec to[2];
        int n = session_lane_want(nano->session, lane, to);
        if (n < 0)
                nano_end(n);
        if (n <= 0)
                return n;
        n = transport()->receive(transport()->user, lane, to[0].iov_base, to[0].iov_len);
        if (n < 0 || (size_t)n > to[0].iov_len)
                return SP_E_LINK;
        const int r = n ? session_lane_received(nano->session, lane, (size_t)n) : 0;
        if (r < 0)
                nano_end(r);
        return r < 0 ? r : n > 0;
}

/* The same for bytes that were sent. */
static int send_some(unsigned lane)
{
        uint8_t together[GATHER];
        struct iovec from[4];
        const int count = session_lane_pending(nano->session, lane, from, 4);
        size_t size = 0;
        for (int i = 0; i < count && from[0].iov_len < GATHER && size < GATHER; i++) {
                const size_t room = GATHER - size;
                const size_t some = from[i].iov_len < room ? from[i].iov_len : room;
                memcpy(together + size, from[i].iov_base, some);
                size += some;
        }
        if (!count)
                return 0;
        const void *what = size ? together : from[0].iov_base;
        size = size ? size : from[0].iov_len;
        const int n = transport()->send(transport()->user, lane, what, size);
        if (n < 0 || (size_t)n > size)
                return SP_E_LINK;
        if (n)
                session_lane_sent(nano->session, lane, (size_t)n);
        return n > 0;
}

static bool move_lane(unsigned lane)
{
        int in = receive_some(lane), out = in < 0 || nano->status ? in : send_some(lane);
        if ((in < 0 || out < 0) && !nano->status)
                lose();
        return in || out;
}

static bool move(void)
{
        bool moved = move_lane(0);
        if (nano->status || !nano->link.up[0])
                return true;
        if (nano->link.wants_bulk && !nano->link.up[1]) {
                int r = attach(1);
                if (r && !may_work_later(r))
                        nano_end(r);
                else if (r)
                        lose();
                return true;
        }
        return (nano->link.up[1] && move_lane(1)) || moved;
}

/* Does the application wait for the end of a command, if only by polling? */
static bool awaits_end(void)
{
        for (size_t i = 0; i < NANO_EVENTS; i++)
                if (nano->events[i].object.refs && nano->events[i].status > 0)
                        return true;
        return false;
}

static void pump(bool waits)
{
        struct nano_link *l = &nano->link;
        const unsigned answer_ms = nano->config.answer_ms ? nano->config.answer_ms : ANSWER_MS;
        if (nano->status)
                return;
        if (!l->up[0]) {
                attach_again();
                if (!nano->status && !l->up[0])
                        wait_ms(!waits || l->next_try_ms < l->now_ms ? 0
                                                                     : l->next_try_ms - l->now_ms);
                return;
        }
        const bool moved = move();
        if (nano->status || !l->up[0])
                return;
        const uint64_t now_ns = l->now_ms * 1000000;
        if (session_tick(nano->session,
                         waits || awaits_end() ? SESSION_EXPECTS_ANSWERS : SESSION_EXPECTS_NOTHING,
                         answer_ms * (uint64_t)1000000, now_ns) < 0) {
                lose();
                return;
        }
        const uint64_t deadline_ns = session_deadline(nano->session);
        const uint64_t ms = deadline_ns <= now_ns ? 0 : (deadline_ns - now_ns) / 1000000 + 1;
        wait_ms(moved || !waits ? 0 : ms);
}

void nano_pump(bool waits)
{
        nano->pumps = true;
        pump(waits);
        nano->pumps = false;
        nano_events_release();
}

int nano_until(bool (*done)(const void *arg), const void *arg)
{
        while (!nano->status && !done(arg))
                nano_pump(true);
        return nano->status;
}

static bool is_drained(const void *arg)
{
        (void)arg;
        return !session_kept(nano->session);
}

int nano_drain(void)
{
        while (!nano->status && !is_drained(NULL)) {
                const uint64_t generation = nano->link.generation;
                const uint64_t end = session_position(nano->session);
                session_ask(nano->session);
                do {
                        nano_pump(true);
                } while (!nano->status && generation == nano->link.generation &&
                         end == session_position(nano->session) && !is_drained(NULL));
        }
        return nano->status;
}
