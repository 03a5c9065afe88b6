/* Writes decoded pictures as the media device gives them: I420, samples of more than 8 bits in the low bits of two
 * bytes. Stateless. */
#ifndef SPANCL_AV_PICTURE_H
#define SPANCL_AV_PICTURE_H

#include <libavutil/frame.h>

#include "backend/media/av_message.h"

/* Return the bits of a sample of a stream in this format (enum AVPixelFormat); 0: it is not 4:2:0 in planes. */
unsigned picture_bits(int format);

/* Write a picture of a stream with `bits` to `to`, which has `room` bytes, and fill in the answer. The picture is in
 * planes, or as devices give it: luma, and Cb and Cr in turn, samples in the high bits. CODEC_TOO_LARGE: it has more
 * than `pixels`, or does not fit; CODEC_FORMAT. */
SP_NODISCARD enum codec_result picture_write(const AVFrame *f, unsigned bits, uint64_t pixels,
                                             uint8_t *to, uint64_t room, struct av_reply *ret);

#endif
