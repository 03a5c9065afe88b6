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

void pipeline_open(struct pipeline *l, struct machine *m, const struct place_params *p)
{
        const struct place *at = p->place;
        size_t capacity = p->source->capacity,
               pixels = (size_t)p->view.width * (size_t)p->view.height;
        *l = (struct pipeline){
                .p = *p, .machine = m, .uses_far = at->sort || at->points, .is_split = at->sort
        };
        struct device *near = p->roles.near, *far = l->uses_far ? p->roles.far : near;
        device_build(m, near);
        if (!l->uses_far || l->is_split) {
                feed_open(&l->near_feed, m, near, true, p->source);
                points_open(&l->near_points, m, near, p->source);
        }
        if (l->uses_far) {
                feed_open(&l->far_feed, m, p->roles.feed, false, p->source);
                points_open(&l->far_points, m, far, p->source);
        }
        if (at->host) {
                pictures_new(m, p->source, &l->copies);
                l->host_index = new_buffer(m, capacity * 4, NULL);
                l->host_index_bytes = new_buffer(m, sizeof(cl_ulong), NULL);
                size_t most = capacity * 4;
                for (int i = 0; i < VIDEOS; i++)
                        if (p->source->picture_sizes[i] > most)
                                most = p->source->picture_sizes[i];
                l->staging = allocate(most, 1);
        }
        sort_open(&l->sort, m, far, capacity);
        draw_open(&l->draw, m, at->layer ? far : near, capacity, (size_t)p->view.width,
                  (size_t)p->view.height);
        if (at->encode)
                codec_open(&l->codec, m, p->codec, far, near, (size_t)p->view.width,
                           (size_t)p->view.height);
        if (at->content) {
                if (!m->set_content_size)
                        die("%s: the platform has no cl_pocl_content_size", at->name);
                check(m->set_content_size(l->sort.index, l->sort.index_bytes),
                      "clSetContentSizeBufferPoCL");
                check(m->set_content_size(l->sort.arranged, l->sort.arranged_bytes),
                      "clSetContentSizeBufferPoCL");
        }
        l->near_pose = new_buffer(m, sizeof(l->pose.words), NULL);
        l->far_pose = new_buffer(m, sizeof(l->pose.words), NULL);
        l->picture = new_buffer(m, pixels * 4, NULL);
        l->compose = new_kernel(near, "compose");
}

void pipeline_close(struct pipeline *l)
{
        const struct place *at = l->p.place;
        if (!l->uses_far || l->is_split) {
                feed_close(&l->near_feed);
                points_close(&l->near_points);
        }
        if (l->uses_far) {
                feed_close(&l->far_feed);
                points_close(&l->far_points);
        }
        if (at->host) {
                pictures_free(&l->copies);
                clReleaseMemObject(l->host_index);
                clReleaseMemObject(l->host_index_bytes);
                free(l->staging);
        }
        if (at->encode)
                codec_close(&l->codec);
        sort_close(&l->sort);
        draw_close(&l->draw);
        clReleaseMemObject(l->near_pose);
        clReleaseMemObject(l->far_pose);
        clReleaseMemObject(l->picture);
        clReleaseKernel(l->compose);
}

static void send_pose(struct pipeline *l, struct device *d, cl_mem pose)
{
        check(clEnqueueWriteBuffer(d->queue, pose, CL_FALSE, 0, sizeof(l->pose.words),
                                   l->pose.words, 0, NULL, NULL),
              "clEnqueueWriteBuffer");
}

/* Copy bytes from one device to another, through the program's memory. */
static void carry(struct pipeline *l, struct device *from, cl_mem source, struct device *to,
                  cl_mem target, size_t size)
{
        read_buffer(from, source, size, l->staging);
        write_buffer(to, target, size, l->staging);
}

static void carry_pictures(struct pipeline *l)
{
        struct device *from = l->far_feed.device, *to = l->p.roles.far;
        const size_t *sizes = l->p.source->picture_sizes;
        carry(l, from, l->far_feed.pictures.occupancy, to, l->copies.occupancy, sizes[OCCUPANCY]);
        for (size_t i = 0; i < maps_of(l->p.source); i++) {
                carry(l, from, l->far_feed.pictures.geometry[i], to, l->copies.geometry[i],
                      sizes[GEOMETRY]);
                carry(l, from, l->far_feed.pictures.attribute[i], to, l->copies.attribute[i],
                      sizes[ATTRIBUTE]);
        }
}

/* Compute the points, and their order, on the other device. */
static void compute_far(struct pipeline *l, size_t frame)
{
        const struct place *at = l->p.place;
        struct device *far = l->p.roles.far;
        feed_frame(&l->far_feed, frame);
        if (at->host)
                carry_pictures(l);
        else
                device_follow(far, l->far_feed.device);
        points_run(&l->far_points, at->host ? &l->copies : &l->far_feed.pictures, frame);
        sort_run(&l->sort, l->far_points.points, l->far_points.bytes, l->far_pose);
        if (at->points)
                sort_arrange(&l->sort, l->far_points.points);
        check(clFlush(far->queue), "clFlush");
}

static void draw(struct pipeline *l)
{
        const struct place *at = l->p.place;
        struct device *near = l->p.roles.near, *far = l->p.roles.far;
        cl_mem index = l->sort.index, bytes = l->sort.index_bytes;
        if (at->points) {
                if (!at->layer)
                        device_follow(near, far);
                draw_run(&l->draw, l->sort.arranged, NULL, l->sort.arranged_bytes, 8,
                         at->layer ? l->far_pose : l->near_pose, l->p.opacity);
                return;
        }
        if (at->host) {
                carry(l, far, bytes, near, l->host_index_bytes, sizeof(cl_ulong));
                carry(l, far, index, near, l->host_index, l->p.source->capacity * 4);
                index = l->host_index;
                bytes = l->host_index_bytes;
        } else if (at->sort) {
                device_follow(near, far);
        }
        draw_run(&l->draw, l->near_points.points, index, bytes, 4, l->near_pose, l->p.opacity);
}

void pipeline_frame(struct pipeline *l, size_t frame, const struct pose *pose, cl_mem camera,
                    uint8_t *ret_rgba)
{
        const struct place *at = l->p.place;
        struct device *near = l->p.roles.near, *far = l->p.roles.far;
        size_t pixels = (size_t)l->p.view.width * (size_t)l->p.view.height,
               figure = frame % l->p.source->frame_count;
        cl_mem layer = l->draw.layer;
        l->pose = *pose;
        send_pose(l, near, l->near_pose);
        if (l->uses_far)
                send_pose(l, far, l->far_pose);
        /* The client's own device begins before the host waits for the others. */
        if (!l->uses_far || l->is_split) {
                feed_frame(&l->near_feed, figure);
                device_follow(near, l->near_feed.device);
                points_run(&l->near_points, &l->near_feed.pictures, figure);
                check(clFlush(near->queue), "clFlush");
        }
        if (l->uses_far)
                compute_far(l, figure);
        else
                sort_run(&l->sort, l->near_points.points, l->near_points.bytes, l->near_pose);
        draw(l);
        if (at->encode) {
                codec_run(&l->codec, layer);
                layer = l->codec.layer;
        } else if (at->layer) {
                device_follow(near, far);
        }
        set_buffers(l->compose, 0, (cl_mem[]){ layer, camera, l->picture }, 3);
        launch(near, l->compose, pixels, 0);
        read_buffer(near, l->picture, pixels * 4, ret_rgba);
}

void pipeline_check(struct pipeline *l)
{
        if (!l->uses_far || l->is_split)
                feed_check(&l->near_feed);
        if (l->uses_far)
                feed_check(&l->far_feed);
        if (l->p.place->encode)
                codec_check(&l->codec);
}

void pipeline_verify(struct pipeline *l, size_t frame)
{
        size_t figure = frame % l->p.source->frame_count;
        if (!l->uses_far || l->is_split)
                points_verify(&l->near_points, l->near_feed.device, &l->near_feed.pictures, figure);
        if (l->uses_far)
                points_verify(&l->far_points, l->far_feed.device, &l->far_feed.pictures, figure);
}
