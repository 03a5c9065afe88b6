/* The native backend's own work: it finds implementations, and learns facts that they do not
 * report. */
#include "backend/native/command.h"
#include "backend/native/image.h"
#include "support/check.h"

#include <stdio.h>
#include <stdlib.h>

#include "backend/emit.h"
#include "backend/native/clear.h"
#include "backend/native/devinfo.h"
#include "backend/native/kernelinfo.h"
#include "backend/native/kernellist.h"
#include "backend/native/native.h"
#include "backend/native/svm.h"
#include "base/mem.h"
#include "os/vm.h"
#include "support/backends.h"

TEST(kernels_are_found_in_ptx)
{
        static const char text[] =
                "//\n.version 8.4\n.target sm_90\n.global .u32 x.entry;\n"
                ".visible .entry first(\n\t.param .u64 first_param_0\n)\n{ ret; }\n"
                ".entry\t_b$2%x (.param .u64 p) { ret; }\n.entry";
        struct bytes rest = bytes_str(text), name;
        assert_true(kernellist_next_entry(&rest, &name));
        assert_int_equal(name.size, 5);
        assert_memory_equal(name.data, "first", 5);
        assert_true(kernellist_next_entry(&rest, &name));
        assert_int_equal(name.size, 6);
        assert_memory_equal(name.data, "_b$2%x", 6);
        assert_false(kernellist_next_entry(&rest, &name));
        rest = bytes_of(NULL, 0);
        assert_false(kernellist_next_entry(&rest, &name));
}

TEST(type_names_give_sizes)
{
        (void)state;
        assert_int_equal(kernelinfo_type_size("uchar"), 1);
        assert_int_equal(kernelinfo_type_size("unsigned short"), 2);
        assert_int_equal(kernelinfo_type_size("float3"), 16);
        assert_int_equal(kernelinfo_type_size("ulong16"), 128);
        assert_int_equal(kernelinfo_type_size("double2"), 16);
        assert_int_equal(kernelinfo_type_size("float5"), 0);
        assert_int_equal(kernelinfo_type_size("float_t"), 0);
        assert_int_equal(kernelinfo_type_size("struct float4"), 0);
}

static const struct {
        uint32_t kind;
        size_t size;
        bool record;
} expected_args[] = {
        { ARG_BUFFER, 8, false }, { ARG_BUFFER, 8, false },  { ARG_LOCAL, 0, false },
        { ARG_VALUE, 16, false }, { ARG_VALUE, 1, false },   { ARG_VALUE, 8, false },
        { ARG_VALUE, 24, true },  { ARG_BUFFER, 8, false },  { ARG_VALUE, 8, false },
        { ARG_VALUE, 3, true },   { ARG_VALUE, 128, false },
};

TEST(arguments_of_all_kinds_are_described)
{
        struct fixture *f = fixture(state);
        struct built x = build(f);
        struct bytes k = kernel_info(&x, "every"), v;
        for (unsigned i = 0; i < array_size(expected_args); i++) {
                struct bytes a = arg_info(k, i);
                assert_int_equal(info_u64(a, INFO_ARG_KIND, 0), expected_args[i].kind);
                /* the size of a struct is told by trying, if the implementation checks it */
                uint64_t size = info_u64(a, INFO_ARG_SIZE, 99);
                assert_true(size == expected_args[i].size || (!size && expected_args[i].record));
        }
        assert_string_equal(text_in(arg_info(k, 6), CL_KERNEL_ARG_TYPE_NAME), "item");
        assert_true(info_find(arg_info(k, 0), CL_KERNEL_ARG_TYPE_QUALIFIER, &v));
        assert_int_equal(bytes_get_u64(v.data), CL_KERNEL_ARG_TYPE_CONST);
        assert_true(info_find(k, INFO_KERNEL_DEVICE, &k));
        assert_true(info_find(k, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, &v));
        assert_memory_equal(v.data, ((size_t[3]){ 4, 2, 1 }), 24);
        unbuild(f, &x);
}

/* Where there is no argument information, trying finds the same. */
TEST(probing_finds_what_argument_information_says)
{
        struct fixture *f = fixture(state);
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, "every");
        struct backend_buffer *m = fixture_buffer(f, 64);
        for (unsigned i = 0; i < array_size(expected_args); i++) {
                struct kernelinfo_probe p =
                        kernelinfo_probe_arg(k->domain->api, k->kernel, i, m->mem);
                if (p.kind != expected_args[i].kind || p.size != expected_args[i].size)
                        print_message("argument %u: kind %u size %zu\n", i, p.kind, p.size);
                assert_true(!p.kind || p.kind == expected_args[i].kind);
                assert_true(!p.kind || !p.size || p.size == expected_args[i].size);
        }
        f->ops->buffer.release(m);
        f->ops->kernel.release(k);
        unbuild(f, &x);
}

TEST(a_binary_makes_the_same_program)
{
        struct fixture *f = fixture(state);
        struct built x = build(f);
        struct buf parts = { 0 };
        struct bytes part;
        assert_int_equal(f->ops->program.binary(x.program, 0, &parts), CL_SUCCESS);
        assert_true(info_find(block_of(&parts), INFO_PART, &part));
        assert_true(part.size > 0);
        struct built y = build_with(f, 1, part.data, part.size, "");
        assert_int_equal(y.status, CL_SUCCESS);
        kernel_info(&y, "inc");
        struct backend_kernel *k = kernel_of(f, &y, "inc");
        f->ops->kernel.release(k);
        unbuild(f, &y);
        unbuild(f, &x);
        buf_fini(&parts);
}

/* PoCL 3.1 is not asked: it would refuse, or abort. */
TEST(a_program_whose_rebuild_failed_has_no_binary_until_it_is_built_again)
{
        struct fixture *f = fixture(state);
        static const unsigned device = 0;
        static const char *const options[] = { "", "-DBY=;", "" };
        const char text[] = "#ifndef BY\n#define BY 1\n#endif\n"
                            "kernel void add(global int *n) { n[get_global_id(0)] += BY; }\n";
        struct built x = build_with(f, 0, text, strlen(text), options[0]);
        for (unsigned i = 0; i < array_size(options); i++) {
                bool fails = options[i][0];
                struct buf parts = { 0 };
                struct bytes part;
                assert_int_equal(f->ops->program.build(x.program, &device, 1, options[i], NULL),
                                 fails ? CL_BUILD_PROGRAM_FAILURE : CL_SUCCESS);
                assert_int_equal(f->ops->program.binary(x.program, 0, &parts), CL_SUCCESS);
                assert_true(info_find(block_of(&parts), INFO_PART, &part));
                assert_int_equal(!part.size, fails);
                buf_fini(&parts);
        }
        unbuild(f, &x);
}

struct asking {
        struct fixture *f;
        struct backend_program *program;
        pthread_barrier_t *start;
        struct buf parts;
        cl_int status;
};

static void *ask_for_binary(void *arg)
{
        struct asking *a = arg;
        pthread_barrier_wait(a->start);
        a->status = a->f->ops->program.binary(a->program, 0, &a->parts);
        return NULL;
}

/* As one who builds a program and the cache, which keeps what was built, do. */
TEST(a_binary_is_asked_for_by_several_at_the_same_time)
{
        enum { ROUNDS = 8, THREADS = 3 };
        struct fixture *f = fixture(state);
        for (unsigned round = 0; round < ROUNDS; round++) {
                struct built x = build(f);
                struct asking asking[THREADS];
                pthread_t threads[THREADS];
                pthread_barrier_t start;
                pthread_barrier_init(&start, NULL, THREADS);
                for (unsigned i = 0; i < THREADS; i++) {
                        asking[i] = (struct asking){ f, x.program, &start, { 0 }, CL_SUCCESS };
                        assert_int_equal(
                                pthread_create(&threads[i], NULL, ask_for_binary, &asking[i]), 0);
                }
                for (unsigned i = 0; i < THREADS; i++) {
                        pthread_join(threads[i], NULL);
                        assert_int_equal(asking[i].status, CL_SUCCESS);
                        assert_int_equal(asking[i].parts.size, asking[0].parts.size);
                        assert_memory_equal(asking[i].parts.data, asking[0].parts.data,
                                            asking[0].parts.size);
                }
                for (unsigned i = 0; i < THREADS; i++)
                        buf_fini(&asking[i].parts);
                pthread_barrier_destroy(&start);
                unbuild(f, &x);
        }
}

/* Some programs' kernels go a little beyond a buffer. The bytes behind it must not be the
 * heap's. */
TEST(kernels_that_go_a_little_too_far_harm_nothing_else)
{
        enum { BUFFERS = 16, ITEMS = 18 };
        static const size_t items[1] = { ITEMS + 16 };
        struct fixture *f = fixture(state);
        struct backend_buffer *m[BUFFERS];
        int zero[ITEMS] = { 0 }, out[ITEMS];
        for (unsigned i = 0; i < BUFFERS; i++) {
                m[i] = fixture_buffer(f, sizeof(zero));
                if (!f->ops->buffer.bytes(m[i]))
                        skip(); /* the implementation's memory */
        }
        struct built x = build(f);
        struct backend_kernel *k = kernel_of(f, &x, "inc");
        for (unsigned i = 0; i < BUFFERS; i++)
                execute(f, write_of(m[i], 0, zero, sizeof(zero)));
        for (unsigned i = 0; i < BUFFERS; i++) {
                set_inc(f, k, m[i], 1);
                struct backend_command c = launch_all(k);
                c.global = items;
                execute(f, c);
        }
        for (unsigned i = 0; i < BUFFERS; i++) {
                execute(f, read_of(m[i], 0, out, sizeof(out)));
                for (unsigned j = 0; j < ITEMS; j++)
                        assert_int_equal(out[j], 1);
        }
        f->ops->kernel.release(k);
        for (unsigned i = 0; i < BUFFERS; i++)
                f->ops->buffer.release(m[i]);
        unbuild(f, &x);
}

static unsigned devices_with(const char *variable, const char *value)
{
        struct backend *b;
        setenv(variable, value, 1);
        int r = open_backend(&backend_native, NULL, 0, &b);
        unsetenv(variable);
        assert_true(r == 0 || r == SP_E_NODEV);
        if (r < 0)
                return 0;
        unsigned n = backend_native.device.count(b);
        backend_native.close(b);
        return n;
}

TEST(implementations_are_found_where_the_environment_says)
{
        struct fixture *f = fixture(state);
        unsigned n = f->ops->device.count(f->b);
        if (getenv("OCL_ICD_FILENAMES") || getenv("OCL_ICD_VENDORS"))
                skip(); /* whoever set them wants others than the usual ones */
        char folder[] = "/tmp/spancl-test-XXXXXX", command[1024];
        assert_non_null(mkdtemp(folder));
        assert_int_equal(devices_with("OCL_ICD_VENDORS", folder), 0);
        assert_int_equal(devices_with("OCL_ICD_VENDORS", "/nonexistent"), 0);
        assert_int_equal(devices_with("OPENCL_VENDOR_PATH", folder), 0);
        assert_int_equal(devices_with("OCL_ICD_VENDORS", "/etc/OpenCL/vendors"), n);
        assert_int_equal(devices_with("OPENCL_VENDOR_PATH", "/etc/OpenCL/vendors/"), n);
        /* a second mention, and what is no ICD, add nothing */
        snprintf(command, sizeof(command),
                 "cp /etc/OpenCL/vendors/*.icd %s/ && for i in /etc/OpenCL/vendors/*.icd; do "
                 "cp $i %s/again-$(basename $i); done && echo libm.so.6 > %s/no.icd && "
                 "echo /no/such.so > %s/none.icd && : > %s/empty.icd",
                 folder, folder, folder, folder, folder);
        assert_int_equal(system(command), 0);
        assert_int_equal(devices_with("OCL_ICD_VENDORS", folder), n);
        snprintf(command, sizeof(command), "rm -r %s", folder);
        assert_int_equal(system(command), 0);
}

/* A library of ours must never be used, or a server would be its own client. A variable that
 * names it alone is meant for the program, not for the implementations that SpanCL forwards to. */
TEST(our_own_library_is_left_out)
{
        struct fixture *f = fixture(state);
        if (getenv("OCL_ICD_FILENAMES"))
                skip();
        const char *build_dir = getenv("SPANCL_BUILD_DIR");
        char path[4096];
        snprintf(path, sizeof(path), "%s/lib/libspancl.so", build_dir ? build_dir : ".");
        FILE *library = fopen(path, "r");
        if (!library)
                skip();
        fclose(library);
        const unsigned usual = f->ops->device.count(f->b);
        assert_int_equal(devices_with("OCL_ICD_VENDORS", path), usual);
        assert_int_equal(devices_with("OCL_ICD_FILENAMES", path), usual);
}

/* ---- an implementation that fails ------------------------------------------------------------- */

static unsigned fills, copies, released;

/* Without saying why. */
static cl_mem CL_API_CALL no_image(cl_context context, cl_mem_flags flags,
                                   const cl_image_format *format, const cl_image_desc *desc,
                                   void *host, cl_int *err)
{
        (void)context, (void)flags, (void)format, (void)desc, (void)host;
        *err = CL_SUCCESS;
        return NULL;
}

static cl_mem CL_API_CALL an_image(cl_context context, cl_mem_flags flags,
                                   const cl_image_format *format, const cl_image_desc *desc,
                                   void *host, cl_int *err)
{
        (void)context, (void)flags, (void)format, (void)desc, (void)host;
        *err = CL_SUCCESS;
        return (cl_mem)&fills;
}

static cl_int CL_API_CALL fill_image(cl_command_queue q, cl_mem m, const void *colour,
                                     const size_t *origin, const size_t *region, cl_uint count,
                                     const cl_event *deps, cl_event *ret)
{
        (void)q, (void)m, (void)colour, (void)origin, (void)region, (void)count, (void)deps;
        if (!fills)
                return CL_OUT_OF_RESOURCES;
        *ret = (cl_event)&fills;
        return CL_SUCCESS;
}

static cl_int CL_API_CALL copy_to_buffer(cl_command_queue q, cl_mem from, cl_mem to,
                                         const size_t *origin, const size_t *region, size_t offset,
                                         cl_uint count, const cl_event *deps, cl_event *ret)
{
        (void)q, (void)from, (void)to, (void)origin, (void)region, (void)offset;
        assert_true(count == 1 && deps[0]);
        if (!copies)
                return CL_OUT_OF_HOST_MEMORY;
        copies--;
        *ret = (cl_event)&copies;
        return CL_SUCCESS;
}

static cl_int CL_API_CALL release_event(cl_event e)
{
        assert_non_null(e);
        released++;
        return CL_SUCCESS;
}

static cl_int CL_API_CALL release_mem(cl_mem m)
{
        assert_non_null(m);
        return CL_SUCCESS;
}

static cl_uint waited_for;

static cl_int CL_API_CALL mark(cl_command_queue q, cl_uint count, const cl_event *deps,
                               cl_event *ret)
{
        (void)q;
        assert_true(!count == !deps);
        waited_for = count;
        *ret = (cl_event)&fills;
        return CL_SUCCESS;
}

static cl_int CL_API_CALL fill_buffer(cl_command_queue q, cl_mem m, const void *pattern,
                                      size_t pattern_size, size_t offset, size_t size,
                                      cl_uint count, const cl_event *deps, cl_event *ret)
{
        (void)m, (void)pattern, (void)pattern_size, (void)offset, (void)size, (void)deps;
        return mark(q, count, deps, ret);
}

static cl_int CL_API_CALL is_running(cl_event e, cl_event_info what, size_t size, void *value,
                                     size_t *size_ret)
{
        (void)e, (void)size_ret;
        assert_true(what == CL_EVENT_COMMAND_EXECUTION_STATUS && size == sizeof(cl_int));
        *(cl_int *)value = CL_RUNNING;
        return CL_SUCCESS;
}

/* In a queue without order it would wait for that alone otherwise, and clFinish return too early. */
TEST(a_marker_behind_all_stays_one_while_memory_is_cleared)
{
        cl_icd_dispatch api = { .clEnqueueMarkerWithWaitList = mark,
                                .clEnqueueBarrierWithWaitList = mark,
                                .clEnqueueFillBuffer = fill_buffer,
                                .clGetEventInfo = is_running,
                                .clReleaseEvent = release_event };
        const struct quirks *quirks = quirks_find("", "");
        struct native_domain domain = { .api = &api,
                                        .clearing = (cl_event)&copies,
                                        .quirks = quirks };
        struct backend_queue q = { .refs = 1, .domain = &domain };
        struct backend_buffer m = { .domain = &domain, .mem = (cl_mem)&fills, .size = 16 };
        const cl_uint zero = 0;
        const struct {
                struct backend_command c;
                cl_uint waits;
        } commands[] = {
                { { .op = BACKEND_MARKER }, 0 },
                { { .op = BACKEND_BARRIER }, 0 },
                { { .op = BACKEND_FILL,
                    .buffer = &m,
                    .size = 16,
                    .pattern = &zero,
                    .pattern_size = sizeof(zero) },
                  1 },
        };
        for (unsigned i = 0; i < array_size(commands); i++) {
                struct backend_event *e = NULL;
                assert_int_equal(native_submit(&q, &commands[i].c, &e), CL_SUCCESS);
                assert_int_equal(waited_for, commands[i].waits);
                native_event_release(e);
        }
}

/* ---- clearing ------------------------------------------------------------------------------- */

static const uint64_t patterns_max = 1u << 30;
static uint64_t cleared;

/* The fills follow each other, each has few patterns, and few are before it. */
static void clear_piece(size_t pattern_size, uint64_t offset, uint64_t size)
{
        assert_int_equal(offset, cleared);
        assert_int_equal(size % pattern_size, 0);
        assert_int_equal(offset % pattern_size, 0);
        assert_true(size && size / pattern_size <= patterns_max);
        cleared += size;
}

static cl_int CL_API_CALL clear_buffer(cl_command_queue q, cl_mem m, const void *pattern,
                                       size_t pattern_size, size_t offset, size_t size,
                                       cl_uint count, const cl_event *deps, cl_event *ret)
{
        (void)q, (void)m, (void)pattern, (void)deps, (void)count;
        assert_true(offset / pattern_size < 2 * patterns_max);
        clear_piece(pattern_size, offset, size);
        if (ret)
                *ret = (cl_event)&fills;
        return CL_SUCCESS;
}

static cl_int CL_API_CALL clear_rest(cl_command_queue q, cl_mem m, cl_bool blocking, size_t offset,
                                     size_t size, const void *from, cl_uint count,
                                     const cl_event *deps, cl_event *ret)
{
        static const uint8_t zeros[128];
        (void)q, (void)m, (void)deps, (void)count;
        assert_true(!blocking && size < sizeof(zeros));
        assert_memory_equal(from, zeros, size);
        clear_piece(1, offset, size);
        *ret = (cl_event)&fills;
        return CL_SUCCESS;
}

static cl_int CL_API_CALL clear_svm(cl_command_queue q, void *at, const void *pattern,
                                    size_t pattern_size, size_t size, cl_uint count,
                                    const cl_event *deps, cl_event *ret)
{
        (void)q, (void)pattern, (void)deps, (void)count;
        clear_piece(pattern_size, (uint64_t)(uintptr_t)at - VM_GRANULE, size);
        if (ret)
                *ret = (cl_event)&fills;
        return CL_SUCCESS;
}

static cl_int CL_API_CALL flush(cl_command_queue q)
{
        (void)q;
        return CL_SUCCESS;
}

/* NVIDIA's driver hangs if a fill has 2^31 patterns. */
TEST(large_memory_is_cleared_by_fills_of_few_patterns)
{
        const uint64_t gib = 1 << 30;
        const uint64_t sizes[] = { 1,
                                   7,
                                   24,
                                   4096,
                                   2 * gib,
                                   3 * gib + 1,
                                   16 * gib,
                                   16 * gib + 16,
                                   16 * gib + 8,
                                   16 * gib + 129,
                                   33 * gib,
                                   40 * gib + 77,
                                   200 * gib };
        cl_icd_dispatch api = { .clEnqueueFillBuffer = clear_buffer,
                                .clEnqueueWriteBuffer = clear_rest,
                                .clEnqueueSVMMemFill = clear_svm,
                                .clGetEventInfo = is_running,
                                .clReleaseEvent = release_event,
                                .clFlush = flush };
        struct native_domain domain = { .api = &api, .clear_queue = (cl_command_queue)&copies };
        struct backend b = { .clear = BACKEND_CLEAR_ALL };
        for (unsigned i = 0; i < array_size(sizes); i++) {
                struct backend_buffer m = { .domain = &domain,
                                            .mem = (cl_mem)&fills,
                                            .size = (size_t)sizes[i] };
                cleared = 0;
                assert_int_equal(native_clear(&b, &m), CL_SUCCESS);
                assert_int_equal(cleared, sizes[i]);
                cleared = 0;
                assert_int_equal(native_clear_svm(&b, &domain, VM_GRANULE, (size_t)sizes[i]),
                                 CL_SUCCESS);
                assert_int_equal(cleared, sizes[i]);
                assert_ptr_equal(domain.clearing, &fills);
        }
}

static const cl_ulong largest = 3 * VM_GRANULE + 49152;
static uint8_t *given;

static void *CL_API_CALL alloc_svm(cl_context x, cl_svm_mem_flags flags, size_t size, cl_uint align)
{
        (void)x, (void)flags, (void)align;
        return size <= largest ? given : NULL;
}

static void CL_API_CALL free_svm(cl_context x, void *p)
{
        (void)x;
        assert_ptr_equal(p, given);
}

static cl_int CL_API_CALL ask_device(cl_device_id d, cl_device_info what, size_t size, void *value,
                                     size_t *size_ret)
{
        (void)d, (void)size_ret;
        assert_int_equal(size, 8);
        if (what == CL_DEVICE_SVM_CAPABILITIES)
                *(cl_device_svm_capabilities *)value = CL_DEVICE_SVM_COARSE_GRAIN_BUFFER;
        else if (what == CL_DEVICE_MAX_MEM_ALLOC_SIZE)
                *(cl_ulong *)value = largest;
        else
                return CL_INVALID_VALUE;
        return CL_SUCCESS;
}

/* Clients ask for whole multiples of VM_GRANULE, and a device's largest size need not be one. */
TEST(an_allocation_of_the_largest_size_is_no_larger)
{
        struct icd_platform platform = { .api = { .clSVMAlloc = alloc_svm,
                                                  .clSVMFree = free_svm,
                                                  .clGetDeviceInfo = ask_device,
                                                  .clEnqueueSVMMemFill = clear_svm,
                                                  .clGetEventInfo = is_running,
                                                  .clReleaseEvent = release_event,
                                                  .clFlush = flush } };
        void **called[] = { (void **)&platform.api.clSetKernelArgSVMPointer,
                            (void **)&platform.api.clSetKernelExecInfo,
                            (void **)&platform.api.clCreateCommandQueueWithProperties };
        for (unsigned i = 0; i < array_size(called); i++)
                *called[i] = &given; /* not called here */
        struct native_domain domain = { .api = &platform.api,
                                        .svm = INFO_SVM_OWN_ADDRESSES,
                                        .clear_queue = (cl_command_queue)&copies };
        struct native_device device = { .platform = &platform };
        struct backend b = { .domains = &domain, .devices = &device, .clear = BACKEND_CLEAR_ALL };
        b.domain_count = b.device_count = 1;
        lock_init(&b.lock);
        list_init(&domain.svms);
        list_init(&b.dead_svms);
        for (uint64_t size = 3 * VM_GRANULE; size <= 5 * VM_GRANULE; size += VM_GRANULE) {
                struct backend_svm *s;
                uint64_t at = 0;
                given = (uint8_t *)(uintptr_t)VM_GRANULE;
                cleared = 0;
                cl_int r = native_svm_create(&b, 0, 0, (size_t)size, false, &s, &at);
                if (size > 4 * VM_GRANULE) {
                        assert_int_equal(r, CL_MEM_OBJECT_ALLOCATION_FAILURE);
                        continue;
                }
                assert_int_equal(r, CL_SUCCESS);
                assert_int_equal(at, VM_GRANULE);
                assert_int_equal(cleared, size < largest ? size : largest);
                native_svm_release(s);
        }
        lock_fini(&b.lock);
}

/* A fill of a 1D image of a buffer, as several commands: it has failed, or there is an event. */
TEST(a_fill_in_pieces_fails_with_an_error)
{
        cl_icd_dispatch api = { .clCreateImage = no_image,
                                .clEnqueueFillImage = fill_image,
                                .clEnqueueCopyImageToBuffer = copy_to_buffer,
                                .clReleaseEvent = release_event,
                                .clReleaseMemObject = release_mem };
        void **unused[] = {
                (void **)&api.clGetImageInfo,
                (void **)&api.clEnqueueReadImage,
                (void **)&api.clEnqueueWriteImage,
                (void **)&api.clEnqueueCopyImage,
                (void **)&api.clEnqueueCopyBufferToImage,
        };
        for (unsigned i = 0; i < array_size(unused); i++)
                *unused[i] = (void *)release_mem;
        enum { WIDTH = 10000 }; /* three pieces */
        struct native_domain domain = { .api = &api };
        struct backend_queue q = { .domain = &domain };
        struct backend_buffer m = { .domain = &domain,
                                    .mem = (cl_mem)&fills,
                                    .bytes = (cl_mem)&fills,
                                    .image = { .type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
                                               .order = CL_RGBA,
                                               .data_type = CL_FLOAT,
                                               .width = WIDTH } };
        const float colour[4] = { 1, 2, 3, 4 };
        const struct backend_command c = { .op = BACKEND_FILL_IMAGE,
                                           .buffer = &m,
                                           .pattern = colour,
                                           .pattern_size = sizeof(colour),
                                           .region = { WIDTH, 1, 1 } };
        cl_event event = NULL;
        assert_int_equal(native_enqueue_image(&q, &c, 0, NULL, &event), CL_OUT_OF_RESOURCES);
        api.clCreateImage = an_image;
        assert_int_equal(native_enqueue_image(&q, &c, 0, NULL, &event), CL_OUT_OF_RESOURCES);
        fills = 1;
        for (unsigned good = 0; good < 3; good++) {
                copies = good;
                released = 0;
                assert_int_equal(native_enqueue_image(&q, &c, 0, NULL, &event),
                                 CL_OUT_OF_HOST_MEMORY);
                assert_int_equal(released, good + 1);
                assert_null(event);
        }
        copies = 3;
        assert_int_equal(native_enqueue_image(&q, &c, 0, NULL, &event), CL_SUCCESS);
        assert_non_null(event);
}

TEST(bytes_behind_the_names_of_extensions_do_not_leave_the_server)
{
        cl_name_version dirty[2], clean[2] = { { 7, "cl_khr_fp64" }, { 8, "" } };
        memset(dirty, 0x55, sizeof(dirty));
        for (int i = 0; i < 2; i++) {
                dirty[i].version = clean[i].version;
                strcpy(dirty[i].name, clean[i].name);
        }
        struct buf out = { 0 };
        struct emit e = { .out = &out };
        struct info_entry entry;
        emit_name_versions(&e, CL_DEVICE_EXTENSIONS_WITH_VERSION, dirty, sizeof(dirty));
        assert_int_equal(e.status, 0);
        struct bytes rest = bytes_of(out.data, out.size);
        assert_true(info_next(&rest, &entry));
        assert_int_equal(entry.value.size, sizeof(clean));
        assert_memory_equal(entry.value.data, clean, sizeof(clean));
        buf_fini(&out);

        /* A name without an end fills its place, and no byte after the list changes. */
        memset(dirty, 0x55, sizeof(dirty));
        emit_name_versions(&e, CL_DEVICE_EXTENSIONS_WITH_VERSION, dirty, sizeof(dirty[0]) + 3);
        assert_int_equal(dirty[0].name[63], 0x55);
        assert_int_equal(dirty[1].name[0], 0x55);
        buf_fini(&out);
}

static const char filtered[] = "cl_khr_fp64";

/* As Wine 8.0: the size is that of the text before it was filtered. */
static cl_int answer_text(size_t size, void *value, size_t *ret_size)
{
        if (ret_size)
                *ret_size = 2 * sizeof(filtered);
        if (value) {
                memset(value, 0x55, size);
                memcpy(value, filtered, sizeof(filtered));
        }
        return CL_SUCCESS;
}

static cl_int CL_API_CALL device_texts(cl_device_id d, cl_device_info what, size_t size,
                                       void *value, size_t *ret_size)
{
        (void)d;
        return what == CL_DEVICE_EXTENSIONS ? answer_text(size, value, ret_size) : CL_INVALID_VALUE;
}

static cl_int CL_API_CALL platform_texts(cl_platform_id p, cl_platform_info what, size_t size,
                                         void *value, size_t *ret_size)
{
        (void)p;
        return what == CL_PLATFORM_EXTENSIONS ? answer_text(size, value, ret_size)
                                              : CL_INVALID_VALUE;
}

TEST(bytes_behind_a_text_do_not_leave_the_server)
{
        struct icd_platform platform = { .api = { .clGetDeviceInfo = device_texts,
                                                  .clGetPlatformInfo = platform_texts } };
        struct quirks quirks = { 0 };
        struct native_domain domain = { .api = &platform.api, .quirks = &quirks };
        struct native_device device = { .platform = &platform };
        struct backend b = { .domains = &domain, .devices = &device };
        b.domain_count = b.device_count = 1;
        struct buf out = { 0 };
        struct bytes value, inner;
        assert_int_equal(native_device_info(&b, 0, &out), 0);
        assert_true(info_find(bytes_of(out.data, out.size), CL_DEVICE_EXTENSIONS, &value));
        assert_int_equal(value.size, sizeof(filtered));
        assert_memory_equal(value.data, filtered, sizeof(filtered));
        assert_true(info_find(bytes_of(out.data, out.size), INFO_DEVICE_PLATFORM, &value));
        assert_true(info_find(value, CL_PLATFORM_EXTENSIONS, &inner));
        assert_int_equal(inner.size, sizeof(filtered));
        assert_memory_equal(inner.data, filtered, sizeof(filtered));
        buf_fini(&out);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(kernels_are_found_in_ptx),
                cmocka_unit_test(type_names_give_sizes),
                NATIVE(arguments_of_all_kinds_are_described),
                NATIVE(probing_finds_what_argument_information_says),
                NATIVE(a_program_whose_rebuild_failed_has_no_binary_until_it_is_built_again),
                NATIVE(a_binary_makes_the_same_program),
                NATIVE(a_binary_is_asked_for_by_several_at_the_same_time),
                NATIVE(kernels_that_go_a_little_too_far_harm_nothing_else),
                NATIVE(implementations_are_found_where_the_environment_says),
                NATIVE(our_own_library_is_left_out),
                cmocka_unit_test(a_marker_behind_all_stays_one_while_memory_is_cleared),
                cmocka_unit_test(large_memory_is_cleared_by_fills_of_few_patterns),
                cmocka_unit_test(an_allocation_of_the_largest_size_is_no_larger),
                cmocka_unit_test(a_fill_in_pieces_fails_with_an_error),
                cmocka_unit_test(bytes_behind_the_names_of_extensions_do_not_leave_the_server),
                cmocka_unit_test(bytes_behind_a_text_do_not_leave_the_server),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
