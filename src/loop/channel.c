#include "loop/serving.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/clock.h"
#include "transport/fabric.h"

#define LOG "server"

struct channel *channel_of(struct server_loop *l, struct session *s)
{
        list_each(c, &l->channels, struct channel, link)
        {
                if (c->session == s)
                        return c;
        }
        struct channel *c = mem_zalloc(sizeof(*c));
        if (!c)
                return NULL;
        c->session = s;
        c->loop = l;
        list_append(l->channels.next,
                    &c->link); /* first: devices wait for peers, before the client does */
        return c;
}

void channel_down(struct channel *c)
{
        for (unsigned i = 0; i < SESSION_LANES; i++) {
                link_down(&c->lanes[i]);
                c->broken[i] = 0;
        }
}

void channel_await(struct server_loop *l, struct channel *c)
{
        for (unsigned i = 0; i < SESSION_LANES; i++)
                while (link_busy(&c->lanes[i])) {
                        engine_unlock(l->engine);
                        sched_yield();
                        engine_lock(l->engine);
                }
}

bool serving_on_thread(const struct server_loop *l)
{
        return l->running && pthread_equal(l->self, pthread_self());
}

void serving_rouse(struct server_loop *l)
{
        if (!l->asleep)
                return;
        l->asleep = false;
        box_wake(l->box);
}

void serving_end(struct server_loop *l, int status, const char *fmt, ...)
{
        if (l->over)
                return;
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(l->end.text, sizeof(l->end.text), fmt, ap);
        va_end(ap);
        l->over = true;
        l->end.status = status;
}

void channel_lost(struct server_loop *l, struct channel *c, unsigned lane, int status)
{
        if (c == l->client) {
                if (status != SP_E_LINK) {
                        log_error(LOG, "the client's session ends: %s", status_text(status));
                        serving_end(l, status, "%s", status_text(status));
                } else if (lane) {
                        link_down(&c->lanes[lane]);
                } else {
                        log_info(LOG, "the client's connection is lost; waiting %s s for it",
                                 config_option_text(l->params.options, CONFIG_linger));
                        channel_down(c);
                }
                return;
        }
        for (unsigned i = 1; i < SESSION_LANES; i++)
                c->no_fabric |= fabric_failed(c->lanes[i].conn);
        channel_down(c);
        if (status == SP_E_LINK)
                peering_disconnected(c);
        else
                peering_failed(l, c, status, status_text(status));
}

/* Received data goes to the device, and with it commands that wait for the data. A polling thread
 * notices their completion soonest, so wake or extend its polling. */
static void await_end(struct server_loop *l)
{
        if (!atomic_load_explicit(&l->completions.looks, memory_order_relaxed))
                return;
        spin_kick(&l->spin);
        if (atomic_load(&l->completions.sleeps))
                serving_rouse(l);
}

/* Called on a lane thread. */
static void carried(void *user, struct link *link, int status) REQUIRES(engine_held)
{
        struct channel *c = user;
        struct server_loop *l = c->loop;
        await_end(l);
        engine_settle(l->engine);
        if (session_unsent(c->session))
                serving_flush(l, c->session); /* acknowledgements */
        if (status >= 0)
                return;
        c->broken[link->lane] = status;
        serving_rouse(l);
}

static void carry_lane(struct server_loop *l, struct channel *c, unsigned lane)
{
        if (c->lane_threads[lane]) {
                lane_thread_rouse(c->lane_threads[lane]);
                return;
        }
        const struct lane_thread_params p = {
                .link = &c->lanes[lane],
                .lock = &l->unlock,
                .spin_ns = l->spin_ns,
                .moved = carried,
                .user = c,
        };
        int r = lane_thread_start(&p, &c->lane_threads[lane]);
        if (r < 0)
                log_info(LOG, "no thread for lane %u: %s", lane, status_text(r));
}

/* Several peers at the same time compete for the cores, so each gets fewer lanes. */
static void share_lanes(struct server_loop *l)
{
        size_t peers = 0;
        if (serving_option(l, CONFIG_peer_lanes))
                return;
        list_each(c, &l->channels, struct channel, link)
        {
                peers += c != l->client && c->lanes[1].conn;
        }
        unsigned lanes = lane_thread_lanes(peers);
        list_each(c, &l->channels, struct channel, link)
        {
                if (c != l->client)
                        session_share_lanes(c->session, lanes > 1 ? lanes - 1 : 1);
        }
}

/* Lane `up` came up. Lanes that share large transfers move at the same time, so each has a lane
 * thread. The loop's thread moves lane 1, and any lane without a lane thread. */
void channel_carry(struct server_loop *l, struct channel *c, unsigned up)
{
        if (up == 1)
                share_lanes(l);
        if (up > 1 && lane_thread_takes(c->lanes[up].conn))
                carry_lane(l, c, up);
}
