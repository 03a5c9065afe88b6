/* AlmaIF accelerators, over emulators that are processes of their own: their registers, profiles,
 * faults, and chains between them. The promises of every backend are tested in test_backend_*.c. */
#include "support/check.h"

#include <fcntl.h>
#include <signal.h>
#include <spancl/almaif.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/almaif/accel.h"
#include "backend/almaif/heap.h"
#include "backend/backend.h"
#include "backend/builtin/registry.h"
#include "base/bytes.h"
#include "base/log.h"
#include "base/mem.h"
#include "support/accelerator.h"
#include "support/almaif.h"
#include "support/random.h"

static const struct backend_ops *const ops = &backend_almaif;

/* ---- what the configuration says ------------------------------------------------------------ */

TEST(places_and_options_are_understood)
{
        (void)state;
        char error[SPEC_ERROR_SIZE];
        struct almaif_spec *s;
        size_t n;
        assert_int_equal(
                almaif_specs_parse(" shm:/a/b@0x1000, completion=one,profile=v2 ,args=packed ;"
                                   "mem:0x43C00000+0x10000,image=/x.img,timeout=5,spin=0,ids=1:0x2;"
                                   "uio:/dev/uio3,profile=v3,ids=7,index=add;; "
                                   "pci:/sys/bus/pci/devices/0000:01:00.0/resource2@4096,"
                                   "shared=0x100+0x200,name=x,kernels=/k;",
                                   &s, &n, error),
                0);
        assert_int_equal(n, 4);
        assert_string_equal(s[0].place.path, "/a/b");
        assert_int_equal(s[0].place.base, 0x1000);
        assert_false(s[0].completion_zero); /* whatever comes first */
        assert_int_equal(s[0].args, SPEC_ARGS_PACKED);
        assert_int_equal(s[1].place.base, 0x43C00000);
        assert_int_equal(s[1].place.size, 0x10000);
        assert_true(s[1].completion_zero);
        assert_int_equal(s[1].timeout_ms, 5);
        assert_int_equal(s[1].id_count, 2);
        assert_int_equal(s[2].profile, 3);
        assert_true(s[2].index_adds && !s[2].completion_zero);
        assert_string_equal(s[3].place.path, "/sys/bus/pci/devices/0000:01:00.0/resource2");
        assert_int_equal(s[3].shared_size, 0x200);
        mem_free(s);
        static const char *const wrong[][2] = {
                { "shm:a", "shm:/path" },
                { "foo:/a", "shm:, emu:" },
                { "mem:x", "mem:ADDRESS" },
                { "shm:/a,profile=v4", "v2, v3" },
                { "shm:/a,nonsense=1", "nonsense" },
                { "shm:/a,ids=70000", "numbers of kernels" },
                { "shm:/a,shared=5", "ADDRESS+SIZE" },
                { "shm:/a;mem:", "mem:ADDRESS" },
        };
        for (size_t i = 0; i < array_size(wrong); i++) {
                assert_int_equal(almaif_specs_parse(wrong[i][0], &s, &n, error), SP_E_INVAL);
                assert_non_null(strstr(error, wrong[i][1]));
        }
}

TEST(memory_is_taken_where_it_first_fits)
{
        (void)state;
        struct heap h;
        uint64_t a, b, c, d;
        heap_init(&h, 1000);
        assert_int_equal(heap_take(&h, 100, 64, &a), 0);
        assert_int_equal(heap_take(&h, 100, 64, &b), 0);
        assert_int_equal(heap_take(&h, 100, 64, &c), 0);
        assert_int_equal(a, 0);
        assert_int_equal(b, 128);
        assert_int_equal(c, 256);
        heap_give(&h, b);
        assert_int_equal(heap_take(&h, 129, 64, &d), 0);
        assert_int_equal(d, 384);
        assert_int_equal(heap_take(&h, 128, 64, &b), 0);
        assert_int_equal(b, 128);
        assert_int_equal(heap_take(&h, 600, 1, &b), SP_E_LIMIT);
        assert_int_equal(heap_take(&h, 2000, 1, &b), SP_E_LIMIT);
        heap_fini(&h);
}

/* ---- registers ------------------------------------------------------------------------------ */

struct registers {
        uint8_t bytes[16384];
};

static void good_registers(struct registers *r, unsigned profile)
{
        memset(r, 0, sizeof(*r));
        bytes_put_u32(r->bytes + ALMAIF_STATUS, ALMAIF_STATUS_RESET);
        bytes_put_u32(r->bytes + ALMAIF_INTERFACE_VERSION, profile);
        bytes_put_u32(r->bytes + ALMAIF_CORE_COUNT, 1);
        bytes_put_u64(r->bytes + ALMAIF_QUEUE_START, 0x1000);
        bytes_put_u64(r->bytes + ALMAIF_QUEUE_SIZE, profile == 3 ? 0x1040 : 0x1000);
        bytes_put_u64(r->bytes + ALMAIF_DATA_START, 0x2040);
        bytes_put_u64(r->bytes + ALMAIF_DATA_SIZE, 0x1000);
        bytes_put_u32(r->bytes + ALMAIF_KERNEL_COUNT, profile == 3 ? 8 : 1);
}

/* Open a file with these registers and return the error text; "": it opens. */
static const char *opening(const struct registers *r, const char *settings)
{
        static char error[SPEC_ERROR_SIZE];
        char path[] = "/tmp/spancl-registers.XXXXXX", text[TEXT_SIZE];
        struct almaif_spec *s;
        struct accel a;
        size_t n;
        int fd = mkstemp(path);
        assert_true(fd >= 0);
        assert_int_equal(write(fd, r->bytes, sizeof(r->bytes)), sizeof(r->bytes));
        close(fd);
        snprintf(text, sizeof(text), "shm:%s%s", path, settings);
        assert_int_equal(almaif_specs_parse(text, &s, &n, error), 0);
        *error = 0;
        int status = accel_open(s, &a, error);
        if (!status)
                accel_close(&a);
        assert_int_equal(!status, !*error);
        mem_free(s);
        unlink(path);
        return error;
}

/* Each wrong register is named, with its offset. */
TEST(wrong_registers_are_named)
{
        (void)state;
        struct registers r;
        good_registers(&r, 2);
        assert_string_equal(opening(&r, ""), "");
        static const struct {
                unsigned at, size;
                uint64_t value;
                const char *name;
                const char *settings;
        } wrong[] = {
                { ALMAIF_STATUS, 4, 8, "STATUS (0x000) is 0x8", "" },
                { ALMAIF_STATUS, 4, 0xFFFFFFFF, "STATUS (0x000)", "" },
                { ALMAIF_INTERFACE_VERSION, 4, 3, "INTERFACE_VERSION (0x308) is 0x3", "" },
                { ALMAIF_INTERFACE_VERSION, 4, 0, "INTERFACE_VERSION (0x308)", "" },
                { ALMAIF_CORE_COUNT, 4, 0, "CORE_COUNT (0x30c)", "" },
                { ALMAIF_CORE_COUNT, 4, 0x10001, "CORE_COUNT (0x30c)", "" },
                { ALMAIF_CONFIG_SIZE, 4, 16, "CONFIG_START (0x318)", "" },
                { ALMAIF_QUEUE_SIZE, 8, 0, "QUEUE_SIZE (0x320)", "" },
                { ALMAIF_QUEUE_SIZE, 8, 64, "QUEUE_SIZE (0x320)", "" },
                { ALMAIF_QUEUE_SIZE, 8, 192, "QUEUE_SIZE (0x320)", "" },
                { ALMAIF_QUEUE_SIZE, 8, 1 << 20, "QUEUE_SIZE (0x320)", "" },
                { ALMAIF_QUEUE_SIZE, 8, UINT64_MAX, "QUEUE_SIZE (0x320)", "" },
                { ALMAIF_QUEUE_START, 8, 0x100, "QUEUE_START (0x328)", "" },
                { ALMAIF_QUEUE_START, 8, 0x1004, "QUEUE_START (0x328)", "" },
                { ALMAIF_QUEUE_START, 8, 1u << 31, "QUEUE_SIZE (0x320)", "" },
                { ALMAIF_DATA_SIZE, 8, 0x10000, "DATA_SIZE (0x330)", "" },
                { ALMAIF_DATA_SIZE, 8, 512, "DATA_SIZE (0x330)", "" },
                { ALMAIF_DATA_START, 8, 0, "DATA_START (0x338)", "" },
                { ALMAIF_DATA_START, 8, UINT64_MAX & ~7ull, "DATA_SIZE (0x330)", "" },
                { ALMAIF_FEATURES, 8, 0, "FEATURES (0x340)", ",shared=0x1000+0x1000" },
                { ALMAIF_KERNEL_COUNT, 2, 0, "KERNEL_COUNT (0x348)", "" },
                { ALMAIF_KERNEL_COUNT, 2, 65, "KERNEL_COUNT (0x348)", "" },
        };
        for (size_t i = 0; i < array_size(wrong); i++) {
                good_registers(&r, 2);
                memcpy(r.bytes + wrong[i].at, &wrong[i].value, wrong[i].size);
                const char *said = opening(&r, wrong[i].settings);
                if (!strstr(said, wrong[i].name))
                        fail_msg("%s: '%s'", wrong[i].name, said);
        }
        good_registers(&r, 3);
        assert_string_equal(opening(&r, ",profile=v3,ids=1"), "");
        assert_non_null(strstr(opening(&r, ",profile=v3"), "ids="));
        bytes_put_u32(r.bytes + ALMAIF_POINTER_SIZE, 5);
        assert_non_null(strstr(opening(&r, ",profile=v3,ids=1"), "POINTER_SIZE (0x348)"));
        assert_non_null(strstr(opening(&r, "@0x3f00"), "bytes"));
}

/* A file of registers that nobody stands behind. */
TEST(a_device_that_does_not_reset_is_not_available)
{
        (void)state;
        char path[] = "/tmp/spancl-registers.XXXXXX", text[TEXT_SIZE];
        struct registers r;
        struct backend_queue *q;
        good_registers(&r, 2);
        bytes_put_u32(r.bytes + ALMAIF_STATUS, 0);
        int fd = mkstemp(path);
        assert_int_equal(write(fd, r.bytes, sizeof(r.bytes)), sizeof(r.bytes));
        close(fd);
        snprintf(text, sizeof(text), "shm:%s", path);
        struct backend *b = open_at(text);
        log_threshold = LOG_NONE;
        assert_int_equal(ops->queue.create(b, 0, 0, &q), CL_DEVICE_NOT_AVAILABLE);
        ops->close(b);
        assert_int_equal(open_text("shm:/nonexistent", &b), SP_E_NODEV);
        log_threshold = LOG_WARN;
        unlink(path);
}

/* ---- profiles ------------------------------------------------------------------------------- */

/* sgemm has three buffers and three values: all ways of compression arguments differ. */
static void multiply(struct fixture *f)
{
        struct backend_program *p = program_of(f->b, "pocl.sgemm.local.f32");
        struct backend_kernel *k;
        float in[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, out[4];
        struct backend_buffer *a = buffer_of(f->b, 32), *b = buffer_of(f->b, 32),
                              *c = buffer_of(f->b, 16);
        assert_int_equal(ops->kernel.create(p, "pocl.sgemm.local.f32", &k), CL_SUCCESS);
        run(f->q, transfer(BACKEND_WRITE, a, in, 32));
        run(f->q, transfer(BACKEND_WRITE, b, in, 32));
        set_buffer(k, 0, a);
        set_buffer(k, 1, b);
        set_buffer(k, 2, c);
        set_u32(k, 3, 2);
        set_u32(k, 4, 2);
        set_u32(k, 5, 4);
        static const size_t items[2] = { 2, 2 };
        struct backend_command launch = launch_of(k, items);
        launch.dims = 2;
        assert_int_equal(run(f->q, launch), CL_SUCCESS);
        run(f->q, transfer(BACKEND_READ, c, out, 16));
        assert_memory_equal(out, ((float[4]){ 50, 60, 114, 140 }), 16);
        ops->kernel.release(k);
        ops->program.release(p);
        ops->buffer.release(a);
        ops->buffer.release(b);
        ops->buffer.release(c);
}

static void expect_profile(const char *const *options, const char *settings)
{
        struct fixture f;
        fixture_open(&f, options, settings);
        for (int i = 0; i < 300; i++) /* several times round the ring */
                submit(f.q, launch_of(f.inc, whole), NULL, NULL);
        expect_added(&f, 300);
        multiply(&f);
        fixture_close(&f);
}

TEST(each_profile_works)
{
        (void)state;
        expect_profile(OPTIONS("--profile", "v2"), "");
        expect_profile(OPTIONS("--profile", "v3"), ",profile=v3,ids=6:0xF000:0xF001");
        expect_profile(OPTIONS("--profile", "v3", "--pointer", "4", "--completion", "zero"),
                       ",profile=v3,ids=6:0xF000:0xF001,completion=zero");
        expect_profile(OPTIONS("--completion", "one", "--index", "add"),
                       ",completion=one,index=add");
        expect_profile(OPTIONS("--args", "packed"), ",args=packed");
        expect_profile(OPTIONS("--args", "stride", "--bus-master", "--base", "0x10000"),
                       "@0x10000,args=stride");
        expect_profile(OPTIONS("--packets", "2", "--data", "16384"), "");
        /* The 64-bit indices wrap. */
        expect_profile(OPTIONS("--first-index", "0xFFFFFFFFFFFFFF80"), "");
        expect_profile(OPTIONS("--first-index", "0xFFFFFFF0", "--index", "add"), ",index=add");
        /* It sleeps at once, and so does the host. */
        expect_profile(OPTIONS("--spin", "0"), ",spin=0");
}

static void expect_stopped(pid_t pid)
{
        int status;
        assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
        assert_true(WIFSTOPPED(status));
}

/* A thread that polls gets completions on its own thread. After its last poll the backend's
 * threads report them. */
TEST(launches_end_while_somebody_polls_and_when_he_has_stopped)
{
        (void)state;
        struct fixture f;
        struct report r[2];
        fixture_open(&f, OPTIONS("--packets", "8"), "");
        assert_int_equal(ops->poll(f.b, false), BACKEND_IDLE);
        kill(f.a.pid, SIGSTOP);
        expect_stopped(f.a.pid);
        submit(f.q, launch_of(f.inc, whole), &r[0], NULL);
        submit(f.q, launch_of(f.inc, whole), &r[1], NULL);
        for (int i = 0; i < 1000; i++)
                assert_int_equal(ops->poll(f.b, false), BACKEND_WAITING);
        kill(f.a.pid, SIGCONT);
        while (ops->poll(f.b, false) != BACKEND_REPORTED)
                ;
        assert_int_equal(wait_for(&r[0]), CL_SUCCESS);
        ops->poll(f.b, true);
        assert_int_equal(wait_for(&r[1]), CL_SUCCESS);
        assert_int_equal(run(f.q, launch_of(f.inc, whole)), CL_SUCCESS);
        expect_added(&f, 3);
        fixture_close(&f);
}

TEST(a_designers_kernels_run)
{
        (void)state;
        char path[] = "/tmp/spancl-rows.XXXXXX", settings[64];
        int fd = mkstemp(path);
        static const char rows[] = "0x200 acme.inc = spancl.inc.i32\n0x201 acme.unknown(int *x)\n";
        assert_int_equal(write(fd, rows, sizeof(rows) - 1), sizeof(rows) - 1);
        close(fd);
        snprintf(settings, sizeof(settings), ",kernels=%s", path);
        struct fixture f;
        fixture_open(&f, OPTIONS("--kernels", path, "--ids", "0x200,0x201,0xF000,0xF001"),
                     settings);
        struct backend_program *p = program_of(f.b, "acme.inc;acme.unknown");
        struct backend_kernel *k;
        assert_int_equal(ops->kernel.create(p, "acme.inc", &k), CL_SUCCESS);
        set_buffer(k, 0, f.m);
        set_u32(k, 1, 5);
        assert_int_equal(run(f.q, launch_of(k, whole)), CL_SUCCESS);
        expect_added(&f, 5);
        ops->kernel.release(k);
        /* Nobody told the emulator how to compute it. */
        assert_int_equal(ops->kernel.create(p, "acme.unknown", &k), CL_SUCCESS);
        set_buffer(k, 0, f.m);
        assert_int_equal(run(f.q, launch_of(k, whole)), CL_OUT_OF_RESOURCES);
        ops->kernel.release(k);
        ops->program.release(p);
        fixture_close(&f);
        unlink(path);
}

TEST(the_image_is_in_the_configuration_memory)
{
        (void)state;
        char path[] = "/tmp/spancl-image.XXXXXX", settings[64], image[5000], seen[5000];
        int fd = mkstemp(path);
        for (size_t i = 0; i < sizeof(image); i++)
                image[i] = (char)(i * 7);
        assert_int_equal(write(fd, image, sizeof(image)), sizeof(image));
        close(fd);
        snprintf(settings, sizeof(settings), ",image=%s", path);
        struct fixture f;
        fixture_open(&f, OPTIONS("--config", "8192"), settings);
        fd = open(f.a.path, O_RDONLY);
        uint64_t at;
        assert_int_equal(pread(fd, &at, 8, ALMAIF_CONFIG_START), 8);
        assert_int_equal(pread(fd, seen, sizeof(seen), (off_t)at), sizeof(seen));
        assert_memory_equal(seen, image, sizeof(image));
        close(fd);
        fixture_close(&f);
        struct accelerator a;
        char text[TEXT_SIZE];
        struct backend_queue *q;
        accelerator_start(&a, NULL, OPTIONS("--config", "4096"));
        snprintf(text, sizeof(text), "shm:%s%s", a.path, settings);
        struct backend *b = open_at(text);
        log_threshold = LOG_NONE;
        assert_int_equal(ops->queue.create(b, 0, 0, &q), CL_DEVICE_NOT_AVAILABLE);
        log_threshold = LOG_WARN;
        ops->close(b);
        accelerator_stop(&a);
        unlink(path);
}

TEST(one_process_at_a_time_uses_an_accelerator)
{
        (void)state;
        struct fixture f;
        char text[TEXT_SIZE];
        struct backend_queue *q;
        fixture_open(&f, OPTIONS("--packets", "8"), "");
        snprintf(text, sizeof(text), "shm:%s", f.a.path);
        struct backend *other = open_at(text); /* looking is allowed */
        log_threshold = LOG_NONE;
        assert_int_equal(ops->queue.create(other, 0, 0, &q), CL_DEVICE_NOT_AVAILABLE);
        log_threshold = LOG_WARN;
        ops->close(other);
        assert_int_equal(run(f.q, launch_of(f.inc, whole)), CL_SUCCESS);
        expect_added(&f, 1);
        fixture_close(&f);
}

TEST(memory_runs_out)
{
        (void)state;
        struct fixture f;
        struct backend_buffer *m, *n;
        fixture_open(&f, OPTIONS("--data", "65536"), "");
        assert_int_equal(ops->buffer.create(f.b, 0, 0, 65536, &m), CL_INVALID_BUFFER_SIZE);
        assert_int_equal(ops->buffer.create(f.b, 0, 0, 30000, &m), CL_SUCCESS);
        assert_int_equal(ops->buffer.create(f.b, 0, 0, 30000, &n),
                         CL_MEM_OBJECT_ALLOCATION_FAILURE);
        ops->buffer.release(m);
        assert_int_equal(ops->buffer.create(f.b, 0, 0, 30000, &n), CL_SUCCESS);
        ops->buffer.release(n);
        fixture_close(&f);
}

/* ---- faults --------------------------------------------------------------------------------- */

/* Submit three launches, of which the second meets the fault. Check that it completes with
 * `status`, and that the others succeed. */
static void meet_fault(const char *fault, const char *settings, cl_int status, int added,
                       bool polling)
{
        struct fixture f;
        struct report r[4];
        struct backend_event *e;
        fixture_open(&f, OPTIONS("--fault", fault), settings);
        wait_polling(polling ? f.b : NULL);
        log_threshold = LOG_NONE;
        submit(f.q, launch_of(f.inc, whole), &r[0], NULL);
        submit(f.q, launch_of(f.inc, whole), &r[1], &e);
        submit(f.q, launch_of(f.inc, whole), &r[2], NULL);
        submit(f.q, (struct backend_command){ .op = BACKEND_MARKER, .deps = &e, .dep_count = 1 },
               &r[3], NULL);
        assert_int_equal(wait_for(&r[0]), CL_SUCCESS);
        assert_int_equal(wait_for(&r[1]), status);
        assert_int_equal(wait_for(&r[2]), CL_SUCCESS);
        assert_int_equal(wait_for(&r[3]),
                         status ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_SUCCESS);
        ops->event.release(e);
        expect_added(&f, added);
        assert_int_equal(run(f.q, launch_of(f.inc, whole)), CL_SUCCESS);
        expect_added(&f, added + 1);
        log_threshold = LOG_WARN;
        wait_polling(NULL);
        fixture_close(&f);
}

static void expect_fault(const char *fault, const char *settings, cl_int status, int added)
{
        meet_fault(fault, settings, status, added, false);
        meet_fault(fault, settings, status, added, true);
}

TEST(faults_fail_the_command_that_met_them)
{
        (void)state;
        expect_fault("bad-status@1", "", CL_OUT_OF_RESOURCES, 3);
        expect_fault("garbage@1", "", CL_OUT_OF_RESOURCES, 3);
        expect_fault("hang@1", ",timeout=1500", CL_OUT_OF_RESOURCES, 2);
        expect_fault("wrong-index@1", "", CL_OUT_OF_RESOURCES, 2);
        expect_fault("early-wake@1", ",spin=0", CL_SUCCESS, 3);
}

TEST(a_device_that_is_gone_fails_everything)
{
        (void)state;
        struct fixture f;
        struct report r[2];
        struct backend_event *e;
        struct backend_command c;
        fixture_open(&f, OPTIONS("--fault", "dead@1"), ",timeout=1500");
        wait_polling(f.b);
        log_threshold = LOG_NONE;
        assert_int_equal(run(f.q, launch_of(f.inc, whole)), CL_SUCCESS);
        submit(f.q, launch_of(f.inc, whole), &r[0], NULL);
        submit(f.q, launch_of(f.inc, whole), &r[1], NULL);
        assert_int_equal(wait_for(&r[0]), CL_DEVICE_NOT_AVAILABLE);
        assert_int_equal(wait_for(&r[1]), CL_DEVICE_NOT_AVAILABLE);
        c = launch_of(f.inc, whole);
        assert_int_equal(ops->submit(f.q, &c, &e), CL_DEVICE_NOT_AVAILABLE);
        log_threshold = LOG_WARN;
        wait_polling(NULL);
        fixture_close(&f);
}

/* ---- two accelerators ----------------------------------------------------------------------- */

enum { BUS_SIZE = 0x80000, SHARED_AT = 0x40000 };

/* Two bus masters in one file with memory that both work on. */
struct pair {
        struct accelerator a[2];
        char text[TEXT_SIZE];
};

static void pair_start(struct pair *p, const char *packets, const char *settings)
{
        accelerator_start(&p->a[0], NULL,
                          OPTIONS("--bus-master", "--file-size", "0x80000", "--data", "4096",
                                  "--packets", packets, "--spin", "20"));
        accelerator_start(&p->a[1], p->a[0].path,
                          OPTIONS("--bus-master", "--base", "0x20000", "--data", "4096",
                                  "--packets", packets, "--spin", "20"));
        snprintf(p->text, sizeof(p->text),
                 "shm:%s,shared=0x40000+0x40000%s;shm:%s@0x20000,shared=0x40000+0x40000%s",
                 p->a[0].path, settings, p->a[0].path, settings);
}

static void pair_stop(struct pair *p)
{
        accelerator_stop(&p->a[1]);
        accelerator_stop(&p->a[0]);
}

enum { CHAIN = 20 };

/* The host of the chain: gives it to the accelerators, which are stopped, and stops itself. */
static void run_host(const char *text)
{
        struct backend *b = open_at(text);
        struct backend_queue *q[2] = { queue_of(b, 0, 0), queue_of(b, 1, 0) };
        struct backend_program *p = program_of(b, "spancl.inc.i32");
        struct backend_kernel *k;
        struct backend_buffer *m = buffer_of(b, BYTES);
        struct backend_event *e[CHAIN] = { NULL };
        struct report last;
        int data[COUNT] = { 0 };
        assert_int_equal(ops->domain_count(b), 1);
        assert_int_equal(ops->kernel.create(p, "spancl.inc.i32", &k), CL_SUCCESS);
        assert_int_equal(run(q[0], transfer(BACKEND_WRITE, m, data, BYTES)), CL_SUCCESS);
        raise(SIGSTOP); /* now the accelerators are stopped */
        set_buffer(k, 0, m);
        for (int i = 0; i < CHAIN; i++) {
                struct backend_command c = launch_of(k, whole);
                set_u32(k, 1, (uint32_t)(i + 1));
                c.deps = i ? &e[i - 1] : NULL;
                c.dep_count = i ? 1 : 0;
                submit(q[i % 2], c, i == CHAIN - 1 ? &last : NULL, &e[i]);
        }
        raise(SIGSTOP); /* and they work alone */
        assert_int_equal(wait_for(&last), CL_SUCCESS);
        assert_int_equal(run(q[1], transfer(BACKEND_READ, m, data, BYTES)), CL_SUCCESS);
        for (int i = 0; i < COUNT; i++)
                assert_int_equal(data[i], CHAIN * (CHAIN + 1) / 2);
        for (int i = 0; i < CHAIN; i++)
                ops->event.release(e[i]);
        ops->kernel.release(k);
        ops->program.release(p);
        ops->buffer.release(m);
        ops->queue.release(q[0]);
        ops->queue.release(q[1]);
        ops->close(b);
}

/* Whether the shared memory has COUNT words of that value somewhere. */
static bool result_is_there(const int *shared, int value)
{
        size_t run_length = 0;
        for (size_t i = 0; i < (BUS_SIZE - SHARED_AT) / 4; i++) {
                run_length =
                        __atomic_load_n(&shared[i], __ATOMIC_ACQUIRE) == value ? run_length + 1 : 0;
                if (run_length == COUNT)
                        return true;
        }
        return false;
}

TEST(a_chain_over_two_accelerators_needs_no_host)
{
        (void)state;
        struct pair p;
        pair_start(&p, "64", "");
        int fd = open(p.a[0].path, O_RDWR), status;
        const int *shared = mmap(NULL, BUS_SIZE - SHARED_AT, PROT_READ, MAP_SHARED, fd, SHARED_AT);
        assert_true(shared != MAP_FAILED);
        pid_t host = fork();
        if (!host) {
                run_host(p.text);
                _exit(0);
        }
        expect_stopped(host);
        kill(p.a[0].pid, SIGSTOP);
        kill(p.a[1].pid, SIGSTOP);
        kill(host, SIGCONT);
        expect_stopped(host);
        assert_false(result_is_there(shared, CHAIN * (CHAIN + 1) / 2));
        kill(p.a[0].pid, SIGCONT);
        kill(p.a[1].pid, SIGCONT);
        while (!result_is_there(shared, CHAIN * (CHAIN + 1) / 2))
                nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
        assert_int_equal(waitpid(host, &status, WUNTRACED | WCONTINUED | WNOHANG), 0);
        kill(host, SIGCONT);
        assert_int_equal(waitpid(host, &status, 0), host);
        assert_int_equal(status, 0);
        munmap((void *)(uintptr_t)shared, BUS_SIZE - SHARED_AT);
        close(fd);
        pair_stop(&p);
}

/* A failed kernel on one is a failed dependency on the other. */
TEST(failure_crosses_accelerators)
{
        (void)state;
        struct pair p;
        struct report r[2];
        struct backend_event *e;
        pair_start(&p, "8", "");
        struct backend *b = open_at(p.text);
        struct backend_queue *q[2] = { queue_of(b, 0, 0), queue_of(b, 1, 0) };
        struct backend_program *program = program_of(b, "spancl.inc.i32");
        struct backend_kernel *k;
        assert_int_equal(ops->kernel.create(program, "spancl.inc.i32", &k), CL_SUCCESS);
        set_buffer(k, 0, NULL); /* which the kernel cannot work on */
        set_u32(k, 1, 1);
        submit(q[0], launch_of(k, whole), &r[0], &e);
        struct backend_buffer *m = buffer_of(b, BYTES);
        set_buffer(k, 0, m);
        struct backend_command c = launch_of(k, whole);
        c.deps = &e;
        c.dep_count = 1;
        submit(q[1], c, &r[1], NULL);
        assert_int_equal(wait_for(&r[0]), CL_OUT_OF_RESOURCES);
        assert_int_equal(wait_for(&r[1]), CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
        ops->event.release(e);
        ops->kernel.release(k);
        ops->program.release(program);
        ops->buffer.release(m);
        ops->queue.release(q[0]);
        ops->queue.release(q[1]);
        ops->close(b);
        pair_stop(&p);
}

/* ---- randomised ----------------------------------------------------------------------------- */

enum { CELLS = 8, WINDOW = 64, RING = 8, RANDOM_PACKETS = 20000 };

/* Increments of random cells on random queues of two accelerators with small rings. Each waits
 * for the last command on its cell and for random others. Between them are copies by the host.
 * The waiting thread polls, or does not. */
struct storm {
        struct backend *b;
        struct backend_queue *q[4];
        struct backend_kernel *k;
        struct backend_buffer *m[CELLS];
        struct backend_event *events[WINDOW], *last[CELLS];
        struct report reports[WINDOW];
        uint32_t sums[CELLS];
        struct rng random;
};

static unsigned pick(struct storm *s, unsigned n)
{
        return (unsigned)rng_below(&s->random, n);
}

static void storm_step(struct storm *s, unsigned i)
{
        unsigned slot = i % WINDOW, cell = pick(s, CELLS);
        struct backend_event *deps[8];
        static const size_t one[1] = { 1 };
        if (!pick(s, 64))
                wait_polling(pick(s, 2) ? s->b : NULL);
        if (i >= WINDOW) {
                assert_int_equal(wait_for(&s->reports[slot]), CL_SUCCESS);
                ops->event.release(s->events[slot]);
        }
        struct backend_command c = launch_of(s->k, one);
        c.deps = deps;
        deps[c.dep_count++] = s->last[cell];
        for (unsigned n = pick(s, 7); n--;) {
                unsigned other = i ? i - 1 - pick(s, i < WINDOW ? i : WINDOW - 1) : 0;
                if (i)
                        deps[c.dep_count++] = s->events[other % WINDOW];
        }
        uint32_t by = pick(s, 1000);
        if (pick(s, 16)) {
                set_buffer(s->k, 0, s->m[cell]);
                set_u32(s->k, 1, by);
                s->sums[cell] += by;
        } else {
                c = (struct backend_command){ .op = BACKEND_FILL,
                                              .buffer = s->m[cell],
                                              .pattern = &by,
                                              .pattern_size = 4,
                                              .size = 4,
                                              .deps = deps,
                                              .dep_count = c.dep_count };
                s->sums[cell] = by;
        }
        submit(s->q[pick(s, 4)], c, &s->reports[slot], &s->events[slot]);
        ops->event.release(s->last[cell]);
        struct backend_command marker = { .op = BACKEND_MARKER,
                                          .deps = &s->events[slot],
                                          .dep_count = 1 };
        submit(s->q[pick(s, 4)], marker, NULL, &s->last[cell]);
}

static void storm(uint64_t seed, unsigned packets)
{
        struct pair p;
        char ring[8];
        struct storm s = { .random = { seed } };
        uint32_t out;
        snprintf(ring, sizeof(ring), "%u", RING);
        pair_start(&p, ring, "");
        s.b = open_at(p.text);
        for (unsigned i = 0; i < 4; i++)
                s.q[i] = queue_of(s.b, i % 2, i < 2 ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0);
        struct backend_program *program = program_of(s.b, "spancl.inc.i32");
        assert_int_equal(ops->kernel.create(program, "spancl.inc.i32", &s.k), CL_SUCCESS);
        for (unsigned i = 0; i < CELLS; i++) {
                uint32_t zero = 0;
                s.m[i] = buffer_of(s.b, 4);
                struct report r;
                submit(s.q[0], transfer(BACKEND_WRITE, s.m[i], &zero, 4), &r, &s.last[i]);
                assert_int_equal(wait_for(&r), CL_SUCCESS);
        }
        for (unsigned i = 0; i < packets; i++)
                storm_step(&s, i);
        for (unsigned i = 0; i < WINDOW && i < packets; i++) {
                assert_int_equal(wait_for(&s.reports[i]), CL_SUCCESS);
                ops->event.release(s.events[i]);
        }
        for (unsigned i = 0; i < CELLS; i++) {
                assert_int_equal(run(s.q[0], transfer(BACKEND_READ, s.m[i], &out, 4)), CL_SUCCESS);
                if (out != s.sums[i])
                        fail_msg("seed %llu: cell %u is %u, not %u", (unsigned long long)seed, i,
                                 out, s.sums[i]);
                ops->event.release(s.last[i]);
                ops->buffer.release(s.m[i]);
        }
        ops->kernel.release(s.k);
        ops->program.release(program);
        for (unsigned i = 0; i < 4; i++)
                ops->queue.release(s.q[i]);
        wait_polling(NULL);
        ops->close(s.b);
        pair_stop(&p);
}

/* SPANCL_ALMAIF_PACKETS, SPANCL_ALMAIF_SEED: more of it. */
TEST(nothing_is_lost_and_nothing_hangs)
{
        (void)state;
        const char *packets = getenv("SPANCL_ALMAIF_PACKETS"), *seed = getenv("SPANCL_ALMAIF_SEED");
        unsigned n = packets ? (unsigned)strtoul(packets, NULL, 0) : RANDOM_PACKETS;
        if (seed) {
                storm(strtoull(seed, NULL, 0), n);
                return;
        }
        for (uint64_t i = 1; i <= 4; i++)
                storm(i * 7919, n / 4);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(places_and_options_are_understood),
                cmocka_unit_test(memory_is_taken_where_it_first_fits),
                cmocka_unit_test(wrong_registers_are_named),
                cmocka_unit_test(a_device_that_does_not_reset_is_not_available),
                cmocka_unit_test(each_profile_works),
                cmocka_unit_test(launches_end_while_somebody_polls_and_when_he_has_stopped),
                cmocka_unit_test(a_designers_kernels_run),
                cmocka_unit_test(the_image_is_in_the_configuration_memory),
                cmocka_unit_test(one_process_at_a_time_uses_an_accelerator),
                cmocka_unit_test(memory_runs_out),
                cmocka_unit_test(faults_fail_the_command_that_met_them),
                cmocka_unit_test(a_device_that_is_gone_fails_everything),
                cmocka_unit_test(a_chain_over_two_accelerators_needs_no_host),
                cmocka_unit_test(failure_crosses_accelerators),
                cmocka_unit_test(nothing_is_lost_and_nothing_hangs),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
