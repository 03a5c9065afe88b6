#include "feed.h"

enum { STATUS_WORDS = 8, RESET = 1, LIBAVCODEC = 4 }; /* docs/MEDIA.md */

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

static void open_decoders(struct feed *f, struct machine *m, bool near)
{
        const struct feed *first = f->first;
        f->device = media_device(m, FEED_DECODER, near);
        f->decode = media_kernel(m, f->device, FEED_DECODER);
        for (int v = 0; v < VIDEOS; v++) {
                if (first == f)
                        f->streams[v] = new_buffer(m, 4, NULL);
                else if (clRetainMemObject(f->streams[v] = first->streams[v]) != CL_SUCCESS)
                        f->streams[v] = NULL;
                f->status[v] = new_buffer(m, STATUS_WORDS * 4, NULL);
                for (size_t i = 0; i < V3C_MAPS_MAX; i++) {
                        f->packets[v][i] = new_buffer(m, f->source->packet_size, NULL);
                        f->sizes[v][i] = new_buffer(m, sizeof(cl_ulong), NULL);
                }
        }
}

void feed_open(struct feed *f, struct machine *m, struct device *device, bool near,
               const struct source *s, struct feed *first)
{
        *f = (struct feed){
                .source = s, .device = device, .next = SIZE_MAX, .first = first ? first : f
        };
        pictures_new(m, s, &f->pictures);
        if (s->packet_size) {
                open_decoders(f, m, near);
                return;
        }
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
        pictures_free(&f->pictures);
        if (f->figure) {
                clReleaseKernel(f->figure);
                clReleaseMemObject(f->atlas);
                return;
        }
        clReleaseKernel(f->decode);
        for (int v = 0; v < VIDEOS; v++) {
                clReleaseMemObject(f->streams[v]);
                clReleaseMemObject(f->status[v]);
                for (size_t i = 0; i < V3C_MAPS_MAX; i++) {
                        clReleaseMemObject(f->packets[v][i]);
                        clReleaseMemObject(f->sizes[v][i]);
                }
        }
}

/* Write without waiting, because the source's memory stays. */
static void send(struct feed *f, cl_mem b, size_t size, const void *data)
{
        check(clEnqueueWriteBuffer(f->device->queue, b, CL_FALSE, 0, size, data, 0, NULL, NULL),
              "clEnqueueWriteBuffer");
}

static void decode(struct feed *f, enum video v, size_t map, const struct packet *p, cl_mem picture,
                   bool reset)
{
        send(f, f->packets[v][map], p->size, p->bytes);
        send(f, f->sizes[v][map], sizeof(p->size), &p->size);
        set_buffers(f->decode, 0,
                    (cl_mem[]){ f->packets[v][map], f->sizes[v][map], picture, NULL, f->status[v],
                                f->streams[v] },
                    6);
        set_int(f->decode, 6, 0);
        set_int(f->decode, 7, (reset ? RESET : 0) | (f->source->libavcodec ? LIBAVCODEC : 0));
        launch(f->device, f->decode, 1, 0);
}

void feed_frame(struct feed *f, size_t frame)
{
        const struct source_frame *from = &f->source->frames[frame];
        if (f->figure) {
                set_int(f->figure, 4, (int32_t)frame);
                launch_2d(f->device, f->figure, (size_t)from->atlas[ATLAS_WIDTH] / 2,
                          (size_t)from->atlas[ATLAS_HEIGHT] / 2);
                return;
        }
        bool reset = frame != f->first->next;
        if (reset && !from->key)
                die("frame %zu: no decoder can start here", frame);
        decode(f, OCCUPANCY, 0, &from->packets[OCCUPANCY][0], f->pictures.occupancy, reset);
        for (size_t i = 0; i < maps_of(f->source); i++) {
                decode(f, GEOMETRY, i, &from->packets[GEOMETRY][i], f->pictures.geometry[i],
                       reset && !i);
                decode(f, ATTRIBUTE, i, &from->packets[ATTRIBUTE][i], f->pictures.attribute[i],
                       reset && !i);
        }
        f->first->next = frame + 1;
}

void feed_restart(struct feed *f)
{
        f->first->next = SIZE_MAX;
}

void feed_check(struct feed *f)
{
        int32_t status[STATUS_WORDS];
        for (int v = 0; f->decode && v < VIDEOS; v++) {
                read_buffer(f->device, f->status[v], sizeof(status), status);
                if (status[0] != 0)
                        die("the decoder delivered no picture: status %d", status[0]);
        }
}
