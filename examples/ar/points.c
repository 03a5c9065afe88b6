#include "points.h"

#include <string.h>

void points_open(struct points *p, struct machine *m, struct device *d, const struct source *s,
                 int step)
{
        *p = (struct points){ .source = s, .device = d, .described = SIZE_MAX };
        scan_open(&p->scan, m, d);
        p->map = new_kernel(d, "map_blocks");
        p->count = new_kernel(d, "count_points");
        p->write = new_kernel(d, "write_points");
        set_int(p->count, 7, step);
        set_int(p->write, 12, step);
        p->atlas = new_buffer(m, ATLAS_WORDS * 4, NULL);
        p->patches = new_buffer(m, (s->patch_count + 1) * PATCH_WORDS * 4, NULL);
        p->blocks = new_buffer(m, s->block_count * 2, NULL);
        p->places = new_buffer(m, (s->block_count + 1) * 4, NULL);
        p->points = new_buffer(m, s->capacity * 8, NULL);
        p->bytes = new_buffer(m, sizeof(cl_ulong), NULL);
}

void points_close(struct points *p)
{
        scan_close(&p->scan);
        clReleaseKernel(p->map);
        clReleaseKernel(p->count);
        clReleaseKernel(p->write);
        clReleaseMemObject(p->atlas);
        clReleaseMemObject(p->patches);
        clReleaseMemObject(p->blocks);
        clReleaseMemObject(p->places);
        clReleaseMemObject(p->points);
        clReleaseMemObject(p->bytes);
}

/* Frames of the same figure or group often have the same description. */
static bool same_description(const struct source_frame *a, const struct source_frame *b)
{
        return a->patches == b->patches && a->patch_count == b->patch_count &&
               memcmp(a->atlas, b->atlas, sizeof(a->atlas)) == 0;
}

/* Write without waiting, because the source's memory stays. */
static void send(struct points *p, cl_mem b, size_t size, const void *data)
{
        check(clEnqueueWriteBuffer(p->device->queue, b, CL_FALSE, 0, size, data, 0, NULL, NULL),
              "clEnqueueWriteBuffer");
}

void points_run(struct points *p, const struct pictures *pictures, size_t frame)
{
        const struct source_frame *f = &p->source->frames[frame];
        size_t blocks = blocks_of(f);
        if (p->described == SIZE_MAX || !same_description(&p->source->frames[p->described], f)) {
                send(p, p->atlas, sizeof(f->atlas), f->atlas);
                if (f->patch_count)
                        send(p, p->patches, f->patch_count * PATCH_WORDS * 4, f->patches);
                set_buffers(p->map, 0, (cl_mem[]){ p->atlas, p->patches }, 2);
                set_int(p->map, 2, (int32_t)f->patch_count);
                set_buffers(p->map, 3, &p->blocks, 1);
                launch(p->device, p->map, blocks, 0);
                p->described = frame;
        }
        int last = f->atlas[ATLAS_MAPS] - 1;
        cl_mem both[] = { pictures->occupancy,
                          pictures->geometry[0],
                          pictures->geometry[last],
                          p->atlas,
                          p->patches,
                          p->blocks,
                          p->places };
        cl_mem more[] = { pictures->attribute[0], pictures->attribute[last], p->points, p->bytes };
        set_buffers(p->count, 0, both, 7);
        set_buffers(p->write, 0, both, 7);
        set_buffers(p->write, 7, more, 4);
        set_int(p->write, 11, (int32_t)p->source->capacity);
        launch(p->device, p->count, blocks, 0);
        scan_run(&p->scan, p->places, blocks + 1);
        launch(p->device, p->write, blocks, 0);
}
