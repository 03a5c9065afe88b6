#include "engine/limits.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/log.h"
#include "engine/command/command.h"
#include "engine/command/event.h"
#include "engine/object.h"

enum { COUNT, BYTES, TIME };

#define ROOM_WAIT_NS UINT64_C(60000000000) /* --when-full=wait */

enum {
        ROOM_AGAIN_NS = 20000000, /* between tries of commands that wait for memory */
        KERNELS_MAX = 2,          /* in flight on a device, if time is limited */
        DEVICE_NAME = 48,
};

static const struct {
        const char *what;
        enum config_id option;
        int unit;
} names[ENGINE_LIMITS] = {
        [LIMIT_OBJECTS] = { "objects", CONFIG_session_objects, COUNT },
        [LIMIT_PROGRAMS] = { "programs", CONFIG_session_programs, COUNT },
        [LIMIT_STORAGE] = { "buffers and images", CONFIG_session_buffers, BYTES },
        [LIMIT_TRANSFERS] = { "transfers", CONFIG_session_transfers, BYTES },
        [LIMIT_BUILD_NS] = { "a build", CONFIG_session_build_time, TIME },
        [LIMIT_RUN_NS] = { "a command", CONFIG_session_run_time, TIME },
        [LIMIT_CLIENT] = { "buffers and images of this client's sessions", CONFIG_client_memory,
                           BYTES },
};

struct engine_limits engine_limits_of(const struct config_options *o)
{
        static const uint64_t units[] = { [COUNT] = 1, [BYTES] = 1 << 20, [TIME] = 1000000000 };
        struct engine_limits limits = { 0 };
        for (unsigned i = 0; i < LIMIT_CLIENT; i++)
                limits.max[i] = config_option_number(o, names[i].option) * units[names[i].unit];
        limits.room_wait_ns = config_option_number(o, CONFIG_when_full);
        if (limits.room_wait_ns == UINT64_MAX)
                limits.room_wait_ns = ROOM_WAIT_NS;
        return limits;
}

/* Log a sentence, and send it to the client, whose contexts have callbacks for errors. */
__attribute__((format(printf, 2, 3))) static void say(struct engine *e, const char *format, ...)
        REQUIRES(engine_held)
{
        char text[320];
        va_list args;
        va_start(args, format);
        vsnprintf(text, sizeof(text), format, args);
        va_end(args);
        log_warn("engine", "%s", text);
        engine_notice(e, text);
}

static void report(struct engine *e, enum engine_limit which, uint64_t max, uint64_t has,
                   uint64_t more) REQUIRES(engine_held)
{
        const char *what = names[which].what, *option = config_entry(names[which].option)->name;
        switch (names[which].unit) {
        case COUNT:
                say(e, "the session has %llu %s, and may have %llu: %s allows more",
                    (unsigned long long)has, what, (unsigned long long)max, option);
                break;
        case BYTES:
                say(e,
                    "there are %.1f MiB of %s, %.1f MiB more are needed, and %.1f MiB are allowed: %s allows more",
                    (double)has / 1048576, what, (double)more / 1048576, (double)max / 1048576,
                    option);
                break;
        default:
                say(e, "%s of the session takes longer than %llu s: %s allows more", what,
                    (unsigned long long)(max / 1000000000), option);
        }
}

bool engine_limit_exceeded(struct engine *e, enum engine_limit which, uint64_t has, uint64_t more)
{
        uint64_t max = e->params.limits.max[which];
        if (!max || (more <= max && has <= max - more))
                return false;
        if (!(e->limits.reported & 1u << which))
                report(e, which, max, has, more);
        e->limits.reported |= 1u << which;
        return true;
}

/* ---- device memory -------------------------------------------------------------------------- */

/* The client's account has no room for `size` bytes. `on`: 1 + entry of its devices; 0: all together. */
static bool lack(struct engine *e, uint64_t size, uint64_t max, unsigned on) REQUIRES(engine_held)
{
        e->limits.may_get_room = size <= max;
        e->limits.lacks = size;
        e->limits.lacks_on = on;
        return false;
}

bool engine_storage_take(struct engine *e, uint64_t size)
{
        struct account *a = &e->limits.account;
        e->limits.may_get_room = false;
        e->limits.lacks = 0;
        if (engine_limit_exceeded(e, LIMIT_STORAGE, e->objects.storage, size))
                return false;
        if (!account_take(a, size))
                return lack(e, size, a->max, 0);
        e->objects.storage += size;
        if (e->objects.storage > e->objects.storage_peak)
                e->objects.storage_peak = e->objects.storage;
        return true;
}

void engine_storage_give(struct engine *e, uint64_t size)
{
        account_give(&e->limits.account, size);
        e->objects.storage -= size;
        e->limits.room_again_ns = 0;
}

bool engine_limits_memory(const struct engine *e)
{
        const struct account *a = &e->limits.account;
        return e->params.limits.max[LIMIT_STORAGE] ||
               (a->page && (a->max != UINT64_MAX || a->device_count));
}

bool engine_limits_devices(const struct engine *e)
{
        return e->limits.account.device_count != 0;
}

bool engine_storage_take_on(struct engine *e, unsigned root, uint64_t size, device_set *charged)
{
        struct account *a = &e->limits.account;
        if (root >= e->device_count) { /* a sub-device that the client has released */
                e->limits.may_get_room = false;
                e->limits.lacks = 0;
                return false;
        }
        unsigned limited = e->uses[root].limited, i = limited - 1;
        if (!limited || *charged & (device_set)1 << i)
                return true;
        if (!account_device_take(a, i, size))
                return lack(e, size, a->devices[i].max, limited);
        *charged |= (device_set)1 << i;
        return true;
}

void engine_storage_give_on(struct engine *e, uint64_t size, device_set *charged)
{
        for (unsigned i = 0; *charged; i++) {
                if (*charged & (device_set)1 << i)
                        account_device_give(&e->limits.account, i, size);
                *charged &= ~((device_set)1 << i);
        }
}

void engine_storage_full(struct engine *e)
{
        e->limits.may_get_room = true;
        e->limits.lacks = 0;
}

/* Get the name of an entry of the account's devices; "" if there is none. */
static void name_of(struct engine *e, unsigned entry, char ret[DEVICE_NAME]) REQUIRES(engine_held)
{
        unsigned number;
        for (unsigned i = 0; i < e->device_count; i++)
                if (e->uses[i].limited == entry + 1 &&
                    engine_device_label(e, i, &number, ret, DEVICE_NAME))
                        return;
        *ret = 0;
}

static void report_full_device(struct engine *e, unsigned entry) REQUIRES(engine_held)
{
        const struct account *a = &e->limits.account;
        const struct account_device *d = &a->devices[entry];
        char name[DEVICE_NAME];
        if (e->limits.full_devices & (device_set)1 << entry)
                return;
        e->limits.full_devices |= (device_set)1 << entry;
        name_of(e, entry, name);
        say(e,
            "device %u (%s) has %.1f MiB of %s, %.1f MiB more are needed, and %.1f MiB are allowed: "
            "--client-memory allows more",
            d->number, name, (double)account_device_sum(a->page, d->column) / 1048576,
            names[LIMIT_CLIENT].what, (double)e->limits.lacks / 1048576, (double)d->max / 1048576);
}

/* The last try to make storage failed, and nothing waits for it any more: say why, once. */
static void report_full(struct engine *e, bool waited) REQUIRES(engine_held)
{
        const struct account *a = &e->limits.account;
        if (e->limits.lacks && e->limits.lacks_on) {
                report_full_device(e, e->limits.lacks_on - 1);
                return;
        }
        if ((e->limits.reported & 1u << LIMIT_CLIENT) || (!e->limits.lacks && !waited))
                return;
        e->limits.reported |= 1u << LIMIT_CLIENT;
        if (e->limits.lacks)
                report(e, LIMIT_CLIENT, a->max, account_sum(a->page), e->limits.lacks);
        else
                say(e,
                    "the device's memory is full, and has been for longer than --when-full waits");
}

void engine_storage_report(struct engine *e)
{
        report_full(e, false);
}

static void put_off(struct command *c, uint64_t now_ns) REQUIRES(engine_held)
{
        struct engine *e = c->queue->object.engine;
        c->submission.roomless = true;
        if (list_empty(&e->limits.roomless))
                e->limits.room_again_ns = now_ns + ROOM_AGAIN_NS;
        list_append(&e->limits.roomless, &c->submission.room);
}

bool engine_room_wait(struct command *c, cl_int status)
{
        struct engine *e = c->queue->object.engine;
        uint64_t wait_ns = e->params.limits.room_wait_ns,
                 now = e->params.ops->now_ns(e->params.user);
        if (status != CL_MEM_OBJECT_ALLOCATION_FAILURE || e->closing)
                return false;
        if (!e->limits.may_get_room || !wait_ns ||
            (c->submission.room_until_ns && now >= c->submission.room_until_ns)) {
                report_full(e, c->submission.room_until_ns != 0);
                return false;
        }
        if (!c->submission.room_until_ns) {
                c->submission.room_until_ns = now + wait_ns;
                log_info("engine",
                         "a command waits for device memory, for %llu s at most (--when-full)",
                         (unsigned long long)(wait_ns / 1000000000));
        }
        put_off(c, now);
        return true;
}

static void report_paused_device(struct engine *e, unsigned entry) REQUIRES(engine_held)
{
        char name[DEVICE_NAME];
        if (e->limits.paused_devices & (device_set)1 << entry)
                return;
        e->limits.paused_devices |= (device_set)1 << entry;
        name_of(e, entry, name);
        say(e,
            "this client has used up its time on device %u (%s), and its kernels wait there: --client-time allows more",
            e->limits.account.devices[entry].number, name);
}

static bool is_kernel(const struct command *c)
{
        return c->desc.kernel && c->desc.native.op == BACKEND_KERNEL;
}

/* Return true if the device's time is limited, or that of all devices together. */
static bool is_timed(const struct engine *e, unsigned root) REQUIRES(engine_held)
{
        const struct account *a = &e->limits.account;
        unsigned limited = e->uses[root].limited;
        return a->timed || (limited && a->devices[limited - 1].timed);
}

bool engine_limit_pauses(struct command *c)
{
        struct engine *e = c->queue->object.engine;
        const struct account *a = &e->limits.account;
        const struct device_use *u = &e->uses[c->queue->root];
        unsigned limited = u->limited;
        const struct account_device *d = limited ? &a->devices[limited - 1] : NULL;
        if (!is_kernel(c))
                return false;
        if (d && d->timed && atomic_load(&a->page->device_time[d->column].paused)) {
                report_paused_device(e, limited - 1);
        } else if (a->timed && atomic_load(&a->page->time.paused)) {
                if (!e->limits.pause_reported)
                        say(e,
                            "this client has used up its device time, and its kernels wait: --client-time allows more");
                e->limits.pause_reported = true;
        } else if (!is_timed(e, c->queue->root) || u->kernels < KERNELS_MAX) {
                return false;
        }
        put_off(c, e->params.ops->now_ns(e->params.user));
        return true;
}

/* ---- builds --------------------------------------------------------------------------------- */

bool engine_build_begin(struct engine *e)
{
        if (account_build_take(&e->limits.account))
                return true;
        if (!e->limits.builds_reported)
                say(e,
                    "the sessions of this client have %llu builds at work, and further ones wait: --client-builds allows more",
                    (unsigned long long)e->limits.account.builds_max);
        e->limits.builds_reported = true;
        return false;
}

bool engine_build_end(struct engine *e)
{
        return account_build_give(&e->limits.account);
}

void engine_cache_full(struct engine *e)
{
        if (e->limits.account.cache_max && !e->limits.cache_reported)
                say(e,
                    "the compiled programs of this client take more than %llu MiB, so those used least recently are not "
                    "kept: --client-cache allows more",
                    (unsigned long long)(e->limits.account.cache_max >> 20));
        e->limits.cache_reported = true;
}

/* ---- waiting for memory or time ------------------------------------------------------------- */

/* Let the commands try again, in the order in which they began to wait. */
static void try_roomless(struct engine *e, uint64_t now_ns) REQUIRES(engine_held)
{
        if (list_empty(&e->limits.roomless) || now_ns < e->limits.room_again_ns)
                return;
        while (!list_empty(&e->limits.roomless)) {
                struct command *c =
                        list_entry(e->limits.roomless.next, struct command, submission.room);
                list_remove(&c->submission.room);
                engine_command_poke(c);
        }
        engine_settle(e);
}

/* ---- how long commands run ------------------------------------------------------------------ */

/* A device with commands of this session. It has to complete one within the run-time limit. */
struct busy {
        /* In the engine's `busy`, the longest busy first; else by itself. */
        struct list link;
        size_t running;
        uint64_t since_ns; /* the last completion, or the first submission */
};

bool engine_limit_times(const struct engine *e)
{
        const struct account *a = &e->limits.account;
        bool timed = e->params.limits.max[LIMIT_RUN_NS] || a->timed;
        for (unsigned i = 0; i < a->device_count && !timed; i++)
                timed = a->devices[i].timed;
        return timed;
}

/* A kernel on the device is complete: let the first kernel that waits for this device try again. */
static void poke_kernel(struct engine *e, unsigned root) REQUIRES(engine_held)
{
        list_each(c, &e->limits.roomless, struct command, submission.room)
        {
                if (!is_kernel(c) || c->queue->root != root)
                        continue;
                list_remove(&c->submission.room);
                engine_command_poke(c);
                return;
        }
}

void engine_limit_begin(struct command *c)
{
        struct queue *q = c->queue;
        struct engine *e = q->object.engine;
        e->uses[q->root].kernels += is_kernel(c);
        if (!e->params.limits.max[LIMIT_RUN_NS])
                return;
        struct busy *b = map_get(&e->limits.busy_devices, (uint64_t)q->device + 1);
        if (!b) {
                b = mem_zalloc(sizeof(*b));
                if (b && map_put(&e->limits.busy_devices, (uint64_t)q->device + 1, b) < 0) {
                        mem_free(b);
                        b = NULL;
                }
                if (!b) {
                        e->status = e->status ? e->status : SP_E_NOMEM;
                        return;
                }
                list_init(&b->link);
        }
        if (b->running++)
                return;
        b->since_ns = e->params.ops->now_ns(e->params.user);
        list_append(&e->limits.busy, &b->link);
}

void engine_limit_end(struct command *c)
{
        struct queue *q = c->queue;
        struct engine *e = q->object.engine;
        if (is_kernel(c)) {
                e->uses[q->root].kernels--;
                if (is_timed(e, q->root))
                        poke_kernel(e, q->root);
        }
        struct busy *b = e->params.limits.max[LIMIT_RUN_NS]
                                 ? map_get(&e->limits.busy_devices, (uint64_t)q->device + 1)
                                 : NULL;
        if (!b)
                return;
        list_remove(&b->link);
        if (!--b->running)
                return;
        b->since_ns = e->params.ops->now_ns(e->params.user);
        list_append(&e->limits.busy, &b->link);
}

void engine_limit_free(struct engine *e)
{
        struct busy *b;
        for (size_t pos = 0; (b = map_next(&e->limits.busy_devices, &pos));)
                mem_free(b);
        map_fini(&e->limits.busy_devices);
}

/* Notify the client, before the session ends, that the commands that are left fail: nobody can wait
 * for them. */
static void give_up_commands(struct engine *e) REQUIRES(engine_held)
{
        struct event *ev;
        for (size_t pos = 0; (ev = map_next(&e->events.table, &pos));)
                if (!ev->imported && ev->state != EVENT_DONE)
                        peer_send(engine_client(e), event_done, .event = ev->id,
                                  .status = CL_OUT_OF_RESOURCES, .queue = ev->queue);
}

uint64_t engine_deadline(struct engine *e)
{
        uint64_t run_ns = e->params.limits.max[LIMIT_RUN_NS];
        uint64_t deadline = engine_builder_deadline(e);
        if (!list_empty(&e->limits.roomless) && e->limits.room_again_ns < deadline)
                deadline = e->limits.room_again_ns;
        if (run_ns && !list_empty(&e->limits.busy)) {
                uint64_t run =
                        list_entry(e->limits.busy.next, struct busy, link)->since_ns + run_ns;
                deadline = run < deadline ? run : deadline;
        } else if (run_ns && e->commands.held) {
                /* A held command may begin later, on another thread: when its program is loaded. */
                uint64_t run = e->params.ops->now_ns(e->params.user) + run_ns;
                deadline = run < deadline ? run : deadline;
        }
        return deadline;
}

int engine_expire(struct engine *e, uint64_t now_ns)
{
        uint64_t run_ns = e->params.limits.max[LIMIT_RUN_NS];
        engine_builder_expire(e, now_ns);
        try_roomless(e, now_ns);
        if (!run_ns || list_empty(&e->limits.busy) ||
            now_ns - list_entry(e->limits.busy.next, struct busy, link)->since_ns < run_ns)
                return 0;
        report(e, LIMIT_RUN_NS, run_ns, 0, 0);
        give_up_commands(e);
        return SP_E_LIMIT;
}
