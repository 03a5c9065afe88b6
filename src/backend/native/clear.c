/* Clears new memory before anything else uses it, if it may hold data of another session. Drivers
 * may give out memory of a device uncleared. The fills of a domain go through a queue of their own,
 * in order. All commands submitted in the domain wait for the last fill, until it is known to be
 * complete. */
#include "backend/native/clear.h"

#include "backend/native/command.h"
#include "base/log.h"

static bool wanted(const struct backend *b, const struct native_domain *d)
{
        return b->clear == BACKEND_CLEAR_ALL || (b->clear == BACKEND_CLEAR_APART && d->apart);
}

static cl_int get_queue(struct backend *b, struct native_domain *d)
{
        cl_int err = CL_SUCCESS;
        unsigned device = 0;
        if (d->clear_queue)
                return CL_SUCCESS;
        while (device < b->device_count && &b->domains[b->devices[device].domain] != d)
                device++;
        if (device == b->device_count)
                return CL_INVALID_DEVICE;
        d->clear_queue = native_create_queue(d, b->devices[device].id, 0, &err);
        return d->clear_queue ? CL_SUCCESS : err ? err : CL_OUT_OF_RESOURCES;
}

static cl_int fill_buffer(struct native_domain *d, const struct backend_buffer *m, cl_event *ret)
{
        static const cl_uint zeros[4] = { 0 };
        size_t unit = sizeof(zeros);
        while (m->size % unit)
                unit /= 2;
        return d->api->clEnqueueFillBuffer
                       ? d->api->clEnqueueFillBuffer(d->clear_queue, m->mem, zeros, unit, 0,
                                                     m->size, 0, NULL, ret)
                       : CL_INVALID_OPERATION;
}

static cl_int fill_image(struct native_domain *d, const struct backend_buffer *m, cl_event *ret)
{
        static const cl_uint black[4] = { 0 };
        static const size_t origin[3] = { 0 };
        size_t all[3];
        image_region(&m->image, all);
        return d->api->clEnqueueFillImage
                       ? d->api->clEnqueueFillImage(d->clear_queue, m->mem, black, origin, all, 0,
                                                    NULL, ret)
                       : CL_INVALID_OPERATION;
}

static cl_int fill_svm(struct native_domain *d, uint64_t address, size_t size, cl_event *ret)
{
        static const cl_uint zeros[4] = { 0 };
        return d->api->clEnqueueSVMMemFill(d->clear_queue, (void *)(uintptr_t)address, zeros,
                                           sizeof(zeros), size, 0, NULL, ret);
}

/* Remember a submitted command that clears memory: all later commands wait for it. */
static cl_int submitted(struct native_domain *d, cl_int r, cl_event event)
{
        if (r != CL_SUCCESS) {
                log_warn("native", "memory of %s can't be cleared, so it is not given out: %d",
                         d->platform->name, r);
                return CL_MEM_OBJECT_ALLOCATION_FAILURE;
        }
        if (d->clearing)
                d->api->clReleaseEvent(d->clearing);
        d->clearing = event;
        d->api->clFlush(d->clear_queue);
        return CL_SUCCESS;
}

cl_int native_clear(struct backend *b, struct backend_buffer *m)
{
        struct native_domain *d = m->domain;
        cl_event event = NULL;
        if (!wanted(b, d))
                return CL_SUCCESS;
        op_enter();
        cl_int r = get_queue(b, d);
        if (r == CL_SUCCESS)
                r = m->image.type ? fill_image(d, m, &event) : fill_buffer(d, m, &event);
        r = submitted(d, r, event);
        op_leave();
        return r;
}

cl_int native_clear_svm(struct backend *b, struct native_domain *d, uint64_t address, size_t size)
{
        cl_event event = NULL;
        if (!wanted(b, d))
                return CL_SUCCESS;
        op_enter();
        cl_int r = get_queue(b, d);
        if (r == CL_SUCCESS)
                r = fill_svm(d, address, size, &event);
        r = submitted(d, r, event);
        op_leave();
        return r;
}

cl_event native_clearing(struct native_domain *d)
{
        cl_int status = CL_COMPLETE;
        if (!d->clearing)
                return NULL;
        /* After a failure the event stays: memory that was not cleared is never used. */
        if (d->api->clGetEventInfo(d->clearing, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
                                   &status, NULL) == CL_SUCCESS &&
            status == CL_COMPLETE) {
                d->api->clReleaseEvent(d->clearing);
                d->clearing = NULL;
        }
        return d->clearing;
}

void native_clear_end(struct native_domain *d)
{
        if (d->clearing)
                d->api->clReleaseEvent(d->clearing);
        if (d->clear_queue)
                d->api->clReleaseCommandQueue(d->clear_queue);
        d->clearing = NULL;
        d->clear_queue = NULL;
}
