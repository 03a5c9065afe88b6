#include "core/memory/image.h"

#include "core/command/action.h"
#include "core/command/enqueue.h"
#include "core/command/transfer.h"
#include "core/device.h"
#include "core/link/server.h"
#include "proto/info.h"

/* ---- layout --------------------------------------------------------------------------------- */

static bool is_1d_array(const struct _cl_mem *m)
{
        return m->image.type == CL_MEM_OBJECT_IMAGE1D_ARRAY;
}

static size_t pixel_size(const struct _cl_mem *m)
{
        return image_pixel_size(m->image.order, m->image.data_type);
}

struct host_box image_box(const struct _cl_mem *m, const size_t region[3], size_t row_pitch,
                          size_t slice_pitch, const void *at)
{
        /* The layers of a 1D array are slices for the application and rows for us. */
        if (is_1d_array(m))
                row_pitch = slice_pitch;
        return (struct host_box){ (uint8_t *)(uintptr_t)at,
                                  { region[0] * pixel_size(m), region[1], region[2] },
                                  row_pitch,
                                  slice_pitch };
}

size_t image_offset(const struct _cl_mem *m, const size_t origin[3])
{
        size_t row_pitch = is_1d_array(m) ? m->slice_pitch : m->row_pitch;
        return origin[0] * pixel_size(m) + origin[1] * row_pitch + origin[2] * m->slice_pitch;
}

size_t image_host_size(const struct _cl_mem *m)
{
        size_t last[3];
        image_region(&m->image, last);
        for (int i = 0; i < 3; i++)
                last[i]--;
        return image_offset(m, last) + pixel_size(m);
}

size_t image_store_size(const struct _cl_mem *m)
{
        size_t all[3];
        image_region(&m->image, all);
        return m->slice_pitch ? m->slice_pitch * (is_1d_array(m) ? all[1] : all[2])
                              : m->row_pitch * all[1];
}

bool image_is_covered(const struct _cl_mem *m, const size_t region[3])
{
        size_t all[3];
        image_region(&m->image, all);
        if (region[0] != all[0] || region[1] != all[1] || region[2] != all[2])
                return false;
        return !m->image.row_pitch || m->image.row_pitch == all[0] * pixel_size(m);
}

/* ---- what devices can do -------------------------------------------------------------------- */

static uint64_t device_limit(cl_device_id d, cl_device_info name)
{
        struct bytes v;
        if (!device_info(d, name, &v))
                return 0;
        return v.size == 8 ? bytes_get_u64(v.data) : v.size == 4 ? bytes_get_u32(v.data) : 0;
}

bool device_has_images(cl_device_id d)
{
        return device_limit(d, CL_DEVICE_IMAGE_SUPPORT) != 0;
}

bool device_takes_image_size(cl_device_id d, const struct image_desc *image)
{
        bool is_3d = image->type == CL_MEM_OBJECT_IMAGE3D;
        uint64_t width =
                device_limit(d, is_3d ? CL_DEVICE_IMAGE3D_MAX_WIDTH : CL_DEVICE_IMAGE2D_MAX_WIDTH);
        uint64_t height = device_limit(d, is_3d ? CL_DEVICE_IMAGE3D_MAX_HEIGHT
                                                : CL_DEVICE_IMAGE2D_MAX_HEIGHT);
        if (image->type == CL_MEM_OBJECT_IMAGE1D_BUFFER)
                width = device_limit(d, CL_DEVICE_IMAGE_MAX_BUFFER_SIZE);
        return image->width <= width && image->height <= height &&
               image->depth <= device_limit(d, CL_DEVICE_IMAGE3D_MAX_DEPTH) &&
               image->array_size <= device_limit(d, CL_DEVICE_IMAGE_MAX_ARRAY_SIZE);
}

/* The formats of one device for a type and usage. */
static struct bytes device_formats(cl_device_id d, cl_mem_object_type type, cl_mem_flags flags)
{
        cl_mem_flags access = flags & (CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY);
        if (flags & CL_MEM_KERNEL_READ_AND_WRITE)
                access = CL_MEM_KERNEL_READ_AND_WRITE;
        else if (!access)
                access = CL_MEM_READ_WRITE;
        struct bytes rest = d->info, list;
        struct info_entry e;
        while (info_next(&rest, &e)) {
                if (e.key == INFO_IMAGE_FORMATS &&
                    info_u64(e.value, INFO_IMAGE_FORMATS_TYPE, 0) == type &&
                    info_u64(e.value, INFO_IMAGE_FORMATS_FLAGS, 0) == access &&
                    info_find(e.value, INFO_IMAGE_FORMATS_LIST, &list))
                        return list;
        }
        return (struct bytes){ 0 };
}

static bool list_has(struct bytes list, const cl_image_format *format)
{
        const uint8_t *p = list.data;
        for (size_t i = 0; i + sizeof(*format) <= list.size; i += sizeof(*format))
                if (!memcmp(p + i, format, sizeof(*format)))
                        return true;
        return false;
}

bool device_takes_image_format(cl_device_id d, cl_mem_object_type type, cl_mem_flags flags,
                               const cl_image_format *format)
{
        return list_has(device_formats(d, type, flags), format);
}

int context_image_formats(cl_context x, cl_mem_object_type type, cl_mem_flags flags,
                          struct buf *ret)
{
        for (cl_uint i = 0; i < x->device_count; i++) {
                struct bytes list = device_formats(x->devices[i], type, flags);
                for (size_t at = 0; at + sizeof(cl_image_format) <= list.size;
                     at += sizeof(cl_image_format)) {
                        cl_image_format format;
                        memcpy(&format, (const uint8_t *)list.data + at, sizeof(format));
                        if (list_has(bytes_of(ret->data, ret->size), &format))
                                continue;
                        int r = buf_put(ret, &format, sizeof(format));
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

/* ---- commands ------------------------------------------------------------------------------- */

cl_int enqueue_write_image(const struct enqueue *q, cl_mem mem, const size_t origin[3],
                           const size_t region[3], struct host_box from)
{
        return action_enqueue(q, &(struct action){ .kind = ACTION_IMAGE_WRITE,
                                                   .to = operand_image(mem, origin),
                                                   .covers = image_is_covered(mem, region),
                                                   .region = region,
                                                   .host = from });
}

cl_int enqueue_read_image(const struct enqueue *q, cl_mem mem, const size_t origin[3],
                          const size_t region[3], struct host_box to)
{
        return action_enqueue(q, &(struct action){ .kind = ACTION_IMAGE_READ,
                                                   .from = operand_image(mem, origin),
                                                   .region = region,
                                                   .host = to });
}

cl_int enqueue_copy_image(const struct enqueue *q, cl_mem src, cl_mem dst, const size_t from[3],
                          const size_t to[3], const size_t region[3])
{
        return action_enqueue(q, &(struct action){ .kind = ACTION_IMAGE_COPY,
                                                   .from = operand_image(src, from),
                                                   .to = operand_image(dst, to),
                                                   .covers = image_is_covered(dst, region),
                                                   .region = region });
}

cl_int enqueue_image_to_buffer(const struct enqueue *q, cl_mem src, cl_mem dst,
                               const size_t origin[3], const size_t region[3], size_t offset)
{
        return action_enqueue(
                q, &(struct action){
                           .kind = ACTION_IMAGE_TO_BUFFER,
                           .from = operand_image(src, origin),
                           .to = operand_bytes(dst, offset, image_bytes(&src->image, region)),
                           .covers = true,
                           .region = region });
}

cl_int enqueue_buffer_to_image(const struct enqueue *q, cl_mem src, cl_mem dst, size_t offset,
                               const size_t origin[3], const size_t region[3])
{
        return action_enqueue(
                q, &(struct action){
                           .kind = ACTION_BUFFER_TO_IMAGE,
                           .from = operand_bytes(src, offset, image_bytes(&dst->image, region)),
                           .to = operand_image(dst, origin),
                           .covers = image_is_covered(dst, region),
                           .region = region });
}

cl_int enqueue_fill_image(const struct enqueue *q, cl_mem mem, struct bytes color,
                          const size_t origin[3], const size_t region[3])
{
        return action_enqueue(q, &(struct action){ .kind = ACTION_IMAGE_FILL,
                                                   .to = operand_image(mem, origin),
                                                   .covers = image_is_covered(mem, region),
                                                   .region = region,
                                                   .pattern = color });
}
