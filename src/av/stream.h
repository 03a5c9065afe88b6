/* A stream in this process: an encoder or a decoder of libavcodec. Both take pieces (`feed`) and give pieces (`next`);
 * pieces are packets or pictures in memory that the other process can change at any time. So each is read
 * or written once, but for the pictures of pool.h. All errors are those of enum codec_result. One thread. */
#ifndef SPANCL_AV_STREAM_H
#define SPANCL_AV_STREAM_H

#include "backend/media/av_message.h"

struct av_stream;

/* Find what libavcodec here has, as `codecs` of an answer. */
uint32_t av_encoders(void);
uint32_t av_decoders(void);

/* Open one for a request that av_request_check has passed. `out`: the memory that `next` gets, into which pictures are
 * decoded. CODEC_FORMAT: there is no such codec, or it does not take such pictures. */
enum codec_result av_encoder_open(const struct av_request *r, struct av_stream **ret);
enum codec_result av_decoder_open(const struct av_request *r, uint8_t *out, struct av_stream **ret);

struct av_stream_ops {
        /* `size` bytes at `data`. */
        enum codec_result (*feed)(struct av_stream *s, const struct av_request *r,
                                  const uint8_t *data);
        /* Write at most `room` bytes, and fill in the answer. CODEC_NONE. */
        enum codec_result (*next)(struct av_stream *s, uint8_t *to, uint64_t room,
                                  struct av_reply *ret);
        enum codec_result (*flush)(struct av_stream *s);
        enum codec_result (*reset)(struct av_stream *s);
};

struct av_stream {
        const struct av_stream_ops *ops;
};

#endif
