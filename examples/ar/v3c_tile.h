/* Reads the patches of a tile, which is an atlas NAL unit (ISO/IEC 23090-5, 8.3.6.11). */
#ifndef AR_V3C_TILE_H
#define AR_V3C_TILE_H

#include "v3c.h"

/* Types of atlas NAL units (table 6). */
enum { ATLAS_IRAP = 16, ATLAS_IRAP_LAST = 29, ATLAS_TILE_LAST = 35, ATLAS_ASPS, ATLAS_AFPS };
enum { ATLAS_ESEI_PREFIX = 45, ATLAS_ESEI_SUFFIX, ATLAS_AAPS };

/* Read the patches of the frame's tile; `patches` may be NULL, to check and count them. Errors are those of
 * v3c_patches(). */
int tile_read(const uint8_t *stream, const struct v3c_frame *frame, struct v3c_patch *patches,
              uint32_t capacity, uint32_t *ret_count, struct v3c_fault *ret_fault);

#endif
