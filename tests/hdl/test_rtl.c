/* hdl/'s accelerator in Verilator, behind the driver: random launches and copies, compared with the registry's
 * functions, and what it has to refuse. SPANCL_ALMAIF_PACKETS, SPANCL_ALMAIF_SEED: more of it. */
#include "support/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/backend.h"
#include "backend/builtin/registry.h"
#include "base/mem.h"
#include "support/random.h"

enum { BUFFERS = 6, SIZE = 512, PACKETS = 2000, KERNELS = 4 };

static const char *const names[KERNELS] = { "pocl.copy.i8", "pocl.add.i32", "pocl.mul.i32",
                                            "pocl.abs.f32" };

static const struct backend_ops *const ops = &backend_almaif;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

struct report {
        bool done;
        cl_int status;
};

static void on_complete(void *user, void *cookie, cl_int status, const struct backend_times *t)
{
        pthread_mutex_lock(&lock);
        *(struct report *)cookie = (struct report){ true, status };
        pthread_cond_broadcast(&changed);
        pthread_mutex_unlock(&lock);
}

static cl_int wait_for(struct report *r)
{
        pthread_mutex_lock(&lock);
        while (!r->done)
                pthread_cond_wait(&changed, &lock);
        pthread_mutex_unlock(&lock);
        return r->status;
}

struct fixture {
        pid_t pid;
        char path[64];
        struct backend *b;
        struct backend_queue *q[2];
        struct backend_program *p;
        struct backend_kernel *k[KERNELS];
        struct backend_buffer *m[BUFFERS];
        uint8_t expected[BUFFERS][SIZE];
};

static void start_simulation(struct fixture *f)
{
        const char *source = getenv("SPANCL_SOURCE_DIR"), *build = getenv("SPANCL_BUILD_DIR");
        char command[1100], program[512], word;
        int ready[2];
        snprintf(command, sizeof(command), "'%.500s/hdl/build-sim' '%.500s/hdl' >/dev/null",
                 source ? source : ".", build ? build : ".");
        assert_int_equal(system(command), 0);
        snprintf(program, sizeof(program), "%s/hdl/sim", build ? build : ".");
        strcpy(f->path, "/tmp/spancl-rtl.XXXXXX");
        int fd = mkstemp(f->path);
        assert_true(fd >= 0);
        close(fd);
        assert_int_equal(pipe(ready), 0);
        f->pid = fork();
        if (!f->pid) {
                char digits[16];
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                snprintf(digits, sizeof(digits), "%d", ready[1]);
                execl(program, program, f->path, digits, (char *)NULL);
                _exit(127);
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &word, 1), 1);
        close(ready[0]);
}

static cl_int run(struct backend_queue *q, struct backend_command c)
{
        struct report r = { 0 };
        struct backend_event *e;
        c.cookie = &r;
        assert_int_equal(ops->submit(q, &c, &e), CL_SUCCESS);
        cl_int status = wait_for(&r);
        ops->event_release(e);
        return status;
}

static struct backend_command transfer(enum backend_op op, struct backend_buffer *m, void *p)
{
        return (struct backend_command){ .op = op, .buffer = m, .host = p, .size = SIZE };
}

static int set_up(void **state)
{
        static struct fixture f;
        char text[96];
        struct buf parts = { 0 };
        unsigned device = 0;
        struct rng random = { 1 };
        *state = &f;
        start_simulation(&f);
        snprintf(text, sizeof(text), "shm:%s", f.path);
        struct backend_params params = { .accelerators = text, .complete = on_complete };
        assert_int_equal(ops->open(&params, &f.b), 0);
        for (unsigned i = 0; i < 2; i++)
                assert_int_equal(ops->queue_create(f.b, 0, 0, &f.q[i]), CL_SUCCESS);
        static const char all[] = "pocl.copy.i8;pocl.add.i32;pocl.mul.i32;pocl.abs.f32";
        assert_int_equal(info_put(&parts, INFO_PART, all, sizeof(all)), 0);
        assert_int_equal(
                ops->program_create(f.b, 0, 3, &device, 1, bytes_of(parts.data, parts.size), &f.p),
                CL_SUCCESS);
        buf_fini(&parts);
        for (unsigned i = 0; i < KERNELS; i++)
                assert_int_equal(ops->kernel_create(f.p, names[i], &f.k[i]), CL_SUCCESS);
        for (unsigned i = 0; i < BUFFERS; i++) {
                assert_int_equal(ops->buffer_create(f.b, 0, 0, SIZE, &f.m[i]), CL_SUCCESS);
                for (unsigned j = 0; j < SIZE; j++)
                        f.expected[i][j] = (uint8_t)rng_u64(&random);
                assert_int_equal(run(f.q[0], transfer(BACKEND_WRITE, f.m[i], f.expected[i])),
                                 CL_SUCCESS);
        }
        return 0;
}

static int tear_down(void **state)
{
        struct fixture *f = *state;
        for (unsigned i = 0; i < BUFFERS; i++)
                ops->buffer_release(f->m[i]);
        for (unsigned i = 0; i < KERNELS; i++)
                ops->kernel_release(f->k[i]);
        ops->program_release(f->p);
        for (unsigned i = 0; i < 2; i++)
                ops->queue_release(f->q[i]);
        ops->close(f->b);
        kill(f->pid, SIGTERM);
        int status;
        waitpid(f->pid, &status, 0);
        unlink(f->path);
        return status ? -1 : 0;
}

/* One launch: set up for the device, and done here. */
static struct backend_command launch(struct fixture *f, struct rng *r, size_t *items)
{
        unsigned kernel = (unsigned)rng_below(r, KERNELS);
        const struct registry_kernel *k = registry_find(names[kernel], strlen(names[kernel]));
        struct registry_launch here = { .dims = 1, .global = { 1, 1, 1 } };
        for (unsigned i = 0; i < registry_arg_count(k); i++) {
                unsigned m = (unsigned)rng_below(r, BUFFERS);
                struct arg a = { .index = i, .kind = ARG_BUFFER, .size = 8, .object = 1 };
                assert_int_equal(ops->kernel_set_arg(f->k[kernel], &a, f->m[m], NULL), CL_SUCCESS);
                here.args[i] = (struct registry_value){ f->expected[m], SIZE };
        }
        *items = here.global[0] = 1 + (size_t)rng_below(r, kernel ? SIZE / 4 : SIZE);
        assert_int_equal(k->run(&here), CL_SUCCESS);
        return (struct backend_command){
                .op = BACKEND_KERNEL, .kernel = f->k[kernel], .dims = 1, .global = items
        };
}

/* A chain of dependencies over two queues, with fills by the host between. */
TEST(the_rtl_computes_what_the_registry_says)
{
        struct fixture *f = *state;
        const char *packets = getenv("SPANCL_ALMAIF_PACKETS"), *seed = getenv("SPANCL_ALMAIF_SEED");
        unsigned n = packets ? (unsigned)strtoul(packets, NULL, 0) : PACKETS;
        struct rng r = { seed ? strtoull(seed, NULL, 0) : 7 };
        struct backend_event *last = NULL;
        struct report done = { 0 };
        for (unsigned i = 0; i < n; i++) {
                size_t items;
                struct backend_command c;
                uint32_t pattern = (uint32_t)rng_u64(&r);
                if (rng_chance(&r, 90)) {
                        c = launch(f, &r, &items);
                } else {
                        unsigned m = (unsigned)rng_below(&r, BUFFERS);
                        for (unsigned j = 0; j < SIZE; j += 4)
                                memcpy(f->expected[m] + j, &pattern, 4);
                        c = (struct backend_command){ .op = BACKEND_FILL,
                                                      .buffer = f->m[m],
                                                      .pattern = &pattern,
                                                      .pattern_size = 4,
                                                      .size = SIZE };
                }
                c.deps = last ? &last : NULL;
                c.dep_count = last ? 1 : 0;
                bool pause = i + 1 == n || i % 256 == 255;
                c.cookie = pause ? &done : NULL;
                struct backend_event *e;
                assert_int_equal(ops->submit(f->q[rng_below(&r, 2)], &c, &e), CL_SUCCESS);
                if (last)
                        ops->event_release(last);
                last = e;
                if (!pause)
                        continue;
                assert_int_equal(wait_for(&done), CL_SUCCESS);
                done = (struct report){ 0 };
                for (unsigned m = 0; m < BUFFERS; m++) {
                        uint8_t out[SIZE];
                        assert_int_equal(run(f->q[0], transfer(BACKEND_READ, f->m[m], out)),
                                         CL_SUCCESS);
                        assert_memory_equal(out, f->expected[m], SIZE);
                }
        }
        ops->event_release(last);
}

TEST(the_rtl_refuses_what_it_cannot_do)
{
        struct fixture *f = *state;
        size_t items[2] = { 1, 1 };
        struct arg a = { .kind = ARG_BUFFER, .size = 8 };
        struct backend_command c = {
                .op = BACKEND_KERNEL, .kernel = f->k[1], .dims = 2, .global = items
        };
        for (a.index = 0; a.index < 3; a.index++)
                assert_int_equal(ops->kernel_set_arg(f->k[1], &a, f->m[a.index], NULL), CL_SUCCESS);
        assert_int_equal(run(f->q[0], c), CL_OUT_OF_RESOURCES);
        c.dims = 1;
        a.index = 1;
        assert_int_equal(ops->kernel_set_arg(f->k[1], &a, NULL, NULL), CL_SUCCESS);
        assert_int_equal(run(f->q[0], c), CL_OUT_OF_RESOURCES);
}

int main(void)
{
        if (system("verilator --version >/dev/null 2>&1"))
                return 77;
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(the_rtl_computes_what_the_registry_says, set_up,
                                                tear_down),
                cmocka_unit_test_setup_teardown(the_rtl_refuses_what_it_cannot_do, set_up,
                                                tear_down),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
