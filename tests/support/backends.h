/* A fixture with one backend, for tests that check the promises of backend.h over each of them.
 * The backends are:
 * - the reference;
 * - the native one with this host's implementations (skipped without an OpenCL implementation);
 * - the native one behind a thread;
 * - AlmaIF over emulated accelerators;
 * - the composite of the reference and these accelerators.
 *
 * A completion that is reported inside an operation of the backend fails the test. */
#ifndef SPANCL_TESTS_BACKENDS_H
#define SPANCL_TESTS_BACKENDS_H

#include <stdatomic.h>

#include "backend/backend.h"
#include "backend/reference/reference.h"
#include "backend/threaded/threaded.h"
#include "support/accelerator.h"
#include "support/check.h"

/* ---- fixture ------------------------------------------------------------------------------------ */

enum { COUNT = 1024, BYTES = COUNT * 4 };

struct fixture {
        const struct backend_ops *ops;
        struct backend *b;
        bool native;
        struct backend_queue *queue;
};

/* A cookie points to one: the completion of a command. */
struct report {
        bool done;
        cl_int status;
        struct backend_times times;
};

/* The number of reports, and of those that came inside an operation. */
extern atomic_uint reports_all, reports_inside;

/* The calling thread is in an operation of the backend. */
extern _Thread_local bool in_backend;

struct report report_wait(struct report *r);
bool report_done(struct report *r);

/* Accelerators: one for the fixture, one for a second backend of a test, because only one backend
 * at a time uses each. */
extern char backend_places[2][ACCELERATOR_PATH_SIZE + 8];

/* --clear-memory of backends that are opened from now on. */
extern const char *backends_clear;
/* The parts of the composite. */
extern const struct backend_ops *const backend_parts[BACKEND_PARTS_MAX];

int open_backend(const struct backend_ops *ops, const char *devices, unsigned place,
                 struct backend **ret);

struct backend_queue *fixture_queue(struct fixture *f, cl_command_queue_properties props);

int set_up_reference(void **state);
int set_up_native(void **state);
int set_up_threaded(void **state);
int set_up_almaif(void **state);
/* The reference's devices, and behind them an accelerator. */
int set_up_composite(void **state);
int tear_down(void **state);

/* Skips the test where the backend can't be opened. */
struct fixture *fixture(void **state);

/* ---- shorthands --------------------------------------------------------------------------------- */

cl_int try_submit(struct fixture *f, struct backend_queue *q, struct backend_command c,
                  struct backend_event **ret);

struct backend_event *fixture_submit(struct fixture *f, struct backend_queue *q,
                                     struct backend_command c);

/* Submit, wait, and return the status. */
cl_int run_on(struct fixture *f, struct backend_queue *q, struct backend_command c);

/* The same in the fixture's queue, without an error. */
void execute(struct fixture *f, struct backend_command c);

struct backend_buffer *fixture_buffer(struct fixture *f, size_t size);

struct backend_command write_of(struct backend_buffer *m, size_t at, void *p, size_t size);

struct backend_command read_of(struct backend_buffer *m, size_t at, void *p, size_t size);

void fill_counting(uint8_t *p, size_t size);

/* OpenCL C that native devices are given: kernels `inc`, `spin` and `every`. */
extern const char inc_source[];

struct built {
        struct backend_program *program;
        struct buf info;
        cl_int status;
};

/* A program with the kernel `inc_name(f)`. */
struct built build_with(struct fixture *f, unsigned kind, const void *part, size_t size,
                        const char *options);

/* Kernels of the sources above, or those built in that do the same. */
struct built build(struct fixture *f);

void unbuild(struct fixture *f, struct built *x);

const char *inc_name(struct fixture *f);

struct backend_kernel *kernel_of(struct fixture *f, struct built *x, const char *name);

cl_int fixture_set_buffer(struct fixture *f, struct backend_kernel *k, unsigned i,
                          struct backend_buffer *m);

cl_int set_value(struct fixture *f, struct backend_kernel *k, unsigned i, const void *value,
                 size_t size);

void set_inc(struct fixture *f, struct backend_kernel *k, struct backend_buffer *m, int by);

struct backend_command launch_all(struct backend_kernel *k);

struct bytes block_of(const struct buf *b);

const char *text_in(struct bytes block, uint32_t key);

cl_uint uint_in(struct bytes block, uint32_t key);

/* The INFO_KERNEL block of that name. */
struct bytes kernel_info(const struct built *x, const char *name);

struct bytes arg_info(struct bytes kernel, unsigned index);

/* ---- the matrix --------------------------------------------------------------------------------- */

/* A test over each backend, or over one. */
#define ALL(test)                                                          \
        AT_ONCE(test),                                                     \
        {                                                                  \
                "threaded: " #test, test, set_up_threaded, tear_down, NULL \
        }
/* Claims about the results of operations, which the thread has later. */
#define AT_ONCE(test)                                                             \
        { "reference: " #test, test, set_up_reference, tear_down, NULL },         \
                { "almaif: " #test, test, set_up_almaif, tear_down, NULL },       \
                { "composite: " #test, test, set_up_composite, tear_down, NULL }, \
        {                                                                         \
                "native: " #test, test, set_up_native, tear_down, NULL            \
        }
#define REFERENCE(test)                                                      \
        {                                                                    \
                "reference: " #test, test, set_up_reference, tear_down, NULL \
        }
#define NATIVE(test)                                                   \
        {                                                              \
                "native: " #test, test, set_up_native, tear_down, NULL \
        }

#endif
