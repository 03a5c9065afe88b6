#include "scan.h"

void scan_open(struct scan *s, struct machine *m, struct device *d)
{
        device_build(m, d);
        *s = (struct scan){ .device = d, .chunks = d->chunks };
        s->sums = new_kernel(d, "scan_sums");
        s->top = new_kernel(d, "scan_top");
        s->values = new_kernel(d, "scan_values");
        s->chunk_sums = new_buffer(m, s->chunks * 4, NULL);
        set_buffers(s->sums, 2, &s->chunk_sums, 1);
        set_buffers(s->top, 0, &s->chunk_sums, 1);
        set_int(s->top, 1, (int32_t)s->chunks);
        set_buffers(s->values, 2, &s->chunk_sums, 1);
}

void scan_close(struct scan *s)
{
        clReleaseKernel(s->sums);
        clReleaseKernel(s->top);
        clReleaseKernel(s->values);
        clReleaseMemObject(s->chunk_sums);
}

void scan_run(struct scan *s, cl_mem values, size_t count)
{
        set_buffers(s->sums, 0, &values, 1);
        set_int(s->sums, 1, (int32_t)count);
        set_buffers(s->values, 0, &values, 1);
        set_int(s->values, 1, (int32_t)count);
        launch_chunks(s->device, s->sums);
        launch(s->device, s->top, s->device->group, s->device->group);
        launch_chunks(s->device, s->values);
}
