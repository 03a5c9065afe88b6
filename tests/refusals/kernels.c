/* Kernels: making, arguments, launches; shared virtual memory. */
#include "refusals.h"

static const char source[] =
        "typedef struct { int a; float b; } pair;\n"
        "kernel void add(global int *out, int x) { out[get_global_id(0)] += x; }\n"
        "kernel void place(global int *out) {\n"
        "        size_t i = get_global_id(0);\n"
        "        if (i < 1024) out[i] = get_local_size(0) + 100 * i;\n"
        "}\n"
        "kernel void groups(global int *out, local int *l) {\n"
        "        l[get_local_id(0)] = get_global_id(0);\n"
        "        barrier(CLK_LOCAL_MEM_FENCE);\n"
        "        out[get_global_id(0)] = l[0];\n"
        "}\n"
        "kernel void fixed(constant int *c, global int *out) { out[get_global_id(0)] = c[0]; }\n"
        "kernel void vec(global float4 *out, float4 v) { out[0] = v; }\n"
        "kernel void vec3(global float *out, float3 v) { out[0] = v.z; }\n"
        "kernel void character(global int *out, char c) { out[0] = c; }\n"
        "kernel void structure(global int *out, pair p) { out[0] = p.a; }\n"
        "kernel void number(global int *out, long n) { out[0] = n; }\n"
        "kernel void none() {}\n"
        "kernel __attribute__((reqd_work_group_size(4, 1, 1))) void required(global int *out) {\n"
        "        out[get_global_id(0)] = 3;\n"
        "}\n";
static const char image_source[] =
        "kernel void image(read_only image2d_t i, write_only image2d_t o, sampler_t s,\n"
        "                  global int *out) {\n"
        "        int2 at = (int2)(get_global_id(0), 0);\n"
        "        uint4 v = read_imageui(i, s, at);\n"
        "        write_imageui(o, at, v + 1u);\n"
        "        out[0] = v.x;\n"
        "}\n"
        "kernel void volume(read_only image3d_t i, global int *out) { out[0] = "
        "get_image_width(i); }\n";

/* ---- making --------------------------------------------------------------------------------- */

void group_kernels(struct world *w)
{
        cl_program p = program_built(w, source, NULL), raw = program_new(w, source),
                   bad = program_new(w, "kernel void f(global int *a) { a[0] = undeclared; }"),
                   object = program_new(w, source);
        cl_kernel all[64];
        cl_uint count = 0;
        (void)clBuildProgram(bad, 0, NULL, NULL, NULL, NULL);
        MAKE("plain", clReleaseKernel, clCreateKernel(p, "add", &w->err));
        MAKE("unknown", clReleaseKernel, clCreateKernel(p, "nothing", &w->err));
        MAKE("empty", clReleaseKernel, clCreateKernel(p, "", &w->err));
        MAKE("null_name", clReleaseKernel, clCreateKernel(p, NULL, &w->err));
        MAKE("null_program", clReleaseKernel, clCreateKernel(NULL, "add", &w->err));
        MAKE("unbuilt", clReleaseKernel, clCreateKernel(raw, "add", &w->err));
        MAKE("failed", clReleaseKernel, clCreateKernel(bad, "f", &w->err));
        CALL("all_count", clCreateKernelsInProgram(p, 0, NULL, &count));
        CALL("all_few", clCreateKernelsInProgram(p, 1, all, &count));
        CALL("all_nothing", clCreateKernelsInProgram(p, 0, NULL, NULL));
        CALL("all_unbuilt", clCreateKernelsInProgram(raw, 64, all, NULL));
        cl_kernel k = kernel_new(p, "add");
        MAKE("clone", clReleaseKernel, clCloneKernel(k, &w->err));
        CALL("retain_null", clRetainKernel(NULL));
        CALL("release_null", clReleaseKernel(NULL));
        CALL("exec_info_unknown", clSetKernelExecInfo(k, 0x7777, 4, &count));
        CALL("exec_info_null",
             clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(void *), NULL));
        NEED(clReleaseKernel(k));
        if (clCompileProgram(object, 0, NULL, NULL, 0, NULL, NULL, NULL, NULL) == CL_SUCCESS)
                MAKE("compiled", clReleaseKernel, clCreateKernel(object, "add", &w->err));
}

/* ---- arguments ------------------------------------------------------------------------------ */

static void image_args(struct world *w)
{
        cl_program p = program_built(w, image_source, NULL);
        cl_kernel k = kernel_new(p, "image"), volume = kernel_new(p, "volume");
        cl_mem null = NULL;
        cl_sampler null_sampler = NULL,
                   foreign = clCreateSampler(w->foreign_context, CL_FALSE, CL_ADDRESS_CLAMP,
                                             CL_FILTER_NEAREST, &w->err);
        NEED(w->err);
        const size_t size = sizeof(cl_mem);
        CALL("image", clSetKernelArg(k, 0, size, &w->image));
        CALL("image_write_only", clSetKernelArg(k, 0, size, &w->write_image));
        CALL("image_read_only", clSetKernelArg(k, 1, size, &w->read_image));
        CALL("image_size", clSetKernelArg(k, 0, 4, &w->image));
        CALL("image_3d_to_2d", clSetKernelArg(k, 0, size, &w->image3d));
        CALL("image_2d_to_3d", clSetKernelArg(volume, 0, size, &w->image));
        CALL("image_foreign", clSetKernelArg(k, 0, size, &w->foreign_image));
        CALL("sampler", clSetKernelArg(k, 2, sizeof(cl_sampler), &w->sampler));
        CALL("sampler_size", clSetKernelArg(k, 2, 4, &w->sampler));
        CALL("sampler_null_value", clSetKernelArg(k, 2, sizeof(cl_sampler), NULL));
        CALL("sampler_foreign", clSetKernelArg(k, 2, sizeof(cl_sampler), &foreign));
        CALL("image_null_value", clSetKernelArg(k, 0, size, NULL));
        CALL("buffer_to_image", clSetKernelArg(k, 0, size, &w->a));
        CALL("image_to_buffer", clSetKernelArg(k, 3, size, &w->image));
        CALL("sampler_null", clSetKernelArg(k, 2, sizeof(cl_sampler), &null_sampler));
        CALL("image_null", clSetKernelArg(k, 0, size, &null));
        CALL("image_to_sampler", clSetKernelArg(k, 2, sizeof(cl_sampler), &w->image));
        CALL("sampler_to_image", clSetKernelArg(k, 0, sizeof(cl_mem), &w->sampler));
}

static void arg(struct world *w, cl_program p, const char *kernel, const char *name, size_t size)
{
        static const uint8_t value[256];
        char text[64];
        cl_kernel k = kernel_new(p, kernel);
        snprintf(text, sizeof(text), "%s_%s", kernel, name);
        CALL(text, clSetKernelArg(k, 1, size, value));
        NEED(clReleaseKernel(k));
}

void group_args(struct world *w)
{
        cl_program p = program_built(w, source, NULL);
        cl_kernel add = kernel_new(p, "add"), groups = kernel_new(p, "groups"),
                  fixed = kernel_new(p, "fixed");
        cl_mem null = NULL;
        const size_t size = sizeof(cl_mem), huge = (size_t)1 << 40;
        int x = 5;
        CALL("buffer", clSetKernelArg(add, 0, size, &w->a));
        CALL("buffer_null", clSetKernelArg(add, 0, size, &null));
        CALL("buffer_null_value", clSetKernelArg(add, 0, size, NULL));
        CALL("buffer_size", clSetKernelArg(add, 0, 4, &w->a));
        CALL("buffer_size_large", clSetKernelArg(add, 0, 16, &w->a));
        CALL("buffer_size_zero", clSetKernelArg(add, 0, 0, &w->a));
        CALL("buffer_size_zero_null", clSetKernelArg(add, 0, 0, NULL));
        CALL("buffer_size_wrong_null", clSetKernelArg(add, 0, 4, NULL));
        CALL("buffer_foreign", clSetKernelArg(add, 0, size, &w->foreign));
        CALL("value", clSetKernelArg(add, 1, 4, &x));
        CALL("value_null", clSetKernelArg(add, 1, 4, NULL));
        CALL("value_size_zero", clSetKernelArg(add, 1, 0, &x));
        CALL("index", clSetKernelArg(add, 2, 4, &x));
        CALL("index_max", clSetKernelArg(add, UINT32_MAX, 4, &x));
        CALL("null_kernel", clSetKernelArg(NULL, 0, 4, &x));
        CALL("local", clSetKernelArg(groups, 1, 64, NULL));
        CALL("local_value", clSetKernelArg(groups, 1, 64, &x));
        CALL("local_zero", clSetKernelArg(groups, 1, 0, NULL));
        CALL("local_odd", clSetKernelArg(groups, 1, 7, NULL));
        CALL("local_beyond",
             clSetKernelArg(groups, 1, (size_t)device_number(w, CL_DEVICE_LOCAL_MEM_SIZE) + 1,
                            NULL));
        CALL("local_huge", clSetKernelArg(groups, 1, huge, NULL));
        CALL("local_buffer", clSetKernelArg(groups, 1, size, &w->a));
        CALL("constant", clSetKernelArg(fixed, 0, size, &w->a));
        CALL("constant_null", clSetKernelArg(fixed, 0, size, &null));
        CALL("constant_null_value", clSetKernelArg(fixed, 0, size, NULL));
        arg(w, p, "add", "char", 1);
        arg(w, p, "add", "long", 8);
        arg(w, p, "add", "short", 2);
        arg(w, p, "vec", "float3", 12);
        arg(w, p, "vec", "float4", 16);
        arg(w, p, "vec", "float8", 32);
        arg(w, p, "vec3", "float3", 12);
        arg(w, p, "vec3", "float4", 16);
        arg(w, p, "character", "char", 1);
        arg(w, p, "character", "int", 4);
        arg(w, p, "structure", "pair", 8);
        arg(w, p, "structure", "int", 4);
        arg(w, p, "structure", "16", 16);
        arg(w, p, "number", "int", 4);
        arg(w, p, "number", "long", 8);
        if (w->images)
                image_args(w);
        CALL("value_to_buffer", clSetKernelArg(add, 0, sizeof(x), &x));
        CALL("buffer_to_value", clSetKernelArg(add, 1, size, &w->a));
}

/* ---- launches ------------------------------------------------------------------------------- */

static void launch(struct world *w, const char *name, cl_kernel k, cl_uint dims,
                   const size_t *offset, const size_t *global, const size_t *local)
{
        RUN(name,
            clEnqueueNDRangeKernel(w->queue, k, dims, offset, global, local, 0, NULL, &w->event));
}

static cl_kernel with_buffer(struct world *w, cl_program p, const char *name)
{
        cl_kernel k = kernel_new(p, name);
        NEED(clSetKernelArg(k, 0, sizeof(w->a), &w->a));
        return k;
}

static void sizes(struct world *w, cl_kernel place)
{
        size_t most[3] = { 0 }, kernel_most = 0, device_most = 0;
        NEED(clGetDeviceInfo(w->device, CL_DEVICE_MAX_WORK_ITEM_SIZES, sizeof(most), most, NULL));
        NEED(clGetDeviceInfo(w->device, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(device_most),
                             &device_most, NULL));
        NEED(clGetKernelWorkGroupInfo(place, w->device, CL_KERNEL_WORK_GROUP_SIZE,
                                      sizeof(kernel_most), &kernel_most, NULL));
        const size_t g[3] = { 16, 1, 1 }, g2[3] = { 8, 8, 1 }, g3[3] = { 4, 4, 4 }, zero[3] = { 0 },
                     l4[3] = { 4, 1, 1 }, l3[3] = { 3, 1, 1 }, l0[3] = { 0, 1, 1 },
                     l32[3] = { 32, 1, 1 }, one[3] = { 1, 1, 1 }, offset[3] = { 3, 0, 0 },
                     large[3] = { device_most * 2, 1, 1 }, beyond[3] = { device_most + 1, 1, 1 },
                     beyond_global[3] = { (device_most + 1) * 2, 1, 1 },
                     device_local[3] = { device_most, 1, 1 },
                     kernel_local[3] = { kernel_most, 1, 1 }, deep[3] = { 1, 1, most[2] + 1 },
                     overflow[3] = { SIZE_MAX - 4, 0, 0 }, partly[3] = { 8, 0, 1 };
        launch(w, "plain", place, 1, NULL, g, l4);
        launch(w, "two", place, 2, NULL, g2, l4);
        launch(w, "three", place, 3, NULL, g3, one);
        launch(w, "offset", place, 1, offset, g, l4);
        launch(w, "no_local", place, 1, NULL, g, NULL);
        launch(w, "dims_zero", place, 0, NULL, g, NULL);
        launch(w, "dims_four", place, 4, NULL, g, NULL);
        launch(w, "global_zero", place, 1, NULL, zero, NULL);
        launch(w, "global_partly_zero", place, 2, NULL, partly, NULL);
        launch(w, "global_null", place, 1, NULL, NULL, NULL);
        launch(w, "global_zero_local", place, 1, NULL, zero, l4);
        launch(w, "local_zero", place, 1, NULL, g, l0);
        launch(w, "local_uneven", place, 1, NULL, g, l3);
        launch(w, "local_more_than_global", place, 1, NULL, g, l32);
        launch(w, "local_most_of_kernel", place, 1, NULL, large, kernel_local);
        launch(w, "local_most_of_device", place, 1, NULL, large, device_local);
        launch(w, "local_beyond", place, 1, NULL, beyond_global, beyond);
        launch(w, "local_deep", place, 3, NULL, deep, deep);
        launch(w, "offset_overflow", place, 1, overflow, g, NULL);
}

static void set_args(struct world *w, cl_program p)
{
        cl_kernel k = kernel_new(p, "groups"), foreign;
        const char *text = source;
        const size_t one = 1, four = 4;
        size_t local = (size_t)device_number(w, CL_DEVICE_LOCAL_MEM_SIZE);
        NEED(clSetKernelArg(k, 0, sizeof(w->a), &w->a));
        if (clSetKernelArg(k, 1, local / 2, NULL) == CL_SUCCESS)
                launch(w, "local_memory_half", k, 1, NULL, &four, &one);
        if (clSetKernelArg(k, 1, local, NULL) == CL_SUCCESS)
                launch(w, "local_memory_all", k, 1, NULL, &four, &one);
        cl_program f = clCreateProgramWithSource(w->foreign_context, 1, &text, NULL, &w->err);
        NEED(w->err);
        NEED(clBuildProgram(f, 0, NULL, NULL, NULL, NULL));
        foreign = kernel_new(f, "none");
        launch(w, "foreign_kernel", foreign, 1, NULL, &one, NULL);
        RUN("null_kernel",
            clEnqueueNDRangeKernel(w->queue, NULL, 1, NULL, &one, NULL, 0, NULL, &w->event));
        launch(w, "unset", kernel_new(p, "add"), 1, NULL, &one, NULL);
        k = with_buffer(w, p, "add");
        launch(w, "partly_set", k, 1, NULL, &one, NULL);
        if (clSetKernelArg(k, 1, 4, NULL) == CL_SUCCESS)
                launch(w, "value_null", k, 1, NULL, &one, NULL);
        RUN("foreign_list", clEnqueueNDRangeKernel(w->queue, with_buffer(w, p, "place"), 1, NULL,
                                                   &one, NULL, 1, &w->foreign_event, &w->event));
}

/* Accesses of images that the object or the argument does not allow. */
static void image_launch(struct world *w)
{
        cl_program p = program_built(w, image_source, NULL);
        cl_kernel k = kernel_new(p, "image");
        const size_t one = 1;
        NEED(clSetKernelArg(k, 0, sizeof(cl_mem), &w->read_image));
        NEED(clSetKernelArg(k, 1, sizeof(cl_mem), &w->write_image));
        NEED(clSetKernelArg(k, 3, sizeof(cl_mem), &w->b));
        launch(w, "sampler_unset", k, 1, NULL, &one, NULL);
        NEED(clSetKernelArg(k, 2, sizeof(cl_sampler), &w->sampler));
        NEED(clSetKernelArg(k, 0, sizeof(cl_mem), &w->image));
        launch(w, "image", k, 1, NULL, &one, NULL);
        NEED(clSetKernelArg(k, 1, sizeof(cl_mem), &w->image));
        launch(w, "image_both", k, 1, NULL, &one, NULL);
}

static void CL_CALLBACK native(void *args)
{
        (void)args;
}

void group_launches(struct world *w)
{
        cl_program p = program_built(w, source, NULL);
        const size_t g = 16, four = 4, two = 2, odd = 6;
        cl_kernel required = with_buffer(w, p, "required"), released;
        sizes(w, with_buffer(w, p, "place"));
        launch(w, "required", required, 1, NULL, &g, &four);
        launch(w, "required_no_local", required, 1, NULL, &g, NULL);
        launch(w, "required_other", required, 1, NULL, &g, &two);
        launch(w, "required_uneven", required, 1, NULL, &odd, NULL);
        launch(w, "none", kernel_new(p, "none"), 1, NULL, &g, NULL);
        RUN("task", clEnqueueTask(w->queue, with_buffer(w, p, "place"), 0, NULL, &w->event));
        RUN("task_required", clEnqueueTask(w->queue, required, 0, NULL, &w->event));
        RUN("native_null",
            clEnqueueNativeKernel(w->queue, NULL, NULL, 0, 0, NULL, NULL, 0, NULL, &w->event));
        RUN("native",
            clEnqueueNativeKernel(w->queue, native, NULL, 0, 0, NULL, NULL, 0, NULL, &w->event));
        set_args(w, p);
        if (w->images)
                image_launch(w);
        cl_mem m = buffer_new(w, 0, SIZE, NULL);
        released = kernel_new(p, "place");
        NEED(clSetKernelArg(released, 0, sizeof(m), &m));
        NEED(clReleaseMemObject(m));
        launch(w, "released_buffer", released, 1, NULL, &g, NULL);
}

/* ---- shared virtual memory ------------------------------------------------------------------ */

static void alloc(struct world *w, const char *name, cl_svm_mem_flags flags, size_t size,
                  cl_uint alignment)
{
        if (!wanted(w, name))
                return;
        void *p = clSVMAlloc(w->context, flags, size, alignment);
        say(w, name, p ? CL_SUCCESS : CL_INVALID_VALUE);
        clSVMFree(w->context, p);
}

static void allocs(struct world *w)
{
        alloc(w, "alloc", 0, 64, 0);
        alloc(w, "alloc_read_only", CL_MEM_READ_ONLY, 64, 0);
        alloc(w, "alloc_two", CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 64, 0);
        alloc(w, "alloc_fine", CL_MEM_SVM_FINE_GRAIN_BUFFER, 64, 0);
        alloc(w, "alloc_atomics", CL_MEM_SVM_ATOMICS, 64, 0);
        alloc(w, "alloc_host_flags", CL_MEM_HOST_READ_ONLY, 64, 0);
        alloc(w, "alloc_use", CL_MEM_USE_HOST_PTR, 64, 0);
        alloc(w, "alloc_unknown", 1u << 20, 64, 0);
        alloc(w, "alloc_zero", 0, 0, 0);
        alloc(w, "alloc_beyond", 0, (size_t)device_number(w, CL_DEVICE_MAX_MEM_ALLOC_SIZE) + 1, 0);
        alloc(w, "alloc_align_1", 0, 64, 1);
        alloc(w, "alloc_align_128", 0, 64, 128);
        alloc(w, "alloc_align_256", 0, 64, 256);
        alloc(w, "alloc_align_4096", 0, 64, 4096);
        alloc(w, "alloc_align_3", 0, 64, 3);
}

void group_svm(struct world *w)
{
        if (!w->svm)
                return;
        cl_command_queue q = w->queue;
        allocs(w);
        uint8_t *a = clSVMAlloc(w->context, 0, SIZE, 0), *b = clSVMAlloc(w->context, 0, SIZE, 0);
        int x = 1;
        void *none = NULL;
        NEED(clEnqueueSVMMemFill(q, b, &x, 4, SIZE, 0, NULL, NULL));
        cl_program p = program_built(w, source, NULL);
        cl_kernel k = kernel_new(p, "add");
        RUN("map", clEnqueueSVMMap(q, CL_TRUE, CL_MAP_WRITE, a, SIZE, 0, NULL, &w->event));
        memset(a, 1, SIZE);
        RUN("unmap", clEnqueueSVMUnmap(q, a, 0, NULL, &w->event));
        RUN("map_null", clEnqueueSVMMap(q, CL_TRUE, CL_MAP_WRITE, NULL, 16, 0, NULL, &w->event));
        RUN("map_zero", clEnqueueSVMMap(q, CL_TRUE, CL_MAP_WRITE, a, 0, 0, NULL, &w->event));
        RUN("map_flags", clEnqueueSVMMap(q, CL_TRUE, 1u << 10, a, 16, 0, NULL, &w->event));
        RUN("map_read_discard",
            clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE_INVALIDATE_REGION, a, 16, 0,
                            NULL, &w->event));
        RUN("map_host", clEnqueueSVMMap(q, CL_TRUE, CL_MAP_READ, w->host, 16, 0, NULL, &w->event));
        RUN("unmap_null", clEnqueueSVMUnmap(q, NULL, 0, NULL, &w->event));
        RUN("unmap_not_mapped", clEnqueueSVMUnmap(q, b, 0, NULL, &w->event));
        RUN("copy", clEnqueueSVMMemcpy(q, CL_TRUE, a, b, 64, 0, NULL, &w->event));
        RUN("copy_host", clEnqueueSVMMemcpy(q, CL_TRUE, w->host, a, 64, 0, NULL, &w->event));
        RUN("copy_both_host",
            clEnqueueSVMMemcpy(q, CL_TRUE, w->host, w->host + 1024, 64, 0, NULL, &w->event));
        RUN("copy_zero", clEnqueueSVMMemcpy(q, CL_TRUE, a, b, 0, 0, NULL, &w->event));
        RUN("copy_null", clEnqueueSVMMemcpy(q, CL_TRUE, a, NULL, 16, 0, NULL, &w->event));
        RUN("copy_overlap", clEnqueueSVMMemcpy(q, CL_TRUE, a, a + 8, 64, 0, NULL, &w->event));
        RUN("copy_same", clEnqueueSVMMemcpy(q, CL_TRUE, a, a, 64, 0, NULL, &w->event));
        RUN("fill", clEnqueueSVMMemFill(q, a, &x, 4, 64, 0, NULL, &w->event));
        RUN("fill_3", clEnqueueSVMMemFill(q, a, &x, 3, 12, 0, NULL, &w->event));
        RUN("fill_0", clEnqueueSVMMemFill(q, a, &x, 0, 12, 0, NULL, &w->event));
        RUN("fill_misaligned", clEnqueueSVMMemFill(q, a + 1, &x, 4, 64, 0, NULL, &w->event));
        RUN("fill_size", clEnqueueSVMMemFill(q, a, &x, 4, 63, 0, NULL, &w->event));
        RUN("fill_zero", clEnqueueSVMMemFill(q, a, &x, 4, 0, 0, NULL, &w->event));
        RUN("fill_null", clEnqueueSVMMemFill(q, NULL, &x, 4, 64, 0, NULL, &w->event));
        RUN("fill_null_pattern", clEnqueueSVMMemFill(q, a, NULL, 4, 64, 0, NULL, &w->event));
        RUN("fill_host", clEnqueueSVMMemFill(q, w->host, &x, 4, 64, 0, NULL, &w->event));
        RUN("migrate",
            clEnqueueSVMMigrateMem(q, 1, (const void **)&a, NULL, 0, 0, NULL, &w->event));
        RUN("migrate_none",
            clEnqueueSVMMigrateMem(q, 0, (const void **)&a, NULL, 0, 0, NULL, &w->event));
        RUN("migrate_null", clEnqueueSVMMigrateMem(q, 1, NULL, NULL, 0, 0, NULL, &w->event));
        RUN("migrate_flags",
            clEnqueueSVMMigrateMem(q, 1, (const void **)&a, NULL, 1u << 10, 0, NULL, &w->event));
        CALL("arg", clSetKernelArgSVMPointer(k, 0, a));
        CALL("arg_inside", clSetKernelArgSVMPointer(k, 0, a + 4));
        CALL("arg_behind", clSetKernelArgSVMPointer(k, 0, a + SIZE));
        CALL("arg_null", clSetKernelArgSVMPointer(k, 0, NULL));
        CALL("arg_host", clSetKernelArgSVMPointer(k, 0, w->host));
        CALL("arg_value", clSetKernelArgSVMPointer(k, 1, a));
        CALL("arg_index", clSetKernelArgSVMPointer(k, 9, a));
        CALL("reach", clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(a), &a));
        CALL("reach_host",
             clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(a), &w->host));
        CALL("reach_null", clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_PTRS, sizeof(a), &none));
        CALL("reach_size", clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_PTRS, 5, &a));
        CALL("reach_empty", clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_PTRS, 0, NULL));
        cl_bool yes = CL_TRUE, no = CL_FALSE;
        CALL("system",
             clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof(yes), &yes));
        CALL("system_no",
             clSetKernelExecInfo(k, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, sizeof(no), &no));
        RUN("free_none", clEnqueueSVMFree(q, 0, NULL, NULL, NULL, 0, NULL, &w->event));
        RUN("free_null", clEnqueueSVMFree(q, 1, NULL, NULL, NULL, 0, NULL, &w->event));
        RUN("free_count", clEnqueueSVMFree(q, 0, (void **)&b, NULL, NULL, 0, NULL, &w->event));
        RUN("copy_beyond",
            clEnqueueSVMMemcpy(q, CL_TRUE, w->host, a + SIZE - 8, 16, 0, NULL, &w->event));
        RUN("free", clEnqueueSVMFree(q, 1, (void **)&b, NULL, NULL, 0, NULL, &w->event));
}
