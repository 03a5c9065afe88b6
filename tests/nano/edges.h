/* Edges of a picture, by a kernel and by this processor's own code, to be compared. */
#ifndef SPANCL_TESTS_NANO_EDGES_H
#define SPANCL_TESTS_NANO_EDGES_H

#include <stddef.h>
#include <stdint.h>

#define EDGES_SOURCE                                                                                           \
        "__kernel void edges(__global const uchar *in, __global uchar *out, uint w, uint h)\n"                 \
        "{\n"                                                                                                  \
        "        int x = get_global_id(0), y = get_global_id(1);\n"                                            \
        "        if (x == 0 || y == 0 || x == w - 1 || y == h - 1) {\n"                                        \
        "                out[y * w + x] = 0;\n"                                                                \
        "                return;\n"                                                                            \
        "        }\n"                                                                                          \
        "        __global const uchar *p = in + y * w + x;\n"                                                  \
        "        int dx = p[1 - (int)w] + 2 * p[1] + p[1 + w] - p[-1 - (int)w] - 2 * p[-1] - p[w - 1];\n"      \
        "        int dy = p[w - 1] + 2 * p[w] + p[w + 1] - p[-1 - (int)w] - 2 * p[-(int)w] - p[1 - (int)w];\n" \
        "        out[y * w + x] = min(255, (int)(abs(dx) + abs(dy)));\n"                                       \
        "}\n"

/* A picture that differs from frame to frame. */
static inline void edges_picture(uint8_t *to, unsigned w, unsigned h, uint32_t frame)
{
        for (unsigned y = 0; y < h; y++)
                for (unsigned x = 0; x < w; x++)
                        to[y * w + x] = (uint8_t)((x + frame) * (y + 3) ^ (x >> 2) * frame);
}

static inline uint8_t edges_at(const uint8_t *in, unsigned w, unsigned h, unsigned x, unsigned y)
{
        if (x == 0 || y == 0 || x == w - 1 || y == h - 1)
                return 0;
        const uint8_t *p = in + y * w + x, *above = p - w, *below = p + w;
        int dx = above[1] + 2 * p[1] + below[1] - above[-1] - 2 * p[-1] - below[-1];
        int dy = below[-1] + 2 * below[0] + below[1] - above[-1] - 2 * above[0] - above[1];
        int sum = (dx < 0 ? -dx : dx) + (dy < 0 ? -dy : dy);
        return (uint8_t)(sum > 255 ? 255 : sum);
}

/* How many bytes differ from this processor's result. */
static inline unsigned edges_wrong(const uint8_t *in, const uint8_t *out, unsigned w, unsigned h)
{
        unsigned wrong = 0;
        for (unsigned y = 0; y < h; y++)
                for (unsigned x = 0; x < w; x++)
                        wrong += out[y * w + x] != edges_at(in, w, h, x, y);
        return wrong;
}

#endif
