#include "backend/media/stream.h"

#include "base/mem.h"
#include "os/lock.h"

/* The lock is for attachments that several executors may make at a time. */
static struct lock attach_lock = LOCK_INIT;

/* Get the stream of a buffer, or make one. */
static cl_int attach(struct registry_attachment *a, const struct media_kind *kind,
                     struct media *media, struct media_stream **ret)
{
        cl_int r = CL_SUCCESS;
        lock_take(&attach_lock);
        struct media_stream *s = a->data;
        if (s && a->free != kind->free) {
                r = CL_INVALID_MEM_OBJECT;
        } else if (!s && !(s = mem_zalloc(kind->size))) {
                r = CL_OUT_OF_HOST_MEMORY;
        } else if (!a->data) {
                lock_init(&s->lock);
                s->media = media;
                *a = (struct registry_attachment){ s, kind->free };
        }
        lock_release(&attach_lock);
        if (r == CL_SUCCESS)
                *ret = s;
        return r;
}

void media_detach(struct media_stream *s)
{
        lock_fini(&s->lock);
        mem_free(s);
}

bool media_stream_count(struct media *media)
{
        if (atomic_fetch_add(&media->streams, 1) < media->settings.streams)
                return true;
        media_stream_uncount(media);
        return false;
}

void media_stream_uncount(struct media *media)
{
        atomic_fetch_sub(&media->streams, 1);
}

cl_int media_status(enum codec_result r)
{
        switch (r) {
        case CODEC_OK:
        case CODEC_NONE:
                return CL_SUCCESS;
        case CODEC_DAMAGED:
                return CL_INVALID_VALUE;
        case CODEC_TOO_LARGE:
                return CL_INVALID_IMAGE_SIZE;
        case CODEC_FORMAT:
                return CL_IMAGE_FORMAT_NOT_SUPPORTED;
        case CODEC_UNWRITTEN:
        case CODEC_LOST:
                return CL_OUT_OF_RESOURCES;
        case CODEC_NO_MEMORY:
                break;
        }
        return CL_OUT_OF_HOST_MEMORY;
}

cl_int media_given(const struct registry_value *data, const struct registry_value *size,
                   size_t *ret)
{
        uint64_t given = data->data ? data->size : 0;
        if (size->data) {
                if (size->size < sizeof(given))
                        return CL_INVALID_BUFFER_SIZE;
                given = bytes_get_u64(size->data);
        }
        if (given > (data->data ? data->size : 0))
                return CL_INVALID_VALUE;
        *ret = (size_t)given;
        return CL_SUCCESS;
}

cl_int media_name(const struct registry_value *name, char ret[AV_NAME_MAX])
{
        if (!name->data)
                return CL_INVALID_VALUE;
        /* A copy: the buffer's bytes may change. It may also end without a NUL. */
        memset(ret, 0, AV_NAME_MAX);
        memcpy(ret, name->data, name->size < AV_NAME_MAX ? name->size : AV_NAME_MAX);
        char *end = memchr(ret, 0, AV_NAME_MAX);
        if (!end || end == ret)
                return CL_INVALID_VALUE;
        memset(end, 0, AV_NAME_MAX - (size_t)(end - ret));
        return CL_SUCCESS;
}

/* Write the status and the size (may be a null buffer) of a command. */
static void finish(const struct registry_value *status, unsigned count,
                   const struct registry_value *size, uint32_t words[MEDIA_STATUS_WORDS_MAX],
                   uint64_t bytes, cl_int result)
{
        if (result < 0)
                words[MEDIA_RESULT] = (uint32_t)result;
        for (size_t i = 0; i < count && i < status->size / 4; i++)
                bytes_put_u32((uint8_t *)status->data + 4 * i, words[i]);
        if (size->data)
                bytes_put_u64(size->data, bytes);
}

cl_int media_command(const struct registry_launch *l, const struct media_kind *kind, unsigned which)
{
        static const struct registry_value none;
        const struct registry_value *status = &l->args[kind->status],
                                    *stream = &l->args[kind->stream],
                                    *size = kind->bytes == MEDIA_NO_ARGUMENT
                                                    ? &none
                                                    : &l->args[kind->bytes];
        uint32_t words[MEDIA_STATUS_WORDS_MAX] = { 0 };
        uint64_t bytes = 0;
        struct media_stream *s;
        if (l->global[0] * l->global[1] * l->global[2] != 1)
                return CL_INVALID_GLOBAL_WORK_SIZE;
        if (!stream->data || !stream->attachment)
                return CL_INVALID_MEM_OBJECT;
        if (!status->data || status->size < 4 * MEDIA_STATUS_WORDS ||
            (size->data && size->size < sizeof(bytes)))
                return CL_INVALID_BUFFER_SIZE;
        cl_int r = attach(stream->attachment, kind, l->user, &s);
        if (r < 0)
                return r;
        lock_take(&s->lock);
        r = kind->run(l, s, which, words, &bytes);
        lock_release(&s->lock);
        finish(status, kind->words ? kind->words : MEDIA_STATUS_WORDS, size, words, bytes, r);
        return r;
}
