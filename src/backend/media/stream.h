/* Streams of any kind: the state that a client's stream buffer names, and the arguments of kernels that tell sizes and
 * results. The lock of a stream is held while a command of it runs. */
#ifndef SPANCL_BACKEND_MEDIA_STREAM_H
#define SPANCL_BACKEND_MEDIA_STREAM_H

#include <string.h>

#include "backend/media/kernels.h"
#include "base/bytes.h"
#include "os/lock.h"

/* The first member of a stream of any kind. */
struct media_stream {
        struct lock lock;
        struct media *media;
};

/* Get the stream of a buffer, or make one of `size` bytes, which are zeros but for the first member. `free` tells its
 * kind, and calls media_detach. CL_INVALID_MEM_OBJECT: the buffer has a stream of another kind;
 * CL_OUT_OF_HOST_MEMORY. */
cl_int media_attach(struct registry_attachment *a, size_t size, void (*free)(void *data),
                    struct media *media, struct media_stream **ret);
void media_detach(struct media_stream *s);

/* Count a decoder or encoder of the device. False: there are as many as may be. */
bool media_stream_count(struct media *media);
void media_stream_uncount(struct media *media);

/* The error of a command. */
cl_int media_status(enum codec_result r);

/* The value of an argument that is no buffer. */
static inline uint32_t media_value(const struct registry_launch *l, unsigned arg)
{
        uint32_t v;
        memcpy(&v, l->args[arg].data, sizeof(v));
        return v;
}

/* The bytes of `data` that mean something; `size` may be a null buffer. CL_INVALID_BUFFER_SIZE, CL_INVALID_VALUE. */
cl_int media_given(const struct registry_value *data, const struct registry_value *size,
                   size_t *ret);

/* Write the status and the size (may be a null buffer) of a command. Returns `result`. */
cl_int media_finish(const struct registry_value *status, const struct registry_value *size,
                    uint32_t words[MEDIA_STATUS_WORDS], uint64_t bytes, cl_int result);

#endif
