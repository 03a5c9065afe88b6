#include "source.h"

#include <stdlib.h>

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

/* Six patches of a cube's sides, three in a row. */
static void open_figure(struct source *s, size_t voxels)
{
        int side = (int)voxels;
        s->frame_count = FIGURE_FRAMES;
        s->block_count = FIGURE_PATCHES * (voxels / TILE) * (voxels / TILE);
        int32_t *patches = s->owned[0] = allocate(FIGURE_PATCHES * PATCH_WORDS, sizeof(*patches));
        uint16_t *blocks = s->owned[1] = allocate(s->block_count, sizeof(*blocks));
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
        size_t row = 3 * voxels / TILE;
        for (size_t i = 0; i < s->block_count; i++)
                blocks[i] =
                        (uint16_t)(1 + i % row / (voxels / TILE) + 3 * (i / row / (voxels / TILE)));
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
                                [ATLAS_BLOCKS] = (int32_t)row,
                                [ATLAS_VOXELS] = side,
                                [ATLAS_MATRIX] = 3,
                        },
                        .patches = patches,
                        .patch_count = FIGURE_PATCHES,
                        .blocks = blocks,
                };
        s->patch_count = FIGURE_PATCHES;
        s->voxels = voxels;
        s->picture_sizes[OCCUPANCY] = 6 * voxels * voxels;
        s->picture_sizes[GEOMETRY] = 12 * voxels * voxels;
        s->picture_sizes[ATTRIBUTE] = i420(3 * voxels, 2 * voxels, 1);
}

void source_open(struct source *s, const char *path, size_t voxels, size_t capacity)
{
        *s = (struct source){ .capacity = capacity };
        if (path)
                die("%s: streams are not read yet", path);
        open_figure(s, voxels);
}

void source_close(struct source *s)
{
        for (size_t i = 0; i < sizeof(s->owned) / sizeof(s->owned[0]); i++)
                free(s->owned[i]);
        free(s->frames);
        free(s->stream);
}
