#include "backend/media/sources.h"

#include "os/file.h"
#include "os/lock.h"

/* The lock is held for a request to media-io, which answers at once. */
static struct {
        struct lock lock;
        int socket;
} shared = { .lock = LOCK_INIT, .socket = -1 };

void media_sources_use(int socket)
{
        lock_take(&shared.lock);
        if (shared.socket >= 0)
                (void)file_close(shared.socket);
        shared.socket = socket;
        lock_release(&shared.lock);
}

/* `stop`: as of av_processes_open. */
static enum codec_result start(const struct av_request *open, int stop, struct av_process *ret)
{
        struct av_reply reply;
        int stream = -1;
        lock_take(&shared.lock);
        bool ok = shared.socket >= 0 && av_call(shared.socket, stop, open, -1, &reply, &stream);
        lock_release(&shared.lock);
        if (ok && reply.result == CODEC_OK && stream >= 0)
                return av_process_adopt(stream, stop, open, ret);
        if (stream >= 0)
                (void)file_close(stream);
        return ok && reply.result < 0 && reply.result > CODEC_LOST ? (enum codec_result)reply.result
                                                                   : CODEC_LOST;
}

cl_int media_named_open(struct media_named *s, const struct av_request *open)
{
        struct media *media = s->common.media;
        if (s->open)
                return memcmp(&s->process.open, open, sizeof(*open)) ? CL_INVALID_VALUE
                                                                     : CL_SUCCESS;
        if (!media_stream_count(media))
                return CL_OUT_OF_RESOURCES;
        enum codec_result result = start(open, media->stop, &s->process);
        s->open = result == CODEC_OK;
        if (!s->open)
                media_stream_uncount(media);
        return media_status(result);
}

void media_named_end(struct media_named *s)
{
        if (s->open) {
                av_process_end(&s->process);
                media_stream_uncount(s->common.media);
        }
        s->open = false;
        s->units = 0;
}
