#include "daemon/dialler/reach.h"

#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "daemon/dialler/local_path.h"
#include "os/clock.h"
#include "os/lock.h"

enum { KNOWN_MAX = 64, KNOWN_S = 60 };

/* An address at which a SpanCL server has answered recently. */
struct place {
        struct sockaddr_storage address;
        socklen_t size; /* 0: none */
        uint64_t until_ns;
};

static struct {
        struct lock lock;
        struct place all[KNOWN_MAX];
        unsigned next;
} known = { .lock = LOCK_INIT };

static bool place_of(const struct conn *c, struct place *ret)
{
        *ret = (struct place){ .size = sizeof(ret->address) };
        return getpeername(c->fd, (struct sockaddr *)&ret->address, &ret->size) == 0 &&
               ret->size <= sizeof(ret->address);
}

static bool is_known(const struct place *p)
{
        uint64_t now = clock_now_ns();
        bool is = false;
        lock_take(&known.lock);
        for (unsigned i = 0; i < KNOWN_MAX && !is; i++) {
                const struct place *k = &known.all[i];
                is = k->size == p->size && k->until_ns > now &&
                     !memcmp(&k->address, &p->address, p->size);
        }
        lock_release(&known.lock);
        return is;
}

static void remember(const struct place *p)
{
        lock_take(&known.lock);
        struct place *k = &known.all[known.next++ % KNOWN_MAX];
        *k = *p;
        k->until_ns = clock_now_ns() + KNOWN_S * 1000000000ull;
        lock_release(&known.lock);
}

static bool begins(const char *text, const char *with)
{
        return !strncmp(text, with, strlen(with));
}

static bool may_connect(const char *address, bool local)
{
        return begins(address, "tcp:") || begins(address, "tls:") || begins(address, "loopback:") ||
               (local && begins(address, "unix:"));
}

/* Return the time that is left; at least a millisecond. */
static int left_ms(uint64_t deadline_ns)
{
        int ms = clock_poll_ms(deadline_ns);
        return ms > 0 ? ms : 1;
}

/* Connect to the address that another connection of `p` has reached: the name may now resolve to
 * another one. */
static int connect_again(const struct dial_params *p, const struct place *to, int timeout_ms,
                         struct conn **ret)
{
        char host[64], port[8], numeric[96];
        if (to->address.ss_family == AF_UNIX)
                return transport_unix.connect(p->address, timeout_ms, ret);
        if (getnameinfo((const struct sockaddr *)&to->address, to->size, host, sizeof(host), port,
                        sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV))
                return SP_E_HOST;
        snprintf(numeric, sizeof(numeric), strchr(host, ':') ? "tcp:[%s]:%s" : "tcp:%s:%s", host,
                 port);
        return transport_tcp.connect(numeric, timeout_ms, ret);
}

/* Find out whether the other side is a server, if no key proves it. `*conn` is replaced, or
 * closed on an error. */
static int check(const struct dial_params *p, uint64_t deadline_ns, struct conn **conn)
{
        struct place place;
        if ((*conn)->ops == &transport_tls || p->own_user)
                return 0;
        bool told = place_of(*conn, &place);
        if (told && is_known(&place))
                return 0;
        int r = told ? loop_probe(*conn, left_ms(deadline_ns)) : SP_E_LINK;
        if (!told)
                conn_close(*conn);
        if (!r)
                remember(&place);
        return r < 0 ? r : connect_again(p, &place, left_ms(deadline_ns), conn);
}

static int make(const struct dial_params *p, bool local, struct conn **ret)
{
        const char *address = p->address;
        if (p->own_user)
                return begins(address, "unix:") ? local_path_connect(address + strlen("unix:"), ret)
                                                : SP_E_INVAL;
        if (!may_connect(address, local))
                return SP_E_INVAL;
        return transport_of(address)->connect(address, p->timeout_ms, ret);
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
