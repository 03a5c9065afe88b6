#include "daemon/supervisor/describing.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/supervisor/health.h"
#include "daemon/supervisor/supervising.h"
#include "daemon/supervisor/workers.h"
#include "os/clock.h"
#include "session/hello.h"

/* One filter's devices. It stays while a connection is being sent it. */
struct description {
        size_t refs;
        struct buf info;
        char filter[HEALTH_FILTER_MAX];
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

void describing_learn(struct supervisor *s, struct worker *w)
{
        struct description **all = s->descriptions, *d = NULL;
        size_t i = 0;
        if (!w->devices.undescribed && w->devices.parts.size)
                d = mem_zalloc(sizeof(*d));
        if (!d) {
                describing_drop_parts(w);
                return;
        }
        d->refs = 1;
        d->info = w->devices.parts;
        w->devices.parts = (struct buf){ 0 };
        buf_shrink(&d->info);
        strcpy(d->filter, w->devices.filter);
        /* The newest stands first. It takes the place of its predecessor, or else that of the oldest one. */
        while (i + 1 < DESCRIPTIONS_MAX && all[i] && strcmp(all[i]->filter, d->filter) != 0)
                i++;
        unref(all[i]);
        memmove(&all[1], &all[0], i * sizeof(*all));
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
        for (size_t i = 0; i < DESCRIPTIONS_MAX && s->descriptions[i]; i++)
                if (!strcmp(s->descriptions[i]->filter, filter))
                        return s->descriptions[i];
        return NULL;
}

/* Put the next part of the description behind the bytes to be sent. */
static int put_part(struct pending *v)
{
        const struct description *d = v->telling.description;
        size_t left = d->info.size - v->telling.at;
        size_t part = left < WIRE_DESCRIPTION_PART ? left : WIRE_DESCRIPTION_PART;
        const struct wire_description m = {
                .sessions = v->telling.sessions,
                .left = left - part,
                .devices = bytes_of(d->info.data + v->telling.at, part),
        };
        v->telling.at += part;
        return hello_put_part(&v->telling.out, &m);
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
                        if (put_part(v) < 0)
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
