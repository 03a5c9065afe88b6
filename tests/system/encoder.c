/* encoder CODEC PICTURES WIDTH HEIGHT FORMAT KBITS QUALITY STREAM PACKETS: encodes on the first media device. PICTURES
 * has pictures of FORMAT (0: I420, 1: NV12, 2: RGBA), all of which are enqueued at once. The packets go to STREAM, one
 * behind the other, and to PACKETS, each behind its size (32 bits).
 * encoder CODEC PICTURES WIDTH HEIGHT FORMAT wrong: arguments that are wrong.
 * encoder CODEC PICTURES WIDTH HEIGHT FORMAT lost: prints a line, and expects that all processes media-av are killed
 * before it reads one; this four times.
 *
 * docs/MEDIA.md describes the kernels. Status 77: there is no such encoder. */

#include "media_program.h"

enum { STEPS_MAX = 64, FLUSH = 2, KEY = 4, KEY_AT = 7 };

static cl_kernel encode, decode; /* decode: of H.264; NULL: there is none */
static set_fn set_content;
static cl_command_queue queue;
static cl_mem state;
static size_t picture_size, room;

/* The arguments that are values. */
struct settings {
        cl_uint width, height, format, rate, kbits, quality, flags;
};

struct step {
        cl_mem picture, packet, size, status;
        cl_event done;
};

static void open_device(const char *codec)
{
        char names[1024], name[64];
        cl_int err;
        snprintf(name, sizeof(name), "org.spancl.encode.%s", codec);
        cl_program p = open_media(name, names, sizeof(names));
        encode = api_kernel(p, name);
        if (strstr(names, "org.spancl.decode.h264"))
                decode = api_kernel(p, "org.spancl.decode.h264");
        OK(clReleaseProgram(p));
        set_content = (set_fn)clGetExtensionFunctionAddressForPlatform(
                api.platform, "clSetContentSizeBufferPoCL");
        queue = clCreateCommandQueue(api.context, api.devices[media], CL_QUEUE_PROFILING_ENABLE,
                                     &err);
        OK(err);
}

/* Enqueue a command with a picture of `size` bytes, or with none, and a packet buffer of `space` bytes. */
static struct step enqueue(const uint8_t *picture, size_t size, size_t space,
                           const struct settings *s)
{
        size_t one = 1;
        const cl_uint *values = &s->width;
        struct step t = {
                .picture = picture ? buffer_of(size, picture) : NULL,
                .packet = buffer_of(space, NULL),
                .size = buffer_of(8, NULL),
                .status = buffer_of(4 * WORDS, NULL),
        };
        if (set_content)
                OK(set_content(t.packet, t.size));
        OK(clSetKernelArg(encode, 0, sizeof(cl_mem), &t.picture));
        OK(clSetKernelArg(encode, 1, sizeof(cl_mem), &t.packet));
        OK(clSetKernelArg(encode, 2, sizeof(cl_mem), &t.size));
        OK(clSetKernelArg(encode, 3, sizeof(cl_mem), &t.status));
        OK(clSetKernelArg(encode, 4, sizeof(cl_mem), &state));
        for (cl_uint i = 0; i < sizeof(*s) / sizeof(cl_uint); i++)
                OK(clSetKernelArg(encode, 5 + i, sizeof(cl_uint), &values[i]));
        OK(clEnqueueNDRangeKernel(queue, encode, 1, NULL, &one, NULL, 0, NULL, &t.done));
        return t;
}

static void step_end(struct step *t)
{
        if (t->picture)
                OK(clReleaseMemObject(t->picture));
        OK(clReleaseMemObject(t->packet));
        OK(clReleaseMemObject(t->size));
        OK(clReleaseMemObject(t->status));
        OK(clReleaseEvent(t->done));
}

/* Wait for a command, and get its status. */
static cl_int wait_for(struct step *t, cl_int words[WORDS])
{
        cl_int status;
        (void)clWaitForEvents(1, &t->done);
        OK(clGetEventInfo(t->done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                          NULL));
        OK(clEnqueueReadBuffer(queue, t->status, CL_TRUE, 0, 4 * WORDS, words, 0, NULL, NULL));
        return status;
}

/* The same, of a command that fails. */
static void expect(cl_int error, struct step t)
{
        cl_int words[WORDS];
        EXPECT(error, wait_for(&t, words));
        CHECK(words[0] == error);
        step_end(&t);
}

/* Write the packet of a command. Returns the command's result. */
static cl_int take(struct step *t, const struct settings *s, unsigned number, FILE *stream,
                   FILE *packets)
{
        cl_int words[WORDS];
        uint64_t size;
        OK(wait_for(t, words));
        OK(clEnqueueReadBuffer(queue, t->size, CL_TRUE, 0, 8, &size, 0, NULL, NULL));
        CHECK((cl_uint)words[1] == s->width && (cl_uint)words[2] == s->height);
        if (words[0] == 0) {
                uint32_t bytes = (uint32_t)size;
                uint8_t *packet = malloc(room);
                CHECK(packet && size && size <= room && (uint64_t)words[6] == size);
                CHECK((unsigned)words[5] == number + 1);
                CHECK(words[4] == 1 || (number && number != KEY_AT));
                OK(clEnqueueReadBuffer(queue, t->packet, CL_TRUE, 0, size, packet, 0, NULL, NULL));
                CHECK(fwrite(packet, size, 1, stream) == 1);
                CHECK(fwrite(&bytes, 4, 1, packets) == 1 && fwrite(packet, size, 1, packets) == 1);
                free(packet);
        } else {
                CHECK(!size);
        }
        return words[0];
}

static void play(const uint8_t *pictures, size_t count, struct settings s, const char *stream_path,
                 const char *packets_path)
{
        struct step steps[STEPS_MAX];
        FILE *stream = fopen(stream_path, "wb"), *packets = fopen(packets_path, "wb");
        CHECK(stream && packets && count <= STEPS_MAX);
        for (unsigned i = 0; i < count; i++) {
                s.flags = i == KEY_AT ? KEY : 0;
                steps[i] = enqueue(pictures + i * picture_size, picture_size, room, &s);
        }
        /* No encoder delays a packet. */
        for (unsigned i = 0; i < count; i++) {
                CHECK(take(&steps[i], &s, i, stream, packets) == 0);
                step_end(&steps[i]);
        }
        s.flags = FLUSH;
        struct step last = enqueue(NULL, 0, room, &s);
        CHECK(take(&last, &s, (unsigned)count, stream, packets) == 2);
        step_end(&last);
        CHECK(!fclose(stream) && !fclose(packets));
}

/* The stream of an encoder is no decoder's. */
static void other_kind(const uint8_t *packet)
{
        cl_uint zero = 0;
        cl_mem none = NULL;
        size_t one = 1;
        struct step t = { .picture = buffer_of(64, packet),
                          .packet = buffer_of(64, NULL),
                          .size = buffer_of(8, NULL),
                          .status = buffer_of(4 * WORDS, NULL) };
        const cl_mem *buffers[] = { &t.picture, &none, &t.packet, &t.size, &t.status, &state };
        for (cl_uint i = 0; decode && i < 8; i++)
                OK(i < 6 ? clSetKernelArg(decode, i, sizeof(cl_mem), buffers[i])
                         : clSetKernelArg(decode, i, sizeof(zero), &zero));
        if (decode) {
                cl_int words[WORDS];
                OK(clEnqueueNDRangeKernel(queue, decode, 1, NULL, &one, NULL, 0, NULL, &t.done));
                EXPECT(CL_INVALID_MEM_OBJECT, wait_for(&t, words));
                OK(clReleaseEvent(t.done));
                OK(clReleaseKernel(decode));
                decode = NULL;
        }
        OK(clReleaseMemObject(t.picture));
        OK(clReleaseMemObject(t.packet));
        OK(clReleaseMemObject(t.size));
        OK(clReleaseMemObject(t.status));
}

static void wrong(const uint8_t *picture, struct settings s, int mjpeg)
{
        static const struct {
                size_t place;
                cl_uint value;
                cl_int error;
        } bad[] = {
                { offsetof(struct settings, width), 0, CL_INVALID_VALUE },
                { offsetof(struct settings, height), 0, CL_INVALID_VALUE },
                { offsetof(struct settings, width), 16385, CL_INVALID_IMAGE_SIZE },
                { offsetof(struct settings, width), UINT32_MAX, CL_INVALID_IMAGE_SIZE },
                { offsetof(struct settings, height), UINT32_MAX, CL_INVALID_IMAGE_SIZE },
                { offsetof(struct settings, height), 16384, CL_INVALID_IMAGE_SIZE },
                { offsetof(struct settings, format), 3, CL_INVALID_VALUE },
                { offsetof(struct settings, format), UINT32_MAX, CL_INVALID_VALUE },
                { offsetof(struct settings, rate), 1001, CL_INVALID_VALUE },
                { offsetof(struct settings, kbits), UINT32_MAX, CL_INVALID_VALUE },
                { offsetof(struct settings, quality), 101, CL_INVALID_VALUE },
                { offsetof(struct settings, flags), 8, CL_INVALID_VALUE },
        };
        cl_int words[WORDS];
        for (unsigned turn = 0; turn < 2; turn++) { /* of no stream, and of one that has begun */
                for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
                        struct settings t = s;
                        *(cl_uint *)(void *)((char *)&t + bad[i].place) = bad[i].value;
                        expect(bad[i].error, enqueue(picture, picture_size, room, &t));
                }
                expect(CL_INVALID_BUFFER_SIZE, enqueue(picture, picture_size - 1, room, &s));
                if (mjpeg) {
                        struct settings t = s;
                        t.kbits = 100;
                        expect(CL_INVALID_VALUE, enqueue(picture, picture_size, room, &t));
                }
                struct step good = enqueue(picture, picture_size, room, &s);
                OK(wait_for(&good, words));
                CHECK(words[0] == 0 && (unsigned)words[5] == turn + 1);
                step_end(&good);
        }
        other_kind(picture);
        /* Another quality needs a reset. */
        struct settings other = s;
        other.quality = s.quality == 50 ? 51 : 50;
        expect(CL_INVALID_VALUE, enqueue(picture, picture_size, room, &other));
        other.flags = RESET;
        struct step good = enqueue(picture, picture_size, room, &other);
        OK(wait_for(&good, words));
        CHECK(words[0] == 0 && words[4] == 1 && words[5] == 1);
        step_end(&good);
        /* A packet that did not fit waits for the next command without a picture, also if that says that none comes. */
        for (cl_int turn = 0; turn < 2; turn++) {
                other.flags = KEY;
                struct step small = enqueue(picture, picture_size, 1, &other);
                EXPECT(CL_INVALID_BUFFER_SIZE, wait_for(&small, words));
                CHECK(words[6] > 1);
                cl_int size = words[6];
                step_end(&small);
                other.flags = turn ? FLUSH : 0;
                struct step rest = enqueue(NULL, 0, room, &other);
                OK(wait_for(&rest, words));
                CHECK(words[0] == 0 && words[6] == size && words[5] == 2 + turn);
                step_end(&rest);
                rest = enqueue(NULL, 0, room, &other);
                OK(wait_for(&rest, words));
                CHECK(words[0] == 1 + turn);
                step_end(&rest);
        }
}

static void lost(const uint8_t *picture, struct settings s)
{
        cl_int words[WORDS];
        puts("ready"); /* a process that has no stream yet is killed, too */
        fflush(stdout);
        CHECK(getchar() == '\n');
        for (unsigned turn = 0; turn < 3; turn++) {
                struct step good = enqueue(picture, picture_size, room, &s);
                OK(wait_for(&good, words));
                CHECK(words[0] == 0 && words[4] == 1 && words[5] == 1);
                step_end(&good);
                puts("ready");
                fflush(stdout);
                CHECK(getchar() == '\n');
                expect(CL_OUT_OF_RESOURCES, enqueue(picture, picture_size, room, &s));
        }
}

int main(int argc, char **argv)
{
        CHECK(argc == 7 || argc == 10);
        open_device(argv[1]);
        struct settings s = { .width = (cl_uint)atoi(argv[3]),
                              .height = (cl_uint)atoi(argv[4]),
                              .format = (cl_uint)atoi(argv[5]) };
        size_t size, chroma = (size_t)(s.width + 1) / 2 * ((s.height + 1) / 2);
        uint8_t *pictures = read_file(argv[2], &size);
        picture_size = (size_t)s.width * s.height * 4;
        if (s.format != 2)
                picture_size = (size_t)s.width * s.height + 2 * chroma;
        room = 4 * (size_t)s.width * s.height + (64 << 10);
        CHECK(size && size % picture_size == 0);
        state = buffer_of(64, NULL);
        if (argc == 10) {
                s.kbits = (cl_uint)atoi(argv[6]);
                s.quality = (cl_uint)atoi(argv[7]);
                play(pictures, size / picture_size, s, argv[8], argv[9]);
        } else if (!strcmp(argv[6], "lost")) {
                lost(pictures, s);
        } else {
                wrong(pictures, s, !strcmp(argv[1], "mjpeg"));
        }
        OK(clFinish(queue));
        OK(clReleaseMemObject(state));
        OK(clReleaseCommandQueue(queue));
        OK(clReleaseKernel(encode));
        if (decode)
                OK(clReleaseKernel(decode));
        free(pictures);
        api_close(&api);
        return 0;
}
