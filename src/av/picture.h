/* Puts decoded pictures where the session's worker reads them. Stateless. */
#ifndef SPANCL_AV_PICTURE_H
#define SPANCL_AV_PICTURE_H

#include <libavutil/frame.h>

#include "backend/media/av_message.h"

/* Return the bits of a sample of a stream in this format (enum AVPixelFormat); 0: it is not 4:2:0 in planes. */
unsigned picture_bits(int format);

/* Fill in the answer for a picture of a stream with `bits`. `memory`: a decoder's part, of `room` bytes; a picture that
 * does not lie there is copied to its end. The picture is in planes, or as devices give it: luma, and Cb and Cr in
 * turn, samples in the high bits. CODEC_TOO_LARGE: it has more than `pixels`; CODEC_FORMAT. */
SP_NODISCARD enum codec_result picture_put(const AVFrame *f, unsigned bits, uint64_t pixels,
                                           uint8_t *memory, uint64_t room, struct av_reply *ret);

#endif
