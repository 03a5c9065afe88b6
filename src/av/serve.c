#include "av/serve.h"

#include "os/file.h"
#include "os/passing.h"
#include "os/poll.h"
#include "os/shared_memory.h"
#include "os/signals.h"
#include "os/vm.h"

struct state {
        int socket;
        const struct av_server *server;
        struct av_stream *stream; /* NULL: none is open */
        struct av_request open;
        uint8_t *memory;
        uint64_t room; /* of both parts */
};

/* Map the memory of both sides. */
static enum codec_result map(struct state *s, const struct av_request *r, int fd)
{
        uint64_t wanted = r->in_room + r->out_room + 2 * AV_PADDING, size, at;
        if (fd < 0 || shared_memory_size(fd, &size) < 0 || size < wanted)
                return CODEC_DAMAGED;
        if (vm_map_file(fd, 0, (size_t)wanted, &at) < 0)
                return CODEC_NO_MEMORY;
        s->memory = (uint8_t *)(uintptr_t)at;
        s->room = r->in_room + r->out_room;
        return CODEC_OK;
}

/* The memory for answers. */
static uint8_t *out_of(const struct state *s)
{
        return s->memory + s->open.in_room + AV_PADDING;
}

static enum codec_result open_stream(struct state *s, const struct av_request *r, int fd)
{
        enum codec_result result = s->memory ? CODEC_DAMAGED : map(s, r, fd);
        if (result < 0)
                return result;
        s->open = *r;
        return s->server->open(s->server, r, out_of(s), &s->stream);
}

static enum codec_result answer(struct state *s, const struct av_request *r, int fd,
                                struct av_reply *ret)
{
        enum codec_result result = av_request_check(r, s->stream != NULL);
        if (result < 0)
                return result;
        switch ((enum av_kind)r->kind) {
        case AV_HELLO:
                ret->version = AV_VERSION;
                ret->codecs = s->server->codecs;
                return CODEC_OK;
        case AV_ENCODER:
        case AV_DECODER:
        case AV_SOURCE:
        case AV_SINK:
                return open_stream(s, r, fd);
        case AV_FEED:
                if (!r->size || r->size > s->open.in_room)
                        return CODEC_DAMAGED;
                return s->stream->ops->feed(s->stream, r, s->memory);
        case AV_NEXT:
                return s->stream->ops->next(s->stream, out_of(s), s->open.out_room, ret);
        case AV_FLUSH:
                return s->stream->ops->flush(s->stream);
        case AV_RESET:
                return s->stream->ops->reset(s->stream);
        case AV_KINDS:
                break;
        }
        return CODEC_DAMAGED;
}

/* Handle one request. False: the other side is gone, or does not keep to the protocol. */
static bool step(struct state *s)
{
        struct av_request r;
        struct av_reply reply = { 0 };
        struct iovec from = { &r, sizeof(r) }, to = { &reply, sizeof(reply) };
        struct pollfd p = { .fd = s->socket, .events = POLLIN };
        int fd;
        ssize_t n;
        while ((n = passing_receive(s->socket, &from, 1, &fd, 1)) == SP_E_AGAIN)
                (void)poll_until(&p, 1, UINT64_MAX);
        bool ok = n == sizeof(r);
        if (ok) {
                signals_limit(AV_LIMIT_S, "a media process: a request takes too long\n");
                reply.result = answer(s, &r, fd, &reply);
                if (reply.result != CODEC_OK)
                        reply.size = 0;
                signals_limit(0, "");
        }
        if (fd >= 0)
                file_close(fd);
        return ok && passing_send(s->socket, &to, 1, NULL, 0) == sizeof(reply);
}

void av_serve(int socket, const struct av_server *server)
{
        struct state s = { .socket = socket, .server = server };
        while (step(&s))
                continue;
        if (s.memory)
                vm_unmap((uint64_t)(uintptr_t)s.memory, (size_t)(s.room + 2 * AV_PADDING));
}
