/* The commands that move bytes: reads, writes, copies, fills, maps. */
#include <CL/cl.h>

#include "api/check.h"
#include "api/enqueue.h"
#include "api/reply.h"
#include "core/command/enqueue.h"
#include "core/device.h"
#include "core/memory/mapping.h"
#include "core/memory/svm.h"
#include "core/memory/usm.h"

/* ---- reads and writes ----------------------------------------------------------------------- */

static cl_int check_transfer(const struct enqueue *q, cl_mem m, size_t offset, size_t size,
                             const void *ptr, bool write)
{
        cl_int e = check_enqueue(q->queue, q->wait_count, q->waits);
        if (e == CL_SUCCESS)
                e = check_mem(q->queue, m);
        if (e == CL_SUCCESS)
                e = check_region(m, offset, size);
        /* "CL_INVALID_VALUE [...] if ptr is a NULL value." */
        if (e == CL_SUCCESS && !ptr)
                e = CL_INVALID_VALUE;
        if (e == CL_SUCCESS)
                e = check_host_access(m, !write, write);
        return e;
}

cl_int check_device_side(const struct enqueue *q, const void *ptr, size_t size, cl_mem *ret,
                         size_t *ret_offset)
{
        *ret = svm_find_usm(q->queue->context, ptr);
        if (!*ret) /* another context's allocation is nothing that the client can read or write */
                return svm_may_fault(ptr, size) ? CL_INVALID_VALUE : CL_SUCCESS;
        if (!q->queue->device->svm && (*ret)->usm.type == CL_MEM_TYPE_DEVICE_INTEL)
                return CL_INVALID_OPERATION;
        *ret_offset = svm_at(*ret, ptr);
        return check_region(*ret, *ret_offset, size);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReadBuffer(cl_command_queue command_queue, cl_mem buffer,
                                                    cl_bool blocking_read, size_t offset,
                                                    size_t size, void *ptr,
                                                    cl_uint num_events_in_wait_list,
                                                    const cl_event *event_wait_list,
                                                    cl_event *event)
{
        struct enqueue q = {
                command_queue, CL_COMMAND_READ_BUFFER,   num_events_in_wait_list, event_wait_list,
                event,         blocking_read != CL_FALSE
        };
        cl_mem to;
        size_t at;
        cl_int e = check_transfer(&q, buffer, offset, size, ptr, false);
        if (e == CL_SUCCESS)
                e = check_device_side(&q, ptr, size, &to, &at);
        if (e != CL_SUCCESS)
                return e;
        if (size && to)
                return enqueue_copy(&q, buffer, to, offset, at, size);
        return size ? enqueue_read(&q, buffer, offset, size, ptr) : enqueue_nothing(&q);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteBuffer(cl_command_queue command_queue, cl_mem buffer,
                                                     cl_bool blocking_write, size_t offset,
                                                     size_t size, const void *ptr,
                                                     cl_uint num_events_in_wait_list,
                                                     const cl_event *event_wait_list,
                                                     cl_event *event)
{
        struct enqueue q = {
                command_queue, CL_COMMAND_WRITE_BUFFER,   num_events_in_wait_list, event_wait_list,
                event,         blocking_write != CL_FALSE
        };
        cl_mem from;
        size_t at;
        cl_int e = check_transfer(&q, buffer, offset, size, ptr, true);
        if (e == CL_SUCCESS)
                e = check_device_side(&q, ptr, size, &from, &at);
        if (e != CL_SUCCESS)
                return e;
        if (size && from)
                return enqueue_copy(&q, from, buffer, at, offset, size);
        return size ? enqueue_write(&q, buffer, offset, size, ptr) : enqueue_nothing(&q);
}

/* ---- rectangles ----------------------------------------------------------------------------- */

/* Fill in the pitches that are 0 and check them.
 * "CL_INVALID_VALUE if row_pitch is not 0 and is less than region[0]"; "[...] if slice_pitch is not 0 and
 * is less than region[1] x row_pitch and not a multiple of row_pitch": an error is only what both say.
 * Slices that are smaller would overlap, so that they are an error, too. */
static cl_int box_init(struct box *b, const size_t *origin, const size_t *region, size_t row_pitch,
                       size_t slice_pitch)
{
        size_t least;
        if (row_pitch && row_pitch < region[0])
                return CL_INVALID_VALUE;
        b->row_pitch = row_pitch ? row_pitch : region[0];
        if (__builtin_mul_overflow(region[1], b->row_pitch, &least))
                return CL_INVALID_VALUE;
        if (slice_pitch && slice_pitch < least)
                return CL_INVALID_VALUE;
        b->slice_pitch = slice_pitch ? slice_pitch : least;
        memcpy(b->origin, origin, sizeof(b->origin));
        return CL_SUCCESS;
}

/* The byte behind the box; CL_INVALID_VALUE when it is beyond all memory. */
static cl_int box_end(const struct box *b, const size_t *region, size_t *ret)
{
        size_t at[3], last[3], end = region[0];
        for (int i = 0; i < 3; i++)
                if (__builtin_add_overflow(b->origin[i], i ? region[i] - 1 : 0, &last[i]))
                        return CL_INVALID_VALUE;
        at[0] = last[0];
        if (__builtin_mul_overflow(last[1], b->row_pitch, &at[1]) ||
            __builtin_mul_overflow(last[2], b->slice_pitch, &at[2]))
                return CL_INVALID_VALUE;
        for (int i = 0; i < 3; i++)
                if (__builtin_add_overflow(end, at[i], &end))
                        return CL_INVALID_VALUE;
        *ret = end;
        return CL_SUCCESS;
}

/* "CL_INVALID_VALUE if the region being read or written specified by (buffer_origin, region,
 * buffer_row_pitch, buffer_slice_pitch) is out of bounds." */
static cl_int check_box(const struct _cl_mem *m, const struct box *b, const size_t *region)
{
        size_t end;
        cl_int e = box_end(b, region, &end);
        if (e == CL_SUCCESS && end > m->size)
                e = CL_INVALID_VALUE;
        return e;
}

struct rect {
        struct enqueue q;
        cl_mem mem;
        const size_t *buffer_origin, *host_origin, *region;
        size_t buffer_row_pitch, buffer_slice_pitch, host_row_pitch, host_slice_pitch;
        const void *ptr;
        struct box at, host;
        cl_mem device_side; /* allocation of ptr; NULL: application's memory */
};

static bool is_empty(const size_t *region)
{
        return !region[0] || !region[1] || !region[2];
}

/* "CL_INVALID_VALUE [...] if any region array element is 0." A device that accepts it does nothing. */
static cl_int check_empty(const struct enqueue *q)
{
        return device_accepts(q->queue->device, DEVICE_ACCEPTS_RECT_EMPTY) ? CL_SUCCESS
                                                                           : CL_INVALID_VALUE;
}

static cl_int check_rect(struct rect *r, bool write)
{
        size_t end;
        cl_int e = check_enqueue(r->q.queue, r->q.wait_count, r->q.waits);
        if (e == CL_SUCCESS)
                e = check_mem(r->q.queue, r->mem);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_INVALID_VALUE if buffer_origin, host_origin, or region is NULL"; "[...] if ptr is NULL." */
        if (!r->buffer_origin || !r->host_origin || !r->region || !r->ptr)
                return CL_INVALID_VALUE;
        if (is_empty(r->region)) {
                e = check_empty(&r->q);
                return e == CL_SUCCESS ? check_host_access(r->mem, !write, write) : e;
        }
        e = box_init(&r->at, r->buffer_origin, r->region, r->buffer_row_pitch,
                     r->buffer_slice_pitch);
        if (e == CL_SUCCESS)
                e = box_init(&r->host, r->host_origin, r->region, r->host_row_pitch,
                             r->host_slice_pitch);
        if (e == CL_SUCCESS)
                e = check_box(r->mem, &r->at, r->region);
        if (e == CL_SUCCESS)
                e = box_end(&r->host, r->region, &end);
        if (e == CL_SUCCESS)
                e = check_host_access(r->mem, !write, write);
        size_t at = 0;
        if (e == CL_SUCCESS)
                e = check_device_side(&r->q, r->ptr, 1, &r->device_side, &at);
        if (e != CL_SUCCESS || !r->device_side)
                return e;
        at += box_range(&r->host, r->region).begin;
        r->host.origin[2] = at / r->host.slice_pitch;
        r->host.origin[1] = at % r->host.slice_pitch / r->host.row_pitch;
        r->host.origin[0] = at % r->host.slice_pitch % r->host.row_pitch;
        return check_box(r->device_side, &r->host, r->region);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReadBufferRect(
        cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_read,
        const size_t *buffer_origin, const size_t *host_origin, const size_t *region,
        size_t buffer_row_pitch, size_t buffer_slice_pitch, size_t host_row_pitch,
        size_t host_slice_pitch, void *ptr, cl_uint num_events_in_wait_list,
        const cl_event *event_wait_list, cl_event *event)
{
        struct rect r = { { command_queue, CL_COMMAND_READ_BUFFER_RECT, num_events_in_wait_list,
                            event_wait_list, event, blocking_read != CL_FALSE },
                          buffer,
                          buffer_origin,
                          host_origin,
                          region,
                          buffer_row_pitch,
                          buffer_slice_pitch,
                          host_row_pitch,
                          host_slice_pitch,
                          ptr,
                          { { 0 }, 0, 0 },
                          { { 0 }, 0, 0 },
                          NULL };
        cl_int e = check_rect(&r, false);
        if (e == CL_SUCCESS && is_empty(region))
                return enqueue_nothing(&r.q);
        if (e == CL_SUCCESS && r.device_side)
                return enqueue_copy_rect(&r.q, buffer, r.device_side, &r.at, &r.host, region);
        return e != CL_SUCCESS ? e : enqueue_read_rect(&r.q, buffer, &r.at, &r.host, region, ptr);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteBufferRect(
        cl_command_queue command_queue, cl_mem buffer, cl_bool blocking_write,
        const size_t *buffer_origin, const size_t *host_origin, const size_t *region,
        size_t buffer_row_pitch, size_t buffer_slice_pitch, size_t host_row_pitch,
        size_t host_slice_pitch, const void *ptr, cl_uint num_events_in_wait_list,
        const cl_event *event_wait_list, cl_event *event)
{
        struct rect r = { { command_queue, CL_COMMAND_WRITE_BUFFER_RECT, num_events_in_wait_list,
                            event_wait_list, event, blocking_write != CL_FALSE },
                          buffer,
                          buffer_origin,
                          host_origin,
                          region,
                          buffer_row_pitch,
                          buffer_slice_pitch,
                          host_row_pitch,
                          host_slice_pitch,
                          ptr,
                          { { 0 }, 0, 0 },
                          { { 0 }, 0, 0 },
                          NULL };
        cl_int e = check_rect(&r, true);
        if (e == CL_SUCCESS && is_empty(region))
                return enqueue_nothing(&r.q);
        if (e == CL_SUCCESS && r.device_side)
                return enqueue_copy_rect(&r.q, r.device_side, buffer, &r.host, &r.at, region);
        return e != CL_SUCCESS ? e : enqueue_write_rect(&r.q, buffer, &r.at, &r.host, region, ptr);
}

/* ---- copies --------------------------------------------------------------------------------- */

static cl_int check_copy(const struct enqueue *q, cl_mem src, cl_mem dst)
{
        cl_int e = check_enqueue(q->queue, q->wait_count, q->waits);
        if (e == CL_SUCCESS)
                e = check_mem(q->queue, src);
        if (e == CL_SUCCESS)
                e = check_mem(q->queue, dst);
        return e;
}

static bool ranges_overlap(struct range a, struct range b)
{
        return a.begin < b.end && b.begin < a.end;
}

cl_int do_copy_buffer(const struct enqueue *q, cl_mem src_buffer, cl_mem dst_buffer,
                      size_t src_offset, size_t dst_offset, size_t size)
{
        cl_int e = check_copy(q, src_buffer, dst_buffer);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_INVALID_VALUE if src_offset, dst_offset, size, src_offset + size or dst_offset + size
         * require accessing elements outside the src_buffer and dst_buffer buffer objects." */
        if (check_region(src_buffer, src_offset, size) ||
            check_region(dst_buffer, dst_offset, size))
                return CL_INVALID_VALUE;
        /* CL_MEM_COPY_OVERLAP: both are "the same buffer or sub-buffer object and the source and
         * destination regions overlap"; or both are "different sub-buffers of the same associated
         * buffer object and they overlap". */
        size_t from = mem_root_offset(src_buffer) + src_offset,
               to = mem_root_offset(dst_buffer) + dst_offset;
        if (mem_root(src_buffer) == mem_root(dst_buffer) &&
            ranges_overlap((struct range){ from, from + size }, (struct range){ to, to + size }))
                return CL_MEM_COPY_OVERLAP;
        return size ? enqueue_copy(q, src_buffer, dst_buffer, src_offset, dst_offset, size)
                    : enqueue_nothing(q);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyBuffer(cl_command_queue command_queue,
                                                    cl_mem src_buffer, cl_mem dst_buffer,
                                                    size_t src_offset, size_t dst_offset,
                                                    size_t size, cl_uint num_events_in_wait_list,
                                                    const cl_event *event_wait_list,
                                                    cl_event *event)
{
        struct enqueue q = { command_queue,
                             CL_COMMAND_COPY_BUFFER,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        return do_copy_buffer(&q, src_buffer, dst_buffer, src_offset, dst_offset, size);
}

/* Does a row of `width` bytes share one with a row of the box? `at` and `base`: the first byte of each. */
static bool row_meets_box(uint64_t at, size_t width, uint64_t base, const struct box *b,
                          const size_t *region)
{
        if (at < base)
                return base - at < width;
        uint64_t delta = at - base, z = delta / b->slice_pitch, rest = delta % b->slice_pitch;
        uint64_t y = rest / b->row_pitch;
        if (z >= region[2])
                return false;
        /* The row that begins before it or there, and the next ones. */
        if (y < region[1] && rest % b->row_pitch < region[0])
                return true;
        if (y + 1 < region[1] && (y + 1) * b->row_pitch - rest < width)
                return true;
        return z + 1 < region[2] && b->slice_pitch - rest < width;
}

/* The same question about two boxes of the same shape. */
static bool any_row_meets_box(const struct box *a, uint64_t a_base, const struct box *b,
                              uint64_t b_base, const size_t *region)
{
        for (size_t z = 0; z < region[2]; z++)
                for (size_t y = 0; y < region[1]; y++)
                        if (row_meets_box(a_base + z * a->slice_pitch + y * a->row_pitch, region[0],
                                          b_base, b, region))
                                return true;
        return false;
}

/* Do two boxes of the same shape and pitches, `delta` bytes apart, share a byte? They do if a step of some
 * slices and rows comes closer to delta than a row is wide. The same
 * as check_copy_overlap in the specification's appendix, which is about coordinates. */
static bool boxes_overlap(const struct box *b, const size_t *region, size_t delta)
{
        for (size_t dz = delta / b->slice_pitch, i = 0; i < 2; i++, dz++) {
                if (dz >= region[2])
                        break;
                size_t slices = dz * b->slice_pitch;
                size_t rest = delta > slices ? delta - slices : slices - delta;
                for (size_t dy = rest / b->row_pitch, j = 0; j < 2; j++, dy++) {
                        size_t rows = dy * b->row_pitch;
                        size_t gap = rest > rows ? rest - rows : rows - rest;
                        if (dy < region[1] && gap < region[0])
                                return true;
                }
        }
        return false;
}

static cl_int check_box_overlap(cl_mem src, cl_mem dst, const struct box *from,
                                const struct box *to, const size_t *region)
{
        if (mem_root(src) != mem_root(dst))
                return CL_SUCCESS;
        struct range a = box_range(from, region), b = box_range(to, region);
        a = (struct range){ a.begin + mem_root_offset(src), a.end + mem_root_offset(src) };
        b = (struct range){ b.begin + mem_root_offset(dst), b.end + mem_root_offset(dst) };
        if (!ranges_overlap(a, b))
                return CL_SUCCESS;
        if (from->row_pitch != to->row_pitch || from->slice_pitch != to->slice_pitch)
                return any_row_meets_box(from, a.begin, to, b.begin, region) ? CL_MEM_COPY_OVERLAP
                                                                             : CL_SUCCESS;
        uint64_t delta = a.begin > b.begin ? a.begin - b.begin : b.begin - a.begin;
        return boxes_overlap(from, region, (size_t)delta) ? CL_MEM_COPY_OVERLAP : CL_SUCCESS;
}

cl_int do_copy_buffer_rect(const struct enqueue *q, cl_mem src_buffer, cl_mem dst_buffer,
                           const size_t *src_origin, const size_t *dst_origin, const size_t *region,
                           size_t src_row_pitch, size_t src_slice_pitch, size_t dst_row_pitch,
                           size_t dst_slice_pitch)
{
        struct box from, to;
        cl_int e = check_copy(q, src_buffer, dst_buffer);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_INVALID_VALUE if src_origin, dst_origin, or region is NULL." */
        if (!src_origin || !dst_origin || !region)
                return CL_INVALID_VALUE;
        if (is_empty(region)) {
                e = check_empty(q);
                return e == CL_SUCCESS ? enqueue_nothing(q) : e;
        }
        e = box_init(&from, src_origin, region, src_row_pitch, src_slice_pitch);
        if (e == CL_SUCCESS)
                e = box_init(&to, dst_origin, region, dst_row_pitch, dst_slice_pitch);
        if (e == CL_SUCCESS)
                e = check_box(src_buffer, &from, region);
        if (e == CL_SUCCESS)
                e = check_box(dst_buffer, &to, region);
        /* "CL_INVALID_VALUE if src_buffer and dst_buffer are the same buffer object and src_row_pitch is
         * not equal to dst_row_pitch", "[...] and src_slice_pitch is not equal to dst_slice_pitch." */
        if (e == CL_SUCCESS && src_buffer == dst_buffer &&
            (from.slice_pitch != to.slice_pitch || from.row_pitch != to.row_pitch))
                e = CL_INVALID_VALUE;
        if (e == CL_SUCCESS)
                e = check_box_overlap(src_buffer, dst_buffer, &from, &to, region);
        if (e != CL_SUCCESS)
                return e;
        return enqueue_copy_rect(q, src_buffer, dst_buffer, &from, &to, region);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyBufferRect(
        cl_command_queue command_queue, cl_mem src_buffer, cl_mem dst_buffer,
        const size_t *src_origin, const size_t *dst_origin, const size_t *region,
        size_t src_row_pitch, size_t src_slice_pitch, size_t dst_row_pitch, size_t dst_slice_pitch,
        cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event)
{
        struct enqueue q = { command_queue,
                             CL_COMMAND_COPY_BUFFER_RECT,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        return do_copy_buffer_rect(&q, src_buffer, dst_buffer, src_origin, dst_origin, region,
                                   src_row_pitch, src_slice_pitch, dst_row_pitch, dst_slice_pitch);
}

/* ---- fills ---------------------------------------------------------------------------------- */

cl_int do_fill_buffer(const struct enqueue *q, cl_mem buffer, const void *pattern,
                      size_t pattern_size, size_t offset, size_t size)
{
        cl_int e = check_enqueue(q->queue, q->wait_count, q->waits);
        if (e == CL_SUCCESS)
                e = check_mem(q->queue, buffer);
        if (e == CL_SUCCESS)
                e = check_region(buffer, offset, size);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_INVALID_VALUE if pattern is NULL or if pattern_size is 0 or if pattern_size is not one of
         * { 1, 2, 4, 8, 16, 32, 64, 128 }"; "[...] if offset and size are not a multiple of
         * pattern_size." */
        if (!pattern || !pattern_size || pattern_size > FILL_PATTERN_MAX ||
            pattern_size & (pattern_size - 1) || offset % pattern_size || size % pattern_size)
                return CL_INVALID_VALUE;
        return size ? enqueue_fill(q, buffer, bytes_of(pattern, pattern_size), offset, size)
                    : enqueue_nothing(q);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueFillBuffer(cl_command_queue command_queue, cl_mem buffer,
                                                    const void *pattern, size_t pattern_size,
                                                    size_t offset, size_t size,
                                                    cl_uint num_events_in_wait_list,
                                                    const cl_event *event_wait_list,
                                                    cl_event *event)
{
        struct enqueue q = { command_queue,
                             CL_COMMAND_FILL_BUFFER,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        return do_fill_buffer(&q, buffer, pattern, pattern_size, offset, size);
}

/* ---- maps ----------------------------------------------------------------------------------- */

CL_API_ENTRY void *CL_API_CALL clEnqueueMapBuffer(cl_command_queue command_queue, cl_mem buffer,
                                                  cl_bool blocking_map, cl_map_flags map_flags,
                                                  size_t offset, size_t size,
                                                  cl_uint num_events_in_wait_list,
                                                  const cl_event *event_wait_list, cl_event *event,
                                                  cl_int *errcode_ret)
{
        struct enqueue q = {
                command_queue, CL_COMMAND_MAP_BUFFER,   num_events_in_wait_list, event_wait_list,
                event,         blocking_map != CL_FALSE
        };
        cl_map_flags writes = CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
        map_flags = map_flags_of(map_flags);
        cl_int e = check_enqueue(command_queue, num_events_in_wait_list, event_wait_list);
        if (e == CL_SUCCESS)
                e = check_mem(command_queue, buffer);
        if (e != CL_SUCCESS)
                return reply_error(errcode_ret, e);
        /* "CL_INVALID_VALUE if region being mapped given by (offset, size) is out of bounds or if size is
         * 0". */
        if (!size || check_region(buffer, offset, size))
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        /* CL_INVALID_OPERATION: CL_MAP_READ is set, and the buffer has CL_MEM_HOST_WRITE_ONLY or
         * CL_MEM_HOST_NO_ACCESS. The same if CL_MAP_WRITE or CL_MAP_WRITE_INVALIDATE_REGION is set,
         * and the buffer has CL_MEM_HOST_READ_ONLY or CL_MEM_HOST_NO_ACCESS. */
        e = check_host_access(buffer, map_flags & CL_MAP_READ, map_flags & writes);
        if (e != CL_SUCCESS)
                return reply_error(errcode_ret, e);
        void *pointer = NULL;
        e = enqueue_map(&q, buffer, map_flags, offset, size, &pointer);
        if (errcode_ret)
                *errcode_ret = e;
        return pointer;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueUnmapMemObject(cl_command_queue command_queue,
                                                        cl_mem memobj, void *mapped_ptr,
                                                        cl_uint num_events_in_wait_list,
                                                        const cl_event *event_wait_list,
                                                        cl_event *event)
{
        struct enqueue q = { command_queue,
                             CL_COMMAND_UNMAP_MEM_OBJECT,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        cl_int e = check_enqueue(command_queue, num_events_in_wait_list, event_wait_list);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_INVALID_MEM_OBJECT if memobj is not a valid memory object"; "CL_INVALID_CONTEXT if the
         * context associated with command_queue and memobj are not the same." */
        if (!handle_is(memobj, HANDLE_MEM))
                return CL_INVALID_MEM_OBJECT;
        if (memobj->context != command_queue->context)
                return CL_INVALID_CONTEXT;
        /* "CL_INVALID_VALUE if mapped_ptr is not a valid pointer returned by clEnqueueMapBuffer": core
         * knows. */
        if (!mapped_ptr && device_accepts(command_queue->device, DEVICE_ACCEPTS_UNMAP_NULL))
                return enqueue_nothing(&q);
        return mapped_ptr ? enqueue_unmap(&q, memobj, mapped_ptr) : CL_INVALID_VALUE;
}
