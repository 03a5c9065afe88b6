#include "av/io/sink.h"

#include <errno.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavcodec/bsf.h>
#include <libavformat/avformat.h>
#include <libavutil/imgutils.h>

#include "av/io/codecs.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/poll.h"
#include "os/signals.h"
#include "sandbox/sandbox.h"

#define LOG "media-io"

enum {
        OPEN_S = 30,
        WAIT_S = 5, /* for a receiver that takes nothing */
        MS = 1000000,
        BUFFER = 64 << 10,
        /* Room for a unit in an index, and for the rest behind the last unit. */
        EACH = 64,
        SPARE = 16 << 10,
};

struct sink {
        struct av_stream stream;
        const struct av_output *output;
        const char *url;
        int socket;
        struct av_request open;
        AVFormatContext *context; /* NULL: it is complete */
        AVPacket *packet;
        bool begun;                     /* the header was written */
        bool failing;                   /* libavformat could not write; the log says so */
        uint64_t units, bytes, last_ms; /* written units, and their bytes */
        uint64_t at, end;               /* of the file */
        uint64_t deadline_ns;           /* for libavformat's waiting */
};

static struct sink the_sink; /* a process has one */

/* ---- outputs -------------------------------------------------------------------------------- */

static bool is_prefix(const char *prefix, const char *text)
{
        return !strncmp(prefix, text, strlen(prefix));
}

static const AVOutputFormat *find_format(const char *format, const char *url)
{
        static const struct {
                const char *scheme, *format;
        } usual[] = { { "udp://", "mpegts" }, { "tcp://", "mpegts" }, { "srt://", "mpegts" },
                      { "rtp://", "rtp" },    { "rtsp://", "rtsp" },  { "rtsps://", "rtsp" },
                      { "rtmp://", "flv" },   { "rtmps://", "flv" } };
        for (size_t i = 0; !*format && i < array_size(usual); i++)
                if (is_prefix(usual[i].scheme, url))
                        format = usual[i].format;
        return *format ? av_guess_format(format, NULL, NULL) : av_guess_format(NULL, url, NULL);
}

bool sink_has_format(const char *format, const char *url)
{
        return find_format(format, url) != NULL;
}

/* Return true if libavformat must stop waiting: its time is over, or nobody waits for it any more. */
static int is_late(void *user)
{
        const struct sink *s = user;
        struct pollfd p = { .fd = s->socket };
        return clock_now_ns() > s->deadline_ns || (poll(&p, 1, 0) > 0 && p.revents & POLLHUP);
}

static int write_file(void *user, uint8_t *data, int size)
{
        struct sink *s = user;
        uint64_t n = size > 0 ? (uint64_t)size : 0;
        if (s->at + n > s->output->bytes_max)
                return AVERROR(EFBIG);
        if (!file_write_all(s->output->file, data, n))
                return AVERROR(errno);
        s->at += n;
        s->end = s->at > s->end ? s->at : s->end;
        return size;
}

static int64_t seek_file(void *user, int64_t offset, int whence)
{
        struct sink *s = user;
        if (whence & AVSEEK_SIZE)
                return (int64_t)s->end;
        int64_t from = whence == SEEK_CUR   ? (int64_t)s->at
                       : whence == SEEK_END ? (int64_t)s->end
                                            : 0;
        int64_t limit = (int64_t)s->output->bytes_max;
        if (offset > limit || offset < -limit || from + offset < 0 || from + offset > limit)
                return AVERROR(EINVAL);
        s->at = (uint64_t)(from + offset);
        return file_seek(s->output->file, s->at) ? (int64_t)s->at : AVERROR(errno);
}

static int open_output(struct sink *s)
{
        const AVIOInterruptCB late = { is_late, s };
        AVFormatContext *c = s->context;
        s->deadline_ns = clock_now_ns() + OPEN_S * 1000ull * MS;
        c->interrupt_callback = late;
        if (s->output->file < 0) {
                c->url = av_strdup(s->url);
                if (!c->url)
                        return AVERROR(ENOMEM);
                return c->oformat->flags & AVFMT_NOFILE
                               ? 0
                               : avio_open2(&c->pb, s->url, AVIO_FLAG_WRITE, &late, NULL);
        }
        if (c->oformat->flags & AVFMT_NOFILE) /* it would open files of its own */
                return AVERROR(EINVAL);
        uint8_t *buffer = av_malloc(BUFFER);
        c->pb = buffer ? avio_alloc_context(buffer, BUFFER, 1, s, NULL, write_file, seek_file)
                       : NULL;
        if (!c->pb) {
                av_free(buffer);
                return AVERROR(ENOMEM);
        }
        c->flags |= AVFMT_FLAG_CUSTOM_IO;
        return 0;
}

static void close_output(struct sink *s)
{
        AVFormatContext *c = s->context;
        if (c && c->flags & AVFMT_FLAG_CUSTOM_IO) {
                av_freep(&c->pb->buffer);
                avio_context_free(&c->pb);
        } else if (c && !(c->oformat->flags & AVFMT_NOFILE)) {
                (void)avio_closep(&c->pb);
        }
        avformat_free_context(c);
        s->context = NULL;
        if (s->output->file >= 0)
                (void)file_close(s->output->file);
        (void)file_close(s->output->used);
}

/* ---- units ---------------------------------------------------------------------------------- */

/* Return true if the format takes units of the codec. Formats without time stamps write any bytes. */
static bool takes(const AVOutputFormat *f, enum AVCodecID id)
{
        if (f->video_codec == AV_CODEC_ID_WRAPPED_AVFRAME) /* a picture in memory, for .y4m */
                return id == AV_CODEC_ID_RAWVIDEO && !strcmp(f->name, "yuv4mpegpipe");
        if (f->flags & AVFMT_NOTIMESTAMPS)
                return f->video_codec == id;
        return avformat_query_codec(f, id, FF_COMPLIANCE_NORMAL) != 0;
}

static int add_stream(struct sink *s)
{
        const struct av_request *r = &s->open;
        AVStream *stream = avformat_new_stream(s->context, NULL);
        if (!stream)
                return AVERROR(ENOMEM);
        AVCodecParameters *p = stream->codecpar;
        p->codec_type = AVMEDIA_TYPE_VIDEO;
        p->codec_id = codecs_id(r->codec);
        p->format = AV_PIX_FMT_YUV420P;
        p->width = (int)r->width;
        p->height = (int)r->height;
        if (r->codec == AV_RAW && s->context->oformat->video_codec == AV_CODEC_ID_WRAPPED_AVFRAME)
                p->codec_id = AV_CODEC_ID_WRAPPED_AVFRAME;
        else if (r->codec == AV_RAW)
                p->codec_tag = avcodec_pix_fmt_to_codec_tag(AV_PIX_FMT_YUV420P);
        stream->time_base = (AVRational){ 1, r->rate ? (int)r->rate : 1000 };
        if (r->rate)
                stream->avg_frame_rate = (AVRational){ (int)r->rate, 1 };
        return 0;
}

/* Find the parameter sets in the first unit, because the headers of some formats contain them. */
static int find_parameters(struct sink *s)
{
        AVCodecParameters *p = s->context->streams[0]->codecpar;
        const AVBitStreamFilter *kind = av_bsf_get_by_name("extract_extradata");
        const enum AVCodecID *id = kind ? kind->codec_ids : NULL;
        while (id && *id != AV_CODEC_ID_NONE && *id != p->codec_id)
                id++;
        if (!id || *id == AV_CODEC_ID_NONE)
                return 0;
        AVBSFContext *filter = NULL;
        AVPacket *copy = av_packet_clone(s->packet);
        size_t size = 0;
        int r = copy ? av_bsf_alloc(kind, &filter) : AVERROR(ENOMEM);
        if (r >= 0)
                r = avcodec_parameters_copy(filter->par_in, p);
        if (r >= 0)
                r = av_bsf_init(filter);
        if (r >= 0)
                r = av_bsf_send_packet(filter, copy);
        if (r >= 0)
                r = av_bsf_receive_packet(filter, copy);
        const uint8_t *found =
                r >= 0 ? av_packet_get_side_data(copy, AV_PKT_DATA_NEW_EXTRADATA, &size) : NULL;
        if (found && size < INT32_MAX) {
                p->extradata = av_mallocz(size + AV_INPUT_BUFFER_PADDING_SIZE);
                r = p->extradata ? 0 : AVERROR(ENOMEM);
                p->extradata_size = p->extradata ? (int)size : 0;
                if (p->extradata)
                        memcpy(p->extradata, found, size);
        }
        av_bsf_free(&filter);
        av_packet_free(&copy);
        bool needed = (p->codec_id == AV_CODEC_ID_H264 || p->codec_id == AV_CODEC_ID_HEVC) &&
                      s->context->oformat->flags & AVFMT_GLOBALHEADER;
        return r >= 0 && needed && !p->extradata_size ? AVERROR_INVALIDDATA : r;
}

/* Write the header, once the first unit is in `packet`. */
static int begin(struct sink *s)
{
        if (!(s->packet->flags & AV_PKT_FLAG_KEY))
                return AVERROR_INVALIDDATA;
        int r = find_parameters(s);
        if (r < 0)
                return r;
        s->context->flags |= AVFMT_FLAG_FLUSH_PACKETS;
        AVDictionary *options = NULL; /* as for sources */
        (void)av_dict_set(&options, "rtsp_flags", "prefer_tcp", 0);
        r = avformat_write_header(s->context, &options);
        av_dict_free(&options);
        s->begun = r >= 0;
        if (r < 0)
                close_output(s); /* a format may begin only once */
        return r;
}

/* Copy the unit to `packet`: the session can change it meanwhile. */
static int take_unit(struct sink *s, const struct av_request *r, const uint8_t *data)
{
        av_packet_unref(s->packet);
        int result = av_new_packet(s->packet, (int)r->size);
        if (result < 0)
                return result;
        memcpy(s->packet->data, data, (size_t)r->size);
        bool all_keys = s->open.codec == AV_RAW || codecs_id(s->open.codec) == AV_CODEC_ID_MJPEG;
        s->packet->flags = r->flags & AV_KEY || all_keys ? AV_PKT_FLAG_KEY : 0;
        return 0;
}

/* Set the time of the unit in `packet`. Decoding times have to grow. */
static void set_time(struct sink *s, const struct av_request *r)
{
        AVRational base = { 1, s->open.rate ? (int)s->open.rate : 1000 };
        AVPacket *p = s->packet;
        uint64_t time = s->units, ms = r->time_ms < UINT32_MAX ? r->time_ms : UINT32_MAX;
        if (!s->open.rate) {
                time = s->units && ms <= s->last_ms ? s->last_ms + 1 : ms;
                s->last_ms = time;
        }
        p->dts = (int64_t)time;
        p->pts = p->dts + (s->open.rate ? 0 : r->delay_ms);
        p->duration = s->open.rate ? 1 : 0;
        av_packet_rescale_ts(p, base, s->context->streams[0]->time_base);
}

/* Write the picture in `packet`. */
static int write_picture(struct sink *s)
{
        AVPacket *whole = av_packet_alloc();
        AVFrame *f = av_frame_alloc();
        int r = whole && f ? 0 : AVERROR(ENOMEM);
        if (r >= 0)
                r = av_packet_copy_props(whole, s->packet);
        if (r >= 0) {
                f->format = AV_PIX_FMT_YUV420P;
                f->width = (int)s->open.width;
                f->height = (int)s->open.height;
                r = av_image_fill_arrays(f->data, f->linesize, s->packet->data, AV_PIX_FMT_YUV420P,
                                         f->width, f->height, 1);
        }
        if (r >= 0) {
                whole->data = (uint8_t *)f;
                whole->size = sizeof(*f);
                whole->flags |= AV_PKT_FLAG_TRUSTED;
                r = av_write_frame(s->context, whole);
        }
        av_frame_free(&f);
        av_packet_free(&whole);
        return r;
}

static int write_unit(struct sink *s)
{
        const AVFormatContext *c = s->context;
        int r = c->streams[0]->codecpar->codec_id == AV_CODEC_ID_WRAPPED_AVFRAME
                        ? write_picture(s)
                        : av_write_frame(s->context, s->packet);
        return r >= 0 && c->pb && c->pb->error < 0 ? c->pb->error : r;
}

/* Return true if the unit would make the file too large. */
static bool is_full(const struct sink *s, uint64_t size)
{
        /* Some formats keep units until they have many. */
        uint64_t written = s->bytes > s->end ? s->bytes : s->end;
        return s->output->file >= 0 &&
               written + size + EACH * (s->units + 1) + SPARE > s->output->bytes_max;
}

static enum codec_result fail(struct sink *s, int error)
{
        char text[AV_ERROR_MAX_STRING_SIZE];
        if (error == AVERROR_INVALIDDATA || error == AVERROR(EINVAL))
                return CODEC_DAMAGED;
        if (error == AVERROR(ENOMEM))
                return CODEC_NO_MEMORY;
        if (!s->failing)
                log_warn(LOG, "the sink %s can't be written: %s", s->output->name,
                         error == AVERROR(EFBIG) ? "its file has reached its limit"
                         : error == AVERROR_EXIT ? "the receiver takes nothing"
                                                 : av_make_error_string(text, sizeof(text), error));
        s->failing = true;
        return CODEC_UNWRITTEN;
}

static enum codec_result feed(struct av_stream *stream, const struct av_request *r,
                              const uint8_t *data)
{
        struct sink *s = container_of(stream, struct sink, stream);
        if (!s->context)
                return CODEC_DAMAGED;
        if (s->failing || is_full(s, r->size))
                return fail(s, AVERROR(EFBIG));
        if (s->open.codec == AV_RAW &&
            r->size != av_picture_size(s->open.width, s->open.height, AV_I420))
                return CODEC_DAMAGED;
        /* Formats without an AVIOContext, such as RTSP, connect when they begin. */
        bool opening = !s->begun && !s->context->pb;
        s->deadline_ns = clock_now_ns() + (opening ? OPEN_S : WAIT_S) * 1000ull * MS;
        int result = take_unit(s, r, data);
        if (result >= 0 && !s->begun)
                result = begin(s);
        if (result >= 0) {
                set_time(s, r);
                result = write_unit(s);
        }
        av_packet_unref(s->packet);
        if (result < 0) {
                enum codec_result reason = fail(s, result);
                return reason == CODEC_UNWRITTEN && opening && !s->begun ? CODEC_FORMAT : reason;
        }
        s->units++;
        s->bytes += r->size;
        return CODEC_OK;
}

/* ---- the end -------------------------------------------------------------------------------- */

static enum codec_result complete(struct av_stream *stream)
{
        struct sink *s = container_of(stream, struct sink, stream);
        int r = 0;
        if (!s->context)
                return CODEC_DAMAGED;
        s->deadline_ns = clock_now_ns() + WAIT_S * 1000ull * MS;
        if (s->begun)
                r = av_write_trailer(s->context);
        if (r >= 0 && s->context->pb) {
                avio_flush(s->context->pb);
                r = s->context->pb->error;
        }
        close_output(s);
        return r < 0 ? fail(s, r) : CODEC_OK;
}

void sink_end(void)
{
        signals_limit(AV_LIMIT_S, "a media process: a file's end takes too long\n");
        if (the_sink.context)
                (void)complete(&the_sink.stream);
}

static enum codec_result next(struct av_stream *s, uint8_t *to, uint64_t room, struct av_reply *ret)
{
        (void)s, (void)to, (void)room, (void)ret;
        return CODEC_NONE;
}

static enum codec_result refuse(struct av_stream *s)
{
        (void)s;
        return CODEC_DAMAGED;
}

enum codec_result sink_open(const struct av_server *server, const struct av_request *r,
                            uint8_t *out, struct av_stream **ret)
{
        static const struct av_stream_ops ops = { feed, next, complete, refuse };
        struct sink *s = &the_sink;
        (void)out;
        if (r->kind != AV_SINK || s->packet)
                return CODEC_DAMAGED;
        *s = (struct sink){ .stream.ops = &ops,
                            .output = server->output,
                            .url = server->url,
                            .socket = server->socket,
                            .open = *r };
        s->packet = av_packet_alloc();
        if (!s->packet)
                return CODEC_NO_MEMORY;
        if (s->output->file >= 0)
                sandbox_deny_descriptors();
        const AVOutputFormat *format = find_format(s->output->format, s->url);
        if (!format || !takes(format, codecs_id(r->codec)))
                return CODEC_FORMAT;
        if (avformat_alloc_output_context2(&s->context, format, NULL, NULL) < 0)
                return CODEC_NO_MEMORY;
        int result = open_output(s);
        if (result >= 0)
                result = add_stream(s);
        if (result < 0) {
                (void)fail(s, result);
                return CODEC_FORMAT;
        }
        *ret = &s->stream;
        return CODEC_OK;
}
