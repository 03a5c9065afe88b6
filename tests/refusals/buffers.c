/* Buffers, sub-buffers, and the commands that move their bytes. */
#include "refusals.h"

/* ---- making --------------------------------------------------------------------------------- */

static void flags(struct world *w, const char *name, cl_mem_flags f, bool host)
{
        MAKE(name, clReleaseMemObject,
             clCreateBuffer(w->context, f, SIZE, host ? w->host : NULL, &w->err));
}

static void CL_CALLBACK on_mem(cl_mem mem, void *data)
{
        (void)mem, (void)data;
}

void group_buffers(struct world *w)
{
        cl_context x = w->context;
        cl_ulong most = device_number(w, CL_DEVICE_MAX_MEM_ALLOC_SIZE);
        const cl_mem_properties empty[] = { 0 }, unknown[] = { 0x7777, 1, 0 };
        flags(w, "flags_none", 0, false);
        flags(w, "flags_read_write_only", CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY, false);
        flags(w, "flags_read_only_write", CL_MEM_READ_WRITE | CL_MEM_READ_ONLY, false);
        flags(w, "flags_read_write_ones", CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, false);
        flags(w, "flags_use", CL_MEM_USE_HOST_PTR, true);
        flags(w, "flags_copy", CL_MEM_COPY_HOST_PTR, true);
        flags(w, "flags_alloc", CL_MEM_ALLOC_HOST_PTR, false);
        flags(w, "flags_alloc_copy", CL_MEM_ALLOC_HOST_PTR | CL_MEM_COPY_HOST_PTR, true);
        flags(w, "flags_use_alloc", CL_MEM_USE_HOST_PTR | CL_MEM_ALLOC_HOST_PTR, true);
        flags(w, "flags_use_copy", CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR, true);
        flags(w, "flags_use_null", CL_MEM_USE_HOST_PTR, false);
        flags(w, "flags_copy_null", CL_MEM_COPY_HOST_PTR, false);
        flags(w, "flags_host_pointer", CL_MEM_READ_WRITE, true);
        flags(w, "flags_alloc_pointer", CL_MEM_ALLOC_HOST_PTR, true);
        flags(w, "flags_host_read_write", CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_WRITE_ONLY, false);
        flags(w, "flags_host_read_none", CL_MEM_HOST_READ_ONLY | CL_MEM_HOST_NO_ACCESS, false);
        flags(w, "flags_host_write_none", CL_MEM_HOST_WRITE_ONLY | CL_MEM_HOST_NO_ACCESS, false);
        flags(w, "flags_kernel_read_write", CL_MEM_KERNEL_READ_AND_WRITE, false);
        flags(w, "flags_svm_fine", CL_MEM_SVM_FINE_GRAIN_BUFFER, false);
        flags(w, "flags_unknown", 1u << 20, false);
        flags(w, "flags_unknown_low", 1u << 6, false);
        MAKE("size_zero", clReleaseMemObject, clCreateBuffer(x, 0, 0, NULL, &w->err));
        MAKE("size_beyond", clReleaseMemObject,
             clCreateBuffer(x, 0, (size_t)most + 1, NULL, &w->err));
        MAKE("size_max", clReleaseMemObject, clCreateBuffer(x, 0, SIZE_MAX, NULL, &w->err));
        MAKE("size_odd", clReleaseMemObject, clCreateBuffer(x, 0, 17, NULL, &w->err));
        MAKE("size_one", clReleaseMemObject, clCreateBuffer(x, 0, 1, NULL, &w->err));
        MAKE("use_unaligned", clReleaseMemObject,
             clCreateBuffer(x, CL_MEM_USE_HOST_PTR, 100, w->host + 1, &w->err));
        MAKE("null_context", clReleaseMemObject, clCreateBuffer(NULL, 0, 16, NULL, &w->err));
        MAKE("properties_null", clReleaseMemObject,
             clCreateBufferWithProperties(x, NULL, 0, 16, NULL, &w->err));
        MAKE("properties_empty", clReleaseMemObject,
             clCreateBufferWithProperties(x, empty, 0, 16, NULL, &w->err));
        MAKE("properties_unknown", clReleaseMemObject,
             clCreateBufferWithProperties(x, unknown, 0, 16, NULL, &w->err));
        MAKE("pipe", clReleaseMemObject, clCreatePipe(x, 0, 16, 16, NULL, &w->err));
        MAKE("pipe_zero", clReleaseMemObject, clCreatePipe(x, 0, 0, 16, NULL, &w->err));
        MAKE("pipe_flags", clReleaseMemObject,
             clCreatePipe(x, CL_MEM_READ_ONLY, 16, 16, NULL, &w->err));
        CALL("retain_null", clRetainMemObject(NULL));
        CALL("release_null", clReleaseMemObject(NULL));
        CALL("destructor_null", clSetMemObjectDestructorCallback(w->a, NULL, NULL));
        CALL("destructor", clSetMemObjectDestructorCallback(w->a, on_mem, NULL));
}

static void sub(struct world *w, const char *name, cl_mem of, cl_mem_flags f, size_t origin,
                size_t size)
{
        cl_buffer_region r = { origin, size };
        MAKE(name, clReleaseMemObject,
             clCreateSubBuffer(of, f, CL_BUFFER_CREATE_TYPE_REGION, &r, &w->err));
}

void group_sub_buffers(struct world *w)
{
        size_t align = (size_t)device_number(w, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
        cl_mem read = buffer_new(w, CL_MEM_READ_ONLY, SIZE, NULL),
               write = buffer_new(w, CL_MEM_WRITE_ONLY, SIZE, NULL),
               host_read = buffer_new(w, CL_MEM_HOST_READ_ONLY, SIZE, NULL),
               host_write = buffer_new(w, CL_MEM_HOST_WRITE_ONLY, SIZE, NULL),
               host_none = buffer_new(w, CL_MEM_HOST_NO_ACCESS, SIZE, NULL),
               uses = buffer_new(w, CL_MEM_USE_HOST_PTR, SIZE, w->host);
        cl_buffer_region all = { 0, SIZE };
        cl_mem inner = clCreateSubBuffer(w->a, 0, CL_BUFFER_CREATE_TYPE_REGION, &all, &w->err);
        NEED(w->err);
        sub(w, "whole", w->a, 0, 0, SIZE);
        sub(w, "aligned", w->a, 0, align, 64);
        sub(w, "misaligned", w->a, 0, 4, 64);
        sub(w, "misaligned_odd", w->a, 0, 1, 64);
        sub(w, "misaligned_half", w->a, 0, align / 2, 64);
        sub(w, "empty", w->a, 0, 0, 0);
        sub(w, "beyond", w->a, 0, align, SIZE);
        sub(w, "origin_beyond", w->a, 0, 2 * SIZE, 16);
        sub(w, "overflow", w->a, 0, align, SIZE_MAX - 8);
        sub(w, "of_sub_buffer", inner, 0, 0, 64);
        sub(w, "of_uses", uses, 0, align, 64);
        sub(w, "of_read_read_write", read, CL_MEM_READ_WRITE, 0, 64);
        sub(w, "of_read_write", read, CL_MEM_WRITE_ONLY, 0, 64);
        sub(w, "of_read_read", read, CL_MEM_READ_ONLY, 0, 64);
        sub(w, "of_write_read_write", write, CL_MEM_READ_WRITE, 0, 64);
        sub(w, "of_write_read", write, CL_MEM_READ_ONLY, 0, 64);
        sub(w, "of_host_read_write", host_read, CL_MEM_HOST_WRITE_ONLY, 0, 64);
        sub(w, "of_host_write_read", host_write, CL_MEM_HOST_READ_ONLY, 0, 64);
        sub(w, "of_host_none_read", host_none, CL_MEM_HOST_READ_ONLY, 0, 64);
        sub(w, "of_host_none_write", host_none, CL_MEM_HOST_WRITE_ONLY, 0, 64);
        sub(w, "of_host_read_none", host_read, CL_MEM_HOST_NO_ACCESS, 0, 64);
        sub(w, "flags_use", w->a, CL_MEM_USE_HOST_PTR, 0, 64);
        sub(w, "flags_use_of_uses", uses, CL_MEM_USE_HOST_PTR, 0, 64);
        sub(w, "flags_alloc", w->a, CL_MEM_ALLOC_HOST_PTR, 0, 64);
        sub(w, "flags_copy", w->a, CL_MEM_COPY_HOST_PTR, 0, 64);
        sub(w, "flags_two", w->a, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 0, 64);
        sub(w, "flags_unknown", w->a, 1u << 20, 0, 64);
        MAKE("type", clReleaseMemObject, clCreateSubBuffer(w->a, 0, 0x7777, &all, &w->err));
        MAKE("null_region", clReleaseMemObject,
             clCreateSubBuffer(w->a, 0, CL_BUFFER_CREATE_TYPE_REGION, NULL, &w->err));
        MAKE("null_buffer", clReleaseMemObject,
             clCreateSubBuffer(NULL, 0, CL_BUFFER_CREATE_TYPE_REGION, &all, &w->err));
        if (w->images)
                sub(w, "of_image", w->image, 0, 0, 64);
}

/* ---- reads, writes, fills ------------------------------------------------------------------- */

static void host_access(struct world *w, const char *name, cl_mem_flags f)
{
        char text[64];
        cl_mem m = buffer_new(w, f, SIZE, NULL);
        snprintf(text, sizeof(text), "read_%s", name);
        CALL(text, clEnqueueReadBuffer(w->queue, m, CL_TRUE, 0, 16, w->host, 0, NULL, NULL));
        snprintf(text, sizeof(text), "write_%s", name);
        CALL(text, clEnqueueWriteBuffer(w->queue, m, CL_TRUE, 0, 16, w->host, 0, NULL, NULL));
        snprintf(text, sizeof(text), "copy_to_%s", name);
        CALL(text, clEnqueueCopyBuffer(w->queue, w->a, m, 0, 0, 16, 0, NULL, NULL));
        snprintf(text, sizeof(text), "fill_%s", name);
        CALL(text, clEnqueueFillBuffer(w->queue, m, w->host, 4, 0, 16, 0, NULL, NULL));
        NEED(clFinish(w->queue));
        NEED(clReleaseMemObject(m));
}

static void fill(struct world *w, const char *name, size_t pattern, size_t offset, size_t size)
{
        RUN(name, clEnqueueFillBuffer(w->queue, w->a, w->host, pattern, offset, size, 0, NULL,
                                      &w->event));
}

static void fills(struct world *w)
{
        fill(w, "fill", 4, 16, 64);
        fill(w, "fill_128", 128, 128, 256);
        fill(w, "fill_256", 256, 0, 256);
        fill(w, "fill_3", 3, 0, 12);
        fill(w, "fill_12", 12, 0, 48);
        fill(w, "fill_0", 0, 0, 16);
        fill(w, "fill_offset", 8, 4, 16);
        fill(w, "fill_size", 8, 0, 12);
        fill(w, "fill_size_zero", 4, 0, 0);
        fill(w, "fill_beyond", 4, SIZE - 4, 8);
        fill(w, "fill_at_end_zero", 4, SIZE, 0);
        RUN("fill_null_pattern",
            clEnqueueFillBuffer(w->queue, w->a, NULL, 4, 0, 16, 0, NULL, &w->event));
        RUN("fill_foreign",
            clEnqueueFillBuffer(w->queue, w->foreign, w->host, 4, 0, 16, 0, NULL, &w->event));
        if (w->images)
                RUN("fill_image",
                    clEnqueueFillBuffer(w->queue, w->image, w->host, 4, 0, 16, 0, NULL, &w->event));
}

static void migrations(struct world *w)
{
        cl_mem two[2] = { w->a, w->foreign }, null = NULL;
        RUN("migrate", clEnqueueMigrateMemObjects(w->queue, 1, &w->a, 0, 0, NULL, &w->event));
        RUN("migrate_host",
            clEnqueueMigrateMemObjects(w->queue, 1, &w->a, CL_MIGRATE_MEM_OBJECT_HOST, 0, NULL,
                                       &w->event));
        RUN("migrate_flags",
            clEnqueueMigrateMemObjects(w->queue, 1, &w->a, 1u << 10, 0, NULL, &w->event));
        RUN("migrate_none", clEnqueueMigrateMemObjects(w->queue, 0, &w->a, 0, 0, NULL, &w->event));
        RUN("migrate_null_list",
            clEnqueueMigrateMemObjects(w->queue, 1, NULL, 0, 0, NULL, &w->event));
        RUN("migrate_foreign", clEnqueueMigrateMemObjects(w->queue, 2, two, 0, 0, NULL, &w->event));
        RUN("migrate_null", clEnqueueMigrateMemObjects(w->queue, 1, &null, 0, 0, NULL, &w->event));
}

void group_transfers(struct world *w)
{
        cl_command_queue q = w->queue;
        uint8_t *p = w->host;
        RUN("read", clEnqueueReadBuffer(q, w->a, CL_TRUE, 16, 64, p, 0, NULL, &w->event));
        RUN("read_blocking_7", clEnqueueReadBuffer(q, w->a, 7, 16, 64, p, 0, NULL, &w->event));
        RUN("read_size_zero", clEnqueueReadBuffer(q, w->a, CL_TRUE, 0, 0, p, 0, NULL, &w->event));
        RUN("read_at_end_zero",
            clEnqueueReadBuffer(q, w->a, CL_TRUE, SIZE, 0, p, 0, NULL, &w->event));
        RUN("read_null", clEnqueueReadBuffer(q, w->a, CL_TRUE, 0, 16, NULL, 0, NULL, &w->event));
        RUN("read_null_zero",
            clEnqueueReadBuffer(q, w->a, CL_TRUE, 0, 0, NULL, 0, NULL, &w->event));
        RUN("read_beyond",
            clEnqueueReadBuffer(q, w->a, CL_TRUE, SIZE - 8, 16, p, 0, NULL, &w->event));
        RUN("read_offset_beyond",
            clEnqueueReadBuffer(q, w->a, CL_TRUE, 2 * SIZE, 16, p, 0, NULL, &w->event));
        RUN("read_overflow",
            clEnqueueReadBuffer(q, w->a, CL_TRUE, 16, SIZE_MAX - 8, p, 0, NULL, &w->event));
        RUN("read_foreign",
            clEnqueueReadBuffer(q, w->foreign, CL_TRUE, 0, 16, p, 0, NULL, &w->event));
        RUN("read_null_buffer",
            clEnqueueReadBuffer(q, NULL, CL_TRUE, 0, 16, p, 0, NULL, &w->event));
        RUN("read_null_queue",
            clEnqueueReadBuffer(NULL, w->a, CL_TRUE, 0, 16, p, 0, NULL, &w->event));
        RUN("write", clEnqueueWriteBuffer(q, w->a, CL_TRUE, 16, 64, p, 0, NULL, &w->event));
        RUN("write_size_zero", clEnqueueWriteBuffer(q, w->a, CL_TRUE, 0, 0, p, 0, NULL, &w->event));
        RUN("write_null", clEnqueueWriteBuffer(q, w->a, CL_TRUE, 0, 16, NULL, 0, NULL, &w->event));
        RUN("write_null_zero",
            clEnqueueWriteBuffer(q, w->a, CL_TRUE, 0, 0, NULL, 0, NULL, &w->event));
        RUN("write_beyond",
            clEnqueueWriteBuffer(q, w->a, CL_TRUE, SIZE - 8, 16, p, 0, NULL, &w->event));
        RUN("write_foreign",
            clEnqueueWriteBuffer(q, w->foreign, CL_TRUE, 0, 16, p, 0, NULL, &w->event));
        host_access(w, "host_read_only", CL_MEM_HOST_READ_ONLY);
        host_access(w, "host_write_only", CL_MEM_HOST_WRITE_ONLY);
        host_access(w, "host_no_access", CL_MEM_HOST_NO_ACCESS);
        fills(w);
        if (w->images) {
                RUN("read_image",
                    clEnqueueReadBuffer(q, w->image, CL_TRUE, 0, 16, p, 0, NULL, &w->event));
                RUN("write_image",
                    clEnqueueWriteBuffer(q, w->image, CL_TRUE, 0, 16, p, 0, NULL, &w->event));
        }
        migrations(w);
}

/* ---- rectangles ----------------------------------------------------------------------------- */

struct rect {
        const char *name;
        size_t at[3], host[3], region[3];
        size_t row, slice, host_row, host_slice;
};

static const struct rect rects[] = {
        { "plain", { 4, 1, 0 }, { 8, 2, 0 }, { 16, 4, 2 }, 64, 512, 32, 256 },
        { "pitches_zero", { 0 }, { 0 }, { 16, 4, 2 }, 0, 0, 0, 0 },
        { "row_small", { 0 }, { 0 }, { 16, 4, 1 }, 8, 0, 0, 0 },
        { "host_row_small", { 0 }, { 0 }, { 16, 4, 1 }, 0, 0, 8, 0 },
        { "row_small_one_row", { 0 }, { 0 }, { 16, 1, 1 }, 8, 0, 0, 0 },
        { "slice_small", { 0 }, { 0 }, { 16, 4, 2 }, 16, 32, 0, 0 },
        { "slice_small_one_slice", { 0 }, { 0 }, { 16, 4, 1 }, 16, 32, 0, 0 },
        { "slice_odd", { 0 }, { 0 }, { 16, 4, 2 }, 16, 100, 0, 0 },
        { "slice_odd_one_slice", { 0 }, { 0 }, { 16, 4, 1 }, 16, 100, 0, 0 },
        { "slice_odd_row_zero", { 0 }, { 0 }, { 16, 4, 2 }, 0, 100, 0, 0 },
        { "host_slice_small", { 0 }, { 0 }, { 16, 4, 2 }, 0, 0, 16, 32 },
        { "host_slice_odd", { 0 }, { 0 }, { 16, 4, 2 }, 0, 0, 16, 100 },
        { "host_slice_odd_one_slice", { 0 }, { 0 }, { 16, 4, 1 }, 0, 0, 16, 100 },
        { "row_alone", { 0 }, { 0 }, { 16, 4, 1 }, 64, 0, 64, 0 },
        { "slice_alone", { 0 }, { 0 }, { 16, 4, 2 }, 0, 128, 0, 128 },
        { "region_zero", { 0 }, { 0 }, { 0, 4, 1 }, 0, 0, 0, 0 },
        { "region_zero_rows", { 0 }, { 0 }, { 16, 0, 1 }, 0, 0, 0, 0 },
        { "region_zero_slices", { 0 }, { 0 }, { 16, 4, 0 }, 0, 0, 0, 0 },
        { "origin_past_row", { 60, 0, 0 }, { 0 }, { 16, 2, 1 }, 64, 0, 0, 0 },
        { "host_origin_past_row", { 0 }, { 60, 0, 0 }, { 16, 2, 1 }, 0, 0, 64, 0 },
        { "origin_past_slice", { 0, 7, 0 }, { 0 }, { 16, 4, 1 }, 64, 512, 0, 0 },
        { "to_the_end", { 0 }, { 0 }, { 64, 64, 1 }, 64, 0, 64, 0 },
        { "last_row_short", { 48, 0, 0 }, { 0 }, { 16, 64, 1 }, 64, 0, 16, 0 },
        { "beyond", { 0 }, { 0 }, { 64, 65, 1 }, 64, 0, 8, 0 },
        { "beyond_rows", { 0, 64, 0 }, { 0 }, { 16, 1, 1 }, 64, 0, 0, 0 },
        { "beyond_slices", { 0, 0, 8 }, { 0 }, { 16, 1, 1 }, 64, 512, 0, 0 },
        { "overflow", { SIZE_MAX, 0, 0 }, { 0 }, { 16, 1, 1 }, 64, 512, 0, 0 },
};
enum { RECTS = sizeof(rects) / sizeof(rects[0]) };

void group_rects(struct world *w)
{
        cl_command_queue q = w->queue;
        char name[64];
        for (int i = 0; i < RECTS; i++) {
                const struct rect *r = &rects[i];
                snprintf(name, sizeof(name), "read_%s", r->name);
                RUN(name, clEnqueueReadBufferRect(q, w->a, CL_TRUE, r->at, r->host, r->region,
                                                  r->row, r->slice, r->host_row, r->host_slice,
                                                  w->host, 0, NULL, &w->event));
                snprintf(name, sizeof(name), "write_%s", r->name);
                RUN(name, clEnqueueWriteBufferRect(q, w->a, CL_TRUE, r->at, r->host, r->region,
                                                   r->row, r->slice, r->host_row, r->host_slice,
                                                   w->host, 0, NULL, &w->event));
                snprintf(name, sizeof(name), "copy_%s", r->name);
                RUN(name, clEnqueueCopyBufferRect(q, w->a, w->b, r->at, r->host, r->region, r->row,
                                                  r->slice, r->host_row, r->host_slice, 0, NULL,
                                                  &w->event));
        }
        const size_t *o = zero3, region[3] = { 16, 4, 1 };
        RUN("read_null_region", clEnqueueReadBufferRect(q, w->a, CL_TRUE, o, o, NULL, 0, 0, 0, 0,
                                                        w->host, 0, NULL, &w->event));
        RUN("read_null_origin", clEnqueueReadBufferRect(q, w->a, CL_TRUE, NULL, o, region, 0, 0, 0,
                                                        0, w->host, 0, NULL, &w->event));
        RUN("read_null_host_origin", clEnqueueReadBufferRect(q, w->a, CL_TRUE, o, NULL, region, 0,
                                                             0, 0, 0, w->host, 0, NULL, &w->event));
        RUN("read_null", clEnqueueReadBufferRect(q, w->a, CL_TRUE, o, o, region, 0, 0, 0, 0, NULL,
                                                 0, NULL, &w->event));
        RUN("read_foreign", clEnqueueReadBufferRect(q, w->foreign, CL_TRUE, o, o, region, 0, 0, 0,
                                                    0, w->host, 0, NULL, &w->event));
        RUN("copy_null_region",
            clEnqueueCopyBufferRect(q, w->a, w->b, o, o, NULL, 0, 0, 0, 0, 0, NULL, &w->event));
}

/* ---- copies --------------------------------------------------------------------------------- */

static void copy(struct world *w, const char *name, cl_mem from, cl_mem to, size_t a, size_t b,
                 size_t size)
{
        RUN(name, clEnqueueCopyBuffer(w->queue, from, to, a, b, size, 0, NULL, &w->event));
}

static void copy_rect(struct world *w, const char *name, cl_mem from, cl_mem to, size_t x, size_t y,
                      size_t row, size_t to_row, size_t slice, size_t to_slice)
{
        const size_t origin[3] = { x, y, 0 }, region[3] = { 16, 4, 1 };
        RUN(name, clEnqueueCopyBufferRect(w->queue, from, to, zero3, origin, region, row, slice,
                                          to_row, to_slice, 0, NULL, &w->event));
}

void group_copies(struct world *w)
{
        size_t align = (size_t)device_number(w, CL_DEVICE_MEM_BASE_ADDR_ALIGN) / 8;
        cl_buffer_region r0 = { 0, 2048 }, r1 = { align, 2048 };
        cl_mem s0 = clCreateSubBuffer(w->a, 0, CL_BUFFER_CREATE_TYPE_REGION, &r0, &w->err);
        NEED(w->err);
        cl_mem s1 = clCreateSubBuffer(w->a, 0, CL_BUFFER_CREATE_TYPE_REGION, &r1, &w->err);
        NEED(w->err);
        copy(w, "plain", w->a, w->b, 16, 32, 64);
        copy(w, "size_zero", w->a, w->b, 0, 0, 0);
        copy(w, "same_apart", w->a, w->a, 0, 64, 64);
        copy(w, "same_place", w->a, w->a, 0, 0, 64);
        copy(w, "overlap", w->a, w->a, 0, 32, 64);
        copy(w, "overlap_sub_buffers", s0, s1, align, 0, 64);
        copy(w, "overlap_parent", w->a, s0, 0, 32, 64);
        copy(w, "apart_sub_buffers", s0, s1, 0, 512, 64);
        copy(w, "beyond", w->a, w->b, SIZE - 8, 0, 16);
        copy(w, "to_beyond", w->a, w->b, 0, SIZE - 8, 16);
        copy(w, "overflow", w->a, w->b, 8, 0, SIZE_MAX - 4);
        copy(w, "from_foreign", w->foreign, w->b, 0, 0, 16);
        copy(w, "to_foreign", w->a, w->foreign, 0, 0, 16);
        copy(w, "null", NULL, w->b, 0, 0, 16);
        copy_rect(w, "rect_same_apart", w->a, w->a, 0, 4, 64, 64, 0, 0);
        copy_rect(w, "rect_same_beside", w->a, w->a, 16, 0, 64, 64, 0, 0);
        copy_rect(w, "rect_overlap", w->a, w->a, 8, 0, 64, 64, 0, 0);
        copy_rect(w, "rect_same_place", w->a, w->a, 0, 0, 64, 64, 0, 0);
        copy_rect(w, "rect_same_pitches_differ", w->a, w->a, 0, 8, 64, 128, 0, 0);
        copy_rect(w, "rect_same_slices_differ", w->a, w->a, 0, 8, 64, 64, 512, 1024);
        copy_rect(w, "rect_subs_pitches_differ", s0, s1, 0, 8, 64, 32, 0, 0);
        copy_rect(w, "rect_subs_between", s0, s1, 16, 0, 64, 128, 0, 0);
        if (w->images) {
                copy(w, "image", w->image, w->b, 0, 0, 16);
                copy(w, "to_image", w->a, w->image, 0, 0, 16);
        }
}

/* ---- maps ----------------------------------------------------------------------------------- */

static void map(struct world *w, const char *name, cl_mem m, cl_map_flags f, size_t offset,
                size_t size)
{
        MAP(name, m,
            clEnqueueMapBuffer(w->queue, m, CL_TRUE, f, offset, size, 0, NULL, NULL, &w->err));
}

/* A second mapping while the bytes from 64 to 128 are mapped, and written if that is allowed. */
static void two_maps(struct world *w, const char *name, cl_map_flags first, cl_map_flags second,
                     size_t at, size_t size)
{
        if (!wanted(w, name))
                return;
        run_begin(w);
        uint8_t *a =
                clEnqueueMapBuffer(w->queue, w->a, CL_TRUE, first, 64, 64, 0, NULL, NULL, &w->err);
        NEED(w->err);
        if (first & ~(cl_map_flags)CL_MAP_READ)
                memset(a, 9, 64);
        uint8_t *b = clEnqueueMapBuffer(w->queue, w->a, CL_TRUE, second, at, size, 0, NULL, NULL,
                                        &w->err);
        cl_int e = w->err;
        if (e == CL_SUCCESS) {
                if (second & ~(cl_map_flags)CL_MAP_READ)
                        memset(b, 7, second & CL_MAP_WRITE_INVALIDATE_REGION ? size : 8);
                NEED(clEnqueueUnmapMemObject(w->queue, w->a, b, 0, NULL, NULL));
        }
        NEED(clEnqueueUnmapMemObject(w->queue, w->a, a, 0, NULL, NULL));
        run_end(w, name, e);
}

static void map_access(struct world *w, const char *name, cl_mem_flags f, cl_map_flags how)
{
        cl_mem m = buffer_new(w, f, SIZE, NULL);
        MAP(name, m, clEnqueueMapBuffer(w->queue, m, CL_TRUE, how, 0, 16, 0, NULL, NULL, &w->err));
        NEED(clReleaseMemObject(m));
}

void group_maps(struct world *w)
{
        const cl_map_flags read = CL_MAP_READ, write = CL_MAP_WRITE,
                           discard = CL_MAP_WRITE_INVALIDATE_REGION;
        map(w, "write", w->a, write, 16, 64);
        map(w, "read_write", w->a, read | write, 16, 64);
        map(w, "write_discard", w->a, write | discard, 0, 1);
        map(w, "read_discard", w->a, read | discard, 0, 1);
        map(w, "discard", w->a, discard, 0, 1);
        map(w, "flags_unknown", w->a, write | 1u << 10, 16, 64);
        map(w, "size_zero", w->a, write, 0, 0);
        map(w, "beyond", w->a, write, SIZE - 8, 16);
        map(w, "foreign", w->foreign, write, 0, 16);
        map(w, "null", NULL, write, 0, 16);
        map_access(w, "host_read_only_read", CL_MEM_HOST_READ_ONLY, read);
        map_access(w, "host_read_only_write", CL_MEM_HOST_READ_ONLY, write);
        map_access(w, "host_read_only_discard", CL_MEM_HOST_READ_ONLY, discard);
        map_access(w, "host_write_only_read", CL_MEM_HOST_WRITE_ONLY, read);
        map_access(w, "host_write_only_read_write", CL_MEM_HOST_WRITE_ONLY, read | write);
        map_access(w, "host_write_only_write", CL_MEM_HOST_WRITE_ONLY, write);
        map_access(w, "host_no_access_read", CL_MEM_HOST_NO_ACCESS, read);
        map_access(w, "host_no_access_write", CL_MEM_HOST_NO_ACCESS, write);
        map_access(w, "host_no_access_none", CL_MEM_HOST_NO_ACCESS, 0);
        two_maps(w, "read_read", read, read, 96, 64);
        two_maps(w, "read_then_write", read, write, 96, 64);
        two_maps(w, "write_then_read", write, read, 96, 64);
        two_maps(w, "write_write", write, write, 96, 64);
        two_maps(w, "write_write_same", write, write, 64, 64);
        two_maps(w, "write_discard_same", write, discard, 64, 64);
        two_maps(w, "write_write_apart", write, write, 128, 64);
        two_maps(w, "write_write_before", write, write, 32, 64);
        two_maps(w, "write_write_inside", write, write, 80, 16);
        two_maps(w, "write_read_inside", write, read, 80, 16);
        two_maps(w, "write_discard_around", write, discard, 0, 256);
        two_maps(w, "write_write_around", write, write, 0, 256);
        if (w->images)
                map(w, "image", w->image, write, 0, 16);
        CALL("unmap_null", clEnqueueUnmapMemObject(w->queue, w->a, NULL, 0, NULL, NULL));
        CALL("unmap_other", clEnqueueUnmapMemObject(w->queue, w->a, w->host, 0, NULL, NULL));
        map(w, "flags_none", w->a, 0, 0, 1);
}
