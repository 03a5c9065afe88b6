/* Native contexts that break. A kernel that fails while it runs breaks the context of NVIDIA's
 * driver 580: every later command fails, and a build ends the process. Two things follow.
 *
 * Memory is committed first. The driver allocates a buffer when a command first uses it. If no
 * memory is left, a transfer fails gracefully, but a kernel breaks the context. So a blocking write
 * of a few bytes is the first command that uses new memory.
 *
 * A broken context is noticed. After a command has failed, the context is probed with a transfer
 * that can't fail otherwise. If that fails, too, the backend notifies the engine, which ends the
 * session. No command or build reaches the driver any more. */
#include <stdio.h>

#include "backend/native/command.h"
#include "backend/native/context.h"

#include "base/log.h"

/* Every buffer has at least a byte, and every image a pixel. */
enum { PIXEL_MAX = 16 };

static const uint8_t zeros[PIXEL_MAX];

static bool may_break(const struct native_domain *d)
{
        return d->quirks->failure == FAILURE_STAYS;
}

/* Make the queue and the buffer with the context, because later there may be no memory left for
 * them. Only a context of one device is probed and committed. With several, it is unknown at
 * creation which device will use a buffer. */
void native_probe_begin(struct native_domain *d, const cl_device_id *devices, unsigned count)
{
        cl_int err = CL_SUCCESS;
        uint32_t word = 0;
        if (!may_break(d) || count != 1)
                return;
        op_enter();
        d->probe_queue = native_create_queue(d, devices[0], 0, &err);
        if (d->probe_queue)
                d->probe = d->api->clCreateBuffer(d->context, CL_MEM_READ_WRITE, sizeof(word), NULL,
                                                  &err);
        if (d->probe)
                err = d->api->clEnqueueWriteBuffer(d->probe_queue, d->probe, CL_TRUE, 0,
                                                   sizeof(word), &word, 0, NULL, NULL);
        op_leave();
        if (err == CL_SUCCESS)
                return;
        log_info("native", "no queue to probe %s with: %d", d->platform->name, err);
        native_probe_end(d);
}

void native_probe_end(struct native_domain *d)
{
        if (d->probe)
                d->api->clReleaseMemObject(d->probe);
        if (d->probe_queue)
                d->api->clReleaseCommandQueue(d->probe_queue);
        d->probe = NULL;
        d->probe_queue = NULL;
}

cl_int native_commit(struct backend_buffer *m)
{
        static const size_t origin[3] = { 0 }, one[3] = { 1, 1, 1 };
        const struct native_domain *d = m->domain;
        if (!d->probe)
                return CL_SUCCESS;
        op_enter();
        cl_int r = m->image.type
                           ? d->api->clEnqueueWriteImage(d->probe_queue, m->mem, CL_TRUE, origin,
                                                         one, 0, 0, zeros, 0, NULL, NULL)
                           : d->api->clEnqueueWriteBuffer(d->probe_queue, m->mem, CL_TRUE, 0, 1,
                                                          zeros, 0, NULL, NULL);
        op_leave();
        return r == CL_SUCCESS ? r : CL_MEM_OBJECT_ALLOCATION_FAILURE;
}

static bool works(const struct native_domain *d)
{
        uint32_t word;
        op_enter();
        cl_int r = d->api->clEnqueueReadBuffer(d->probe_queue, d->probe, CL_TRUE, 0, sizeof(word),
                                               &word, 0, NULL, NULL);
        op_leave();
        return r == CL_SUCCESS;
}

void native_probe(struct backend *b, struct native_domain *d, cl_int status)
{
        char text[256], name[64] = "";
        if (!d->probe || atomic_load(&d->broken) || works(d) || atomic_exchange(&d->broken, true))
                return;
        for (unsigned i = 0; i < b->device_count && !*name; i++)
                if (&b->domains[b->devices[i].domain] == d)
                        (void)d->api->clGetDeviceInfo(b->devices[i].id, CL_DEVICE_NAME,
                                                      sizeof(name) - 1, name, NULL);
        snprintf(
                text, sizeof(text),
                "the driver's context of %s broke: a command failed with status %d while it ran, and "
                "since then every command fails",
                *name ? name : d->platform->name, status);
        log_error("native", "%s", text);
        if (b->broken)
                b->broken(b->user, text);
}
