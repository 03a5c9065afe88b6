#include "cli/stats_query.h"

#include <errno.h>
#include <stdio.h>

#include "base/mem.h"
#include "loop/dial.h"
#include "os/clock.h"
#include "os/iovec.h"
#include "os/poll.h"
#include "proto/info.h"
#include "session/hello.h"

/* Receive the next exchange into `b`. 1: it has arrived; 0: the server has closed. */
static int receive(struct conn *c, struct buf *b, uint64_t deadline_ns)
{
        b->size = 0;
        for (;;) {
                int whole = hello_size(bytes_of(b->data, b->size));
                if (whole < 0 || b->size == (size_t)whole)
                        return whole < 0 ? whole : 1;
                size_t left = (size_t)whole - b->size;
                /* A server may send without end. */
                if (!b->size && clock_now_ns() >= deadline_ns)
                        return SP_E_TIMEOUT;
                int r = buf_reserve(b, left);
                if (r < 0)
                        return r;
                struct iovec iov = { b->data + b->size, left };
                ssize_t n = c->ops->recvv(c, &iov, 1);
                if (n > 0) {
                        b->size += (size_t)n;
                        continue;
                }
                if (n != SP_E_AGAIN)
                        return b->size ? SP_E_LINK : 0;
                struct pollfd p = { .fd = c->fd, .events = POLLIN };
                if (clock_now_ns() >= deadline_ns)
                        return SP_E_TIMEOUT;
                if (poll_until(&p, 1, deadline_ns) < 0 && errno != EINTR)
                        return SP_E_LINK;
        }
}

/* The server closes the connection after its last message. */
int stats_query_receive(struct conn *conn, int timeout_ms,
                        void (*each)(void *user, const struct wire_session_stats *m), void *user)
{
        const uint64_t deadline_ns = clock_now_ns() + (uint64_t)timeout_ms * 1000000;
        auto_clean(buf_fini) struct buf b = { 0 };
        int r;
        while ((r = receive(conn, &b, deadline_ns)) > 0) {
                struct wire_session_stats m;
                r = hello_get_stats(bytes_of(b.data, b.size), &m);
                if (!r)
                        r = info_check(m.links);
                if (r < 0)
                        return r;
                each(user, &m);
        }
        return r;
}

static void on_stats(void *user, const struct wire_session_stats *m)
{
        snapshot_take(user, m);
}

int stats_query(const struct server_spec *spec, int timeout_ms, struct snapshot *ret,
                char text[STATS_QUERY_TEXT_MAX])
{
        struct dial_reply reply = { 0 };
        struct conn *conn;
        const struct dial_params p = {
                .address = spec->address,
                .timeout_ms = timeout_ms,
                .role = DIAL_LOOK,
                .name = "spancl",
        };
        *ret = (struct snapshot){ 0 };
        int r = loop_connect(&p, &conn, &reply);
        if (r < 0) {
                snprintf(text, STATS_QUERY_TEXT_MAX, "%s", reply.text);
                return r;
        }
        r = stats_query_receive(conn, timeout_ms, on_stats, ret);
        conn_close(conn);
        ret->taken_ns = clock_now_ns();
        if (r < 0) {
                snprintf(text, STATS_QUERY_TEXT_MAX, "%s: %s", spec->name, status_text(r));
                snapshot_fini(ret);
        }
        return r;
}
