#include "core/link/idle.h"

#include "base/log.h"
#include "core/client.h"
#include "core/device.h"
#include "core/link/availability.h"
#include "core/link/disconnected.h"
#include "core/link/io.h"
#include "core/link/new_session.h"
#include "core/link/request.h"
#include "core/progress.h"

enum { CLOSE_NS = 200000000 }; /* how long a goodbye may take */

/* ---- ending --------------------------------------------------------------------------------- */

/* Has the application asked to be notified when a device goes? */
static bool is_watched(const struct server *s)
{
        const struct server *first = s->sessions.first;
        for (cl_uint i = 0; i < first->device_count; i++)
                if (first->devices[i]->watch.fn)
                        return true;
        return false;
}

/* Would a use of its devices begin a session again, and does nothing need this one? */
static bool is_unused(const struct server *s) REQUIRES(client_held)
{
        return !s->used && !s->drains && s->state != SERVER_IDLE && s->state != SERVER_LOST &&
               list_empty(&s->sub_devices) && server_may_begin(s) && !is_watched(s);
}

static bool is_asked(const struct server *s) REQUIRES(client_held)
{
        struct map_walk walk = { 0 };
        const struct request *r;
        while ((r = map_walk_next(&s->client->requests, &walk)))
                if (r->server == s)
                        return true;
        return false;
}

/* Is nothing on its way, so that a goodbye comes through at once? */
static bool is_quiet(const struct server *s) REQUIRES(client_held)
{
        return s->state == SERVER_UP && !s->lost_status && !s->receiving && !s->sending.backlog &&
               !s->client->sessions.waiters && !is_asked(s) && is_unused(s);
}

uint64_t servers_end_unused(struct client *c)
{
        uint64_t next = UINT64_MAX, now = client_now_ns(c);
        bool polled = false;
        for (unsigned i = 0;
             i < c->server_count && c->sessions.idle_ns && c->connected && !c->closing; i++) {
                struct server *s = c->servers[i];
                if (!is_unused(s)) {
                        s->idle.unused_ns = 0;
                        continue;
                }
                if (!s->idle.unused_ns)
                        s->idle.unused_ns = now;
                uint64_t at = s->idle.unused_ns + c->sessions.idle_ns;
                if (now >= at && !polled) { /* perhaps nobody has received for long */
                        polled = true;
                        client_poll(c);
                }
                if (now >= at && is_quiet(s)) {
                        log_info("client", "nothing uses the server %s: its session ends",
                                 server_name(s));
                        s->idle.close_ns = now + CLOSE_NS;
                        server_idle(s);
                        continue;
                }
                at = now < at ? at : now + c->sessions.idle_ns;
                next = at < next ? at : next;
        }
        return next;
}

void servers_unused(struct client *c)
{
        if (!c->sessions.idle_ns)
                return;
        progress_wake(c);
        if (c->wait.progress_pumping && c->wait.sleeping)
                c->io->wake(c->io_user);
}

bool server_closing(struct server *s)
{
        struct client *c = s->client;
        if (s->receiving || !s->link)
                return false;
        s->receiving = true;
        int r = c->io->receive(c->io_user, s->link);
        bool closes = s->state == SERVER_IDLE && (r < 0 || client_now_ns(c) >= s->idle.close_ns);
        if (closes) { /* it may release the lock, and nobody may free the server meanwhile */
                server_reap(s, false);
                client_changed(c);
        }
        s->receiving = false;
        return closes || r != 0;
}

/* ---- beginning again ------------------------------------------------------------------------ */

static struct server *newest(const struct _cl_device_id *d)
{
        return d->shown->server->sessions.first->sessions.last;
}

void device_polled(cl_device_id d)
{
        newest(d)->idle.unused_ns = 0;
}

struct use {
        const cl_device_id *devices;
        cl_uint count;
};

static bool is_decided(void *arg) REQUIRES(client_held)
{
        const struct use *u = arg;
        for (cl_uint i = 0; i < u->count; i++)
                if (newest(u->devices[i])->idle.awaited)
                        return false;
        return true;
}

/* The session could not begin in time. The client goes on trying. */
static void set_unreached(const struct server *first) REQUIRES(client_held)
{
        for (cl_uint i = 0; i < first->device_count; i++) {
                cl_device_id d = first->devices[i]->present;
                if (!d->available || d->server == first->sessions.last)
                        continue;
                d->available = false;
                device_changed(first->devices[i]);
        }
}

void devices_begin_use(struct client *c, const cl_device_id *devices, cl_uint count)
{
        struct use u = { devices, count };
        for (cl_uint i = 0; i < count; i++)
                device_polled(devices[i]);
        for (cl_uint i = 0; i < count; i++)
                if (!devices[i]->parent && newest(devices[i])->state == SERVER_IDLE)
                        server_begin_again(newest(devices[i]));
        if (is_decided(&u))
                return;
        c->sessions.waiters++; /* a session stays until the call has used it */
        client_wait(c, is_decided, &u);
        c->sessions.waiters--;
        for (cl_uint i = 0; i < count; i++)
                set_unreached(newest(devices[i])->sessions.first);
}
