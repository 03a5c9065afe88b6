#include "engine/limits.h"

#include "base/log.h"
#include "engine/command/event.h"
#include "engine/object.h"

enum { COUNT, BYTES, TIME };

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
};

struct engine_limits engine_limits_of(const struct config_options *o)
{
        static const uint64_t units[] = { [COUNT] = 1, [BYTES] = 1 << 20, [TIME] = 1000000000 };
        struct engine_limits limits;
        for (unsigned i = 0; i < ENGINE_LIMITS; i++)
                limits.max[i] = config_option_number(o, names[i].option) * units[names[i].unit];
        return limits;
}

static void tell(enum engine_limit which, uint64_t max, uint64_t has, uint64_t more)
{
        const char *what = names[which].what, *option = config_entry(names[which].option)->name;
        switch (names[which].unit) {
        case COUNT:
                log_warn("engine", "the session has %llu %s, and may have %llu: %s allows more",
                         (unsigned long long)has, what, (unsigned long long)max, option);
                break;
        case BYTES:
                log_warn(
                        "engine",
                        "the session has %.1f MiB of %s, needs %.1f MiB more, and may have %.1f MiB: "
                        "%s allows more",
                        (double)has / 1048576, what, (double)more / 1048576, (double)max / 1048576,
                        option);
                break;
        default:
                log_warn("engine", "%s of the session takes longer than %llu s: %s allows more",
                         what, (unsigned long long)(max / 1000000000), option);
        }
}

bool engine_limit_exceeded(struct engine *e, enum engine_limit which, uint64_t has, uint64_t more)
{
        uint64_t max = e->params.limits.max[which];
        if (!max || (more <= max && has <= max - more))
                return false;
        if (!(e->limits.told & 1u << which))
                tell(which, max, has, more);
        e->limits.told |= 1u << which;
        return true;
}

/* ---- how long commands run ------------------------------------------------------------------ */

/* A device with commands of this session. It has to complete one within the run-time limit. */
struct busy {
        /* In the engine's `busy`, the longest busy first; else by itself. */
        struct list link;
        size_t running;
        uint64_t since_ns; /* the last completion, or the first submission */
};

void engine_limit_begin(struct queue *q)
{
        struct engine *e = q->object.engine;
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

void engine_limit_end(struct queue *q)
{
        struct engine *e = q->object.engine;
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
        if (!run_ns || list_empty(&e->limits.busy) ||
            now_ns - list_entry(e->limits.busy.next, struct busy, link)->since_ns < run_ns)
                return 0;
        tell(LIMIT_RUN_NS, run_ns, 0, 0);
        give_up_commands(e);
        return SP_E_LIMIT;
}
