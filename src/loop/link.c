#include "loop/link.h"

#include "trace/trace.h"

enum {
        PIECES = 16,
        RECEIVE_MAX = 512 << 10, /* bytes of one recvv on a bulk lane */
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
        *l = (struct link){ .session = s, .lane = lane, .conn = conn };
        return 0;
}

bool link_busy(const struct link *l)
{
        return l->sending || l->receiving;
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
        l->conn = conn_close(l->conn);
        l->doomed = false;
        l->blocked = false;
        session_lane_down(l->session, l->lane);
}

/* Is the link still there after the lock was released? Else it is taken down now. */
static bool survived(struct link *l)
{
        if (!l->doomed)
                return true;
        link_down(l);
        return false;
}

/* Messages come first and go at once; only bulk is worth letting others in meanwhile. */
static const struct link_lock *bulk_lock(const struct link *l, const struct link_lock *unlock)
{
        return l->lane ? unlock : NULL;
}

int link_flush(struct link *l, size_t budget, const struct link_lock *unlock)
{
        if (!l->conn || l->doomed)
                return SP_E_LINK;
        if (l->sending)
                return 0;
        unlock = bulk_lock(l, unlock);
        for (size_t sent = 0;;) {
                struct iovec iov[PIECES];
                int n = session_lane_pending(l->session, l->lane, iov, PIECES);
                if (n <= 0) {
                        l->blocked = false;
                        return 0;
                }
                if (sent >= budget)
                        return SP_E_BUSY;
                if (unlock) {
                        l->sending = true;
                        unlock->unlock(unlock->user);
                }
                struct trace_span span = trace_begin(TRACE_send, 0);
                ssize_t r = l->conn->ops->sendv(l->conn, iov, n);
                span.value = r > 0 ? (uint64_t)r : 0;
                trace_end(&span);
                if (unlock) {
                        unlock->lock(unlock->user);
                        l->sending = false;
                        if (!survived(l))
                                return SP_E_LINK;
                }
                if (r <= 0) {
                        l->blocked = r == SP_E_AGAIN;
                        return r == SP_E_AGAIN ? SP_E_AGAIN : SP_E_LINK;
                }
                l->blocked = false;
                session_lane_sent(l->session, l->lane, (size_t)r);
                sent += (size_t)r;
        }
}

bool link_can_send(const struct link *l)
{
        return l->conn && !l->doomed && !l->blocked && !l->sending &&
               session_lane_has_pending(l->session, l->lane);
}

/* Cut what is asked for, so that other lanes get their turn. */
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

int link_receive(struct link *l, size_t budget, const struct link_lock *unlock)
{
        if (!l->conn || l->doomed)
                return SP_E_LINK;
        if (l->receiving)
                return 0;
        unlock = bulk_lock(l, unlock);
        for (size_t got = 0; got < budget;) {
                struct iovec iov[2];
                int n = session_lane_want(l->session, l->lane, iov);
                if (n <= 0)
                        return n;
                size_t asked = limit(iov, &n, RECEIVE_MAX);
                if (unlock) {
                        l->receiving = true;
                        unlock->unlock(unlock->user);
                }
                struct trace_span span = trace_begin(TRACE_receive, 0);
                ssize_t r = l->conn->ops->recvv(l->conn, iov, n);
                span.value = r > 0 ? (uint64_t)r : 0;
                trace_end(&span);
                if (unlock) {
                        unlock->lock(unlock->user);
                        l->receiving = false;
                        if (!survived(l))
                                return SP_E_LINK;
                }
                if (r <= 0)
                        return r == SP_E_AGAIN ? 0 : SP_E_LINK;
                int status = session_lane_received(l->session, l->lane, (size_t)r);
                if (status < 0)
                        return status;
                if (!l->conn) /* an op of the session took it down */
                        return SP_E_LINK;
                got += (size_t)r;
                if ((size_t)r < asked)
                        return 0;
        }
        return 1;
}

int link_poll(struct link *l, struct pollfd ret[2])
{
        if (!l->conn || l->doomed)
                return 0;
        struct iovec iov[2];
        /* A lane that waits for its data's place is not listened to; one with an error is, so that
         * link_receive tells. */
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
                if (lanes[i].conn && conn_arm(lanes[i].conn))
                        timeout_ms = 0;
        if (poll(p, n, timeout_ms) < 0)
                n = 0;
        for (unsigned i = 0; i < SESSION_LANES; i++) {
                unsigned can = lanes[i].conn ? conn_polled(lanes[i].conn, p, n) : 0;
                if (can & CONN_OUT)
                        lanes[i].blocked = false;
                found |= can;
        }
        return found ? 0 : SP_E_AGAIN;
}
