#include "av/io/source.h"

#include <errno.h>

#include <libavcodec/bsf.h>
#include <libavdevice/avdevice.h>
#include <libavformat/avformat.h>
#include <libavutil/log.h>

#include "av/io/codecs.h"
#include "av/io/url.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/poll.h"
#include "os/thread.h"

#define TIME_MAX (1ll << 50) /* ms */

enum { EACH_MAX_MS = 10000, OPEN_S = 30, WAIT_S = 5, MS = 1000000, EACH_MS = 40, JUMP_MS = 10000 };

struct source {
        struct av_stream stream;
        const char *url;
        int socket;
        uint32_t flags;
        AVFormatContext *input; /* NULL: it could not be opened again */
        AVBSFContext *filter;   /* NULL: units stay as they are */
        AVPacket *packet;
        bool waiting; /* `packet` is a unit that was not given yet */
        bool ended, filter_ended;
        int index;
        uint64_t deadline_ns;       /* for libavformat's waiting */
        bool begun, anchored;       /* a unit came; `offset_ms` is known */
        uint64_t begin_ns, last_ms; /* the clock's time of the first unit; the last unit's time */
        int64_t offset_ms;          /* from the last unit's time to the time stamps */
};

void source_prepare(void)
{
        av_log_set_level(AV_LOG_QUIET);
        avdevice_register_all();
        (void)avformat_network_init();
}

/* Should libavformat wait no longer? Also if nobody waits for it any more. */
static int is_late(void *user)
{
        const struct source *s = user;
        struct pollfd p = { .fd = s->socket };
        return clock_now_ns() > s->deadline_ns || (poll(&p, 1, 0) > 0 && p.revents & POLLHUP);
}

static int open_input(struct source *s)
{
        const AVInputFormat *format = NULL;
        const char *graph = url_graph(s->url);
        char protocols[URL_PROTOCOLS_MAX];
        if (graph) {
                format = av_find_input_format("lavfi");
                if (!format)
                        return AVERROR_DEMUXER_NOT_FOUND;
        }
        s->deadline_ns = clock_now_ns() + OPEN_S * 1000ull * MS;
        s->input = avformat_alloc_context();
        if (!s->input)
                return AVERROR(ENOMEM);
        s->input->interrupt_callback = (AVIOInterruptCB){ is_late, s };
        if (url_is_network(s->url)) {
                if (!url_protocols(s->url, protocols))
                        return AVERROR_PROTOCOL_NOT_FOUND;
                s->input->protocol_whitelist = av_strdup(protocols);
                if (!s->input->protocol_whitelist)
                        return AVERROR(ENOMEM);
        }
        /* RTP over RTSP's connection loses nothing, and passes firewalls. */
        AVDictionary *options = NULL;
        (void)av_dict_set(&options, "rtsp_flags", "prefer_tcp", 0);
        int r = avformat_open_input(&s->input, graph ? graph : s->url, format, &options);
        av_dict_free(&options);
        if (r >= 0)
                r = avformat_find_stream_info(s->input, NULL);
        if (r >= 0)
                r = s->index = av_find_best_stream(s->input, AVMEDIA_TYPE_VIDEO, -1, -1, NULL, 0);
        return r;
}

/* Units of H.264 and HEVC become those of the byte stream format, if they are not. */
static int open_filter(struct source *s)
{
        const AVCodecParameters *p = s->input->streams[s->index]->codecpar;
        const char *name = p->codec_id == AV_CODEC_ID_H264   ? "h264_mp4toannexb"
                           : p->codec_id == AV_CODEC_ID_HEVC ? "hevc_mp4toannexb"
                                                             : NULL;
        /* The configuration record of MP4 and others begins with its version, which is 1. */
        if (!name || p->extradata_size < 7 || p->extradata[0] != 1)
                return 0;
        int r = av_bsf_alloc(av_bsf_get_by_name(name), &s->filter);
        if (r >= 0)
                r = avcodec_parameters_copy(s->filter->par_in, p);
        if (r < 0)
                return r;
        s->filter->time_base_in = s->input->streams[s->index]->time_base;
        return av_bsf_init(s->filter);
}

static void close_input(struct source *s)
{
        av_bsf_free(&s->filter);
        avformat_close_input(&s->input);
        av_packet_unref(s->packet);
        s->waiting = s->ended = s->filter_ended = false;
}

/* Open the source, or nothing of it. */
static int begin(struct source *s)
{
        int r = open_input(s);
        if (r >= 0)
                r = open_filter(s);
        if (r < 0)
                close_input(s);
        s->anchored = false;
        return r;
}

/* Read a packet of the stream. */
static int read_packet(struct source *s)
{
        for (;;) {
                av_packet_unref(s->packet);
                int r = av_read_frame(s->input, s->packet);
                if (r < 0 || s->packet->stream_index == s->index)
                        return r;
        }
}

static int read_unit(struct source *s)
{
        if (!s->filter)
                return read_packet(s);
        for (;;) {
                int r = av_bsf_receive_packet(s->filter, s->packet);
                if (r != AVERROR(EAGAIN))
                        return r;
                r = read_packet(s);
                if (r < 0 && r != AVERROR_EOF)
                        return r;
                r = av_bsf_send_packet(s->filter, r < 0 ? NULL : s->packet);
                if (r < 0)
                        return r;
        }
}

/* Translate an error of av_read_frame. AVERROR_EXIT: the sender stalls, and later reads go on; libavformat itself keeps
 * the error, or takes the part of a packet for the stream's end. AVERROR_EOF: also if a connection has broken. */
static int read_error(struct source *s, int r)
{
        static const int broken[] = { EIO, EPIPE, ECONNRESET, ECONNABORTED, ETIMEDOUT, ENOTCONN };
        AVIOContext *c = s->input->pb;
        if (c && c->error == AVERROR_EXIT) {
                c->error = c->eof_reached = 0;
                return AVERROR_EXIT;
        }
        for (size_t i = 0; i < array_size(broken) && url_is_network(s->url); i++)
                if (r == AVERROR(broken[i]))
                        return AVERROR_EOF;
        return r;
}

/* Read a unit of the source, which is opened first if it is not open. */
static int read_opened(struct source *s)
{
        int r = s->input ? 0 : begin(s);
        s->deadline_ns = clock_now_ns() + WAIT_S * 1000ull * MS;
        if (r < 0)
                return r;
        r = read_unit(s);
        return r < 0 ? read_error(s, r) : r;
}

/* Get the next unit into `packet`. AVERROR_EOF: it was the last one, if there is an `input`. */
static int take(struct source *s)
{
        if (s->ended)
                return AVERROR_EOF;
        int r = read_opened(s);
        if (r == AVERROR_EOF && s->input && s->flags & AV_LOOP && s->begun) {
                close_input(s);
                r = read_opened(s);
        }
        s->ended = r == AVERROR_EOF && s->input;
        return r;
}

/* The time of the unit in ms since the first one. Units come in the order of decoding. Some streams have no time
 * stamps, or not at each unit, and those of live streams jump. */
static uint64_t time_of(struct source *s)
{
        AVStream *stream = s->input->streams[s->index];
        AVRational base = s->filter ? s->filter->time_base_out : stream->time_base;
        AVRational rate = av_guess_frame_rate(s->input, stream, NULL);
        int64_t each = rate.num > 0 && rate.den > 0 ? 1000ll * rate.den / rate.num : EACH_MS;
        each = each < EACH_MAX_MS ? each : EACH_MAX_MS;
        int64_t expected = s->begun ? (int64_t)s->last_ms + each : 0;
        s->begun = true;
        int64_t ms = s->packet->dts == AV_NOPTS_VALUE || base.num <= 0 || base.den <= 0
                             ? INT64_MIN
                             : av_rescale_q(s->packet->dts, base, (AVRational){ 1, 1000 });
        if (ms < -TIME_MAX || ms > TIME_MAX)
                return (uint64_t)expected;
        int64_t from_expected = ms - expected;
        if (!s->anchored || from_expected - s->offset_ms > JUMP_MS ||
            from_expected - s->offset_ms < -JUMP_MS)
                s->offset_ms = from_expected;
        s->anchored = true;
        ms -= s->offset_ms;
        return ms > (int64_t)s->last_ms ? (uint64_t)ms : s->last_ms;
}

/* The ms from the unit's time until its picture is shown, which is later where pictures are reordered. */
static uint32_t delay_of(const struct source *s)
{
        AVRational base =
                s->filter ? s->filter->time_base_out : s->input->streams[s->index]->time_base;
        const AVPacket *p = s->packet;
        if (p->pts == AV_NOPTS_VALUE || p->dts == AV_NOPTS_VALUE || p->pts <= p->dts ||
            base.num <= 0 || base.den <= 0)
                return 0;
        int64_t ms = av_rescale_q(p->pts, base, (AVRational){ 1, 1000 }) -
                     av_rescale_q(p->dts, base, (AVRational){ 1, 1000 });
        return ms > 0 && ms <= JUMP_MS ? (uint32_t)ms : 0;
}

/* Wait until the unit is due. False: that takes too long for one request. */
static bool wait_until_due(struct source *s, uint64_t time_ms)
{
        uint64_t now = clock_now_ns();
        if (!s->begin_ns)
                s->begin_ns = now;
        uint64_t due = s->begin_ns + time_ms * MS;
        if (s->flags & AV_FAST || due <= now)
                return true;
        bool late = due - now > WAIT_S * 1000ull * MS;
        (void)thread_sleep(late ? WAIT_S * 1000ull * MS : due - now);
        return !late;
}

static enum codec_result next(struct av_stream *stream, uint8_t *to, uint64_t room,
                              struct av_reply *ret)
{
        struct source *s = container_of(stream, struct source, stream);
        if (!s->waiting) {
                int r = take(s);
                if (r < 0 && !s->input)
                        return CODEC_FORMAT; /* the next request tries again */
                if (r == AVERROR_EOF)
                        ret->flags = AV_END;
                if (r == AVERROR_EOF || r == AVERROR(EAGAIN) || r == AVERROR_EXIT)
                        return CODEC_NONE;
                if (r < 0)
                        return r == AVERROR(ENOMEM) ? CODEC_NO_MEMORY : CODEC_DAMAGED;
                s->last_ms = time_of(s);
                s->waiting = true;
        }
        if (!wait_until_due(s, s->last_ms))
                return CODEC_NONE;
        const AVCodecParameters *p = s->input->streams[s->index]->codecpar;
        ret->size = s->packet->size > 0 ? (uint64_t)s->packet->size : 0;
        ret->width = p->width > 0 ? (uint32_t)p->width : 0;
        ret->height = p->height > 0 ? (uint32_t)p->height : 0;
        ret->codec = codecs_number(p);
        ret->flags = s->packet->flags & AV_PKT_FLAG_KEY ? AV_KEY : 0;
        ret->time_ms = s->last_ms;
        ret->delay_ms = delay_of(s);
        bool fits = ret->size && ret->size <= room;
        if (fits)
                memcpy(to, s->packet->data, (size_t)ret->size);
        av_packet_unref(s->packet);
        s->waiting = false;
        return fits ? CODEC_OK : CODEC_TOO_LARGE;
}

static enum codec_result feed(struct av_stream *s, const struct av_request *r, const uint8_t *data)
{
        (void)s, (void)r, (void)data;
        return CODEC_DAMAGED;
}

static enum codec_result refuse(struct av_stream *s)
{
        (void)s;
        return CODEC_DAMAGED;
}

enum codec_result source_open(const struct av_server *server, const struct av_request *r,
                              uint8_t *out, struct av_stream **ret)
{
        static const struct av_stream_ops ops = { feed, next, refuse, refuse };
        static struct source s; /* a process has one */
        (void)out;
        if (r->kind != AV_SOURCE)
                return CODEC_DAMAGED;
        s = (struct source){
                .stream.ops = &ops, .url = server->url, .socket = server->socket, .flags = r->flags
        };
        s.packet = av_packet_alloc();
        if (!s.packet)
                return CODEC_NO_MEMORY;
        if (begin(&s) < 0)
                return CODEC_FORMAT;
        *ret = &s.stream;
        return CODEC_OK;
}
