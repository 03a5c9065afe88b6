/* The objects of the threaded backend, for its files. */
#ifndef SPANCL_BACKEND_THREADED_STATE_H
#define SPANCL_BACKEND_THREADED_STATE_H

#include "backend/threaded/thread.h"
#include "base/mem.h"

struct backend {
        struct backend *inner;
        void (*complete)(void *user, void *cookie, cl_int status, const struct backend_times *t);
        void (*broken)(void *user, const char *text);
        void *user;
        struct runner calls, reports;
};

/* An object of the native backend, which comes later. Until it is released, only the thread of the
 * calls reads and writes `inner` and `status`. */
#define OBJECT(type)                                    \
        struct backend_##type {                         \
                struct backend *owner;                  \
                struct backend_##type *inner;           \
                cl_int status; /* < 0: there is none */ \
                struct task release;                    \
        };                                              \
        void threaded_run_release_##type(struct backend *b, struct task *t)

OBJECT(buffer);
OBJECT(sampler);
OBJECT(svm);
OBJECT(queue);
OBJECT(program);
OBJECT(event);

struct backend_kernel {
        struct backend *owner;
        struct backend_kernel *inner;
        cl_int status;
        struct task release;
        /* The argument that could not be set; arg_status 0: none. */
        uint32_t bad_arg;
        cl_int arg_status;
};
void threaded_run_release_kernel(struct backend *b, struct task *t);

#define NEW(type, b)                                                     \
        __extension__({                                                  \
                struct backend_##type *new_ = mem_zalloc(sizeof(*new_)); \
                if (new_) {                                              \
                        new_->owner = (b);                               \
                        new_->release.run = threaded_run_release_##type; \
                }                                                        \
                new_;                                                    \
        })

/* A task about a queue. */
struct queue_task {
        struct task task;
        struct backend_queue *queue; /* to make, or else to use */
        struct backend_kernel *kernel;
        bool on_device;
        unsigned number; /* of the device, or of the kernel's argument */
        cl_command_queue_properties props;
        cl_uint size;
};

/* Have the thread of the calls run a copy of the task, which `run` frees. CL_OUT_OF_HOST_MEMORY. */
SP_NODISCARD cl_int queue_task_post(struct backend *b, void (*run)(struct backend *, struct task *),
                                    const struct queue_task *what);

#endif
