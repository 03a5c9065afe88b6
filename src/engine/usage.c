#include "engine/usage.h"

#include <stdatomic.h>
#include <string.h>

#include "base/mem.h"
#include "engine/object.h"

enum { NAME_SIZE = 64 };

int engine_usage_init(struct engine *e)
{
        e->uses = mem_zalloc((e->device_count + 1) * sizeof(*e->uses));
        return e->uses ? 0 : SP_E_NOMEM;
}

void engine_usage_fini(struct engine *e)
{
        mem_free(e->uses);
        e->uses = NULL;
}

void engine_usage_limit(struct engine *e)
{
        const struct account *a = &e->limits.account;
        char name[NAME_SIZE];
        unsigned number;
        for (unsigned i = 0; i < e->device_count && a->device_count; i++) {
                if (!engine_device_label(e, i, &number, name, sizeof(name)))
                        continue;
                for (unsigned k = 0; k < a->device_count; k++)
                        if (a->devices[k].number == number)
                                e->uses[i].limited = k + 1;
        }
}

static uint64_t now(struct engine *e)
{
        return e->params.ops->now_ns(e->params.user);
}

void engine_usage_begin(struct queue *q)
{
        struct device_use *u = &q->object.engine->uses[q->root];
        if (!q->running++ && !u->queues++)
                atomic_store(&u->since_ns, now(q->object.engine));
}

static const struct account_device *limited(const struct engine *e, const struct device_use *u)
        REQUIRES(engine_held)
{
        return u->limited ? &e->limits.account.devices[u->limited - 1] : NULL;
}

/* The value of since_ns while the pair changes. */
#define CHANGING UINT64_MAX

/* Add the time since `since_ns` to the sums. */
static void settle(struct engine *e, struct device_use *u) REQUIRES(engine_held)
{
        const struct account *a = &e->limits.account;
        const struct account_device *d = limited(e, u);
        uint64_t t = now(e), more = t - atomic_load(&u->since_ns);
        atomic_store(&u->since_ns, CHANGING);
        atomic_fetch_add(&u->busy_ns, more);
        atomic_store(&u->since_ns, u->queues ? t : 0);
        if (a->timed)
                atomic_fetch_add(&a->page->time.busy_ns, more);
        if (d && d->timed)
                atomic_fetch_add(&a->page->device_time[d->column].busy_ns, more);
}

void engine_usage_end(struct queue *q)
{
        struct engine *e = q->object.engine;
        struct device_use *u = &e->uses[q->root];
        const struct account_device *d = limited(e, u);
        bool idle = !--q->running && !--u->queues;
        if (idle || e->limits.account.timed || (d && d->timed))
                settle(e, u);
}

/* Return how long the device was busy with the session's commands up to now. Any thread, without the lock. */
static uint64_t busy_ns(struct engine *e, unsigned device)
{
        enum { TRIES = 1000 }; /* the writer may lose its core */
        const struct device_use *u = &e->uses[device];
        uint64_t busy = 0;
        for (int i = 0; i < TRIES; i++) {
                uint64_t since = atomic_load(&u->since_ns);
                busy = atomic_load(&u->busy_ns);
                if (since == CHANGING || atomic_load(&u->since_ns) != since)
                        continue;
                uint64_t t = now(e);
                return since && t > since ? busy + (t - since) : busy;
        }
        return busy;
}

int engine_put_times(struct engine *e, struct buf *ret)
{
        char name[NAME_SIZE];
        int r = 0;
        for (unsigned i = 0; i < e->device_count && !r; i++) {
                unsigned number = i;
                uint64_t busy = busy_ns(e, i);
                if (!busy)
                        continue;
                (void)engine_device_label(e, i, &number, name, sizeof(name));
                r = buf_put_u64(ret, number);
                if (!r)
                        r = buf_put_u64(ret, busy);
        }
        return r;
}

static int put_use(struct engine *e, unsigned device, struct buf *ret) REQUIRES(engine_held)
{
        struct device_use *u = &e->uses[device];
        unsigned number = device;
        char name[NAME_SIZE] = "";
        size_t mark;
        if (!atomic_load(&u->busy_ns) && !u->queues)
                return 0;
        if (u->queues) /* the session may end before its commands do */
                settle(e, u);
        (void)engine_device_label(e, device, &number, name, sizeof(name));
        int r = info_begin(ret, INFO_USE, &mark);
        if (!r)
                r = info_put_u64(ret, INFO_USE_DEVICE, number);
        if (!r)
                r = info_put(ret, INFO_USE_NAME, name, strlen(name));
        if (!r)
                r = info_put_u64(ret, INFO_USE_BUSY_NS, atomic_load(&u->busy_ns));
        if (!r)
                info_end(ret, mark);
        return r;
}

void engine_use_energy(struct engine *e, uint64_t sample, struct bytes uses)
{
        enum { PAIR = 2 * sizeof(uint64_t) };
        char name[NAME_SIZE];
        unsigned number;
        atomic_store(&e->energy_sample, sample);
        for (unsigned i = 0; i < e->device_count; i++) {
                if (!engine_device_label(e, i, &number, name, sizeof(name)))
                        continue;
                const uint8_t *pair = uses.data;
                for (size_t left = uses.size; left >= PAIR; left -= PAIR, pair += PAIR) {
                        if (bytes_get_u64(pair) != number)
                                continue;
                        atomic_store(&e->uses[i].energy_uj, bytes_get_u64(pair + PAIR / 2));
                        atomic_store(&e->uses[i].metered, true);
                }
        }
}

static int put_energy(struct engine *e, unsigned device, struct buf *ret) REQUIRES(engine_held)
{
        unsigned number = device;
        char name[NAME_SIZE] = "";
        size_t mark;
        (void)engine_device_label(e, device, &number, name, sizeof(name));
        int r = info_begin(ret, INFO_ENERGY, &mark);
        if (!r)
                r = info_put_u64(ret, INFO_ENERGY_DEVICE, number);
        if (!r)
                r = info_put(ret, INFO_ENERGY_NAME, name, strlen(name));
        if (!r)
                r = info_put_u64(ret, INFO_ENERGY_UJ, atomic_load(&e->uses[device].energy_uj));
        if (!r)
                r = info_put_u64(ret, INFO_ENERGY_SAMPLE, atomic_load(&e->energy_sample));
        if (!r)
                info_end(ret, mark);
        return r;
}

int engine_usage_put_energy(struct engine *e, struct buf *ret)
{
        int r = 0;
        for (unsigned i = 0; i < e->device_count && !r; i++)
                if (atomic_load(&e->uses[i].metered))
                        r = put_energy(e, i, ret);
        return r;
}

int engine_get_usage(struct engine *e, uint64_t round_trip_ns, struct buf *ret)
{
        const struct {
                enum info_key key;
                uint64_t value;
        } all[] = {
                { INFO_SESSION_MEMORY, e->objects.storage },
                { INFO_SESSION_PROGRAMS, e->objects.programs },
                { INFO_SESSION_PEAK, e->objects.storage_peak },
                { INFO_SESSION_COMMANDS, e->commands.held + e->commands.running },
                { INFO_SESSION_ROUND_TRIP, round_trip_ns },
        };
        size_t mark;
        int r = info_begin(ret, INFO_SESSION, &mark);
        for (size_t i = 0; i < array_size(all) && !r; i++)
                r = info_put_u64(ret, all[i].key, all[i].value);
        for (unsigned i = 0; i < e->device_count && !r; i++)
                r = put_use(e, i, ret);
        if (!r)
                info_end(ret, mark);
        return r;
}
