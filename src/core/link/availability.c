#include "core/link/availability.h"

#include "base/mem.h"
#include "core/client.h"
#include "core/device.h"
#include "core/link/disconnected.h"
#include "core/link/idle.h"
#include "core/progress.h"

/* The next news for the application, in *available; false: there is none. An outage that is over
 * already is notified all the same. A call may have failed for it, or the application may have
 * queried meanwhile, and waits for the news. */
static bool next_word(const cl_device_id d, bool *available) REQUIRES(client_held)
{
        *available = device_present(d)->available && !(d->watch.notified && d->watch.gone);
        return d->watch.fn && *available != d->watch.notified;
}

/* Runs on the progress thread, without the lock. Changes since it was deferred are notified at
 * once. */
static void notify(struct deferred *call)
{
        cl_device_id d = container_of(call, struct _cl_device_id, watch.call);
        struct client *c = d->client;
        bool available;
        client_lock(c);
        d->watch.due = false;
        while (next_word(d, &available)) {
                spancl_availability_fn fn = d->watch.fn;
                void *user_data = d->watch.user_data;
                d->watch.notified = available;
                d->watch.gone = false;
                c->availability.telling = d;
                c->availability.teller = thread_self();
                client_unlock(c);
                fn(d, available ? CL_TRUE : CL_FALSE, user_data);
                client_lock(c);
                c->availability.telling = NULL;
                client_changed(c);
        }
        device_unhold(d);
        client_unlock(c);
}

void device_changed(cl_device_id d)
{
        if (!device_present(d)->available)
                d->watch.gone = true;
        if (!d->watch.fn || d->watch.due)
                return;
        device_hold(d);
        d->watch.due = true;
        client_defer(d->client, &d->watch.call, notify);
}

static bool is_notified(void *arg) REQUIRES(client_held)
{
        cl_device_id d = arg;
        return d->client->availability.telling != d;
}

void device_unwatch(cl_device_id d)
{
        if (!d->watch.fn)
                return;
        d->watch.fn = NULL;
        d->client->availability.watched--;
        progress_unwatch(d->client);
        servers_unused(d->client);
}

void device_watch(cl_device_id d, spancl_availability_fn fn, void *user_data)
{
        struct client *c = d->client;
        if (fn)
                devices_begin_use(c, &d, 1);
        bool begins = fn && !d->watch.fn;
        if (begins) {
                progress_watch(c);
                c->availability.watched++;
        } else if (!fn) {
                device_unwatch(d);
        }
        d->watch.fn = fn;
        d->watch.user_data = user_data;
        d->watch.notified = device_is_available(d);
        d->watch.gone = false;
        if (begins)
                servers_watched(c);
        /* Of the one before. */
        if (c->availability.telling == d && !thread_is_self(c->availability.teller))
                client_wait(c, is_notified, d);
}

void devices_watch_new(struct client *c, spancl_availability_fn fn, void *user_data)
{
        if (fn && !c->availability.fn)
                progress_watch(c);
        if (!fn && c->availability.fn)
                progress_unwatch(c);
        c->availability.fn = fn;
        c->availability.user_data = user_data;
}

void device_joined(cl_device_id d)
{
        struct client *c = d->client;
        if (!c->availability.fn)
                return;
        progress_watch(c);
        c->availability.watched++;
        d->watch.fn = c->availability.fn;
        d->watch.user_data = c->availability.user_data;
        d->watch.notified = false; /* it was not there */
        servers_watched(c);
        device_changed(d);
}
