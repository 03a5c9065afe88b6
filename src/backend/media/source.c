/* The kernel org.spancl.source. */
#include <string.h>

#include "backend/media/sources.h"
#include "backend/media/stream.h"
#include "base/mem.h"

enum { UNIT, UNIT_SIZE, STATUS, STREAM, NAME, FLAGS };

enum { KNOWN_FLAGS = MEDIA_RESET | MEDIA_LOOP | MEDIA_FAST };

struct source {
        struct media_named named;
        bool held; /* the unit of `reply` did not fit into a buffer */
        struct av_reply reply;
};

static void source_end(struct source *s)
{
        media_named_end(&s->named);
        s->held = false;
}

static void source_free(void *data)
{
        struct source *s = data;
        source_end(s);
        media_detach(&s->named.common);
}

/* Make the request that opens the source of these arguments. CL_INVALID_VALUE. */
static cl_int make_request(const struct registry_launch *l, const struct media *media,
                           struct av_request *ret)
{
        const struct codec_limits *limits = &media->settings.limits;
        uint32_t flags = media_value(l, FLAGS);
        *ret = (struct av_request){
                .kind = AV_SOURCE,
                .threads = 1,
                .limit_pixels = (uint32_t)limits->pixels,
                .in_room = 1,
                .out_room = av_packet_max(limits->pixels),
                .flags = (flags & MEDIA_LOOP ? AV_LOOP : 0) | (flags & MEDIA_FAST ? AV_FAST : 0),
        };
        return flags & ~(uint32_t)KNOWN_FLAGS ? CL_INVALID_VALUE
                                              : media_name(&l->args[NAME], ret->name);
}

static cl_int run_stream(const struct registry_launch *l, struct media_stream *stream,
                         unsigned which, uint32_t words[MEDIA_STATUS_WORDS_MAX], uint64_t *ret_size)
{
        struct source *s = container_of(stream, struct source, named.common);
        (void)which; /* there is one kernel */
        const struct registry_value *unit = &l->args[UNIT];
        struct av_request r;
        cl_int status = make_request(l, s->named.common.media, &r);
        if (status < 0)
                return status;
        if (media_value(l, FLAGS) & MEDIA_RESET)
                source_end(s);
        status = media_named_open(&s->named, &r);
        if (status < 0)
                return status;
        enum codec_result result = CODEC_OK;
        if (!s->held)
                result = av_process_call(&s->named.process, &(struct av_request){ .kind = AV_NEXT },
                                         &s->reply);
        words[MEDIA_PICTURES] = s->named.units;
        if (result != CODEC_OK) {
                words[MEDIA_RESULT] = s->reply.flags & AV_END ? MEDIA_END : MEDIA_AGAIN;
                if (s->named.process.socket < 0)
                        source_end(s); /* the next command opens it anew */
                return media_status(result);
        }
        words[MEDIA_WIDTH] = s->reply.width;
        words[MEDIA_HEIGHT] = s->reply.height;
        words[MEDIA_FORMAT] = s->reply.codec;
        words[MEDIA_IS_KEY] = s->reply.flags & AV_KEY ? 1 : 0;
        words[MEDIA_BYTES] = (uint32_t)s->reply.size;
        words[MEDIA_TIME] = (uint32_t)s->reply.time_ms;
        words[MEDIA_DELAY] = s->reply.delay_ms;
        s->held = !unit->data || unit->size < s->reply.size;
        if (s->held)
                return CL_INVALID_BUFFER_SIZE;
        memcpy(unit->data, av_process_out(&s->named.process), (size_t)s->reply.size);
        words[MEDIA_PICTURES] = ++s->named.units;
        words[MEDIA_RESULT] = MEDIA_PICTURE;
        *ret_size = s->reply.size;
        return CL_SUCCESS;
}

static const struct media_kind sources = {
        .size = sizeof(struct source),
        .status = STATUS,
        .bytes = UNIT_SIZE,
        .stream = STREAM,
        .words = MEDIA_STATUS_WORDS_MAX,
        .free = source_free,
        .run = run_stream,
};

static cl_int run(const struct registry_launch *l)
{
        return media_command(l, &sources, 0);
}

const struct registry_kernel media_source_kernel = {
        .name = "org.spancl.source",
        .doc = "Read the next unit of a stream that the server names.",
        .run = run,
        .args = {
                [UNIT] = { "unit", "uchar*", 1, true, REGISTRY_OUT },
                [UNIT_SIZE] = { "unit_size", "ulong*", 8, true, REGISTRY_OUT },
                [STATUS] = { "status", "uint*", 4, true, REGISTRY_OUT },
                [STREAM] = { "stream", "uchar*", 1, true, REGISTRY_INOUT },
                [NAME] = { "name", "uchar*", 1, true, REGISTRY_IN },
                [FLAGS] = { "flags", "uint", 4, false, REGISTRY_IN },
        },
};
