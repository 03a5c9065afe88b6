/* The commands that move pixels: reads, writes, fills, copies, maps of images. */
#include <CL/cl.h>

#include "api/check.h"
#include "api/check_image.h"
#include "api/enqueue.h"
#include "api/reply.h"
#include "core/device.h"
#include "core/memory/mapping.h"
#include "core/memory/svm.h"
#include "core/memory/usm.h"

/* "CL_INVALID_MEM_OBJECT if image is not a valid image object."
 * "CL_INVALID_CONTEXT if the context associated with command_queue and image are not the same." */
static cl_int check_image(cl_command_queue q, cl_mem m)
{
        if (!handle_is(m, HANDLE_MEM) || !mem_is_image(m))
                return CL_INVALID_MEM_OBJECT;
        return m->context == q->context ? CL_SUCCESS : CL_INVALID_CONTEXT;
}

/* The same of a buffer; and of the wait list, for commands with both. */
static cl_int check_side(cl_command_queue q, cl_mem m, bool image)
{
        return image ? check_image(q, m) : check_mem(q, m);
}

static bool is_empty(const size_t region[3])
{
        return !region[0] || !region[1] || !region[2];
}

/* "CL_INVALID_VALUE if origin or region is NULL"; "[...] if the region being read or written specified by
 * origin and region is out of bounds"; "[...] if values in origin and region do not follow rules
 * described": what the type does not have is 0 in origin and 1 in region. Native implementations accept a region
 * without columns or rows, of which nothing is moved. */
static cl_int check_pixels(const struct _cl_mem *m, const size_t *origin, const size_t *region)
{
        if (!origin || !region || !region[2])
                return CL_INVALID_VALUE;
        const size_t least[3] = { region[0] ? region[0] : 1, region[1] ? region[1] : 1, region[2] };
        return image_has(&m->image, origin, least) ? CL_SUCCESS : CL_INVALID_VALUE;
}

/* ---- reads and writes ----------------------------------------------------------------------- */

/* "The row_pitch [...] must be greater than or equal to the element size in bytes x width. If row_pitch
 * is set to 0, the appropriate row pitch is calculated."
 * "slice_pitch [...] must be 0 if image is a 1D or 2D image. Otherwise this value must be greater than
 * or equal to row_pitch x height. If slice_pitch is set to 0, the appropriate slice pitch is
 * calculated." Native implementations ignore pitches that are not used. */
static cl_int take_host(const struct _cl_mem *m, const size_t *region, size_t row_pitch,
                        size_t slice_pitch, const void *ptr, struct host_box *ret)
{
        size_t row = region[0] * image_pixel_size(m->image.order, m->image.data_type);
        bool lines = m->image.type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
        size_t rows = lines ? 1 : region[1], slices = lines ? region[1] : region[2], slice;
        /* A single row or slice has no pitch to the next one. */
        if (rows == 1 && slices == 1 && row_pitch < row)
                row_pitch = 0;
        if (row_pitch && row_pitch < row)
                return CL_INVALID_VALUE;
        if (!row_pitch)
                row_pitch = row;
        if (__builtin_mul_overflow(row_pitch, rows, &slice))
                return CL_INVALID_VALUE;
        if (slices == 1)
                slice_pitch = 0;
        if (slice_pitch && slice_pitch < slice)
                return CL_INVALID_VALUE;
        *ret = image_box(m, region, row_pitch, slice_pitch ? slice_pitch : slice, ptr);
        return CL_SUCCESS;
}

/* The application's side of a transfer. */
struct host_side {
        struct host_box box;
        cl_mem mem; /* it lies in this allocation of unified shared memory; NULL: in other memory */
        size_t at;  /* there */
};

/* A copy with an allocation knows no pitches. A device allocation is not the host's; the extension does not
 * say that it may be one. */
static cl_int check_host_side(const struct enqueue *q, struct host_side *side)
{
        const struct host_box *b = &side->box;
        size_t size = (size_t)host_size(b);
        bool tight = (b->region[1] == 1 || b->row_pitch == b->region[0]) &&
                     (b->region[2] == 1 || b->slice_pitch == b->region[0] * b->region[1]);
        cl_int e = check_device_side(q, b->at, size, &side->mem, &side->at);
        if (side->mem && (!tight || side->mem->usm.type == CL_MEM_TYPE_DEVICE_INTEL))
                return CL_INVALID_VALUE;
        return e;
}

static cl_int check_transfer(const struct enqueue *q, cl_mem m, const size_t *origin,
                             const size_t *region, size_t row_pitch, size_t slice_pitch,
                             const void *ptr, bool write, struct host_side *ret)
{
        cl_int e = check_enqueue(q->queue, q->wait_count, q->waits);
        if (e == CL_SUCCESS)
                e = check_image(q->queue, m);
        if (e == CL_SUCCESS)
                e = check_pixels(m, origin, region);
        /* "CL_INVALID_VALUE [...] if ptr is a NULL value." */
        if (e == CL_SUCCESS && !ptr)
                e = CL_INVALID_VALUE;
        if (e == CL_SUCCESS)
                e = take_host(m, region, row_pitch, slice_pitch, ptr, &ret->box);
        if (e == CL_SUCCESS)
                e = check_host_side(q, ret);
        if (e == CL_SUCCESS)
                e = check_image_device(q->queue->device, m);
        if (e == CL_SUCCESS)
                e = check_host_access(m, !write, write);
        return e;
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueReadImage(cl_command_queue command_queue, cl_mem image,
                                                   cl_bool blocking_read, const size_t *origin,
                                                   const size_t *region, size_t row_pitch,
                                                   size_t slice_pitch, void *ptr,
                                                   cl_uint num_events_in_wait_list,
                                                   const cl_event *event_wait_list, cl_event *event)
{
        struct enqueue q = {
                command_queue, CL_COMMAND_READ_IMAGE,    num_events_in_wait_list, event_wait_list,
                event,         blocking_read != CL_FALSE
        };
        struct host_side to;
        cl_int e =
                check_transfer(&q, image, origin, region, row_pitch, slice_pitch, ptr, false, &to);
        if (e == CL_SUCCESS && is_empty(region))
                return enqueue_nothing(&q);
        if (e == CL_SUCCESS && to.mem)
                return enqueue_image_to_buffer(&q, image, to.mem, origin, region, to.at);
        return e != CL_SUCCESS ? e : enqueue_read_image(&q, image, origin, region, to.box);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueWriteImage(
        cl_command_queue command_queue, cl_mem image, cl_bool blocking_write, const size_t *origin,
        const size_t *region, size_t input_row_pitch, size_t input_slice_pitch, const void *ptr,
        cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event)
{
        struct enqueue q = {
                command_queue, CL_COMMAND_WRITE_IMAGE,    num_events_in_wait_list, event_wait_list,
                event,         blocking_write != CL_FALSE
        };
        struct host_side from;
        cl_int e = check_transfer(&q, image, origin, region, input_row_pitch, input_slice_pitch,
                                  ptr, true, &from);
        if (e == CL_SUCCESS && is_empty(region))
                return enqueue_nothing(&q);
        if (e == CL_SUCCESS && from.mem)
                return enqueue_buffer_to_image(&q, from.mem, image, from.at, origin, region);
        return e != CL_SUCCESS ? e : enqueue_write_image(&q, image, origin, region, from.box);
}

/* ---- fills ---------------------------------------------------------------------------------- */

cl_int do_fill_image(const struct enqueue *q, cl_mem image, const void *fill_color,
                     const size_t *origin, const size_t *region)
{
        cl_int e = check_enqueue(q->queue, q->wait_count, q->waits);
        if (e == CL_SUCCESS)
                e = check_image(q->queue, image);
        /* "CL_INVALID_VALUE if fill_color is NULL." */
        if (e == CL_SUCCESS && !fill_color)
                e = CL_INVALID_VALUE;
        if (e == CL_SUCCESS)
                e = check_pixels(image, origin, region);
        if (e == CL_SUCCESS)
                e = check_image_device(q->queue->device, image);
        if (e != CL_SUCCESS)
                return e;
        /* "The fill color is a single floating-point value if the channel order is CL_DEPTH. Otherwise
         * [...] a four component RGBA" value. */
        if (is_empty(region))
                return enqueue_nothing(q);
        uint32_t color[4] = { 0 };
        memcpy(color, fill_color, image->image.order == CL_DEPTH ? 4 : sizeof(color));
        return enqueue_fill_image(q, image, bytes_of(color, sizeof(color)), origin, region);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueFillImage(cl_command_queue command_queue, cl_mem image,
                                                   const void *fill_color, const size_t *origin,
                                                   const size_t *region,
                                                   cl_uint num_events_in_wait_list,
                                                   const cl_event *event_wait_list, cl_event *event)
{
        struct enqueue q = { command_queue,
                             CL_COMMAND_FILL_IMAGE,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        return do_fill_image(&q, image, fill_color, origin, region);
}

/* ---- copies --------------------------------------------------------------------------------- */

static cl_int check_copy(const struct enqueue *q, cl_mem src, bool src_image, cl_mem dst,
                         bool dst_image)
{
        cl_int e = check_enqueue(q->queue, q->wait_count, q->waits);
        if (e == CL_SUCCESS)
                e = check_side(q->queue, src, src_image);
        if (e == CL_SUCCESS)
                e = check_side(q->queue, dst, dst_image);
        return e;
}

static bool regions_overlap(const size_t a[3], const size_t b[3], const size_t region[3])
{
        for (int i = 0; i < 3; i++)
                if (a[i] + region[i] <= b[i] || b[i] + region[i] <= a[i])
                        return false;
        return true;
}

cl_int do_copy_image(const struct enqueue *q, cl_mem src_image, cl_mem dst_image,
                     const size_t *src_origin, const size_t *dst_origin, const size_t *region)
{
        cl_int e = check_copy(q, src_image, true, dst_image, true);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_IMAGE_FORMAT_MISMATCH if src_image and dst_image do not use the same image format." */
        if (src_image->image.order != dst_image->image.order ||
            src_image->image.data_type != dst_image->image.data_type)
                return CL_IMAGE_FORMAT_MISMATCH;
        if (check_pixels(src_image, src_origin, region) ||
            check_pixels(dst_image, dst_origin, region))
                return CL_INVALID_VALUE;
        e = check_image_device(q->queue->device, src_image);
        if (e == CL_SUCCESS)
                e = check_image_device(q->queue->device, dst_image);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_MEM_COPY_OVERLAP if src_image and dst_image are the same image object and the source and
         * destination regions overlap." */
        if (src_image == dst_image && regions_overlap(src_origin, dst_origin, region))
                return CL_MEM_COPY_OVERLAP;
        if (is_empty(region))
                return enqueue_nothing(q);
        return enqueue_copy_image(q, src_image, dst_image, src_origin, dst_origin, region);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyImage(cl_command_queue command_queue, cl_mem src_image,
                                                   cl_mem dst_image, const size_t *src_origin,
                                                   const size_t *dst_origin, const size_t *region,
                                                   cl_uint num_events_in_wait_list,
                                                   const cl_event *event_wait_list, cl_event *event)
{
        struct enqueue q = { command_queue,
                             CL_COMMAND_COPY_IMAGE,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        return do_copy_image(&q, src_image, dst_image, src_origin, dst_origin, region);
}

/* Check the conditions that both directions between an image and a buffer have.
 * "CL_INVALID_MEM_OBJECT if [...] is not a valid image object, [or] buffer object, or if [the image] is a
 * 1D image buffer object created from" the buffer.
 * "CL_INVALID_VALUE if the region specified by offset and offset + size refer to a region outside" the
 * buffer. */
static cl_int check_image_and_buffer(const struct enqueue *q, cl_mem image, cl_mem buffer,
                                     const size_t *origin, const size_t *region, size_t offset)
{
        if (image->image.type == CL_MEM_OBJECT_IMAGE1D_BUFFER && image->parent == buffer)
                return CL_INVALID_MEM_OBJECT;
        cl_int e = check_pixels(image, origin, region);
        if (e == CL_SUCCESS)
                e = check_region(buffer, offset, image_bytes(&image->image, region));
        return e != CL_SUCCESS ? e : check_image_device(q->queue->device, image);
}

cl_int do_copy_image_to_buffer(const struct enqueue *q, cl_mem src_image, cl_mem dst_buffer,
                               const size_t *src_origin, const size_t *region, size_t dst_offset)
{
        cl_int e = check_copy(q, src_image, true, dst_buffer, false);
        if (e == CL_SUCCESS)
                e = check_image_and_buffer(q, src_image, dst_buffer, src_origin, region,
                                           dst_offset);
        if (e != CL_SUCCESS)
                return e;
        if (is_empty(region))
                return enqueue_nothing(q);
        return enqueue_image_to_buffer(q, src_image, dst_buffer, src_origin, region, dst_offset);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyImageToBuffer(
        cl_command_queue command_queue, cl_mem src_image, cl_mem dst_buffer,
        const size_t *src_origin, const size_t *region, size_t dst_offset,
        cl_uint num_events_in_wait_list, const cl_event *event_wait_list, cl_event *event)
{
        struct enqueue q = { command_queue,
                             CL_COMMAND_COPY_IMAGE_TO_BUFFER,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        return do_copy_image_to_buffer(&q, src_image, dst_buffer, src_origin, region, dst_offset);
}

cl_int do_copy_buffer_to_image(const struct enqueue *q, cl_mem src_buffer, cl_mem dst_image,
                               size_t src_offset, const size_t *dst_origin, const size_t *region)
{
        cl_int e = check_copy(q, src_buffer, false, dst_image, true);
        if (e == CL_SUCCESS)
                e = check_image_and_buffer(q, dst_image, src_buffer, dst_origin, region,
                                           src_offset);
        if (e != CL_SUCCESS)
                return e;
        if (is_empty(region))
                return enqueue_nothing(q);
        return enqueue_buffer_to_image(q, src_buffer, dst_image, src_offset, dst_origin, region);
}

CL_API_ENTRY cl_int CL_API_CALL clEnqueueCopyBufferToImage(
        cl_command_queue command_queue, cl_mem src_buffer, cl_mem dst_image, size_t src_offset,
        const size_t *dst_origin, const size_t *region, cl_uint num_events_in_wait_list,
        const cl_event *event_wait_list, cl_event *event)
{
        struct enqueue q = { command_queue,
                             CL_COMMAND_COPY_BUFFER_TO_IMAGE,
                             num_events_in_wait_list,
                             event_wait_list,
                             event,
                             false };
        return do_copy_buffer_to_image(&q, src_buffer, dst_image, src_offset, dst_origin, region);
}

/* ---- maps ----------------------------------------------------------------------------------- */

static cl_int check_map(const struct enqueue *q, cl_mem m, cl_map_flags flags, const size_t *origin,
                        const size_t *region, const size_t *row_pitch, const size_t *slice_pitch)
{
        cl_map_flags writes = CL_MAP_WRITE | CL_MAP_WRITE_INVALIDATE_REGION;
        cl_int e = check_enqueue(q->queue, q->wait_count, q->waits);
        if (e == CL_SUCCESS)
                e = check_image(q->queue, m);
        if (e == CL_SUCCESS)
                e = check_pixels(m, origin, region);
        if (e != CL_SUCCESS)
                return e;
        /* "CL_INVALID_VALUE if image_row_pitch is NULL"; "[...] if image is a 3D image, 1D or 2D image array
         * and image_slice_pitch is NULL." */
        bool told = row_pitch && (!m->slice_pitch || slice_pitch);
        if (is_empty(region) ||
            (!told && !device_accepts(q->queue->device, DEVICE_ACCEPTS_MAP_NO_PITCH)))
                return CL_INVALID_VALUE;
        e = check_image_device(q->queue->device, m);
        return e != CL_SUCCESS ? e : check_host_access(m, flags & CL_MAP_READ, flags & writes);
}

CL_API_ENTRY void *CL_API_CALL clEnqueueMapImage(cl_command_queue command_queue, cl_mem image,
                                                 cl_bool blocking_map, cl_map_flags map_flags,
                                                 const size_t *origin, const size_t *region,
                                                 size_t *image_row_pitch, size_t *image_slice_pitch,
                                                 cl_uint num_events_in_wait_list,
                                                 const cl_event *event_wait_list, cl_event *event,
                                                 cl_int *errcode_ret)
{
        struct enqueue q = {
                command_queue, CL_COMMAND_MAP_IMAGE,    num_events_in_wait_list, event_wait_list,
                event,         blocking_map != CL_FALSE
        };
        void *pointer = NULL;
        map_flags = map_flags_of(map_flags);
        cl_int e =
                check_map(&q, image, map_flags, origin, region, image_row_pitch, image_slice_pitch);
        if (e == CL_SUCCESS)
                e = enqueue_map_image(&q, image, map_flags, origin, region, &pointer);
        if (e == CL_SUCCESS) {
                if (image_row_pitch)
                        *image_row_pitch = image->row_pitch;
                /* "For a 1D, 1D image buffer or 2D image, zero is returned if this argument is not
                 * NULL." */
                if (image_slice_pitch)
                        *image_slice_pitch = image->slice_pitch;
        }
        if (errcode_ret)
                *errcode_ret = e;
        return pointer;
}
