/* The device that decodes for libavcodec, such as a GPU by VA-API or CUDA (`device` of --media). A process has one at
 * most, so this is its state. One thread. */
#ifndef SPANCL_AV_HARDWARE_H
#define SPANCL_AV_HARDWARE_H

#include <stdbool.h>

#include <libavcodec/avcodec.h>

#include "av/pool.h"

/* Open the device that `text` names, as TYPE or TYPE:NAME, with the process's present rights. False: it can't be
 * opened, and the log says why. */
bool hardware_open(const char *text);

/* Let the decoder use the device, if one is open. Without one, and where the device lacks a stream's format, libavcodec
 * decodes on the processor. Call it before avcodec_open2. */
void hardware_use(AVCodecContext *c);

/* Replace a picture of the device by a copy in a piece of the pool. A picture of the processor stays. The first picture
 * makes a line of the log: whether the device decodes this stream. Returns 0 or an AVERROR. */
SP_NODISCARD int hardware_fetch(const AVCodecContext *c, struct pool *pool, AVFrame *f);

/* The processor decodes this stream from now on, since the device failed. A line of the log says so. */
void hardware_left(const AVCodecContext *c);

#endif
