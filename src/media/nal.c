#include "nal.h"

#include <string.h>

enum { H264_SLICE = 1, H264_IDR = 5, H264_SPS = 7, H264_SUBSET_SPS = 15, HEVC_SPS = 33 };

enum { BASELINE = 66 /* profile_idc */, DECODING_ORDER = 2 /* pic_order_cnt_type */ };

enum { SUBLAYERS_MAX = 7, SIDE_MAX = 16384 };

/* Find the start code 0, 0, 1; `size` if there is none. A byte other than 0 is at most the end of one. */
static size_t find_start(const uint8_t *p, size_t size)
{
        for (size_t i = 2; i < size; i += p[i] ? 3 : 1)
                if (p[i] == 1 && !p[i - 1] && !p[i - 2])
                        return i - 2;
        return size;
}

bool nal_next(const uint8_t **data, size_t *size, struct nal *ret)
{
        for (;;) {
                size_t start = find_start(*data, *size);
                if (*size - start <= 3)
                        return false;
                const uint8_t *begin = *data + start + 3;
                size_t rest = *size - start - 3, n = find_start(begin, rest);
                *data = begin + n;
                *size = rest - n;
                while (n && !begin[n - 1])
                        n--;
                if (n) {
                        *ret = (struct nal){ begin, n };
                        return true;
                }
        }
}

/* ---- bits ----------------------------------------------------------------------------------- */

/* Bits of a NAL unit, without the bytes 3 that stand behind two zeros (emulation prevention). */
struct bits {
        const uint8_t *at, *end;
        unsigned zeros, left; /* zero bytes before `at`; bits of `byte` that are not read */
        uint8_t byte;
        bool failed; /* the unit is too short, or a number too large */
};

static unsigned take_bit(struct bits *b)
{
        if (!b->left) {
                if (b->at < b->end && b->zeros >= 2 && *b->at == 3) {
                        b->at++;
                        b->zeros = 0;
                }
                if (b->at == b->end) {
                        b->failed = true;
                        return 0;
                }
                b->byte = *b->at++;
                b->zeros = b->byte ? 0 : b->zeros + 1;
                b->left = 8;
        }
        return b->byte >> --b->left & 1;
}

static uint32_t take_bits(struct bits *b, unsigned n)
{
        uint32_t v = 0;
        while (n--)
                v = v << 1 | take_bit(b);
        return v;
}

static void skip_bits(struct bits *b, unsigned n)
{
        while (n--)
                (void)take_bit(b);
}

/* ue(v): an Exp-Golomb code (9.1 of H.264, 9.2 of H.265). */
static uint32_t take_number(struct bits *b)
{
        unsigned zeros = 0;
        while (!b->failed && !take_bit(b))
                zeros++;
        if (zeros > 31)
                b->failed = true;
        return b->failed ? 0 : (uint32_t)((1ull << zeros) - 1 + take_bits(b, zeros));
}

/* se(v): the same with a sign. */
static int64_t take_signed(struct bits *b)
{
        int64_t v = take_number(b);
        return v & 1 ? (v + 1) / 2 : -(v / 2);
}

static enum codec_result check(const struct bits *b, const struct codec_limits *limits,
                               uint64_t width, uint64_t height)
{
        if (b->failed || !width || !height)
                return CODEC_DAMAGED;
        return width > SIDE_MAX || height > SIDE_MAX || width * height > limits->pixels
                       ? CODEC_TOO_LARGE
                       : CODEC_OK;
}

/* ---- H.264, 7.3.2.1.1 ----------------------------------------------------------------------- */

/* A profile whose sets have chroma_format_idc and what follows it. */
static bool is_high(unsigned profile)
{
        static const uint8_t high[] = {
                100, 110, 122, 244, 44, 83, 86, 118, 128, 138, 139, 134, 135
        };
        return memchr(high, (int)profile, sizeof(high)) != NULL;
}

static void skip_scaling_list(struct bits *b, unsigned size)
{
        int64_t last = 8, next = 8;
        for (unsigned i = 0; i < size && !b->failed; i++) {
                if (next)
                        next = (last + take_signed(b) + 256) & 255;
                last = next ? next : last;
        }
}

enum codec_result nal_check_h264(const struct nal *n, const struct codec_limits *limits,
                                 unsigned bits)
{
        unsigned type = n->data[0] & 31;
        struct bits b = { .at = n->data + 1, .end = n->data + n->size };
        if (type == H264_SLICE || type == H264_IDR) {
                (void)take_number(&b);
                uint32_t slice = take_number(&b) % 5;
                return b.failed ? CODEC_DAMAGED : slice == 1 || slice > 2 ? CODEC_FORMAT : CODEC_OK;
        }
        if (type != H264_SPS && type != H264_SUBSET_SPS)
                return CODEC_OK;
        unsigned profile = take_bits(&b, 8);
        skip_bits(&b, 16);
        (void)take_number(&b);
        if (is_high(profile)) {
                uint32_t chroma = take_number(&b);
                if (chroma != 1 && !b.failed)
                        return CODEC_FORMAT;
                uint32_t luma_bits = take_number(&b), chroma_bits = take_number(&b);
                if ((luma_bits > bits - 8 || chroma_bits > bits - 8) && !b.failed)
                        return CODEC_FORMAT;
                skip_bits(&b, 1);
                if (take_bit(&b))
                        for (unsigned i = 0; i < 8; i++)
                                if (take_bit(&b))
                                        skip_scaling_list(&b, i < 6 ? 16 : 64);
        }
        (void)take_number(&b);
        uint32_t order = take_number(&b);
        if (limits->other && profile != BASELINE && order != DECODING_ORDER && !b.failed)
                return CODEC_FORMAT;
        if (order == 0) {
                (void)take_number(&b);
        } else if (order == 1) {
                skip_bits(&b, 1);
                (void)take_number(&b);
                (void)take_number(&b);
                uint32_t count = take_number(&b);
                if (count > 255)
                        return CODEC_DAMAGED;
                for (uint32_t i = 0; i < count; i++)
                        (void)take_number(&b);
        }
        (void)take_number(&b);
        skip_bits(&b, 1);
        uint64_t width = ((uint64_t)take_number(&b) + 1) * 16;
        uint64_t height = ((uint64_t)take_number(&b) + 1) * 16;
        bool frames = take_bit(&b); /* frame_mbs_only_flag */
        if (!frames && !b.failed)
                return CODEC_FORMAT;
        return check(&b, limits, width, height);
}

/* ---- HEVC, 7.3.2.2.1 and 7.3.3 -------------------------------------------------------------- */

static void skip_profiles(struct bits *b, unsigned sublayers)
{
        bool profile[SUBLAYERS_MAX] = { 0 }, level[SUBLAYERS_MAX] = { 0 };
        skip_bits(b, 88 + 8);
        for (unsigned i = 0; i < sublayers; i++) {
                profile[i] = take_bit(b);
                level[i] = take_bit(b);
        }
        if (sublayers)
                skip_bits(b, 2 * (8 - sublayers));
        for (unsigned i = 0; i < sublayers; i++)
                skip_bits(b, (profile[i] ? 88u : 0) + (level[i] ? 8u : 0));
}

enum codec_result nal_check_hevc(const struct nal *n, const struct codec_limits *limits,
                                 unsigned bits)
{
        if ((n->data[0] >> 1 & 63) != HEVC_SPS)
                return CODEC_OK;
        struct bits b = { .at = n->data + 1, .end = n->data + n->size };
        skip_bits(&b, 8 + 4);
        unsigned sublayers = take_bits(&b, 3);
        skip_bits(&b, 1);
        if (sublayers >= SUBLAYERS_MAX)
                return CODEC_DAMAGED;
        skip_profiles(&b, sublayers);
        (void)take_number(&b);
        uint32_t chroma = take_number(&b);
        if (chroma != 1 && !b.failed)
                return CODEC_FORMAT;
        uint64_t width = take_number(&b), height = take_number(&b);
        if (take_bit(&b))
                for (unsigned i = 0; i < 4; i++)
                        (void)take_number(&b);
        uint32_t luma_bits = take_number(&b), chroma_bits = take_number(&b);
        if ((luma_bits > bits - 8 || chroma_bits > bits - 8) && !b.failed)
                return CODEC_FORMAT;
        return check(&b, limits, width, height);
}
