#include "place.h"

#include <stdlib.h>
#include <string.h>

const struct place places[] = {
        { "local", "all on the client's device" },
        { "sort-host", "sort offloaded, data through the client", .sort = true, .host = true },
        { "sort-p2p", "sort offloaded, data between devices", .sort = true },
        { "sort-content", "the same, with content sizes", .sort = true, .content = true },
        { "points", "all but drawing offloaded", .content = true, .points = true },
        { "layer", "drawing offloaded, raw pictures", .content = true, .points = true,
          .layer = true },
        { "video", "drawing offloaded, encoded pictures", .content = true, .points = true,
          .layer = true, .encode = true },
};
const size_t place_count = sizeof(places) / sizeof(places[0]);

const struct place *place_find(const char *name)
{
        for (size_t i = 0; i < place_count; i++)
                if (strcmp(places[i].name, name) == 0)
                        return &places[i];
        return NULL;
}

/* `first`: the slot whose decoders and encoders this one uses; NULL: it is the first one. */
static void slot_open(struct pipeline *l, struct slot *s, struct slot *first)
{
        const struct place_params *p = &l->p;
        const struct place *at = p->place;
        struct machine *m = l->machine;
        size_t capacity = p->source->capacity,
               pixels = (size_t)p->view.width * (size_t)p->view.height;
        struct device *near = p->roles.near, *far = l->uses_far ? p->roles.far : near;
        if (!l->uses_far || l->is_split) {
                feed_open(&s->near_feed, m, near, true, p->source,
                          first ? &first->near_feed : NULL);
                points_open(&s->near_points, m, near, p->source, p->step);
        }
        if (l->uses_far) {
                feed_open(&s->far_feed, m, p->roles.feed, false, p->source,
                          first ? &first->far_feed : NULL);
                points_open(&s->far_points, m, far, p->source, p->step);
        }
        if (at->host) {
                pictures_new(m, p->source, &s->copies);
                s->host_index = new_buffer(m, capacity * 4, NULL);
                s->host_index_bytes = new_buffer(m, sizeof(cl_ulong), NULL);
        }
        sort_open(&s->sort, m, far, capacity);
        draw_open(&s->draw, m, at->layer ? far : near, capacity, (size_t)p->view.width,
                  (size_t)p->view.height);
        if (at->encode)
                codec_open(&s->codec, m, p->codec, far, near, (size_t)p->view.width,
                           (size_t)p->view.height, first ? &first->codec : NULL);
        if (at->content) {
                check(m->set_content_size(s->sort.index, s->sort.index_bytes),
                      "clSetContentSizeBufferPoCL");
                check(m->set_content_size(s->sort.arranged, s->sort.arranged_bytes),
                      "clSetContentSizeBufferPoCL");
        }
        s->near_pose = new_buffer(m, sizeof(s->pose.words), NULL);
        s->far_pose = new_buffer(m, sizeof(s->pose.words), NULL);
        s->picture = new_buffer(m, pixels * 4, NULL);
        s->compose = new_kernel(near, "compose");
}

static void slot_forget(struct slot *s)
{
        if (s->sorted)
                clReleaseEvent(s->sorted);
        if (s->composed)
                clReleaseEvent(s->composed);
        s->sorted = s->composed = NULL;
        watch_end(&s->watch, false);
}

static void slot_close(struct pipeline *l, struct slot *s)
{
        const struct place *at = l->p.place;
        slot_forget(s);
        if (!l->uses_far || l->is_split) {
                feed_close(&s->near_feed);
                points_close(&s->near_points);
        }
        if (l->uses_far) {
                feed_close(&s->far_feed);
                points_close(&s->far_points);
        }
        if (at->host) {
                pictures_free(&s->copies);
                clReleaseMemObject(s->host_index);
                clReleaseMemObject(s->host_index_bytes);
        }
        if (at->encode)
                codec_close(&s->codec);
        sort_close(&s->sort);
        draw_close(&s->draw);
        clReleaseMemObject(s->near_pose);
        clReleaseMemObject(s->far_pose);
        clReleaseMemObject(s->picture);
        clReleaseKernel(s->compose);
}

void pipeline_open(struct pipeline *l, struct machine *m, const struct place_params *p)
{
        const struct place *at = p->place;
        *l = (struct pipeline){
                .p = *p, .machine = m, .uses_far = at->sort || at->points, .is_split = at->sort
        };
        if (at->content && !m->set_content_size)
                die("%s: the platform has no cl_pocl_content_size", at->name);
        if (at->host) {
                size_t most = p->source->capacity * 4;
                for (int i = 0; i < VIDEOS; i++)
                        if (p->source->picture_sizes[i] > most)
                                most = p->source->picture_sizes[i];
                l->staging = allocate(most, 1);
        }
        device_build(m, p->roles.near);
        for (size_t i = 0; i < p->ahead; i++)
                slot_open(l, &l->slots[i], i ? &l->slots[0] : NULL);
}

void pipeline_close(struct pipeline *l)
{
        for (size_t i = 0; i < l->p.ahead; i++)
                slot_close(l, &l->slots[i]);
        free(l->staging);
}

/* Write without waiting, because the slot's pose stays. */
static void send_pose(struct slot *s, struct device *d, cl_mem pose)
{
        check(clEnqueueWriteBuffer(d->queue, pose, CL_FALSE, 0, sizeof(s->pose.words),
                                   s->pose.words, 0, NULL, NULL),
              "clEnqueueWriteBuffer");
}

/* Copy the decoded pictures to the other device, through the program's memory. */
static void carry_pictures(struct pipeline *l, struct slot *s)
{
        struct device *from = s->far_feed.device, *to = l->p.roles.far;
        const size_t *sizes = l->p.source->picture_sizes;
        cl_mem pairs[1 + 2 * V3C_MAPS_MAX][2] = { { s->far_feed.pictures.occupancy,
                                                    s->copies.occupancy } };
        size_t count = 1;
        for (size_t i = 0; i < maps_of(l->p.source); i++) {
                pairs[count][0] = s->far_feed.pictures.geometry[i];
                pairs[count++][1] = s->copies.geometry[i];
                pairs[count][0] = s->far_feed.pictures.attribute[i];
                pairs[count++][1] = s->copies.attribute[i];
        }
        for (size_t i = 0; i < count; i++) {
                size_t size = sizes[i == 0 ? OCCUPANCY : i % 2 ? GEOMETRY : ATTRIBUTE];
                read_buffer(from, pairs[i][0], size, l->staging);
                write_buffer(to, pairs[i][1], size, l->staging);
        }
}

/* Compute the points, and their order, on the other device. */
static void compute_far(struct pipeline *l, struct slot *s, size_t frame)
{
        const struct place *at = l->p.place;
        struct device *far = l->p.roles.far;
        feed_frame(&s->far_feed, frame);
        if (at->host)
                carry_pictures(l, s);
        else
                device_follow(far, s->far_feed.device);
        points_run(&s->far_points, at->host ? &s->copies : &s->far_feed.pictures, frame);
        sort_run(&s->sort, s->far_points.points, s->far_points.bytes, s->far_pose);
        if (at->points)
                sort_arrange(&s->sort, s->far_points.points);
        if (at->host)
                s->sorted = device_mark(far);
        check(clFlush(far->queue), "clFlush");
}

/* Copy the index list to the client's device, through the program's memory. */
static void carry_index(struct pipeline *l, struct slot *s)
{
        struct device *near = l->p.roles.near, *far = l->p.roles.far;
        size_t size = l->p.source->capacity * 4;
        read_behind(far, s->sorted, s->sort.index_bytes, sizeof(cl_ulong), l->staging);
        write_buffer(near, s->host_index_bytes, sizeof(cl_ulong), l->staging);
        read_behind(far, s->sorted, s->sort.index, size, l->staging);
        write_buffer(near, s->host_index, size, l->staging);
}

static void draw(struct pipeline *l, struct slot *s)
{
        const struct place *at = l->p.place;
        struct device *near = l->p.roles.near, *far = l->p.roles.far;
        if (at->points) {
                if (!at->layer)
                        device_follow(near, far);
                draw_run(&s->draw, s->sort.arranged, NULL, s->sort.arranged_bytes, 8,
                         at->layer ? s->far_pose : s->near_pose, l->p.opacity);
                return;
        }
        if (at->sort && !at->host)
                device_follow(near, far);
        draw_run(&s->draw, s->near_points.points, at->host ? s->host_index : s->sort.index,
                 at->host ? s->host_index_bytes : s->sort.index_bytes, 4, s->near_pose,
                 l->p.opacity);
}

/* The client's devices depend on the others, so their commands fail if another device is lost. */
static void watch(struct pipeline *l, struct watch *w)
{
        if (!l->uses_far)
                return;
        l->p.roles.near->watch = w;
        if (l->p.place->encode)
                l->slots[0].codec.decoder->watch = w;
}

/* Draw, and put the layer over the camera's picture. */
static void finish(struct pipeline *l, struct slot *s)
{
        const struct place *at = l->p.place;
        struct device *near = l->p.roles.near;
        cl_mem layer = s->draw.layer;
        draw(l, s);
        if (at->encode) {
                codec_run(&s->codec, layer);
                layer = s->codec.layer;
        } else if (at->layer) {
                device_follow(near, l->p.roles.far);
        }
        set_buffers(s->compose, 0, (cl_mem[]){ layer, s->camera, s->picture }, 3);
        launch(near, s->compose, (size_t)l->p.view.width * (size_t)l->p.view.height, 0);
        s->composed = device_mark(near);
}

void pipeline_begin(struct pipeline *l, size_t frame, const struct pose *pose, cl_mem camera)
{
        struct device *near = l->p.roles.near;
        struct slot *s = &l->slots[l->begun++ % l->p.ahead];
        size_t figure = frame % l->p.source->frame_count;
        s->pose = *pose;
        s->pose.words[POSE_POINT] *= l->p.step;
        s->camera = camera;
        watch(l, &s->watch);
        send_pose(s, near, s->near_pose);
        if (l->uses_far)
                send_pose(s, l->p.roles.far, s->far_pose);
        /* The client's own device begins before the host waits for the others. */
        if (!l->uses_far || l->is_split) {
                feed_frame(&s->near_feed, figure);
                device_follow(near, s->near_feed.device);
                points_run(&s->near_points, &s->near_feed.pictures, figure);
                check(clFlush(near->queue), "clFlush");
        }
        if (l->uses_far)
                compute_far(l, s, figure);
        else
                sort_run(&s->sort, s->near_points.points, s->near_points.bytes, s->near_pose);
        if (!l->p.place->host)
                finish(l, s);
        watch(l, NULL);
}

cl_event pipeline_next(const struct pipeline *l)
{
        return l->slots[l->ended % l->p.ahead].composed;
}

void pipeline_end(struct pipeline *l, uint8_t *ret_rgba)
{
        struct slot *s = &l->slots[l->ended++ % l->p.ahead];
        if (l->p.place->host) {
                watch(l, &s->watch);
                carry_index(l, s);
                finish(l, s);
                watch(l, NULL);
        }
        read_behind(l->p.roles.near, s->composed, s->picture,
                    (size_t)l->p.view.width * (size_t)l->p.view.height * 4, ret_rgba);
        watch_end(&s->watch, true);
        slot_forget(s);
}

void pipeline_restart(struct pipeline *l)
{
        for (size_t i = 0; i < l->p.ahead; i++) {
                slot_forget(&l->slots[i]);
                if (!l->uses_far || l->is_split)
                        feed_restart(&l->slots[i].near_feed);
                if (l->uses_far)
                        feed_restart(&l->slots[i].far_feed);
        }
        l->begun = l->ended = 0;
}

void pipeline_check(struct pipeline *l)
{
        for (size_t i = 0; i < l->p.ahead && i < l->ended; i++) {
                struct slot *s = &l->slots[i];
                if (!l->uses_far || l->is_split)
                        feed_check(&s->near_feed);
                if (l->uses_far)
                        feed_check(&s->far_feed);
                if (l->p.place->encode)
                        codec_check(&s->codec);
        }
}

void pipeline_verify(struct pipeline *l, size_t frame)
{
        struct slot *s = &l->slots[(l->ended - 1) % l->p.ahead];
        size_t figure = frame % l->p.source->frame_count;
        if (!l->uses_far || l->is_split)
                points_verify(&s->near_points, s->near_feed.device, &s->near_feed.pictures, figure);
        if (l->uses_far)
                points_verify(&s->far_points, s->far_feed.device, &s->far_feed.pictures, figure);
}
