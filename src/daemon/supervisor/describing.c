#include "daemon/supervisor/describing.h"

#include <CL/cl.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/supervisor/health.h"
#include "daemon/supervisor/supervising.h"
#include "daemon/supervisor/workers.h"
#include "os/clock.h"
#include "proto/info.h"
#include "session/hello.h"

/* Descriptions of devices, as a worker has sent them. They stay while a connection is being sent them. */
struct description {
        size_t refs;
        size_t names; /* entries that have it; each is a reference */
        struct buf info;
};

/* The description for workers with this filter and this owner's caches. Many clients may have filters of their own
 * that permit the same devices: they share one. */
struct described {
        struct described *next;
        struct description *description;
        char owner[KEYS_HEX + 1];
        char filter[];
};

static void unref(struct description *d)
{
        if (!d || --d->refs)
                return;
        buf_fini(&d->info);
        mem_free(d);
}

/* ---- from workers ------------------------------------------------------------------------------- */

void describing_receive(struct worker *w, const struct control *c)
{
        if (w->devices.parts.size + c->size > WIRE_DESCRIPTION_MAX ||
            buf_put(&w->devices.parts, c->data, c->size) < 0)
                w->devices.undescribed = true;
}

void describing_drop_parts(struct worker *w)
{
        buf_fini(&w->devices.parts);
}

/* Return where the entry with this filter and this owner stands; NULL: there is none. */
static struct described **find(struct supervisor *s, const char *filter, const char *owner)
{
        for (struct described **at = &s->descriptions.first; *at; at = &(*at)->next)
                if (!strcmp((*at)->filter, filter) && !strcmp((*at)->owner, owner))
                        return at;
        return NULL;
}

static size_t size_of(const struct described *e)
{
        return sizeof(*e) + strlen(e->filter) + 1;
}

static void forget(struct supervisor *s, struct described **at)
{
        if (!at)
                return;
        struct described *e = *at;
        *at = e->next;
        s->descriptions.bytes -= size_of(e);
        if (!--e->description->names)
                s->descriptions.bytes -= e->description->info.size;
        unref(e->description);
        mem_free(e);
}

/* Add an entry as the one that was used last. SP_E_NOMEM. */
static int add(struct supervisor *s, const char *filter, const char *owner, struct description *d)
{
        size_t size = strlen(filter) + 1;
        struct described *e = mem_zalloc(sizeof(*e) + size);
        if (!e)
                return SP_E_NOMEM;
        memcpy(e->filter, filter, size);
        strcpy(e->owner, owner);
        e->description = d;
        d->refs++;
        if (!d->names++)
                s->descriptions.bytes += d->info.size;
        s->descriptions.bytes += size_of(e);
        e->next = s->descriptions.first;
        s->descriptions.first = e;
        return 0;
}

/* The entry whose last use is the longest ago goes first. A new one always fits. */
static void limit(struct supervisor *s)
{
        while (s->descriptions.bytes > DESCRIPTIONS_BYTES_MAX && s->descriptions.first->next) {
                struct described **last = &s->descriptions.first;
                while ((*last)->next)
                        last = &(*last)->next;
                forget(s, last);
        }
}

/* Return a description of just these bytes, which it takes over, and a reference to it; NULL: no memory. */
static struct description *describe(struct supervisor *s, struct buf *info)
{
        struct description *d;
        for (struct described *e = s->descriptions.first; e; e = e->next) {
                d = e->description;
                if (d->info.size != info->size || memcmp(d->info.data, info->data, info->size) != 0)
                        continue;
                d->refs++;
                return d;
        }
        d = mem_zalloc(sizeof(*d));
        if (!d)
                return NULL;
        d->refs = 1;
        d->info = *info;
        *info = (struct buf){ 0 };
        buf_shrink(&d->info);
        return d;
}

/* Take the parts that the worker has sent, with so many bytes; NULL: they are no description. */
static struct description *take_parts(struct supervisor *s, struct worker *w, size_t size)
{
        if (w->devices.undescribed || !size || w->devices.parts.size != size)
                return NULL;
        if (info_check(bytes_of(w->devices.parts.data, w->devices.parts.size)) < 0) {
                log_warn(LOG, "worker %d describes its devices in no valid form", (int)w->pid);
                forget(s, find(s, w->devices.filter, w->grant.owner));
                return NULL;
        }
        return describe(s, &w->devices.parts);
}

/* Return the types of the devices, as cl_device_type. */
static uint64_t types_of(const struct description *d)
{
        struct info_entry e;
        uint64_t types = 0;
        for (struct bytes left = bytes_of(d->info.data, d->info.size); info_next(&left, &e);)
                if (e.key == INFO_DEVICE)
                        types |= info_u64(e.value, CL_DEVICE_TYPE, 0);
        return types;
}

void describing_learn(struct supervisor *s, struct worker *w, size_t size)
{
        struct description *d = NULL;
        /* The description of a worker without a client's caches does for all. */
        if (!*w->grant.owner || !find(s, w->devices.filter, ""))
                d = take_parts(s, w, size);
        describing_drop_parts(w);
        if (!d)
                return;
        if (!*w->grant.owner && !*w->grant.devices)
                s->descriptions.types = types_of(d);
        forget(s, find(s, w->devices.filter, w->grant.owner));
        if (!add(s, w->devices.filter, w->grant.owner, d))
                limit(s);
        unref(d);
}

void describing_fini(struct supervisor *s)
{
        while (s->descriptions.first)
                forget(s, &s->descriptions.first);
}

/* ---- to clients --------------------------------------------------------------------------------- */

bool describing_is_wanted(const struct wire_hello *m)
{
        return m->features & FEATURE_DESCRIPTION && !m->role && !m->lane && !m->next_seq &&
               !m->generation;
}

struct description *describing_find(struct supervisor *s, const struct gate_grant *grant)
{
        char filter[HEALTH_FILTER_MAX];
        health_filter(s, grant, filter);
        struct described **at = find(s, filter, "");
        if (!at)
                at = find(s, filter, grant->owner);
        if (!at)
                return NULL;
        struct described *e = *at;
        *at = e->next;
        e->next = s->descriptions.first;
        s->descriptions.first = e;
        return e->description;
}

int describing_go_on(struct pending *v)
{
        struct buf *out = &v->telling.out;
        const struct description *d = v->telling.description;
        for (;;) {
                if (v->telling.sent == out->size) {
                        out->size = v->telling.sent = 0;
                        if (v->telling.at == d->info.size)
                                return 1;
                        if (hello_put_next_part(out, bytes_of(d->info.data, d->info.size),
                                                &v->telling.at, v->telling.sessions) < 0)
                                return SP_E_NOMEM;
                }
                struct iovec iov = { out->data + v->telling.sent, out->size - v->telling.sent };
                ssize_t n = v->conn->ops->sendv(v->conn, &iov, 1);
                if (n <= 0)
                        return n == SP_E_AGAIN ? 0 : SP_E_LINK;
                v->telling.sent += (size_t)n;
        }
}

int describing_begin(struct supervisor *s, struct pending *v, struct description *d)
{
        const struct wire_hello_reply m = {
                .version = WIRE_VERSION,
                .features = FEATURE_DESCRIPTION,
                .time_ns = clock_now_ns(),
                .identity = bytes_str(s->gate.identity),
                .local_path = bytes_str(s->listeners.local_path),
        };
        d->refs++;
        v->telling.description = d;
        v->telling.sessions = workers_count(s, WORKER_BUSY);
        int r = hello_put_reply(&v->telling.out, &m);
        return r < 0 ? r : describing_go_on(v);
}

void describing_end(struct pending *v)
{
        unref(v->telling.description);
        v->telling.description = NULL;
        buf_fini(&v->telling.out);
}
