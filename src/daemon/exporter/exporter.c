#include "daemon/exporter/exporter.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/loopback.h"
#include "base/mem.h"
#include "daemon/control.h"
#include "daemon/exporter/http.h"
#include "daemon/exporter/metrics.h"
#include "daemon/system/rights.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/net/socket.h"
#include "os/poll.h"
#include "os/process/process.h"
#include "os/signals.h"
#include "proto/info.h"
#include "session/hello.h"

#define LOG "exporter"
#define MS  1000000ull /* ns */

enum {
        CLIENTS_MAX = 64,
        CLIENT_MS = 5000, /* for a request and its response */
        LINGER_MS = 1000, /* for a client to close after its response */
        FRESH_MS = 1000,  /* for which a text serves further scrapes */
        QUERY_MS = 2000,  /* for all sessions to answer */
        ANSWER_MAX = 4 << 20,
        DESCRIPTORS = CLIENTS_MAX + 16,
};

/* A connection. It is in one of these states, in their order. */
enum client_state { CLIENT_ASKS, CLIENT_WAITS, CLIENT_TAKES, CLIENT_LEAVES };

struct client {
        int fd;
        enum client_state state;
        uint64_t deadline_ns;
        uint64_t arrival; /* the number of its arrival */
        size_t size;      /* bytes of the head */
        char head[HTTP_HEAD_MAX];
        struct buf response;
};

struct exporter {
        int listener;
        bool any_host; /* as of http_judge */
        struct client clients[CLIENTS_MAX];
        size_t count;
        uint64_t arrivals;
        int query; /* the connection of the running query; -1: none runs */
        uint64_t query_by_ns;
        struct buf answer;  /* bytes of it that are no whole exchange yet */
        size_t answer_size; /* all bytes of it */
        struct metrics metrics;
        struct buf text; /* the last one */
        uint64_t text_ns;
};

/* ---- clients ------------------------------------------------------------------------------------ */

static void drop(struct exporter *x, size_t i)
{
        (void)file_close(x->clients[i].fd);
        buf_fini(&x->clients[i].response);
        x->clients[i] = x->clients[--x->count];
}

/* Send what the socket takes. False: the client is gone. */
static bool hand_out(struct client *c)
{
        ssize_t n = socket_send(c->fd, c->response.data, c->response.size);
        if (n < 0)
                return errno == EAGAIN;
        buf_consume(&c->response, (size_t)n);
        if (c->response.size)
                return true;
        /* If this side closed with unread bytes there, the client could lose the response. */
        socket_end_sending(c->fd);
        c->state = CLIENT_LEAVES;
        c->deadline_ns = clock_now_ns() + LINGER_MS * MS;
        return true;
}

static bool respond(struct exporter *x, struct client *c, enum http_status status)
{
        c->state = CLIENT_TAKES;
        if (http_respond(status, bytes_of(x->text.data, x->text.size), &c->response) < 0)
                return false;
        return hand_out(c);
}

/* Answer all clients that wait for a text. */
static void respond_all(struct exporter *x, enum http_status status)
{
        for (size_t i = x->count; i-- > 0;)
                if (x->clients[i].state == CLIENT_WAITS && !respond(x, &x->clients[i], status))
                        drop(x, i);
}

/* Read a part of the request. False: the connection is over. */
static bool read_head(struct exporter *x, struct client *c)
{
        ssize_t n = socket_receive(c->fd, c->head + c->size, sizeof(c->head) - c->size);
        if (n <= 0)
                return n < 0 && errno == EAGAIN;
        c->size += (size_t)n;
        enum http_status status = http_judge(bytes_of(c->head, c->size), x->any_host);
        if (status == HTTP_MORE)
                return true;
        if (status != HTTP_OK)
                return respond(x, c, status);
        c->state = CLIENT_WAITS;
        return true;
}

/* Drop what a client sends behind its request. False: it has closed. */
static bool discard(struct client *c)
{
        char rest[4096];
        ssize_t n = socket_receive(c->fd, rest, sizeof(rest));
        return n > 0 || (n < 0 && errno == EAGAIN);
}

static bool serve(struct exporter *x, struct client *c, short events)
{
        switch (c->state) {
        case CLIENT_ASKS:
                return read_head(x, c);
        case CLIENT_WAITS:
                return !(events & (POLLHUP | POLLERR));
        case CLIENT_TAKES:
                return hand_out(c);
        default:
                return discard(c);
        }
}

static short wanted(const struct client *c)
{
        switch (c->state) {
        case CLIENT_WAITS:
                return 0;
        case CLIENT_TAKES:
                return POLLOUT;
        default:
                return POLLIN;
        }
}

/* Drop the oldest connection, first of those whose request has not come or was answered. */
static void drop_oldest(struct exporter *x)
{
        size_t oldest = 0;
        bool oldest_served = true;
        for (size_t i = 0; i < x->count; i++) {
                const struct client *c = &x->clients[i];
                bool served = c->state == CLIENT_WAITS || c->state == CLIENT_TAKES;
                if (served > oldest_served ||
                    (i && served == oldest_served && c->arrival > x->clients[oldest].arrival))
                        continue;
                oldest = i;
                oldest_served = served;
        }
        drop(x, oldest);
}

static void welcome(struct exporter *x)
{
        for (int i = 0; i < CLIENTS_MAX; i++) {
                int fd = socket_accept(x->listener);
                if (fd < 0)
                        return;
                if (x->count == CLIENTS_MAX)
                        drop_oldest(x);
                x->clients[x->count++] = (struct client){
                        .fd = fd,
                        .deadline_ns = clock_now_ns() + CLIENT_MS * MS,
                        .arrival = ++x->arrivals,
                };
        }
}

/* ---- the query ---------------------------------------------------------------------------------- */

/* Make the text of the answers that have come. */
static void finish(struct exporter *x)
{
        (void)file_close(x->query);
        x->query = -1;
        x->text.size = 0;
        bool good = metrics_put(&x->metrics, &x->text) == 0;
        x->text_ns = good ? clock_now_ns() : 0;
        respond_all(x, good ? HTTP_OK : HTTP_UNAVAILABLE);
}

/* Ask the supervisor. It writes the answer of a client that looks (session/hello.h) into the other
 * end of a pair of sockets, and closes it. */
static void ask(struct exporter *x)
{
        int pair[2];
        if (!socket_pair_streams(pair)) {
                respond_all(x, HTTP_UNAVAILABLE);
                return;
        }
        int r = control_send(CONTROL_FD, CONTROL_METRICS, bytes_str(""), pair[1]);
        (void)file_close(pair[1]);
        if (r < 0) {
                (void)file_close(pair[0]);
                respond_all(x, HTTP_UNAVAILABLE);
                return;
        }
        x->query = pair[0];
        x->query_by_ns = clock_now_ns() + QUERY_MS * MS;
        x->answer.size = x->answer_size = 0;
        memset(&x->metrics, 0, sizeof(x->metrics));
}

/* Take the whole exchanges of the answer. SP_E_PROTO. */
static int take(struct exporter *x)
{
        for (;;) {
                struct wire_session_stats m;
                int size = hello_size(bytes_of(x->answer.data, x->answer.size));
                if (size < 0 || x->answer.size < (size_t)size)
                        return size < 0 ? size : 0;
                /* The first one is a hello_reply. */
                if (!hello_get_stats(bytes_of(x->answer.data, (size_t)size), &m) &&
                    !info_check(m.links))
                        metrics_take(&x->metrics, &m);
                buf_consume(&x->answer, (size_t)size);
        }
}

/* Read a part of the answer. */
static void read_supervisor(struct exporter *x)
{
        enum { CHUNK = 64 << 10 };
        if (buf_reserve(&x->answer, CHUNK) < 0 || x->answer_size > ANSWER_MAX) {
                finish(x);
                return;
        }
        ssize_t n = socket_receive(x->query, x->answer.data + x->answer.size, CHUNK);
        if (n < 0 && errno == EAGAIN)
                return;
        if (n > 0) {
                x->answer.size += (size_t)n;
                x->answer_size += (size_t)n;
                if (take(x) < 0)
                        finish(x);
                return;
        }
        if (x->answer_size)
                finish(x);
        else { /* the supervisor answers another query, or is out of descriptors */
                (void)file_close(x->query);
                x->query = -1;
                respond_all(x, HTTP_UNAVAILABLE);
        }
}

/* ---- the process -------------------------------------------------------------------------------- */

static bool anyone_waits(const struct exporter *x)
{
        for (size_t i = 0; i < x->count; i++)
                if (x->clients[i].state == CLIENT_WAITS)
                        return true;
        return false;
}

static uint64_t next_deadline(const struct exporter *x)
{
        uint64_t d = x->query >= 0 ? x->query_by_ns : UINT64_MAX;
        for (size_t i = 0; i < x->count; i++)
                d = x->clients[i].deadline_ns < d ? x->clients[i].deadline_ns : d;
        return d;
}

static void expire(struct exporter *x)
{
        uint64_t now = clock_now_ns();
        if (x->query >= 0 && x->query_by_ns <= now)
                finish(x);
        for (size_t i = x->count; i-- > 0;)
                if (x->clients[i].deadline_ns <= now)
                        drop(x, i);
}

/* Serve the clients that wait: with the last text while it is fresh. */
static void provide(struct exporter *x)
{
        if (x->query >= 0 || !anyone_waits(x))
                return;
        if (x->text_ns && clock_now_ns() - x->text_ns < FRESH_MS * MS)
                respond_all(x, HTTP_OK);
        else
                ask(x);
}

/* Give up all rights. The supervisor has opened what this process needs. */
static void give_up_rights(void)
{
        int error = rights_give_up(DESCRIPTORS);
        if (error)
                log_warn(LOG, "it stays root: %s", strerror(error));
}

/* Receive the listening socket. -1: the supervisor is gone. */
static int receive_listener(void)
{
        static struct control c;
        struct pollfd p = { .fd = CONTROL_FD, .events = POLLIN };
        while (poll(&p, 1, -1) < 0)
                ;
        return control_receive(CONTROL_FD, &c) < 0 || c.kind != CONTROL_METRICS ? -1 : c.fd;
}

/* Return true if browsers of this host do not reach the listener, or all hosts do. */
static bool takes_any_host(int listener)
{
        struct socket_address a;
        return socket_own_address(listener, &a) && !loopback_address(socket_address_raw(&a));
}

/* Wait for events once and handle them. False: the supervisor is gone. */
static bool turn(struct exporter *x)
{
        struct pollfd p[3 + CLIENTS_MAX] = {
                { .fd = CONTROL_FD, .events = POLLIN },
                { .fd = x->listener, .events = POLLIN },
                { .fd = x->query, .events = POLLIN },
        };
        size_t count = x->count;
        for (size_t i = 0; i < count; i++)
                p[3 + i] =
                        (struct pollfd){ .fd = x->clients[i].fd, .events = wanted(&x->clients[i]) };
        if (poll(p, 3 + count, clock_poll_ms(next_deadline(x))) < 0)
                return true;
        if (p[0].revents) /* the supervisor sends nothing further */
                return false;
        /* From the end, because a dropped connection's place gets the last one. */
        for (size_t i = count; i-- > 0;)
                if (p[3 + i].revents && !serve(x, &x->clients[i], p[3 + i].revents))
                        drop(x, i);
        if (p[2].revents)
                read_supervisor(x);
        expire(x);
        if (p[1].revents)
                welcome(x);
        provide(x);
        return true;
}

int exporter_main(void)
{
        static struct exporter x = { .query = -1 }; /* static because it is large */
        process_name("spancld-export");
        signals_ignore_pipe();
        x.listener = receive_listener();
        if (x.listener < 0)
                return 1;
        x.any_host = takes_any_host(x.listener);
        give_up_rights();
        while (turn(&x))
                ;
        return 0;
}
