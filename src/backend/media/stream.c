#include "backend/media/stream.h"

#include "base/mem.h"
#include "os/lock.h"

/* The lock is for attachments that several executors may make at a time. */
static struct lock attach_lock = LOCK_INIT;

cl_int media_attach(struct registry_attachment *a, size_t size, void (*free)(void *data),
                    struct media *media, struct media_stream **ret)
{
        cl_int r = CL_SUCCESS;
        lock_take(&attach_lock);
        struct media_stream *s = a->data;
        if (s && a->free != free) {
                r = CL_INVALID_MEM_OBJECT;
        } else if (!s && !(s = mem_zalloc(size))) {
                r = CL_OUT_OF_HOST_MEMORY;
        } else if (!a->data) {
                lock_init(&s->lock);
                s->media = media;
                *a = (struct registry_attachment){ s, free };
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

cl_int media_finish(const struct registry_value *status, const struct registry_value *size,
                    uint32_t words[MEDIA_STATUS_WORDS], uint64_t bytes, cl_int result)
{
        if (result < 0)
                words[MEDIA_RESULT] = (uint32_t)result;
        for (size_t i = 0; i < MEDIA_STATUS_WORDS; i++)
                bytes_put_u32((uint8_t *)status->data + 4 * i, words[i]);
        if (size->data)
                bytes_put_u64(size->data, bytes);
        return result;
}
