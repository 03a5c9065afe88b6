/* decoder CODEC PACKETS PICTURES WIDTH HEIGHT STREAMS: decodes on the first media device, and compares with
 * PICTURES (I420). Each stream has a queue; all packets are enqueued at once. Another device, if there is one, sums up
 * each picture. decoder CODEC PACKETS PICTURES WIDTH HEIGHT damage: also packets that are wrong.
 * decoder CODEC PACKETS - WIDTH HEIGHT ERROR: the first packet ends with this error.
 * decoder CODEC PACKETS - WIDTH HEIGHT lost: prints a line, and expects that the stream's process is killed, three
 * times.
 * decoder CODEC PACKETS PICTURES WIDTH HEIGHT seek: resets the stream in its middle, or behind that of
 * SYSTEM_DECODER_BEFORE; prints a line before and after.
 *
 * PACKETS: access units, each behind its size (32 bits). docs/MEDIA.md describes the kernels. */

#include "media_program.h"

enum { ROOM = 256 << 10, STREAMS_MAX = 16, PACKETS_MAX = 256, FLUSH = 2 };

enum { I420, NV12 };

static const char source[] =
        "__kernel void total(__global const uchar *p, __global const ulong *size, __global uint *sum) {\n"
        "        uint all = 0;\n"
        "        for (ulong i = 0; i < size[0]; i++)\n"
        "                all = all * 31 + p[i];\n"
        "        sum[0] = all;\n"
        "}\n";

static cl_uint other; /* a device that is none of media, or api.count */
static cl_kernel decode, convert, total;
static set_fn set_content;
static uint8_t *packets[PACKETS_MAX], *pictures;
static uint32_t sizes[PACKETS_MAX];
static cl_uint first; /* flags of packets, from SYSTEM_DECODER_FLAGS */
static int bits = 8;  /* of a sample, from SYSTEM_DECODER_BITS */
static size_t before; /* packets of SYSTEM_DECODER_BEFORE, another stream, which come first */
static size_t packet_count, picture_count, picture_size, width, height;

/* The buffers of one command. */
struct step {
        cl_mem packet, size, picture, picture_size, status, sum;
        cl_event done;
};

struct stream {
        cl_command_queue queue;
        cl_mem state;
        cl_uint format;
        struct step steps[2 * PACKETS_MAX];
        size_t count, delivered;
};

static void read_packets(const char *path)
{
        size_t size;
        uint8_t *bytes = read_file(path, &size);
        for (size_t at = 0; at < size; at += 4 + sizes[packet_count++]) {
                CHECK(packet_count < PACKETS_MAX);
                memcpy(&sizes[packet_count], bytes + at, 4);
                packets[packet_count] = bytes + at + 4;
        }
}

static void open_devices(const char *codec)
{
        char names[1024], name[64];
        cl_int err;
        snprintf(name, sizeof(name), "org.spancl.decode.%s", codec);
        cl_program p = open_media(name, names, sizeof(names));
        other = api.count;
        for (cl_uint i = 0; i < api.count; i++) {
                cl_device_type type;
                OK(clGetDeviceInfo(api.devices[i], CL_DEVICE_TYPE, sizeof(type), &type, NULL));
                if (type != CL_DEVICE_TYPE_CUSTOM)
                        other = i; /* the last: of another server, if there are several */
        }
        decode = api_kernel(p, name);
        convert = api_kernel(p, "org.spancl.convert.rgba");
        cl_uint count;
        char type[16];
        OK(clGetKernelInfo(decode, CL_KERNEL_NUM_ARGS, sizeof(count), &count, NULL));
        CHECK(count == 8);
        OK(clGetKernelArgInfo(decode, 4, CL_KERNEL_ARG_TYPE_NAME, sizeof(type), type, NULL));
        CHECK(!strcmp(type, "uint*"));
        OK(clReleaseProgram(p));
        set_content = (set_fn)clGetExtensionFunctionAddressForPlatform(
                api.platform, "clSetContentSizeBufferPoCL");
        if (other == api.count)
                return;
        const char *text = source;
        p = clCreateProgramWithSource(api.context, 1, &text, NULL, &err);
        OK(err);
        OK(clBuildProgram(p, 1, &api.devices[other], NULL, NULL, NULL));
        total = api_kernel(p, "total");
        OK(clReleaseProgram(p));
}

static struct stream stream_begin(cl_uint format)
{
        cl_int err;
        struct stream s = { .format = format, .state = buffer_of(64, NULL) };
        s.queue = clCreateCommandQueue(api.context, api.devices[media], CL_QUEUE_PROFILING_ENABLE,
                                       &err);
        OK(err);
        return s;
}

/* Enqueue a command with the packet, or with none, and a picture buffer of `room` bytes. */
static struct step *enqueue(struct stream *s, const void *packet, uint64_t size, uint64_t said,
                            size_t room, cl_uint flags)
{
        struct step *t = &s->steps[s->count++];
        size_t one = 1;
        CHECK(s->count <= 2 * PACKETS_MAX);
        *t = (struct step){
                .packet = size ? buffer_of(size, packet) : NULL,
                .size = buffer_of(8, &said),
                .picture = buffer_of(room, NULL),
                .picture_size = buffer_of(8, NULL),
                .status = buffer_of(4 * WORDS, NULL),
                .sum = buffer_of(4, NULL),
        };
        if (set_content) {
                OK(set_content(t->picture, t->picture_size));
                if (t->packet)
                        OK(set_content(t->packet, t->size));
        }
        OK(clSetKernelArg(decode, 0, sizeof(cl_mem), &t->packet));
        OK(clSetKernelArg(decode, 1, sizeof(cl_mem), &t->size));
        OK(clSetKernelArg(decode, 2, sizeof(cl_mem), &t->picture));
        OK(clSetKernelArg(decode, 3, sizeof(cl_mem), &t->picture_size));
        OK(clSetKernelArg(decode, 4, sizeof(cl_mem), &t->status));
        OK(clSetKernelArg(decode, 5, sizeof(cl_mem), &s->state));
        OK(clSetKernelArg(decode, 6, sizeof(cl_uint), &s->format));
        OK(clSetKernelArg(decode, 7, sizeof(cl_uint), &flags));
        OK(clEnqueueNDRangeKernel(s->queue, decode, 1, NULL, &one, NULL, 0, NULL, &t->done));
        return t;
}

static void step_end(struct step *t)
{
        cl_mem all[] = { t->packet, t->size, t->picture, t->picture_size, t->status, t->sum };
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                if (all[i])
                        OK(clReleaseMemObject(all[i]));
        OK(clReleaseEvent(t->done));
}

static void stream_end(struct stream *s)
{
        OK(clFinish(s->queue));
        for (size_t i = 0; i < s->count; i++)
                step_end(&s->steps[i]);
        OK(clReleaseMemObject(s->state));
        OK(clReleaseCommandQueue(s->queue));
}

static cl_int wait_for(struct step *t)
{
        cl_int status;
        (void)clWaitForEvents(1, &t->done);
        OK(clGetEventInfo(t->done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                          NULL));
        return status;
}

static void read_status(struct stream *s, struct step *t, cl_int words[WORDS])
{
        OK(clEnqueueReadBuffer(s->queue, t->status, CL_TRUE, 0, 4 * WORDS, words, 0, NULL, NULL));
}

/* The picture as I420. */
static void plain(const uint8_t *from, cl_uint format, uint8_t *to)
{
        size_t sample = bits > 8 ? 2 : 1, luma = width * height * sample;
        size_t chroma = (picture_size - luma) / 2;
        memcpy(to, from, picture_size);
        for (size_t i = 0; format == NV12 && i < chroma; i += sample) {
                memcpy(to + luma + i, from + luma + 2 * i, sample);
                memcpy(to + luma + chroma + i, from + luma + 2 * i + sample, sample);
        }
}

static int near(int got, double wanted)
{
        wanted = wanted < 0 ? 0 : wanted > 255 ? 255 : wanted;
        return got - wanted <= 1.01 && wanted - got <= 1.01;
}

/* Convert with BT.709, and compare with another computation. */
static void check_rgba(struct stream *s, struct step *t, const uint8_t *yuv)
{
        size_t one = 1, bytes = width * height * 4, half = (width + 1) / 2;
        cl_uint matrix = 1;
        uint64_t size;
        cl_mem rgba = buffer_of(bytes, NULL), rgba_size = buffer_of(8, NULL);
        uint8_t *got = malloc(bytes);
        OK(clSetKernelArg(convert, 0, sizeof(cl_mem), &t->picture));
        OK(clSetKernelArg(convert, 1, sizeof(cl_mem), &t->status));
        OK(clSetKernelArg(convert, 2, sizeof(cl_mem), &rgba));
        OK(clSetKernelArg(convert, 3, sizeof(cl_mem), &rgba_size));
        OK(clSetKernelArg(convert, 4, sizeof(matrix), &matrix));
        OK(clEnqueueNDRangeKernel(s->queue, convert, 1, NULL, &one, NULL, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(s->queue, rgba, CL_TRUE, 0, bytes, got, 0, NULL, NULL));
        OK(clEnqueueReadBuffer(s->queue, rgba_size, CL_TRUE, 0, 8, &size, 0, NULL, NULL));
        CHECK(size == bytes);
        for (size_t y = 0; y < height; y++) {
                for (size_t x = 0; x < width; x++) {
                        const uint8_t *chroma = yuv + width * height + y / 2 * half + x / 2;
                        const uint8_t *pixel = got + 4 * (y * width + x);
                        double l = (yuv[y * width + x] - 16) * 255. / 219;
                        double u = (chroma[0] - 128) * 255. / 224;
                        double v = (chroma[half * ((height + 1) / 2)] - 128) * 255. / 224;
                        CHECK(near(pixel[0], l + 1.5748 * v) &&
                              near(pixel[1], l - 0.187324 * u - 0.468124 * v) &&
                              near(pixel[2], l + 1.8556 * u) && pixel[3] == 255);
                }
        }
        free(got);
        OK(clReleaseMemObject(rgba));
        OK(clReleaseMemObject(rgba_size));
}

/* If the command delivered a picture, compare it with the next one that is expected. Returns the
 * command's result. */
static cl_int check_step(struct stream *s, struct step *t)
{
        static uint8_t got[ROOM], as_plain[ROOM];
        cl_int words[WORDS];
        uint64_t size;
        OK(wait_for(t));
        read_status(s, t, words);
        OK(clEnqueueReadBuffer(s->queue, t->picture_size, CL_TRUE, 0, 8, &size, 0, NULL, NULL));
        CHECK((size_t)words[5] == s->delivered + (words[0] == 0));
        CHECK(size == (words[0] == 0 ? picture_size : 0));
        if (words[0])
                return words[0];
        CHECK((size_t)words[1] == width && (size_t)words[2] == height);
        CHECK((cl_uint)words[3] == s->format && words[4] == bits);
        OK(clEnqueueReadBuffer(s->queue, t->picture, CL_TRUE, 0, picture_size, got, 0, NULL, NULL));
        plain(got, s->format, as_plain);
        CHECK(s->delivered < picture_count);
        const uint8_t *expected = pictures + s->delivered * picture_size;
        CHECK(!memcmp(as_plain, expected, picture_size));
        if (!s->delivered && bits == 8)
                check_rgba(s, t, expected);
        s->delivered++;
        if (other < api.count) {
                cl_uint sum, wanted = 0;
                size_t one = 1;
                for (size_t i = 0; i < picture_size; i++)
                        wanted = wanted * 31 + got[i];
                OK(clSetKernelArg(total, 0, sizeof(cl_mem), &t->picture));
                OK(clSetKernelArg(total, 1, sizeof(cl_mem), &t->picture_size));
                OK(clSetKernelArg(total, 2, sizeof(cl_mem), &t->sum));
                OK(clEnqueueNDRangeKernel(api.queues[other], total, 1, NULL, &one, NULL, 1,
                                          &t->done, NULL));
                OK(clEnqueueReadBuffer(api.queues[other], t->sum, CL_TRUE, 0, 4, &sum, 0, NULL,
                                       NULL));
                CHECK(sum == wanted);
        }
        return 0;
}

static void play(size_t count)
{
        static struct stream streams[STREAMS_MAX];
        for (size_t i = 0; i < count; i++)
                streams[i] = stream_begin(i % 2 ? NV12 : I420);
        for (size_t k = 0; k < packet_count; k++)
                for (size_t i = 0; i < count; i++)
                        (void)enqueue(&streams[i], packets[k], sizes[k], sizes[k], ROOM, first);
        for (size_t i = 0; i < count; i++) {
                struct stream *s = &streams[i];
                OK(clFlush(s->queue));
                for (size_t k = 0; k < packet_count; k++)
                        (void)check_step(s, &s->steps[k]);
                while (check_step(s, enqueue(s, NULL, 0, 0, ROOM, FLUSH)) == 0)
                        continue;
                CHECK(s->delivered == picture_count);
        }
        for (size_t i = 0; i < count; i++)
                stream_end(&streams[i]);
}

static unsigned seed = 1;

static unsigned chance(void)
{
        return (seed = seed * 1103515245 + 12345) >> 8;
}

/* Packets that are wrong end their commands, in one way or the other; the stream and the session go on. */
static void damage(void)
{
        static struct stream s;
        s = stream_begin(I420);
        EXPECT(CL_INVALID_VALUE, wait_for(enqueue(&s, packets[0], sizes[0], UINT64_MAX, ROOM, 0)));
        EXPECT(CL_INVALID_VALUE,
               wait_for(enqueue(&s, packets[0], sizes[0], sizes[0] + 1, ROOM, 0)));
        EXPECT(CL_INVALID_VALUE, wait_for(enqueue(&s, packets[0], sizes[0], sizes[0], ROOM, 8)));
        for (unsigned i = 0; i < 100; i++) {
                size_t k = chance() % packet_count, size = sizes[k];
                uint8_t *bad = malloc(size);
                memcpy(bad, packets[k], size);
                for (unsigned n = chance() % 20; n--;)
                        bad[chance() % size] = (uint8_t)chance();
                if (chance() % 4 == 0)
                        size = 1 + chance() % size;
                (void)wait_for(enqueue(&s, bad, size, size, ROOM, chance() % 8 == 0 ? RESET : 0));
                free(bad);
        }
        uint8_t *noise = malloc(ROOM);
        for (size_t i = 0; i < ROOM; i++)
                noise[i] = (uint8_t)chance();
        (void)wait_for(enqueue(&s, noise, ROOM, ROOM, ROOM, 0));
        free(noise);
        /* A picture that did not fit waits for the next command. */
        cl_int words[WORDS] = { 1 };
        struct step *t = enqueue(&s, packets[0], sizes[0], sizes[0], 16, RESET);
        cl_int status = wait_for(t);
        for (size_t k = 1; status == CL_SUCCESS && k < packet_count; k++) {
                t = enqueue(&s, packets[k], sizes[k], sizes[k], 16, 0);
                status = wait_for(t);
        }
        EXPECT(CL_INVALID_BUFFER_SIZE, status);
        read_status(&s, t, words);
        CHECK(words[0] == CL_INVALID_BUFFER_SIZE && (size_t)words[6] == picture_size);
        CHECK(check_step(&s, enqueue(&s, NULL, 0, 0, ROOM, FLUSH)) == 0);
        stream_end(&s);
        play(1);
}

static void wait_for_line(void)
{
        puts("ready");
        fflush(stdout);
        CHECK(getchar() == '\n');
}

/* A process that is lost ends the stream, whichever command finds out; the next packet begins another. */
static void lost(void)
{
        static struct stream s;
        s = stream_begin(I420);
        for (unsigned turn = 0; turn < 3; turn++) {
                OK(wait_for(enqueue(&s, packets[0], sizes[0], sizes[0], ROOM, first)));
                if (turn == 1) /* the next packet resets it */
                        OK(wait_for(enqueue(&s, NULL, 0, 0, ROOM, FLUSH)));
                wait_for_line();
                EXPECT(CL_OUT_OF_RESOURCES,
                       wait_for(turn == 1 ? enqueue(&s, packets[0], sizes[0], sizes[0], ROOM, 0)
                                          : enqueue(&s, NULL, 0, 0, ROOM, turn ? 0 : FLUSH)));
        }
        OK(wait_for(enqueue(&s, packets[0], sizes[0], sizes[0], ROOM, first)));
        stream_end(&s);
}

/* A reset in the middle of a stream begins another, all of whose pictures come. */
static void seek(void)
{
        static struct stream s;
        s = stream_begin(NV12);
        for (size_t k = 0; k < (before ? before : packet_count / 2); k++)
                OK(wait_for(enqueue(&s, packets[k], sizes[k], sizes[k], ROOM, first)));
        wait_for_line();
        for (size_t k = before; k < packet_count; k++)
                (void)check_step(&s, enqueue(&s, packets[k], sizes[k], sizes[k], ROOM,
                                             first | (k == before ? RESET : 0)));
        while (check_step(&s, enqueue(&s, NULL, 0, 0, ROOM, FLUSH)) == 0)
                continue;
        CHECK(s.delivered == picture_count);
        wait_for_line();
        stream_end(&s);
}

int main(int argc, char **argv)
{
        CHECK(argc == 7);
        first = getenv("SYSTEM_DECODER_FLAGS") ? (cl_uint)atoi(getenv("SYSTEM_DECODER_FLAGS")) : 0;
        open_devices(argv[1]);
        if (getenv("SYSTEM_DECODER_BEFORE"))
                read_packets(getenv("SYSTEM_DECODER_BEFORE"));
        before = packet_count;
        read_packets(argv[2]);
        width = (size_t)atoi(argv[4]);
        height = (size_t)atoi(argv[5]);
        if (getenv("SYSTEM_DECODER_BITS"))
                bits = atoi(getenv("SYSTEM_DECODER_BITS"));
        picture_size = width * height + 2 * ((width + 1) / 2) * ((height + 1) / 2);
        picture_size *= bits > 8 ? 2 : 1;
        CHECK(picture_size <= ROOM);
        if (!strcmp(argv[6], "lost")) {
                lost();
        } else if (!strcmp(argv[3], "-")) {
                static struct stream s;
                s = stream_begin(I420);
                EXPECT(atoi(argv[6]),
                       wait_for(enqueue(&s, packets[0], sizes[0], sizes[0], ROOM, first)));
                stream_end(&s);
        } else {
                size_t size;
                pictures = read_file(argv[3], &size);
                picture_count = size / picture_size;
                if (!strcmp(argv[6], "damage"))
                        damage();
                else if (!strcmp(argv[6], "seek"))
                        seek();
                else
                        play((size_t)atoi(argv[6]));
                free(pictures);
        }
        OK(clReleaseKernel(decode));
        OK(clReleaseKernel(convert));
        if (total)
                OK(clReleaseKernel(total));
        api_close(&api);
        return 0;
}
