/* Writes decoded pictures in the formats of commands. Stateless. */
#ifndef SPANCL_BACKEND_MEDIA_PICTURE_H
#define SPANCL_BACKEND_MEDIA_PICTURE_H

#include "backend/media/codec.h"
#include "backend/media/kernels.h"

/* Write the picture without gaps, in MEDIA_I420 or MEDIA_NV12. `to` has media_picture_size bytes. The picture's samples
 * may change meanwhile, because they may lie in memory of another process. */
void media_picture_write(uint8_t *to, const struct codec_picture *p, enum media_format format);

#endif
