/* NAL units of H.264 and HEVC in the byte stream format (ITU-T H.264 and H.265, annex B), and what their
 * parameter sets say about pictures. The libraries allocate pictures of any size that a
 * stream names, so the size is checked before they see it. Sans-IO; stateless. */
#ifndef SPANCL_MEDIA_NAL_H
#define SPANCL_MEDIA_NAL_H

#include <stdbool.h>

#include "backend/media/codec.h"

struct nal {
        const uint8_t *data; /* behind the start code */
        size_t size;         /* without zeros behind it */
};

/* Take the next NAL unit from the front of `*data`. False: there is none. */
bool nal_next(const uint8_t **data, size_t *size, struct nal *ret);

/* Check a NAL unit. Of a sequence parameter set: CODEC_TOO_LARGE if its pictures are larger than the
 * limits; CODEC_FORMAT if they are not 4:2:0 with at most `bits` bits, or may be fields; CODEC_DAMAGED
 * if it ends before it says so. Of H.264, slices of type B are CODEC_FORMAT, too, as are SP and SI; with limits->other
 * so is a set that allows pictures whose order of output is another than that of decoding, as B slices have it: its
 * profile is not Baseline, and its pic_order_cnt_type is not 2. */
enum codec_result nal_check_h264(const struct nal *n, const struct codec_limits *limits,
                                 unsigned bits);
enum codec_result nal_check_hevc(const struct nal *n, const struct codec_limits *limits,
                                 unsigned bits);

#endif
