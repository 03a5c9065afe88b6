#include "source.h"

#include <stdlib.h>
#include <string.h>

#include "opencl.h"

enum { FIGURE_FRAMES = 120, FIGURE_PATCHES = 6 };

size_t maps_of(const struct source *s)
{
        return (size_t)s->frames[0].atlas[ATLAS_MAPS];
}

static size_t i420(size_t width, size_t height, size_t sample)
{
        return (width * height + (width + 1) / 2 * ((height + 1) / 2) * 2) * sample;
}

/* The atlas has six patches, one for each side of a cube, three in a row. */
static void open_figure(struct source *s, size_t voxels)
{
        int side = (int)voxels;
        s->frame_count = FIGURE_FRAMES;
        int32_t *patches = s->owned[0] = allocate(FIGURE_PATCHES * PATCH_WORDS, sizeof(*patches));
        for (int i = 0; i < FIGURE_PATCHES; i++) {
                int32_t *p = patches + i * PATCH_WORDS, axis = i % 3;
                p[PATCH_X] = i % 3 * side;
                p[PATCH_Y] = i / 3 * side;
                p[PATCH_WIDTH] = p[PATCH_HEIGHT] = side;
                for (int k = 0; k < 3; k++)
                        p[PATCH_AXIS + k] = (axis + 1 + k) % 3;
                p[PATCH_TANGENT] = 1;
                p[PATCH_TANGENT + 2] = -p[PATCH_X];
                p[PATCH_BITANGENT + 1] = 1;
                p[PATCH_BITANGENT + 2] = -p[PATCH_Y];
                p[PATCH_DEPTH] = i < 3 ? 1 : -1;
                p[PATCH_DEPTH + 1] = i < 3 ? 0 : side - 1;
        }
        s->frames = allocate(s->frame_count, sizeof(*s->frames));
        for (size_t i = 0; i < s->frame_count; i++)
                s->frames[i] = (struct source_frame){
                        .atlas = {
                                [ATLAS_WIDTH] = 3 * side,
                                [ATLAS_HEIGHT] = 2 * side,
                                [ATLAS_OCCUPANCY_WIDTH] = 3 * side,
                                [ATLAS_PRECISION] = 1,
                                [ATLAS_OCCUPANCY_BITS] = 8,
                                [ATLAS_GEOMETRY_BITS] = 10,
                                [ATLAS_ATTRIBUTE_BITS] = 8,
                                [ATLAS_MAPS] = 1,
                                [ATLAS_BLOCK] = TILE,
                                [ATLAS_BLOCKS] = 3 * side / TILE,
                                [ATLAS_VOXELS] = side,
                                [ATLAS_MATRIX] = 3,
                        },
                        .patches = patches,
                        .patch_count = FIGURE_PATCHES,
                        .key = true,
                };
        s->patch_count = FIGURE_PATCHES;
        s->block_count = blocks_of(s->frames);
        s->voxels = voxels;
        s->picture_sizes[OCCUPANCY] = 6 * voxels * voxels;
        s->picture_sizes[GEOMETRY] = 12 * voxels * voxels;
        s->picture_sizes[ATTRIBUTE] = i420(3 * voxels, 2 * voxels, 1);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void larger(size_t *most, size_t size)
{
        if (size > *most)
                *most = size;
}

/* Copy an access unit to `*at`, and move `*at` behind it. */
static struct packet take_packet(struct source *s, const uint8_t *stream, struct v3c_range range,
                                 uint8_t **at)
{
        struct packet p = { .bytes = *at, .size = range.size };
        v3c_packet(stream, range, *at);
        *at += range.size;
        larger(&s->packet_size, range.size);
        return p;
}

static void describe(struct source *s, const struct v3c_frame *v, struct source_frame *f)
{
        size_t cube = (size_t)1 << (v->bits < POINT_BITS ? v->bits : POINT_BITS);
        const int32_t atlas[ATLAS_WORDS] = {
                [ATLAS_WIDTH] = (int32_t)v->width,
                [ATLAS_HEIGHT] = (int32_t)v->height,
                [ATLAS_OCCUPANCY_WIDTH] = (int32_t)v->occupancy_width,
                [ATLAS_PRECISION] = (int32_t)v->precision,
                [ATLAS_THRESHOLD] = (int32_t)v->threshold,
                [ATLAS_OCCUPANCY_BITS] = 8,
                [ATLAS_GEOMETRY_BITS] = 8,
                [ATLAS_ATTRIBUTE_BITS] = 8,
                [ATLAS_MAPS] = (int32_t)v->maps,
                [ATLAS_DISTINCT] = v->distinct,
                [ATLAS_BLOCK] = (int32_t)v->block,
                [ATLAS_BLOCKS] = (int32_t)((v->width + v->block - 1) / v->block),
                [ATLAS_VOXELS] = (int32_t)cube,
                [ATLAS_MATRIX] = 3,
        };
        memcpy(f->atlas, atlas, sizeof(atlas));
        f->key = v->key;
        larger(&s->voxels, cube);
        larger(&s->block_count, blocks_of(f));
        larger(&s->picture_sizes[OCCUPANCY], i420(v->occupancy_width, v->occupancy_height, 1));
        larger(&s->picture_sizes[GEOMETRY], i420(v->width, v->height, 1));
        larger(&s->picture_sizes[ATTRIBUTE], i420(v->width, v->height, 1));
}

static void open_stream(struct source *s, const char *path)
{
        enum { FRAMES_MAX = 4096 };
        size_t size;
        uint8_t *stream = read_file(path, &size);
        struct v3c_frame *frames = allocate(FRAMES_MAX, sizeof(*frames));
        struct v3c_fault fault = { .text = "" };
        uint32_t count = 0, patch_count = 0;
        if (v3c_index(stream, size, frames, FRAMES_MAX, &count, &fault) != V3C_OK)
                die("%s: %s, at byte %zu", path, fault.text, fault.offset);
        if (!count)
                die("%s: no frames", path);
        for (uint32_t i = 0; i < count; i++) {
                if (frames[i].maps != frames[0].maps)
                        die("%s: frame %u has another number of maps", path, i);
                patch_count += frames[i].patches;
        }
        s->frame_count = count;
        s->frames = allocate(count, sizeof(*s->frames));
        struct v3c_patch *patches = s->owned[0] = allocate(patch_count, sizeof(*patches));
        uint8_t *packets = s->owned[1] = allocate(size, 1);
        _Static_assert(sizeof(*patches) == PATCH_WORDS * 4, "a patch as kernels read it");
        for (uint32_t i = 0; i < count; i++) {
                const struct v3c_frame *v = &frames[i];
                struct source_frame *f = &s->frames[i];
                uint32_t n = 0;
                if (v3c_patches(stream, size, v, patches, v->patches, &n, &fault) != V3C_OK)
                        die("%s: frame %u: %s, at byte %zu", path, i, fault.text, fault.offset);
                f->patches = &patches->x;
                f->patch_count = n;
                patches += n;
                larger(&s->patch_count, n);
                describe(s, v, f);
                f->packets[OCCUPANCY][0] = take_packet(s, stream, v->occupancy, &packets);
                for (uint32_t k = 0; k < v->maps; k++) {
                        f->packets[GEOMETRY][k] = take_packet(s, stream, v->geometry[k], &packets);
                        f->packets[ATTRIBUTE][k] =
                                take_packet(s, stream, v->attribute[k], &packets);
                }
        }
        s->v3c = frames;
        free(stream);
}

/* ---------------------------------------------------------------------------------------------- */

size_t blocks_of(const struct source_frame *f)
{
        size_t height = (size_t)f->atlas[ATLAS_HEIGHT], side = (size_t)f->atlas[ATLAS_BLOCK];
        return (size_t)f->atlas[ATLAS_BLOCKS] * ((height + side - 1) / side);
}

void source_open(struct source *s, const char *path, size_t voxels, size_t capacity)
{
        *s = (struct source){ .capacity = capacity };
        if (path)
                open_stream(s, path);
        else
                open_figure(s, voxels);
}

void source_close(struct source *s)
{
        for (size_t i = 0; i < sizeof(s->owned) / sizeof(s->owned[0]); i++)
                free(s->owned[i]);
        free(s->frames);
        free(s->v3c);
}
