#include "engine/transfer/reroute.h"

bool engine_reroute_ask(struct command *c)
{
        struct transfer *t = c->submission.transfer;
        if (!t->peer || !t->peer->id || t->reroute.hopeless)
                return false;
        if (!list_empty(&t->reroute.orphaned))
                return true;
        t->refs++;
        t->reroute.event = c->event->id;
        list_append(&t->engine->transfers.orphaned, &t->reroute.orphaned);
        peer_send(engine_client(t->engine), transfer_orphaned, .event = c->event->id);
        return true;
}

void engine_reroute_settled(struct command *c)
{
        while (c->submission.given_up) {
                struct transfer *t = c->submission.given_up;
                c->submission.given_up = t->reroute.before;
                engine_transfer_leave(t, c);
        }
}

/* Start the write again with all of the bytes; bytes written already are the same. */
static void begin_again(struct command *c, struct transfer *next) REQUIRES(engine_held)
{
        struct transfer *old = c->submission.transfer;
        old->writer = NULL;
        old->reroute.before = c->submission.given_up;
        c->submission.given_up = old;
        c->submission.transfer = next;
        c->submission.sent = c->submission.parts = 0;
        c->submission.stale = c->submission.running;
        c->submission.staged_from = NULL; /* engine_device_staging_leave answers */
        if (!c->submission.stale)
                engine_reroute_settled(c);
        engine_command_poke(c);
}

static struct transfer *find_orphaned(struct engine *e, uint64_t event) REQUIRES(engine_held)
{
        list_each(t, &e->transfers.orphaned, struct transfer, reroute.orphaned)
        {
                if (t->reroute.event == event)
                        return t;
        }
        return NULL;
}

static int reroute(struct transfer *t, const struct wire_transfer_reroute *m) REQUIRES(engine_held)
{
        struct engine *e = t->engine;
        struct command *c = t->writer; /* NULL: it is complete */
        struct peer *from = engine_peer_find(e, m->peer);
        struct transfer *next;
        if (m->status < 0) {
                t->reroute.hopeless = true;
                if (c)
                        engine_command_poke(c);
                return 0;
        }
        if (!from || !m->transfer)
                return SP_E_PROTO;
        int r = engine_transfer_expect(e, from, m->transfer, t->announced, t->step, c, &next);
        if (r < 0)
                return r;
        if (c)
                begin_again(c, next);
        else /* the bytes come, but no command takes them */
                engine_transfer_disown(next);
        return 0;
}

int engine_handle_transfer_reroute(void *user, const struct wire_transfer_reroute *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct transfer *t = find_orphaned(e, m->event);
        if (!t)
                return SP_E_PROTO;
        list_remove(&t->reroute.orphaned);
        int r = reroute(t, m);
        engine_transfer_disown(t);
        return r;
}
