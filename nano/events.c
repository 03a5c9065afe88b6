/* Events, the bytes that belong to commands, and room for messages. */
#include "base/mem.h"
#include "state.h"

/* ---- room for messages ------------------------------------------------------------------------ */

struct buf *nano_outbox(void)
{
        struct buf *b = session_outbox(nano->session);
        b->cap -= NANO_OUT_KEPT;
        return b;
}

int nano_commit(int put_result)
{
        session_outbox(nano->session)->cap += NANO_OUT_KEPT;
        return session_commit(nano->session, put_result);
}

static bool has_room(size_t size)
{
        const struct buf *b = session_outbox(nano->session);
        return size <= b->cap - b->size && NANO_OUT_KEPT <= b->cap - b->size - size;
}

int nano_room(size_t size)
{
        if (nano->status)
                return nano->status;
        if (has_room(size))
                return 0;
        int r = nano_drain();
        return r ? r : has_room(size) ? 0 : SP_E_NOMEM;
}

/* ---- events ----------------------------------------------------------------------------------- */

static cl_event find_free(void)
{
        return nano_new(nano->events, TAG_EVENT, OBJECT_EVENT);
}

/* Is there a place in use for which the application has no handle? It will become free. */
static bool will_be_free(void)
{
        for (size_t i = 0; i < NANO_EVENTS; i++) {
                const struct _cl_event *e = &nano->events[i];
                if (e->object.refs == 1 && e->status > 0)
                        return true;
        }
        return false;
}

cl_event nano_event_new(cl_command_queue queue, cl_uint type)
{
        cl_event e = find_free();
        while (!e && will_be_free() && !nano->status) {
                nano_pump(true);
                e = find_free();
        }
        if (!e)
                return NULL;
        e->queue = queue;
        queue->object.refs++;
        e->type = type;
        e->status = CL_SUBMITTED;
        return e;
}

void nano_event_unhold(cl_event e)
{
        if (--e->object.refs)
                return;
        (void)clReleaseCommandQueue(e->queue);
        nano_object_free(&e->object);
}

void nano_event_end(cl_event e, cl_int status)
{
        if (e->status <= 0)
                return;
        e->status = status;
        if (nano->pumps)
                e->over = true;
        else
                nano_event_unhold(e);
}

void nano_events_release(void)
{
        for (size_t i = 0; i < NANO_EVENTS; i++) {
                struct _cl_event *e = &nano->events[i];
                if (!e->object.refs || !e->over)
                        continue;
                e->over = false;
                nano_event_unhold(e);
        }
}

cl_event nano_event_find(uint64_t id)
{
        for (size_t i = 0; i < NANO_EVENTS; i++)
                if (nano->events[i].object.refs && nano->events[i].object.id == id)
                        return &nano->events[i];
        return NULL;
}

static bool is_ended(const void *arg)
{
        return ((const struct _cl_event *)arg)->status <= 0;
}

cl_int nano_event_wait(cl_event e)
{
        int r = nano_until(is_ended, e);
        return e->status <= 0 ? e->status : nano_status(r);
}

cl_int clWaitForEvents(cl_uint num_events, const cl_event *events)
{
        cl_int status = CL_SUCCESS;
        if (!num_events || !events)
                return CL_INVALID_VALUE;
        for (cl_uint i = 0; i < num_events; i++)
                if (!nano_object(events[i], TAG_EVENT))
                        return CL_INVALID_EVENT;
        for (cl_uint i = 0; i < num_events; i++)
                if (events[i]->queue->context != events[0]->queue->context)
                        return CL_INVALID_CONTEXT;
        for (cl_uint i = 0; i < num_events; i++)
                if (nano_event_wait(events[i]) < 0)
                        status = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
        return status;
}

cl_int clGetEventInfo(cl_event e, cl_event_info name, size_t size, void *value, size_t *size_ret)
{
        if (!nano_object(e, TAG_EVENT))
                return CL_INVALID_EVENT;
        nano_pump(false);
        switch (name) {
        case CL_EVENT_COMMAND_TYPE:
                return nano_reply(&e->type, sizeof(e->type), size, value, size_ret);
        case CL_EVENT_REFERENCE_COUNT: {
                const cl_uint refs = e->object.refs - (e->status > 0);
                return nano_reply(&refs, sizeof(refs), size, value, size_ret);
        }
        case CL_EVENT_COMMAND_EXECUTION_STATUS:
                return nano_reply(&e->status, sizeof(e->status), size, value, size_ret);
        default:
                return CL_INVALID_VALUE;
        }
}

cl_int clReleaseEvent(cl_event e)
{
        if (!nano_object(e, TAG_EVENT) || e->object.refs <= (uint32_t)(e->status > 0))
                return CL_INVALID_EVENT;
        nano_event_unhold(e);
        return CL_SUCCESS;
}

/* ---- transfers -------------------------------------------------------------------------------- */

struct nano_transfer *nano_transfer_find(uint64_t id)
{
        for (size_t i = 0; id && i < NANO_TRANSFERS; i++)
                if (nano->transfers[i].bulk.transfer == id)
                        return &nano->transfers[i];
        return NULL;
}

struct nano_transfer *nano_transfer_new(void)
{
        while (!nano->status) {
                for (size_t i = 0; i < NANO_TRANSFERS; i++)
                        if (!nano->transfers[i].bulk.transfer) {
                                nano->transfers[i] = (struct nano_transfer){ 0 };
                                return &nano->transfers[i];
                        }
                nano_pump(true);
        }
        return NULL;
}

void nano_transfer_end(struct nano_transfer *t, cl_int status)
{
        cl_event e = t->event;
        t->bulk.transfer = 0;
        t->event = NULL;
        if (e)
                nano_event_end(e, status);
}
