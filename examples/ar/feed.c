#include "feed.h"

void pictures_new(struct machine *m, const struct source *s, struct pictures *ret)
{
        *ret = (struct pictures){ .occupancy = new_buffer(m, s->picture_sizes[OCCUPANCY], NULL) };
        for (size_t i = 0; i < maps_of(s); i++) {
                ret->geometry[i] = new_buffer(m, s->picture_sizes[GEOMETRY], NULL);
                ret->attribute[i] = new_buffer(m, s->picture_sizes[ATTRIBUTE], NULL);
        }
}

void pictures_free(struct pictures *p)
{
        clReleaseMemObject(p->occupancy);
        for (size_t i = 0; i < V3C_MAPS_MAX && p->geometry[i]; i++) {
                clReleaseMemObject(p->geometry[i]);
                clReleaseMemObject(p->attribute[i]);
        }
}

void feed_open(struct feed *f, struct machine *m, struct device *device, const struct source *s)
{
        *f = (struct feed){ .source = s, .device = device };
        pictures_new(m, s, &f->pictures);
        device_build(m, device);
        f->figure = new_kernel(device, "figure");
        f->atlas = new_buffer(m, sizeof(s->frames[0].atlas), s->frames[0].atlas);
        set_buffers(f->figure, 0,
                    (cl_mem[]){ f->pictures.occupancy, f->pictures.geometry[0],
                                f->pictures.attribute[0], f->atlas },
                    4);
}

void feed_close(struct feed *f)
{
        clReleaseKernel(f->figure);
        clReleaseMemObject(f->atlas);
        pictures_free(&f->pictures);
}

void feed_frame(struct feed *f, size_t frame)
{
        const int32_t *atlas = f->source->frames[0].atlas;
        set_int(f->figure, 4, (int32_t)frame);
        launch_2d(f->device, f->figure, (size_t)atlas[ATLAS_WIDTH] / 2,
                  (size_t)atlas[ATLAS_HEIGHT] / 2);
}
