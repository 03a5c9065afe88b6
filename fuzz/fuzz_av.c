/* The packets between a media device and its processes media-av and media-io. The first byte of the input is the side:
 * 0: answers of a hostile process to the device; 1: requests of a hostile session to a process, whose stream
 * is a stand-in for the libraries. Then come packets, each behind its size (a byte), as far as the struct is long. */
#include "fuzz/target.h"

#include <string.h>

#include "av/serve.h"
#include "backend/media/av_process.h"
#include "backend/media/picture.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/net/socket.h"
#include "os/passing.h"
#include "os/shared_memory.h"

enum {
        PACKETS_MAX = 32,
        SIDE = 64,
        ROOM = 64 << 10,
        FRESH = 0x80 /* in a size: with a descriptor */
};

/* Send the packets of the input. Each gets the size of its struct, with zeros behind, or a wrong size. */
static void send_packets(int socket, const uint8_t *data, size_t size, size_t wanted, int memory)
{
        for (unsigned i = 0; i < PACKETS_MAX && size; i++) {
                uint8_t packet[256] = { 0 };
                size_t n = data[0] & 0x7f, left = size - 1, most = n < left ? n : left;
                bool odd = n == 0x7f; /* a packet of a wrong size */
                memcpy(packet, data + 1, most);
                struct iovec v = { packet, odd ? most + 1 : wanted };
                int fd = data[0] & FRESH ? memory : -1;
                if (passing_send(socket, &v, 1, &fd, fd >= 0 ? 1 : 0) < 0)
                        break;
                data += 1 + most;
                size -= 1 + most;
        }
        socket_end_sending(socket);
}

/* The device, with a process that is hostile. */
static void answers(const uint8_t *data, size_t size, const struct av_request *open)
{
        int pair[2];
        struct av_process p;
        struct av_reply r;
        fuzz_check(socket_pair_packets(pair));
        send_packets(pair[1], data, size, sizeof(r), -1);
        enum codec_result result = av_process_adopt(pair[0], -1, open, &p);
        fuzz_check(result <= CODEC_OK && result >= CODEC_LOST);
        if (result == CODEC_OK) {
                static const enum av_kind kinds[] = { AV_FEED, AV_NEXT, AV_FLUSH, AV_NEXT };
                for (unsigned i = 0; i < PACKETS_MAX && result != CODEC_LOST; i++) {
                        const struct av_request q = { .kind = kinds[i % array_size(kinds)],
                                                      .size = 1 };
                        result = av_process_call(&p, &q, &r);
                        fuzz_check(result <= CODEC_NONE && result >= CODEC_LOST);
                        if (result != CODEC_OK || q.kind != AV_NEXT) {
                                fuzz_check(result == CODEC_LOST || !r.size);
                                continue;
                        }
                        fuzz_check(r.size && r.size <= open->out_room);
                        uint8_t *copy = malloc((size_t)r.size);
                        fuzz_check(copy);
                        if (open->kind == AV_DECODER) {
                                fuzz_check((uint64_t)r.width * r.height <= open->limit_pixels);
                                const struct codec_picture picture =
                                        av_reply_picture(&r, av_process_out(&p));
                                media_picture_write(copy, &picture, MEDIA_I420);
                                media_picture_write(copy, &picture, MEDIA_NV12);
                        } else {
                                memcpy(copy, av_process_out(&p), (size_t)r.size);
                        }
                        free(copy);
                }
                av_process_end(&p);
        }
        (void)file_close(pair[1]);
}

static enum codec_result feed(struct av_stream *s, const struct av_request *r, const uint8_t *data)
{
        uint8_t sum = 0;
        (void)s;
        for (uint64_t i = 0; i < r->size; i++)
                sum = (uint8_t)(sum + data[i]);
        return sum ? CODEC_DAMAGED : CODEC_OK;
}

static enum codec_result next(struct av_stream *s, uint8_t *to, uint64_t room, struct av_reply *ret)
{
        (void)s;
        memset(to, 1, (size_t)room);
        ret->size = room;
        return CODEC_OK;
}

static enum codec_result agree(struct av_stream *s)
{
        (void)s;
        return CODEC_OK;
}

static enum codec_result open_stream(const struct av_server *server, const struct av_request *r,
                                     uint8_t *out, struct av_stream **ret)
{
        static const struct av_stream_ops ops = { feed, next, agree, agree };
        static struct av_stream stream = { &ops };
        (void)server;
        (void)out;
        fuzz_check(r->kind != AV_DECODER || r->out_room >= av_decoded_max(r->limit_pixels));
        fuzz_check(r->in_room + r->out_room <= ROOM);
        fuzz_check((r->kind != AV_SOURCE && r->kind != AV_SINK) ||
                   memchr(r->name, 0, sizeof(r->name)));
        fuzz_check((r->kind != AV_ENCODER && r->kind != AV_SINK) ||
                   (uint64_t)r->width * r->height <= r->limit_pixels);
        fuzz_check(r->kind != AV_SINK || r->codec != AV_RAW ||
                   r->in_room >= av_picture_size(r->width, r->height, AV_I420));
        *ret = &stream;
        return CODEC_OK;
}

/* A process, with a session that is hostile. */
static void requests(const uint8_t *data, size_t size)
{
        const struct av_server server = { .open = open_stream };
        int pair[2], memory = shared_memory_new(ROOM);
        fuzz_check(memory >= 0 && socket_pair_packets(pair));
        send_packets(pair[1], data, size, sizeof(struct av_request), memory);
        av_serve(pair[0], &server);
        (void)file_close(pair[0]);
        (void)file_close(pair[1]);
        (void)file_close(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct av_request open = { .kind = AV_DECODER,
                                   .threads = 1,
                                   .limit_pixels = SIDE * SIDE,
                                   .in_room = SIDE * SIDE,
                                   .out_room = av_decoder_room(SIDE * SIDE) };
        log_threshold = LOG_NONE;
        if (size && data[0] % 3 == 1) {
                requests(data + 1, size - 1);
        } else if (size) {
                open.kind = data[0] % 3 ? AV_SOURCE : AV_DECODER;
                answers(data + 1, size - 1, &open);
        }
        return 0;
}
