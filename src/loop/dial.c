#include "loop/dial.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "os/clock.h"
#include "session/hello.h"
#include "transport/address.h"
#include "transport/checked.h"
#include "transport/fabric.h"
#include "transport/other_end.h"
#include "transport/own_address.h"
#include "transport/shm.h"
#include "transport/tls.h"

enum { TIMEOUT_DEFAULT_MS = 10000 };

__attribute__((format(printf, 2, 3))) static void say(struct dial_reply *reply, const char *fmt,
                                                      ...)
{
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(reply->text, sizeof(reply->text), fmt, ap);
        bytes_tame(reply->text, sizeof(reply->text));
        va_end(ap);
}

static int wait_for(struct conn *c, bool in, uint64_t deadline_ns)
{
        if (clock_now_ns() >= deadline_ns)
                return SP_E_TIMEOUT;
        return conn_wait(c, in, !in, clock_poll_ms(deadline_ns));
}

static int send_all(struct conn *c, struct bytes data, uint64_t deadline_ns)
{
        const uint8_t *p = data.data;
        for (size_t at = 0; at < data.size;) {
                struct iovec iov = { (void *)(uintptr_t)(p + at), data.size - at };
                ssize_t n = c->ops->sendv(c, &iov, 1);
                if (n > 0) {
                        at += (size_t)n;
                        continue;
                }
                int r = n == SP_E_AGAIN ? wait_for(c, false, deadline_ns) : SP_E_LINK;
                if (r < 0 && r != SP_E_AGAIN)
                        return r;
        }
        return 0;
}

/* Receive exactly one hello exchange into `out`, at most `cap` bytes; its size, or a status. */
static int receive_hello(struct conn *c, uint8_t *out, size_t cap, uint64_t deadline_ns)
{
        size_t have = 0;
        for (;;) {
                int whole = hello_size(bytes_of(out, have));
                if (whole < 0 || (size_t)whole > cap)
                        return whole < 0 ? whole : SP_E_PROTO;
                if (have == (size_t)whole)
                        return whole;
                struct iovec iov = { out + have, (size_t)whole - have };
                ssize_t n = c->ops->recvv(c, &iov, 1);
                if (n > 0) {
                        have += (size_t)n;
                        continue;
                }
                int r = n == SP_E_AGAIN ? wait_for(c, true, deadline_ns) : SP_E_LINK;
                if (r < 0 && r != SP_E_AGAIN)
                        return r;
        }
}

struct place {
        char text[ADDRESS_MAX];
};

static struct place shown(const char *address)
{
        struct place where = { "the in-process server" };
        if (address)
                address_show(address, where.text);
        return where;
}

/* Explain why the exchange failed and what may help. */
void loop_explain(const struct dial_params *p, int status, struct dial_reply *reply)
{
        const struct place place = shown(p->address);
        const char *where = place.text;
        const struct transport_ops *t = p->address ? transport_of(p->address) : NULL;
        const char *other = status_text(status);
        if (t && t->caps & TRANSPORT_ENCRYPTED && *tls_reason())
                other = tls_reason();
        else if (t && t->caps & TRANSPORT_KNOWS_USER && status == SP_E_AUTH)
                other = "this user may not open the socket: its group and the server's --socket-users say whom "
                        "it is for";
        switch (status) {
        case SP_E_HOST:
                say(reply, "%s: the host name does not resolve", where);
                break;
        case SP_E_UNREACH:
                say(reply,
                    "%s: the host can't be reached: is it up, and in a network that this host has a route to?",
                    where);
                break;
        case SP_E_REFUSED:
                say(reply, "%s: connection refused: is spancld running there?", where);
                break;
        case SP_E_TIMEOUT:
                say(reply, "%s: no answer in time%s", where,
                    p->role == DIAL_PEER ? "" : " (SPANCL_CONNECT_TIMEOUT sets the limit)");
                break;
        case SP_E_INVAL:
                say(reply, "%s: not an address that can be connected to", where);
                break;
        case SP_E_VERSION:
                say(reply, "%s: " HELLO_BIG_ENDIAN, where);
                break;
        case SP_E_PROTO:
                say(reply, "%s: what answers there is not SpanCL", where);
                break;
        case SP_E_LINK:
                say(reply, "%s: the connection was closed before the server answered", where);
                break;
        default:
                say(reply, "%s: %s", where, other);
        }
}

/* The server's offer of shared memory. `*c` is closed when it fails. */
static int accept_memory(struct conn **c, uint64_t deadline_ns)
{
        int r;
        while ((r = shm_accept(c)) == SP_E_AGAIN) {
                r = wait_for(*c, true, deadline_ns);
                if (r < 0 && r != SP_E_AGAIN) {
                        *c = conn_close(*c);
                        return r;
                }
        }
        return r;
}

/* The server has an endpoint. `*c` is closed when it fails; without one here it stays as it is. */
static int join_fabric(struct conn **c, const struct wire_hello_reply *m)
{
        struct rma *r = fabric_open(*c, m->fabric);
        return fabric_begin(c, r, m->fabric_address, m->fabric_form);
}

struct wire_hello dial_hello(const struct dial_params *p)
{
        return (struct wire_hello){
                .version_min = WIRE_VERSION,
                .version_max = WIRE_VERSION,
                .role = p->role,
                .lane = p->lane,
                .session_hi = p->session_id[0],
                .session_lo = p->session_id[1],
                .key_hi = p->key[0],
                .key_lo = p->key[1],
                .next_seq = p->next_seq,
                .generation = p->generation,
                .name = bytes_str(p->name ? p->name : ""),
        };
}

static bool wants_checks(const struct dial_params *p, const struct conn *c)
{
        return c->ops->caps & TRANSPORT_ALTERABLE &&
               (p->checks == CHECKING_ON || (p->checks == CHECKING_AUTO && own_address_may_go(c)));
}

/* Of this side. */
static uint64_t features_of(const struct dial_params *p, const struct conn *c)
{
        return (p->share && c->ops->caps & TRANSPORT_PASSES_FDS ? FEATURE_SHARED_MEMORY : 0) |
               (p->packs && p->lane ? FEATURE_LZ4 : 0) |
               (wants_checks(p, c) ? FEATURE_CHECKSUM : 0) |
               (p->devices ? FEATURE_DESCRIPTION : 0) |
               (p->share && c->ops->caps & TRANSPORT_PASSES_FDS && p->role == DIAL_PEER && !p->lane
                        ? FEATURE_STAGING
                        : 0) |
               (!p->role && !p->lane
                        ? FEATURE_NOTICES | FEATURE_DRAIN | FEATURE_UPLOADS | FEATURE_RECORDER
                        : 0);
}

/* Take the server's answer. */
static int read_answer(const struct dial_params *p, struct bytes whole, uint64_t features,
                       struct wire_hello_reply *m, struct dial_reply *reply)
{
        int r = hello_get_reply(whole, m);
        if (r < 0)
                return r;
        if (m->status) {
                say(reply, "%s: %.*s", shown(p->address).text, (int)m->text.size,
                    (const char *)m->text.data);
                return m->status < 0 && m->status > -20000 ? (int)m->status : SP_E_PROTO;
        }
        reply->version = m->version;
        reply->features = m->features & features;
        reply->next_seq = m->next_seq;
        reply->time_ns = m->time_ns;
        memcpy(reply->identity, m->identity.data, m->identity.size);
        reply->identity[m->identity.size] = 0;
        memcpy(reply->local_path, m->local_path.data, m->local_path.size);
        reply->local_path[m->local_path.size] = 0;
        return 0;
}

static int greet(const struct dial_params *p, struct conn *c, struct buf *ret,
                 struct dial_reply *reply, uint64_t deadline_ns)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        char fabrics[FABRIC_NAMES_MAX] = "";
        if (p->fabric)
                fabric_offer(c, p->fabric, fabrics);
        struct wire_hello hello = dial_hello(p);
        hello.features = features_of(p, c);
        hello.fabrics = bytes_str(fabrics);
        if (p->role == DIAL_CLIENT)
                hello.origin = conn_ends_digest(c, CONN_DIALLED_HERE, p->key);
        int r = hello_put(&out, &hello);
        if (r < 0)
                return r;
        reply->sent_ns = clock_now_ns();
        r = send_all(c, bytes_of(out.data, out.size), deadline_ns);
        reply->early = !r && p->early.size &&
                       !(hello.features & (FEATURE_SHARED_MEMORY | FEATURE_CHECKSUM));
        if (reply->early)
                r = send_all(c, p->early, deadline_ns);
        if (r < 0)
                return r;

        _Alignas(8) uint8_t in[HELLO_PREFIX + FRAME_HELLO_MAX];
        struct wire_hello_reply m;
        int size = receive_hello(c, in, sizeof(in), deadline_ns);
        if (size < 0)
                return size;
        reply->received_ns = clock_now_ns();
        r = read_answer(p, bytes_of(in, (size_t)size), hello.features, &m, reply);
        return r < 0 ? r : buf_put(ret, in, (size_t)size);
}

/* Set up the features of the answer. `*conn` is replaced, or closed on failure. */
static int settle(const struct dial_params *p, struct bytes answer, struct conn **conn,
                  struct dial_reply *reply, uint64_t deadline_ns)
{
        struct wire_hello_reply m;
        int r = read_answer(p, answer, features_of(p, *conn), &m, reply);
        if (r < 0) {
                *conn = conn_close(*conn);
                return r;
        }
        if (reply->features & FEATURE_SHARED_MEMORY)
                return accept_memory(conn, deadline_ns);
        if (reply->features & FEATURE_CHECKSUM)
                r = checked_begin(conn, p->lane && !m.fabric.size);
        return !r && m.fabric.size ? join_fabric(conn, &m) : r;
}

/* Receive the parts that follow the answer. */
static int receive_devices(struct conn *c, struct hello_devices *ret, uint64_t deadline_ns)
{
        _Alignas(8) uint8_t in[HELLO_PREFIX + FRAME_HELLO_MAX];
        int r;
        do {
                r = receive_hello(c, in, sizeof(in), deadline_ns);
                if (r > 0)
                        r = hello_take_devices(ret, bytes_of(in, (size_t)r));
        } while (!r);
        return r < 0 ? r : 0;
}

/* Say why, if that was not said. */
static int end(const struct dial_params *p, int r, struct dial_reply *reply)
{
        if (r < 0 && !reply->text[0])
                loop_explain(p, r, reply);
        return r;
}

static int hello_until(const struct dial_params *p, struct conn *conn, struct conn **ret,
                       struct dial_reply *reply, uint64_t deadline_ns)
{
        auto_clean(buf_fini) struct buf answer = { 0 };
        *reply = (struct dial_reply){ 0 };
        if (p->devices) /* of a try before */
                hello_devices_fini(p->devices);
        int r = greet(p, conn, &answer, reply, deadline_ns);
        if (!r && reply->features & FEATURE_DESCRIPTION) {
                r = receive_devices(conn, p->devices, deadline_ns);
                conn = conn_close(conn);
        } else if (r < 0) {
                conn_reset(conn); /* the server may still attach it, and this side comes again */
                conn_close(conn);
        } else {
                r = settle(p, bytes_of(answer.data, answer.size), &conn, reply, deadline_ns);
        }
        if (!r)
                *ret = conn;
        return end(p, r, reply);
}

static uint64_t deadline_of(const struct dial_params *p)
{
        int ms = p->timeout_ms > 0 ? p->timeout_ms : TIMEOUT_DEFAULT_MS;
        return clock_now_ns() + (uint64_t)ms * 1000000;
}

int loop_hello(const struct dial_params *p, struct conn *conn, struct conn **ret,
               struct dial_reply *reply)
{
        return hello_until(p, conn, ret, reply, deadline_of(p));
}

int loop_connect(const struct dial_params *p, struct conn **ret, struct dial_reply *reply)
{
        uint64_t deadline = deadline_of(p);
        const struct transport_ops *t = transport_of(p->address);
        struct conn *conn;
        *reply = (struct dial_reply){ 0 };
        int r = t ? t->connect(p->address, clock_poll_ms(deadline), &conn) : SP_E_INVAL;
        if (r < 0) {
                loop_explain(p, r, reply);
                return r;
        }
        if (p->own_user && !conn_is_own_user(conn)) {
                conn_close(conn);
                snprintf(reply->text, sizeof(reply->text), "another user listens there");
                return SP_E_AUTH;
        }
        return hello_until(p, conn, ret, reply, deadline);
}

int loop_greet(const struct dial_params *p, struct conn *conn, struct buf *ret,
               struct dial_reply *reply)
{
        *reply = (struct dial_reply){ 0 };
        return end(p, greet(p, conn, ret, reply, deadline_of(p)), reply);
}

int loop_settle(const struct dial_params *p, struct bytes answer, struct conn *conn,
                struct conn **ret, struct dial_reply *reply)
{
        *reply = (struct dial_reply){ 0 };
        int r = settle(p, answer, &conn, reply, deadline_of(p));
        if (!r)
                *ret = conn;
        return end(p, r, reply);
}

unsigned dial_pause(unsigned *pause_ms, unsigned max_ms)
{
        unsigned ms = *pause_ms;
        *pause_ms = 2 * ms < max_ms ? 2 * ms : max_ms;
        return ms;
}

int loop_probe(struct conn *conn, int timeout_ms)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        const struct dial_params p = { .timeout_ms = timeout_ms, .role = DIAL_PEER };
        const struct wire_hello hello = dial_hello(&p);
        _Alignas(8) uint8_t in[HELLO_PREFIX + FRAME_HELLO_MAX];
        struct wire_hello_reply m;
        uint64_t deadline = deadline_of(&p);
        int r = hello_put(&out, &hello);
        if (!r)
                r = send_all(conn, bytes_of(out.data, out.size), deadline);
        if (!r)
                r = receive_hello(conn, in, sizeof(in), deadline);
        if (r > 0)
                r = hello_get_reply(bytes_of(in, (size_t)r), &m);
        conn_close(conn);
        return r;
}
