#include "support/sim_deadline.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/link/server.h"
#include "support/sim_state.h"
#include "transport/checked.h"

enum {
        BACKLOG = 1 << 20,      /* bytes behind which a probe, or its answer, may be */
        ALL_BYTES = 256u << 20, /* of one program, repetitions included */
};

uint64_t sim_lasts(const struct sim *sim, uint64_t bytes)
{
        return (bytes / sim->room + 2) * (sim->delay_ns + 2);
}

uint64_t sim_answer_ns(const struct sim *sim)
{
        uint64_t least = 2 * sim_lasts(sim, CHECKED_HEADER + CHECKED_RECORD_SMALL);
        uint64_t asked = sim->params.answer_ns;
        return asked && asked < least ? least : asked;
}

/* A half until the probe tells of what was sent, the limit, and its last eighth. */
static uint64_t deadline(const struct sim *sim)
{
        uint64_t limit = sim->params.answer_ns;
        return limit / 2 + limit + limit / 8 + sim_lasts(sim, BACKLOG);
}

/* Count the bytes that came at an end, without probes and acknowledgements. */
static uint64_t came(const struct sim_link *l, int i)
{
        const struct session *s = l->end[i].session;
        if (!s)
                return 0;
        return l->lane ? l->pipe[!i].passed : session_get_stats(s)->messages_received;
}

static void note(const struct sim *sim, struct sim_quiet *q, uint64_t progress,
                 uint64_t ns) LOCK_UNCHECKED
{
        bool same = q->progress == progress && q->call == sim->client->wait.count;
        *q = (struct sim_quiet){ progress, sim->client->wait.count, ns + (same ? q->ns : 0) };
}

static void check(struct sim *sim, const struct sim_quiet *q, const char *what)
{
        if (q->ns <= deadline(sim))
                return;
        sim_print_waits(sim);
        sim_fail(sim, "the client waits %" PRIu64 " ns, longer than %" PRIu64 ": %s", q->ns,
                 deadline(sim), what);
}

void sim_waited(struct sim *sim, uint64_t ns)
{
        uint64_t all = sim->dialled;
        if (!sim->params.answer_ns)
                return;
        for (unsigned i = 0; i < SIM_CLIENT_LINKS_MAX; i++) {
                struct io_link *io = sim->client_links[i];
                uint64_t progress = io ? session_generation(io->session) : 0;
                uint64_t altered = 0;
                for (unsigned k = 0; io && k < sim->link_count; k++) {
                        const struct sim_link *l = &sim->links[k];
                        if (l->end[0].server || l->end[0].session != io->session)
                                continue;
                        progress += came(l, 0) + came(l, 1);
                        altered += l->altered;
                }
                if (!io)
                        continue;
                note(sim, &io->quiet, progress + altered, altered ? ns : 0);
                check(sim, &io->quiet, "it believes in a connection that was altered");
                all += progress;
        }
        for (unsigned k = 0; k < sim->link_count; k++)
                for (int i = 0; i < 2 && sim->links[k].end[0].server; i++)
                        all += came(&sim->links[k], i);
        note(sim, &sim->quiet, all, ns);
        check(sim, &sim->quiet, "nothing happens anywhere");
        sim->waited_ns += ns;
        if (sim->waited_ns > (sim->altered + 1) * deadline(sim) + sim_lasts(sim, ALL_BYTES)) {
                sim_print_waits(sim);
                sim_fail(sim,
                         "the client waits for ever: %" PRIu64 " ns, and %" PRIu64
                         " times bytes were altered",
                         sim->waited_ns, sim->altered);
        }
}

void sim_print_waits(struct sim *sim)
{
        for (unsigned i = 0; i < sim->params.servers; i++)
                sim_server_print(&sim->servers[i]);
        for (unsigned k = 0; k < sim->link_count; k++)
                for (int i = 0; i < 2; i++) {
                        const struct sim_link *l = &sim->links[k];
                        if (l->pipe[i].bytes.size)
                                fprintf(stderr, "  %s → %s lane %u: %zu bytes not taken\n",
                                        sim_link_end_name(&l->end[i]),
                                        sim_link_end_name(&l->end[!i]), l->lane,
                                        l->pipe[i].bytes.size);
                }
}
