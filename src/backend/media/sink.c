/* The kernel org.spancl.sink. */
#include <string.h>

#include "backend/media/sources.h"
#include "backend/media/stream.h"
#include "base/mem.h"

enum { UNIT, UNIT_SIZE, STATUS, STREAM, NAME, CODEC, WIDTH, HEIGHT, RATE, TIME, DELAY, FLAGS };

enum { KNOWN_FLAGS = MEDIA_RESET | MEDIA_FLUSH | MEDIA_KEY | MEDIA_TIMED };

static void sink_free(void *data)
{
        struct media_named *s = data;
        media_named_end(s);
        media_detach(&s->common);
}

/* Make the request that opens the sink of these arguments. CL_INVALID_VALUE, CL_INVALID_IMAGE_SIZE. */
static cl_int make_request(const struct registry_launch *l, const struct media *media,
                           struct av_request *ret)
{
        const struct codec_limits *limits = &media->settings.limits;
        uint32_t flags = media_value(l, FLAGS), rate = media_value(l, RATE);
        *ret = (struct av_request){
                .kind = AV_SINK,
                .codec = media_value(l, CODEC),
                .width = media_value(l, WIDTH),
                .height = media_value(l, HEIGHT),
                .rate = flags & MEDIA_TIMED ? 0
                        : rate              ? rate
                                            : MEDIA_RATE,
                .threads = 1,
                .limit_pixels = (uint32_t)limits->pixels,
                .in_room = av_packet_max(limits->pixels),
                .out_room = 1,
        };
        if (flags & ~(uint32_t)KNOWN_FLAGS)
                return CL_INVALID_VALUE;
        cl_int status = media_name(&l->args[NAME], ret->name);
        return status < 0 ? status : media_status(av_request_check(ret, false));
}

/* Complete the file or stream, and close it. */
static cl_int sink_finish(struct media_named *s)
{
        struct av_reply unused;
        enum codec_result r = CODEC_OK;
        if (s->open)
                r = av_process_call(&s->process, &(struct av_request){ .kind = AV_FLUSH }, &unused);
        media_named_end(s);
        return media_status(r);
}

/* Write a unit of `size` bytes. */
static cl_int sink_feed(struct media_named *s, const struct registry_launch *l,
                        const struct av_request *r, size_t size)
{
        cl_int status = media_named_open(s, r);
        if (status < 0)
                return status;
        if (size > r->in_room)
                return CL_INVALID_IMAGE_SIZE;
        const struct av_request feed = {
                .kind = AV_FEED,
                .size = size,
                .flags = media_value(l, FLAGS) & MEDIA_KEY ? AV_KEY : 0,
                .time_ms = r->rate ? 0 : media_value(l, TIME),
                .delay_ms = r->rate ? 0 : media_value(l, DELAY),
        };
        struct av_reply unused;
        memcpy(av_process_in(&s->process), l->args[UNIT].data, size);
        enum codec_result result = av_process_call(&s->process, &feed, &unused);
        s->units += result == CODEC_OK;
        return media_status(result);
}

static cl_int run_stream(const struct registry_launch *l, struct media_stream *stream,
                         unsigned which, uint32_t words[MEDIA_STATUS_WORDS_MAX], uint64_t *ret_size)
{
        struct media_named *s = container_of(stream, struct media_named, common);
        (void)which, (void)ret_size; /* there is one kernel, and it returns no data */
        uint32_t flags = media_value(l, FLAGS);
        struct av_request r;
        size_t size = 0;
        cl_int status = make_request(l, s->common.media, &r);
        if (status == CL_SUCCESS)
                status = media_given(&l->args[UNIT], &l->args[UNIT_SIZE], &size);
        if (status < 0)
                return status;
        words[MEDIA_WIDTH] = r.width;
        words[MEDIA_HEIGHT] = r.height;
        words[MEDIA_FORMAT] = r.codec;
        words[MEDIA_IS_KEY] = flags & MEDIA_KEY ? 1 : 0;
        words[MEDIA_BYTES] = (uint32_t)size;
        words[MEDIA_RESULT] = size ? MEDIA_PICTURE : MEDIA_AGAIN;
        if (flags & MEDIA_RESET)
                (void)sink_finish(s);
        if (size)
                status = sink_feed(s, l, &r, size);
        words[MEDIA_PICTURES] = s->units;
        if (flags & MEDIA_FLUSH && status == CL_SUCCESS) {
                words[MEDIA_RESULT] = MEDIA_END;
                status = sink_finish(s);
        }
        if (s->open && s->process.socket < 0)
                media_named_end(s); /* the next unit opens it anew */
        return status;
}

static const struct media_kind sinks = {
        .size = sizeof(struct media_named),
        .status = STATUS,
        .bytes = MEDIA_NO_ARGUMENT,
        .stream = STREAM,
        .free = sink_free,
        .run = run_stream,
};

static cl_int run(const struct registry_launch *l)
{
        return media_command(l, &sinks, 0);
}

const struct registry_kernel media_sink_kernel = {
        .name = "org.spancl.sink",
        .doc = "Write a unit to a file or stream that the server names.",
        .run = run,
        .args = {
                [UNIT] = { "unit", "uchar*", 1, true, REGISTRY_IN },
                [UNIT_SIZE] = { "unit_size", "ulong*", 8, true, REGISTRY_IN },
                [STATUS] = { "status", "uint*", 4, true, REGISTRY_OUT },
                [STREAM] = { "stream", "uchar*", 1, true, REGISTRY_INOUT },
                [NAME] = { "name", "uchar*", 1, true, REGISTRY_IN },
                [CODEC] = { "codec", "uint", 4, false, REGISTRY_IN },
                [WIDTH] = { "width", "uint", 4, false, REGISTRY_IN },
                [HEIGHT] = { "height", "uint", 4, false, REGISTRY_IN },
                [RATE] = { "rate", "uint", 4, false, REGISTRY_IN },
                [TIME] = { "time", "uint", 4, false, REGISTRY_IN },
                [DELAY] = { "delay", "uint", 4, false, REGISTRY_IN },
                [FLAGS] = { "flags", "uint", 4, false, REGISTRY_IN },
        },
};
