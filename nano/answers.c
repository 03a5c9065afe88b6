/* The server's answers, the ends of commands, and the bytes of reads. */
#include "base/mem.h"
#include "proto/info.h"
#include "state.h"

enum {
        KERNEL_FUNCTION_NAME = 0x1190,
        KERNEL_NUM_ARGS = 0x1191,
};

/* ---- answers with an info block: server_info, program_built ----------------------------------- */

static void *place(void *at, size_t room, size_t *max)
{
        *max = room;
        return at;
}

static void *device_value(uint32_t key, size_t *max)
{
        if (!nano->device_count || nano->request.overflow)
                return NULL;
        struct _cl_device_id *d = &nano->devices[nano->device_count - 1];
        switch (key) {
        case CL_DEVICE_TYPE:
                return place(&d->type, 8, max);
        case CL_DEVICE_MAX_COMPUTE_UNITS:
                return place(&d->units, 4, max);
        case CL_DEVICE_MAX_WORK_GROUP_SIZE:
                return place(&d->group_size, 8, max);
        case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
                return place(&d->alloc_size, 8, max);
        case CL_DEVICE_GLOBAL_MEM_SIZE:
                return place(&d->global_size, 8, max);
        case CL_DEVICE_LOCAL_MEM_SIZE:
                return place(&d->local_size, 8, max);
        case CL_DEVICE_NAME:
                return place(d->name, sizeof(d->name) - 1, max);
        case CL_DEVICE_VERSION:
                return place(d->version, sizeof(d->version) - 1, max);
        case INFO_DEVICE_DOMAIN:
                return place(&d->domain, 8, max);
        case INFO_DEVICE_NUMBER:
                return place(&d->number, 8, max);
        default:
                return NULL;
        }
}

static void *kernel_value(uint32_t in, uint32_t key, size_t size, size_t *max)
{
        struct described *k = nano->request.kernel;
        if (!k)
                return NULL;
        if (in == INFO_KERNEL && key == KERNEL_FUNCTION_NAME)
                return size > NANO_NAME ? NULL : place(k->name, NANO_NAME - 1, max);
        if (in == INFO_KERNEL && key == KERNEL_NUM_ARGS)
                return place(&k->arg_count, 4, max);
        if (in != INFO_KERNEL_ARG || !k->args || k->args > NANO_ARGS)
                return NULL;
        if (key == INFO_ARG_KIND)
                return place(&k->kinds[k->args - 1], sizeof(k->kinds[0]), max);
        return key == INFO_ARG_SIZE ? place(&k->sizes[k->args - 1], sizeof(k->sizes[0]), max)
                                    : NULL;
}

static void *value(void *user, uint32_t in, uint32_t key, size_t size, size_t *max)
{
        (void)user;
        if (in == INFO_DEVICE && !nano->request.program)
                return device_value(key, max);
        if (in == INFO_BUILD && key == CL_PROGRAM_BUILD_LOG && !nano->log[0])
                return place(nano->log, sizeof(nano->log) - 1, max);
        return nano->request.program ? kernel_value(in, key, size, max) : NULL;
}

static void begin_device(void)
{
        nano->request.overflow = nano->device_count == NANO_DEVICES;
        if (nano->request.overflow)
                return;
        struct _cl_device_id *d = &nano->devices[nano->device_count++];
        *d = (struct _cl_device_id){ .object = { .refs = 1, .tag = TAG_DEVICE } };
}

static void begin_kernel(void)
{
        struct described *d = nano->described, *end = d + NANO_DESCRIBED;
        while (d < end && d->program)
                d++;
        nano->request.overflow |= d == end;
        nano->request.kernel = d < end ? d : NULL;
        if (d < end)
                *d = (struct described){ .program = nano->request.program };
}

static void block(void *user, uint32_t key)
{
        (void)user;
        if (!nano->request.program) {
                if (key == INFO_DEVICE)
                        begin_device();
        } else if (key == INFO_KERNEL) {
                begin_kernel();
        } else if (key == INFO_KERNEL_ARG && nano->request.kernel &&
                   nano->request.kernel->args <= NANO_ARGS) {
                nano->request.kernel->args++;
        }
}

/* An answer begins, perhaps once more. */
static void begin_answer(void)
{
        nano->reader = (struct info_reader){ .block = block, .value = value };
        nano->request.slot = 0;
        nano->request.overflow = false;
        nano->request.kernel = NULL;
        if (!nano->request.program) {
                nano->device_count = 0;
                return;
        }
        memset(nano->log, 0, sizeof(nano->log));
        nano->logged = nano->request.program;
        for (size_t i = 0; i < NANO_DESCRIBED; i++)
                if (nano->described[i].program == nano->request.program)
                        nano->described[i].program = NULL;
}

static cl_int status_of(int64_t status)
{
        return status < INT32_MIN || status > INT32_MAX ? CL_OUT_OF_RESOURCES : (cl_int)status;
}

/* Its fields are request, status and the size of the info block. */
static int take_slot(const uint8_t at[8])
{
        struct nano_request *q = &nano->request;
        const uint64_t v = bytes_get_u64(at);
        switch (q->slot) {
        case 0:
                break;
        case 1:
                if (v != q->id)
                        return SP_E_PROTO;
                break;
        case 2:
                q->status = status_of((int64_t)v);
                break;
        case 3:
                q->slot++;
                return info_reader_begin(&nano->reader, v);
        default:
                return info_reader_take(&nano->reader, at);
        }
        q->slot++;
        return 0;
}

static int take_answer(struct bytes part, bool first, size_t left)
{
        struct nano_request *q = &nano->request;
        if (!q->id || q->done)
                return SP_E_PROTO;
        if (first)
                begin_answer();
        for (size_t i = 0; i < part.size; i += 8) {
                int r = take_slot((const uint8_t *)part.data + i);
                if (r < 0)
                        return r;
        }
        if (left)
                return 0;
        if (q->slot < 4 || !info_reader_is_done(&nano->reader))
                return SP_E_PROTO;
        q->done = true;
        return 0;
}

static bool is_answered(const void *arg)
{
        (void)arg;
        return nano->request.done;
}

uint64_t nano_request_begin(unsigned expects, cl_program program)
{
        struct nano_request *q = &nano->request;
        q->id = ++nano->next_id;
        q->expects = expects;
        q->program = program;
        q->done = false;
        return q->id;
}

cl_int nano_request_wait(int r)
{
        if (!r)
                r = nano_until(is_answered, NULL);
        nano->request.id = 0;
        return r ? nano_status(r) : nano->request.status;
}

static int part(void *user, struct bytes part, bool first, size_t left)
{
        (void)user;
        if (first)
                nano->request.part = wire_message_id(part.data);
        if (nano->request.part == WIRE_output)
                return 0;
        if (nano->request.part == WIRE_close)
                return SP_E_GONE;
        return nano->request.part == nano->request.expects ? take_answer(part, first, left)
                                                           : SP_E_PROTO;
}

/* ---- whole messages --------------------------------------------------------------------------- */

static int on_event_done(struct bytes msg)
{
        struct wire_event_done m;
        if (wire_get_event_done(msg, &m) < 0 || m.status > 0)
                return SP_E_PROTO;
        struct nano_transfer *t = nano_transfer_find(m.event);
        cl_event e = nano_event_find(m.event);
        const cl_int status = status_of(m.status);
        if (e && t && !t->reads) {
                t->event = e; /* it ends when its memory is not read any more */
                t->status = status;
        } else if (status < 0 && t && t->reads) {
                if (t->placed)
                        return SP_E_PROTO; /* none or all come, and they may just be written */
                nano_transfer_end(t, status);
        } else if (e && (status < 0 || e->told)) {
                nano_event_end(e, status);
        }
        return 0;
}

static int on_transfer_cut(struct bytes msg)
{
        struct wire_transfer_cut m;
        if (wire_get_transfer_cut(msg, &m) < 0)
                return SP_E_PROTO;
        struct nano_transfer *t = nano_transfer_find(m.transfer);
        if (!t || !t->reads || m.size <= SESSION_INLINE_DEFAULT || m.size > t->total ||
            m.size < t->below || m.size < t->placed)
                return SP_E_PROTO;
        t->total = (size_t)m.size;
        if (t->below < t->total)
                return 0;
        int r = session_ack(nano->session, m.transfer, m.size);
        nano_transfer_end(t, CL_SUCCESS);
        return r;
}

static int on_clock_query(struct bytes msg)
{
        struct wire_clock_query m;
        if (wire_get_clock_query(msg, &m) < 0)
                return SP_E_PROTO;
        return session_send(nano->session, clock_reply, .time_ns = m.time_ns,
                            .remote_ns = nano->link.now_ms * 1000000);
}

static int message(void *user, struct bytes msg)
{
        (void)user;
        const unsigned id = wire_message_id(msg.data);
        if (nano->request.id && id == nano->request.expects)
                return take_answer(msg, true, 0);
        switch (id) {
        case WIRE_event_done:
                return on_event_done(msg);
        case WIRE_transfer_cut:
                return on_transfer_cut(msg);
        case WIRE_clock_query:
                return on_clock_query(msg);
        case WIRE_output:
                return 0; /* nowhere to print to */
        case WIRE_close:
                return SP_E_GONE;
        default:
                return SP_E_PROTO;
        }
}

/* ---- bytes of reads --------------------------------------------------------------------------- */

static int bulk_place(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                      void **ret)
{
        (void)user;
        struct nano_transfer *t = nano_transfer_find(transfer);
        if (!t || !t->reads || offset > t->below || *len > t->total - offset ||
            (!inlined && offset < t->below))
                return SP_E_PROTO;
        if (inlined && t->placed > t->below)
                return SP_E_PROTO; /* lane 1 would still write there when the read has ended */
        if (offset + *len > t->placed)
                t->placed = (size_t)offset + *len;
        *ret = t->at + offset;
        return 0;
}

static int bulk_arrived(void *user, uint64_t transfer, uint64_t offset, size_t len,
                        uint64_t *ret_below)
{
        (void)user;
        struct nano_transfer *t = nano_transfer_find(transfer);
        if (!t || !t->reads || offset > t->below || len > t->total - offset)
                return SP_E_PROTO;
        if (offset + len > t->below)
                t->below = (size_t)offset + len;
        *ret_below = t->below;
        if (t->below < t->total)
                return 0;
        nano_transfer_end(t, CL_SUCCESS);
        return 1;
}

static int bulk_restart(void *user)
{
        (void)user;
        int r = 0;
        for (size_t i = 0; i < NANO_TRANSFERS && !r; i++) {
                struct nano_transfer *t = &nano->transfers[i];
                t->placed = t->below;
                if (t->bulk.transfer && t->reads)
                        r = session_ack(nano->session, t->bulk.transfer, t->below);
        }
        return r;
}

const struct session_ops nano_session_ops = {
        .message = message,
        .bulk_place = bulk_place,
        .bulk_arrived = bulk_arrived,
        .bulk_restart = bulk_restart,
        .part = part,
};
