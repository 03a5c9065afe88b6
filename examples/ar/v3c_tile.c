#include "v3c_tile.h"

#include <string.h>

#include "v3c_bits.h"

enum { TILE_P, TILE_I };
enum { PATCH_INTRA = 0, PATCH_END = 14 };

#define DETAIL_MAX 64

/* A tile while its patches are read. */
struct tile {
        struct bits bits;
        const struct v3c_frame *frame;
        struct v3c_fault *fault;
        uint32_t offset_shift, range_shift; /* quantisers of depth offset and depth range */
        uint32_t size_shift[2];
};

static int tile_fail(const struct tile *t, int status, const char *text)
{
        return bits_fail(t->fault, &t->bits, status, text);
}

/* atlas_tile_header(), 8.3.6.11, behind the header of the NAL unit. */
static int read_tile_header(struct tile *t, uint32_t type)
{
        const struct v3c_syntax *syntax = &t->frame->syntax;
        struct bits *b = &t->bits;
        if (type >= ATLAS_IRAP && type <= ATLAS_IRAP_LAST)
                bits_take(b, 1);
        if (bits_golomb(b) != syntax->afps_id)
                return tile_fail(t, V3C_E_DAMAGED,
                                 "a tile refers to another atlas frame parameter set");
        bits_golomb(b); /* the adaptation parameter set; there is none */
        if (bits_golomb(b) != TILE_I)
                return tile_fail(t, V3C_E_UNSUPPORTED, "a tile refers to an earlier atlas frame");
        if (syntax->output)
                bits_take(b, 1);
        bits_take(b, syntax->order_bits);
        if (!syntax->lists || !bits_flag(b))
                return tile_fail(t, V3C_E_UNSUPPORTED, "a tile has a reference list of its own");
        bits_take(b, syntax->list_bits);
        if (syntax->limits) {
                t->offset_shift = bits_take(b, 5);
                t->range_shift = syntax->range ? bits_take(b, 5) : 0;
        }
        if (syntax->sizes) {
                t->size_shift[0] = bits_take(b, 3);
                t->size_shift[1] = bits_take(b, 3);
        }
        if (!bits_flag(b))
                return tile_fail(t, V3C_E_DAMAGED, "a tile's header is not aligned");
        while (b->at % 8 && !b->over)
                if (bits_flag(b))
                        return tile_fail(t, V3C_E_DAMAGED, "a tile's header is not aligned");
        uint32_t range_bits = syntax->bits_2d < syntax->bits_3d ? syntax->bits_2d : syntax->bits_3d;
        if (b->over || t->offset_shift > syntax->bits_3d || t->range_shift > range_bits)
                return tile_fail(t, V3C_E_DAMAGED, "a tile's header has a value out of range");
        return 0;
}

/* The axes of tangent, bitangent and normal of the planes (table 14). Planes 3 to 5 look along them the other way. */
static const int32_t axes[3][3] = { { 2, 1, 0 }, { 2, 0, 1 }, { 0, 1, 2 } };

/* patch_data_unit(), 8.3.7.3 */
static int read_patch(struct tile *t, struct v3c_patch *ret)
{
        const struct v3c_syntax *syntax = &t->frame->syntax;
        struct bits *b = &t->bits;
        uint32_t block = t->frame->block, at[2], size[2], offset[2], detail[2] = { 1, 1 };
        at[0] = bits_golomb(b);
        at[1] = bits_golomb(b);
        for (int i = 0; i < 2; i++) {
                uint64_t pixels = (uint64_t)bits_golomb(b) + 1;
                /* A size in pixels covers whole blocks. The pixels that stick out are not of the patch. */
                if (syntax->sizes && (pixels << t->size_shift[i]) % block)
                        return tile_fail(t, V3C_E_UNSUPPORTED,
                                         "a patch does not cover whole blocks");
                pixels = syntax->sizes ? (pixels << t->size_shift[i]) / block : pixels;
                size[i] = pixels > V3C_SIDE_MAX ? V3C_SIDE_MAX + 1 : (uint32_t)pixels;
        }
        offset[0] = bits_take(b, syntax->bits_3d);
        offset[1] = bits_take(b, syntax->bits_3d);
        uint32_t depth = bits_take(b, syntax->bits_3d - t->offset_shift) << t->offset_shift;
        uint32_t range = 0;
        if (syntax->range) {
                uint32_t range_bits =
                        syntax->bits_2d < syntax->bits_3d ? syntax->bits_2d : syntax->bits_3d;
                range = bits_take(b, range_bits - t->range_shift) << t->range_shift;
        }
        uint32_t plane = bits_take(b, 3);
        bool swap = bits_flag(b);
        if (syntax->detail && bits_flag(b)) {
                uint32_t x = bits_golomb(b), y = bits_golomb(b);
                if (x >= DETAIL_MAX || y >= DETAIL_MAX)
                        return tile_fail(t, V3C_E_DAMAGED,
                                         "a patch's level of detail is out of range");
                detail[0] = x + 1;
                detail[1] = y + (x > 0 ? 1 : 2);
        }
        if (b->over || plane > 5)
                return tile_fail(t, V3C_E_DAMAGED, "a patch has no plane");
        uint32_t width = size[swap], height = size[!swap];
        if (at[0] >= t->frame->width / block || width > t->frame->width / block - at[0] ||
            at[1] >= t->frame->height / block || height > t->frame->height / block - at[1])
                return tile_fail(t, V3C_E_DAMAGED, "a patch lies outside of the atlas");
        *ret = (struct v3c_patch){
                .x = (int32_t)(at[0] * block),
                .y = (int32_t)(at[1] * block),
                .width = (int32_t)(width * block),
                .height = (int32_t)(height * block),
                .depth = { plane < 3 ? 1 : -1, (int32_t)depth },
                .range = (int32_t)(range > 0 ? range - 1 : 0),
        };
        memcpy(ret->axis, axes[plane % 3], sizeof(ret->axis));
        /* With the axes swapped the tangent runs down the atlas. */
        int32_t start[2] = { ret->x, ret->y };
        ret->tangent[swap] = (int32_t)detail[0];
        ret->tangent[2] = (int32_t)offset[0] - (int32_t)detail[0] * start[swap];
        ret->bitangent[!swap] = (int32_t)detail[1];
        ret->bitangent[2] = (int32_t)offset[1] - (int32_t)detail[1] * start[!swap];
        return 0;
}

static int read_patches(struct tile *t, struct v3c_patch *patches, uint32_t capacity, uint32_t *ret)
{
        uint32_t header = bits_take(&t->bits, 16), count = 0;
        uint64_t room = (uint64_t)V3C_COVER_MAX * t->frame->width * t->frame->height;
        int r = read_tile_header(t, header >> 9 & 63);
        while (r == 0) {
                struct v3c_patch patch;
                uint32_t mode = bits_golomb(&t->bits);
                if (mode == PATCH_END && !t->bits.over)
                        break;
                if (mode != PATCH_INTRA || t->bits.over)
                        r = tile_fail(t, V3C_E_UNSUPPORTED,
                                      "a patch is neither intra-coded nor the end");
                else if (count == capacity)
                        r = tile_fail(t, V3C_E_LIMIT, "a tile has too many patches");
                else
                        r = read_patch(t, &patch);
                if (r < 0)
                        break;
                uint64_t area = (uint64_t)patch.width * (uint64_t)patch.height;
                if (area > room)
                        return tile_fail(t, V3C_E_LIMIT, "a tile's patches overlap too much");
                room -= area;
                if (patches)
                        patches[count] = patch;
                count++;
        }
        if (r == 0)
                *ret = count;
        return r;
}

int tile_read(const uint8_t *stream, const struct v3c_frame *frame, struct v3c_patch *patches,
              uint32_t capacity, uint32_t *ret_count, struct v3c_fault *ret_fault)
{
        struct tile t = { .bits = bits_of(stream, frame->tile, "a tile ends too early"),
                          .frame = frame,
                          .fault = ret_fault };
        return read_patches(&t, patches, capacity, ret_count);
}
