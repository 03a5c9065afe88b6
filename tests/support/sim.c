#include "support/sim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/config.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/io.h"
#include "session/hello.h"
#include "support/parcels.h"

#define NEVER UINT64_MAX

enum {
        LINKS_MAX = 2 * SIM_SERVERS_MAX * SIM_SERVERS_MAX + 2 * SIM_SERVERS_MAX,
        DIALS_MAX = SIM_SERVERS_MAX * SIM_SERVERS_MAX,
        DIAL_TRIES = 20000,
        CLIENT_LINKS_MAX = 2 * SIM_SERVERS_MAX, /* a server's old and new session */
};

/* Bytes on their way in one direction; those of a segment arrive together. */
struct segment {
        uint64_t at;
        size_t size;
};

struct pipe {
        struct buf bytes;
        struct segment *segments;
        size_t count, cap, arrived; /* bytes that have arrived */
        uint64_t last_at, passed, put;
        struct buf trace; /* verbose: of lane 0, what is not a whole frame yet */
};

struct sim_server;

/* One side of a connection. */
struct end {
        struct session *session;   /* NULL: the other side went away */
        struct sim_server *server; /* NULL: the client */
};

/* One lane's connection. */
struct sim_link {
        bool up;
        bool broken;    /* no more bytes go in; the ends notice after the last that has */
        bool half_open; /* nothing arrives any more, and each end believes in it until then: */
        uint64_t notice_at[2];
        unsigned slowness; /* delays are so many times longer than others' */
        unsigned lane;
        struct end end[2];
        struct pipe pipe[2]; /* by the end that sends */
};

/* The client's handle for a server's connections. */
struct io_link {
        struct sim *sim;
        struct session *session;
        struct sim_server *server;
        uint64_t attach_at; /* lane 1 comes up; NEVER: not asked for */
        uint64_t redial_at; /* lane 0 comes up again; NEVER: it is up */
        uint64_t redial_until;
        uint64_t open_at; /* a later session begins; NEVER: no */
        struct io_connect opened;
        uint64_t id[2];
        uint64_t generation; /* of the next try */
        bool redialled;      /* it came up since the last receive */
        struct buf early;    /* sent behind the next hello */
        bool was_short;      /* the last send was short of room */
};

struct sim_server {
        struct sim *sim;
        unsigned index;
        char name[16], address[32];
        struct engine *engine;
        bool dead, frozen;
        bool over;  /* the client closed the session */
        bool away;  /* the client's connections are lost */
        bool stuck; /* the backend had nothing to run though commands are said to run */
        uint64_t id[2], key[2];
        uint64_t clock_offset;
        uint64_t execute_at;
};

struct dial {
        uint64_t at; /* of the next try; NEVER: it is connected, or given up */
        struct sim_server *from, *to;
        struct session *session; /* of `from`; NULL: free */
        uint64_t token[2], id[2];
        unsigned tries;
};

struct sim {
        struct sim_params params;
        struct rng rng;
        uint64_t now, delay_ns, execute_ns;
        size_t room;
        struct client *client;
        struct io_link *client_links[CLIENT_LINKS_MAX]; /* while the client has them; with gaps */
        bool woken;
        bool broken; /* by sim_kill_server */
        bool gave_up;
        struct server_spec specs[SIM_SERVERS_MAX];
        struct sim_server servers[SIM_SERVERS_MAX];
        struct sim_link links[LINKS_MAX];
        unsigned link_count;
        struct dial dials[DIALS_MAX];
        struct parcels parcels;
        struct buf output;
        struct kept *kept;
};

struct kept {
        struct kept *next;
        void *memory;
};

void sim_fail(const struct sim *sim, const char *fmt, ...)
{
        va_list ap;
        fprintf(stderr, "\nsim: seed %" PRIu64 " fails at %" PRIu64 " ns: ", sim->params.seed,
                sim->now);
        va_start(ap, fmt);
        vfprintf(stderr, fmt, ap);
        va_end(ap);
        fprintf(stderr, "\nagain: sim_sim --seeds %" PRIu64 " %" PRIu64 "\n", sim->params.seed,
                sim->params.seed);
        abort(); /* with a stack in the debugger and in the sanitizers' reports */
}

#define must(sim, cond)                                                                \
        do {                                                                           \
                if (!(cond))                                                           \
                        sim_fail(sim, "%s:%d: not so: %s", __FILE__, __LINE__, #cond); \
        } while (0)

/* ---- pipes ---------------------------------------------------------------------------------- */

/* The simulator's own memory never fails, whatever mem_fail_at says. */
static void append(struct buf *b, const void *data, size_t size)
{
        if (b->cap - b->size < size) {
                b->cap = 2 * b->cap + size;
                b->data = realloc(b->data, b->cap);
                if (!b->data)
                        abort();
        }
        memcpy(b->data + b->size, data, size);
        b->size += size;
}

static void pipe_fini(struct pipe *p)
{
        buf_fini(&p->bytes);
        buf_fini(&p->trace);
        mem_free(p->segments);
        *p = (struct pipe){ 0 };
}

static void pipe_put(struct sim *sim, struct pipe *p, unsigned slowness, const void *data,
                     size_t size)
{
        if (p->count == p->cap) {
                p->cap = p->cap ? 2 * p->cap : 16;
                p->segments = realloc(p->segments, p->cap * sizeof(*p->segments));
                must(sim, p->segments);
        }
        uint64_t delay = rng_range(&sim->rng, sim->delay_ns / 4 + 1, sim->delay_ns + 2);
        uint64_t at = sim->now + delay * slowness;
        if (sim->params.cuts && rng_chance(&sim->rng, 2)) /* now and then one takes long */
                at += delay * rng_range(&sim->rng, 1, 100);
        if (at < p->last_at)
                at = p->last_at;
        p->last_at = at;
        p->segments[p->count++] = (struct segment){ at, size };
        append(&p->bytes, data, size);
        p->put += size;
}

/* Only a part of what is on its way arrives. */
static void pipe_cut(struct sim *sim, struct pipe *p)
{
        size_t on_way = p->bytes.size - p->arrived, kept = rng_below(&sim->rng, on_way + 1), n = 0;
        p->bytes.size = p->arrived + kept;
        while (n < p->count && kept) {
                size_t size = p->segments[n].size < kept ? p->segments[n].size : kept;
                p->segments[n++].size = size;
                kept -= size;
        }
        p->count = n;
}

/* What has arrived by now. */
static void pipe_tick(const struct sim *sim, struct pipe *p)
{
        size_t n = 0;
        while (n < p->count && p->segments[n].at <= sim->now)
                p->arrived += p->segments[n++].size;
        if (!n)
                return;
        memmove(p->segments, p->segments + n, (p->count - n) * sizeof(*p->segments));
        p->count -= n;
}

static const char *end_name(const struct end *e)
{
        return e->server ? e->server->name : "client";
}

/* Print the messages that leave end `i`. */
static void trace(struct sim *sim, struct sim_link *l, int i, const void *data, size_t size)
{
        struct buf *b = &l->pipe[i].trace;
        struct frame f;
        char text[1000];
        append(b, data, size);
        while (b->size >= FRAME_HEADER_SIZE && frame_get(b->data, &f) == 0 &&
               b->size >= FRAME_HEADER_SIZE + f.size) {
                for (size_t at = 0; at < f.size;) {
                        const uint8_t *msg = b->data + FRAME_HEADER_SIZE + at;
                        wire_print(bytes_of(msg, wire_message_size(msg)), text, sizeof(text));
                        fprintf(stderr, "    %" PRIu64 " %s → %s: %s\n", sim->now,
                                end_name(&l->end[i]), end_name(&l->end[!i]), text);
                        at += wire_message_size(msg);
                }
                buf_consume(b, FRAME_HEADER_SIZE + f.size);
        }
}

static bool is_held_back(const struct sim_link *l, int i)
{
        return l->end[i].server && l->end[i].server->frozen;
}

static size_t any_amount(struct rng *rng)
{
        switch (rng_below(rng, 4)) {
        case 0:
                return rng_range(rng, 1, 40);
        case 1:
                return rng_range(rng, 1, 5000);
        default:
                return SIZE_MAX / 2;
        }
}

/* Move what end `i` of the link has to send into its pipe. True: it had more than there was room for. */
static bool push(struct sim *sim, struct sim_link *l, int i)
{
        struct pipe *p = &l->pipe[i];
        while (l->up && l->end[i].session) {
                struct iovec iov[8];
                int n = session_lane_pending(l->end[i].session, l->lane, iov,
                                             (int)rng_range(&sim->rng, 2, 8));
                if (n <= 0)
                        return false;
                if (l->broken || !l->end[!i].session)
                        return false;
                if (l->lane && parcels_pack(&sim->parcels, &sim->rng, l->end[i].session, l->lane))
                        n = session_lane_pending(l->end[i].session, l->lane, iov, 2);
                size_t left = any_amount(&sim->rng), taken = 0;
                size_t room = sim->room - (p->bytes.size < sim->room ? p->bytes.size : sim->room);
                if (!room)
                        return true;
                left = left < room ? left : room;
                for (int k = 0; k < n && left; k++) {
                        must(sim, iov[k].iov_len > 0);
                        size_t len = iov[k].iov_len < left ? iov[k].iov_len : left;
                        pipe_put(sim, p, l->slowness, iov[k].iov_base, len);
                        if (sim->params.tamper && !l->end[!i].server)
                                sim->params.tamper(sim->params.tamper_user, l->lane, p->put - len,
                                                   p->bytes.data + p->bytes.size - len, len);
                        if (sim->params.verbose && !l->lane)
                                trace(sim, l, i, iov[k].iov_base, len);
                        taken += len;
                        left -= len;
                }
                session_lane_sent(l->end[i].session, l->lane, taken);
        }
        return false;
}

/* Hand some of what has arrived at end `i` to its session. 1: some; 0: nothing, or the lane waits;
 * negative: the session has ended. */
static int pull(struct sim *sim, struct sim_link *l, int i)
{
        struct pipe *p = &l->pipe[!i];
        struct iovec iov[2];
        if (!l->up || !l->end[i].session || is_held_back(l, !i))
                return 0;
        if (l->half_open)
                return l->notice_at[i] <= sim->now ? SP_E_LINK : 0;
        pipe_tick(sim, p);
        if (!p->arrived)
                return l->broken && !p->count ? SP_E_LINK : 0;
        int n = session_lane_want(l->end[i].session, l->lane, iov);
        if (n <= 0)
                return n;
        size_t max = any_amount(&sim->rng), given = 0;
        max = max < p->arrived ? max : p->arrived;
        for (int k = 0; k < n && given < max; k++) {
                must(sim, iov[k].iov_len > 0);
                size_t len = iov[k].iov_len < max - given ? iov[k].iov_len : max - given;
                memcpy(iov[k].iov_base, p->bytes.data + given, len);
                given += len;
        }
        buf_consume(&p->bytes, given);
        p->arrived -= given;
        p->passed += given;
        int r = session_lane_received(l->end[i].session, l->lane, given);
        r = parcels_unpack(&sim->parcels, l->end[i].session, l->lane, r);
        return r < 0 ? r : 1;
}

/* A link that both ends have left is used again. */
static struct sim_link *link_ends(struct sim *sim, unsigned lane, struct end a, struct end b)
{
        unsigned k = 0;
        while (k < sim->link_count &&
               (sim->links[k].end[0].session || sim->links[k].end[1].session))
                k++;
        must(sim, k < LINKS_MAX);
        sim->link_count += k == sim->link_count;
        struct sim_link *l = &sim->links[k];
        for (int i = 0; i < 2; i++)
                pipe_fini(&l->pipe[i]);
        *l = (struct sim_link){ .up = true, .lane = lane, .end = { a, b }, .slowness = 1 };
        /* Lanes overtake each other. */
        if (sim->params.cuts && rng_chance(&sim->rng, 30))
                l->slowness = (unsigned)rng_range(&sim->rng, 2, 30);
        return l;
}

static struct sim_link *connect_ends(struct sim *sim, unsigned lane, struct end a, struct end b)
{
        struct sim_link *l = link_ends(sim, lane, a, b);
        uint64_t next[2] = { session_next_seq(a.session), session_next_seq(b.session) };
        bool packs = rng_chance(&sim->rng, 50);
        for (int i = 0; i < 2; i++)
                if (session_lane_up(l->end[i].session, lane, lane ? 0 : next[!i]) < 0)
                        must(sim, sim->params.forgiving); /* its session has ended */
        for (int i = 0; lane && packs && i < 2; i++)
                session_lane_packs(l->end[i].session, lane);
        return l;
}

/* End `i` closes the connection; the other side notices after the last byte. */
static void close_end(struct sim_link *l, int i)
{
        if (l->end[i].session && session_lane_is_up(l->end[i].session, l->lane))
                session_lane_down(l->end[i].session, l->lane);
        l->end[i].session = NULL;
        l->broken = true;
        pipe_fini(&l->pipe[!i]); /* nobody reads it any more */
}

/* ---- servers -------------------------------------------------------------------------------- */

static int end_of(const struct sim_link *l, const struct sim_server *server)
{
        for (int i = 0; i < 2; i++)
                if (l->end[i].server == server && l->end[i].session)
                        return i;
        return -1;
}

static void on_flush(void *user, struct session *s)
{
        /* serve() looks at all sessions after whatever happened. */
}

static void on_dial(void *user, struct session *s, uint64_t peer, const char *host, unsigned port,
                    const char *near, const uint64_t session_id[2], const uint64_t token[2])
{
        struct sim_server *server = user;
        struct sim *sim = server->sim;
        for (unsigned i = 0; i < DIALS_MAX; i++) {
                struct dial *d = &sim->dials[i];
                if (d->session && d->session != s)
                        continue;
                must(sim, port >= 1 && port <= sim->params.servers);
                must(sim, !strcmp(host, sim->servers[port - 1].name));
                *d = (struct dial){
                        .at = sim->now + 2 * sim->delay_ns + 1,
                        .from = server,
                        .to = &sim->servers[port - 1],
                        .session = s,
                        .token = { token[0], token[1] },
                };
                d->id[0] = session_id[0];
                d->id[1] = session_id[1];
                return;
        }
        sim_fail(sim, "too many dials");
}

static struct dial *dial_of(struct sim *sim, const struct session *s)
{
        for (unsigned i = 0; i < DIALS_MAX; i++)
                if (sim->dials[i].session == s)
                        return &sim->dials[i];
        return NULL;
}

/* One side of a peer's session has no connections any more. */
static void close_session(struct sim *sim, const struct session *s)
{
        for (unsigned k = 0; k < sim->link_count; k++)
                for (int i = 0; i < 2; i++)
                        if (sim->links[k].end[i].session == s)
                                close_end(&sim->links[k], i);
}

static void on_hang_up(void *user, struct session *s)
{
        struct sim *sim = ((struct sim_server *)user)->sim;
        struct dial *d = dial_of(sim, s);
        close_session(sim, s);
        if (d)
                *d = (struct dial){ .at = NEVER };
}

static uint64_t on_now(void *user)
{
        struct sim_server *server = user;
        return server->sim->now + server->clock_offset;
}

static const struct engine_ops engine_ops = {
        .flush = on_flush,
        .dial = on_dial,
        .hang_up = on_hang_up,
        .now_ns = on_now,
};

/* The server has lost the client's connections, or another one takes their place. */
static void client_gone(struct sim_server *s)
{
        struct sim *sim = s->sim;
        s->away = true;
        for (unsigned k = 0; k < sim->link_count; k++) {
                struct sim_link *l = &sim->links[k];
                for (int i = 0; i < 2; i++)
                        if (l->end[i].server == s && l->end[i].session == engine_session(s->engine))
                                close_end(l, i);
        }
}

/* A link of the server ends: with the client, the session waits for nobody here; with a peer, the engine
 * is told. */
static void server_link_lost(struct sim_server *s, struct sim_link *l, int i, int status)
{
        struct sim *sim = s->sim;
        struct session *session = l->end[i].session;
        if (status != SP_E_LINK && status != SP_E_GONE && !sim->params.forgiving)
                sim_fail(sim, "server %u: session ends with %s", s->index, status_text(status));
        bool with_client = session == engine_session(s->engine);
        close_end(l, i);
        if (with_client && status == SP_E_LINK && sim->params.reconnect_ns &&
            !engine_closed(s->engine)) {
                client_gone(s);
        } else if (with_client) {
                s->over = true;
        } else {
                struct dial *d = dial_of(sim, session);
                close_session(sim, session);
                if (status != SP_E_LINK)
                        engine_peer_failed(s->engine, session, status, "its session has ended");
                else if (d && !s->over)
                        d->at = sim->now + rng_range(&sim->rng, 1, 2 * sim->delay_ns + 1);
        }
}

/* One round at the server: a portion of what has arrived on each link is taken in, what it has to say
 * goes out. True: something was taken in. */
static bool serve_once(struct sim_server *s)
{
        struct sim *sim = s->sim;
        bool progress = false;
        unsigned first = (unsigned)rng_below(&sim->rng, sim->link_count);
        for (unsigned k = 0; k < sim->link_count; k++) {
                struct sim_link *l = &sim->links[(first + k) % sim->link_count];
                int i = end_of(l, s);
                int r = i < 0 ? 0 : pull(sim, l, i);
                if (r < 0)
                        server_link_lost(s, l, i, r);
                progress |= r != 0;
        }
        if (!progress || rng_chance(&sim->rng, 50))
                engine_settle(s->engine);
        for (unsigned k = 0; k < sim->link_count; k++) {
                int i = end_of(&sim->links[k], s);
                if (i >= 0)
                        push(sim, &sim->links[k], i);
        }
        return progress;
}

/* True: something was taken in; who sent it may have room again. */
static bool serve(struct sim_server *s)
{
        struct sim *sim = s->sim;
        bool any = false;
        if (s->dead)
                return false;
        engine_lock(s->engine);
        /* Twice nothing: settling may have let a bulk lane go on. */
        for (unsigned idle = 0; idle < 2;) {
                bool progress = serve_once(s);
                idle = progress ? 0 : idle + 1;
                s->stuck &= !progress;
                any |= progress;
        }
        struct engine_counts n;
        engine_get_counts(s->engine, &n);
        if (!n.commands_running || s->stuck)
                s->execute_at = NEVER;
        else if (s->execute_at == NEVER)
                s->execute_at = sim->now + rng_range(&sim->rng, 1, sim->execute_ns);
        engine_unlock(s->engine);
        return any;
}

static void serve_all(struct sim *sim)
{
        for (bool any = true; any;) {
                any = false;
                for (unsigned i = 0; i < sim->params.servers; i++)
                        any |= serve(&sim->servers[i]);
        }
}

static void execute(struct sim_server *s)
{
        struct sim *sim = s->sim;
        s->execute_at = NEVER;
        size_t max = rng_range(&sim->rng, 1, 3);
        s->stuck = backend_reference_step(engine_backend(s->engine), max) == 0;
        serve(s);
}

/* A try to connect a peer, which may fail once the other side believes that it has not. */
static bool connect_peer(struct sim *sim, struct dial *d, struct session *there)
{
        uint64_t a = session_generation(d->session), b = session_generation(there);
        uint64_t generation = (a > b ? a : b) + 1;
        bool arrives = rng_chance(&sim->rng, 80);
        close_session(sim, there);
        uint64_t next_seq = session_next_seq(there);
        int r = session_lane_up(there, 0, session_next_seq(d->session));
        if (r == 0)
                r = session_resume(there, generation);
        if (!arrives) {
                session_lane_down(there, 0);
                return false;
        }
        if (r == 0)
                r = session_lane_up(d->session, 0, next_seq);
        if (r == 0)
                r = session_resume(d->session, generation);
        must(sim, r == 0 || sim->params.forgiving); /* a session has ended */
        link_ends(sim, 0, (struct end){ d->session, d->from }, (struct end){ there, d->to });
        connect_ends(sim, 1, (struct end){ d->session, d->from }, (struct end){ there, d->to });
        return true;
}

static bool is_blocked(const struct sim *sim, const struct sim_server *from,
                       const struct sim_server *to)
{
        return sim->params.blocked >> (SIM_SERVERS_MAX * from->index + to->index) & 1;
}

static void dialled(struct sim *sim, struct dial *d)
{
        struct sim_server *from = d->from, *to = d->to;
        struct session *there = NULL;
        d->at = NEVER;
        if (from->dead || from->over) {
                d->session = NULL;
                return;
        }
        bool refused = to->dead || to->over || is_blocked(sim, from, to) ||
                       memcmp(to->id, d->id, sizeof(d->id)) != 0;
        if (!refused) {
                engine_lock(to->engine);
                there = engine_peer_session(to->engine, d->token);
                engine_unlock(to->engine);
        }
        if (there) {
                struct sim_server *first = from->index < to->index ? from : to;
                engine_lock(first->engine);
                engine_lock((first == from ? to : from)->engine);
                if (!connect_peer(sim, d, there))
                        d->at = sim->now + rng_range(&sim->rng, 1, 4 * sim->delay_ns + 1);
                engine_unlock(to->engine);
                engine_unlock(from->engine);
        } else if (!refused && ++d->tries < DIAL_TRIES) {
                d->at = sim->now + sim->delay_ns + 1; /* the client's word to it is on its way */
        } else {
                engine_lock(from->engine);
                engine_peer_unreachable(from->engine, d->session, "nobody there");
                engine_unlock(from->engine);
        }
        serve(from);
        serve(to);
}

/* ---- the world's clock ---------------------------------------------------------------------- */

static void attached(struct sim *sim, struct io_link *io, struct session *session)
{
        struct sim_server *s = io->server;
        io->attach_at = NEVER;
        if (s->dead || s->over || memcmp(s->id, io->id, sizeof(io->id)) != 0)
                return;
        engine_lock(s->engine);
        connect_ends(sim, 1, (struct end){ session, NULL },
                     (struct end){ engine_session(s->engine), s });
        engine_unlock(s->engine);
        serve(s);
}

/* The first `size` bytes of what came right behind a hello. Negative: the session has ended. */
static int hear_early(struct session *there, const struct buf *early, size_t size)
{
        for (size_t at = 0; at < size;) {
                struct iovec iov[2];
                int r = session_lane_want(there, 0, iov);
                if (r < 0)
                        return r;
                size_t len = iov[0].iov_len < size - at ? iov[0].iov_len : size - at;
                memcpy(iov[0].iov_base, early->data + at, len);
                at += len;
                r = session_lane_received(there, 0, len);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* A try to reach the server again: a hello may get lost on its way there, or its answer on its way back. */
static void redialled(struct sim *sim, struct io_link *io)
{
        struct sim_server *s = io->server;
        uint64_t generation = io->generation++;
        io->redial_at = NEVER;
        if (!s->dead && memcmp(s->id, io->id, sizeof(io->id)) != 0) {
                io->redial_until = 0; /* it has no such session any more */
                return;
        }
        if (!s->dead && !s->over && rng_chance(&sim->rng, 70)) {
                struct session *there = engine_session(s->engine);
                engine_lock(s->engine);
                must(sim, generation > session_generation(there));
                client_gone(s);
                s->away = false;
                bool arrives = rng_chance(&sim->rng, 70);
                uint64_t next_seq = session_next_seq(there);
                must(sim, session_lane_up(there, 0, session_next_seq(io->session)) == 0);
                must(sim, session_resume(there, generation) == 0);
                size_t heard = arrives ? io->early.size : rng_below(&sim->rng, io->early.size + 1);
                bool over = hear_early(there, &io->early, heard) < 0;
                must(sim, !over || sim->params.forgiving);
                engine_settle(s->engine);
                if (arrives) {
                        must(sim, session_lane_up(io->session, 0, next_seq) == 0);
                        if (io->early.size)
                                session_early_sent(io->session);
                        must(sim, session_resume(io->session, generation) == 0);
                        link_ends(sim, 0, (struct end){ io->session, NULL },
                                  (struct end){ there, s });
                        io->redialled = true;
                } else {
                        session_lane_down(there, 0);
                        s->away = true;
                        s->over |= over;
                }
                engine_unlock(s->engine);
                if (arrives) {
                        serve(s);
                        return;
                }
        }
        io->early.size = 0; /* it goes with the first try */
        if (sim->now < io->redial_until)
                io->redial_at = sim->now + rng_range(&sim->rng, 1, 4 * sim->delay_ns + 1);
        else
                io->redial_until = 0; /* given up: receive tells */
}

/* When a byte arrives at end `i`, or its end shows; NEVER if none is on its way. */
static uint64_t arrival(const struct sim_link *l, int i)
{
        const struct pipe *p = &l->pipe[!i];
        if (!l->up || !l->end[i].session || is_held_back(l, !i))
                return NEVER;
        if (l->half_open)
                return l->notice_at[i];
        if (p->count)
                return p->segments[0].at;
        /* The end of it: a server notices at once; the client when it receives (client_ready). */
        return l->broken && !p->arrived && l->end[i].server ? 0 : NEVER;
}

static void earlier(uint64_t at, uint64_t *t)
{
        *t = at < *t ? at : *t;
}

/* The time of the next event; NEVER: nothing is on its way anywhere. */
static uint64_t next_event(const struct sim *sim)
{
        uint64_t t = NEVER;
        for (unsigned k = 0; k < sim->link_count; k++)
                for (int i = 0; i < 2; i++)
                        earlier(arrival(&sim->links[k], i), &t);
        for (unsigned i = 0; i < sim->params.servers; i++)
                earlier(sim->servers[i].dead ? NEVER : sim->servers[i].execute_at, &t);
        for (unsigned i = 0; i < CLIENT_LINKS_MAX; i++) {
                const struct io_link *io = sim->client_links[i];
                earlier(io ? io->attach_at : NEVER, &t);
                earlier(io ? io->redial_at : NEVER, &t);
                earlier(io && !io->server->dead ? io->open_at : NEVER, &t);
        }
        for (unsigned i = 0; i < DIALS_MAX; i++)
                earlier(sim->dials[i].at, &t);
        return t;
}

static struct io_link *io_of(struct sim *sim, const struct session *session)
{
        for (unsigned i = 0; i < CLIENT_LINKS_MAX; i++)
                if (sim->client_links[i] && sim->client_links[i]->session == session)
                        return sim->client_links[i];
        return NULL;
}

static int exchange_hellos(struct sim *sim, struct io_connect *at, struct sim_server *s);

/* A hello for a later session. It, or its answer, may get lost; a server has one session here. */
static bool opened(struct sim *sim, struct io_link *io)
{
        struct sim_server *s = io->server;
        uint64_t now = sim->now;
        io->open_at = now + rng_range(&sim->rng, 1, 4 * sim->delay_ns + 1);
        if (s->id[0] || s->id[1] || !rng_chance(&sim->rng, 70))
                return false;
        io->open_at = NEVER;
        for (unsigned i = 0; i < 2; i++) {
                io->opened.id[i] = rng_u64(&sim->rng) | 1;
                io->opened.key[i] = rng_u64(&sim->rng);
        }
        io->opened.session = io->session;
        must(sim, exchange_hellos(sim, &io->opened, s) == 0);
        sim->now = now; /* that was before */
        io->opened.sent_ns = io->opened.received_ns = now;
        memcpy(io->id, io->opened.id, sizeof(io->id));
        engine_lock(s->engine);
        connect_ends(sim, 0, (struct end){ io->session, NULL },
                     (struct end){ engine_session(s->engine), s });
        engine_unlock(s->engine);
        io->redialled = true;
        serve(s);
        return true;
}

/* Let what is due now happen at the servers. True: the client may have something to do. */
static bool happen(struct sim *sim)
{
        bool client = false;
        if (sim->params.cuts && rng_below(&sim->rng, 1000) < sim->params.cut_chance) {
                unsigned i = (unsigned)rng_below(&sim->rng, sim->params.servers);
                unsigned k = (unsigned)rng_below(&sim->rng, sim->params.servers);
                sim->params.cuts--;
                if (i != k && rng_chance(&sim->rng, 50))
                        sim_cut_peers(sim, i, k);
                else
                        rng_chance(&sim->rng, 30) ? sim_half_open(sim, i) : sim_cut_client(sim, i);
        }
        for (unsigned i = 0; i < DIALS_MAX; i++)
                if (sim->dials[i].at <= sim->now)
                        dialled(sim, &sim->dials[i]);
        for (unsigned i = 0; i < CLIENT_LINKS_MAX; i++) {
                struct io_link *io = sim->client_links[i];
                if (io && io->attach_at <= sim->now) {
                        if (session_lane_is_up(io->session, 0))
                                attached(sim, io, io->session);
                        io->attach_at = NEVER;
                        client = true;
                }
                if (io && io->redial_at <= sim->now) {
                        redialled(sim, io);
                        client |= io->redial_at == NEVER;
                }
                if (io && io->open_at <= sim->now && !io->server->dead)
                        client |= opened(sim, io);
        }
        for (unsigned i = 0; i < sim->params.servers; i++) {
                struct sim_server *s = &sim->servers[i];
                if (!s->dead && s->execute_at <= sim->now)
                        execute(s);
        }
        serve_all(sim);
        for (unsigned k = 0; k < sim->link_count; k++) {
                struct sim_link *l = &sim->links[k];
                for (int i = 0; i < 2; i++) {
                        if (!l->up || !l->end[i].session || l->end[i].server)
                                continue;
                        if (l->half_open) {
                                client |= l->notice_at[i] <= sim->now;
                                continue;
                        }
                        pipe_tick(sim, &l->pipe[!i]);
                        client |= l->pipe[!i].arrived != 0 && !is_held_back(l, !i);
                        client |= l->broken && !l->pipe[!i].count;
                        const struct io_link *io = io_of(sim, l->end[i].session);
                        client |= io && io->was_short && l->pipe[i].bytes.size < sim->room;
                }
        }
        return client;
}

static bool client_ready(struct sim *sim);

void sim_run(struct sim *sim, uint64_t ns)
{
        uint64_t end = sim->now + ns;
        for (;;) {
                while (client_step(sim->client) || client_ready(sim))
                        ;
                uint64_t at = next_event(sim);
                if (at > end)
                        break;
                sim->now = at > sim->now ? at : sim->now;
                happen(sim);
        }
        sim->now = end;
}

void sim_run_until_idle(struct sim *sim)
{
        do {
                uint64_t at = next_event(sim);
                sim_run(sim, at == NEVER || at <= sim->now ? 1 : at - sim->now);
        } while (next_event(sim) != NEVER);
}

/* ---- the client's io ------------------------------------------------------------------------ */

static uint64_t io_now(void *user)
{
        struct sim *sim = user;
        return sim->now;
}

static int exchange_hellos(struct sim *sim, struct io_connect *at, struct sim_server *s)
{
        struct buf there = { 0 }, back = { 0 };
        struct wire_hello m;
        struct wire_hello_reply reply;
        must(sim, hello_put(&there, &(struct wire_hello){
                                            .version_min = WIRE_VERSION,
                                            .version_max = WIRE_VERSION,
                                            .session_hi = at->id[0],
                                            .session_lo = at->id[1],
                                            .key_hi = at->key[0],
                                            .key_lo = at->key[1],
                                            .next_seq = session_next_seq(at->session),
                                            .name = bytes_str("sim"),
                                    }) == 0);
        must(sim, hello_get(bytes_of(there.data, there.size), &m) == 0);
        at->sent_ns = sim->now;
        sim->now += rng_range(&sim->rng, 1, sim->delay_ns + 1);
        s->id[0] = m.session_hi;
        s->id[1] = m.session_lo;
        s->key[0] = m.key_hi;
        s->key[1] = m.key_lo;
        must(sim, hello_put_reply(&back, &(struct wire_hello_reply){
                                                 .version = WIRE_VERSION,
                                                 .time_ns = on_now(s),
                                         }) == 0);
        must(sim, hello_get_reply(bytes_of(back.data, back.size), &reply) == 0);
        sim->now += rng_range(&sim->rng, 1, sim->delay_ns + 1);
        at->received_ns = sim->now;
        at->remote_ns = reply.time_ns;
        buf_fini(&there);
        buf_fini(&back);
        return 0;
}

static struct io_link *new_link(struct sim *sim, struct sim_server *s, struct session *session)
{
        struct io_link *io = calloc(1, sizeof(*io));
        unsigned i = 0;
        while (i < CLIENT_LINKS_MAX && sim->client_links[i])
                i++;
        must(sim, io && i < CLIENT_LINKS_MAX);
        *io = (struct io_link){ .sim = sim,
                                .session = session,
                                .server = s,
                                .attach_at = NEVER,
                                .redial_at = NEVER,
                                .redial_until = NEVER,
                                .open_at = NEVER };
        return sim->client_links[i] = io;
}

static int io_open(void *user, const struct server_spec *spec, struct session *session,
                   uint64_t at_ns, struct io_link **ret)
{
        struct sim *sim = user;
        struct io_link *io = new_link(sim, &sim->servers[spec - sim->specs], session);
        io->open_at = at_ns > sim->now ? at_ns : sim->now + 1;
        *ret = io;
        return 0;
}

static void io_opened(void *user, struct io_link *io, struct io_connect *ret)
{
        struct io_link *link = ret->link;
        const struct server_spec *spec = ret->spec;
        *ret = io->opened;
        ret->link = link;
        ret->spec = spec;
}

static void io_connect_all(void *user, struct io_connect *all, size_t count)
{
        struct sim *sim = user;
        for (size_t i = 0; i < count; i++) {
                struct io_connect *at = &all[i];
                struct sim_server *s = &sim->servers[at->spec - sim->specs];
                at->text[0] = 0;
                if (s->dead) {
                        at->status = SP_E_REFUSED;
                        snprintf(at->text, sizeof(at->text), "nobody listens there");
                        continue;
                }
                at->status = exchange_hellos(sim, at, s);
                must(sim, !at->status);
                at->link = new_link(sim, s, at->session);
                memcpy(at->link->id, at->id, sizeof(at->id));
                engine_lock(s->engine);
                connect_ends(sim, 0, (struct end){ at->session, NULL },
                             (struct end){ engine_session(s->engine), s });
                engine_unlock(s->engine);
        }
}

static int io_attach(void *user, struct io_link *io, unsigned lane)
{
        struct sim *sim = user;
        must(sim, lane == 1 && io->attach_at == NEVER);
        io->attach_at = sim->now + rng_range(&sim->rng, 1, 2 * sim->delay_ns + 1);
        return 0;
}

static bool is_of(const struct sim_link *l, const struct io_link *io)
{
        return l->end[0].session == io->session && !l->end[0].server;
}

static int io_reconnect(void *user, struct io_link *io, uint64_t until_ns)
{
        struct sim *sim = user;
        for (unsigned k = 0; k < sim->link_count; k++)
                if (is_of(&sim->links[k], io) && sim->links[k].end[0].session)
                        close_end(&sim->links[k], 0);
        io->attach_at = NEVER;
        io->was_short = false;
        io->generation = session_generation(io->session) + 1;
        if (io->generation <= session_generation(engine_session(io->server->engine)))
                io->generation = session_generation(engine_session(io->server->engine)) + 1;
        io->early.size = 0;
        if (rng_chance(&sim->rng, 70))
                must(sim, session_early(io->session, any_amount(&sim->rng), &io->early) == 0);
        io->redial_until = until_ns;
        io->redial_at = sim->now + rng_range(&sim->rng, 1, 2 * sim->delay_ns + 1);
        return 0;
}

static int io_send(void *user, struct io_link *io)
{
        struct sim *sim = user;
        io->was_short = false;
        for (unsigned k = 0; k < sim->link_count; k++) {
                struct sim_link *l = &sim->links[k];
                if (!is_of(l, io))
                        continue;
                if (l->broken && !l->pipe[1].bytes.size)
                        return SP_E_LINK;
                io->was_short |= push(sim, l, 0);
        }
        return io->was_short ? SP_E_AGAIN : 0;
}

static int io_receive(void *user, struct io_link *io)
{
        struct sim *sim = user;
        bool any = false;
        if (io->redialled) {
                io->redialled = false;
                return 1;
        }
        if (!io->redial_until)
                return SP_E_GONE;
        for (bool progress = true; progress && rng_chance(&sim->rng, 80);) {
                progress = false;
                unsigned first = (unsigned)rng_below(&sim->rng, sim->link_count);
                for (unsigned k = 0; k < sim->link_count; k++) {
                        struct sim_link *l = &sim->links[(first + k) % sim->link_count];
                        int r = is_of(l, io) ? pull(sim, l, 0) : 0;
                        if (r < 0)
                                return r;
                        progress |= r > 0;
                }
                any |= progress;
        }
        if (any) /* there is room again for what the server has to say */
                serve_all(sim);
        return any;
}

/* Is there anything that `receive` would find or `send` could move? */
static bool client_ready(struct sim *sim)
{
        for (unsigned i = 0; i < CLIENT_LINKS_MAX; i++) {
                const struct io_link *io = sim->client_links[i];
                if (io && (io->redialled || !io->redial_until))
                        return true;
        }
        for (unsigned k = 0; k < sim->link_count; k++) {
                struct sim_link *l = &sim->links[k];
                struct iovec iov[2];
                if (!l->up || !l->end[0].session || l->end[0].server)
                        continue;
                if (l->half_open) {
                        if (l->notice_at[0] <= sim->now)
                                return true;
                        continue;
                }
                pipe_tick(sim, &l->pipe[1]);
                if (is_held_back(l, 1))
                        continue;
                if (l->pipe[1].arrived && session_lane_want(l->end[0].session, l->lane, iov) != 0)
                        return true;
                if (l->broken && !l->pipe[1].count && !l->pipe[1].arrived)
                        return true;
        }
        return false;
}

static void print_servers(struct sim *sim)
{
        for (unsigned i = 0; i < sim->params.servers; i++) {
                struct sim_server *s = &sim->servers[i];
                struct engine_counts n;
                engine_get_counts(s->engine, &n);
                fprintf(stderr,
                        "  server %u: %zu events, %zu transfers, %zu held, %zu running%s%s\n", i,
                        n.events, n.transfers, n.commands_held, n.commands_running,
                        s->stuck ? ", stuck" : "", s->dead ? ", dead" : "");
        }
        for (unsigned k = 0; k < sim->link_count; k++)
                for (int i = 0; i < 2; i++) {
                        const struct sim_link *l = &sim->links[k];
                        if (l->pipe[i].bytes.size)
                                fprintf(stderr, "  %s → %s lane %u: %zu bytes not taken\n",
                                        end_name(&l->end[i]), end_name(&l->end[!i]), l->lane,
                                        l->pipe[i].bytes.size);
                }
}

static void io_wait(void *user, struct io_link *const *links, size_t count, uint64_t deadline_ns,
                    pthread_mutex_t *lock)
{
        struct sim *sim = user;
        for (;;) {
                pthread_mutex_unlock(lock);
                bool did = client_step(sim->client);
                pthread_mutex_lock(lock);
                bool woken = sim->woken;
                sim->woken = false;
                if (did || woken || client_ready(sim))
                        return;
                uint64_t at = next_event(sim);
                if (at == NEVER && deadline_ns == NEVER && sim->params.forgiving && !sim->gave_up) {
                        sim->gave_up = true;
                        for (unsigned i = 0; i < sim->params.servers; i++)
                                sim_kill_server(sim, i);
                        continue;
                }
                if (at == NEVER && deadline_ns == NEVER) {
                        print_servers(sim);
                        sim_fail(sim, "deadlock: the client waits and nothing is on its way");
                }
                if (at > deadline_ns) {
                        sim->now = deadline_ns > sim->now ? deadline_ns : sim->now;
                        return;
                }
                sim->now = at > sim->now ? at : sim->now;
                if (happen(sim))
                        return;
        }
}

static void io_wake(void *user)
{
        struct sim *sim = user;
        sim->woken = true;
}

static void io_close(void *user, struct io_link *io, bool after_fork)
{
        struct sim *sim = user;
        for (unsigned k = 0; k < sim->link_count; k++)
                if (is_of(&sim->links[k], io))
                        close_end(&sim->links[k], 0);
        for (unsigned i = 0; i < CLIENT_LINKS_MAX; i++)
                if (sim->client_links[i] == io)
                        sim->client_links[i] = NULL;
        buf_fini(&io->early);
        mem_free(io);
}

static void io_random(void *user, void *out, size_t size)
{
        struct sim *sim = user;
        uint8_t *p = out;
        for (size_t i = 0; i < size; i++)
                p[i] = (uint8_t)rng_u64(&sim->rng);
}

static void io_output(void *user, const void *text, size_t size)
{
        struct sim *sim = user;
        append(&sim->output, text, size);
}

static const struct client_io client_io = {
        .threads = false,
        .now_ns = io_now,
        .connect = io_connect_all,
        .attach = io_attach,
        .reconnect = io_reconnect,
        .open = io_open,
        .opened = io_opened,
        .send = io_send,
        .receive = io_receive,
        .wait = io_wait,
        .wake = io_wake,
        .close = io_close,
        .random = io_random,
        .output = io_output,
};

/* ---- life ----------------------------------------------------------------------------------- */

static void choose_network(struct sim *sim)
{
        static const uint64_t delays[] = { 1, 1000, 20000, 2000000 };
        static const size_t rooms[] = { 3000, 20000, 200000, 4 << 20 };
        const struct sim_params *p = &sim->params;
        uint64_t delay = rng_range(&sim->rng, 1, delays[rng_below(&sim->rng, 4)]);
        uint64_t execute_ns = rng_range(&sim->rng, 1, delays[rng_below(&sim->rng, 4)]);
        size_t room = rng_range(&sim->rng, 1, rooms[rng_below(&sim->rng, 4)]);
        if (rng_chance(&sim->rng, 3))
                room = rng_range(&sim->rng, 1, 100);
        sim->delay_ns = p->delay_ns ? p->delay_ns : delay;
        sim->execute_ns = p->execute_ns ? p->execute_ns : execute_ns;
        sim->room = p->room ? p->room : room;
}

static void engine_start(struct sim *sim, struct sim_server *s, const char *devices)
{
        backend_reference_manual = true;
        backend_reference_seed = rng_u64(&sim->rng) | 1;
        backend_reference_failure_stays = sim->params.seed & 1;
        must(sim, engine_new(&(struct engine_params){ .backend = &backend_reference,
                                                      .devices = devices,
                                                      .ops = &engine_ops,
                                                      .user = s,
                                                      .single_threaded = true },
                             &s->engine) == 0);
}

static void server_start(struct sim *sim, unsigned i)
{
        struct sim_server *s = &sim->servers[i];
        struct server_spec *spec = &sim->specs[i];
        *s = (struct sim_server){ .sim = sim, .index = i, .execute_at = NEVER };
        snprintf(s->name, sizeof(s->name), "sim%u", i);
        snprintf(s->address, sizeof(s->address), "sim:%s:%u", s->name, i + 1);
        s->clock_offset = rng_range(&sim->rng, 0, 1ull << 50);
        *spec = (struct server_spec){
                .name = s->name,
                .address = s->address,
                .peer_host = sim->params.one_way & 1u << i ? NULL : s->name,
                .peer_port = i + 1,
        };
        s->dead = sim->params.refusing & 1u << i;
        engine_start(sim, s, sim->params.devices);
}

struct sim *sim_new(const struct sim_params *params)
{
        struct sim *sim = mem_zalloc(sizeof(*sim));
        if (!sim)
                abort();
        sim->params = *params;
        sim->rng.state = params->seed;
        sim->now = 1000000000;
        choose_network(sim);
        for (unsigned i = 0; i < DIALS_MAX; i++)
                sim->dials[i].at = NEVER;
        must(sim, params->servers >= 1 && params->servers <= SIM_SERVERS_MAX);
        for (unsigned i = 0; i < params->servers; i++)
                server_start(sim, i);
        must(sim, client_new(&(struct client_params){ .io = &client_io,
                                                      .io_user = sim,
                                                      .specs = sim->specs,
                                                      .spec_count = params->servers,
                                                      .reconnect_ns = params->reconnect_ns,
                                                      .wait_ns = params->wait_ns },
                             &sim->client) == 0);
        return sim;
}

/* After the goodbye nothing of the session is left to do or to hold. */
static void check_empty(struct sim *sim, struct sim_server *s)
{
        struct engine_counts n;
        engine_lock(s->engine);
        engine_get_counts(s->engine, &n);
        bool closed = engine_closed(s->engine);
        engine_unlock(s->engine);
        if (!closed || sim->broken)
                return; /* lost, never connected, or with migrations whose consumer has failed */
        if (n.commands_held || n.commands_running || n.events)
                sim_fail(sim,
                         "server %u after the end: %zu objects, %zu events, %zu transfers, %zu "
                         "commands held, %zu running",
                         s->index, n.objects, n.events, n.transfers, n.commands_held,
                         n.commands_running);
}

struct sim *sim_free(struct sim *sim)
{
        if (!sim)
                return NULL;
        for (unsigned i = 0; i < sim->params.servers; i++)
                sim->servers[i].frozen = false;
        sim->params.cuts = 0;
        sim->client = client_free(sim->client);
        for (uint64_t at; (at = next_event(sim)) != NEVER;) {
                sim->now = at > sim->now ? at : sim->now;
                happen(sim);
        }
        for (unsigned i = 0; i < sim->params.servers; i++)
                check_empty(sim, &sim->servers[i]);
        for (unsigned i = 0; i < sim->params.servers; i++)
                engine_free(sim->servers[i].engine);
        for (unsigned k = 0; k < sim->link_count; k++)
                for (int i = 0; i < 2; i++)
                        pipe_fini(&sim->links[k].pipe[i]);
        for (struct kept *k; (k = sim->kept); free(k)) {
                sim->kept = k->next;
                free(k->memory);
        }
        buf_fini(&sim->output);
        parcels_fini(&sim->parcels);
        mem_free(sim);
        return NULL;
}

/* ---- what tests do and ask ------------------------------------------------------------------ */

struct client *sim_client(struct sim *sim)
{
        return sim->client;
}

cl_platform_id sim_platform(struct sim *sim)
{
        return client_platform(sim->client);
}

uint64_t sim_now(const struct sim *sim)
{
        return sim->now;
}

unsigned sim_servers(const struct sim *sim)
{
        return sim->params.servers;
}

struct engine *sim_engine(struct sim *sim, unsigned i)
{
        return sim->servers[i].engine;
}

bool sim_server_alive(const struct sim *sim, unsigned i)
{
        return !sim->servers[i].dead && !sim->servers[i].over;
}

void sim_keep(struct sim *sim, void *memory)
{
        struct kept *k = malloc(sizeof(*k));
        must(sim, k);
        *k = (struct kept){ sim->kept, memory };
        sim->kept = k;
}

const char *sim_output(const struct sim *sim)
{
        return (const char *)sim->output.data;
}

void sim_kill_server(struct sim *sim, unsigned i)
{
        struct sim_server *s = &sim->servers[i];
        engine_lock(s->engine);
        for (unsigned k = 0; k < sim->link_count; k++) {
                int e = end_of(&sim->links[k], s);
                if (e >= 0)
                        close_end(&sim->links[k], e);
        }
        s->dead = true;
        sim->broken = true;
        engine_unlock(s->engine);
}

void sim_restart_server(struct sim *sim, unsigned i, const char *devices)
{
        struct sim_server *s = &sim->servers[i];
        if (!s->dead)
                sim_kill_server(sim, i);
        for (unsigned k = 0; k < DIALS_MAX; k++)
                if (sim->dials[k].from == s)
                        sim->dials[k] = (struct dial){ .at = NEVER };
        engine_free(s->engine);
        s->id[0] = s->id[1] = 0;
        s->execute_at = NEVER;
        s->over = s->away = s->stuck = false;
        engine_start(sim, s, devices);
        s->dead = false;
}

void sim_cut_client(struct sim *sim, unsigned i)
{
        struct sim_server *s = &sim->servers[i];
        for (unsigned k = 0; k < sim->link_count; k++) {
                struct sim_link *l = &sim->links[k];
                if (l->end[0].server || l->end[1].server != s || l->broken || l->half_open)
                        continue;
                l->broken = true;
                for (int e = 0; e < 2; e++)
                        pipe_cut(sim, &l->pipe[e]);
        }
}

void sim_half_open(struct sim *sim, unsigned i)
{
        struct sim_server *s = &sim->servers[i];
        bool all = rng_chance(&sim->rng, 70);
        for (unsigned k = 0; k < sim->link_count; k++) {
                struct sim_link *l = &sim->links[k];
                if (l->end[1].server != s || l->broken || l->half_open || !l->end[0].session ||
                    !(all || rng_chance(&sim->rng, 50)))
                        continue;
                l->half_open = true;
                for (int e = 0; e < 2; e++)
                        l->notice_at[e] =
                                sim->now + rng_range(&sim->rng, 1, 50 * sim->delay_ns + 1000);
        }
}

void sim_cut_often(struct sim *sim, unsigned chance, unsigned cuts)
{
        sim->params.cut_chance = chance;
        sim->params.cuts = cuts;
}

void sim_cut_peers(struct sim *sim, unsigned i, unsigned k)
{
        for (unsigned n = 0; n < sim->link_count; n++) {
                struct sim_link *l = &sim->links[n];
                if (end_of(l, &sim->servers[i]) < 0 || end_of(l, &sim->servers[k]) < 0 || l->broken)
                        continue;
                l->broken = true;
                for (int e = 0; e < 2; e++)
                        pipe_cut(sim, &l->pipe[e]);
        }
}

void sim_freeze(struct sim *sim, unsigned i, bool frozen)
{
        sim->servers[i].frozen = frozen;
}

uint64_t sim_traffic(const struct sim *sim, unsigned from, unsigned to)
{
        uint64_t n = 0;
        for (unsigned k = 0; k < sim->link_count; k++) {
                const struct sim_link *l = &sim->links[k];
                for (int i = 0; l->lane && i < 2; i++) {
                        const struct sim_server *a = l->end[i].server, *b = l->end[!i].server;
                        bool matches = a && a->index == from &&
                                       (b ? b->index == to : to == SIM_SERVERS_MAX);
                        n += matches ? l->pipe[i].passed : 0;
                }
        }
        return n;
}
