#include "v3c_bits.h"

int v3c_fail(struct v3c_fault *fault, int status, size_t offset, const char *text)
{
        if (fault)
                *fault = (struct v3c_fault){ text, offset };
        return status;
}

struct bits bits_of(const uint8_t *stream, struct v3c_range range, const char *early)
{
        return (struct bits){ .data = stream + range.offset,
                              .size = range.size,
                              .offset = range.offset,
                              .early = early };
}

uint32_t bits_take(struct bits *b, unsigned count)
{
        uint32_t value = 0;
        if (b->over || count > b->size * 8 - b->at) {
                b->over = true;
                return 0;
        }
        for (; count > 0; count--, b->at++)
                value = value << 1 | (b->data[b->at / 8] >> (7 - b->at % 8) & 1u);
        return value;
}

bool bits_flag(struct bits *b)
{
        return bits_take(b, 1) != 0;
}

uint32_t bits_golomb(struct bits *b)
{
        unsigned zeros = 0;
        while (!b->over && zeros <= 31 && !bits_flag(b))
                zeros++;
        if (zeros > 31)
                b->over = true;
        return b->over ? 0 : (1u << zeros) - 1 + bits_take(b, zeros);
}

int bits_fail(struct v3c_fault *fault, const struct bits *b, int status, const char *text)
{
        return v3c_fail(fault, b->over ? V3C_E_DAMAGED : status, b->offset + b->at / 8,
                        b->over ? b->early : text);
}
