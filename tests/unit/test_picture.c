/* Pictures of media-av: as decoders of the processor have them, and as devices do. */
#include "support/check.h"

#include <string.h>

#include <libavutil/hwcontext.h>

#include "av/hardware.h"
#include "av/picture.h"
#include "av/pool.h"
#include "backend/media/picture.h"
#include "base/mem.h"

enum { WIDTH = 37, HEIGHT = 21, HALF = (WIDTH + 1) / 2, ROWS = (HEIGHT + 1) / 2, PIXELS = 1 << 14 };

/* A decoder's part of the memory: pieces for frames, and room for one that lies elsewhere. */
enum { POOL = 1 << 18, ROOM = POOL + 6 * PIXELS };
static uint8_t memory[ROOM];
static struct pool pool;

/* The sample at a place of a plane. */
static unsigned sample_of(unsigned plane, unsigned x, unsigned y, unsigned bits)
{
        return (plane * 71 + x * 13 + y * 29) * 2654435761u >> (32 - bits);
}

static void put(uint8_t *row, unsigned at, unsigned sample, unsigned size)
{
        row[at * size] = (uint8_t)sample;
        if (size > 1)
                row[at * size + 1] = (uint8_t)(sample >> 8);
}

/* `pooled`: the frame lies in the memory. */
static AVFrame *frame_of(enum AVPixelFormat format, unsigned bits, unsigned shift, bool pooled)
{
        AVFrame *f = av_frame_alloc();
        unsigned size = bits > 8 ? 2 : 1;
        bool planes = picture_bits(format) != 0;
        assert_non_null(f);
        f->format = format;
        f->width = WIDTH;
        f->height = HEIGHT;
        assert_int_equal(pooled ? pool_get(&pool, f, WIDTH, HEIGHT) : av_frame_get_buffer(f, 0), 0);
        for (unsigned plane = 0; plane < 3; plane++)
                for (unsigned y = 0; y < (plane ? ROWS : HEIGHT); y++)
                        for (unsigned x = 0; x < (plane ? HALF : WIDTH); x++) {
                                unsigned to = !planes && plane ? 1 : plane;
                                unsigned at = !planes && plane ? 2 * x + plane - 1 : x;
                                put(f->data[to] + (ptrdiff_t)y * f->linesize[to], at,
                                    sample_of(plane, x, y, bits) << shift, size);
                        }
        return f;
}

/* Check the samples that the session's worker gets from this answer. */
static void check_planes(const struct av_reply *reply, unsigned bits)
{
        static uint8_t out[WIDTH * HEIGHT * 4];
        const struct codec_picture p = av_reply_picture(reply, memory);
        unsigned size = bits > 8 ? 2 : 1;
        const uint8_t *at = out;
        media_picture_write(out, &p, MEDIA_I420);
        for (unsigned plane = 0; plane < 3; plane++)
                for (unsigned y = 0; y < (plane ? ROWS : HEIGHT); y++)
                        for (unsigned x = 0; x < (plane ? HALF : WIDTH); x++, at += size)
                                assert_int_equal(size > 1 ? at[0] | at[1] << 8 : at[0],
                                                 sample_of(plane, x, y, bits));
        assert_int_equal(at - out, reply->size);
}

/* `pooled`: the answer names the frame's own memory. */
static void check(const AVFrame *f, unsigned bits, bool pooled)
{
        const struct av_request open = { .kind = AV_DECODER,
                                         .limit_pixels = PIXELS,
                                         .out_room = ROOM };
        struct av_reply reply = { 0 };
        assert_int_equal(picture_put(f, bits, PIXELS, memory, ROOM, &reply), CODEC_OK);
        assert_int_equal(av_reply_check(&reply, AV_NEXT, &open), CODEC_OK);
        assert_int_equal(reply.width, WIDTH);
        assert_int_equal(reply.height, HEIGHT);
        assert_int_equal(reply.bits, bits);
        assert_int_equal(reply.size, media_picture_size(WIDTH, HEIGHT, bits));
        assert_int_equal(memory + reply.planes[0] == f->data[0], pooled);
        assert_int_equal(reply.planes[0] == POOL, !pooled);
        check_planes(&reply, bits);
        /* One pixel too few. */
        assert_int_equal(picture_put(f, bits, WIDTH * HEIGHT - 1, memory, ROOM, &reply),
                         CODEC_TOO_LARGE);
}

static void pictures_of_all_formats_become_planes(void **state)
{
        (void)state;
        static const struct {
                enum AVPixelFormat format;
                unsigned bits, shift;
        } all[] = {
                { AV_PIX_FMT_YUV420P, 8, 0 },      { AV_PIX_FMT_YUVJ420P, 8, 0 },
                { AV_PIX_FMT_YUV420P10LE, 10, 0 }, { AV_PIX_FMT_YUV420P12LE, 12, 0 },
                { AV_PIX_FMT_NV12, 8, 0 },         { AV_PIX_FMT_P010LE, 10, 6 },
                { AV_PIX_FMT_P016LE, 12, 4 },
        };
        pool_init(&pool, memory, POOL);
        for (size_t i = 0; i < 2 * array_size(all); i++) {
                bool pooled = i % 2;
                AVFrame *f = frame_of(all[i / 2].format, all[i / 2].bits, all[i / 2].shift, pooled);
                check(f, all[i / 2].bits, pooled);
                av_frame_free(&f);
        }
}

static void pictures_that_stand_on_their_head_are_copied(void **state)
{
        (void)state;
        pool_init(&pool, memory, POOL);
        AVFrame *f = frame_of(AV_PIX_FMT_YUV420P, 8, 0, true);
        struct av_reply reply = { 0 };
        f->data[0] += (HEIGHT - 1) * f->linesize[0];
        f->linesize[0] = -f->linesize[0];
        assert_int_equal(picture_put(f, 8, PIXELS, memory, ROOM, &reply), CODEC_OK);
        assert_int_equal(reply.planes[0], POOL);
        assert_int_equal(memory[reply.planes[0]], sample_of(0, 0, HEIGHT - 1, 8));
        assert_int_equal(memory[reply.planes[2] + 1], sample_of(2, 1, 0, 8));
        av_frame_free(&f);
}

static AVFrame *piece_of(int width, int height)
{
        AVFrame *f = av_frame_alloc();
        f->format = AV_PIX_FMT_YUV420P;
        assert_int_equal(pool_get(&pool, f, width, height), 0);
        for (unsigned i = 0; i < 3; i++)
                assert_int_equal((uintptr_t)f->data[i] % 64, 0);
        memset(f->data[0], 1, (size_t)f->linesize[0] * (size_t)height);
        memset(f->data[2], 1, (size_t)f->linesize[2] * (size_t)height / 2);
        return f;
}

static bool is_piece(const AVFrame *f)
{
        return f->data[0] >= memory && f->data[0] < memory + POOL;
}

static void frames_lie_elsewhere_while_no_piece_is_free(void **state)
{
        (void)state;
        enum { SIDE = 128, PIECES = POOL / (SIDE * SIDE * 3 / 2), MORE = 2 };
        AVFrame *all[PIECES + MORE];
        unsigned count = 0;
        pool_init(&pool, memory, POOL);
        for (unsigned i = 0; i < PIECES + MORE; i++) {
                all[i] = piece_of(SIDE, SIDE);
                count += is_piece(all[i]);
                assert_int_equal(is_piece(all[i]), count == i + 1);
                assert_int_equal(all[i]->linesize[1], all[0]->linesize[1]);
        }
        assert_in_range(count, PIECES / 2, PIECES);
        /* A piece that is free serves the next frame, also a smaller one, but not a larger one. */
        uint8_t *was = all[1]->data[0];
        av_frame_free(&all[1]);
        AVFrame *large = piece_of(2 * SIDE, 2 * SIDE);
        assert_false(is_piece(large));
        all[1] = piece_of(SIDE / 2, SIDE);
        assert_ptr_equal(all[1]->data[0], was);
        av_frame_free(&large);
        for (unsigned i = 0; i < PIECES + MORE; i++)
                av_frame_free(&all[i]);
        /* Now that none is in use, pieces may have another size. */
        large = piece_of(2 * SIDE, 2 * SIDE);
        assert_true(is_piece(large));
        av_frame_free(&large);
        pool_init(&pool, memory, 0);
        large = piece_of(SIDE, SIDE);
        assert_false(is_piece(large));
        av_frame_free(&large);
}

static void pictures_of_other_formats_are_refused(void **state)
{
        (void)state;
        static const struct {
                enum AVPixelFormat format;
                unsigned bits; /* of the stream */
        } all[] = {
                { AV_PIX_FMT_YUV444P, 8 }, { AV_PIX_FMT_NV12, 10 },    { AV_PIX_FMT_P010LE, 8 },
                { AV_PIX_FMT_NV12, 0 },    { AV_PIX_FMT_YUV420P, 10 }, { AV_PIX_FMT_RGBA, 8 },
        };
        for (size_t i = 0; i < array_size(all); i++) {
                struct av_reply reply = { 0 };
                AVFrame *f = av_frame_alloc();
                f->format = all[i].format;
                f->width = WIDTH;
                f->height = HEIGHT;
                assert_int_equal(av_frame_get_buffer(f, 0), 0);
                assert_int_equal(picture_put(f, all[i].bits, PIXELS, memory, ROOM, &reply),
                                 CODEC_FORMAT);
                av_frame_free(&f);
        }
}

/* With a device of Vulkan, which decodes nothing: only the way from a device's memory is that of a device that does. */
static void pictures_of_a_device_are_fetched_and_cut(void **state)
{
        (void)state;
        enum { LEFT = 4, TOP = 2 };
        assert_false(hardware_open("toaster"));
        assert_false(hardware_open("vaapi:/nowhere"));
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        print_message("skipped: drivers are not for sanitizers\n");
        return;
#endif
        if (!hardware_open("vulkan:0")) {
                print_message("skipped: libavutil opens no device of Vulkan\n");
                return;
        }
        const AVCodec *codec = avcodec_find_decoder(AV_CODEC_ID_MJPEG);
        AVCodecContext *c = avcodec_alloc_context3(codec);
        hardware_use(c);
        assert_non_null(c->hw_device_ctx);
        AVBufferRef *frames = av_hwframe_ctx_alloc(c->hw_device_ctx);
        AVHWFramesContext *what = (void *)frames->data;
        what->format = AV_PIX_FMT_VULKAN;
        what->sw_format = AV_PIX_FMT_NV12;
        what->width = WIDTH;
        what->height = HEIGHT;
        assert_int_equal(av_hwframe_ctx_init(frames), 0);
        AVFrame *from = frame_of(AV_PIX_FMT_NV12, 8, 0, false), *f = av_frame_alloc();
        assert_int_equal(av_hwframe_get_buffer(frames, f, 0), 0);
        assert_int_equal(av_hwframe_transfer_data(f, from, 0), 0);
        pool_init(&pool, memory, POOL);
        f->crop_left = LEFT;
        f->crop_top = TOP;
        AVFrame *whole = av_frame_clone(f);
        whole->crop_left = whole->crop_top = 0;
        assert_int_equal(hardware_fetch(c, &pool, whole), 0);
        check(whole, 8, true);
        assert_int_equal(hardware_fetch(c, &pool, f), 0);
        assert_int_equal(f->format, AV_PIX_FMT_NV12);
        assert_int_equal(f->width, WIDTH - LEFT);
        assert_int_equal(f->height, HEIGHT - TOP);
        assert_int_equal(f->data[0][0], sample_of(0, LEFT, TOP, 8));
        assert_int_equal(f->data[1][1], sample_of(2, LEFT / 2, TOP / 2, 8));
        assert_int_equal(hardware_fetch(c, &pool, f), 0); /* it is there already */
        av_frame_free(&whole);
        av_frame_free(&f);
        av_frame_free(&from);
        av_buffer_unref(&frames);
        avcodec_free_context(&c);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pictures_of_all_formats_become_planes),
                cmocka_unit_test(pictures_of_other_formats_are_refused),
                cmocka_unit_test(pictures_that_stand_on_their_head_are_copied),
                cmocka_unit_test(frames_lie_elsewhere_while_no_piece_is_free),
                cmocka_unit_test(pictures_of_a_device_are_fetched_and_cut),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
