/* The kernel org.spancl.convert.rgba. */
#include <string.h>

#include "backend/media/kernels.h"
#include "base/bytes.h"

enum { PICTURE, STATUS, RGBA, RGBA_SIZE, MATRIX };

enum { ONE = 1 << 16, SIDE_MAX = 16384 };

/* Y'CbCr to R'G'B' in units of 1 / ONE (ITU-R BT.601 and BT.709). */
static const struct matrix {
        int black, y, rv, gu, gv, bu;
} matrices[] = {
        { 16, 76309, 104597, 25675, 53279, 132201 }, /* BT.601, 16 to 235 */
        { 16, 76309, 117489, 13975, 34925, 138438 }, /* BT.709, 16 to 235 */
        { 0, ONE, 91881, 22554, 46802, 116130 },     /* BT.601, 0 to 255 */
        { 0, ONE, 103206, 12276, 30679, 121609 },    /* BT.709, 0 to 255 */
};

static uint8_t clamp(int value)
{
        int v = (value + ONE / 2) >> 16;
        return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static int sample(const uint8_t *plane, size_t i, unsigned bits)
{
        return bits <= 8 ? plane[i] : (plane[2 * i] | plane[2 * i + 1] << 8) >> (bits - 8) & 255;
}

struct source {
        const uint8_t *bytes;
        uint32_t width, height, format, bits;
};

static void convert(const struct source *s, const struct matrix *m, uint8_t *to)
{
        size_t bytes = s->bits > 8 ? 2 : 1, half = ((size_t)s->width + 1) / 2;
        const uint8_t *chroma = s->bytes + (size_t)s->width * s->height * bytes;
        size_t plane = half * (((size_t)s->height + 1) / 2);
        bool pairs = s->format == MEDIA_NV12;
        for (size_t y = 0; y < s->height; y++) {
                for (size_t x = 0; x < s->width; x++, to += 4) {
                        size_t at = y / 2 * half + x / 2;
                        int luma = (sample(s->bytes, y * s->width + x, s->bits) - m->black) * m->y;
                        int u = sample(chroma, pairs ? 2 * at : at, s->bits) - 128;
                        int v = sample(chroma, pairs ? 2 * at + 1 : plane + at, s->bits) - 128;
                        to[0] = clamp(luma + m->rv * v);
                        to[1] = clamp(luma - m->gu * u - m->gv * v);
                        to[2] = clamp(luma + m->bu * u);
                        to[3] = 255;
                }
        }
}

static cl_int run(const struct registry_launch *l)
{
        const struct registry_value *picture = &l->args[PICTURE], *status = &l->args[STATUS];
        const struct registry_value *rgba = &l->args[RGBA], *size = &l->args[RGBA_SIZE];
        uint32_t matrix;
        memcpy(&matrix, l->args[MATRIX].data, sizeof(matrix));
        if (l->global[0] * l->global[1] * l->global[2] != 1)
                return CL_INVALID_GLOBAL_WORK_SIZE;
        if (matrix >= sizeof(matrices) / sizeof(matrices[0]))
                return CL_INVALID_VALUE;
        if (!status->data || status->size < 4 * MEDIA_STATUS_WORDS || !picture->data ||
            !rgba->data || (size->data && size->size < sizeof(uint64_t)))
                return CL_INVALID_BUFFER_SIZE;
        /* A program or another command may write the words, so each is read once. */
        uint32_t words[MEDIA_STATUS_WORDS];
        for (size_t i = 0; i < MEDIA_STATUS_WORDS; i++)
                words[i] = bytes_get_u32((const uint8_t *)status->data + 4 * i);
        const struct source s = { picture->data, words[MEDIA_WIDTH], words[MEDIA_HEIGHT],
                                  words[MEDIA_FORMAT], words[MEDIA_BITS] };
        if (words[MEDIA_RESULT] != MEDIA_PICTURE || !s.width || !s.height || s.width > SIDE_MAX ||
            s.height > SIDE_MAX || s.format > MEDIA_NV12 || s.bits < 8 || s.bits > 16)
                return CL_INVALID_VALUE;
        uint64_t bytes = (uint64_t)s.width * s.height * 4;
        if (picture->size < media_picture_size(s.width, s.height, s.bits) || rgba->size < bytes)
                return CL_INVALID_BUFFER_SIZE;
        convert(&s, &matrices[matrix], rgba->data);
        if (size->data)
                bytes_put_u64(size->data, bytes);
        return CL_SUCCESS;
}

const struct registry_kernel media_convert_kernel = {
        .name = "org.spancl.convert.rgba",
        .doc = "Convert a decoded picture to RGBA, 8 bits each.",
        .run = run,
        .args = {
                [PICTURE] = { "picture", "uchar*", 1, true, REGISTRY_IN },
                [STATUS] = { "status", "uint*", 4, true, REGISTRY_IN },
                [RGBA] = { "rgba", "uchar*", 1, true, REGISTRY_OUT },
                [RGBA_SIZE] = { "rgba_size", "ulong*", 8, true, REGISTRY_OUT },
                [MATRIX] = { "matrix", "uint", 4, false, REGISTRY_IN },
        },
};
