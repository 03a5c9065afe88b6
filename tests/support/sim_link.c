#include "support/sim_link.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "proto/frame.h"
#include "support/sim_state.h"
#include "transport/checked.h"

/* ---- pipes ---------------------------------------------------------------------------------- */

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
        sim_append(&p->bytes, data, size);
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

/* Take the bytes that have arrived by now. */
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

/* Take some of the bytes that have arrived: how many. */
static size_t pipe_take(struct sim *sim, struct pipe *p, const struct iovec *iov, int n)
{
        size_t max = sim_any_amount(&sim->rng), given = 0;
        max = max < p->arrived ? max : p->arrived;
        for (int i = 0; i < n && given < max; i++) {
                size_t len = iov[i].iov_len < max - given ? iov[i].iov_len : max - given;
                memcpy(iov[i].iov_base, p->bytes.data + given, len);
                given += len;
        }
        buf_consume(&p->bytes, given);
        p->arrived -= given;
        p->passed += given;
        return given;
}

/* ---- with checksums ------------------------------------------------------------------------- */

/* The connection below a checked one: the pipes. */
struct pipe_conn {
        struct conn base;
        struct sim *sim;
        struct sim_link *link;
        int end;
};

/* A relay on the way alters these bytes, which are not empty. */
static void alter(struct sim *sim, struct sim_link *l, int i, struct buf *b)
{
        size_t at = rng_below(&sim->rng, b->size), n = rng_range(&sim->rng, 1, 300);
        uint8_t noise[300];
        sim->params.alterations--;
        sim->altered++;
        l->altered++;
        unsigned what = (unsigned)rng_below(&sim->rng, 4);
        static const char *const names[] = { "altered", "lost", "added", "the last that arrive" };
        if (sim->params.verbose)
                fprintf(stderr, "    %" PRIu64 " %s → %s lane %u: bytes are %s\n", sim->now,
                        sim_link_end_name(&l->end[i]), sim_link_end_name(&l->end[!i]), l->lane,
                        names[what]);
        switch (what) {
        case 0:
                b->data[at] ^= (uint8_t)(1u << rng_below(&sim->rng, 8));
                break;
        case 1:
                n = n < b->size - at ? n : b->size - at;
                memmove(b->data + at, b->data + at + n, b->size - at - n);
                b->size -= n;
                break;
        case 2:
                for (size_t k = 0; k < n; k++)
                        noise[k] = (uint8_t)rng_u64(&sim->rng);
                sim_append(b, noise, n);
                memmove(b->data + at + n, b->data + at, b->size - at - n);
                memcpy(b->data + at, noise, n);
                break;
        default:
                b->size = at;
                l->mute[i] = true;
        }
}

static ssize_t pipe_sendv(struct conn *c, const struct iovec *iov, int n)
{
        struct pipe_conn *k = container_of(c, struct pipe_conn, base);
        struct sim *sim = k->sim;
        struct pipe *p = &k->link->pipe[k->end];
        size_t room = sim->room - (p->bytes.size < sim->room ? p->bytes.size : sim->room);
        size_t left = sim_any_amount(&sim->rng), taken = 0;
        struct buf portion = { 0 };
        left = left < room ? left : room;
        if (!left)
                return SP_E_AGAIN;
        for (int j = 0; j < n && left; j++) {
                size_t len = iov[j].iov_len < left ? iov[j].iov_len : left;
                sim_append(&portion, iov[j].iov_base, len);
                taken += len;
                left -= len;
        }
        if (k->link->mute[k->end])
                portion.size = 0;
        else if (sim->params.alterations && rng_below(&sim->rng, 1000) < sim->params.alter_chance)
                alter(sim, k->link, k->end, &portion);
        if (portion.size)
                pipe_put(sim, p, k->link->slowness, portion.data, portion.size);
        buf_fini(&portion);
        return (ssize_t)taken;
}

static ssize_t pipe_recvv(struct conn *c, const struct iovec *iov, int n)
{
        struct pipe_conn *k = container_of(c, struct pipe_conn, base);
        struct pipe *p = &k->link->pipe[!k->end];
        size_t given = pipe_take(k->sim, p, iov, n);
        return given ? (ssize_t)given : SP_E_AGAIN;
}

static void pipe_close(struct conn *c)
{
        mem_free(container_of(c, struct pipe_conn, base));
}

static const struct transport_ops transport_pipe = {
        .name = "pipe",
        .sendv = pipe_sendv,
        .recvv = pipe_recvv,
        .close = pipe_close,
};

static void begin_checks(struct sim *sim, struct sim_link *l)
{
        for (int i = 0; i < 2; i++) {
                struct pipe_conn *k = mem_zalloc(sizeof(*k));
                must(sim, k);
                *k = (struct pipe_conn){
                        .base = { .ops = &transport_pipe, .fd = -1, .room_fd = -1 },
                        .sim = sim,
                        .link = l,
                        .end = i
                };
                l->conn[i] = &k->base;
                must(sim, checked_begin(&l->conn[i], l->lane > 0) == 0);
        }
}

/* True: the pipe has no room. */
static bool push_checked(struct sim *sim, struct sim_link *l, int i)
{
        while (l->up && l->end[i].session) {
                struct iovec iov[8];
                int n = session_lane_pending(l->end[i].session, l->lane, iov, 8);
                if (n <= 0 || l->broken || !l->end[!i].session)
                        return false;
                ssize_t r = l->conn[i]->ops->sendv(l->conn[i], iov, n);
                if (r == SP_E_AGAIN)
                        return true;
                must(sim, r > 0);
                session_lane_sent(l->end[i].session, l->lane, (size_t)r);
        }
        return false;
}

static int pull_checked(struct sim *sim, struct sim_link *l, int i)
{
        struct pipe *p = &l->pipe[!i];
        struct iovec iov[2];
        if (!sim_link_has_arrived(l, i))
                return l->broken && !p->count ? SP_E_LINK : 0;
        int n = session_lane_want(l->end[i].session, l->lane, iov);
        if (n <= 0)
                return n;
        uint64_t before = p->passed;
        ssize_t r = l->conn[i]->ops->recvv(l->conn[i], iov, n);
        if (l->lane)
                session_lane_alive(l->end[i].session, l->lane, l->conn[i]->came);
        if (r == SP_E_AGAIN)
                return p->passed != before;
        if (r < 0)
                return (int)r;
        int status = session_lane_received(l->end[i].session, l->lane, (size_t)r);
        status = packed_frames_unpack(&sim->packed_frames, l->end[i].session, l->lane, status);
        return status < 0 ? status : 1;
}

bool sim_link_has_arrived(const struct sim_link *l, int i)
{
        return l->pipe[!i].arrived || (l->conn[i] && checked_has_rest(l->conn[i]));
}

uint64_t sim_link_deadline(const struct sim *sim)
{
        uint64_t t = UINT64_MAX;
        for (unsigned k = 0; k < sim->link_count && sim->params.answer_ns; k++)
                for (int i = 0; i < 2; i++) {
                        const struct end *e = &sim->links[k].end[i];
                        uint64_t at = e->session && e->server && !sim->links[k].lane
                                              ? session_deadline(e->session)
                                              : UINT64_MAX;
                        t = at < t ? at : t;
                }
        return t;
}

int sim_link_owed(const struct sim *sim, struct sim_link *l, int i)
{
        if (l->lane || !sim->params.answer_ns)
                return 0;
        return session_tick(l->end[i].session,
                            l->end[!i].server ? SESSION_EXPECTS_ACKS : SESSION_EXPECTS_NOTHING,
                            sim->params.answer_ns, sim->now);
}

/* ---- both directions ------------------------------------------------------------------------ */

const char *sim_link_end_name(const struct end *e)
{
        return e->server ? e->server->name : "client";
}

/* Print the messages that leave end `i`. */
static void trace(struct sim *sim, struct sim_link *l, int i, const void *data, size_t size)
{
        struct buf *b = &l->pipe[i].trace;
        struct frame f;
        char text[1000];
        sim_append(b, data, size);
        while (b->size >= FRAME_HEADER_SIZE && frame_get(b->data, &f) == 0 &&
               b->size >= FRAME_HEADER_SIZE + f.size) {
                for (size_t at = 0; at < f.size;) {
                        const uint8_t *msg = b->data + FRAME_HEADER_SIZE + at;
                        wire_print(bytes_of(msg, wire_message_size(msg)), text, sizeof(text));
                        fprintf(stderr, "    %" PRIu64 " %s → %s: %s\n", sim->now,
                                sim_link_end_name(&l->end[i]), sim_link_end_name(&l->end[!i]),
                                text);
                        at += wire_message_size(msg);
                }
                buf_consume(b, FRAME_HEADER_SIZE + f.size);
        }
}

bool sim_link_is_held_back(const struct sim_link *l, int i)
{
        const struct sim_server *from = l->end[i].server, *to = l->end[!i].server;
        return from ? from->frozen : to && to->held;
}

bool sim_link_push(struct sim *sim, struct sim_link *l, int i)
{
        if (l->conn[i])
                return push_checked(sim, l, i);
        struct pipe *p = &l->pipe[i];
        while (l->up && l->end[i].session) {
                struct iovec iov[8];
                int n = session_lane_pending(l->end[i].session, l->lane, iov,
                                             (int)rng_range(&sim->rng, 2, 8));
                if (n <= 0)
                        return false;
                if (l->broken || !l->end[!i].session)
                        return false;
                if (l->lane &&
                    packed_frames_pack(&sim->packed_frames, &sim->rng, l->end[i].session, l->lane))
                        n = session_lane_pending(l->end[i].session, l->lane, iov, 2);
                size_t left = sim_any_amount(&sim->rng), taken = 0;
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

int sim_link_pull(struct sim *sim, struct sim_link *l, int i)
{
        struct pipe *p = &l->pipe[!i];
        struct iovec iov[2];
        if (!l->up || !l->end[i].session || sim_link_is_held_back(l, !i))
                return 0;
        if (l->half_open)
                return l->notice_at[i] <= sim->now ? SP_E_LINK : 0;
        pipe_tick(sim, p);
        if (l->conn[i])
                return pull_checked(sim, l, i);
        if (!p->arrived)
                return l->broken && !p->count ? SP_E_LINK : 0;
        int n = session_lane_want(l->end[i].session, l->lane, iov);
        if (n <= 0)
                return n;
        for (int k = 0; k < n; k++)
                must(sim, iov[k].iov_len > 0);
        size_t given = pipe_take(sim, p, iov, n);
        int r = session_lane_received(l->end[i].session, l->lane, given);
        r = packed_frames_unpack(&sim->packed_frames, l->end[i].session, l->lane, r);
        return r < 0 ? r : 1;
}

void sim_link_tick(const struct sim *sim, struct sim_link *l, int i)
{
        pipe_tick(sim, &l->pipe[!i]);
}

uint64_t sim_link_arrival(const struct sim_link *l, int i)
{
        const struct pipe *p = &l->pipe[!i];
        if (!l->up || !l->end[i].session || sim_link_is_held_back(l, !i))
                return SIM_NEVER;
        if (l->half_open)
                return l->notice_at[i];
        if (p->count)
                return p->segments[0].at;
        /* The connection ends: a server notices at once, the client when it receives
         * (sim_io_ready). */
        return l->broken && !p->arrived && l->end[i].server ? 0 : SIM_NEVER;
}

/* ---- life ----------------------------------------------------------------------------------- */

void sim_link_fini(struct sim_link *l)
{
        for (int i = 0; i < 2; i++) {
                pipe_fini(&l->pipe[i]);
                l->conn[i] = conn_close(l->conn[i]);
        }
}

struct sim_link *sim_link_new(struct sim *sim, unsigned lane, struct end a, struct end b)
{
        unsigned k = 0;
        while (k < sim->link_count &&
               (sim->links[k].end[0].session || sim->links[k].end[1].session))
                k++;
        must(sim, k < SIM_LINKS_MAX);
        sim->link_count += k == sim->link_count;
        struct sim_link *l = &sim->links[k];
        sim_link_fini(l);
        *l = (struct sim_link){ .up = true, .lane = lane, .end = { a, b }, .slowness = 1 };
        /* Lanes overtake each other. */
        if (sim->params.cuts && rng_chance(&sim->rng, 30))
                l->slowness = (unsigned)rng_range(&sim->rng, 2, 30);
        if (sim->params.alter_chance)
                begin_checks(sim, l);
        return l;
}

struct sim_link *sim_link_connect(struct sim *sim, unsigned lane, struct end a, struct end b)
{
        struct sim_link *l = sim_link_new(sim, lane, a, b);
        uint64_t next[2] = { session_next_seq(a.session), session_next_seq(b.session) };
        bool packs = rng_chance(&sim->rng, 50);
        for (int i = 0; i < 2; i++)
                if (session_lane_up(l->end[i].session, lane, lane ? 0 : next[!i]) < 0)
                        must(sim, sim->params.forgiving); /* its session has ended */
        for (int i = 0; lane && packs && i < 2; i++)
                session_lane_packs(l->end[i].session, lane);
        return l;
}

void sim_link_close_end(struct sim_link *l, int i)
{
        if (l->end[i].session && session_lane_is_up(l->end[i].session, l->lane))
                session_lane_down(l->end[i].session, l->lane);
        l->end[i].session = NULL;
        l->broken = true;
        pipe_fini(&l->pipe[!i]); /* nobody reads it any more */
}

void sim_link_close_session(struct sim *sim, const struct session *s)
{
        for (unsigned k = 0; k < sim->link_count; k++)
                for (int i = 0; i < 2; i++)
                        if (sim->links[k].end[i].session == s)
                                sim_link_close_end(&sim->links[k], i);
}

void sim_link_cut(struct sim *sim, struct sim_link *l)
{
        l->broken = true;
        for (int e = 0; e < 2; e++)
                pipe_cut(sim, &l->pipe[e]);
}

void sim_link_half_open(struct sim *sim, struct sim_link *l)
{
        l->half_open = true;
        for (int e = 0; e < 2; e++)
                l->notice_at[e] = sim->now + rng_range(&sim->rng, 1, 50 * sim->delay_ns + 1000);
}

int sim_link_end_of(const struct sim_link *l, const struct sim_server *server)
{
        for (int i = 0; i < 2; i++)
                if (l->end[i].server == server && l->end[i].session)
                        return i;
        return -1;
}
