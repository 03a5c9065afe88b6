#include "support/sim_dial.h"

#include <string.h>

#include "support/sim_state.h"

enum {
        DIAL_TRIES = 20000,
        RELAYED_TRIES = 15, /* that fail, until there may be a way: it has to be quiet some time */
        RELAYED_PAUSE_NS = 100000000,
};

struct dial *sim_dial_of(struct sim *sim, const struct session *s)
{
        for (unsigned i = 0; i < SIM_DIALS_MAX; i++)
                if (sim->dials[i].session == s)
                        return &sim->dials[i];
        return NULL;
}

/* The other side's link for this try's connection. NULL: there is none any more. */
static struct sim_link *link_of(struct sim *sim, const struct dial *d)
{
        for (unsigned k = 0; d->step == DIAL_ENDS && k < sim->link_count; k++)
                if (sim->links[k].number == d->number && sim->links[k].end[1].session)
                        return &sim->links[k];
        return NULL;
}

/* The answer will not arrive, which the other side notices. */
static void abandon(struct sim *sim, const struct dial *d)
{
        struct sim_link *l = link_of(sim, d);
        if (l)
                l->broken = true;
}

void sim_dial_begin(void *user, struct session *s, uint64_t peer, const char *host, unsigned port,
                    const char *local_path, const uint64_t session_id[2], const uint64_t token[2])
{
        struct sim_server *server = user;
        struct sim *sim = server->sim;
        struct dial *d = sim_dial_of(sim, s);
        d = d ? d : sim_dial_of(sim, NULL);
        (void)peer, (void)local_path;
        must(sim, d);
        must(sim, port >= 1 && port <= sim->params.servers);
        must(sim, !strcmp(host, sim->servers[port - 1].name));
        abandon(sim, d);
        sim_link_close_session(sim, s);
        *d = (struct dial){
                .at = sim->now + 1,
                .from = server,
                .to = &sim->servers[port - 1],
                .session = s,
                .token = { token[0], token[1] },
                .id = { session_id[0], session_id[1] },
        };
}

void sim_dial_hang_up(void *user, struct session *s)
{
        struct sim *sim = ((struct sim_server *)user)->sim;
        struct dial *d = sim_dial_of(sim, s);
        sim_link_close_session(sim, s);
        if (!d)
                return;
        abandon(sim, d);
        *d = (struct dial){ .at = SIM_NEVER };
}

/* The client relays, and no try is under way. */
static void try_later(struct sim *sim, struct dial *d)
{
        uint64_t pause = rng_range(&sim->rng, 1, RELAYED_PAUSE_NS);
        if (rng_chance(&sim->rng,
                       20)) /* now and then the client has not yet said a word to the last one */
                pause /= 1000;
        bool goes_on = sim->relayed_tries[d->from->index][d->to->index] > 0;
        d->at = goes_on ? sim->now + pause : SIM_NEVER;
}

static void have_tries(struct sim *sim, unsigned a, unsigned b)
{
        sim->relayed_tries[a][b] = sim->relayed_tries[b][a] = RELAYED_TRIES;
}

void sim_dial_relayed(void *user, struct session *s)
{
        struct sim *sim = ((struct sim_server *)user)->sim;
        struct dial *d = sim_dial_of(sim, s);
        sim_link_close_session(sim, s);
        if (!d)
                return;
        d->relayed = true;
        if (d->step == DIAL_BEGINS)
                try_later(sim, d);
}

/* Another try may wait until a clock runs out, so the pause grows with the clock. */
static uint64_t pause_of(const struct sim *sim)
{
        return sim->params.answer_ns / 50;
}

/* ---- a try ---------------------------------------------------------------------------------- */

static uint64_t any_delay(struct sim *sim)
{
        return rng_range(&sim->rng, 1, sim->delay_ns + 1);
}

static void begin(struct sim *sim, struct dial *d)
{
        uint64_t last = session_generation(d->session);
        d->generation = (d->generation > last ? d->generation : last) + 1;
        d->next_seq = session_next_seq(d->session);
        d->step = DIAL_ARRIVES;
        d->at = sim->now + any_delay(sim);
}

/* `refused`: it may never be that way. */
static void fail(struct sim *sim, struct dial *d, bool refused) REQUIRES(engine_held)
{
        d->step = DIAL_BEGINS;
        d->at = SIM_NEVER;
        unsigned *left = &sim->relayed_tries[d->from->index][d->to->index];
        *left -= d->relayed && *left;
        if (d->relayed)
                try_later(sim, d);
        else if (!refused)
                d->at = sim->now + rng_range(&sim->rng, 1, 4 * sim->delay_ns + 1) + pause_of(sim);
        if (d->relayed || refused)
                engine_peer_unreachable(d->from->engine, d->session, "nobody there");
}

static void arrive(struct sim *sim, struct dial *d) REQUIRES(engine_held)
{
        struct sim_server *to = d->to;
        unsigned way = SIM_SERVERS_MAX * d->from->index + to->index;
        if (to->dead || to->over || sim->params.blocked >> way & 1 ||
            memcmp(to->id, d->id, sizeof(d->id)) != 0) {
                fail(sim, d, true);
                return;
        }
        struct session *there = engine_peer_session(to->engine, d->token);
        sim->early_dials += !there;
        if (!there && ++d->tries < DIAL_TRIES)
                d->at = sim->now + sim->delay_ns + 1 +
                        pause_of(sim); /* the client's word to it is on its way */
        if (!there || d->generation <= session_generation(there)) {
                bool given_up = !there && d->tries == DIAL_TRIES;
                sim->refused_dials += given_up;
                if (given_up)
                        d->tries = 0;
                if (there || given_up)
                        fail(sim, d, given_up);
                return;
        }
        sim_link_close_session(sim, there);
        uint64_t has = d->next_seq;
        d->their_seq = session_next_seq(there);
        if (engine_peer_connected(to->engine, there) && has < session_acked_seq(there))
                has = session_acked_seq(there);
        int r = session_lane_up(there, 0, has);
        if (r == 0)
                r = session_resume(there, d->generation);
        must(sim, r == 0 || sim->params.forgiving); /* a session has ended */
        struct sim_link *l =
                sim_link_new(sim, 0, (struct end){ NULL, d->from }, (struct end){ there, to });
        l->number = d->number = ++sim->dialled;
        d->step = DIAL_ENDS;
        d->at = sim->now + any_delay(sim);
}

static void end(struct sim *sim, struct dial *d) REQUIRES(engine_held)
{
        struct sim_link *l = link_of(sim, d);
        struct end mine = { d->session, d->from };
        if (!rng_chance(&sim->rng, 80) || d->generation < session_generation(d->session)) {
                abandon(sim, d);
                fail(sim, d, false);
                return;
        }
        d->step = DIAL_BEGINS;
        d->at = SIM_NEVER;
        (void)engine_peer_connected(d->from->engine, d->session);
        int r = session_lane_up(d->session, 0, d->their_seq);
        if (r == 0)
                r = session_resume(d->session, d->generation);
        must(sim, r == 0 || sim->params.forgiving);
        if (!l) { /* the other side has closed it meanwhile */
                l = sim_link_new(sim, 0, mine, (struct end){ NULL, d->to });
                l->broken = true;
                return;
        }
        l->end[0] = mine;
        if (l->broken)
                return;
        sim_link_connect(sim, 1, mine, l->end[1]);
        engine_peer_direct(d->from->engine, d->session);
        have_tries(sim, d->from->index, d->to->index);
        d->relayed = false;
}

void sim_dial_step(struct sim *sim, struct dial *d) LOCK_UNCHECKED /* two engines */
{
        struct sim_server *from = d->from, *to = d->to;
        struct sim_server *first = from->index < to->index ? from : to;
        static void (*const steps[])(struct sim *, struct dial *) = { begin, arrive, end };
        if (from->dead || from->over) {
                abandon(sim, d);
                *d = (struct dial){ .at = SIM_NEVER };
                return;
        }
        engine_lock(first->engine);
        engine_lock((first == from ? to : from)->engine);
        steps[d->step](sim, d);
        engine_unlock(to->engine);
        engine_unlock(from->engine);
        sim_server_serve(from);
        sim_server_serve(to);
}

void sim_set_ways(struct sim *sim, uint64_t blocked)
{
        sim->params.blocked = blocked;
        for (unsigned i = 0; i < SIM_SERVERS_MAX * SIM_SERVERS_MAX; i++)
                have_tries(sim, i / SIM_SERVERS_MAX, i % SIM_SERVERS_MAX);
        for (unsigned i = 0; i < SIM_DIALS_MAX; i++)
                if (sim->dials[i].session && sim->dials[i].relayed && sim->dials[i].at == SIM_NEVER)
                        try_later(sim, &sim->dials[i]);
}
