#include "engine/observed.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/command/command.h"
#include "engine/command/recording.h"
#include "engine/object.h"
#include "engine/tracing.h"

enum {
        OBSERVED_MAX = 1 << 14, /* commands */
        NAME_SIZE = 64,
        EARLIER = 1, /* as a time of submission: before the recording */
};

struct observed_command {
        uint64_t fields[INFO_TRACE_COMMAND_FIELDS];
        char name[NAME_SIZE];
};

int engine_observe(struct engine *e, bool on)
{
        struct engine_observed *o = &e->observed;
        if (!on) {
                if (--o->observers == 0)
                        engine_observed_fini(e);
                engine_trace_watch(false);
                return 0;
        }
        if (!o->ring)
                o->ring = mem_alloc(OBSERVED_MAX * sizeof(*o->ring));
        if (!o->ring)
                return SP_E_NOMEM;
        o->observers++;
        engine_trace_watch(true);
        return 0;
}

void engine_observed_fini(struct engine *e)
{
        mem_free(e->observed.ring);
        e->observed.ring = NULL;
        e->observed.ever = e->observed.untimed = 0;
}

bool engine_has_observers(const struct engine *e)
{
        return e->observed.ring != NULL;
}

static uint64_t now(struct engine *e)
{
        return e->params.ops->now_ns(e->params.user);
}

void engine_observed_submit(struct command *c)
{
        struct engine *e = c->queue->object.engine;
        struct batch *b = c->batch;
        if (!c->submission.observed_ns)
                c->submission.observed_ns = e->observed.ring ? now(e) : EARLIER;
        if (b && c != b->first && !b->observed_ns)
                b->observed_ns = c->submission.observed_ns;
}

static const char *name_of(const struct command *c, bool run)
{
        static const char *const names[] = {
                [BACKEND_KERNEL] = "kernel",
                [BACKEND_WRITE] = "write buffer",
                [BACKEND_READ] = "read buffer",
                [BACKEND_WRITE_RECT] = "write buffer",
                [BACKEND_READ_RECT] = "read buffer",
                [BACKEND_COPY] = "copy buffer",
                [BACKEND_COPY_RECT] = "copy buffer",
                [BACKEND_FILL] = "fill buffer",
                [BACKEND_WRITE_IMAGE] = "write image",
                [BACKEND_READ_IMAGE] = "read image",
                [BACKEND_COPY_IMAGE] = "copy image",
                [BACKEND_IMAGE_TO_BUFFER] = "copy image",
                [BACKEND_BUFFER_TO_IMAGE] = "copy image",
                [BACKEND_FILL_IMAGE] = "fill image",
                [BACKEND_MARKER] = "marker",
                [BACKEND_BARRIER] = "barrier",
        };
        if (run)
                return "command buffer";
        return c->desc.kernel && c->desc.kernel->name ? c->desc.kernel->name
                                                      : names[c->desc.native.op];
}

static uint64_t bytes_of_transfer(const struct backend_command *n)
{
        switch (n->op) {
        case BACKEND_WRITE:
        case BACKEND_READ:
        case BACKEND_COPY:
        case BACKEND_FILL:
                return n->size;
        case BACKEND_WRITE_RECT:
        case BACKEND_READ_RECT:
        case BACKEND_COPY_RECT:
                return n->region[0] * n->region[1] * n->region[2];
        default:
                return 0; /* pixels */
        }
}

/* The times of a command as this server sees them, from `begin` on, when it was submitted. */
static void guess(const struct command *c, uint64_t begin, struct backend_times *ret)
{
        struct queue *q = c->queue;
        *ret = (struct backend_times){ begin, begin, now(q->object.engine) };
        if (q->in_order && q->observed_ns > begin)
                ret->start_ns = q->observed_ns;
        q->observed_ns = ret->end_ns;
}

void engine_observed_complete(const struct command *c, const struct backend_times *t, bool run)
{
        struct engine_observed *o = &c->queue->object.engine->observed;
        const struct backend_command *n = &c->desc.native;
        struct backend_times guessed;
        bool known = t && t->end_ns;
        if (!o->ring || !c->event || !c->event->id)
                return;
        uint64_t begin = run ? c->batch->observed_ns : c->submission.observed_ns;
        if (!known && begin <= EARLIER) {
                /* Without a submission a marker had nothing to wait for, or the command failed: nothing ran. A
                 * write's bytes came into the buffer all the same. */
                if (begin) /* a later command of an in-order queue begins now */
                        c->queue->observed_ns = now(c->queue->object.engine);
                o->untimed += begin || (c->submission.transfer && c->outcome.status >= 0);
                return;
        }
        if (!known)
                guess(c, begin, &guessed);
        t = known ? t : &guessed;
        unsigned dims = !run && n->op == BACKEND_KERNEL ? n->dims : 0;
        struct observed_command *m = &o->ring[o->ever++ % OBSERVED_MAX];
        *m = (struct observed_command){
                .fields = {
                        [INFO_TRACE_COMMAND_EVENT] = c->event->id,
                        [INFO_TRACE_COMMAND_QUEUE] = c->queue->object.id,
                        [INFO_TRACE_COMMAND_DEVICE] = c->queue->root,
                        [INFO_TRACE_COMMAND_DIMS] = dims,
                        [INFO_TRACE_COMMAND_FLAGS] =
                                (c->queue->in_order ? TRACE_COMMAND_IN_ORDER : 0) |
                                (known ? 0 : TRACE_COMMAND_BY_SERVER) |
                                (c->outcome.status < 0 ? TRACE_COMMAND_FAILED : 0),
                        [INFO_TRACE_COMMAND_BYTES] = run ? 0 : bytes_of_transfer(n),
                        [INFO_TRACE_COMMAND_SUBMIT] = t->submit_ns,
                        [INFO_TRACE_COMMAND_START] = t->start_ns,
                        [INFO_TRACE_COMMAND_END] = t->end_ns,
                },
        };
        for (unsigned i = 0; i < dims && i < 3; i++) {
                m->fields[INFO_TRACE_COMMAND_GLOBAL + i] = c->desc.global[i];
                m->fields[INFO_TRACE_COMMAND_LOCAL + i] = n->local ? c->desc.local[i] : 0;
        }
        snprintf(m->name, sizeof(m->name), "%s", name_of(c, run));
}

static int put_command(const struct observed_command *m, struct buf *ret)
{
        size_t mark;
        int r = info_begin(ret, INFO_TRACE_COMMAND, &mark);
        for (size_t i = 0; i < INFO_TRACE_COMMAND_FIELDS && !r; i++)
                r = buf_put_u64(ret, m->fields[i]);
        if (!r) /* whole words, since it is a block; the rest is zeros */
                r = buf_put(ret, m->name, (strlen(m->name) + 7) / 8 * 8);
        if (!r)
                info_end(ret, mark);
        return r;
}

static int put_devices(struct engine *e, struct buf *ret)
{
        char name[NAME_SIZE];
        unsigned number;
        int r = 0;
        for (unsigned i = 0; i < e->device_count && !r; i++) {
                if (!engine_device_label(e, i, &number, name, sizeof(name)))
                        snprintf(name, sizeof(name), "device %u", i);
                r = info_put(ret, INFO_TRACE_DEVICE, name, strlen(name));
        }
        return r;
}

int engine_get_observed(struct engine *e, struct buf *ret)
{
        const struct engine_observed *o = &e->observed;
        uint64_t first = o->ever > OBSERVED_MAX ? o->ever - OBSERVED_MAX : 0;
        int r = put_devices(e, ret);
        if (!r)
                r = info_put_u64(ret, INFO_TRACE_UNTIMED, o->untimed);
        if (!r && first)
                r = info_put_u64(ret, INFO_TRACE_LOST, first);
        for (uint64_t i = first; o->ring && i < o->ever && !r; i++)
                r = put_command(&o->ring[i % OBSERVED_MAX], ret);
        return r;
}
