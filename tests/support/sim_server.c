#include "support/sim_server.h"

#include <stdio.h>

#include "backend/reference/reference.h"
#include "support/sim_state.h"

static void on_flush(void *user, struct session *s)
{
        /* sim_server_serve() polls all sessions after every event. */
}

uint64_t sim_server_now(void *user)
{
        struct sim_server *server = user;
        return server->sim->now + server->clock_offset;
}

static const struct engine_ops engine_ops = {
        .flush = on_flush,
        .dial = sim_dial_begin,
        .hang_up = sim_dial_hang_up,
        .relayed = sim_dial_relayed,
        .now_ns = sim_server_now,
};

void sim_server_client_gone(struct sim_server *s) LOCK_UNCHECKED
{
        struct sim *sim = s->sim;
        s->away = true;
        for (unsigned k = 0; k < sim->link_count; k++) {
                struct sim_link *l = &sim->links[k];
                for (int i = 0; i < 2; i++)
                        if (l->end[i].server == s && l->end[i].session == engine_session(s->engine))
                                sim_link_close_end(l, i);
        }
}

/* A link of the server ends. If it was the client's, the session waits for nobody here; if a
 * peer's, the engine is notified. */
static void server_link_lost(struct sim_server *s, struct sim_link *l, int i, int status)
        REQUIRES(engine_held)
{
        struct sim *sim = s->sim;
        struct session *session = l->end[i].session;
        if (status != SP_E_LINK && status != SP_E_GONE && !sim->params.forgiving)
                sim_fail(sim, "server %u: session ends with %s", s->index, status_text(status));
        bool with_client = session == engine_session(s->engine);
        sim_link_close_end(l, i);
        if (with_client && status == SP_E_LINK && sim->params.reconnect_ns &&
            !engine_closed(s->engine)) {
                sim_server_client_gone(s);
        } else if (with_client) {
                s->over = true;
        } else {
                struct dial *d = sim_dial_of(sim, session);
                sim_link_close_session(sim, session);
                if (status != SP_E_LINK)
                        engine_peer_failed(s->engine, session, status, "its session has ended");
                else if (!s->over)
                        engine_peer_disconnected(s->engine, session);
                if (status == SP_E_LINK && d && !s->over)
                        d->at = sim->now + rng_range(&sim->rng, 1, 2 * sim->delay_ns + 1);
        }
}

/* One round at the server: take in a portion of the bytes that have arrived on each link, then
 * send its output. True: something was taken in. */
static bool serve_once(struct sim_server *s) REQUIRES(engine_held)
{
        struct sim *sim = s->sim;
        bool progress = false;
        unsigned first = (unsigned)rng_below(&sim->rng, sim->link_count);
        for (unsigned k = 0; k < sim->link_count; k++) {
                struct sim_link *l = &sim->links[(first + k) % sim->link_count];
                int i = sim_link_end_of(l, s);
                int r = i < 0 ? 0 : sim_link_pull(sim, l, i);
                if (r == 0 && i >= 0)
                        r = sim_link_owed(sim, l, i);
                if (r < 0)
                        server_link_lost(s, l, i, r);
                progress |= r != 0;
        }
        if (!progress || rng_chance(&sim->rng, 50))
                engine_settle(s->engine);
        for (unsigned k = 0; k < sim->link_count; k++) {
                int i = sim_link_end_of(&sim->links[k], s);
                if (i >= 0)
                        sim_link_push(sim, &sim->links[k], i);
        }
        return progress;
}

bool sim_server_serve(struct sim_server *s)
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
                s->execute_at = SIM_NEVER;
        else if (s->execute_at == SIM_NEVER)
                s->execute_at = sim->now + rng_range(&sim->rng, 1, sim->execute_ns);
        engine_unlock(s->engine);
        return any;
}

void sim_server_serve_all(struct sim *sim)
{
        for (bool any = true; any;) {
                any = false;
                for (unsigned i = 0; i < sim->params.servers; i++)
                        any |= sim_server_serve(&sim->servers[i]);
        }
}

void sim_server_execute(struct sim_server *s)
{
        struct sim *sim = s->sim;
        s->execute_at = SIM_NEVER;
        size_t max = rng_range(&sim->rng, 1, 3);
        s->stuck = backend_reference_step(engine_backend(s->engine), max) == 0;
        sim_server_serve(s);
}

static void engine_start(struct sim *sim, struct sim_server *s, const char *devices)
{
        backend_reference_manual = true;
        backend_reference_seed = rng_u64(&sim->rng) | 1;
        backend_reference_failure_stays = sim->params.seed & 1;
        backend_reference_marker_max = sim->params.seed & 2 ? SIZE_MAX : 1;
        backend_reference_bytes = sim->params.seed & 2;
        const struct config_options options = { .values = { [CONFIG_devices] = devices } };
        must(sim, engine_new(&(struct engine_params){ .options = &options,
                                                      .backend = &backend_reference,
                                                      .upload_dir = sim->params.uploads,
                                                      .ops = &engine_ops,
                                                      .user = s,
                                                      .single_threaded = true },
                             &s->engine) == 0);
}

void sim_server_start(struct sim *sim, unsigned i)
{
        struct sim_server *s = &sim->servers[i];
        struct server_spec *spec = &sim->specs[i];
        *s = (struct sim_server){ .sim = sim, .index = i, .execute_at = SIM_NEVER };
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

void sim_server_check_empty(struct sim *sim, struct sim_server *s)
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

void sim_server_print(const struct sim_server *s) LOCK_UNCHECKED
{
        struct engine_counts n;
        engine_get_counts(s->engine, &n);
        fprintf(stderr, "  server %u: %zu events, %zu transfers, %zu held, %zu running%s%s\n",
                s->index, n.events, n.transfers, n.commands_held, n.commands_running,
                s->stuck ? ", stuck" : "", s->dead ? ", dead" : "");
}

void sim_kill_server(struct sim *sim, unsigned i)
{
        struct sim_server *s = &sim->servers[i];
        engine_lock(s->engine);
        for (unsigned k = 0; k < sim->link_count; k++) {
                int e = sim_link_end_of(&sim->links[k], s);
                if (e >= 0)
                        sim_link_close_end(&sim->links[k], e);
        }
        s->dead = true;
        sim->broken = true;
        engine_unlock(s->engine);
}

void sim_drain(struct sim *sim, unsigned i)
{
        struct sim_server *s = &sim->servers[i];
        if (s->drains || s->dead)
                return;
        s->drains = true;
        if (!s->id[0] || s->over)
                return;
        engine_lock(s->engine);
        must(sim,
             session_send(engine_session(s->engine), drain, .text = bytes_str("it drains")) == 0);
        engine_unlock(s->engine);
        sim_server_serve(s);
}

void sim_restart_server(struct sim *sim, unsigned i, const char *devices)
{
        struct sim_server *s = &sim->servers[i];
        if (!s->dead)
                sim_kill_server(sim, i);
        for (unsigned k = 0; k < SIM_DIALS_MAX; k++)
                if (sim->dials[k].from == s)
                        sim->dials[k] = (struct dial){ .at = SIM_NEVER };
        engine_free(s->engine);
        s->id[0] = s->id[1] = 0;
        s->execute_at = SIM_NEVER;
        s->over = s->away = s->stuck = s->drains = false;
        engine_start(sim, s, devices);
        s->dead = false;
}
