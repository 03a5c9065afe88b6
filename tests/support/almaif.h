/* Accelerators behind the driver, and shorthands for calls of backend_almaif. */
#ifndef SPANCL_TESTS_ALMAIF_H
#define SPANCL_TESTS_ALMAIF_H

#include "backend/backend.h"
#include "support/accelerator.h"

enum { COUNT = 256, BYTES = COUNT * 4, TEXT_SIZE = 1024 };

/* A list of words for accelerator_start. */
#define OPTIONS(...)              \
        (const char *const[])     \
        {                         \
                __VA_ARGS__, NULL \
        }

/* A cookie points to one: the completion of a command. */
struct report {
        unsigned times;
        cl_int status;
};

/* Wait until it was reported, check that this was once, and return its status. */
cl_int wait_for(struct report *r);
/* Let wait_for poll this backend meanwhile, as an engine that spins does. NULL: no more. */
void wait_polling(struct backend *b);

/* Open the backend with the accelerators of this text; open_at asserts that there are some. */
int open_text(const char *text, struct backend **ret);
struct backend *open_at(const char *text);

struct backend_queue *queue_of(struct backend *b, unsigned device,
                               cl_command_queue_properties props);
struct backend_buffer *buffer_of(struct backend *b, size_t size);
/* Make a program of built-in kernels, in domain 0. */
struct backend_program *program_of(struct backend *b, const char *names);
void set_buffer(struct backend_kernel *k, unsigned i, struct backend_buffer *m);
void set_u32(struct backend_kernel *k, unsigned i, uint32_t v);

/* Submit a command. The event is dropped if `ret` is NULL. */
void submit(struct backend_queue *q, struct backend_command c, struct report *r,
            struct backend_event **ret);
/* Submit and wait. */
cl_int run(struct backend_queue *q, struct backend_command c);

struct backend_command launch_of(struct backend_kernel *k, const size_t *items);
struct backend_command transfer(enum backend_op op, struct backend_buffer *m, void *p, size_t size);

/* One accelerator and all objects that a launch of `inc` needs. */
struct fixture {
        struct accelerator a;
        struct backend *b;
        struct backend_queue *q;
        struct backend_program *p;
        struct backend_kernel *inc;
        struct backend_buffer *m;
        int data[COUNT];
};

extern const size_t whole[1];

/* Start an emulator with these options, and use it with these settings (",timeout=5"). */
void fixture_open(struct fixture *f, const char *const *options, const char *settings);
/* Use the accelerators of a whole entry of SPANCL_ALMAIF instead. */
void fixture_open_at(struct fixture *f, const char *text);
void fixture_close(struct fixture *f);
/* Check that each element of `m` is its first value plus `by`. */
void expect_added(struct fixture *f, int by);

#endif
