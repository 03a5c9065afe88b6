/* reader NAME FLAGS COUNT UNITS: reads COUNT units of the source NAME, or all if there are fewer, on the first media
 * device. UNITS gets them, each behind its size (32 bits). Prints a line for each: codec, width, height, key, ms.
 * reader NAME wrong: arguments that are wrong. reader NAME lost: prints a line, expects that all processes of sources
 * are killed before it reads one, and goes on when they are there again.
 * reader NAME moved: reads all units, prints a line, and expects that the file is gone, then, after another line, that
 * it is there again.
 * reader NAME rest: reads units until a command delivers none, prints their number and that command's first word, and
 * waits for a line, after which it reads again. It ends with the standard input.
 *
 * docs/MEDIA.md describes the kernel. Status 77: the device has no sources. */

#include "media_program.h"

enum {
        ROOM = 256 << 10,
        LOOP = 2,
        FAST = 4,
        FILM = 15 /* units of media.py's */
};

static cl_kernel source;
static cl_command_queue queue;
static cl_mem state, unit, unit_size, status;

static void open_device(void)
{
        char names[1024];
        cl_int err;
        cl_program p = open_media("org.spancl.source", names, sizeof(names));
        source = api_kernel(p, "org.spancl.source");
        OK(clReleaseProgram(p));
        queue = clCreateCommandQueue(api.context, api.devices[media], CL_QUEUE_PROFILING_ENABLE,
                                     &err);
        OK(err);
        state = buffer_of(64, NULL);
        unit = buffer_of(ROOM, NULL);
        unit_size = buffer_of(8, NULL);
        status = buffer_of(4 * WORDS, NULL);
}

/* Read into `to`; `name` has `size` bytes. Returns the command's status, and its words. */
static cl_int command(const char *name, size_t size, cl_mem to, cl_uint flags, cl_int words[WORDS])
{
        size_t one = 1;
        cl_int result;
        cl_event done;
        cl_mem named = name ? buffer_of(size, name) : NULL;
        const cl_mem *buffers[] = { &to, &unit_size, &status, &state, &named };
        for (cl_uint i = 0; i < 5; i++)
                OK(clSetKernelArg(source, i, sizeof(cl_mem), buffers[i]));
        OK(clSetKernelArg(source, 5, sizeof(flags), &flags));
        OK(clEnqueueNDRangeKernel(queue, source, 1, NULL, &one, NULL, 0, NULL, &done));
        (void)clWaitForEvents(1, &done);
        OK(clGetEventInfo(done, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(result), &result, NULL));
        OK(clEnqueueReadBuffer(queue, status, CL_TRUE, 0, 4 * WORDS, words, 0, NULL, NULL));
        OK(clReleaseEvent(done));
        if (named)
                OK(clReleaseMemObject(named));
        return result;
}

static cl_int next(const char *name, cl_uint flags, cl_int words[WORDS])
{
        return command(name, strlen(name) + 1, unit, flags, words);
}

static void play(const char *name, cl_uint flags, int count, const char *path)
{
        static uint8_t bytes[ROOM];
        FILE *f = fopen(path, "wb");
        CHECK(f);
        for (int i = 0; i < count;) {
                cl_int words[WORDS];
                uint64_t size;
                OK(next(name, flags, words));
                OK(clEnqueueReadBuffer(queue, unit_size, CL_TRUE, 0, 8, &size, 0, NULL, NULL));
                CHECK(words[0] == 0 ? size == (uint64_t)words[6] && size : !size);
                if (words[0] == 2)
                        break;
                if (words[0] == 1)
                        continue;
                CHECK(size <= ROOM && words[5] == ++i);
                uint32_t said = (uint32_t)size;
                OK(clEnqueueReadBuffer(queue, unit, CL_TRUE, 0, size, bytes, 0, NULL, NULL));
                CHECK(fwrite(&said, 4, 1, f) == 1 && fwrite(bytes, size, 1, f) == 1);
                printf("%d %d %d %d %d\n", words[3], words[1], words[2], words[4], words[7]);
        }
        CHECK(!fclose(f));
}

static void wrong(const char *name)
{
        cl_int words[WORDS], size;
        cl_mem small = buffer_of(1, NULL);
        char text[64];
        memset(text, 'a', sizeof(text));
        EXPECT(CL_INVALID_VALUE, next("none", FAST, words));
        CHECK(words[0] == CL_INVALID_VALUE);
        EXPECT(CL_INVALID_VALUE, next("", FAST, words));
        EXPECT(CL_INVALID_VALUE, next("/etc/passwd", FAST, words));
        EXPECT(CL_INVALID_VALUE, command(NULL, 0, unit, FAST, words));
        EXPECT(CL_INVALID_VALUE, command(text, sizeof(text), unit, FAST, words));
        EXPECT(CL_INVALID_VALUE, next(name, 8, words));
        /* A unit that did not fit waits. */
        EXPECT(CL_INVALID_BUFFER_SIZE, command(name, strlen(name) + 1, small, FAST, words));
        size = words[6];
        EXPECT(CL_INVALID_BUFFER_SIZE, command(name, strlen(name) + 1, NULL, FAST, words));
        OK(next(name, FAST, words));
        CHECK(words[0] == 0 && words[6] == size && words[5] == 1);
        EXPECT(CL_INVALID_VALUE, next(name, FAST | LOOP, words));
        EXPECT(CL_INVALID_VALUE, next("none", FAST, words));
        OK(next(name, FAST, words));
        CHECK(words[0] == 0 && words[5] == 2);
        OK(next(name, FAST | RESET, words));
        CHECK(words[0] == CL_SUCCESS && words[6] == size && words[5] == 1);
        OK(clReleaseMemObject(small));
}

static void wait_for_line(void)
{
        puts("ready");
        fflush(stdout);
        CHECK(getchar() == '\n');
}

static void lost(const char *name)
{
        cl_int words[WORDS], result;
        OK(next(name, FAST, words));
        CHECK(words[0] == 0);
        wait_for_line();
        EXPECT(CL_OUT_OF_RESOURCES, next(name, FAST, words));
        while ((result = next(name, FAST, words)) == CL_OUT_OF_RESOURCES)
                continue;
        OK(result);
        CHECK(words[0] == 0 && words[5] == 1);
}

static void rest(const char *name)
{
        cl_int words[WORDS];
        do {
                int count = -1;
                do {
                        (void)next(name, FAST, words);
                        count++;
                } while (words[0] == 0);
                printf("%d %d\n", count, words[0]);
                fflush(stdout);
        } while (getchar() != EOF);
}

static void moved(const char *name)
{
        cl_int words[WORDS];
        const cl_uint flags = FAST | LOOP;
        int count = 0;
        do {
                OK(next(name, flags, words));
                CHECK(words[0] == 0 && words[5] == ++count);
        } while (count < FILM);
        wait_for_line();
        for (int i = 0; i < 3; i++)
                EXPECT(CL_IMAGE_FORMAT_NOT_SUPPORTED, next(name, flags, words));
        wait_for_line();
        OK(next(name, flags, words));
        CHECK(words[0] == 0 && words[4] == 1 && words[5] == count + 1);
}

int main(int argc, char **argv)
{
        CHECK(argc == 3 || argc == 5);
        open_device();
        if (argc == 5)
                play(argv[1], (cl_uint)atoi(argv[2]), atoi(argv[3]), argv[4]);
        else if (!strcmp(argv[2], "lost"))
                lost(argv[1]);
        else if (!strcmp(argv[2], "moved"))
                moved(argv[1]);
        else if (!strcmp(argv[2], "rest"))
                rest(argv[1]);
        else
                wrong(argv[1]);
        OK(clFinish(queue));
        const cl_mem all[] = { state, unit, unit_size, status };
        for (size_t i = 0; i < 4; i++)
                OK(clReleaseMemObject(all[i]));
        OK(clReleaseCommandQueue(queue));
        OK(clReleaseKernel(source));
        api_close(&api);
        return 0;
}
