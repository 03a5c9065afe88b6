/* hdl/'s accelerator in Verilator, behind the driver: random launches and copies, compared with the registry's
 * functions, and what it has to refuse. SPANCL_ALMAIF_PACKETS, SPANCL_ALMAIF_SEED: more of it. */
#include "support/check.h"

#include <fcntl.h>
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
#include "support/almaif.h"
#include "support/random.h"

enum { BUFFERS = 6, SIZE = 512, PACKETS = 2000, KERNELS = 4 };

static const char *const names[KERNELS] = { "pocl.copy.i8", "pocl.add.i32", "pocl.mul.i32",
                                            "pocl.abs.f32" };

static const struct backend_ops *const ops = &backend_almaif;

struct rtl {
        pid_t pid;
        char path[64];
        struct backend *b;
        struct backend_queue *q[2];
        struct backend_program *p;
        struct backend_kernel *k[KERNELS];
        struct backend_buffer *m[BUFFERS];
        uint8_t expected[BUFFERS][SIZE];
};

/* hdl/build-sim, and its program over a file; `kind` is "" or "master". */
static pid_t start_simulation(const char *kind, const char *path)
{
        const char *source = getenv("SPANCL_SOURCE_DIR"), *build = getenv("SPANCL_BUILD_DIR");
        char command[1100], program[512], word;
        int ready[2];
        snprintf(command, sizeof(command), "'%.500s/hdl/build-sim' '%.500s/hdl' %s >/dev/null",
                 source ? source : ".", build ? build : ".", kind);
        assert_int_equal(system(command), 0);
        snprintf(program, sizeof(program), "%s/hdl%s%s/sim", build ? build : ".", *kind ? "-" : "",
                 kind);
        assert_int_equal(pipe(ready), 0);
        pid_t pid = fork();
        if (!pid) {
                char digits[16];
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                snprintf(digits, sizeof(digits), "%d", ready[1]);
                execl(program, program, path, digits, (char *)NULL);
                _exit(127);
        }
        close(ready[1]);
        assert_int_equal(read(ready[0], &word, 1), 1);
        close(ready[0]);
        return pid;
}

static void make_file(char path[64])
{
        strcpy(path, "/tmp/spancl-rtl.XXXXXX");
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        close(fd);
}

static struct backend_command whole_transfer(enum backend_op op, struct backend_buffer *m, void *p)
{
        return transfer(op, m, p, SIZE);
}

static int set_up(void **state)
{
        static struct rtl f;
        char text[96];
        struct rng random = { 1 };
        *state = &f;
        make_file(f.path);
        f.pid = start_simulation("", f.path);
        snprintf(text, sizeof(text), "shm:%s", f.path);
        f.b = open_at(text);
        for (unsigned i = 0; i < 2; i++)
                f.q[i] = queue_of(f.b, 0, 0);
        f.p = program_of(f.b, "pocl.copy.i8;pocl.add.i32;pocl.mul.i32;pocl.abs.f32");
        for (unsigned i = 0; i < KERNELS; i++)
                assert_int_equal(ops->kernel.create(f.p, names[i], &f.k[i]), CL_SUCCESS);
        for (unsigned i = 0; i < BUFFERS; i++) {
                assert_int_equal(ops->buffer.create(f.b, 0, 0, SIZE, &f.m[i]), CL_SUCCESS);
                for (unsigned j = 0; j < SIZE; j++)
                        f.expected[i][j] = (uint8_t)rng_u64(&random);
                assert_int_equal(run(f.q[0], whole_transfer(BACKEND_WRITE, f.m[i], f.expected[i])),
                                 CL_SUCCESS);
        }
        return 0;
}

static int tear_down(void **state)
{
        struct rtl *f = *state;
        for (unsigned i = 0; i < BUFFERS; i++)
                ops->buffer.release(f->m[i]);
        for (unsigned i = 0; i < KERNELS; i++)
                ops->kernel.release(f->k[i]);
        ops->program.release(f->p);
        for (unsigned i = 0; i < 2; i++)
                ops->queue.release(f->q[i]);
        ops->close(f->b);
        kill(f->pid, SIGTERM);
        int status;
        waitpid(f->pid, &status, 0);
        unlink(f->path);
        return status ? -1 : 0;
}

/* One launch: set up for the device, and done here. */
static struct backend_command launch(struct rtl *f, struct rng *r, size_t *items)
{
        unsigned kernel = (unsigned)rng_below(r, KERNELS);
        const struct registry_kernel *k = registry_find(names[kernel], strlen(names[kernel]));
        struct registry_launch here = { .dims = 1, .global = { 1, 1, 1 } };
        for (unsigned i = 0; i < registry_arg_count(k); i++) {
                unsigned m = (unsigned)rng_below(r, BUFFERS);
                struct arg a = { .index = i, .kind = ARG_BUFFER, .size = 8, .object = 1 };
                assert_int_equal(ops->kernel.set_arg(f->k[kernel], &a, f->m[m], NULL), CL_SUCCESS);
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
        struct rtl *f = *state;
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
                struct backend_event *e;
                submit(f->q[rng_below(&r, 2)], c, pause ? &done : NULL, &e);
                if (last)
                        ops->event.release(last);
                last = e;
                if (!pause)
                        continue;
                assert_int_equal(wait_for(&done), CL_SUCCESS);
                for (unsigned m = 0; m < BUFFERS; m++) {
                        uint8_t out[SIZE];
                        assert_int_equal(run(f->q[0], whole_transfer(BACKEND_READ, f->m[m], out)),
                                         CL_SUCCESS);
                        assert_memory_equal(out, f->expected[m], SIZE);
                }
        }
        ops->event.release(last);
}

TEST(the_rtl_refuses_what_it_cannot_do)
{
        struct rtl *f = *state;
        size_t items[2] = { 1, 1 };
        struct arg a = { .kind = ARG_BUFFER, .size = 8 };
        struct backend_command c = {
                .op = BACKEND_KERNEL, .kernel = f->k[1], .dims = 2, .global = items
        };
        for (a.index = 0; a.index < 3; a.index++)
                assert_int_equal(ops->kernel.set_arg(f->k[1], &a, f->m[a.index], NULL), CL_SUCCESS);
        assert_int_equal(run(f->q[0], c), CL_OUT_OF_RESOURCES);
        c.dims = 1;
        a.index = 1;
        assert_int_equal(ops->kernel.set_arg(f->k[1], &a, NULL, NULL), CL_SUCCESS);
        assert_int_equal(run(f->q[0], c), CL_OUT_OF_RESOURCES);
}

/* As a bus master it works on memory that another accelerator works on, too: a chain over both, in which each
 * waits for the other's signals. */
TEST(the_rtl_is_a_bus_master)
{
        (void)state;
        enum { CHAIN = 24 };
        static const size_t items[1] = { SIZE / 4 };
        struct accelerator a;
        struct report last;
        struct backend_event *e[CHAIN];
        char path[64], text[256];
        uint32_t sums[SIZE / 4], ones[SIZE / 4];
        make_file(path);
        accelerator_start(&a, path,
                          OPTIONS("--bus-master", "--base", "0x100000", "--file-size", "0x500000",
                                  "--data", "4096"));
        pid_t pid = start_simulation("master", path);
        snprintf(text, sizeof(text),
                 "shm:%s,shared=0x400000+0x100000;shm:%s@0x100000,shared=0x400000+0x100000", path,
                 path);
        struct backend *b = open_at(text);
        struct backend_queue *q[2] = { queue_of(b, 0, 0), queue_of(b, 1, 0) };
        struct backend_program *p = program_of(b, "pocl.add.i32");
        struct backend_kernel *add;
        struct backend_buffer *sum = buffer_of(b, SIZE), *one = buffer_of(b, SIZE);
        assert_int_equal(ops->domain_count(b), 1);
        assert_int_equal(ops->kernel.create(p, "pocl.add.i32", &add), CL_SUCCESS);
        for (uint32_t i = 0; i < SIZE / 4; i++) {
                sums[i] = i * 0x01234567;
                ones[i] = i + 1;
        }
        assert_int_equal(run(q[0], transfer(BACKEND_WRITE, sum, sums, SIZE)), CL_SUCCESS);
        assert_int_equal(run(q[0], transfer(BACKEND_WRITE, one, ones, SIZE)), CL_SUCCESS);
        set_buffer(add, 0, sum);
        set_buffer(add, 1, one);
        set_buffer(add, 2, sum);
        for (unsigned i = 0; i < CHAIN; i++) {
                struct backend_command c = launch_of(add, items);
                c.deps = i ? &e[i - 1] : NULL;
                c.dep_count = i ? 1 : 0;
                submit(q[i % 2], c, i == CHAIN - 1 ? &last : NULL, &e[i]);
        }
        assert_int_equal(wait_for(&last), CL_SUCCESS);
        assert_int_equal(run(q[0], transfer(BACKEND_READ, sum, sums, SIZE)), CL_SUCCESS);
        for (uint32_t i = 0; i < SIZE / 4; i++)
                assert_int_equal(sums[i], i * 0x01234567 + CHAIN * (i + 1));
        for (unsigned i = 0; i < CHAIN; i++)
                ops->event.release(e[i]);
        ops->kernel.release(add);
        ops->program.release(p);
        ops->buffer.release(sum);
        ops->buffer.release(one);
        ops->queue.release(q[0]);
        ops->queue.release(q[1]);
        ops->close(b);
        kill(pid, SIGTERM);
        waitpid(pid, NULL, 0);
        accelerator_stop(&a);
        unlink(path);
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
                cmocka_unit_test(the_rtl_is_a_bus_master),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
