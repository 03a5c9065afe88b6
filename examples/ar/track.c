#include "track.h"

#include <math.h>
#include <stdlib.h>

enum { SUMS = 24, MARKS = 12 };

void track_open(struct track *t, struct machine *m, struct device *near, const struct view *v,
                size_t count)
{
        size_t pixels = (size_t)v->width * (size_t)v->height;
        cl_int err;
        device_build(m, near);
        *t = (struct track){ .device = *near, .view = *v, .picture_count = count };
        struct device *d = &t->device;
        d->queue = clCreateCommandQueue(m->context, d->id, 0, &err);
        check(err, "clCreateCommandQueue");
        if (d->chunks > (size_t)v->height)
                d->chunks = (size_t)v->height;
        t->camera = new_kernel(d, "camera");
        t->find = new_kernel(d, "find_corner");
        t->choose = new_kernel(d, "choose_corner");
        t->sides = new_kernel(d, "side_sums");
        t->add = new_kernel(d, "add_sums");
        t->found = new_buffer(m, 8 * 4, NULL);
        t->best = new_buffer(m, d->chunks * 8, NULL);
        t->chunk_sums = new_buffer(m, d->chunks * SUMS * 8, NULL);
        t->sums = new_buffer(m, SUMS * 8, NULL);
        t->marks = new_buffer(m, MARKS * 4, NULL);

        set_int(t->find, 1, v->width);
        set_int(t->find, 2, v->height);
        set_buffers(t->find, 3, &t->found, 1);
        set_buffers(t->find, 5, &t->best, 1);
        set_buffers(t->choose, 0, &t->best, 1);
        set_int(t->choose, 1, (int32_t)d->chunks);
        set_int(t->choose, 2, v->width);
        set_buffers(t->choose, 4, &t->found, 1);
        set_int(t->sides, 1, v->width);
        set_int(t->sides, 2, v->height);
        set_buffers(t->sides, 3, (cl_mem[]){ t->found, t->chunk_sums }, 2);
        set_int(t->add, 1, v->width);
        set_buffers(t->add, 2, (cl_mem[]){ t->found, t->chunk_sums }, 2);
        set_int(t->add, 4, (int32_t)d->chunks);
        set_buffers(t->add, 5, (cl_mem[]){ t->sums, t->marks }, 2);

        t->pictures = allocate(count, sizeof(cl_mem));
        set_int(t->camera, 2, view_marker(v));
        set_int(t->camera, 3, v->voxels);
        for (size_t i = 0; i < count; i++) {
                struct pose pose = pose_on_path(v, i);
                cl_mem words = new_buffer(m, sizeof(pose.words), pose.words);
                t->pictures[i] = new_buffer(m, pixels, NULL);
                set_buffers(t->camera, 0, (cl_mem[]){ t->pictures[i], words }, 2);
                set_int(t->camera, 4, (int32_t)i);
                launch_2d(d, t->camera, (size_t)v->width, (size_t)v->height);
                clReleaseMemObject(words);
        }
        check(clFinish(d->queue), "clFinish");
}

void track_close(struct track *t)
{
        cl_kernel kernels[] = { t->camera, t->find, t->choose, t->sides, t->add };
        cl_mem buffers[] = { t->found, t->best, t->chunk_sums, t->sums, t->marks };
        for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
                clReleaseKernel(kernels[i]);
        for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
                clReleaseMemObject(buffers[i]);
        for (size_t i = 0; i < t->picture_count; i++)
                clReleaseMemObject(t->pictures[i]);
        free(t->pictures);
        clReleaseCommandQueue(t->device.queue);
}

cl_mem track_picture(const struct track *t, size_t frame)
{
        return t->pictures[frame % t->picture_count];
}

/* Fit a line to the points of a side: a point of it, and its direction. False: there are too few points. */
static bool fit(const cl_long *s, double point[2], double direction[2])
{
        double n = (double)s[0];
        if (s[0] < 4)
                return false;
        point[0] = (double)s[1] / n;
        point[1] = (double)s[2] / n;
        double xx = (double)s[3] / n - point[0] * point[0];
        double xy = (double)s[4] / n - point[0] * point[1];
        double yy = (double)s[5] / n - point[1] * point[1];
        double angle = 0.5 * atan2(2 * xy, xx - yy);
        direction[0] = cos(angle);
        direction[1] = sin(angle);
        return true;
}

/* Intersect the lines of two sides. False: there are too few points, or the lines are nearly parallel. */
static bool meet(const cl_long *a, const cl_long *b, double ret[2])
{
        double p[2][2], d[2][2];
        if (!fit(a, p[0], d[0]) || !fit(b, p[1], d[1]))
                return false;
        double across = d[0][0] * d[1][1] - d[0][1] * d[1][0];
        if (fabs(across) < 1e-3)
                return false;
        double along = ((p[1][0] - p[0][0]) * d[1][1] - (p[1][1] - p[0][1]) * d[1][0]) / across;
        ret[0] = p[0][0] + along * d[0][0];
        ret[1] = p[0][1] + along * d[0][1];
        return true;
}

struct pose track_run(struct track *t, size_t frame)
{
        struct device *d = &t->device;
        cl_long sums[SUMS];
        cl_int marks[MARKS];
        cl_mem picture = track_picture(t, frame);
        set_buffers(t->find, 0, &picture, 1);
        set_buffers(t->sides, 0, &picture, 1);
        set_buffers(t->add, 0, &picture, 1);
        for (int step = 0; step < 4; step++) {
                set_int(t->find, 4, step);
                set_int(t->choose, 3, step);
                launch(d, t->find, d->chunks, 0);
                launch(d, t->choose, 1, 0);
        }
        launch(d, t->sides, d->chunks, 0);
        launch(d, t->add, SUMS, 0);
        check(clEnqueueReadBuffer(d->queue, t->sums, CL_FALSE, 0, sizeof(sums), sums, 0, NULL,
                                  NULL),
              "clEnqueueReadBuffer");
        read_buffer(d, t->marks, sizeof(marks), marks);
        if (marks[0] < 0)
                die("frame %zu: the camera sees no marker", frame);

        int first = 0;
        for (int i = 1; i < 4; i++)
                if (marks[8 + i] > marks[8 + first])
                        first = i;
        double corners[4][2];
        for (int i = 0; i < 4; i++) {
                int from = (first + i) % 4;
                double *c = corners[i];
                if (meet(sums + 6 * ((from + 3) % 4), sums + 6 * from, c)) {
                        c[0] = c[0] / 16 + marks[0];
                        c[1] = c[1] / 16 + marks[1];
                } else {
                        c[0] = marks[2 * from];
                        c[1] = marks[2 * from + 1];
                }
                c[0] += 0.5 - t->view.width / 2;
                c[1] += 0.5 - t->view.height / 2;
        }
        struct pose pose, true_pose = pose_on_path(&t->view, frame % t->picture_count);
        if (!pose_from_corners(&t->view, (const double(*)[2])corners, &pose))
                die("frame %zu: the marker's corners give no pose", frame);
        t->worst = fmax(t->worst, pose_distance(&t->view, &pose, &true_pose));
        return pose;
}
