#include "daemon/dialler/reach.h"

#include <stdio.h>
#include <string.h>

#include "daemon/dialler/local_path.h"
#include "os/clock.h"
#include "os/lock.h"
#include "transport/address.h"

enum { KNOWN_MAX = 64, KNOWN_S = 60 };

/* An address at which a SpanCL server has answered recently. */
struct place {
        char address[ADDRESS_MAX];
        uint64_t until_ns; /* 0: none */
};

static struct {
        struct lock lock;
        struct place all[KNOWN_MAX];
        unsigned next;
} known = { .lock = LOCK_INIT };

static bool is_known(const char *address)
{
        uint64_t now = clock_now_ns();
        bool is = false;
        lock_take(&known.lock);
        for (unsigned i = 0; i < KNOWN_MAX && !is; i++)
                is = known.all[i].until_ns > now && !strcmp(known.all[i].address, address);
        lock_release(&known.lock);
        return is;
}

static void remember(const char *address)
{
        lock_take(&known.lock);
        struct place *k = &known.all[known.next++ % KNOWN_MAX];
        snprintf(k->address, sizeof(k->address), "%s", address);
        k->until_ns = clock_now_ns() + KNOWN_S * 1000000000ull;
        lock_release(&known.lock);
}

/* Return the time that is left; at least a millisecond. */
static int left_ms(uint64_t deadline_ns)
{
        int ms = clock_poll_ms(deadline_ns);
        return ms > 0 ? ms : 1;
}

/* Find out whether the other side is a server, if no key proves it. `*conn` is replaced, or
 * closed on an error. */
static int check(const struct dial_params *p, uint64_t deadline_ns, struct conn **conn)
{
        char reached[ADDRESS_MAX];
        if ((*conn)->ops->caps & TRANSPORT_ENCRYPTED || p->own_user)
                return 0;
        int r = conn_reached(*conn, p->address, reached);
        /* A path can lead to another server the next time. */
        bool stays = (*conn)->ops->caps & TRANSPORT_PEERS;
        if (!r && stays && is_known(reached))
                return 0;
        if (!r)
                r = loop_probe(*conn, left_ms(deadline_ns));
        else
                conn_close(*conn);
        if (r < 0)
                return r;
        if (stays)
                remember(reached);
        return transport_of(reached)->connect(reached, left_ms(deadline_ns), conn);
}

static int make(const struct dial_params *p, bool local, struct conn **ret)
{
        struct address a;
        int r = address_parse(p->address, &a);
        unsigned allowed = p->own_user ? 0 : TRANSPORT_PEERS;
        if (local || p->own_user)
                allowed |= TRANSPORT_KNOWS_USER;
        if (r < 0 || !(a.ops->caps & allowed))
                return SP_E_INVAL;
        return p->own_user ? local_path_connect(a.host, ret)
                           : address_connect(&a, p->timeout_ms, ret);
}

int reach_peer(const struct dial_request *q, bool local, struct conn **ret, struct buf *hello,
               struct dial_reply *reply)
{
        struct dial_params p = q->params;
        uint64_t deadline_ns = clock_now_ns() + (uint64_t)p.timeout_ms * 1000000;
        struct conn *conn;
        *reply = (struct dial_reply){ 0 };
        int r = make(&p, local, &conn);
        if (!r)
                r = check(&p, deadline_ns, &conn);
        if (r < 0) {
                loop_explain(&p, r, reply);
                return r;
        }
        p.timeout_ms = left_ms(deadline_ns);
        r = loop_greet(&p, conn, hello, reply);
        if (r < 0)
                conn_close(conn);
        else
                *ret = conn;
        return r;
}
