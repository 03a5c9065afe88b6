#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "points.h"
#include "reference.h"

static int compare_words(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
        return x < y ? -1 : x > y;
}

static void *read_all(struct device *d, cl_mem b, size_t size)
{
        void *bytes = allocate(size, 1);
        read_buffer(d, b, size, bytes);
        return bytes;
}

/* Compute the points of the reference, in the form that the kernel gives them: without those outside of the cube, whose
 * coordinates have more bits. Returns how many. */
static size_t reference_words(const struct points *p, struct device *feeder,
                              const struct pictures *pictures, size_t frame, uint64_t *words)
{
        const struct source *s = p->source;
        const struct v3c_frame *v = &s->v3c[frame];
        struct v3c_patch *patches = allocate(s->frames[frame].patch_count, sizeof(*patches));
        struct reference_point *points = allocate(s->capacity, sizeof(*points));
        uint16_t *blocks = allocate((size_t)v->width * v->height, sizeof(*blocks));
        struct reference_pictures r = { .occupancy = read_all(feeder, pictures->occupancy,
                                                              s->picture_sizes[OCCUPANCY]) };
        for (size_t i = 0; i < maps_of(s); i++) {
                r.geometry[i] = read_all(feeder, pictures->geometry[i], s->picture_sizes[GEOMETRY]);
                r.attribute[i] =
                        read_all(feeder, pictures->attribute[i], s->picture_sizes[ATTRIBUTE]);
        }
        memcpy(patches, s->frames[frame].patches, s->frames[frame].patch_count * sizeof(*patches));
        v3c_blocks(v, patches, (uint32_t)s->frames[frame].patch_count, blocks);
        size_t count = reference_points(v, patches, blocks, &r, points, s->capacity);
        if (count > s->capacity)
                die("--verify: the frame has %zu points, more than --capacity", count);
        size_t inside = 0;
        uint32_t side = (uint32_t)s->frames[frame].atlas[ATLAS_VOXELS];
        for (size_t i = 0; i < count; i++) {
                const struct reference_point *q = &points[i];
                if (q->at[0] >= side || q->at[1] >= side || q->at[2] >= side)
                        continue;
                uint32_t at = q->at[0] | (uint32_t)q->at[1] << POINT_BITS |
                              (uint32_t)q->at[2] << 2 * POINT_BITS;
                uint32_t colour =
                        q->color[0] | (uint32_t)q->color[1] << 8 | (uint32_t)q->color[2] << 16;
                words[inside++] = at | (uint64_t)colour << 32;
        }
        free((void *)(uintptr_t)r.occupancy);
        for (size_t i = 0; i < V3C_MAPS_MAX; i++) {
                free((void *)(uintptr_t)r.geometry[i]);
                free((void *)(uintptr_t)r.attribute[i]);
        }
        free(patches);
        free(points);
        free(blocks);
        return inside;
}

void points_verify(struct points *p, struct device *feeder, const struct pictures *pictures,
                   size_t frame)
{
        cl_ulong bytes;
        if (!p->source->v3c)
                die("--verify: there is no stream");
        uint64_t *want = allocate(p->source->capacity, 8);
        size_t count = reference_words(p, feeder, pictures, frame, want);
        read_buffer(p->device, p->bytes, sizeof(bytes), &bytes);
        if (count != bytes / 8)
                die("frame %zu has %zu points, not %zu", frame, (size_t)bytes / 8, count);
        uint64_t *got = read_all(p->device, p->points, bytes);
        /* The kernel goes from block to block, the reference from row to row. */
        qsort(want, count, 8, compare_words);
        qsort(got, count, 8, compare_words);
        if (memcmp(want, got, bytes) != 0)
                die("frame %zu: points differ from the reference's", frame);
        printf("frame %zu: %zu points like the reference's\n", frame, count);
        free(want);
        free(got);
}
