/* writer NAME copy SOURCE: writes the units of a source to the sink NAME, on the first media device.
 * writer NAME decode SOURCE: the same with the pictures of a source of H.264.
 * writer NAME encode SOURCE CODEC: the same with packets of CODEC, from a source of pictures.
 * writer NAME wrong SOURCE: arguments that are wrong, with units of a source of H.264.
 * writer NAME full: writes pictures of noise until there is no room, and completes the file. Prints how many.
 * writer NAME raw COUNT RESULT: writes COUNT gray pictures; the last one has this result.
 * writer NAME held: writes a picture, prints a line, waits for one, and completes the file.
 * writer NAME lost: the same, but expects that all processes of sinks are killed meanwhile, and goes on.
 * writer NAME damage SOURCE: units of a source of H.264 with wrong bytes, as of each codec.
 * writer NAME many COUNT: opens the sink so often.
 *
 * docs/MEDIA.md describes the kernels. Status 77: the device has no sinks, or no such encoder. */

#include <stdbool.h>

#include "media_program.h"

enum {
        ROOM = 256 << 10,
        FLUSH = 2,
        FAST = 4,
        KEY = 4,
        TIMED = 8,
        RAW = 100,
        WIDTH = 162,
        HEIGHT = 90
};

static cl_program program;
static cl_command_queue queue;
static cl_kernel sink;
static cl_mem state, unit, unit_size, status, name;

struct unit {
        cl_uint codec, width, height, rate, time, delay, flags;
};

static void open_device(const char *sink_name)
{
        static char names[1024];
        cl_int err;
        program = open_media("org.spancl.sink", names, sizeof(names));
        sink = api_kernel(program, "org.spancl.sink");
        queue = clCreateCommandQueue(api.context, api.devices[media], CL_QUEUE_PROFILING_ENABLE,
                                     &err);
        OK(err);
        state = buffer_of(64, NULL);
        unit = buffer_of(ROOM, NULL);
        unit_size = buffer_of(8, NULL);
        status = buffer_of(4 * (WORDS + 1), NULL);
        name = buffer_of(strlen(sink_name) + 1, sink_name);
}

/* Run a kernel whose buffers have been set. */
static cl_int run(cl_kernel k, cl_int words[WORDS + 1])
{
        size_t one = 1;
        cl_int result;
        cl_event done;
        OK(clEnqueueNDRangeKernel(queue, k, 1, NULL, &one, NULL, 0, NULL, &done));
        (void)clWaitForEvents(1, &done);
        OK(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(result), &result, NULL));
        OK(clEnqueueReadBuffer(queue, status, CL_TRUE, 0, 4 * (WORDS + 1), words, 0, NULL, NULL));
        OK(clReleaseEvent(done));
        return result;
}

static void set_buffers(cl_kernel k, const cl_mem *buffers, cl_uint count)
{
        for (cl_uint i = 0; i < count; i++)
                OK(clSetKernelArg(k, i, sizeof(cl_mem), &buffers[i]));
}

static void set_values(cl_kernel k, cl_uint first, const cl_uint *values, cl_uint count)
{
        for (cl_uint i = 0; i < count; i++)
                OK(clSetKernelArg(k, first + i, sizeof(cl_uint), &values[i]));
}

/* Write the bytes of `from`, whose number is in `size`, to the sink of this name. */
static cl_int put(cl_mem from, cl_mem size, cl_mem to, const struct unit *u,
                  cl_int words[WORDS + 1])
{
        const cl_mem buffers[] = { from, size, status, state, to };
        set_buffers(sink, buffers, 5);
        set_values(sink, 5, &u->codec, 7);
        return run(sink, words);
}

static void complete(const struct unit *u)
{
        struct unit last = *u;
        cl_int words[WORDS + 1];
        last.flags = FLUSH | (u->flags & TIMED);
        OK(put(NULL, NULL, name, &last, words));
        CHECK(words[0] == 2);
}

/* ---- chains --------------------------------------------------------------------------------- */

struct chain {
        cl_kernel source, middle;
        cl_mem source_name, source_state, middle_state, made, made_size;
        struct unit unit; /* as it was written last */
        int count;
};

static void chain_begin(struct chain *c, const char *from, const char *middle)
{
        cl_uint flags = FAST;
        *c = (struct chain){
                .source = api_kernel(program, "org.spancl.source"),
                .middle = middle ? api_kernel(program, middle) : NULL,
                .source_name = buffer_of(strlen(from) + 1, from),
                .source_state = buffer_of(1, NULL),
                .middle_state = buffer_of(1, NULL),
                .made = buffer_of(ROOM, NULL),
                .made_size = buffer_of(8, NULL),
        };
        const cl_mem buffers[] = { unit, unit_size, status, c->source_state, c->source_name };
        set_buffers(c->source, buffers, 5);
        set_values(c->source, 5, &flags, 1);
}

static void chain_end(struct chain *c)
{
        const cl_mem all[] = { c->source_name, c->source_state, c->middle_state, c->made,
                               c->made_size };
        for (size_t i = 0; i < 5; i++)
                OK(clReleaseMemObject(all[i]));
        OK(clReleaseKernel(c->source));
        if (c->middle)
                OK(clReleaseKernel(c->middle));
}

/* Read a unit. Returns false at the end. */
static bool chain_read(struct chain *c, cl_int words[WORDS + 1])
{
        do
                OK(run(c->source, words));
        while (words[0] == 1);
        return words[0] == 0;
}

static void chain_put(struct chain *c, cl_mem from, cl_mem size, const struct unit *u)
{
        cl_int words[WORDS + 1];
        c->unit = *u;
        OK(put(from, size, name, u, words));
        CHECK(words[0] == 0 && words[5] == ++c->count && words[3] == (cl_int)u->codec);
}

static void copy(const char *from)
{
        struct chain c;
        cl_int w[WORDS + 1];
        chain_begin(&c, from, NULL);
        while (chain_read(&c, w)) {
                const struct unit u = { (cl_uint)w[3], (cl_uint)w[1], (cl_uint)w[2],           0,
                                        (cl_uint)w[7], (cl_uint)w[8], TIMED | (w[4] ? KEY : 0) };
                chain_put(&c, unit, unit_size, &u);
        }
        complete(&c.unit);
        chain_end(&c);
}

static void decode(const char *from)
{
        struct chain c;
        cl_int w[WORDS + 1];
        chain_begin(&c, from, "org.spancl.decode.h264");
        const cl_mem buffers[] = { unit, unit_size, c.made, c.made_size, status, c.middle_state };
        cl_uint values[] = { 0, 0 };
        set_buffers(c.middle, buffers, 6);
        for (bool more = true; more || w[0] != 2;) {
                more = more && chain_read(&c, w);
                if (!more) {
                        cl_mem none = NULL;
                        OK(clSetKernelArg(c.middle, 0, sizeof(none), &none));
                        OK(clSetKernelArg(c.middle, 1, sizeof(none), &none));
                        values[1] = FLUSH;
                }
                set_values(c.middle, 6, values, 2);
                OK(run(c.middle, w));
                const struct unit u = { RAW, (cl_uint)w[1], (cl_uint)w[2], 25, 0, 0, 0 };
                if (w[0] == 0)
                        chain_put(&c, c.made, c.made_size, &u);
        }
        complete(&c.unit);
        chain_end(&c);
}

static void encode(const char *from, const char *codec)
{
        struct chain c;
        cl_int w[WORDS + 1];
        char kernel[64];
        snprintf(kernel, sizeof(kernel), "org.spancl.encode.%s", codec);
        chain_begin(&c, from, kernel);
        const cl_mem buffers[] = { unit, c.made, c.made_size, status, c.middle_state };
        const cl_uint values[] = { WIDTH, HEIGHT, 0, 25, 0, 80, 0 };
        set_buffers(c.middle, buffers, 5);
        set_values(c.middle, 5, values, 7);
        const cl_uint number = !strcmp(codec, "h264") ? 1 : !strcmp(codec, "hevc") ? 2 : 8;
        while (chain_read(&c, w)) {
                OK(run(c.middle, w));
                CHECK(w[0] == 0);
                const struct unit u = { number, WIDTH, HEIGHT, 25, 0, 0, w[4] ? KEY : 0 };
                chain_put(&c, c.made, c.made_size, &u);
        }
        complete(&c.unit);
        chain_end(&c);
}

/* ---- pictures ------------------------------------------------------------------------------- */

static const struct unit gray = { RAW, WIDTH, HEIGHT, 25, 0, 0, 0 };
static cl_mem picture; /* without gaps */

static void make_picture(void)
{
        static uint8_t bytes[WIDTH * HEIGHT * 3 / 2];
        memset(bytes, 128, sizeof(bytes));
        picture = buffer_of(sizeof(bytes), bytes);
}

static cl_int put_gray(cl_uint flags)
{
        cl_int words[WORDS + 1];
        struct unit u = gray;
        u.flags = flags;
        return put(picture, NULL, name, &u, words);
}

static void raw(int count, cl_int result)
{
        for (int i = 1; i < count; i++)
                OK(put_gray(0));
        EXPECT(result, put_gray(0));
        if (!result)
                complete(&gray);
}

static void full(void)
{
        int count = 0;
        cl_int result;
        while (!(result = put_gray(0)))
                count++;
        EXPECT(CL_OUT_OF_RESOURCES, result);
        EXPECT(CL_OUT_OF_RESOURCES, put_gray(0));
        cl_int words[WORDS + 1];
        struct unit last = gray;
        last.flags = FLUSH;
        printf("%d %d\n", count, put(NULL, NULL, name, &last, words));
}

static void wait_for_line(void)
{
        puts("ready");
        fflush(stdout);
        CHECK(getchar() == '\n');
}

static void held(void)
{
        OK(put_gray(0));
        wait_for_line();
        OK(put_gray(0));
        complete(&gray);
}

static void lost(void)
{
        cl_int result;
        OK(put_gray(0));
        wait_for_line();
        EXPECT(CL_OUT_OF_RESOURCES, put_gray(0));
        while ((result = put_gray(0)) == CL_OUT_OF_RESOURCES)
                continue;
        OK(result);
        complete(&gray);
}

/* ---- arguments that are wrong --------------------------------------------------------------- */

static void wrong_values(const struct unit *good, cl_mem size)
{
        static const struct {
                struct unit change; /* added */
                cl_int result;
        } wrong[] = {
                { { .codec = 8 }, CL_INVALID_VALUE },
                { { .codec = UINT32_MAX }, CL_INVALID_VALUE },
                { { .codec = RAW - 2 }, CL_INVALID_VALUE },
                { { .width = 100000 }, CL_INVALID_IMAGE_SIZE },
                { { .width = UINT32_MAX - WIDTH, .height = UINT32_MAX - HEIGHT },
                  CL_INVALID_IMAGE_SIZE },
                { { .rate = 1001 }, CL_INVALID_VALUE },
                { { .flags = 16 }, CL_INVALID_VALUE },
        };
        cl_int words[WORDS + 1];
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                struct unit u = *good;
                for (size_t k = 0; k < sizeof(u) / 4; k++)
                        (&u.codec)[k] += (&wrong[i].change.codec)[k];
                EXPECT(wrong[i].result, put(unit, size, name, &u, words));
                CHECK(words[0] == wrong[i].result);
        }
}

static void wrong_names(const struct unit *u, cl_mem size)
{
        static const char *const wrong[] = { "none", "", "/etc/passwd", "%d", "../rec" };
        cl_int words[WORDS + 1];
        for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
                cl_mem other = buffer_of(strlen(wrong[i]) + 1, wrong[i]);
                EXPECT(CL_INVALID_VALUE, put(unit, size, other, u, words));
                OK(clReleaseMemObject(other));
        }
        EXPECT(CL_INVALID_VALUE, put(unit, size, NULL, u, words));
}

/* `size` gets this value. */
static cl_int put_size(cl_mem size, uint64_t value, const struct unit *u)
{
        cl_int words[WORDS + 1];
        OK(clEnqueueWriteBuffer(queue, size, CL_TRUE, 0, 8, &value, 0, NULL, NULL));
        return put(unit, size, name, u, words);
}

static void wrong(const char *from)
{
        struct chain c;
        cl_int w[WORDS + 1], words[WORDS + 1];
        uint64_t bytes;
        chain_begin(&c, from, NULL);
        CHECK(chain_read(&c, w) && w[3] == 1 && w[4] == 1);
        const struct unit good = { 1, WIDTH, HEIGHT, 0, 0, 0, KEY };
        struct unit other = good;
        OK(clEnqueueReadBuffer(queue, unit_size, CL_TRUE, 0, 8, &bytes, 0, NULL, NULL));
        wrong_names(&good, unit_size);
        wrong_values(&good, unit_size);
        EXPECT(CL_INVALID_VALUE, put_size(c.made_size, ROOM + 1, &good));
        EXPECT(CL_INVALID_VALUE, put_size(c.made_size, UINT64_MAX, &good));
        EXPECT(CL_INVALID_MEM_OBJECT,
               (set_buffers(sink, (cl_mem[]){ unit, unit_size, status, NULL, name }, 5),
                run(sink, words)));
        /* Nothing to write opens nothing. */
        other.flags = FLUSH;
        OK(put(NULL, NULL, name, &other, words));
        CHECK(words[0] == 2);
        other.flags = RESET;
        OK(put(NULL, NULL, name, &other, words));
        CHECK(words[0] == 1);
        /* A picture is no H.264, and the first unit is a key frame with parameter sets. */
        other.flags = 0;
        EXPECT(CL_INVALID_VALUE, put(unit, unit_size, name, &other, words));
        EXPECT(CL_INVALID_VALUE, put_size(c.made_size, 3, &good));
        OK(put(unit, unit_size, name, &good, words));
        CHECK(words[0] == 0 && words[5] == 1 && words[6] == (cl_int)bytes);
        /* Other values than the stream's. */
        other = good;
        other.width++;
        EXPECT(CL_INVALID_VALUE, put(unit, unit_size, name, &other, words));
        other = good;
        other.flags |= TIMED;
        EXPECT(CL_INVALID_VALUE, put(unit, unit_size, name, &other, words));
        /* The stream is the source's. */
        set_buffers(sink, (cl_mem[]){ unit, unit_size, status, c.source_state, name }, 5);
        EXPECT(CL_INVALID_MEM_OBJECT, run(sink, words));
        OK(put(unit, unit_size, name, &good, words));
        CHECK(words[5] == 2);
        complete(&good);
        chain_end(&c);
}

/* ---- hostile sessions ----------------------------------------------------------------------- */

static bool is_documented(cl_int result)
{
        return result == CL_SUCCESS || result == CL_INVALID_VALUE ||
               result == CL_IMAGE_FORMAT_NOT_SUPPORTED || result == CL_OUT_OF_HOST_MEMORY ||
               result == CL_OUT_OF_RESOURCES;
}

static void damage(const char *from)
{
        enum { CODECS = 8, CHANGES = 12 };
        static uint8_t bytes[ROOM];
        struct chain c;
        cl_int w[WORDS + 1], words[WORDS + 1];
        chain_begin(&c, from, NULL);
        srand(1);
        while (chain_read(&c, w)) {
                size_t size = (size_t)w[6];
                CHECK(size <= ROOM);
                OK(clEnqueueReadBuffer(queue, unit, CL_TRUE, 0, size, bytes, 0, NULL, NULL));
                for (int i = 0; i < CHANGES; i++)
                        bytes[(size_t)rand() % (i % 2       ? size
                                                : size < 64 ? size
                                                            : 64)] = (uint8_t)rand();
                OK(clEnqueueWriteBuffer(queue, unit, CL_TRUE, 0, size, bytes, 0, NULL, NULL));
                struct unit u = { (cl_uint)(w[5] % CODECS) + 1,
                                  WIDTH,
                                  HEIGHT,
                                  0,
                                  (cl_uint)rand(),
                                  (cl_uint)rand(),
                                  RESET | KEY | TIMED };
                for (int i = 0; i < 3; i++) {
                        CHECK(is_documented(put(unit, unit_size, name, &u, words)));
                        u.time = (cl_uint)rand() << 1;
                        u.flags = KEY | TIMED;
                }
                u.flags |= FLUSH;
                CHECK(is_documented(put(NULL, NULL, name, &u, words)));
        }
        chain_end(&c);
}

static void many(int count)
{
        for (int i = 0; i < count; i++)
                CHECK(is_documented(put_gray(RESET)));
}

int main(int argc, char **argv)
{
        CHECK(argc >= 3);
        open_device(argv[1]);
        make_picture();
        const char *how = argv[2];
        if (!strcmp(how, "copy") && argc == 4)
                copy(argv[3]);
        else if (!strcmp(how, "decode") && argc == 4)
                decode(argv[3]);
        else if (!strcmp(how, "encode") && argc == 5)
                encode(argv[3], argv[4]);
        else if (!strcmp(how, "wrong") && argc == 4)
                wrong(argv[3]);
        else if (!strcmp(how, "raw") && argc == 5)
                raw(atoi(argv[3]), atoi(argv[4]));
        else if (!strcmp(how, "damage") && argc == 4)
                damage(argv[3]);
        else if (!strcmp(how, "many") && argc == 4)
                many(atoi(argv[3]));
        else if (!strcmp(how, "full"))
                full();
        else if (!strcmp(how, "held"))
                held();
        else
                lost();
        OK(clFinish(queue));
        const cl_mem all[] = { state, unit, unit_size, status, name, picture };
        for (size_t i = 0; i < 6; i++)
                OK(clReleaseMemObject(all[i]));
        OK(clReleaseCommandQueue(queue));
        OK(clReleaseKernel(sink));
        OK(clReleaseProgram(program));
        api_close(&api);
        return 0;
}
