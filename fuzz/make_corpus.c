/* Writes the seeds of the fuzz targets: make_corpus FOLDER. They are committed in fuzz/corpus; run it
 * again when the schema changes. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "backend/builtin/registry.h"
#include "backend/media/av_message.h"
#include "base/mem.h"
#include "daemon/dialler/dial_message.h"
#include "proto/args.h"
#include "proto/info.h"
#include "session/hello.h"

static const char *folder;

static void need(int ok)
{
        if (!ok) {
                perror("make_corpus");
                exit(1);
        }
}

static void save(const char *target, const char *name, const struct buf *b)
{
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", folder, target);
        mkdir(path, 0777);
        snprintf(path, sizeof(path), "%s/%s/%s", folder, target, name);
        FILE *f = fopen(path, "wb");
        need(f && fwrite(b->data, 1, b->size, f) == b->size && fclose(f) == 0);
}

#define put(b, name, ...) need(wire_put_##name(b, &(struct wire_##name){ __VA_ARGS__ }) == 0)

#define ID(type, n) object_id(OBJECT_##type, n)

static void instruct(struct buf *b, unsigned id, const void *data, size_t size)
{
        need(buf_put_u64(b, id | (uint64_t)(8 + bytes_pad8(size)) << 32) == 0);
        need(buf_put_padded(b, data, size) == 0);
}

/* Objects that the samples, whose ids all end in 1, can use. */
static void prelude(struct buf *b)
{
        struct buf parts = { 0 };
        static const char names[] = "pocl.add.i32;spancl.inc.i32";
        uint64_t device = 0;
        struct wire_u64s devices = { &device, 1 };
        need(info_put(&parts, INFO_PART, names, sizeof(names) - 1) == 0);
        put(b, queue_create, .queue = ID(QUEUE, 1));
        put(b, queue_create, .queue = ID(QUEUE, 2), .device = 1, .properties = 1);
        put(b, buffer_create, .buffer = ID(BUFFER, 1), .size = 4096);
        put(b, buffer_create, .buffer = ID(BUFFER, 2), .size = 4096);
        put(b, sub_buffer_create, .buffer = ID(BUFFER, 3), .parent = ID(BUFFER, 1), .origin = 128,
            .size = 256);
        put(b, program_create, .program = ID(PROGRAM, 1), .kind = 3, .devices = devices,
            .parts = { parts.data, parts.size });
        put(b, program_build, .request = 1, .program = ID(PROGRAM, 1), .devices = devices);
        put(b, kernel_create, .kernel = ID(KERNEL, 1), .program = ID(PROGRAM, 1),
            .name = bytes_str("spancl.inc.i32"));
        buf_fini(&parts);
}

static void commands(struct buf *b)
{
        struct buf args = { 0 };
        uint64_t one = 16, waits[2] = { ID(EVENT, 10), ID(EVENT, 30) };
        uint32_t by = 7;
        static const uint8_t data[64] =
                "sixty-four bytes of data that travel as bulk on lane one, ok?";
        need(args_put(&args, &(struct arg){ 0, ARG_BUFFER, 8, NULL, ID(BUFFER, 1) }) == 0);
        need(args_put(&args, &(struct arg){ 1, ARG_VALUE, 4, &by, 0 }) == 0);
        put(b, buffer_fill, .event = ID(EVENT, 10), .queue = ID(QUEUE, 1), .buffer = ID(BUFFER, 1),
            .size = 4096, .pattern = bytes_of(data, 8));
        put(b, event_import, .event = ID(EVENT, 30));
        put(b, kernel_launch, .event = ID(EVENT, 11), .queue = ID(QUEUE, 1),
            .flags = COMMAND_NOTIFY, .kernel = ID(KERNEL, 1), .global = { &one, 1 },
            .args = { args.data, args.size }, .waits = { waits, 2 });
        put(b, event_done, .event = ID(EVENT, 30));
        put(b, buffer_write, .event = ID(EVENT, 12), .queue = ID(QUEUE, 1), .buffer = ID(BUFFER, 1),
            .size = 64, .transfer = 5);
        instruct(b, 0xFF05, data, 64);
        put(b, buffer_write, .event = ID(EVENT, 13), .queue = ID(QUEUE, 2), .buffer = ID(BUFFER, 2),
            .size = 8, .transfer = 6);
        put(b, transfer_data, .transfer = 6, .data = bytes_of(data, 8));
        put(b, buffer_read, .event = ID(EVENT, 14), .queue = ID(QUEUE, 1), .buffer = ID(BUFFER, 3),
            .size = 256, .transfer = 7, .flags = COMMAND_NOTIFY);
        put(b, buffer_copy, .event = ID(EVENT, 15), .queue = ID(QUEUE, 1), .src = ID(BUFFER, 1),
            .dst = ID(BUFFER, 1), .dst_offset = 1024, .size = 100);
        put(b, buffer_read, .event = ID(EVENT, 16), .queue = ID(QUEUE, 1), .buffer = ID(BUFFER, 1),
            .size = 512, .peer = PEER_SELF, .transfer = 8);
        put(b, buffer_write, .event = ID(EVENT, 17), .queue = ID(QUEUE, 2), .buffer = ID(BUFFER, 1),
            .size = 512, .peer = PEER_SELF, .transfer = 8);
        put(b, marker, .event = ID(EVENT, 18), .queue = ID(QUEUE, 2), .flags = COMMAND_BARRIER);
        put(b, event_watch, .event = ID(EVENT, 18));
        put(b, queue_flush, .queue = ID(QUEUE, 1));
        instruct(b, 0xFE00, NULL, 0);
        put(b, release, .object = ID(BUFFER, 1));
        buf_fini(&args);
}

static void peers(struct buf *b)
{
        put(b, peer_expect, .peer = ID(PEER, 1), .token_hi = 1, .token_lo = 2);
        put(b, peer_open, .peer = ID(PEER, 2), .host = bytes_str("host"), .port = 1);
        put(b, buffer_read, .event = ID(EVENT, 20), .queue = ID(QUEUE, 1), .buffer = ID(BUFFER, 2),
            .size = 4096, .peer = ID(PEER, 1), .transfer = 9);
        put(b, buffer_write, .event = ID(EVENT, 21), .queue = ID(QUEUE, 2), .buffer = ID(BUFFER, 2),
            .size = 16, .peer = ID(PEER, 1), .transfer = 10);
        put(b, event_subscribe, .event = ID(EVENT, 20), .peer = ID(PEER, 1));
        instruct(b, 0xFD01, NULL, 0);
        put(b, transfer_data, .transfer = 10, .data = bytes_of("0123456789abcdef", 16));
        put(b, event_done, .event = ID(EVENT, 40));
        put(b, transfer_failed, .transfer = 11, .status = -5);
        instruct(b, 0xFE00, NULL, 0);
        put(b, buffer_write, .event = ID(EVENT, 22), .queue = ID(QUEUE, 2), .buffer = ID(BUFFER, 2),
            .size = 16, .peer = ID(PEER, 1), .transfer = 12);
        put(b, peer_lost, .peer = ID(PEER, 1), .status = -5);
        put(b, transfer_reroute, .event = ID(EVENT, 22), .transfer = 13);
        put(b, transfer_data, .transfer = 13, .data = bytes_of("0123456789abcdef", 16));
}

/* A peer whose link goes through the client; frames of its lanes. */
static void relayed(struct buf *b)
{
        static const uint8_t zeros[64];
        put(b, peer_relay, .peer = ID(PEER, 1), .number = 1);
        put(b, peer_relay, .peer = ID(PEER, 2), .number = 2);
        put(b, relay_hello, .peer = ID(PEER, 1), .number = 1, .generation = 3);
        put(b, relay_hello, .peer = ID(PEER, 2), .number = 2, .generation = 1);
        put(b, relay_data, .peer = ID(PEER, 1), .data = bytes_of(zeros, sizeof(zeros)));
        put(b, relay_data, .peer = ID(PEER, 2), .lane = 1, .data = bytes_of(zeros, 8));
        put(b, relay_taken, .peer = ID(PEER, 2), .lane = 1, .size = 1);
        put(b, event_subscribe, .event = ID(EVENT, 20), .peer = ID(PEER, 2));
        put(b, peer_lost, .peer = ID(PEER, 2), .status = -5);
}

static void messages(void)
{
        struct buf b = { 0 };
        unsigned id;
        for (size_t i = 0; (id = wire_id_at(i)); i++) {
                char name[64];
                b.size = 0;
                prelude(&b);
                need(wire_sample(&b, id) == 0);
                instruct(&b, 0xFE00, NULL, 0);
                snprintf(name, sizeof(name), "sample_%s", wire_name(id));
                save("message", name, &b);
        }
        b.size = 0;
        prelude(&b);
        commands(&b);
        save("message", "commands", &b);
        b.size = 0;
        prelude(&b);
        peers(&b);
        save("message", "peers", &b);
        b.size = 0;
        relayed(&b);
        save("message", "relayed", &b);
        buf_fini(&b);
}

/* Paths that a worker asks to be connected to: what the first byte stands for (fuzz_local_path.c), and the rest. */
static void local_path(void)
{
        static const struct {
                const char *name, *path;
                uint8_t begin;
        } all[] = {
                { "right", "", 3 },
                { "longer", "/more", 3 },
                { "name", "/peers", 2 },
                { "other", "/other", 2 },
                { "dots", "/../x", 2 },
                { "link", "/spancld.aaaaaa/peers", 1 },
                { "bait", "/spancld.bbbbbb/peers", 1 },
                { "root", "/", 0 },
        };
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
                struct buf b = { 0 };
                need(buf_put(&b, &all[i].begin, 1) == 0);
                need(buf_put(&b, all[i].path, strlen(all[i].path)) == 0);
                save("local_path", all[i].name, &b);
                buf_fini(&b);
        }
}

static void frames(void)
{
        struct buf b = { 0 };
        uint8_t h[FRAME_HEADER_SIZE];
        static const struct frame kinds[] = {
                { 16, FRAME_DATA, 1, 0, 1 }, { 0, FRAME_ACK, 0, 0, 1 },
                { 40, FRAME_BULK, 0, 6, 0 }, { 72, FRAME_HELLO, 0, 0, 0 },
                { 24, FRAME_DATA, 1, 0, 0 }, { 4194304, FRAME_BULK, 0, 7, 100 },
        };
        for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
                char name[32];
                b.size = 0;
                bool bulk = kinds[i].type == FRAME_BULK;
                need(buf_put(&b, (uint8_t[]){ bulk, 100 }, 2) == 0);
                frame_put(h, &kinds[i]);
                need(buf_put(&b, h, sizeof(h)) == 0);
                put(&b, clock_query, .time_ns = i);
                put(&b, clock_query, .time_ns = i);
                snprintf(name, sizeof(name), "frame_%zu", i);
                save("frame", name, &b);
        }
        /* 40 bytes, all equal, as an LZ4 block; and one that holds fewer. */
        static const uint8_t block[] = { 0x1F, 'a', 1, 0, 15, 0x50, 'a', 'a', 'a', 'a', 'a' };
        for (uint16_t words = 5; words < 7; words++) {
                char name[32];
                b.size = 0;
                need(buf_put(&b, (uint8_t[]){ 1, 100 }, 2) == 0);
                frame_put(h,
                          &(struct frame){ sizeof(block), FRAME_BULK, words, 6, 0, FRAME_PACKED });
                need(buf_put(&b, h, sizeof(h)) == 0);
                need(buf_put(&b, block, sizeof(block)) == 0);
                snprintf(name, sizeof(name), "packed_%u", words);
                save("frame", name, &b);
        }
        buf_fini(&b);
}

static void hellos(void)
{
        struct buf b = { 0 };
        need(hello_put(&b, &(struct wire_hello){ .version_min = 1,
                                                 .version_max = 1,
                                                 .session_hi = 1,
                                                 .key_hi = 2,
                                                 .name = bytes_str("program") }) == 0);
        save("hello", "client", &b);
        b.size = 0;
        need(hello_put(&b,
                       &(struct wire_hello){
                               .version_min = 2, .version_max = 9, .role = 1, .lane = 1 }) == 0);
        save("hello", "peer", &b);
        b.size = 0;
        need(hello_put_reply(&b, &(struct wire_hello_reply){ .status = SP_E_VERSION,
                                                             .text = bytes_str("upgrade") }) == 0);
        save("hello", "reply", &b);
        b.size = 0;
        struct buf info = { 0 };
        uint8_t device[2 * WIRE_DESCRIPTION_PART] = { 1 };
        need(info_put(&info, INFO_DEVICE, device, sizeof(device)) == 0);
        need(hello_put_devices(&b, bytes_of(info.data, info.size), 2) == 0);
        save("hello", "devices", &b);
        buf_fini(&info);
        b.size = 0;
        static const char http[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
        need(buf_put(&b, http, sizeof(http)) == 0);
        save("hello", "http", &b);
        buf_fini(&b);
}

static void pairs(void)
{
        struct buf b = { 0 };
        for (unsigned i = 0; i < 6; i++) {
                char name[32];
                b.size = 0;
                for (unsigned k = 0; k < 300; k++) {
                        uint8_t byte = (uint8_t)((k * 2654435761u + i * 40503u) >> (7 + i));
                        need(buf_put(&b, &byte, 1) == 0);
                }
                snprintf(name, sizeof(name), "random_%u", i);
                save("session_pair", name, &b);
        }
        buf_fini(&b);
}

/* Bytes of the server's first frames changed: lengths, counts, ids. */
static void clients(void)
{
        struct buf b = { 0 };
        for (unsigned i = 0; i < 24; i++) {
                char name[32];
                uint8_t start[2] = { (uint8_t)(i * 37), (uint8_t)(i * 101) };
                b.size = 0;
                need(buf_put(&b, start, 2) == 0);
                for (unsigned k = 0; k < i % 4; k++) {
                        uint32_t at = i * 8 + k * 16;
                        uint8_t record[8] = { (uint8_t)at,
                                              (uint8_t)(at >> 8),
                                              0,
                                              (uint8_t)(2 * i),
                                              (uint8_t)(i * 73),
                                              0,
                                              (uint8_t)k,
                                              0 };
                        need(buf_put(&b, record, 8) == 0);
                }
                snprintf(name, sizeof(name), "change_%u", i);
                save("client", name, &b);
        }
        buf_fini(&b);
}

static void texts(void)
{
        static const char options[] =
                "-DX=1 -D NAME=<b.h> -I sub -I\"/usr/include\" -cl-fast-relaxed-math";
        static const char source[] =
                "#include \"a.h\"\n#include <b.h> // x\n/* #include \"n\" */\n"
                "# define Y \"sub/b.h\"\n#include Y\n#if X\n#inc\\\nlude NAME\n"
                "#endif\nkernel void k(void) { }\n";
        static const char *const servers[] = {
                "localhost",
                "a:7777/0,2#peer b/1 [::1]:80#[fe80::1]",
                "unix:/run/x in-process:reference",
                "host:99999",
                "host/9999999999",
                "",
        };
        struct buf b = { 0 };
        need(buf_put(&b, options, sizeof(options)) == 0);
        need(buf_put(&b, source, sizeof(source) - 1) == 0);
        save("client_include", "typical", &b);
        b.size = 0;
        need(buf_put(&b, "-I", 3) == 0);
        need(buf_put(&b, "#include <", 10) == 0);
        save("client_include", "cut", &b);
        for (size_t i = 0; i < sizeof(servers) / sizeof(servers[0]); i++) {
                char name[32];
                b.size = 0;
                need(buf_put(&b, servers[i], strlen(servers[i])) == 0);
                snprintf(name, sizeof(name), "servers_%zu", i);
                save("config", name, &b);
        }
        buf_fini(&b);
}

/* Requests to the dialler, and its answers; what the first byte stands for: fuzz_dialler.c. */
static void diallers(void)
{
        static const struct fabric_choice fabric = { .names = "efa,verbs;ofi_rxm", .named = true };
        static const struct {
                const char *name;
                struct dial_params params;
        } requests[] = {
                { "plain", { .address = "tcp:127.0.0.1:7777", .packs = true, .lane = 1 } },
                { "local_path",
                  { .address = "unix:/tmp/spancld.abcdef/peers",
                    .own_user = true,
                    .share = true } },
                { "fabric", { .address = "tls:[fd00::1]:7777", .lane = 5, .fabric = &fabric } },
                { "none", { .address = "" } },
        };
        struct buf b = { 0 };
        for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
                b.size = 0;
                need(buf_put(&b, "\0", 1) == 0);
                need(dial_request_put(&b, i, &requests[i].params) == 0);
                save("dialler", requests[i].name, &b);
        }
        for (unsigned how = 1; how < 4; how++) {
                char name[32];
                uint8_t first = (uint8_t)how;
                b.size = 0;
                need(buf_put(&b, &first, 1) == 0);
                need(dial_answer_put(&b, 1, 0, NULL) == 0);
                need(hello_put_reply(&b, &(struct wire_hello_reply){ .version = WIRE_VERSION,
                                                                     .next_seq = 1 }) == 0);
                snprintf(name, sizeof(name), "answer_%u", how);
                save("dialler", name, &b);
        }
        static const uint8_t state[88] = { 1 };
        need(buf_put(&b, state, sizeof(state)) == 0);
        save("dialler", "state", &b);
        b.size = 1;
        need(dial_answer_put(&b, 1, SP_E_REFUSED, "connection refused") == 0);
        save("dialler", "refused", &b);
        b.size = 1;
        need(dial_answer_put(&b, 1, 1, "a status that there is not") == 0);
        save("dialler", "status", &b);
        buf_fini(&b);
}

/* Put the records of a session, or of the server. */
/* A packet of fuzz_av.c; the size says whether a descriptor comes with it. */
static void put_packet(struct buf *b, const void *data, size_t size, uint8_t flags)
{
        uint8_t first = (uint8_t)(size | flags);
        need(size < 0x7f && buf_put(b, &first, 1) == 0 && buf_put(b, data, size) == 0);
}

static void av_packets(void)
{
        const struct av_request hello = { .kind = AV_HELLO, .version = AV_VERSION };
        const struct av_request opens[] = {
                { .kind = AV_DECODER,
                  .threads = 1,
                  .limit_pixels = 64,
                  .in_room = 64,
                  .out_room = 384 },
                { .kind = AV_ENCODER,
                  .width = 8,
                  .height = 8,
                  .rate = 25,
                  .threads = 1,
                  .limit_pixels = 64,
                  .in_room = 96,
                  .out_room = 384 },
                { .kind = AV_SOURCE,
                  .threads = 1,
                  .limit_pixels = 64,
                  .in_room = 1,
                  .out_room = 384,
                  .name = "film" },
                { .kind = AV_SINK,
                  .codec = AV_RAW,
                  .width = 8,
                  .height = 8,
                  .rate = 25,
                  .threads = 1,
                  .limit_pixels = 64,
                  .in_room = 96,
                  .out_room = 1,
                  .name = "film" },
        };
        static const char *const names[] = { "decoder", "encoder", "source", "sink" };
        const struct av_reply good = { 0 }, none = { .result = CODEC_NONE };
        const struct av_reply picture = {
                .width = 8,
                .height = 8,
                .bits = 8,
                .size = 96,
                .planes = { 0, 128, 256 },
                .strides = { 16, 8, 8 },
        };
        const struct av_reply pairs = {
                .width = 8,
                .height = 8,
                .bits = 10,
                .size = 192,
                .flags = AV_INTERLEAVED,
                .shift = 6,
                .planes = { 0, 128 },
                .strides = { 16, 16 },
        };
        struct buf b = { 0 };
        for (size_t i = 0; i < array_size(opens); i++) {
                b.size = 0;
                need(buf_put(&b, "\1", 1) == 0);
                put_packet(&b, &hello, sizeof(hello), 0);
                put_packet(&b, &opens[i], sizeof(opens[i]), 0x80);
                for (uint32_t kind = AV_FEED; kind <= AV_RESET; kind++)
                        put_packet(&b, &(struct av_request){ .kind = kind, .size = 64 },
                                   sizeof(hello), 0);
                save("av", names[i], &b);
        }
        for (uint8_t side = 0; side <= 2; side += 2) {
                b.size = 0;
                need(buf_put(&b, &side, 1) == 0);
                put_packet(&b, &good, sizeof(good), 0);
                put_packet(&b, &good, sizeof(good), 0);
                put_packet(&b, &picture, sizeof(picture), 0);
                put_packet(&b, &good, sizeof(good), 0);
                put_packet(&b, &pairs, sizeof(pairs), 0);
                put_packet(&b, &good, sizeof(good), 0);
                put_packet(&b, &none, sizeof(none), 0);
                save("av", side ? "units" : "pictures", &b);
        }
        buf_fini(&b);
}

static void put_session(struct buf *b)
{
        size_t mark;
        need(info_begin(b, INFO_SESSION, &mark) == 0);
        need(info_put_u64(b, INFO_SESSION_MEMORY, 4096) == 0);
        need(info_put_u64(b, INFO_SESSION_COMMANDS, 3) == 0);
        need(info_put_u64(b, INFO_SESSION_ROUND_TRIP, UINT64_MAX) == 0);
        for (uint64_t i = 0; i < 2; i++) {
                size_t inner;
                need(info_begin(b, INFO_USE, &inner) == 0);
                need(info_put_u64(b, INFO_USE_DEVICE, i * UINT64_MAX) == 0);
                need(info_put(b, INFO_USE_NAME, "gpu\x1b[2J", 7) == 0);
                need(info_put_u64(b, INFO_USE_BUSY_NS, i * 5) == 0);
                info_end(b, inner);
        }
        info_end(b, mark);
        need(info_begin(b, INFO_LINK, &mark) == 0);
        need(info_put_u64(b, INFO_LINK_PEER, 1) == 0);
        need(info_put_u64(b, INFO_LINK_BYTES_SENT, UINT64_MAX) == 0);
        need(info_put_u64(b, INFO_LINK_BULK_SENT, 7) == 0);
        info_end(b, mark);
}

static void put_server(struct buf *b)
{
        size_t mark, inner;
        need(info_begin(b, INFO_SERVER, &mark) == 0);
        need(info_put_u64(b, INFO_SERVER_SESSIONS_BEGUN, 3) == 0);
        need(info_begin(b, INFO_SERVER_REFUSED, &inner) == 0);
        need(info_put(b, INFO_SERVER_REASON, "a\"b\\c\n", 7) == 0);
        need(info_put_u64(b, INFO_SERVER_COUNT, 9) == 0);
        info_end(b, inner);
        info_end(b, mark);
        need(info_begin(b, INFO_HEALTH, &mark) == 0);
        need(info_put_u64(b, INFO_HEALTH_STATE, INFO_HEALTH_OUT_OF_SERVICE) == 0);
        need(info_put(b, INFO_HEALTH_NAME, "\"\\\x1b", 3) == 0);
        for (unsigned key = INFO_SENSOR_BUSY; key <= INFO_SENSOR_POWER; key++)
                need(info_put_u64(b, key, key % 2 ? 50 : UINT64_MAX) == 0);
        info_end(b, mark);
        need(info_begin(b, INFO_ORIGIN, &mark) == 0);
        need(info_put(b, INFO_ORIGIN_CLIENT, "alice@gpu1", 10) == 0);
        need(info_put(b, INFO_ORIGIN_FROM, "\xff\x9b", 2) == 0);
        need(info_put_u64(b, INFO_ORIGIN_AGE_NS, UINT64_MAX) == 0);
        info_end(b, mark);
}

static void put_clients(struct buf *b)
{
        size_t mark, inner;
        need(info_begin(b, INFO_ACCOUNT, &mark) == 0);
        need(info_put(b, INFO_ACCOUNT_CLIENT, "bob\"\x1b\n", 6) == 0);
        need(info_put_u64(b, INFO_ACCOUNT_SESSIONS, 3) == 0);
        need(info_put_u64(b, INFO_ACCOUNT_SESSIONS_MAX, UINT64_MAX - 1) == 0);
        for (unsigned device = 0; device < 3; device++) {
                need(info_begin(b, INFO_ACCOUNT_SHARE, &inner) == 0);
                need(info_put(b, INFO_SHARE_NAME, "\\\xff", 2) == 0);
                if (device)
                        need(info_put_u64(b, INFO_SHARE_DEVICE, device) == 0);
                for (unsigned key = INFO_SHARE_MEMORY; key <= INFO_SHARE_PAUSED; key++)
                        need(info_put_u64(b, key, key % 2 ? 50 : UINT64_MAX - 1) == 0);
                info_end(b, inner);
        }
        info_end(b, mark);
}

static const struct {
        const char *name;
        void (*fill)(struct buf *b);
} reports[] = { { "session", put_session }, { "server", put_server }, { "clients", put_clients } };

/* Input of the exporter of metrics; fuzz_metrics.c explains the first byte. */
static void metrics(void)
{
        static const char *const requests[] = {
                "GET /metrics HTTP/1.1\r\nHost: localhost:9779\r\nAccept: */*\r\n\r\n",
                "GET /metrics?x HTTP/1.0\n\n",
                "GET / HTTP/1.1\r\n\r\n",
                "POST /metrics HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc",
                "GET  /metrics HTTP/2\r\n\r\n",
                "\x16\x03\x01",
        };
        struct buf b = { 0 };
        for (size_t i = 0; i < sizeof(requests) / sizeof(requests[0]); i++) {
                char name[32];
                b.size = 0;
                need(buf_put(&b, "\0", 1) == 0);
                need(buf_put(&b, requests[i], strlen(requests[i])) == 0);
                snprintf(name, sizeof(name), "request_%zu", i);
                save("metrics", name, &b);
        }
        for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++) {
                struct buf records = { 0 };
                reports[i].fill(&records);
                b.size = 0;
                need(buf_put(&b, "\1", 1) == 0);
                need(buf_put(&b, "program \"\\\n\x9b\xff 12", 16) == 0);
                need(buf_put(&b, records.data, records.size) == 0);
                save("metrics", reports[i].name, &b);
                buf_fini(&records);
        }
        buf_fini(&b);
}

/* Answers of a server to `spancl top`; fuzz_snapshot.c explains the head. */
static void snapshots(void)
{
        for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++) {
                struct buf b = { 0 }, records = { 0 };
                reports[i].fill(&records);
                const uint8_t head[] = { 80, 4, 7, (uint8_t)records.size,
                                         (uint8_t)(records.size >> 8) };
                need(buf_put(&b, head, sizeof(head)) == 0);
                need(buf_put(&b, "prog\x1b\x9b\n", 8) == 0);
                need(buf_put(&b, records.data, records.size) == 0);
                need(buf_put(&b, head + 2, sizeof(head) - 2) == 0);
                need(buf_put(&b, "program", 8) == 0);
                need(buf_put(&b, records.data, records.size) == 0);
                save("snapshot", reports[i].name, &b);
                buf_fini(&records);
                buf_fini(&b);
        }
}

/* Records with checksums; what the bytes stand for: fuzz_records.c. */
static void records(void)
{
        static const struct {
                const char *name;
                uint8_t size, bytes[40];
        } all[] = {
                /* A real sender: how, bytes for the sender, these bytes, changes, sizes of places, portions. */
                { "as_sent", 12, { 0, 6, 3, 23, 100, 23, 199, 23, 9, 1, 60, 200 } },
                { "in_places", 12, { 2, 6, 3, 23, 200, 23, 200, 23, 9, 2, 130, 24 } },
                { "large", 12, { 0xf8, 5, 3, 23, 139, 23, 138, 9, 3, 20, 138, 139 } },
                { "large_in_places", 12, { 0xfa, 5, 3, 23, 139, 23, 138, 9, 4, 20, 138, 139 } },
                { "bit", 18, { 0, 5, 2, 23, 100, 23, 90, 0, 0, 0, 0, 0, 50, 3, 9, 5, 30, 60 } },
                { "lost", 18, { 6, 5, 2, 23, 100, 23, 90, 2, 0, 0, 0, 0, 50, 3, 9, 6, 30, 60 } },
                { "twice", 18, { 0, 5, 2, 23, 100, 23, 90, 3, 0, 0, 0, 0, 50, 3, 9, 7, 30, 60 } },
                { "cut", 18, { 4, 5, 2, 23, 100, 23, 90, 4, 0, 0, 0, 0, 50, 0, 9, 8, 30, 60 } },
                { "record_lost", 16, { 2, 5, 2, 23, 100, 23, 90, 5, 0, 1, 0, 0, 0, 9, 9, 30 } },
                { "record_twice", 16, { 2, 5, 2, 23, 100, 23, 90, 6, 0, 1, 0, 0, 0, 9, 9, 30 } },
                { "exchanged", 16, { 2, 5, 2, 23, 100, 23, 90, 7, 0, 0, 0, 0, 0, 9, 9, 30 } },
                { "false_length", 17, { 2, 5, 2, 23, 100, 23, 90, 8, 0, 1, 0, 0, 0, 0, 0, 8, 0 } },
                /* A hostile one: how, number of records, kind and size and contents of each, ... */
                { "right", 11, { 1, 2, 0, 100, 7, 0, 200, 9, 3, 60, 50 } },
                { "right_in_places", 11, { 3, 2, 0, 100, 7, 0, 200, 9, 3, 60, 50 } },
                { "largest", 8, { 0xfb, 1, 0, 141, 7, 3, 141, 141 } },
                { "empty", 11, { 1, 2, 0, 100, 7, 4, 0, 9, 0, 0, 0 } },
                { "too_large", 11, { 3, 2, 0, 100, 7, 4, 0, 9, 0, 2, 0 } },
                { "false_sum", 12, { 3, 2, 0, 100, 7, 5, 50, 9, 0, 0, 0, 1 } },
                { "false_number", 8, { 1, 1, 6, 100, 7, 1, 2, 60 } },
                { "no_records",
                  20,
                  { 1, 1, 7, 19, 'G', 'E', 'T', ' ', '/', ' ', 'H', 'T', 'T', 'P' } },
        };
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
                struct buf b = { 0 };
                need(buf_put(&b, all[i].bytes, all[i].size) == 0);
                save("records", all[i].name, &b);
                buf_fini(&b);
        }
}

/* Steps of a link over a fabric: fuzz_fabric.c. */
static void fabrics(void)
{
        static const struct {
                const char *name;
                uint8_t size, bytes[48];
        } all[] = {
                /* The first write is tried; then a large piece goes in two places. */
                { "sends", 34, { 1, 2, 7, 8, 0, 0, 0,   134, 6, 0, 0, 2, 6, 163, 5, 5, 0,
                                 6, 0, 0, 0, 2, 6, 141, 1,   1, 0, 6, 0, 0, 0,   0, 0, 0 } },
                { "receives", 22, { 0, 2,   1, 4, 1, 0, 2, 5, 163, 0, 0,
                                    1, 134, 9, 7, 5, 0, 1, 1, 1,   9, 9 } },
                { "data", 20, { 0, 2, 1, 4, 1, 0, 2, 3, 100, 0, 0, 1, 49, 1, 60, 0, 9, 8, 1, 0 } },
                { "not_ready", 16, { 0, 2, 2, 0, 0, 0, 2, 3, 100, 0, 0, 1, 49, 0, 50, 1 } },
                { "fails", 14, { 3, 1, 2, 5, 163, 0, 0, 1, 134, 1, 0, 0, 7, 1 } },
                { "long_address", 8, { 0, 2, 1, 134, 1, 0, 1, 0 } },
                { "written_to", 17, { 1, 2, 7, 8, 0, 0, 0, 134, 6, 0, 0, 2, 6, 163, 5, 5, 0 } },
                { "false_taken", 22, { 1,   2, 4, 163, 0,   0, 0, 163, 0,   0, 0,
                                       163, 0, 0, 0,   163, 0, 0, 0,   163, 0, 0 } },
                { "too_many_taken", 10, { 1, 0, 50, 2, 4, 51, 0, 0, 0, 1 } },
        };
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
                struct buf b = { 0 };
                need(buf_put(&b, all[i].bytes, all[i].size) == 0);
                save("fabric", all[i].name, &b);
                buf_fini(&b);
        }
}

/* Output of a worker to its log: fuzz_child_log.c. */
static void child_logs(void)
{
        static const struct {
                const char *name, *text;
        } all[] = {
                { "honest", "spancl[engine] warn: a limit is met\n" },
                { "other", "==7==ERROR: AddressSanitizer\r\n\nthe end" },
                { "forged",
                  "\rspancl[supervisor] warn: a\n\xe2\x80\xa8spancl[worker 8] error: b\n" },
                { "escapes", "\x1b[2K\x1b[G\x7f\xc2\x85 \xc3\xa4 \xe2\x80\xae \xf0\x9f\x98\x80\n" },
                { "stale", "x\xe2\x82\xac\nx\xe2\n\xed\xa0\x80\xc0\x80\xff\n" },
        };
        struct buf b = { 0 };
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
                b.size = 0;
                need(buf_put(&b, "\x05", 2) == 0);
                need(buf_put(&b, all[i].text, strlen(all[i].text)) == 0);
                save("child_log", all[i].name, &b);
        }
        /* More than the rate allows. */
        b.size = 0;
        need(buf_put(&b, "\x07\xff", 2) == 0);
        for (unsigned i = 0; i < 4000; i++)
                need(buf_put(&b, i % 4 ? "a" : "\n", 1) == 0);
        save("child_log", "flood", &b);
        buf_fini(&b);
}

int main(int argc, char **argv)
{
        if (argc != 2) {
                fprintf(stderr, "usage: make_corpus FOLDER\n");
                return 2;
        }
        folder = argv[1];
        mkdir(folder, 0777);
        messages();
        frames();
        hellos();
        pairs();
        clients();
        texts();
        local_path();
        av_packets();
        diallers();
        metrics();
        snapshots();
        records();
        fabrics();
        child_logs();
        return 0;
}
