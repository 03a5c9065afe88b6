#include "support/sim_client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/progress.h"
#include "proto/info.h"
#include "session/hello.h"
#include "support/sim_state.h"

/* ---- connections ---------------------------------------------------------------------------- */

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
                                                 .time_ns = sim_server_now(s),
                                         }) == 0);
        must(sim, hello_get_reply(bytes_of(back.data, back.size), &reply) == 0);
        sim->now += rng_range(&sim->rng, 1, sim->delay_ns + 1);
        at->received_ns = sim->now;
        at->remote_ns = reply.time_ns;
        at->uploads = engine_takes_uploads(s->engine);
        buf_fini(&there);
        buf_fini(&back);
        return 0;
}

/* Leave nothing of all devices but the first. */
static void halve(struct sim *sim, struct buf *info)
{
        struct buf half = { 0 };
        struct info_entry e;
        bool first = true;
        for (struct bytes b = bytes_of(info->data, info->size); info_next(&b, &e);) {
                must(sim, info_put(&half, e.key, e.value.data,
                                   e.key != INFO_DEVICE || first ? e.value.size : 0) == 0);
                first &= e.key != INFO_DEVICE;
        }
        buf_fini(info);
        *info = half;
}

/* The server describes its devices instead of beginning a session. */
static void describe(struct sim *sim, struct io_connect *at, struct sim_server *s)
{
        struct buf info = { 0 }, parts = { 0 };
        at->sent_ns = sim->now;
        sim->now += rng_range(&sim->rng, 1, sim->delay_ns + 1);
        at->remote_ns = sim_server_now(s);
        engine_lock(s->engine);
        must(sim, engine_describe(s->engine, &info) == 0);
        engine_unlock(s->engine);
        if (sim->params.half_described & 1u << s->index)
                halve(sim, &info);
        must(sim, hello_put_devices(&parts, bytes_of(info.data, info.size), 1) == 0);
        int r = 0;
        for (size_t i = 0; i < parts.size;) {
                must(sim, !r);
                size_t size = (size_t)hello_size(bytes_of(parts.data + i, parts.size - i));
                uint8_t *one = mem_dup(parts.data + i, size);
                r = hello_take_devices(&at->devices, bytes_of(one, size));
                mem_free(one);
                i += size;
        }
        must(sim, r == 1 && at->devices.info.size == info.size);
        at->described = true;
        sim->now += rng_range(&sim->rng, 1, sim->delay_ns + 1);
        at->received_ns = sim->now;
        sim->described++;
        buf_fini(&info);
        buf_fini(&parts);
}

static void attached(struct sim *sim, struct io_link *io, struct session *session)
{
        struct sim_server *s = io->server;
        io->attach_at = SIM_NEVER;
        if (s->dead || s->over || memcmp(s->id, io->id, sizeof(io->id)) != 0)
                return;
        engine_lock(s->engine);
        sim_link_connect(sim, 1, (struct end){ session, NULL },
                         (struct end){ engine_session(s->engine), s });
        engine_unlock(s->engine);
        sim_server_serve(s);
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
static void redialled(struct sim *sim, struct io_link *io) LOCK_UNCHECKED
{
        struct sim_server *s = io->server;
        uint64_t generation = io->generation++;
        io->redial_at = SIM_NEVER;
        if (!s->dead && memcmp(s->id, io->id, sizeof(io->id)) != 0) {
                io->redial_until = 0; /* it has no such session any more */
                return;
        }
        if (!s->dead && !s->over && rng_chance(&sim->rng, 70)) {
                struct session *there = engine_session(s->engine);
                engine_lock(s->engine);
                must(sim, generation > session_generation(there));
                sim_server_client_gone(s);
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
                        sim_link_new(sim, 0, (struct end){ io->session, NULL },
                                     (struct end){ there, s });
                        io->redialled = true;
                } else {
                        session_lane_down(there, 0);
                        s->away = true;
                        s->over |= over;
                }
                engine_unlock(s->engine);
                if (arrives) {
                        sim_server_serve(s);
                        return;
                }
        }
        io->early.size = 0; /* it goes with the first try */
        if (sim->now < io->redial_until)
                io->redial_at = sim->now + rng_range(&sim->rng, 1, 4 * sim->delay_ns + 1);
        else
                io->redial_until = 0; /* given up: receive tells */
}

/* A hello for a later session. It, or its answer, may get lost; a server has one session here. */
static bool opened(struct sim *sim, struct io_link *io)
{
        struct sim_server *s = io->server;
        uint64_t now = sim->now;
        io->open_at = now + rng_range(&sim->rng, 1, 4 * sim->delay_ns + 1);
        if (s->drains || s->id[0] || s->id[1] || !rng_chance(&sim->rng, 70))
                return false;
        io->open_at = SIM_NEVER;
        if (io->describes && rng_chance(&sim->rng, 70)) {
                describe(sim, &io->opened, s);
                sim->now = now;
                io->opened.sent_ns = io->opened.received_ns = now;
                io->redialled = true;
                return true;
        }
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
        sim_link_connect(sim, 0, (struct end){ io->session, NULL },
                         (struct end){ engine_session(s->engine), s });
        engine_unlock(s->engine);
        io->redialled = true;
        sim_server_serve(s);
        return true;
}

bool sim_io_due(struct sim *sim, struct io_link *io)
{
        bool client = false;
        if (io->attach_at <= sim->now) {
                if (session_lane_is_up(io->session, 0))
                        attached(sim, io, io->session);
                io->attach_at = SIM_NEVER;
                client = true;
        }
        if (io->redial_at <= sim->now) {
                redialled(sim, io);
                client |= io->redial_at == SIM_NEVER;
        }
        if (io->open_at <= sim->now && !io->server->dead)
                client |= opened(sim, io);
        return client;
}

struct io_link *sim_io_of(struct sim *sim, const struct session *session)
{
        for (unsigned i = 0; i < SIM_CLIENT_LINKS_MAX; i++)
                if (sim->client_links[i] && sim->client_links[i]->session == session)
                        return sim->client_links[i];
        return NULL;
}

bool sim_io_ready(struct sim *sim)
{
        for (unsigned i = 0; i < SIM_CLIENT_LINKS_MAX; i++) {
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
                sim_link_tick(sim, l, 0);
                if (sim_link_is_held_back(l, 1))
                        continue;
                if (sim_link_has_arrived(l, 0) &&
                    session_lane_want(l->end[0].session, l->lane, iov) != 0)
                        return true;
                if (l->broken && !l->pipe[1].count && !sim_link_has_arrived(l, 0))
                        return true;
        }
        return false;
}

/* ---- io ------------------------------------------------------------------------------------- */

static uint64_t io_now(void *user)
{
        struct sim *sim = user;
        return sim->now;
}

static struct io_link *new_link(struct sim *sim, struct sim_server *s, struct session *session)
{
        struct io_link *io = calloc(1, sizeof(*io));
        unsigned i = 0;
        while (i < SIM_CLIENT_LINKS_MAX && sim->client_links[i])
                i++;
        must(sim, io && i < SIM_CLIENT_LINKS_MAX);
        *io = (struct io_link){ .sim = sim,
                                .session = session,
                                .server = s,
                                .attach_at = SIM_NEVER,
                                .redial_at = SIM_NEVER,
                                .redial_until = SIM_NEVER,
                                .open_at = SIM_NEVER };
        return sim->client_links[i] = io;
}

static int io_open(void *user, const struct server_spec *spec, struct session *session,
                   uint64_t at_ns, bool describe, struct io_link **ret)
{
        struct sim *sim = user;
        struct io_link *io = new_link(sim, &sim->servers[spec - sim->specs], session);
        io->open_at = at_ns > sim->now ? at_ns : sim->now + 1;
        io->describes = describe;
        io->refused = !at_ns && (io->server->dead || io->server->drains);
        *ret = io;
        return 0;
}

static const char *io_refused(void *user, const struct io_link *io)
{
        (void)user;
        return io->refused ? "nobody listens there" : NULL;
}

static void io_opened(void *user, struct io_link *io, struct io_connect *ret)
{
        struct io_link *link = ret->link;
        const struct server_spec *spec = ret->spec;
        *ret = io->opened;
        io->opened.devices = (struct hello_devices){ 0 };
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
                bool drains = sim->params.draining & 1u << s->index;
                if (drains && rng_chance(&sim->rng, 50))
                        sim_drain(sim, s->index);
                if (s->drains) {
                        at->status = SP_E_GONE;
                        snprintf(at->text, sizeof(at->text), "it drains");
                        continue;
                }
                if (at->describe && rng_chance(&sim->rng, 70)) {
                        describe(sim, at, s);
                        continue;
                }
                at->status = exchange_hellos(sim, at, s);
                must(sim, !at->status);
                at->link = new_link(sim, s, at->session);
                memcpy(at->link->id, at->id, sizeof(at->id));
                engine_lock(s->engine);
                sim_link_connect(sim, 0, (struct end){ at->session, NULL },
                                 (struct end){ engine_session(s->engine), s });
                engine_unlock(s->engine);
                if (drains)
                        sim_drain(sim, s->index);
        }
}

static int io_attach(void *user, struct io_link *io, unsigned lane)
{
        struct sim *sim = user;
        must(sim, lane == 1 && io->attach_at == SIM_NEVER);
        io->attach_at = sim->now + rng_range(&sim->rng, 1, 2 * sim->delay_ns + 1);
        return 0;
}

static bool is_of(const struct sim_link *l, const struct io_link *io)
{
        return l->end[0].session == io->session && !l->end[0].server;
}

static int io_reconnect(void *user, struct io_link *io, uint64_t until_ns) LOCK_UNCHECKED
{
        struct sim *sim = user;
        for (unsigned k = 0; k < sim->link_count; k++)
                if (is_of(&sim->links[k], io) && sim->links[k].end[0].session)
                        sim_link_close_end(&sim->links[k], 0);
        io->attach_at = SIM_NEVER;
        io->was_short = false;
        io->generation = session_generation(io->session) + 1;
        if (io->generation <= session_generation(engine_session(io->server->engine)))
                io->generation = session_generation(engine_session(io->server->engine)) + 1;
        io->early.size = 0;
        if (rng_chance(&sim->rng, 70))
                must(sim, session_early(io->session, sim_any_amount(&sim->rng), &io->early) == 0);
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
                io->was_short |= sim_link_push(sim, l, 0);
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
                        int r = is_of(l, io) ? sim_link_pull(sim, l, 0) : 0;
                        if (r < 0)
                                return r;
                        progress |= r > 0;
                }
                any |= progress;
        }
        if (any) /* there is room again for what the server has to say */
                sim_server_serve_all(sim);
        return any;
}

static void io_wait(void *user, struct io_link *const *links, size_t count, bool due,
                    uint64_t deadline_ns, struct lock *lock) REQUIRES(*lock)
{
        struct sim *sim = user;
        for (;;) {
                lock_release(lock);
                bool did = client_step(sim->client);
                lock_take(lock);
                bool woken = sim->woken;
                sim->woken = false;
                if (did || woken || sim_io_ready(sim))
                        return;
                uint64_t at = sim_next_event(sim);
                if (at == SIM_NEVER && deadline_ns == SIM_NEVER && sim->params.forgiving &&
                    !sim->gave_up) {
                        sim->gave_up = true;
                        for (unsigned i = 0; i < sim->params.servers; i++)
                                sim_kill_server(sim, i);
                        continue;
                }
                if (at == SIM_NEVER && deadline_ns == SIM_NEVER) {
                        sim_print_waits(sim);
                        sim_fail(sim, "deadlock: the client waits and nothing is on its way");
                }
                /* Clocks are always due: a wait for nothing shows by its length. */
                uint64_t next = at < deadline_ns ? at : deadline_ns;
                if (next > sim->now) {
                        sim_waited(sim, next - sim->now);
                        sim->now = next;
                }
                if (at > deadline_ns || sim_happen(sim) || sim->now >= deadline_ns)
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
                        sim_link_close_end(&sim->links[k], 0);
        for (unsigned i = 0; i < SIM_CLIENT_LINKS_MAX; i++)
                if (sim->client_links[i] == io)
                        sim->client_links[i] = NULL;
        buf_fini(&io->early);
        hello_devices_fini(&io->opened.devices);
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
        sim_append(&sim->output, text, size);
}

const struct client_io sim_client_io = {
        .threads = false,
        .now_ns = io_now,
        .connect = io_connect_all,
        .attach = io_attach,
        .reconnect = io_reconnect,
        .open = io_open,
        .opened = io_opened,
        .refused = io_refused,
        .send = io_send,
        .receive = io_receive,
        .wait = io_wait,
        .wake = io_wake,
        .close = io_close,
        .random = io_random,
        .output = io_output,
};
