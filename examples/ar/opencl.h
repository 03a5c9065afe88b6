/* The devices of a platform in one context, and helpers that end the program on errors. */
#ifndef AR_OPENCL_H
#define AR_OPENCL_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DEVICES_MAX 64

/* Events of a device's commands. */
struct watch {
        cl_event events[128];
        size_t count;
};

struct device {
        cl_device_id id;
        char name[128];
        cl_device_type type;
        cl_command_queue queue;      /* in order */
        cl_command_queue read_queue; /* for read_behind() */
        cl_program program;  /* our kernels; NULL: a device of built-in kernels, or not built yet */
        struct watch *watch; /* gets the events of kernels and barriers; NULL: none */
        size_t chunks;       /* parts of the points that kernels work on at a time */
        size_t group;        /* work-items that share a chunk or a tile: 1, or GROUP on a GPU */
        const char *built_in; /* names of kernels; NULL: none */
        cl_program media;
};

struct machine {
        cl_platform_id platform;
        char platform_name[128];
        cl_context context;
        struct device devices[DEVICES_MAX];
        size_t device_count;
        const char *kernels; /* folder of the kernels */
        bool wide;
        /* clSetContentSizeBufferPoCL of cl_pocl_content_size; NULL: the platform lacks it */
        cl_int(CL_API_CALL *set_content_size)(cl_mem buffer, cl_mem content_size_buffer);
};

__attribute__((format(printf, 1, 2), noreturn)) void die(const char *format, ...);
/* End the program on an error, unless the thread notes errors. */
void check(cl_int err, const char *what);

/* From errors_note() on the thread's errors do not end the program. Calls on objects that could not be made fail.
 * errors_noted() ends this, and returns the first error. */
void errors_note(void);
cl_int errors_noted(void);

void *allocate(size_t count, size_t size);

/* Read a file, and put a NUL behind its bytes. The caller frees them. */
void *read_file(const char *path, size_t *ret_size);

/* Open the first platform with devices whose name contains `wanted`, which may be NULL. `wide`: all devices get the
 * kernels for GPUs. */
void machine_open(struct machine *m, const char *wanted, const char *kernels, bool wide);
/* Open devices of another machine in a context of their own. */
void machine_open_some(struct machine *m, const struct machine *all, const cl_device_id *ids,
                       size_t count);
void machine_close(struct machine *m);

/* Wait for all commands. */
void machine_finish(struct machine *m);

/* Build our kernels for a device, unless they are built. */
void device_build(struct machine *m, struct device *d);
bool device_computes(const struct device *d);

/* Return the first or the last device of built-in kernels that has `kernel`. Devices of servers come first. Ends the
 * program if there is none. */
struct device *media_device(struct machine *m, const char *kernel, bool last);
cl_kernel media_kernel(struct machine *m, struct device *d, const char *name);

cl_mem new_buffer(struct machine *m, size_t size, const void *data);
cl_kernel new_kernel(struct device *d, const char *name);

/* Set all arguments from `first` on: buffers end with NULL. */
void set_buffers(cl_kernel k, cl_uint first, const cl_mem *buffers, size_t count);
void set_int(cl_kernel k, cl_uint index, int32_t value);

void launch(struct device *d, cl_kernel k, size_t global, size_t local);
/* One work-item for each chunk; on a GPU, a work-group. */
void launch_chunks(struct device *d, cl_kernel k);
void launch_2d(struct device *d, cl_kernel k, size_t width, size_t height);
/* Wait for the bytes. */
void read_buffer(struct device *d, cl_mem b, size_t size, void *data);
void write_buffer(struct device *d, cl_mem b, size_t size, const void *data);

/* Flush the device's commands, and return an event that is complete when they are. The caller releases it. */
cl_event device_mark(struct device *d);

/* Wait for `done`, and for the bytes, but not for later commands of the device. */
void read_behind(struct device *d, cl_event done, cl_mem b, size_t size, void *data);

/* Release the events. If `checked`, their commands are complete: check() the errors of these. An in-order queue goes on
 * behind a command that failed, so the last command's success does not tell that of the others. */
void watch_end(struct watch *w, bool checked);

/* Later commands of `d` wait for all commands that `before` has now. */
void device_follow(struct device *d, struct device *before);

/* Get the bytes to and from all servers of the platform's devices. False: the platform does not count them. */
bool machine_traffic(const struct machine *m, uint64_t *ret_sent, uint64_t *ret_received);

#endif
