/* Calls that an OpenCL implementation may refuse, each with a name. The program prints what each one
 * returns; `compare` runs it natively and over a server and compares the lines.
 *
 * A group is one process of its own, because a call may end the process natively. Such a call is left out
 * then. Calls that an implementation may crash on are the last ones of their group. */
#ifndef TESTS_REFUSALS_REFUSALS_H
#define TESTS_REFUSALS_REFUSALS_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
        SIZE = 4096, /* of each buffer and of the host's memory, in bytes */
        W = 16,
        H = 8,
        D = 4,
        PIXEL = 4,
        ROW = W * PIXEL,
        SLICE = ROW * H,
};

struct world {
        const char *group;
        char **left_out; /* names of calls, ends with NULL */
        cl_platform_id platform;
        cl_device_id device;
        cl_context context, foreign_context;
        cl_command_queue queue, profiling_queue, foreign_queue;
        cl_mem a, b, foreign;
        cl_mem image, image3d, read_image, write_image, foreign_image; /* NULL: no images */
        cl_sampler sampler;
        cl_event foreign_event;
        bool images, svm;
        uint8_t *host; /* SIZE bytes */
        cl_int err;
        cl_event event;
};

extern const cl_image_format rgba8;
extern const size_t zero3[3], one3[3];

/* A call that the program needs: ends the process if it fails. */
#define NEED(...) need(__FILE__, __LINE__, __VA_ARGS__)
void need(const char *file, int line, cl_int code);

/* Say that this call comes next, so that it is known if it ends the process. False: it is to be left out. */
bool wanted(struct world *w, const char *name);

/* Print the code of a call. */
void say(struct world *w, const char *name, cl_int code);

/* A call that does nothing on the device. */
#define CALL(name, ...)                              \
        do {                                         \
                if (wanted(w, name))                 \
                        say(w, name, (__VA_ARGS__)); \
        } while (0)

/* A call that makes an object, with its code in w->err. */
#define MAKE(name, release, ...)                     \
        do {                                         \
                if (!wanted(w, name))                \
                        break;                       \
                void *made_ = (void *)(__VA_ARGS__); \
                say(w, name, w->err);                \
                if (w->err == CL_SUCCESS && made_)   \
                        (void)release(made_);        \
        } while (0)

/* A call that enqueues a command on w->queue, with the event w->event. All memory has a known pattern before
 * the call. If the call succeeds, the command's status and a digest of all memory are printed too. */
#define RUN(name, ...)                           \
        do {                                     \
                if (!wanted(w, name))            \
                        break;                   \
                run_begin(w);                    \
                run_end(w, name, (__VA_ARGS__)); \
        } while (0)
void run_begin(struct world *w);
void run_end(struct world *w, const char *name, cl_int code);

/* A call that maps `mem`, with its code in w->err. The mapping is undone. */
#define MAP(name, mem, ...)                                   \
        do {                                                  \
                if (!wanted(w, name))                         \
                        break;                                \
                run_begin(w);                                 \
                map_end(w, name, mem, (void *)(__VA_ARGS__)); \
        } while (0)
void map_end(struct world *w, const char *name, cl_mem mem, void *pointer);

cl_mem buffer_new(struct world *w, cl_mem_flags flags, size_t size, void *host);
cl_program program_new(struct world *w, const char *source);
cl_program program_built(struct world *w, const char *source, const char *options);
cl_kernel kernel_new(cl_program program, const char *name);
cl_ulong device_number(struct world *w, cl_device_info name);

void group_context(struct world *w);
void group_queue(struct world *w);
void group_devices(struct world *w);
void group_queries(struct world *w);
void group_events(struct world *w);
void group_buffers(struct world *w);
void group_sub_buffers(struct world *w);
void group_transfers(struct world *w);
void group_rects(struct world *w);
void group_copies(struct world *w);
void group_maps(struct world *w);
void group_images(struct world *w);
void group_image_transfers(struct world *w);
void group_image_copies(struct world *w);
void group_samplers(struct world *w);
void group_programs(struct world *w);
void group_builds(struct world *w);
void group_links(struct world *w);
void group_kernels(struct world *w);
void group_args(struct world *w);
void group_launches(struct world *w);
void group_svm(struct world *w);

#endif
