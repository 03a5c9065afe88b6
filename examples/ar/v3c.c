#include "v3c.h"

#include <string.h>

#include "v3c_bits.h"
#include "v3c_tile.h"

/* Types of V3C units (ISO/IEC 23090-5, table 5), and of HEVC's NAL units (H.265, table 7-1). */
enum { UNIT_VPS, UNIT_ATLAS, UNIT_OCCUPANCY, UNIT_GEOMETRY, UNIT_ATTRIBUTE };
enum {
        HEVC_IRAP = 16,
        HEVC_IRAP_LAST = 23,
        HEVC_SLICE_LAST = 31,
        HEVC_SPS = 33,
        HEVC_AUD = 35,
        HEVC_SEI = 39
};

#define CODEC_HEVC_MAIN10 1
#define VIDEOS            3
#define BITS_3D_MAX       16

struct video {
        uint32_t width, height; /* of the last sequence parameter set; 0: none in this group */
        uint32_t pictures;      /* access units of this group */
};

struct parser {
        const uint8_t *stream;
        size_t size;
        struct v3c_frame *frames;
        uint32_t capacity, count;
        struct v3c_fault *fault;

        bool in_group;
        uint32_t group, first; /* this group's number and first frame */
        uint32_t vps_id;
        uint32_t map_count;
        uint32_t threshold;
        uint32_t width, height; /* of the V3C parameter set */
        uint32_t bits;
        bool asps, afps; /* both were there in this group */
        uint32_t asps_id, afps_id;
        struct v3c_syntax syntax;
        bool distinct;
        struct video videos[VIDEOS];
};

static int damaged(const struct parser *p, const struct bits *b, const char *text)
{
        return bits_fail(p->fault, b, V3C_E_DAMAGED, text);
}

static int unsupported(const struct parser *p, const struct bits *b, const char *text)
{
        return bits_fail(p->fault, b, V3C_E_UNSUPPORTED, text);
}

static uint32_t big_endian(const uint8_t *data, unsigned size)
{
        uint32_t value = 0;
        for (unsigned i = 0; i < size; i++)
                value = value << 8 | data[i];
        return value;
}

/* Take the next part of a sample stream, whose size stands in front in `width` bytes, from `rest`. False: its size is
 * more than the rest has. */
static bool next_part(const uint8_t *stream, struct v3c_range *rest, unsigned width,
                      struct v3c_range *ret)
{
        if (rest->size < width)
                return false;
        uint64_t size = 0;
        for (unsigned i = 0; i < width; i++)
                size = size << 8 | stream[rest->offset + i];
        if (size > rest->size - width)
                return false;
        *ret = (struct v3c_range){ rest->offset + width, (size_t)size };
        rest->offset += width + (size_t)size;
        rest->size -= width + (size_t)size;
        return true;
}

/* The V3C parameter set, 8.3.4.1. The parser keeps only the values that the videos and the atlas
 * need. */
static int read_profile(const struct parser *p, struct bits *b)
{
        bits_take(b, 1); /* tier */
        uint32_t codec = bits_take(b, 7), tools = bits_take(b, 8);
        bits_take(b, 24);
        bits_take(
                b,
                24); /* reconstruction profile, reserved bits, largest number of decoders, level */
        uint32_t subs = bits_take(b, 6), sub_bits = bits_flag(b) ? 64 : 32;
        bool constraints = bits_flag(b);
        for (uint32_t i = 0; i < subs * (sub_bits / 32); i++)
                bits_take(b, 32);
        if (constraints) {
                bits_take(b, 32);
                for (uint32_t i = bits_take(b, 8); i > 0; i--)
                        bits_take(b, 8);
        }
        if (codec != CODEC_HEVC_MAIN10)
                return unsupported(p, b, "the videos are not HEVC");
        if (tools > 1)
                return unsupported(p, b, "the profile is not one of V-PCC");
        return 0;
}

static int read_videos(struct parser *p, struct bits *b)
{
        if (bits_flag(b))
                return unsupported(p, b, "the stream has an auxiliary video");
        bool occupancy = bits_flag(b), geometry = bits_flag(b), attribute = bits_flag(b);
        if (!occupancy || !geometry || !attribute)
                return unsupported(p, b, "the stream lacks one of the three videos");
        bits_take(b, 8);
        p->threshold = bits_take(b, 8);
        uint32_t occupancy_bits = bits_take(b, 5) + 1;
        bool high = bits_flag(b);
        bits_take(b, 8);
        uint32_t geometry_bits = bits_take(b, 5) + 1;
        high = bits_flag(b) || high;
        p->bits = bits_take(b, 5) + 1;
        uint32_t attributes = bits_take(b, 7), type = bits_take(b, 4);
        bits_take(b, 8);
        if (p->map_count > 1)
                bits_take(b, 1); /* whether attributes are absolute; they are where depths are */
        uint32_t dimensions = bits_take(b, 6) + 1,
                 partitions = dimensions > 1 ? bits_take(b, 6) + 1 : 1;
        if (attributes != 1 || type != 0 || dimensions != 3 || partitions != 1)
                return unsupported(p, b,
                                   "the stream's attributes are not one texture of three colours");
        uint32_t attribute_bits = bits_take(b, 5) + 1;
        high = bits_flag(b) || high;
        if (occupancy_bits != 8 || geometry_bits != 8 || attribute_bits != 8 || high)
                return unsupported(p, b, "the samples of a video do not have 8 bits");
        if (p->bits > BITS_3D_MAX)
                return unsupported(p, b, "the coordinates have more than 16 bits");
        return 0;
}

static int read_vps(struct parser *p, struct bits *b)
{
        int r = read_profile(p, b);
        if (r < 0)
                return r;
        p->vps_id = bits_take(b, 4);
        bits_take(b, 8);
        if (bits_take(b, 6) != 0)
                return unsupported(p, b, "the stream has more than one atlas");
        bits_take(b, 6);
        p->width = bits_golomb(b);
        p->height = bits_golomb(b);
        if (p->width == 0 || p->height == 0)
                return damaged(p, b, "the atlas is empty");
        if (p->width > V3C_SIDE_MAX || p->height > V3C_SIDE_MAX)
                return bits_fail(p->fault, b, V3C_E_LIMIT, "the atlas is too large");
        p->map_count = bits_take(b, 4) + 1;
        if (p->map_count > V3C_MAPS_MAX)
                return unsupported(p, b, "the stream has more than two maps");
        if (p->map_count > 1 && bits_flag(b))
                return unsupported(p, b, "each map has a video of its own");
        if ((r = read_videos(p, b)) < 0)
                return r;
        if (bits_flag(b) && bits_take(b, 2) != 0)
                return unsupported(p, b, "the stream has packed video or is of MIV");
        if (b->over)
                return damaged(p, b, b->early);
        return 0;
}

/* The atlas sequence parameter set, 8.3.6.1. */
static int read_asps_tools(struct parser *p, struct bits *b)
{
        if (bits_flag(b))
                return unsupported(p, b, "patches have eight orientations");
        if (bits_flag(b))
                return unsupported(p, b, "patches lie on planes of 45 degrees");
        p->syntax.limits = bits_flag(b);
        p->syntax.range = bits_flag(b);
        if (bits_flag(b))
                return unsupported(p, b, "an earlier patch has precedence");
        p->syntax.log2_block = (uint8_t)bits_take(b, 3);
        p->syntax.sizes = bits_flag(b);
        if (bits_take(b, 4) + 1 != p->map_count)
                return damaged(p, b, "the number of maps differs between the parameter sets");
        if (bits_flag(b))
                return unsupported(p, b, "pixels of two maps are interleaved");
        bool raw = bits_flag(b), eom = bits_flag(b);
        if (raw || eom)
                return unsupported(p, b, "the stream has raw or EOM patches");
        if (bits_flag(b))
                return unsupported(p, b, "points are reconstructed locally (PLR)");
        if (bits_flag(b))
                return unsupported(p, b, "the atlas sequence parameter set has VUI");
        p->distinct = false;
        if (bits_flag(b)) {
                bool vpcc = bits_flag(b);
                if (bits_flag(b))
                        return unsupported(p, b, "the stream is of MIV");
                bits_take(b, 6);
                p->distinct = vpcc && bits_flag(b);
        }
        return 0;
}

static int read_asps(struct parser *p, struct bits *b)
{
        /* The set may be sent again: a frame parameter set that refers to it stays. */
        p->syntax = (struct v3c_syntax){ .output = p->syntax.output, .detail = p->syntax.detail };
        uint32_t id = bits_golomb(b);
        p->afps = p->afps && id == p->asps_id;
        p->asps_id = id;
        uint32_t width = bits_golomb(b), height = bits_golomb(b);
        p->syntax.bits_3d = (uint8_t)(bits_take(b, 5) + 1);
        p->syntax.bits_2d = (uint8_t)(bits_take(b, 5) + 1);
        uint32_t order_bits = bits_golomb(b);
        bits_golomb(b); /* atlas frames that a decoder keeps */
        if (b->over || order_bits > 12 || p->syntax.bits_3d > BITS_3D_MAX)
                return damaged(p, b, "the atlas sequence parameter set has a value out of range");
        p->syntax.order_bits = (uint8_t)(order_bits + 4);
        if (bits_flag(b))
                return unsupported(p, b, "the stream has long-term reference atlas frames");
        uint32_t lists = bits_golomb(b);
        if (lists > 64)
                return damaged(p, b,
                               "the atlas sequence parameter set has too many reference lists");
        p->syntax.lists = lists > 0;
        while (lists > 1u << p->syntax.list_bits)
                p->syntax.list_bits++;
        for (uint32_t i = 0; i < lists; i++) {
                uint32_t entries = bits_golomb(b);
                for (uint32_t k = 0; k < entries && !b->over; k++)
                        if (bits_golomb(b) > 0)
                                bits_take(b, 1);
        }
        int r = read_asps_tools(p, b);
        if (r < 0)
                return r;
        if (b->over)
                return damaged(p, b, b->early);
        uint32_t block = 1u << p->syntax.log2_block;
        if (width != p->width || height != p->height || width % block || height % block)
                return damaged(
                        p, b,
                        "the atlas has another size than the parameter set of V3C, or no whole blocks");
        p->asps = true;
        return 0;
}

/* The atlas frame parameter set, 8.3.6.2. */
static int read_afps(struct parser *p, struct bits *b)
{
        p->afps_id = bits_golomb(b);
        if (bits_golomb(b) != p->asps_id || !p->asps)
                return damaged(
                        p, b,
                        "the atlas frame parameter set refers to another sequence parameter set");
        if (!bits_flag(b))
                return unsupported(p, b, "the atlas has more than one tile");
        if (bits_flag(b))
                return unsupported(p, b, "tiles have identifiers");
        p->syntax.output = bits_flag(b);
        bits_golomb(b);
        bits_golomb(b);
        p->syntax.detail = bits_flag(b);
        if (bits_flag(b))
                return unsupported(p, b, "the stream has raw patches");
        if (bits_flag(b) && bits_flag(b))
                return unsupported(p, b, "the stream is of MIV");
        if (b->over)
                return damaged(p, b, b->early);
        p->afps = true;
        return 0;
}

static int add_frame(struct parser *p, const struct bits *b, struct v3c_range nal)
{
        if (!p->asps || !p->afps)
                return damaged(p, b, "a tile precedes its parameter sets");
        if (p->count == p->capacity)
                return v3c_fail(p->fault, V3C_E_LIMIT, b->offset,
                                "the stream has more frames than the caller has room for");
        struct v3c_frame *f = &p->frames[p->count];
        *f = (struct v3c_frame){
                .width = p->width,
                .height = p->height,
                .block = 1u << p->syntax.log2_block,
                .threshold = p->threshold,
                .bits = p->syntax.bits_3d,
                .maps = p->map_count,
                .group = p->group,
                .key = true, /* until one of its pictures is no key */
                .distinct = p->distinct,
                .tile = nal,
                .syntax = p->syntax,
        };
        f->syntax.afps_id = p->afps_id;
        int r = tile_read(p->stream, f, NULL, V3C_PATCHES_MAX, &f->patches, p->fault);
        if (r == 0)
                p->count++;
        return r;
}

static int read_atlas(struct parser *p, struct v3c_range rest)
{
        struct bits b = bits_of(p->stream, rest, "an atlas unit is empty");
        unsigned width = bits_take(&b, 3) + 1;
        if (b.over)
                return damaged(p, &b, b.early);
        rest.offset++;
        rest.size--;
        while (rest.size > 0) {
                struct v3c_range nal;
                b = bits_of(p->stream, rest, NULL);
                if (!next_part(p->stream, &rest, width, &nal) || nal.size < 2)
                        return damaged(p, &b,
                                       "an atlas NAL unit is longer than its V3C unit, or empty");
                b = bits_of(p->stream, nal, "an atlas parameter set ends too early");
                uint32_t type = bits_take(&b, 16) >> 9 & 63;
                int r = 0;
                if (type <= ATLAS_TILE_LAST)
                        r = add_frame(p, &b, nal);
                else if (type == ATLAS_ASPS)
                        r = read_asps(p, &b);
                else if (type == ATLAS_AFPS)
                        r = read_afps(p, &b);
                else if (type == ATLAS_ESEI_PREFIX || type == ATLAS_ESEI_SUFFIX ||
                         type == ATLAS_AAPS)
                        r = unsupported(p, &b,
                                        "the atlas has essential SEI, or adaptation parameters");
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Copy a NAL unit without its emulation prevention bytes (H.265, 7.3.1.1), as far as `ret` has room. */
static size_t unescape(const uint8_t *data, size_t size, uint8_t *ret, size_t capacity)
{
        size_t count = 0;
        unsigned zeros = 0;
        for (size_t i = 0; i < size && count < capacity; i++) {
                if (zeros >= 2 && data[i] == 3) {
                        zeros = 0;
                        continue;
                }
                zeros = data[i] == 0 ? zeros + 1 : 0;
                ret[count++] = data[i];
        }
        return count;
}

/* The part of HEVC's sequence parameter set that concerns pictures (H.265, 7.3.2.2). */
static int read_sps(struct parser *p, struct video *video, struct v3c_range nal)
{
        uint8_t plain[512];
        struct bits b = { .data = plain,
                          .offset = nal.offset,
                          .early = "a video's sequence parameter set ends too early" };
        b.size = unescape(p->stream + nal.offset, nal.size, plain, sizeof(plain));
        bits_take(&b, 16 + 4);
        uint32_t layers = bits_take(&b, 3);
        bits_take(&b, 1);
        for (int i = 0; i < 12; i++)
                bits_take(&b, 8);
        uint32_t present = 0;
        for (uint32_t i = 0; layers > 0 && i < 8; i++)
                present |= bits_take(&b, 2) << 2 * i;
        for (uint32_t i = 0; i < layers; i++) {
                for (int k = 0; present >> 2 * i & 2 && k < 11; k++)
                        bits_take(&b, 8);
                if (present >> 2 * i & 1)
                        bits_take(&b, 8);
        }
        bits_golomb(&b);
        bool subsampled = bits_golomb(&b) == 1;
        uint64_t width = bits_golomb(&b), height = bits_golomb(&b), crop[4] = { 0 };
        if (bits_flag(&b))
                for (int i = 0; i < 4; i++)
                        crop[i] = bits_golomb(&b);
        bool eight = bits_golomb(&b) == 0;
        eight = bits_golomb(&b) == 0 && eight;
        bits_golomb(&b);
        uint32_t reordered = 0;
        for (uint32_t i = bits_flag(&b) ? 0 : layers; i <= layers; i++) {
                bits_golomb(&b);
                reordered = bits_golomb(&b);
                bits_golomb(&b);
        }
        if (b.over)
                return damaged(p, &b, b.early);
        if (!subsampled || !eight)
                return unsupported(p, &b, "a video does not have 8 bits, or no 4:2:0 subsampling");
        if (reordered > 0)
                return unsupported(p, &b,
                                   "a video's pictures come in another order than that of display");
        uint64_t dropped_x = 2 * (crop[0] + crop[1]), dropped_y = 2 * (crop[2] + crop[3]);
        if (dropped_x >= width || dropped_y >= height || width - dropped_x > V3C_SIDE_MAX ||
            height - dropped_y > V3C_SIDE_MAX)
                return damaged(p, &b, "a video's pictures are empty or too large");
        video->width = (uint32_t)(width - dropped_x);
        video->height = (uint32_t)(height - dropped_y);
        return 0;
}

/* Note an access unit as the next picture of its video in this group. */
static int add_picture(struct parser *p, const struct bits *b, unsigned type, struct v3c_range unit,
                       bool key)
{
        struct video *video = &p->videos[type - UNIT_OCCUPANCY];
        uint32_t maps = type == UNIT_OCCUPANCY ? 1 : p->map_count, map = video->pictures % maps;
        if (video->width == 0)
                return damaged(p, b, "a video has no sequence parameter set");
        if (video->pictures / maps >= p->count - p->first)
                return damaged(p, b, "a video has more pictures than the atlas has frames");
        struct v3c_frame *f = &p->frames[p->first + video->pictures / maps];
        video->pictures++;
        if (map == 0)
                f->key = f->key && key;
        if (!key && video->pictures == 1)
                return damaged(p, b, "a group begins with a picture at which decoders can't start");
        if (type != UNIT_OCCUPANCY) {
                *(type == UNIT_GEOMETRY ? &f->geometry[map] : &f->attribute[map]) = unit;
                return video->width == f->width && video->height == f->height
                               ? 0
                               : damaged(p, b,
                                         "a video's pictures have another size than the atlas");
        }
        f->occupancy = unit;
        f->occupancy_width = video->width;
        f->occupancy_height = video->height;
        f->precision = f->width / video->width;
        if (f->precision == 0 || f->precision * video->width != f->width ||
            f->precision * video->height != f->height || f->block % f->precision != 0)
                return damaged(p, b,
                               "the occupancy pictures do not divide the atlas and its blocks");
        return 0;
}

/* Split a video unit into access units. */
static int read_video(struct parser *p, unsigned type, struct v3c_range rest)
{
        struct v3c_range unit = { rest.offset, 0 }, nal = { 0 };
        bool slices = false, parameters = false, key = false;
        struct bits b = bits_of(p->stream, rest, NULL);
        for (;;) {
                size_t start = rest.offset;
                bool end = rest.size == 0;
                b.offset = start;
                if (!end && (!next_part(p->stream, &rest, 4, &nal) || nal.size < 2))
                        return damaged(p, &b, "a NAL unit is longer than its V3C unit, or empty");
                const uint8_t *data = p->stream + (end ? 0 : nal.offset);
                unsigned kind = end ? 0 : data[0] >> 1 & 63;
                bool slice = kind <= HEVC_SLICE_LAST;
                /* The next access unit begins with its first slice, or with what stands before slices. */
                bool begins =
                        slice ? nal.size > 2 && data[2] >> 7 : kind <= HEVC_AUD || kind == HEVC_SEI;
                if (slices && (end || begins)) {
                        unit.size = start - unit.offset;
                        int r = add_picture(p, &b, type, unit, key);
                        if (r < 0)
                                return r;
                        unit.offset = start;
                        slices = parameters = key = false;
                }
                if (end)
                        return unit.offset == start
                                       ? 0
                                       : damaged(p, &b, "a video unit ends without a picture");
                if (slice && !slices && !begins)
                        return damaged(p, &b, "a picture's first slice is missing");
                if (slice && !slices)
                        key = parameters && kind >= HEVC_IRAP && kind <= HEVC_IRAP_LAST;
                slices = slices || slice;
                if (kind == HEVC_SPS) {
                        int r = read_sps(p, &p->videos[type - UNIT_OCCUPANCY], nal);
                        if (r < 0)
                                return r;
                        parameters = true;
                }
        }
}

static int end_group(struct parser *p, size_t offset)
{
        uint32_t frames = p->count - p->first, maps = frames * p->map_count;
        if (p->in_group && (frames == 0 || p->videos[0].pictures != frames ||
                            p->videos[1].pictures != maps || p->videos[2].pictures != maps))
                return v3c_fail(p->fault, V3C_E_DAMAGED, offset,
                                "a group lacks pictures of a video, or has no frame");
        return 0;
}

static int read_unit(struct parser *p, struct v3c_range unit)
{
        struct bits b = bits_of(p->stream, unit, "a V3C unit has no header");
        uint32_t type = bits_take(&b, 5), vps_id = bits_take(&b, 4);
        uint32_t atlas = bits_take(&b, 6), rest = bits_take(&b, 17);
        if (b.over)
                return damaged(p, &b, b.early);
        unit.offset += 4;
        unit.size -= 4;
        b = bits_of(p->stream, unit, "the V3C parameter set ends too early");
        if (type == UNIT_VPS) {
                int r = end_group(p, unit.offset);
                if (r < 0)
                        return r;
                p->group += p->in_group;
                p->in_group = true;
                p->first = p->count;
                p->asps = p->afps = false;
                memset(p->videos, 0, sizeof(p->videos));
                return read_vps(p, &b);
        }
        if (type > UNIT_ATTRIBUTE)
                return unsupported(p, &b, "a V3C unit has a type that V-PCC does not use");
        if (!p->in_group || vps_id != p->vps_id)
                return damaged(p, &b, "a V3C unit refers to a parameter set that is not there");
        /* `rest` has the numbers of the attribute and of the map, and whether the video is an auxiliary one. */
        if (atlas != 0 || (type > UNIT_OCCUPANCY && rest != 0))
                return unsupported(
                        p, &b,
                        "a V3C unit is of another atlas, attribute, map or of an auxiliary video");
        return type == UNIT_ATLAS ? read_atlas(p, unit) : read_video(p, type, unit);
}

int v3c_index(const uint8_t *stream, size_t size, struct v3c_frame *frames, uint32_t capacity,
              uint32_t *ret_count, struct v3c_fault *ret_fault)
{
        struct parser p = { .stream = stream,
                            .size = size,
                            .frames = frames,
                            .capacity = capacity,
                            .fault = ret_fault };
        if (size < 1)
                return v3c_fail(ret_fault, V3C_E_DAMAGED, 0, "the stream is empty");
        unsigned width = (stream[0] >> 5) + 1;
        struct v3c_range rest = { 1, size - 1 };
        while (rest.size > 0) {
                struct v3c_range unit;
                size_t start = rest.offset;
                if (!next_part(stream, &rest, width, &unit))
                        return v3c_fail(ret_fault, V3C_E_DAMAGED, start,
                                        "a V3C unit is longer than the stream");
                int r = read_unit(&p, unit);
                if (r < 0)
                        return r;
        }
        int r = end_group(&p, size);
        if (r == 0 && p.count == 0)
                r = v3c_fail(ret_fault, V3C_E_DAMAGED, size, "the stream has no frame");
        if (r == 0)
                *ret_count = p.count;
        return r;
}

int v3c_patches(const uint8_t *stream, size_t size, const struct v3c_frame *frame,
                struct v3c_patch *patches, uint32_t capacity, uint32_t *ret_count,
                struct v3c_fault *ret_fault)
{
        if (frame->tile.offset > size || frame->tile.size > size - frame->tile.offset)
                return v3c_fail(ret_fault, V3C_E_DAMAGED, size,
                                "the tile lies outside of the stream");
        return tile_read(stream, frame, patches, capacity, ret_count, ret_fault);
}

void v3c_blocks(const struct v3c_frame *frame, const struct v3c_patch *patches, uint32_t count,
                uint16_t *blocks)
{
        uint32_t block = frame->block, columns = frame->width / block, rows = frame->height / block;
        memset(blocks, 0, sizeof(*blocks) * columns * rows);
        for (uint32_t i = 0; i < count; i++) {
                const struct v3c_patch *p = &patches[i];
                uint32_t x = (uint32_t)p->x / block, y = (uint32_t)p->y / block;
                uint32_t width = (uint32_t)p->width / block, height = (uint32_t)p->height / block;
                for (uint32_t row = y; row < y + height; row++)
                        for (uint32_t column = x; column < x + width; column++)
                                blocks[row * columns + column] = (uint16_t)(i + 1);
        }
}

void v3c_packet(const uint8_t *stream, struct v3c_range range, uint8_t *packet)
{
        static const uint8_t start_code[4] = { 0, 0, 0, 1 };
        memcpy(packet, stream + range.offset, range.size);
        for (size_t at = 0; range.size - at >= 4;) {
                size_t size = big_endian(stream + range.offset + at, 4);
                memcpy(packet + at, start_code, 4);
                at += size > range.size - at - 4 ? range.size - at : size + 4;
        }
}
