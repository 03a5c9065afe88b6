/* Streams of any kind: the state that a client's stream buffer names, and the arguments of kernels that tell sizes and
 * results. The lock of a stream is held while a command of it runs. */
#ifndef SPANCL_BACKEND_MEDIA_STREAM_H
#define SPANCL_BACKEND_MEDIA_STREAM_H

#include <string.h>

#include "backend/media/av_message.h"
#include "backend/media/kernels.h"
#include "base/bytes.h"
#include "os/lock.h"

/* The first member of a stream of any kind. */
struct media_stream {
        struct lock lock;
        struct media *media;
};

/* A kind of streams. `run` is one command of a stream: it returns the error, and fills the words of the status and the
 * size of what it delivers. `free` calls media_detach. */
struct media_kind {
        size_t size; /* bytes of a stream, zeros at first but for the first member */
        /* Arguments: status, size of what is delivered (or MEDIA_NO_ARGUMENT), stream. */
        unsigned status, bytes, stream;
        unsigned words; /* of the status; 0: MEDIA_STATUS_WORDS */
        void (*free)(void *data);
        cl_int (*run)(const struct registry_launch *l, struct media_stream *s, unsigned which,
                      uint32_t words[MEDIA_STATUS_WORDS_MAX], uint64_t *ret_bytes);
};

enum { MEDIA_NO_ARGUMENT = UINT16_MAX };

/* Run a command of the stream that its buffer names; the first one makes the stream. `which` is for `run`.
 * CL_INVALID_GLOBAL_WORK_SIZE: several work-items; CL_INVALID_MEM_OBJECT: no stream, or one of another kind;
 * CL_INVALID_BUFFER_SIZE; CL_OUT_OF_HOST_MEMORY. */
cl_int media_command(const struct registry_launch *l, const struct media_kind *kind,
                     unsigned which);
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

/* Get the name of a source or sink from the argument, a copy with zeros behind it. CL_INVALID_VALUE. */
cl_int media_name(const struct registry_value *name, char ret[AV_NAME_MAX]);

/* The bytes of `data` that mean something; `size` may be a null buffer. CL_INVALID_BUFFER_SIZE, CL_INVALID_VALUE. */
cl_int media_given(const struct registry_value *data, const struct registry_value *size,
                   size_t *ret);

#endif
