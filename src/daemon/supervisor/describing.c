#include "daemon/supervisor/describing.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/supervisor/health.h"
#include "daemon/supervisor/supervising.h"
#include "daemon/supervisor/workers.h"
#include "os/clock.h"
#include "proto/info.h"
#include "session/hello.h"

/* One filter's devices, as a worker with this owner's caches has described them. It stays while a connection is being
 * sent it. */
struct description {
        size_t refs;
        struct buf info;
        char filter[HEALTH_FILTER_MAX];
        char owner[KEYS_HEX + 1];
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

/* Return the number of the description with this filter and this owner; DESCRIPTIONS_MAX: there is none. */
static size_t find(const struct supervisor *s, const char *filter, const char *owner)
{
        for (size_t i = 0; i < DESCRIPTIONS_MAX && s->descriptions[i]; i++)
                if (!strcmp(s->descriptions[i]->filter, filter) &&
                    !strcmp(s->descriptions[i]->owner, owner))
                        return i;
        return DESCRIPTIONS_MAX;
}

static void forget(struct supervisor *s, size_t i)
{
        struct description **all = s->descriptions;
        if (i == DESCRIPTIONS_MAX)
                return;
        unref(all[i]);
        memmove(&all[i], &all[i + 1], (DESCRIPTIONS_MAX - 1 - i) * sizeof(*all));
        all[DESCRIPTIONS_MAX - 1] = NULL;
}

/* Take the parts that the worker has sent, with so many bytes; NULL: they are no description. */
static struct description *take_parts(struct supervisor *s, struct worker *w, size_t size)
{
        struct description *d;
        if (w->devices.undescribed || !size || w->devices.parts.size != size)
                return NULL;
        if (info_check(bytes_of(w->devices.parts.data, w->devices.parts.size)) < 0) {
                log_warn(LOG, "worker %d describes its devices in no valid form", (int)w->pid);
                forget(s, find(s, w->devices.filter, w->grant.owner));
                return NULL;
        }
        d = mem_zalloc(sizeof(*d));
        if (!d)
                return NULL;
        d->refs = 1;
        d->info = w->devices.parts;
        w->devices.parts = (struct buf){ 0 };
        buf_shrink(&d->info);
        strcpy(d->filter, w->devices.filter);
        strcpy(d->owner, w->grant.owner);
        return d;
}

void describing_learn(struct supervisor *s, struct worker *w, size_t size)
{
        struct description **all = s->descriptions, *d = NULL;
        /* The description of a worker without a client's caches does for all. */
        if (!*w->grant.owner || find(s, w->devices.filter, "") == DESCRIPTIONS_MAX)
                d = take_parts(s, w, size);
        if (!d) {
                describing_drop_parts(w);
                return;
        }
        /* The newest stands first. It takes the place of its predecessor, or else that of the oldest one. */
        forget(s, find(s, d->filter, d->owner));
        unref(all[DESCRIPTIONS_MAX - 1]);
        memmove(&all[1], &all[0], (DESCRIPTIONS_MAX - 1) * sizeof(*all));
        all[0] = d;
}

void describing_fini(struct supervisor *s)
{
        for (size_t i = 0; i < DESCRIPTIONS_MAX; i++) {
                unref(s->descriptions[i]);
                s->descriptions[i] = NULL;
        }
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
        size_t i = find(s, filter, "");
        if (i == DESCRIPTIONS_MAX)
                i = find(s, filter, grant->owner);
        return i < DESCRIPTIONS_MAX ? s->descriptions[i] : NULL;
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
