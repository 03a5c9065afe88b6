#include "support/sim_dial.h"

#include <string.h>

#include "support/sim_state.h"

enum { DIAL_TRIES = 20000 };

void sim_dial_begin(void *user, struct session *s, uint64_t peer, const char *host, unsigned port,
                    const char *near, const uint64_t session_id[2], const uint64_t token[2])
{
        struct sim_server *server = user;
        struct sim *sim = server->sim;
        for (unsigned i = 0; i < SIM_DIALS_MAX; i++) {
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

struct dial *sim_dial_of(struct sim *sim, const struct session *s)
{
        for (unsigned i = 0; i < SIM_DIALS_MAX; i++)
                if (sim->dials[i].session == s)
                        return &sim->dials[i];
        return NULL;
}

void sim_dial_hang_up(void *user, struct session *s)
{
        struct sim *sim = ((struct sim_server *)user)->sim;
        struct dial *d = sim_dial_of(sim, s);
        sim_link_close_session(sim, s);
        if (d)
                *d = (struct dial){ .at = SIM_NEVER };
}

static bool is_blocked(const struct sim *sim, const struct sim_server *from,
                       const struct sim_server *to)
{
        return sim->params.blocked >> (SIM_SERVERS_MAX * from->index + to->index) & 1;
}

void sim_dial_relayed(void *user, struct session *s)
{
        struct sim *sim = ((struct sim_server *)user)->sim;
        struct dial *d = sim_dial_of(sim, s);
        sim_link_close_session(sim, s);
        if (d) {
                d->relayed = true;
                d->at = is_blocked(sim, d->from, d->to) ? SIM_NEVER : sim->now + 1000000;
        }
}

/* A try to connect a peer, which may fail once the other side believes that it has not. */
static bool connect_peer(struct sim *sim, struct dial *d, struct session *there)
{
        uint64_t a = session_generation(d->session), b = session_generation(there);
        uint64_t generation = (a > b ? a : b) + 1;
        bool arrives = rng_chance(&sim->rng, 80);
        sim_link_close_session(sim, there);
        uint64_t has = session_next_seq(d->session);
        uint64_t next_seq = session_next_seq(there);
        if (engine_peer_connected(d->to->engine, there) && has < session_acked_seq(there))
                has = session_acked_seq(there);
        int r = session_lane_up(there, 0, has);
        if (r == 0)
                r = session_resume(there, generation);
        if (!arrives) {
                session_lane_down(there, 0);
                engine_peer_away(d->to->engine, there);
                return false;
        }
        (void)engine_peer_connected(d->from->engine, d->session);
        if (r == 0)
                r = session_lane_up(d->session, 0, next_seq);
        if (r == 0)
                r = session_resume(d->session, generation);
        must(sim, r == 0 || sim->params.forgiving); /* a session has ended */
        sim_link_new(sim, 0, (struct end){ d->session, d->from }, (struct end){ there, d->to });
        sim_link_connect(sim, 1, (struct end){ d->session, d->from }, (struct end){ there, d->to });
        if (d->relayed)
                engine_peer_direct(d->from->engine, d->session);
        d->relayed = false;
        return true;
}

void sim_dial_try(struct sim *sim, struct dial *d)
{
        struct sim_server *from = d->from, *to = d->to;
        struct session *there = NULL;
        d->at = SIM_NEVER;
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
        } else if (!d->relayed) {
                engine_lock(from->engine);
                engine_peer_unreachable(from->engine, d->session, "nobody there");
                engine_unlock(from->engine);
        }
        sim_server_serve(from);
        sim_server_serve(to);
}

void sim_open_ways(struct sim *sim)
{
        sim->params.blocked = 0;
        for (unsigned i = 0; i < SIM_DIALS_MAX; i++)
                if (sim->dials[i].session && sim->dials[i].relayed && sim->dials[i].at == SIM_NEVER)
                        sim->dials[i].at =
                                sim->now + rng_range(&sim->rng, 1, 4 * sim->delay_ns + 1);
}
