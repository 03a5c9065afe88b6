/* The media device: its settings, and the parameter sets that it reads before the decoders do. */
#include "support/check.h"

#include <stdio.h>
#include <string.h>

#include "backend/media/av_message.h"
#include "backend/media/kernels.h"
#include "backend/media/picture.h"
#include "backend/media/settings.h"
#include "backend/media/sink_names.h"
#include "backend/media/source_names.h"
#include "media/nal.h"

static void settings_have_defaults_and_limits(void **state)
{
        (void)state;
        struct media_settings s;
        assert_int_equal(media_settings_parse("on", &s), 0);
        assert_int_equal(s.limits.pixels, 4096 * 2304);
        assert_int_equal(s.limits.threads, 2);
        assert_int_equal(s.streams, 16);
        assert_string_equal(s.device, "");
        assert_int_equal(media_settings_parse("streams=3,size=16384x16384,threads=16", &s), 0);
        assert_int_equal(s.limits.pixels, 1 << 28);
        assert_int_equal(s.limits.threads, 16);
        assert_int_equal(s.streams, 3);
        assert_int_equal(media_settings_parse("device=vaapi:/dev/dri/renderD128,threads=3", &s), 0);
        assert_string_equal(s.device, "vaapi:/dev/dri/renderD128");
        assert_int_equal(s.limits.threads, 3);
        assert_int_equal(media_settings_parse("device=cuda", &s), 0);
        assert_string_equal(s.device, "cuda");
        static const char *const wrong[] = {
                "off",          "on,",          "on,threads=1", "threads=0",
                "threads=17",   "size=1",       "size=0x1",     "size=16385x1",
                "size=1x1x1",   "threads=",     "streams=",     "streams=-1",
                "device=",      "device=:a",    "device=cuda:", "device=/dev/dri/renderD128",
                "device=cuda,", "threads=2,,",  "size=1,x1",    "threads= 2",
                "threads",      "streams=1025", "threads=1 ",   "threads=99999999999999999999",
        };
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
                assert_int_equal(media_settings_parse(wrong[i], &s), SP_E_INVAL);
}

/* Check these values of --media-source. Returns NULL, or what is wrong. */
static const char *check_sources(size_t count, char *const *values)
{
        static char wrong[160];
        static char option[] = "--media-source", program[] = "spancld";
        char *argv[2 * MEDIA_SOURCES_MAX + 4] = { program }, *error = NULL;
        int argc = 1;
        struct config_options o;
        for (size_t i = 0; i < count; i++) {
                argv[argc++] = option;
                argv[argc++] = values[i];
        }
        assert_int_equal(config_options_parse(argc, argv, &o, &error), 0);
        bool ok = media_sources_check(&o, wrong, sizeof(wrong));
        config_options_fini(&o);
        return ok ? NULL : wrong;
}

static void sources_have_names_of_their_own(void **state)
{
        (void)state;
        static const char *const wrong[] = { "=/film",
                                             "a",
                                             "a=",
                                             "/film.mp4",
                                             "rtsp://u:secret@h/=1",
                                             "a b=/film",
                                             "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=/film" };
        char good[] = "Door_1-a=rtsp://u:p@h/=1", same[] = "Door_1-a=/film",
             other[] = "Door_1=/film";
        assert_int_equal(media_source_name(good), 8);
        assert_null(check_sources(2, (char *[]){ good, other }));
        const char *found = check_sources(3, (char *[]){ good, other, same });
        assert_non_null(found);
        assert_non_null(strstr(found, "Door_1-a"));
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                assert_int_equal(media_source_name(wrong[i]), 0);
                found = check_sources(1, (char *[]){ (char *)(uintptr_t)wrong[i] });
                assert_non_null(found);
                assert_null(strstr(found, "secret"));
        }
        static char many[MEDIA_SOURCES_MAX + 1][8];
        char *all[MEDIA_SOURCES_MAX + 1];
        for (size_t i = 0; i <= MEDIA_SOURCES_MAX; i++) {
                snprintf(many[i], sizeof(many[i]), "n%zu=/f", i % 100);
                all[i] = many[i];
        }
        assert_null(check_sources(MEDIA_SOURCES_MAX, all));
        assert_non_null(check_sources(MEDIA_SOURCES_MAX + 1, all));
}

static void sinks_have_settings_and_a_file_or_an_address(void **state)
{
        (void)state;
        struct media_sink s;
        assert_true(media_sink_parse("rec=/srv/a=b,c.mkv", &s));
        assert_string_equal(s.name, "rec");
        assert_string_equal(s.path, "/srv/a=b,c.mkv");
        assert_string_equal(s.format, "");
        assert_int_equal(s.mib, MEDIA_SINK_MIB);
        assert_int_equal(s.files, 1);
        assert_false(s.overwrite);
        assert_true(media_sink_parse("r,overwrite,mib:3,format:mpegts=file:/a", &s));
        assert_string_equal(s.url, "file:/a");
        assert_string_equal(s.path, "/a");
        assert_string_equal(s.format, "mpegts");
        assert_int_equal(s.mib, 3);
        assert_true(s.overwrite);
        assert_true(media_sink_parse("r,files:1000=/a/f%d.ts", &s));
        assert_int_equal(s.files, 1000);
        assert_true(media_sink_parse("r=/a/%d.ts", &s));
        assert_int_equal(s.files, MEDIA_SINK_FILES);
        assert_true(media_sink_parse("Live_1,format:nut=udp://h:1?a=b%d", &s));
        assert_null(s.path);
        assert_int_equal(media_sink_name("Live_1=udp://h:1"), 6);
        static const char *const wrong[] = {
                "",
                "a",
                "a=",
                "=/a",
                "a=b.ts",
                "a=file:b.ts",
                "a=file://",
                "a=/",
                "a=/b/",
                "a,=/b",
                "a,,overwrite=/b",
                "a,overwrit=/b",
                "a,overwriten=/b",
                "a,mib=/b",
                "a,mib:=/b",
                "a,mib:0=/b",
                "a,mib:-1=/b",
                "a,mib: 1=/b",
                "a,mib:1x=/b",
                "a,mib:99999999999999999999=/b",
                "a,files:2=/b",
                "a,files:1001=/b%d",
                "a,format:=/b",
                "a,format:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=/b",
                "a,overwrite=/b%d",
                "a=/%d/b",
                "a=/b%d%d",
                "a,overwrite=udp://h:1",
                "a,mib:1=udp://h:1",
                "a b=/c",
                "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa=/b",
        };
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                assert_false(media_sink_parse(wrong[i], &s));
                assert_int_equal(media_sink_name(wrong[i]), 0);
        }
}

/* A NAL unit that a test writes, bit by bit, with the bytes that keep start codes away. */
struct writer {
        uint8_t bytes[256];
        size_t size, zeros;
        unsigned bits, current;
};

static void put_bits(struct writer *w, unsigned count, uint64_t value)
{
        while (count--) {
                w->current = w->current << 1 | (value >> count & 1);
                if (++w->bits < 8)
                        continue;
                if (w->zeros >= 2 && w->current <= 3) {
                        w->bytes[w->size++] = 3;
                        w->zeros = 0;
                }
                w->bytes[w->size++] = (uint8_t)w->current;
                w->zeros = w->current ? 0 : w->zeros + 1;
                w->bits = w->current = 0;
        }
}

static void put_number(struct writer *w, uint64_t value)
{
        unsigned length = 64 - (unsigned)__builtin_clzll(value + 1);
        put_bits(w, length - 1, 0);
        put_bits(w, length, value + 1);
}

static struct nal end(struct writer *w)
{
        put_bits(w, 8 - w->bits, 1u << (7 - w->bits));
        return (struct nal){ w->bytes, w->size };
}

static struct codec_limits limits = { .threads = 1, .pixels = 4096 * 2304 };

static enum codec_result check_h264(uint64_t width, uint64_t height, unsigned chroma, unsigned bits)
{
        struct writer w = { 0 };
        put_bits(&w, 32, 0x67640028);
        put_number(&w, 0);
        put_number(&w, chroma);
        put_number(&w, bits - 8);
        put_number(&w, bits - 8);
        put_bits(&w, 3, 3); /* a scaling matrix, whose first list ends at once */
        put_number(&w, 16);
        put_bits(&w, 7, 0);
        put_number(&w, 0);
        put_number(&w, 1); /* order: with a cycle of two */
        put_bits(&w, 1, 0);
        for (unsigned i = 0; i < 2; i++)
                put_number(&w, 5);
        put_number(&w, 2);
        for (unsigned i = 0; i < 2; i++)
                put_number(&w, 70000);
        put_number(&w, 4);
        put_bits(&w, 1, 0);
        put_number(&w, width / 16 - 1);
        put_number(&w, height / 16 - 1);
        put_bits(&w, 1, 1);
        struct nal n = end(&w);
        enum codec_result r = nal_check_h264(&n, &limits, 8);
        for (n.size = 1; r == CODEC_OK && n.size < 12; n.size++)
                assert_int_equal(nal_check_h264(&n, &limits, 8), CODEC_DAMAGED);
        return r;
}

static void sizes_of_h264_are_read_before_memory_is_spent(void **state)
{
        (void)state;
        assert_int_equal(check_h264(4096, 2304, 1, 8), CODEC_OK);
        assert_int_equal(check_h264(4096, 2320, 1, 8), CODEC_TOO_LARGE);
        assert_int_equal(check_h264(65536, 65536, 1, 8), CODEC_TOO_LARGE);
        assert_int_equal(check_h264((uint64_t)16 << 31, 16, 1, 8), CODEC_TOO_LARGE);
        assert_int_equal(check_h264(64, 64, 3, 8), CODEC_FORMAT);
        assert_int_equal(check_h264(64, 64, 1, 10), CODEC_FORMAT);
        /* Its order of output may be another than that of decoding: the other decoder's. */
        limits.other = true;
        assert_int_equal(check_h264(64, 64, 1, 8), CODEC_FORMAT);
        limits.other = false;
        /* Slices of types P and B. */
        assert_int_equal(
                nal_check_h264(&(struct nal){ (const uint8_t[]){ 0x41, 0xC0 }, 2 }, &limits, 8),
                CODEC_OK);
        assert_int_equal(
                nal_check_h264(&(struct nal){ (const uint8_t[]){ 0x41, 0xA0 }, 2 }, &limits, 8),
                CODEC_FORMAT);
}

static enum codec_result check_hevc(uint64_t width, uint64_t height, unsigned chroma, unsigned bits)
{
        struct writer w = { 0 };
        put_bits(&w, 16, 0x4201);
        put_bits(&w, 8, 0x05); /* three layers of time */
        put_bits(&w, 48, 0);
        put_bits(&w, 48, 0);
        put_bits(&w, 16,
                 0xE000); /* the first one has a profile and a level, the second a profile */
        put_bits(&w, 48, 0);
        put_bits(&w, 48, 0);
        put_bits(&w, 44, 0);
        put_bits(&w, 44, 0);
        put_number(&w, 0);
        put_number(&w, chroma);
        put_number(&w, width);
        put_number(&w, height);
        put_bits(&w, 1, 1);
        for (unsigned i = 0; i < 4; i++)
                put_number(&w, 1);
        put_number(&w, bits - 8);
        put_number(&w, bits - 8);
        struct nal n = end(&w);
        enum codec_result r = nal_check_hevc(&n, &limits, 16);
        for (n.size = 1; r == CODEC_OK && n.size < 40; n.size++)
                assert_int_equal(nal_check_hevc(&n, &limits, 16), CODEC_DAMAGED);
        return r;
}

static void sizes_of_hevc_are_read_before_memory_is_spent(void **state)
{
        (void)state;
        assert_int_equal(check_hevc(4096, 2304, 1, 8), CODEC_OK);
        assert_int_equal(check_hevc(4096, 2304, 1, 16), CODEC_OK);
        assert_int_equal(check_hevc(4096, 2305, 1, 8), CODEC_TOO_LARGE);
        assert_int_equal(check_hevc(65536, 65536, 1, 8), CODEC_TOO_LARGE);
        assert_int_equal(check_hevc(0, 16, 1, 8), CODEC_DAMAGED);
        assert_int_equal(check_hevc(64, 64, 0, 8), CODEC_FORMAT);
        assert_int_equal(check_hevc(64, 64, 1, 17), CODEC_FORMAT);
}

static void units_begin_behind_start_codes(void **state)
{
        (void)state;
        static const uint8_t bytes[] = { 9, 0, 0, 0, 1, 7, 8, 0, 0, 0, 0, 1, 0, 0, 1, 5, 0, 0, 1 };
        const uint8_t *at = bytes;
        size_t size = sizeof(bytes);
        struct nal n;
        assert_true(nal_next(&at, &size, &n));
        assert_int_equal(n.size, 2);
        assert_int_equal(n.data[0], 7);
        assert_true(nal_next(&at, &size, &n));
        assert_int_equal(n.size, 1);
        assert_int_equal(n.data[0], 5);
        assert_false(nal_next(&at, &size, &n));
        size = 2;
        assert_false(nal_next(&at, &size, &n));
}

static const struct av_request encoder = { .kind = AV_ENCODER,
                                           .width = 64,
                                           .height = 48,
                                           .rate = 25,
                                           .threads = 1,
                                           .limit_pixels = 64 * 48,
                                           .in_room = 64 * 48 * 3 / 2,
                                           .out_room = 64 * 48 * 4 };

static void requests_of_a_session_are_checked(void **state)
{
        (void)state;
        static const struct {
                size_t place;
                uint32_t value;
                enum codec_result result;
        } changes[] = {
                { offsetof(struct av_request, kind), AV_KINDS, CODEC_DAMAGED },
                { offsetof(struct av_request, kind), UINT32_MAX, CODEC_DAMAGED },
                { offsetof(struct av_request, kind), AV_FEED, CODEC_DAMAGED },
                { offsetof(struct av_request, kind), AV_NEXT, CODEC_DAMAGED },
                { offsetof(struct av_request, codec), AV_ENCODERS, CODEC_DAMAGED },
                { offsetof(struct av_request, width), 0, CODEC_DAMAGED },
                { offsetof(struct av_request, width), 65, CODEC_TOO_LARGE },
                { offsetof(struct av_request, height), UINT32_MAX, CODEC_TOO_LARGE },
                { offsetof(struct av_request, pixels), AV_PIXELS, CODEC_DAMAGED },
                { offsetof(struct av_request, pixels), AV_RGBA, CODEC_DAMAGED }, /* in_room */
                { offsetof(struct av_request, rate), 0, CODEC_DAMAGED },
                { offsetof(struct av_request, rate), AV_RATE_MAX + 1, CODEC_DAMAGED },
                { offsetof(struct av_request, kbits), AV_KBITS_MAX + 1, CODEC_DAMAGED },
                { offsetof(struct av_request, quality), AV_QUALITY_MAX + 1, CODEC_DAMAGED },
                { offsetof(struct av_request, threads), 0, CODEC_DAMAGED },
                { offsetof(struct av_request, threads), AV_THREADS_MAX + 1, CODEC_DAMAGED },
                { offsetof(struct av_request, limit_pixels), 0, CODEC_DAMAGED },
                { offsetof(struct av_request, limit_pixels), UINT32_MAX, CODEC_DAMAGED },
        };
        assert_int_equal(av_request_check(&encoder, false), CODEC_OK);
        assert_int_equal(av_request_check(&encoder, true), CODEC_DAMAGED);
        for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
                struct av_request r = encoder;
                memcpy((char *)&r + changes[i].place, &changes[i].value, 4);
                assert_int_equal(av_request_check(&r, false), changes[i].result);
        }
        struct av_request r = encoder;
        r.in_room--;
        assert_int_equal(av_request_check(&r, false), CODEC_DAMAGED);
        r.in_room = UINT64_MAX;
        assert_int_equal(av_request_check(&r, false), CODEC_DAMAGED);
        r = encoder;
        r.out_room = UINT64_MAX;
        assert_int_equal(av_request_check(&r, false), CODEC_DAMAGED);
        r.kind = AV_FEED;
        assert_int_equal(av_request_check(&r, true), CODEC_OK);
        /* A decoder's part of the memory has room for a picture that libavcodec has elsewhere. */
        r = encoder;
        r.kind = AV_DECODER;
        r.out_room = av_decoded_max(r.limit_pixels);
        assert_int_equal(av_request_check(&r, false), CODEC_OK);
        r.out_room--;
        assert_int_equal(av_request_check(&r, false), CODEC_DAMAGED);
        r.limit_pixels = AV_PIXELS_MAX;
        r.out_room = av_decoder_room(AV_PIXELS_MAX);
        assert_int_equal(av_request_check(&r, false), CODEC_OK);
        r.out_room++;
        assert_int_equal(av_request_check(&r, false), CODEC_DAMAGED);
}

static void sinks_of_a_session_are_checked(void **state)
{
        (void)state;
        const struct av_request good = { .kind = AV_SINK,
                                         .codec = AV_RAW,
                                         .width = 64,
                                         .height = 48,
                                         .rate = 25,
                                         .threads = 1,
                                         .limit_pixels = 64 * 48,
                                         .in_room = 64 * 48 * 3 / 2,
                                         .out_room = 1,
                                         .name = "rec" };
        struct av_request r = good;
        assert_int_equal(av_request_check(&r, false), CODEC_OK);
        assert_int_equal(av_request_check(&r, true), CODEC_DAMAGED);
        r.rate = 0;
        assert_int_equal(av_request_check(&r, false), CODEC_OK);
        r.rate = AV_RATE_MAX + 1;
        assert_int_equal(av_request_check(&r, false), CODEC_DAMAGED);
        r = good;
        r.in_room--;
        assert_int_equal(av_request_check(&r, false), CODEC_DAMAGED);
        r = good;
        r.width = 65;
        assert_int_equal(av_request_check(&r, false), CODEC_TOO_LARGE);
        r.width = 0;
        assert_int_equal(av_request_check(&r, false), CODEC_DAMAGED);
        for (r.codec = 1; r.codec <= MEDIA_CODECS_MAX; r.codec++)
                assert_int_equal(av_request_check(&r, false), CODEC_OK);
        assert_int_equal(av_request_check(&r, false), CODEC_DAMAGED);
        r.codec = 0;
        assert_int_equal(av_request_check(&r, false), CODEC_DAMAGED);
        r = good;
        memset(r.name, 'a', sizeof(r.name));
        assert_int_equal(av_request_check(&r, false), CODEC_DAMAGED);
        memset(r.name, 0, sizeof(r.name));
        assert_int_equal(av_request_check(&r, false), CODEC_DAMAGED);
}

static void answers_of_a_process_are_checked(void **state)
{
        (void)state;
        struct av_request decoder = encoder;
        decoder.kind = AV_DECODER;
        struct av_reply r = { .size = encoder.out_room };
        assert_int_equal(av_reply_check(&r, AV_NEXT, &encoder), CODEC_OK);
        r.size++;
        assert_int_equal(av_reply_check(&r, AV_NEXT, &encoder), CODEC_LOST);
        r.size = 0;
        assert_int_equal(av_reply_check(&r, AV_NEXT, &encoder), CODEC_LOST);
        r = (struct av_reply){ .width = 64,
                               .height = 48,
                               .bits = 8,
                               .size = 64 * 48 * 3 / 2,
                               .strides = { 64, 32, 32 } };
        assert_int_equal(av_reply_check(&r, AV_NEXT, &decoder), CODEC_OK);
        for (unsigned i = 0; i < 6; i++) {
                struct av_reply bad = r;
                *(uint32_t *[]){ &bad.width, &bad.height, &bad.bits }[i % 3] +=
                        i < 3 ? 1 : UINT32_MAX / 2;
                assert_int_equal(av_reply_check(&bad, AV_NEXT, &decoder), CODEC_LOST);
        }
        /* Other answers have no bytes. */
        r = (struct av_reply){ .size = 1 };
        for (unsigned kind = 0; kind < AV_KINDS; kind++)
                if (kind != AV_NEXT)
                        assert_int_equal(av_reply_check(&r, kind, &encoder), CODEC_LOST);
        r.result = CODEC_NONE;
        assert_int_equal(av_reply_check(&r, AV_NEXT, &encoder), CODEC_LOST);
        r.size = 0;
        assert_int_equal(av_reply_check(&r, AV_NEXT, &encoder), CODEC_OK);
        /* Rooms hold the largest that passes. */
        static const unsigned sides[][2] = { { 1, 1 }, { 1, 7 }, { 9, 1 }, { 3, 3 }, { 64, 48 } };
        for (size_t i = 0; i < sizeof(sides) / sizeof(sides[0]); i++)
                assert_true(media_picture_size(sides[i][0], sides[i][1], 16) <=
                            av_decoded_max(sides[i][0] * sides[i][1]));
}

/* Check an answer with one plane changed. */
static enum codec_result check_plane(const struct av_reply *r, const struct av_request *open,
                                     unsigned plane, uint64_t begin, uint32_t stride)
{
        struct av_reply changed = *r;
        changed.planes[plane] = begin;
        changed.strides[plane] = stride;
        return av_reply_check(&changed, AV_NEXT, open);
}

static void planes_of_a_process_lie_in_its_memory(void **state)
{
        (void)state;
        enum { WIDTH = 37, HEIGHT = 21, HALF = 19, ROWS = 11 };
        for (unsigned bits = 8; bits <= 12; bits += 4)
                for (unsigned pairs = 0; pairs < 2; pairs++) {
                        const unsigned sample = bits > 8 ? 2 : 1;
                        const struct av_request open = { .kind = AV_DECODER,
                                                         .limit_pixels = WIDTH * HEIGHT,
                                                         .out_room = 8 * WIDTH * HEIGHT };
                        const unsigned row = WIDTH * sample, half = HALF * sample * (pairs + 1);
                        const struct av_reply r = {
                                .width = WIDTH,
                                .height = HEIGHT,
                                .bits = bits,
                                .flags = pairs ? AV_INTERLEAVED : 0,
                                .size = media_picture_size(WIDTH, HEIGHT, bits),
                                .strides = { row, half, pairs ? 0 : half },
                        };
                        assert_int_equal(av_reply_check(&r, AV_NEXT, &open), CODEC_OK);
                        for (unsigned plane = 0; plane < 3 - pairs; plane++) {
                                const uint32_t stride = r.strides[plane];
                                const uint64_t rows = plane ? ROWS : HEIGHT;
                                const uint64_t last = open.out_room - rows * stride;
                                const uint32_t widest =
                                        (uint32_t)((open.out_room - stride) / (rows - 1));
                                const struct {
                                        uint64_t begin;
                                        uint32_t stride;
                                        enum codec_result result;
                                } all[] = {
                                        { last, stride, CODEC_OK },
                                        { last + 1, stride, CODEC_LOST },
                                        { UINT64_MAX, stride, CODEC_LOST },
                                        { UINT64_MAX - rows * stride + 1, stride, CODEC_LOST },
                                        { 0, stride - 1, CODEC_LOST },
                                        { 0, 0, CODEC_LOST },
                                        { 0, widest, CODEC_OK },
                                        { 0, widest + 1, CODEC_LOST },
                                        { last, stride + 1, CODEC_LOST },
                                        { 0, UINT32_MAX, CODEC_LOST },
                                        { UINT64_MAX, UINT32_MAX, CODEC_LOST },
                                };
                                for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                                        assert_int_equal(check_plane(&r, &open, plane, all[i].begin,
                                                                     all[i].stride),
                                                         all[i].result);
                        }
                        /* Samples end where their bytes do. */
                        struct av_reply shifted = r;
                        shifted.shift = sample == 2 ? 16 - bits : 0;
                        assert_int_equal(av_reply_check(&shifted, AV_NEXT, &open), CODEC_OK);
                        shifted.shift++;
                        assert_int_equal(av_reply_check(&shifted, AV_NEXT, &open), CODEC_LOST);
                        shifted.shift = UINT32_MAX;
                        assert_int_equal(av_reply_check(&shifted, AV_NEXT, &open), CODEC_LOST);
                }
}

/* The sample at a place of a plane of a picture. */
static unsigned sample_of(unsigned plane, unsigned x, unsigned y, unsigned bits)
{
        return (plane * 71 + x * 13 + y * 29) * 2654435761u >> (32 - bits);
}

static unsigned get_sample(const uint8_t *row, size_t at, unsigned bits)
{
        return bits > 8 ? row[2 * at] | row[2 * at + 1] << 8 : row[at];
}

/* Make a picture with gaps of `gap` bytes behind its rows, and check how it is written. */
static void check_written(unsigned width, unsigned height, const struct codec_picture *what,
                          unsigned gap, enum media_format format)
{
        static uint8_t from[3][1 << 14], to[1 << 14];
        const unsigned bits = what->bits, size = bits > 8 ? 2 : 1;
        const unsigned half = (width + 1) / 2, rows = (height + 1) / 2;
        struct codec_picture p = *what;
        p.width = width;
        p.height = height;
        memset(from, 0xee, sizeof(from));
        memset(to, 0xdd, sizeof(to));
        for (unsigned plane = 0; plane < 3; plane++) {
                const bool pairs = plane && p.interleaved;
                const unsigned in = pairs ? 1 : plane, count = plane ? half : width;
                p.planes[in] = from[in];
                p.strides[in] = count * size * (pairs ? 2 : 1) + gap;
                for (unsigned y = 0; y < (plane ? rows : height); y++)
                        for (unsigned x = 0; x < count; x++) {
                                unsigned v = sample_of(plane, x, y, bits) << p.shift;
                                size_t at =
                                        y * p.strides[in] + (pairs ? 2 * x + plane - 1 : x) * size;
                                assert_true(at + size <= sizeof(from[in]));
                                from[in][at] = (uint8_t)v;
                                if (size > 1)
                                        from[in][at + 1] = (uint8_t)(v >> 8);
                        }
        }
        const size_t end = media_picture_size(width, height, bits);
        assert_true(end < sizeof(to));
        media_picture_write(to, &p, format);
        assert_int_equal(to[end], 0xdd);
        const uint8_t *chroma = to + (size_t)width * height * size;
        for (unsigned y = 0; y < height; y++)
                for (unsigned x = 0; x < width; x++)
                        assert_int_equal(get_sample(to, (size_t)y * width + x, bits),
                                         sample_of(0, x, y, bits));
        for (unsigned plane = 1; plane < 3; plane++)
                for (unsigned y = 0; y < rows; y++)
                        for (unsigned x = 0; x < half; x++) {
                                size_t at = (size_t)y * half + x;
                                at = format == MEDIA_NV12 ? 2 * at + plane - 1
                                                          : at + (plane - 1) * half * rows;
                                assert_int_equal(get_sample(chroma, at, bits),
                                                 sample_of(plane, x, y, bits));
                        }
}

static void pictures_of_all_layouts_are_written_exactly(void **state)
{
        (void)state;
        static const struct codec_picture all[] = {
                { .bits = 8 },
                { .bits = 8, .interleaved = true }, /* NV12 */
                { .bits = 10 },
                { .bits = 14, .interleaved = true },
                { .bits = 10, .shift = 6 },
                { .bits = 10, .shift = 6, .interleaved = true }, /* P010 */
                { .bits = 12, .shift = 4, .interleaved = true }, /* P012 */
                { .bits = 16, .interleaved = true },             /* P016 */
        };
        static const unsigned sides[][2] = { { 1, 1 }, { 2, 1 }, { 37, 21 }, { 64, 48 }, { 1, 7 } };
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                for (size_t k = 0; k < sizeof(sides) / sizeof(sides[0]); k++)
                        for (unsigned gap = 0; gap <= 17; gap += 17)
                                for (unsigned f = MEDIA_I420; f <= MEDIA_NV12; f++)
                                        check_written(sides[k][0], sides[k][1], &all[i], gap,
                                                      (enum media_format)f);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(settings_have_defaults_and_limits),
                cmocka_unit_test(sources_have_names_of_their_own),
                cmocka_unit_test(sinks_have_settings_and_a_file_or_an_address),
                cmocka_unit_test(requests_of_a_session_are_checked),
                cmocka_unit_test(sinks_of_a_session_are_checked),
                cmocka_unit_test(answers_of_a_process_are_checked),
                cmocka_unit_test(planes_of_a_process_lie_in_its_memory),
                cmocka_unit_test(pictures_of_all_layouts_are_written_exactly),
                cmocka_unit_test(units_begin_behind_start_codes),
                cmocka_unit_test(sizes_of_h264_are_read_before_memory_is_spent),
                cmocka_unit_test(sizes_of_hevc_are_read_before_memory_is_spent),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
