#include "cli/replay/fit.h"

#include "cli/replay/fitting.h"

/* ---- the fit -------------------------------------------------------------------------------- */

static int begin_fit(struct fitting *f)
{
        const struct recording *r = f->r;
        size_t sends = r->call_count + r->move_count, servers = f->ledger->server_count;
        f->calls = mem_dup(r->calls, r->call_count * sizeof(*r->calls));
        f->waits = mem_dup(r->waits, r->wait_count * sizeof(*r->waits));
        f->moves = mem_dup(r->moves, r->move_count * sizeof(*r->moves));
        f->taken = mem_zalloc(r->move_count + 1);
        f->nodes = mem_alloc((sends + 1) * sizeof(*f->nodes));
        f->events = mem_alloc((sends + 1) * sizeof(*f->events));
        f->items = mem_alloc((sends + r->wait_count + 1) * sizeof(*f->items));
        f->servers = mem_zalloc((servers + 1) * sizeof(*f->servers));
        f->links = mem_zalloc((servers + 1) * sizeof(*f->links));
        if (!f->calls || !f->waits || !f->moves || !f->taken || !f->nodes || !f->events ||
            !f->items || !f->servers || !f->links)
                return SP_E_NOMEM;
        f->call_count = r->call_count;
        f->wait_count = r->wait_count;
        for (size_t i = 0; i <= LEDGER_SERVERS; i++)
                f->places[i] = REPLAY_NONE;
        for (size_t i = 0; i < servers; i++) {
                f->servers[i].slots = 1;
                if (f->ledger->servers[i].index < LEDGER_SERVERS)
                        f->places[f->ledger->servers[i].index] = (uint32_t)i;
        }
        return 0;
}

static int make_room(struct fitting *f)
{
        size_t nodes = f->node_count + 1, items = f->item_count + f->wait_count + 1;
        f->commands = mem_zalloc(nodes * sizeof(*f->commands));
        f->after = mem_alloc(nodes * (RECORDING_AFTER + 1) * sizeof(*f->after));
        f->sent = mem_zalloc(nodes * sizeof(*f->sent));
        f->before = mem_alloc(nodes * sizeof(*f->before));
        f->steps = mem_alloc(items * sizeof(*f->steps));
        f->step_ends = mem_alloc(items * sizeof(*f->step_ends));
        f->threads = mem_alloc(REPLAY_THREADS_MAX * sizeof(*f->threads));
        return f->commands && f->after && f->sent && f->before && f->steps && f->step_ends &&
                               f->threads
                       ? 0
                       : SP_E_NOMEM;
}

static int fit(struct fitting *f, struct replay_run *run, uint64_t *ret_span_ns)
{
        int r = begin_fit(f);
        if (r == 0)
                r = fit_nodes(f);
        if (r == 0)
                r = make_room(f);
        if (r < 0)
                return r;
        fit_links(f);
        r = fit_before(f);
        if (r == 0)
                r = fit_untimed(f);
        if (r == 0)
                r = fit_commands(f);
        if (r < 0)
                return r;
        return fit_threads(f, run, ret_span_ns);
}

int fit_make(const struct recording *r, const struct ledger_file *ledger, struct fit *ret)
{
        uint64_t trip = 0;
        struct replay_run run = { 0 };
        struct fitting *f = mem_zalloc(sizeof(*f));
        if (!f)
                return SP_E_NOMEM;
        f->r = r;
        f->ledger = ledger;
        struct fit made = { 0 };
        int status = ledger->server_count > REPLAY_SERVERS_MAX ? SP_E_LIMIT
                                                               : fit(f, &run, &made.span_ns);
        run.servers = f->servers;
        run.commands = f->commands;
        run.after = f->after;
        run.steps = f->steps;
        run.threads = f->threads;
        run.server_count = ledger->server_count;
        run.command_count = f->node_count;
        run.after_count = f->after_count;
        run.thread_count = f->thread_count;
        run.own_trips = REPLAY_OPEN_TRIPS + (r->tls ? 1 : 0);
        made.links = f->links;
        for (size_t i = 0; f->links && i < run.server_count; i++)
                trip = later(trip, f->links[i].round_trip_ns);
        made.is_part = r->dropped && made.span_ns;
        if (made.is_part)
                run.own_trips = 0;
        else
                run.own_ns = minus(ledger->wall_ns, made.span_ns + trip * run.own_trips);
        made.run = run;
        mem_free(f->calls);
        mem_free(f->waits);
        mem_free(f->moves);
        mem_free(f->taken);
        mem_free(f->nodes);
        mem_free(f->events);
        mem_free(f->items);
        mem_free(f->sent);
        mem_free(f->before);
        mem_free(f->step_ends);
        mem_free(f);
        if (status < 0)
                fit_fini(&made);
        else
                *ret = made;
        return status;
}

void fit_fini(struct fit *f)
{
        mem_free((void *)(uintptr_t)f->run.servers);
        mem_free((void *)(uintptr_t)f->run.commands);
        mem_free((void *)(uintptr_t)f->run.after);
        mem_free((void *)(uintptr_t)f->run.steps);
        mem_free((void *)(uintptr_t)f->run.threads);
        mem_free(f->links);
        *f = (struct fit){ 0 };
}
