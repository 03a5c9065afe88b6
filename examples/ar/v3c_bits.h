/* Reads bits and codes of a V3C stream. */
#ifndef AR_V3C_BITS_H
#define AR_V3C_BITS_H

#include <stdbool.h>

#include "v3c.h"

/* Bits of a part of the stream, the first one being the highest of a byte. A read behind the end gives 0 and sets
 * `over`, so that callers may check once after several reads. An error that follows such a read has the text `early`,
 * because the values that led to it are not in the stream. */
struct bits {
        const uint8_t *data;
        size_t size;   /* bytes */
        size_t at;     /* bits */
        size_t offset; /* of `data` in the stream, for messages */
        const char *early;
        bool over;
};

struct bits bits_of(const uint8_t *stream, struct v3c_range range, const char *early);
uint32_t bits_take(struct bits *b, unsigned count);
bool bits_flag(struct bits *b);

/* Take an Exp-Golomb code, ue(v). */
uint32_t bits_golomb(struct bits *b);

/* Fill in the fault, if there is one, and return `status`. */
int v3c_fail(struct v3c_fault *fault, int status, size_t offset, const char *text);

/* The same at the place of the bits. If they are `over`, the status is V3C_E_DAMAGED and the text `early`. */
int bits_fail(struct v3c_fault *fault, const struct bits *b, int status, const char *text);

#endif
