/* Encodes a layer by a media device, and decodes it by another one (docs/MEDIA.md). */
#ifndef AR_CODEC_H
#define AR_CODEC_H

#include "opencl.h"

struct codec {
        struct device *far, *encoder, *decoder, *near;
        size_t width, height;
        cl_kernel stack, encode, decode, convert, unstack;
        cl_mem stacked, packet, packet_bytes, encoded, encoder_stream;
        cl_mem picture, picture_bytes, decoded, decoder_stream, rgba, layer;
};

/* `name`: h264, hevc, mjpeg. The layer is drawn on `far` and ends on `near`. Codecs whose frames alternate share
 * the encoder and the decoder of the `first` one, or NULL. Ends the program if no media device has the kernels. */
void codec_open(struct codec *c, struct machine *m, const char *name, struct device *far,
                struct device *near, size_t width, size_t height, const struct codec *first);
void codec_close(struct codec *c);

/* The result is c->layer, for commands of `near`. */
void codec_run(struct codec *c, cl_mem layer);

/* End the program if the encoder or the decoder delivered nothing. */
void codec_check(struct codec *c);

#endif
