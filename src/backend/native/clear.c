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

enum {
        PATTERN_SMALL = 16, /* with larger ones NVIDIA's driver fills at a tenth of the rate */
        PATTERN_MAX = 128,  /* OpenCL's largest */
};

/* NVIDIA's driver 580 hangs in a fill of 2^31 patterns, and refuses a fill that begins behind as many. */
static const uint64_t patterns_max = 1u << 30;

static const cl_uint zeros[PATTERN_MAX / sizeof(cl_uint)];

/* Fill a piece with zeros. One that is smaller than the pattern is written. */
static cl_int fill_piece(struct native_domain *d, const struct backend_buffer *m, size_t unit,
                         size_t begin, size_t size, cl_event *ret)
{
        return size < unit ? d->api->clEnqueueWriteBuffer(d->clear_queue, m->mem, CL_FALSE, begin,
                                                          size, zeros, 0, NULL, ret)
                           : d->api->clEnqueueFillBuffer(d->clear_queue, m->mem, zeros, unit, begin,
                                                         size, 0, NULL, ret);
}

/* After the first 16 GiB the patterns are larger, so that their numbers stay small. */
static cl_int fill_large_buffer(struct native_domain *d, const struct backend_buffer *m,
                                cl_event *ret)
{
        const uint64_t small_end = patterns_max * PATTERN_SMALL;
        cl_int r = CL_SUCCESS;
        uint64_t piece;
        for (uint64_t done = 0; r == CL_SUCCESS && done < m->size; done += piece) {
                uint64_t unit = done < small_end ? PATTERN_SMALL : PATTERN_MAX,
                         left = m->size - done;
                piece = left < unit ? left : left / unit * unit;
                if (piece > patterns_max * unit)
                        piece = patterns_max * unit;
                r = fill_piece(d, m, (size_t)unit, (size_t)done, (size_t)piece,
                               piece < left ? NULL : ret);
        }
        return r;
}

static cl_int fill_buffer(struct native_domain *d, const struct backend_buffer *m, cl_event *ret)
{
        size_t unit = PATTERN_SMALL;
        while (m->size % unit)
                unit /= 2;
        if (!d->api->clEnqueueFillBuffer)
                return CL_INVALID_OPERATION;
        return m->size / unit > patterns_max ? fill_large_buffer(d, m, ret)
                                             : fill_piece(d, m, unit, 0, m->size, ret);
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
        cl_int r = CL_SUCCESS;
        uint64_t piece;
        for (uint64_t done = 0; r == CL_SUCCESS && done < size; done += piece) {
                uint64_t left = size - done, unit = left < PATTERN_SMALL ? 1 : PATTERN_SMALL;
                piece = left / unit * unit;
                if (piece > patterns_max * unit)
                        piece = patterns_max * unit;
                r = d->api->clEnqueueSVMMemFill(d->clear_queue, (void *)(uintptr_t)(address + done),
                                                zeros, (size_t)unit, (size_t)piece, 0, NULL,
                                                piece < left ? NULL : ret);
        }
        return r;
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
