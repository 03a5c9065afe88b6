#include "loop/link.h"

#include "base/log.h"
#include "base/lz4.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/thread.h"
#include "trace/trace.h"
#include "transport/fabric.h"
#include "transport/own_address.h"
#include "transport/shm.h"

enum {
        PIECES = 16,
        RECEIVE_MAX = 512 << 10, /* bytes of one recvv on a bulk lane */
        PLACE_MAX = 1 << 20,     /* the same, where the other side writes them */
};

/* The state that only a link that packs has. */
struct packer {
        struct compression compression;
        bool offered; /* the conn was offered what is pending, and took nothing of it */
        bool far;     /* not over loopback, where the system's rate is that of the two processes */
        uint8_t packed[FRAME_PLAIN_MAX], plain[FRAME_PLAIN_MAX], sample[COMPRESSION_SAMPLE];
};

int link_up(struct link *l, struct session *s, unsigned lane, struct conn *conn,
            uint64_t peer_next_seq)
{
        link_down(l);
        if (link_busy(l)) {
                conn_close(conn);
                return SP_E_BUSY;
        }
        int r = session_lane_up(s, lane, peer_next_seq);
        if (r < 0) {
                conn_close(conn);
                return r;
        }
        if (!lane && session_get_stats(s)->messages_sent && peer_next_seq < session_next_seq(s))
                TRACE(resend, session_next_seq(s) - peer_next_seq);
        *l = (struct link){ .session = s, .lane = lane, .place = session_place(s), .conn = conn };
        return 0;
}

bool link_can_pack(enum compression_mode mode)
{
        bool can = mode != COMPRESSION_OFF && lz4_is_here();
        if (mode == COMPRESSION_ALWAYS && !can)
                log_warn(
                        "link",
                        "nothing is compressed: liblz4 is not installed, or was not when SpanCL was built");
        return can;
}

void link_pack(struct link *l, uint64_t features, enum compression_mode mode)
{
        if (!l->lane || !(features & FEATURE_LZ4))
                return;
        session_lane_packs(l->session, l->lane);
        if (mode == COMPRESSION_OFF || l->conn->ops->caps & TRANSPORT_MEMORY)
                return;
        l->packer = mem_alloc(sizeof(*l->packer));
        if (!l->packer)
                return; /* nothing depends on it */
        l->packer->offered = false;
        compression_init(&l->packer->compression, mode);
        l->packer->far = own_address_may_go(l->conn);
        session_lane_small(l->session, l->lane, compression_small(&l->packer->compression));
}

uint64_t link_rate(const struct link *l)
{
        if (!l->conn || l->doomed)
                return 0;
        if (!own_address_may_go(l->conn))
                return UINT64_MAX;
        const struct compression *p = l->packer ? &l->packer->compression : NULL;
        return p && p->blocked ? p->rate : conn_rate(l->conn);
}

bool link_busy(const struct link *l)
{
        return l->sending || l->receiving;
}

/* The conn is gone. */
static void come_down(struct link *l)
{
        l->conn = NULL;
        l->doomed = false;
        l->blocked = false;
        l->ending = false;
        l->trial.got = 0;
        session_lane_down(l->session, l->lane);
        mem_free(l->packer);
        l->packer = NULL;
}

void link_down(struct link *l)
{
        if (!l->conn)
                return;
        if (link_busy(l)) {
                l->doomed = true;
                return;
        }
        /* First the conn: until then an in-process receiver may read the bytes offered. */
        conn_close(l->conn);
        come_down(l);
}

struct conn *link_leave(struct link *l)
{
        struct conn *conn = link_busy(l) ? NULL : l->conn;
        if (conn)
                come_down(l);
        return conn;
}

void link_halt(struct link *l)
{
        l->doomed = l->conn != NULL;
        while (atomic_load_explicit(&l->copying, memory_order_acquire))
                thread_yield();
}

/* Is the link still there after the lock was released? Else it is taken down now. */
static bool survived(struct link *l)
{
        if (!l->doomed)
                return true;
        link_down(l);
        return false;
}

/* Release the lock, if it may be, while `busy`, l->sending or l->receiving, keeps others from the link. */
static void step_out(struct link *l, const struct link_lock *unlock, bool *busy) LOCK_UNCHECKED
{
        if (!unlock)
                return;
        *busy = true;
        atomic_fetch_add_explicit(&l->copying, 1, memory_order_relaxed);
        link_lock_release(unlock);
}

/* Take it again. As survived(). */
static bool step_in(struct link *l, const struct link_lock *unlock, bool *busy) LOCK_UNCHECKED
{
        if (!unlock)
                return true;
        atomic_fetch_sub_explicit(&l->copying, 1, memory_order_release);
        link_lock_take(unlock);
        *busy = false;
        return survived(l);
}

/* Messages come first and go at once; only bulk is worth letting others in meanwhile. */
static const struct link_lock *bulk_lock(const struct link *l, const struct link_lock *unlock)
{
        return l->lane ? unlock : NULL;
}

/* ---- compression -------------------------------------------------------------------------------- */

static struct compression_cost pack_bytes(struct packer *p, const void *plain, size_t size)
{
        TRACE_SPAN(pack, size);
        struct compression_cost c = { .plain = size };
        uint64_t begin = clock_now_ns();
        c.packed = lz4_pack(plain, size, p->packed, size - size / 16);
        c.pack_ns = clock_now_ns() - begin;
        return c;
}

static void try_sample(struct packer *p, const struct iovec *piece)
{
        size_t size = piece->iov_len < COMPRESSION_SAMPLE ? piece->iov_len : COMPRESSION_SAMPLE;
        const uint8_t *at = piece->iov_base;
        struct compression_cost c = pack_bytes(p, at + (piece->iov_len - size) / 2, size);
        uint64_t begin = clock_now_ns();
        if (c.packed)
                (void)lz4_unpack(p->packed, c.packed, p->sample, size);
        c.unpack_ns = clock_now_ns() - begin;
        compression_tried(&p->compression, &c);
}

/* Pack the frame that `iov` belongs to, if it is a new one and packing pays. Returns the number of
 * pieces to send now, and in *ret_more the bytes that they stand for beyond their own. SP_E_LINK:
 * the link was taken down meanwhile. */
static int pack_frame(struct link *l, struct iovec *iov, int n, const struct link_lock *unlock,
                      size_t *ret_more)
{
        struct packer *p = l->packer;
        size_t size = p->offered ? 0 : session_lane_fresh(l->session, l->lane);
        if (!size)
                return n;
        if (p->far && compression_wants_rate(&p->compression))
                compression_set_rate(&p->compression, conn_rate(l->conn));
        enum compression_step step = compression_next(&p->compression, size);
        session_lane_small(l->session, l->lane, compression_small(&p->compression));
        bool packable = session_lane_packable(l->session, l->lane);
        if (step == COMPRESSION_SEND || (step == COMPRESSION_PACK && !packable))
                return n;
        struct iovec plain = iov[1];
        if (packable && plain.iov_len < size) {
                session_lane_copy(l->session, l->lane, p->plain);
                plain = (struct iovec){ p->plain, size };
        }
        step_out(l, unlock, &l->sending);
        struct compression_cost c = { 0 };
        if (step == COMPRESSION_TRY)
                try_sample(p, &plain);
        bool packed = p->compression.on && packable;
        if (packed)
                c = pack_bytes(p, plain.iov_base, size);
        if (!step_in(l, unlock, &l->sending))
                return SP_E_LINK;
        packed = packed && compression_pays(&p->compression, &c);
        session_lane_small(l->session, l->lane, compression_small(&p->compression));
        if (!packed)
                return n;
        session_lane_pack(l->session, l->lane, bytes_of(p->packed, c.packed));
        *ret_more = size - c.packed;
        return session_lane_pending(l->session, l->lane, iov, PIECES);
}

/* A packed frame has come. Returns how many bytes it held, or why the session has ended. */
static int unpack_frame(struct link *l, const struct link_lock *unlock)
{
        struct session_packed_frame u;
        if (!session_lane_closed(l->session, l->lane, &u))
                return 0;
        step_out(l, unlock, &l->receiving);
        struct trace_span span = trace_begin(TRACE_unpack, u.size);
        bool good = lz4_unpack(u.packed.data, u.packed.size, u.to, u.size);
        trace_end(&span);
        if (!step_in(l, unlock, &l->receiving))
                return SP_E_LINK;
        int r = session_lane_unpacked(l->session, l->lane, good);
        return r < 0 ? r : (int)u.size;
}

/* ---- moving bytes --------------------------------------------------------------------------- */

/* Count the bytes that went over the fabric, beside the connection. */
static void count_fabric(struct link *l)
{
        uint64_t sent, received;
        fabric_count(l->conn, &sent, &received);
        session_count_fabric(l->session, sent, received);
}

int link_flush(struct link *l, size_t budget, const struct link_lock *unlock)
{
        if (!l->conn || l->doomed)
                return SP_E_LINK;
        if (l->ending)
                return SP_E_AGAIN;
        if (l->sending)
                return 0;
        unlock = bulk_lock(l, unlock);
        for (size_t sent = 0;;) {
                struct iovec iov[PIECES];
                int n = session_lane_pending(l->session, l->lane, iov, PIECES);
                if (n <= 0) {
                        l->blocked = false;
                        if (l->packer)
                                compression_idle(&l->packer->compression);
                        return 0;
                }
                if (sent >= budget)
                        return SP_E_BUSY;
                size_t more = 0;
                n = l->packer ? pack_frame(l, iov, n, unlock, &more) : n;
                if (n < 0)
                        return n;
                step_out(l, unlock, &l->sending);
                struct trace_span span = trace_begin(TRACE_send, 0);
                ssize_t r = l->conn->ops->sendv(l->conn, iov, n);
                span.value = r > 0 ? (uint64_t)r : 0;
                trace_end_at(&span, l->place, l->lane);
                if (!step_in(l, unlock, &l->sending))
                        return SP_E_LINK;
                if (r <= 0) {
                        l->blocked = true;
                        l->ending = r != SP_E_AGAIN;
                        if (l->packer && !l->ending) {
                                compression_blocked(&l->packer->compression, clock_now_ns());
                                l->packer->offered = true;
                        }
                        return SP_E_AGAIN;
                }
                l->blocked = false;
                l->owed = l->conn->ops->caps & TRANSPORT_ACKNOWLEDGES;
                if (l->packer) {
                        compression_sent(&l->packer->compression, (size_t)r);
                        l->packer->offered = false;
                }
                session_lane_sent(l->session, l->lane, (size_t)r);
                count_fabric(l);
                sent += (size_t)r + more;
        }
}

bool link_can_send(const struct link *l)
{
        return l->conn && !l->doomed && !l->ending && !l->blocked && !l->sending &&
               session_lane_has_pending(l->session, l->lane);
}

/* Cut the request, so that other lanes get their turn. */
static size_t limit(struct iovec *iov, int *n, size_t max)
{
        size_t asked = 0;
        for (int i = 0; i < *n; i++) {
                if (iov[i].iov_len >= max - asked) {
                        iov[i].iov_len = max - asked;
                        *n = i + 1;
                }
                asked += iov[i].iov_len;
        }
        return asked;
}

/* One recvv: what it said. 0: nothing can be received now; else negative: the session has ended. */
static ssize_t receive_once(struct link *l, const struct link_lock *unlock, size_t *ret_asked,
                            int *ret_status)
{
        struct iovec iov[2];
        int n = session_lane_want(l->session, l->lane, iov);
        *ret_status = n < 0 ? n : 0;
        if (n <= 0)
                return 0;
        *ret_asked = limit(iov, &n, conn_places(l->conn) ? PLACE_MAX : RECEIVE_MAX);
        step_out(l, unlock, &l->receiving);
        struct trace_span span = trace_begin(TRACE_receive, 0);
        ssize_t r = l->conn->ops->recvv(l->conn, iov, n);
        if (r > 0) {
                span.value = (uint64_t)r;
                trace_end_at(&span, l->place, l->lane);
        }
        if (!step_in(l, unlock, &l->receiving))
                return SP_E_LINK;
        if (l->lane)
                session_lane_alive(l->session, l->lane, l->conn->came);
        return r;
}

int link_receive(struct link *l, size_t budget, const struct link_lock *unlock)
{
        if (!l->conn || l->doomed)
                return SP_E_LINK;
        if (l->receiving)
                return 0;
        unlock = bulk_lock(l, unlock);
        for (size_t got = 0; got < budget;) {
                size_t asked = l->trial.asked;
                int status = 0;
                ssize_t r = l->trial.got;
                l->trial.got = 0;
                if (!r)
                        r = receive_once(l, unlock, &asked, &status);
                if (!r)
                        return l->ending && !status ? SP_E_LINK : status;
                if (r < 0)
                        return r == SP_E_AGAIN && !l->ending ? 0 : SP_E_LINK;
                count_fabric(l);
                status = session_lane_received(l->session, l->lane, (size_t)r);
                if (status < 0)
                        return status;
                int unpacked = l->lane ? unpack_frame(l, unlock) : 0;
                if (unpacked < 0)
                        return unpacked;
                if (!l->conn) /* an op of the session took it down */
                        return SP_E_LINK;
                got += (size_t)r + (size_t)unpacked;
                if ((size_t)r < asked && !l->ending)
                        return 0;
        }
        return 1;
}

bool link_is_due(const struct link *l)
{
        return l->conn && (l->trial.got || l->ending);
}

bool link_try_begin(struct link *l)
{
        bool direct = l->conn && l->conn->ops->caps & TRANSPORT_DIRECT;
        if (l->lane || !direct || l->doomed || l->receiving || link_is_due(l))
                return false;
        int n = l->trial.count = session_lane_want(l->session, l->lane, l->trial.places);
        if (n <= 0)
                return false;
        l->trial.asked = limit(l->trial.places, &l->trial.count, RECEIVE_MAX);
        l->receiving = true;
        return true;
}

bool link_try(struct link *l)
{
        struct trace_span span = trace_begin(TRACE_receive, 0);
        ssize_t r = l->conn->ops->recvv(l->conn, l->trial.places, l->trial.count);
        if (r != SP_E_AGAIN)
                l->trial.got = r > 0 ? r : SP_E_LINK;
        if (r > 0) {
                span.value = (uint64_t)r;
                trace_end_at(&span, l->place, l->lane);
        }
        return r != SP_E_AGAIN;
}

void link_try_end(struct link *l)
{
        l->receiving = false;
        (void)survived(l);
}

struct conn *link_poll_begin(struct link *l)
{
        if (!l->conn || !l->conn->ops->peek || l->doomed || l->receiving)
                return NULL;
        l->receiving = true;
        return l->conn;
}

unsigned link_polled(struct link *l, const struct pollfd *fds, size_t n)
{
        return l->conn ? conn_polled(l->conn, fds, n) | (link_is_due(l) ? CONN_IN : 0) : 0;
}

int link_poll(struct link *l, struct pollfd ret[2])
{
        if (!l->conn || l->doomed)
                return 0;
        struct iovec iov[2];
        /* Do not poll a lane for input while it waits for its data's place. Poll it after an error,
         * so that link_receive reports it. */
        l->waiting = l->lane && session_lane_want(l->session, l->lane, iov) == 0;
        return conn_poll(l->conn, !l->waiting, l->blocked, ret);
}

int link_wait(struct link lanes[SESSION_LANES], int timeout_ms)
{
        struct pollfd p[2 * SESSION_LANES];
        nfds_t n = 0;
        unsigned found = 0;
        for (unsigned i = 0; i < SESSION_LANES; i++)
                n += (nfds_t)link_poll(&lanes[i], &p[n]);
        for (unsigned i = 0; i < SESSION_LANES; i++)
                if (link_is_due(&lanes[i]) || (lanes[i].conn && conn_arm(lanes[i].conn)))
                        timeout_ms = 0;
        if (poll(p, n, timeout_ms) < 0)
                n = 0;
        for (unsigned i = 0; i < SESSION_LANES; i++) {
                unsigned can = link_polled(&lanes[i], p, n);
                if (can & CONN_OUT)
                        lanes[i].blocked = false;
                found |= can;
        }
        return found ? 0 : SP_E_AGAIN;
}
