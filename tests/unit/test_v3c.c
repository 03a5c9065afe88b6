/* The parser of V-PCC streams of the AR example, on the committed stream and on damaged copies of it, and the
 * reconstruction on the CPU. */
#include "support/check.h"
#include "support/random.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "examples/ar/reference.h"

enum { FRAMES_MAX = 128 };

static uint8_t *stream;
static size_t stream_size, head_size; /* of all, of the first group */
static struct v3c_frame frames[FRAMES_MAX];
static uint32_t frame_count;
static struct v3c_patch patches[V3C_PATCHES_MAX];

/* The next unit's start behind the one at `at`. The stream's sizes have `data[0] >> 5` + 1 bytes. */
static size_t next_unit(const uint8_t *data, size_t at)
{
        size_t width = (size_t)(data[0] >> 5) + 1, size = 0;
        for (size_t i = 0; i < width; i++)
                size = size << 8 | data[at + i];
        return at + width + size;
}

static int unit_type(size_t at)
{
        return stream[at + (size_t)(stream[0] >> 5) + 1] >> 3;
}

static uint8_t *load(const char *name, size_t *ret_size)
{
        char path[4096];
        const char *source = getenv("SPANCL_SOURCE_DIR");
        snprintf(path, sizeof(path), "%s/%s", source ? source : ".", name);
        FILE *file = fopen(path, "rb");
        if (!file)
                return NULL;
        fseek(file, 0, SEEK_END);
        *ret_size = (size_t)ftell(file);
        rewind(file);
        uint8_t *data = malloc(*ret_size);
        size_t got = data ? fread(data, 1, *ret_size, file) : 0;
        fclose(file);
        if (got == *ret_size)
                return data;
        free(data);
        return NULL;
}

static int setup(void **state)
{
        (void)state;
        stream = load("examples/ar/dancer.vpcc", &stream_size);
        if (!stream)
                return -1;
        for (head_size = next_unit(stream, 1);
             head_size < stream_size && unit_type(head_size) != 0;)
                head_size = next_unit(stream, head_size);
        struct v3c_fault fault = { NULL, 0 };
        int r = v3c_index(stream, stream_size, frames, FRAMES_MAX, &frame_count, &fault);
        if (r < 0)
                print_error("%s at %zu\n", fault.text, fault.offset);
        return r;
}

static int teardown(void **state)
{
        (void)state;
        free(stream);
        return 0;
}

/* Load a seed of the fuzz target, and write the starts of its units and its end to `at`. The caller frees it. */
static uint8_t *load_seed(const char *name, size_t at[], size_t units)
{
        size_t size;
        uint8_t *data = load(name, &size);
        assert_non_null(data);
        at[0] = 1;
        for (size_t i = 0; i < units; i++)
                at[i + 1] = next_unit(data, at[i]);
        assert_int_equal(at[units], size);
        return data;
}

static void check_range(struct v3c_range range, size_t size)
{
        assert_true(range.size > 0 && range.offset <= size && range.size <= size - range.offset);
}

/* Checks the promises of v3c.h about frames and patches, which hold for any stream. */
static void check_frames(const uint8_t *data, size_t size, const struct v3c_frame *list,
                         uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                const struct v3c_frame *f = &list[i];
                uint32_t got = 0;
                check_range(f->occupancy, size);
                for (uint32_t map = 0; map < f->maps; map++) {
                        check_range(f->geometry[map], size);
                        check_range(f->attribute[map], size);
                }
                assert_true(f->width <= V3C_SIDE_MAX && f->height <= V3C_SIDE_MAX);
                assert_int_equal(f->occupancy_width * f->precision, f->width);
                assert_int_equal(f->occupancy_height * f->precision, f->height);
                assert_int_equal(v3c_patches(data, size, f, patches, V3C_PATCHES_MAX, &got, NULL),
                                 V3C_OK);
                assert_int_equal(got, f->patches);
                for (uint32_t k = 0; k < got; k++) {
                        const struct v3c_patch *p = &patches[k];
                        assert_true(p->x >= 0 && p->y >= 0 && p->width > 0 && p->height > 0);
                        assert_true((uint32_t)(p->x + p->width) <= f->width);
                        assert_true((uint32_t)(p->y + p->height) <= f->height);
                        assert_int_equal(p->axis[0] + p->axis[1] + p->axis[2], 3);
                        assert_true(p->depth[0] == 1 || p->depth[0] == -1);
                }
        }
}

TEST(the_committed_stream_has_the_frames_of_the_sequence)
{
        (void)state;
        assert_int_equal(frame_count, 90);
        check_frames(stream, stream_size, frames, frame_count);
        for (uint32_t i = 0; i < frame_count; i++) {
                assert_int_equal(frames[i].maps, 1);
                assert_int_equal(frames[i].width, 1024);
                assert_int_equal(frames[i].height, 1536);
                assert_int_equal(frames[i].precision, 4);
                assert_true(frames[i].patches > 20);
                assert_int_equal(frames[i].key, i == 0 || frames[i].group != frames[i - 1].group);
        }
}

TEST(an_access_unit_becomes_a_packet_of_the_same_size_with_start_codes)
{
        (void)state;
        struct v3c_range unit = frames[0].geometry[0];
        uint8_t *packet = malloc(unit.size);
        v3c_packet(stream, unit, packet);
        size_t types[64] = { 0 }, at = 0;
        for (size_t next; at < unit.size; at = next) {
                static const uint8_t start_code[4] = { 0, 0, 0, 1 };
                const uint8_t *source = stream + unit.offset + at;
                next = at + 4 +
                       ((size_t)source[0] << 24 | (size_t)source[1] << 16 | (size_t)source[2] << 8 |
                        source[3]);
                assert_memory_equal(packet + at, start_code, 4);
                assert_memory_equal(packet + at + 4, source + 4, next - at - 4);
                types[packet[at + 4] >> 1 & 63]++;
        }
        assert_int_equal(at, unit.size);
        assert_int_equal(types[32], 1); /* a video parameter set, a sequence's, a picture's */
        assert_int_equal(types[33], 1);
        assert_int_equal(types[34], 1);
        free(packet);
}

TEST(the_last_of_overlapping_patches_owns_a_block)
{
        (void)state;
        struct v3c_frame f = { .width = 16, .height = 8, .block = 4 };
        struct v3c_patch two[2] = {
                { .x = 0, .y = 0, .width = 12, .height = 8 },
                { .x = 8, .y = 4, .width = 8, .height = 4 },
        };
        uint16_t blocks[8];
        v3c_blocks(&f, two, 2, blocks);
        assert_memory_equal(blocks, ((uint16_t[]){ 1, 1, 1, 0, 1, 1, 2, 2 }), sizeof(blocks));
}

/* An allocation of the exact size, so that a sanitizer sees the first byte past the end. */
static int index_copy(const uint8_t *data, size_t size, uint32_t *ret_count)
{
        static struct v3c_frame list[FRAMES_MAX];
        struct v3c_fault fault = { NULL, 0 };
        uint8_t *copy = malloc(size ? size : 1);
        memcpy(copy, data, size);
        int r = v3c_index(copy, size, list, FRAMES_MAX, ret_count, &fault);
        if (r == V3C_OK)
                check_frames(copy, size, list, *ret_count);
        else
                assert_true(fault.text && fault.offset <= size);
        free(copy);
        return r;
}

TEST(a_stream_that_is_cut_is_an_error)
{
        (void)state;
        uint32_t count = 0;
        struct rng rng = { 25 };
        for (size_t size = 0; size < 3000; size++)
                assert_int_equal(index_copy(stream, size, &count), V3C_E_DAMAGED);
        for (int i = 0; i < 60; i++)
                assert_int_equal(index_copy(stream, (size_t)rng_below(&rng, head_size), &count),
                                 V3C_E_DAMAGED);
        assert_int_equal(index_copy(stream, head_size, &count), V3C_OK);
        assert_true(count > 0 && count < frame_count);
}

TEST(a_stream_without_one_of_its_units_is_an_error)
{
        (void)state;
        uint32_t count;
        uint8_t *copy = malloc(head_size);
        for (size_t at = 1; at < head_size; at = next_unit(stream, at)) {
                size_t next = next_unit(stream, at);
                memcpy(copy, stream, at);
                memcpy(copy + at, stream + next, head_size - next);
                assert_int_equal(index_copy(copy, head_size - (next - at), &count), V3C_E_DAMAGED);
        }
        free(copy);
}

/* The second frame has the parameter sets of all videos but the geometry, whose unit comes first. */
TEST(a_frame_is_a_key_only_if_all_of_its_videos_start_there)
{
        (void)state;
        size_t at[10], size = 1;
        uint8_t *seed = load_seed("fuzz/corpus/v3c/two-maps", at, 9), *copy = malloc(2 * at[9]);
        copy[0] = seed[0];
        for (const char *order = "012345724"; *order; order++) {
                const size_t *unit = &at[*order - '0'];
                memcpy(copy + size, seed + unit[0], unit[1] - unit[0]);
                size += unit[1] - unit[0];
        }
        struct v3c_frame two[2];
        uint32_t count = 0;
        assert_int_equal(v3c_index(copy, size, two, 2, &count, NULL), V3C_OK);
        assert_int_equal(count, 2);
        assert_true(two[0].key && !two[1].key);
        free(copy);
        free(seed);
}

TEST(a_group_begins_with_pictures_at_which_decoders_start)
{
        (void)state;
        for (size_t unit = 2; unit < 5; unit++) {
                size_t at[6];
                uint8_t *seed = load_seed("fuzz/corpus/v3c/one-map", at, 5);
                struct v3c_frame one;
                struct v3c_fault fault = { NULL, 0 };
                uint32_t count = 7;
                seed[at[unit + 1] - 12] =
                        1 << 1; /* the slice's type: it refers to earlier pictures */
                assert_int_equal(v3c_index(seed, at[5], &one, 1, &count, &fault), V3C_E_DAMAGED);
                assert_string_equal(fault.text,
                                    "a group begins with a picture at which decoders can't start");
                free(seed);
        }
}

/* The seed's frame parameter set allows levels of detail, and its patches have them. */
TEST(a_sequence_parameter_set_that_is_sent_again_changes_nothing)
{
        (void)state;
        size_t at[6], size = 0;
        uint8_t *seed = load_seed("fuzz/corpus/v3c/detail", at, 5), *copy = malloc(2 * at[5]);
        size_t first = at[1] + 5 + 4 + 1, width = (size_t)(seed[first - 1] >> 5) + 1;
        for (size_t i = 0; i < width; i++)
                size = size << 8 | seed[first + i];
        size += width;
        memcpy(copy, seed, at[5]);
        size_t second = first + size, third = second + width + seed[second + width - 1];
        memcpy(copy + third, seed + first, size);
        memcpy(copy + third + size, seed + third, at[5] - third);
        copy[at[1] + 4] = (uint8_t)(copy[at[1] + 4] + size);
        struct v3c_frame one;
        uint32_t count = 0;
        assert_int_equal(v3c_index(copy, at[5] + size, &one, 1, &count, NULL), V3C_OK);
        assert_true(count == 1 && one.patches == 3 && one.syntax.detail);
        free(copy);
        free(seed);
}

/* HEVC's end of sequence is a NAL unit without a payload. */
TEST(the_end_of_a_sequence_belongs_to_its_last_access_unit)
{
        (void)state;
        static const uint8_t last[6] = { 0, 0, 0, 2, 36 << 1, 1 };
        size_t at[6];
        uint8_t *seed = load_seed("fuzz/corpus/v3c/one-map", at, 5), *copy = malloc(at[5] + 6);
        memcpy(copy, seed, at[5]);
        memcpy(copy + at[5], last, 6);
        copy[at[4] + 4] = (uint8_t)(copy[at[4] + 4] + 6); /* the size's last byte */
        struct v3c_frame frame, longer;
        uint32_t count = 0;
        assert_int_equal(v3c_index(seed, at[5], &frame, 1, &count, NULL), V3C_OK);
        assert_int_equal(v3c_index(copy, at[5] + 6, &longer, 1, &count, NULL), V3C_OK);
        assert_int_equal(longer.attribute[0].size, frame.attribute[0].size + 6);
        copy[at[5] + 4] = 1 << 1; /* a slice without its header */
        assert_int_equal(v3c_index(copy, at[5] + 6, &longer, 1, &count, NULL), V3C_OK);
        free(copy);
        free(seed);
}

static uint32_t errors_with_bit_flipped(uint8_t *data, size_t size, size_t bit)
{
        uint32_t count;
        data[bit / 8] = (uint8_t)(data[bit / 8] ^ 1 << bit % 8);
        int r = index_copy(data, size, &count);
        data[bit / 8] = (uint8_t)(data[bit / 8] ^ 1 << bit % 8);
        return r < 0;
}

/* Each bit of a stream of two frames with two maps whose slices are cut off, and some bits of the committed one. */
TEST(flipped_bits_never_lead_out_of_the_stream_or_the_atlas)
{
        (void)state;
        struct rng rng = { 5 };
        uint32_t errors = 0;
        size_t size;
        uint8_t *small = load("fuzz/corpus/v3c/two-maps", &size);
        assert_non_null(small);
        for (size_t bit = 0; bit < 8 * size; bit++)
                errors += errors_with_bit_flipped(small, size, bit);
        assert_true(errors > 4000);
        free(small);
        for (int i = 0; i < 200; i++)
                errors_with_bit_flipped(stream, head_size,
                                        (size_t)rng_below(&rng, 8 * (i % 2 ? 20000 : head_size)));
}

static void expect_fault(size_t at, uint8_t value, int status, const char *text)
{
        uint32_t count = 7;
        static struct v3c_frame list[FRAMES_MAX];
        struct v3c_fault fault = { NULL, 0 };
        uint8_t *copy = malloc(head_size);
        memcpy(copy, stream, head_size);
        copy[at] = value;
        assert_int_equal(v3c_index(copy, head_size, list, FRAMES_MAX, &count, &fault), status);
        assert_string_equal(fault.text, text);
        assert_int_equal(count, 7);
        free(copy);
}

TEST(an_error_names_the_tool_that_is_not_supported)
{
        (void)state;
        size_t width = (size_t)(stream[0] >> 5) + 1, vps = 1 + width + 4,
               atlas = next_unit(stream, 1) + width;
        expect_fault(vps, 3, V3C_E_UNSUPPORTED, "the videos are not HEVC");
        expect_fault(vps + 1, 64, V3C_E_UNSUPPORTED, "the profile is not one of V-PCC");
        expect_fault(vps + 12, 0x80, V3C_E_DAMAGED, "the atlas is empty");
        expect_fault(vps + 13, 4, V3C_E_LIMIT, "the atlas is too large");
        expect_fault(atlas, 5 << 3, V3C_E_UNSUPPORTED,
                     "a V3C unit has a type that V-PCC does not use");
        expect_fault(atlas, (uint8_t)(stream[atlas] ^ 4), V3C_E_DAMAGED,
                     "a V3C unit refers to a parameter set that is not there");
}

/* The bytes before a cut are valid, so no error may blame their values. */
TEST(a_set_or_tile_that_is_cut_ends_too_early)
{
        (void)state;
        uint32_t count = 7;
        struct v3c_fault fault = { NULL, 0 };
        size_t width = (size_t)(stream[0] >> 5) + 1, size = next_unit(stream, 1) - 1 - width;
        uint8_t *copy = malloc(1 + width + size);
        for (size_t keep = 4; keep < size - 1; keep++) {
                memcpy(copy, stream, 1 + width + keep);
                copy[width] = (uint8_t)keep;
                assert_int_equal(v3c_index(copy, 1 + width + keep, NULL, 0, &count, &fault),
                                 V3C_E_DAMAGED);
                assert_string_equal(fault.text, "the V3C parameter set ends too early");
        }
        free(copy);
        struct v3c_frame f = frames[0];
        for (f.tile.size = 2; f.tile.size < frames[0].tile.size - 1; f.tile.size++) {
                assert_int_equal(v3c_patches(stream, stream_size, &f, patches, V3C_PATCHES_MAX,
                                             &count, &fault),
                                 V3C_E_DAMAGED);
                assert_string_equal(fault.text, "a tile ends too early");
        }
        assert_int_equal(count, 7);
}

TEST(too_little_room_is_an_error_of_its_own)
{
        (void)state;
        uint32_t count = 7;
        struct v3c_frame one[2];
        struct v3c_fault fault;
        assert_int_equal(v3c_index(stream, stream_size, one, 2, &count, &fault), V3C_E_LIMIT);
        assert_int_equal(v3c_patches(stream, stream_size, &frames[0], patches,
                                     frames[0].patches - 1, &count, &fault),
                         V3C_E_LIMIT);
        assert_int_equal(v3c_patches(stream, frames[0].tile.offset + 3, &frames[0], patches,
                                     V3C_PATCHES_MAX, &count, &fault),
                         V3C_E_DAMAGED);
        assert_int_equal(count, 7);
}

struct writer {
        uint8_t data[1024];
        size_t at; /* bits */
};

static void put(struct writer *w, uint32_t value, unsigned bits)
{
        for (; bits > 0; bits--, w->at++)
                w->data[w->at / 8] = (uint8_t)(w->data[w->at / 8] | (value >> (bits - 1) & 1u)
                                                                            << (7 - w->at % 8));
}

/* Writes ue(v). */
static void put_golomb(struct writer *w, uint32_t value)
{
        unsigned bits = 0;
        while ((value + 1) >> (bits + 1))
                bits++;
        put(w, value + 1, 2 * bits + 1);
}

/* Writes the header of an I tile up to its quantisers. */
static void put_header(struct writer *w)
{
        put(w, 0, 16);
        put_golomb(w, 0);
        put_golomb(w, 0);
        put_golomb(w, 1);
        put(w, 0, 4);
        put(w, 1, 1); /* the reference list of the sequence parameter set */
}

static void put_alignment(struct writer *w)
{
        put(w, 1, 1);
        w->at = (w->at + 7) / 8 * 8;
}

/* A tile of `count` patches of 8 x 8 pixels, each over the whole atlas, whose blocks have one pixel. */
static int read_overlapping(uint32_t count, struct v3c_fault *ret_fault)
{
        struct writer w = { .at = 0 };
        uint32_t got = 0;
        put_header(&w);
        put_alignment(&w);
        for (uint32_t i = 0; i < count; i++) {
                put_golomb(&w, 0);
                put_golomb(&w, 0);
                put_golomb(&w, 0);
                put_golomb(&w, 7);
                put_golomb(&w, 7);
                put(&w, 0, 3 * 10); /* the offsets */
                put(&w, 0, 3 + 1);  /* the plane, the orientation */
        }
        put_golomb(&w, 14);
        put(&w, 1, 1);
        struct v3c_frame f = { .width = 8, .height = 8, .block = 1, .tile = { 0, (w.at + 7) / 8 } };
        f.syntax =
                (struct v3c_syntax){ .bits_3d = 10, .bits_2d = 8, .order_bits = 4, .lists = true };
        int r = v3c_patches(w.data, sizeof(w.data), &f, patches, V3C_PATCHES_MAX, &got, ret_fault);
        if (r == V3C_OK)
                assert_int_equal(got, count);
        return r;
}

/* Without this limit a few bytes would keep v3c_blocks() busy for minutes. */
TEST(patches_that_cover_the_atlas_too_often_are_an_error)
{
        (void)state;
        struct v3c_fault fault = { NULL, 0 };
        assert_int_equal(read_overlapping(V3C_COVER_MAX, &fault), V3C_OK);
        assert_int_equal(read_overlapping(V3C_COVER_MAX + 1, &fault), V3C_E_LIMIT);
        assert_string_equal(fault.text, "a tile's patches overlap too much");
}

/* A patch on plane 4 with swapped axes, with quantised sizes, depth and range, and a level of detail. */
TEST(a_patch_has_the_equations_of_its_syntax)
{
        (void)state;
        struct writer w = { .at = 0 };
        uint32_t got = 0;
        struct v3c_patch p;
        put_header(&w);
        put(&w, 3, 5); /* quantisers of depth, of range, of the sizes */
        put(&w, 2, 5);
        put(&w, 2, 3);
        put(&w, 3, 3);
        put_alignment(&w);
        put_golomb(&w, 0);
        put_golomb(
                &w,
                2); /* at block (2, 1), 3 * 4 pixels along the first axis, 1 * 8 along the second */
        put_golomb(&w, 1);
        put_golomb(&w, 2);
        put_golomb(&w, 0);
        put(&w, 700, 10);
        put(&w, 300, 10);
        put(&w, 65, 7); /* depth 65 * 8 */
        put(&w, 9, 6);  /* range 9 * 4 */
        put(&w, 4, 3);
        put(&w, 3, 2); /* swapped, with a level of detail of 3 and 5 */
        put_golomb(&w, 2);
        put_golomb(&w, 4);
        put_golomb(&w, 14);
        put(&w, 1, 1);
        struct v3c_frame f = {
                .width = 32, .height = 32, .block = 4, .tile = { 0, (w.at + 7) / 8 }
        };
        f.syntax = (struct v3c_syntax){ .bits_3d = 10,
                                        .bits_2d = 8,
                                        .order_bits = 4,
                                        .lists = true,
                                        .limits = true,
                                        .range = true,
                                        .sizes = true,
                                        .detail = true };
        assert_int_equal(v3c_patches(w.data, sizeof(w.data), &f, &p, 1, &got, NULL), V3C_OK);
        assert_int_equal(got, 1);
        struct v3c_patch expected = { .x = 8,
                                      .y = 4,
                                      .width = 8,
                                      .height = 12,
                                      .axis = { 2, 0, 1 },
                                      .tangent = { 0, 3, 700 - 3 * 4 },
                                      .bitangent = { 5, 0, 300 - 5 * 8 },
                                      .depth = { -1, 65 * 8 },
                                      .range = 9 * 4 - 1 };
        assert_memory_equal(&p, &expected, sizeof(p));
}

/* Pixel (5, 2) of an atlas of 8 x 4 with precision 2, in a patch at (4, 0) that looks along x, and mirrored along x. */
TEST(a_pixel_becomes_a_point_by_the_equations_of_its_patch)
{
        (void)state;
        struct v3c_frame f = { .width = 8,
                               .height = 4,
                               .occupancy_width = 4,
                               .occupancy_height = 2,
                               .precision = 2,
                               .block = 4,
                               .threshold = 0,
                               .maps = 2,
                               .distinct = true };
        struct v3c_patch p = { .x = 4,
                               .width = 4,
                               .height = 4,
                               .axis = { 2, 1, 0 },
                               .tangent = { 1, 0, 96 },
                               .bitangent = { 0, 1, 50 },
                               .depth = { 1, 300 } };
        uint8_t occupancy[8 + 4] = { [4 + 2] = 1 }, near[32], far[32], texture[48];
        memset(near, 10, sizeof(near));
        memset(far, 10, sizeof(far));
        far[2 * 8 + 5] = 14;
        memset(texture, 128, sizeof(texture));
        texture[2 * 8 + 5] = 77;
        struct reference_pictures pictures = { occupancy, { near, far }, { texture, texture } };
        struct reference_point points[8];
        uint16_t blocks[2];
        v3c_blocks(&f, &p, 1, blocks);
        assert_int_equal(reference_points(&f, &p, blocks, &pictures, points, 8), 5);
        /* Pixels (4, 2), (5, 2) with two depths, (4, 3) and (5, 3). */
        assert_memory_equal(points[1].at, ((uint16_t[]){ 310, 52, 101 }), 6);
        assert_memory_equal(points[2].at, ((uint16_t[]){ 314, 52, 101 }), 6);
        assert_memory_equal(points[1].color, ((uint8_t[]){ 77, 77, 77 }), 3);
        assert_memory_equal(points[4].at, ((uint16_t[]){ 310, 53, 101 }), 6);
        p.depth[0] = -1;
        f.distinct = false;
        assert_int_equal(reference_points(&f, &p, blocks, &pictures, points, 3), 8);
        assert_memory_equal(points[2].at, ((uint16_t[]){ 290, 52, 101 }), 6);
        p.depth[1] = 9; /* behind the origin is at the origin */
        reference_points(&f, &p, blocks, &pictures, points, 8);
        assert_int_equal(points[2].at[0], 0);
}

TEST(colours_are_those_of_bt709_with_full_range)
{
        (void)state;
        uint8_t rgb[3];
        reference_color(255, 128, 128, rgb);
        assert_memory_equal(rgb, ((uint8_t[]){ 255, 255, 255 }), 3);
        reference_color(54, 99, 255, rgb); /* red */
        assert_memory_equal(rgb, ((uint8_t[]){ 254, 0, 0 }), 3);
        reference_color(18, 255, 116, rgb); /* blue */
        assert_memory_equal(rgb, ((uint8_t[]){ 0, 0, 254 }), 3);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(the_committed_stream_has_the_frames_of_the_sequence),
                cmocka_unit_test(an_access_unit_becomes_a_packet_of_the_same_size_with_start_codes),
                cmocka_unit_test(the_last_of_overlapping_patches_owns_a_block),
                cmocka_unit_test(a_stream_that_is_cut_is_an_error),
                cmocka_unit_test(a_stream_without_one_of_its_units_is_an_error),
                cmocka_unit_test(a_frame_is_a_key_only_if_all_of_its_videos_start_there),
                cmocka_unit_test(a_group_begins_with_pictures_at_which_decoders_start),
                cmocka_unit_test(a_sequence_parameter_set_that_is_sent_again_changes_nothing),
                cmocka_unit_test(the_end_of_a_sequence_belongs_to_its_last_access_unit),
                cmocka_unit_test(flipped_bits_never_lead_out_of_the_stream_or_the_atlas),
                cmocka_unit_test(an_error_names_the_tool_that_is_not_supported),
                cmocka_unit_test(a_set_or_tile_that_is_cut_ends_too_early),
                cmocka_unit_test(too_little_room_is_an_error_of_its_own),
                cmocka_unit_test(patches_that_cover_the_atlas_too_often_are_an_error),
                cmocka_unit_test(a_patch_has_the_equations_of_its_syntax),
                cmocka_unit_test(a_pixel_becomes_a_point_by_the_equations_of_its_patch),
                cmocka_unit_test(colours_are_those_of_bt709_with_full_range),
        };
        return cmocka_run_group_tests(tests, setup, teardown);
}
