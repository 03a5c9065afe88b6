#include "draw.h"

#include "shared.h"

void draw_open(struct draw *w, struct machine *m, struct device *d, size_t capacity, size_t width,
               size_t height)
{
        *w = (struct draw){ .device = d,
                            .tiles = ((width + TILE - 1) / TILE) * ((height + TILE - 1) / TILE) };
        scan_open(&w->scan, m, d);
        w->place = new_kernel(d, "place_squares");
        w->list = new_kernel(d, "list_squares");
        w->blend = new_kernel(d, "blend");
        w->squares = new_buffer(m, capacity * 16, NULL);
        w->places = new_buffer(m, (w->tiles * d->chunks + 1) * 4, NULL);
        /* A square is not larger than a tile, so it is in four tiles at most. */
        w->lists = new_buffer(m, capacity * 4 * 4, NULL);
        w->layer = new_buffer(m, width * height * 4, NULL);
        set_int(w->place, 7, (int32_t)capacity);
        set_int(w->list, 6, (int32_t)capacity);
}

void draw_close(struct draw *w)
{
        cl_mem buffers[] = { w->squares, w->places, w->lists, w->layer };
        scan_close(&w->scan);
        clReleaseKernel(w->place);
        clReleaseKernel(w->list);
        clReleaseKernel(w->blend);
        for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
                clReleaseMemObject(buffers[i]);
}

void draw_run(struct draw *w, cl_mem points, cl_mem index, cl_mem bytes, int unit, cl_mem pose,
              int opacity)
{
        struct device *d = w->device;
        set_buffers(w->place, 0, (cl_mem[]){ points, index, bytes }, 3);
        set_int(w->place, 3, unit);
        set_buffers(w->place, 4, (cl_mem[]){ pose, w->squares, w->places }, 3);
        launch_chunks(d, w->place);
        scan_run(&w->scan, w->places, w->tiles * d->chunks + 1);
        set_buffers(w->list, 0, (cl_mem[]){ w->squares, bytes }, 2);
        set_int(w->list, 2, unit);
        set_buffers(w->list, 3, (cl_mem[]){ pose, w->places, w->lists }, 3);
        launch_chunks(d, w->list);
        set_buffers(w->blend, 0, (cl_mem[]){ w->squares, w->places }, 2);
        set_int(w->blend, 2, (int32_t)d->chunks);
        set_buffers(w->blend, 3, (cl_mem[]){ w->lists, pose }, 2);
        set_int(w->blend, 5, opacity);
        set_buffers(w->blend, 6, &w->layer, 1);
        launch(d, w->blend, w->tiles * d->group, d->group);
}
