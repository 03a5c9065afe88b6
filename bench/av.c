/* av CODEC PACKETS ROUNDS [TYPE[:NAME]]: decodes a stream by libavcodec called directly, over and over, on the
 * processor with one thread, or on this device of libavutil. Prints the seconds of each round and those of this
 * process's processors. Then come the seconds in which packets were sent, pictures received, and pictures fetched from
 * the device, and how many there were. Compare with bench_media, flag 4. PACKETS: packets.h. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libavcodec/avcodec.h>
#include <libavutil/hwcontext.h>

#include "packets.h"

static AVCodecContext *context;
static AVPacket *packet;
static double sending, receiving, fetching;
static unsigned pictures;

static void check(int r, const char *what)
{
        if (r >= 0)
                return;
        fprintf(stderr, "%s: %d\n", what, r);
        exit(1);
}

static void open_decoder(const char *name, const char *device)
{
        char type[16] = "";
        AVBufferRef *opened = NULL;
        const AVCodec *codec = avcodec_find_decoder_by_name(name);
        context = codec ? avcodec_alloc_context3(codec) : NULL;
        packet = av_packet_alloc();
        check(context && packet ? 0 : -1, "avcodec_alloc_context3");
        context->thread_count = 1;
        size_t n = strcspn(device, ":");
        if (n && n < sizeof(type)) {
                memcpy(type, device, n);
                check(av_hwdevice_ctx_create(&opened, av_hwdevice_find_type_by_name(type),
                                             device[n] ? device + n + 1 : NULL, NULL, 0),
                      "av_hwdevice_ctx_create");
                context->hw_device_ctx = opened;
        }
        check(avcodec_open2(context, codec, NULL), "avcodec_open2");
}

static void take_all(void)
{
        for (;;) {
                AVFrame *f = av_frame_alloc(), *copy = av_frame_alloc();
                double begin = seconds(CLOCK_MONOTONIC);
                int r = avcodec_receive_frame(context, f);
                double middle = seconds(CLOCK_MONOTONIC);
                receiving += middle - begin;
                if (r >= 0 && f->hw_frames_ctx)
                        check(av_hwframe_transfer_data(copy, f, 0), "av_hwframe_transfer_data");
                fetching += seconds(CLOCK_MONOTONIC) - middle;
                pictures += r >= 0;
                av_frame_free(&copy);
                av_frame_free(&f);
                if (r < 0)
                        return;
        }
}

static void send(const uint8_t *bytes, uint32_t size)
{
        double begin = seconds(CLOCK_MONOTONIC);
        if (bytes) {
                check(av_new_packet(packet, (int)size), "av_new_packet");
                memcpy(packet->data, bytes, size);
        }
        check(avcodec_send_packet(context, bytes ? packet : NULL), "avcodec_send_packet");
        av_packet_unref(packet);
        sending += seconds(CLOCK_MONOTONIC) - begin;
        take_all();
}

int main(int argc, char **argv)
{
        size_t size;
        if (argc != 4 && argc != 5)
                return 2;
        open_decoder(argv[1], argc == 5 ? argv[4] : "");
        uint8_t *bytes = read_file(argv[2], &size);
        for (int round = 0; round < atoi(argv[3]); round++) {
                double begin = seconds(CLOCK_MONOTONIC), used = seconds(CLOCK_PROCESS_CPUTIME_ID);
                sending = receiving = fetching = 0;
                pictures = 0;
                uint32_t n;
                for (size_t at = 0; at < size; at += 4 + n) {
                        memcpy(&n, bytes + at, 4);
                        send(bytes + at + 4, n);
                }
                send(NULL, 0);
                avcodec_flush_buffers(context);
                printf("%.4f %.4f %.4f %.4f %.4f %u\n", seconds(CLOCK_MONOTONIC) - begin,
                       seconds(CLOCK_PROCESS_CPUTIME_ID) - used, sending, receiving, fetching,
                       pictures);
                fflush(stdout);
        }
        return 0;
}
