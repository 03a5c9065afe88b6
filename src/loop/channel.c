#include "loop/serving.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/file.h"
#include "transport/fabric.h"
#include "transport/other_end.h"

#define LOG "server"

struct channel *channel_of(struct server_loop *l, struct session *s)
{
        list_each(c, &l->channels, struct channel, link)
        {
                if (c->lanes.session == s)
                        return c;
        }
        struct channel *c = mem_zalloc(sizeof(*c));
        if (!c)
                return NULL;
        c->lanes.session = s;
        c->loop = l;
        list_append(l->channels.next,
                    &c->link); /* first: devices wait for peers, before the client does */
        return c;
}

void channel_down(struct channel *c)
{
        lanes_down(&c->lanes);
        memset(c->broken, 0, sizeof(c->broken));
}

void channel_await(struct server_loop *l, struct channel *c)
{
        while (lanes_busy(&c->lanes)) {
                serving_unlock(l);
                thread_yield();
                serving_lock(l);
        }
}

bool serving_on_thread(const struct server_loop *l)
{
        return l->running && thread_is_self(l->self);
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

void serving_know_process(struct server_loop *l, int fd)
{
        if (l->process.fd >= 0)
                file_close(l->process.fd);
        l->process.conn = conn_close(l->process.conn);
        l->process.fd = fd;
        l->process.ended = false;
        l->process.ask_ns = 0;
}

/* Lane 0 and 1 only: a client that lives closes neither of them in order without a goodbye. */
static void check_end(struct server_loop *l, const struct channel *c) REQUIRES(l->lock, engine_held)
{
        for (unsigned lane = 0; lane <= 1 && l->process.direct; lane++)
                if (c->lanes.links[lane].conn)
                        l->process.closed |= conn_was_closed(c->lanes.links[lane].conn);
}

/* Lane 0 is reset if its process had bytes to read when it ended. Then lane 1 may tell, a little later. The other side
 * of a conn that is placed could still write to memory. */
static void keep_lane(struct server_loop *l, struct channel *c) REQUIRES(l->lock, engine_held)
{
        struct link *k = &c->lanes.links[1];
        if (l->process.direct && !l->process.ended && !l->process.conn && k->conn &&
            !(k->conn->ops->caps & TRANSPORT_PLACED))
                l->process.conn = link_leave(k);
}

/* Say how long the session waits for its client. A process closes its connections a little before it has ended. */
static void report_lost(const struct server_loop *l)
{
        const char *linger = config_option_text(l->params.options, CONFIG_linger);
        if (l->process.ended)
                log_info(LOG, "the client's connection is lost, and its process has ended");
        else if (l->process.fd >= 0 || l->process.conn)
                log_info(
                        LOG,
                        "the client's connection is lost; waiting for it while its process lives, %s s "
                        "at most",
                        linger);
        else
                log_info(LOG, "the client's connection is lost; waiting %s s for it", linger);
}

void channel_lost(struct server_loop *l, struct channel *c, unsigned lane, int status)
{
        if (c == l->client) {
                check_end(l, c);
                if (status != SP_E_LINK) {
                        log_error(LOG, "the client's session ends: %s", status_text(status));
                        serving_end(l, status, "%s", status_text(status));
                } else if (lane) {
                        link_down(&c->lanes.links[lane]);
                } else {
                        l->process.ended = l->process.closed;
                        keep_lane(l, c);
                        report_lost(l);
                        channel_down(c);
                }
                return;
        }
        for (unsigned i = 1; i < SESSION_LANES; i++)
                c->no_fabric |= fabric_failed(c->lanes.links[i].conn);
        channel_down(c);
        if (status == SP_E_LINK)
                peering_disconnected(c);
        else
                peering_failed(l, c, status, status_text(status));
}

/* Received data goes to the device, and with it commands that wait for the data. A polling thread
 * notices their completion soonest, so wake or extend its polling. */
static void await_end(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        if (!atomic_load_explicit(&l->completions.looks, memory_order_relaxed))
                return;
        spin_kick(&l->spin);
        if (atomic_load(&l->completions.sleeps))
                serving_rouse(l);
}

/* Called on a lane thread. */
static void carried(void *user, struct link *link, int status) LOCK_UNCHECKED
{
        struct channel *c = user;
        struct server_loop *l = c->loop;
        await_end(l);
        engine_settle(l->engine);
        if (session_unsent(c->lanes.session))
                serving_flush(l, c->lanes.session); /* acknowledgements */
        if (status < 0)
                c->broken[link->lane] = status;
        if (status < 0 || lanes_unwatched(&c->lanes))
                serving_rouse(l);
}

/* Several peers at the same time compete for the cores, so each gets fewer lanes. */
static void share_lanes(struct server_loop *l) REQUIRES(l->lock, engine_held)
{
        size_t peers = 0;
        if (serving_option(l, CONFIG_peer_lanes))
                return;
        list_each(c, &l->channels, struct channel, link)
        {
                peers += c != l->client && c->lanes.links[1].conn;
        }
        unsigned lanes = lane_thread_lanes(peers);
        list_each(c, &l->channels, struct channel, link)
        {
                if (c != l->client)
                        session_share_lanes(c->lanes.session, lanes > 1 ? lanes - 1 : 1);
        }
}

/* Lane `up` came up. Lanes that share large transfers move at the same time, so each has a lane
 * thread. The loop's thread moves lane 1, and any lane without a lane thread. */
void channel_carry(struct server_loop *l, struct channel *c, unsigned up)
{
        if (up == 1)
                share_lanes(l);
        if (up > 1 && lane_thread_takes(c->lanes.links[up].conn))
                lanes_carry(&c->lanes, up,
                            (struct lane_thread_params){ .lock = &l->lock,
                                                         .spin_ns = l->spin_ns,
                                                         .moved = carried,
                                                         .user = c });
}
