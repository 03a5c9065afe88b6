#include "support/sim.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/command/upload.h"
#include "core/link/disconnected.h"
#include "core/link/server.h"
#include "core/progress.h"
#include "support/sim_state.h"

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

void sim_append(struct buf *b, const void *data, size_t size)
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

size_t sim_any_amount(struct rng *rng)
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

/* ---- schedule ------------------------------------------------------------------------------- */

static void earlier(uint64_t at, uint64_t *t)
{
        *t = at < *t ? at : *t;
}

uint64_t sim_next_event(const struct sim *sim) LOCK_UNCHECKED
{
        uint64_t t = SIM_NEVER;
        for (unsigned k = 0; k < sim->link_count; k++)
                for (int i = 0; i < 2; i++)
                        earlier(sim_link_arrival(&sim->links[k], i), &t);
        for (unsigned i = 0; i < sim->params.servers; i++)
                earlier(sim->servers[i].dead ? SIM_NEVER : sim->servers[i].execute_at, &t);
        for (unsigned i = 0; i < SIM_CLIENT_LINKS_MAX; i++) {
                const struct io_link *io = sim->client_links[i];
                earlier(io ? io->attach_at : SIM_NEVER, &t);
                earlier(io ? io->redial_at : SIM_NEVER, &t);
                earlier(io && !io->server->dead ? io->open_at : SIM_NEVER, &t);
        }
        for (unsigned i = 0; i < SIM_DIALS_MAX; i++)
                earlier(sim->dials[i].at, &t);
        earlier(sim_link_deadline(sim), &t);
        earlier(sim->client ? servers_deadline(sim->client) : SIM_NEVER, &t);
        return t;
}

bool sim_happen(struct sim *sim)
{
        bool client = false;
        if (sim->params.cuts && rng_below(&sim->rng, 1000) < sim->params.cut_chance) {
                unsigned i = (unsigned)rng_below(&sim->rng, sim->params.servers);
                unsigned k = (unsigned)rng_below(&sim->rng, sim->params.servers);
                sim->params.cuts--;
                if (rng_chance(&sim->rng, 10))
                        sim_set_ways(sim, rng_chance(&sim->rng, 50) ? 0 : rng_u64(&sim->rng));
                if (i != k && rng_chance(&sim->rng, 50))
                        sim_cut_peers(sim, i, k);
                else
                        rng_chance(&sim->rng, 30) ? sim_half_open(sim, i) : sim_cut_client(sim, i);
        }
        for (unsigned i = 0; i < SIM_DIALS_MAX; i++)
                if (sim->dials[i].at <= sim->now)
                        sim_dial_step(sim, &sim->dials[i]);
        for (unsigned i = 0; i < SIM_CLIENT_LINKS_MAX; i++) {
                struct io_link *io = sim->client_links[i];
                client |= io && sim_io_due(sim, io);
        }
        for (unsigned i = 0; i < sim->params.servers; i++) {
                struct sim_server *s = &sim->servers[i];
                if (!s->dead && s->execute_at <= sim->now)
                        sim_server_execute(s);
        }
        sim_server_serve_all(sim);
        for (unsigned k = 0; k < sim->link_count; k++) {
                struct sim_link *l = &sim->links[k];
                for (int i = 0; i < 2; i++) {
                        if (!l->up || !l->end[i].session || l->end[i].server)
                                continue;
                        if (l->half_open) {
                                client |= l->notice_at[i] <= sim->now;
                                continue;
                        }
                        sim_link_tick(sim, l, i);
                        client |= sim_link_has_arrived(l, i) && !sim_link_is_held_back(l, !i);
                        client |= l->broken && !l->pipe[!i].count;
                        const struct io_link *io = sim_io_of(sim, l->end[i].session);
                        client |= io && io->was_short && l->pipe[i].bytes.size < sim->room;
                }
        }
        return client;
}

void sim_run(struct sim *sim, uint64_t ns)
{
        uint64_t end = sim->now + ns;
        for (;;) {
                while (client_step(sim->client) || sim_io_ready(sim))
                        ;
                uint64_t at = sim_next_event(sim);
                if (at > end)
                        break;
                sim->now = at > sim->now ? at : sim->now;
                sim_happen(sim);
        }
        sim->now = end;
}

void sim_run_until_idle(struct sim *sim)
{
        do {
                uint64_t at = sim_next_event(sim);
                sim_run(sim, at == SIM_NEVER || at <= sim->now ? 1 : at - sim->now);
        } while (sim_next_event(sim) != SIM_NEVER);
}

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

struct sim *sim_new(const struct sim_params *params)
{
        struct sim *sim = mem_zalloc(sizeof(*sim));
        if (!sim)
                abort();
        sim->params = *params;
        sim->rng.state = params->seed;
        sim->now = 1000000000;
        choose_network(sim);
        sim->params.answer_ns = sim_answer_ns(sim);
        for (unsigned i = 0; i < SIM_DIALS_MAX; i++)
                sim->dials[i].at = SIM_NEVER;
        sim_set_ways(sim, params->blocked);
        must(sim, params->servers >= 1 && params->servers <= SIM_SERVERS_MAX);
        for (unsigned i = 0; i < params->servers; i++)
                sim_server_start(sim, i);
        must(sim, client_new(&(struct client_params){ .io = &sim_client_io,
                                                      .io_user = sim,
                                                      .specs = sim->specs,
                                                      .spec_count = params->servers,
                                                      .reconnect_ns = params->reconnect_ns,
                                                      .wait_ns = params->wait_ns,
                                                      .idle_ns = params->idle_ns,
                                                      .watchers_fail = params->watchers_fail,
                                                      .finish_ahead = params->finish_ahead,
                                                      .prefetch = params->prefetch,
                                                      .svm_writes = params->svm_writes,
                                                      .uploads = params->uploads ? UPLOAD_ON
                                                                                 : UPLOAD_OFF,
                                                      .answer_ns = sim->params.answer_ns },
                             &sim->client) == 0);
        return sim;
}

struct sim *sim_free(struct sim *sim)
{
        if (!sim)
                return NULL;
        for (unsigned i = 0; i < sim->params.servers; i++)
                sim->servers[i].frozen = sim->servers[i].held = false;
        sim->params.cuts = sim->params.alterations = 0;
        sim->client = client_free(sim->client);
        for (uint64_t at; (at = sim_next_event(sim)) != SIM_NEVER;) {
                sim->now = at > sim->now ? at : sim->now;
                sim_happen(sim);
        }
        for (unsigned i = 0; i < sim->params.servers; i++)
                sim_server_check_empty(sim, &sim->servers[i]);
        for (unsigned i = 0; i < sim->params.servers; i++)
                engine_free(sim->servers[i].engine);
        for (unsigned k = 0; k < sim->link_count; k++)
                sim_link_fini(&sim->links[k]);
        sim_forget(sim);
        buf_fini(&sim->output);
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

bool sim_server_has_session(const struct sim *sim, unsigned i)
{
        return sim->servers[i].id[0] || sim->servers[i].id[1];
}

unsigned sim_described(const struct sim *sim)
{
        return sim->described;
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

void sim_cut_client(struct sim *sim, unsigned i)
{
        struct sim_server *s = &sim->servers[i];
        for (unsigned k = 0; k < sim->link_count; k++) {
                struct sim_link *l = &sim->links[k];
                if (l->end[0].server || l->end[1].server != s || l->broken || l->half_open)
                        continue;
                sim_link_cut(sim, l);
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
                sim_link_half_open(sim, l);
        }
}

void sim_cut_often(struct sim *sim, unsigned chance, unsigned cuts)
{
        sim->params.cut_chance = chance;
        sim->params.cuts = cuts;
}

void sim_forget(struct sim *sim)
{
        packed_frames_fini(&sim->packed_frames);
        for (struct kept *k; (k = sim->kept); free(k)) {
                sim->kept = k->next;
                free(k->memory);
        }
}

void sim_cut_peers(struct sim *sim, unsigned i, unsigned k)
{
        for (unsigned n = 0; n < sim->link_count; n++) {
                struct sim_link *l = &sim->links[n];
                if (sim_link_end_of(l, &sim->servers[i]) < 0 ||
                    sim_link_end_of(l, &sim->servers[k]) < 0 || l->broken)
                        continue;
                sim_link_cut(sim, l);
        }
}

void sim_freeze(struct sim *sim, unsigned i, bool frozen)
{
        sim->servers[i].frozen = frozen;
}

void sim_hold_client(struct sim *sim, unsigned i, bool held)
{
        sim->servers[i].held = held;
}

unsigned sim_early_dials(const struct sim *sim)
{
        return sim->early_dials;
}

unsigned sim_refused_dials(const struct sim *sim)
{
        return sim->refused_dials;
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
