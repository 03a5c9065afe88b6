/* Images and samplers. Regions of images travel without gaps, so that native pitches are always 0. */
#include "backend/native/image.h"

#include "backend/bounds.h"

/* ---- images --------------------------------------------------------------------------------- */

static cl_mem create_image(const struct native_domain *domain, cl_mem_flags flags,
                           const struct image_desc *d, cl_mem parent, cl_int *err)
{
        const cl_icd_dispatch *api = domain->api;
        const cl_image_format format = { d->order, d->data_type };
        *err = CL_INVALID_OPERATION;
        if (!api->clGetImageInfo || !api->clEnqueueReadImage || !api->clEnqueueWriteImage ||
            !api->clEnqueueCopyImage || !api->clEnqueueCopyImageToBuffer ||
            !api->clEnqueueCopyBufferToImage)
                return NULL;
        if (api->clCreateImage) {
                const cl_image_desc desc = {
                        .image_type = d->type,
                        .image_width = d->width,
                        .image_height = d->height,
                        .image_depth = d->depth,
                        .image_array_size = d->array_size,
                        .image_row_pitch = d->row_pitch,
                        .mem_object = parent,
                };
                return api->clCreateImage(domain->context, flags, &format, &desc, NULL, err);
        }
        /* Before OpenCL 1.2 there are no others, and none in buffers. */
        *err = CL_INVALID_IMAGE_DESCRIPTOR;
        if (parent)
                return NULL;
        if (d->type == CL_MEM_OBJECT_IMAGE2D && api->clCreateImage2D)
                return api->clCreateImage2D(domain->context, flags, &format, d->width, d->height, 0,
                                            NULL, err);
        if (d->type == CL_MEM_OBJECT_IMAGE3D && api->clCreateImage3D)
                return api->clCreateImage3D(domain->context, flags, &format, d->width, d->height,
                                            d->depth, 0, 0, NULL, err);
        return NULL;
}

/* Do we and the implementation agree about the size of a pixel? Host memory is measured by it. */
static bool pixel_agrees(const struct native_domain *domain, cl_mem mem, const struct image_desc *d)
{
        size_t size = 0;
        return domain->api->clGetImageInfo(mem, CL_IMAGE_ELEMENT_SIZE, sizeof(size), &size, NULL) ==
                       CL_SUCCESS &&
               size == image_pixel_size(d->order, d->data_type);
}

static cl_int wrap_image(struct native_domain *domain, cl_mem mem, const struct image_desc *d,
                         cl_int err, struct backend_buffer **ret)
{
        if (!mem)
                return err ? err : CL_OUT_OF_RESOURCES;
        struct backend_buffer *m = NULL;
        cl_int status = CL_IMAGE_FORMAT_NOT_SUPPORTED;
        if (pixel_agrees(domain, mem, d)) {
                m = mem_zalloc(sizeof(*m));
                status = CL_OUT_OF_HOST_MEMORY;
        }
        if (!m) {
                domain->api->clReleaseMemObject(mem);
                return status;
        }
        *m = (struct backend_buffer){ .domain = domain, .mem = mem, .image = *d };
        *ret = m;
        return CL_SUCCESS;
}

cl_int native_image_create(struct backend *b, unsigned domain, cl_mem_flags flags,
                           const struct image_desc *d, struct backend_buffer *parent,
                           struct backend_buffer **ret)
{
        if (domain >= b->domain_count)
                return CL_INVALID_CONTEXT;
        struct native_domain *in = &b->domains[domain];
        if (parent && parent->domain != in)
                return CL_INVALID_MEM_OBJECT;
        struct backend_buffer *made;
        cl_mem_flags access = flags & (CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY);
        cl_int err = CL_SUCCESS;
        op_enter();
        cl_mem mem = create_image(in, access, d, parent ? parent->mem : NULL, &err);
        cl_int r = wrap_image(in, mem, d, err, &made);
        op_leave();
        if (r != CL_SUCCESS)
                return r;
        if (d->type == CL_MEM_OBJECT_IMAGE1D_BUFFER &&
            in->quirks->buffer_images == BUFFER_IMAGES_FAIL)
                made->bytes = parent->mem;
        if (!parent)
                return native_ready(b, made, ret);
        *ret = made;
        return CL_SUCCESS;
}

/* ---- formats -------------------------------------------------------------------------------- */

static void emit_list(struct emit *e, const struct native_domain *domain, cl_mem_object_type type,
                      cl_mem_flags flags)
{
        enum { FORMATS_MAX = 1024 };
        cl_image_format list[FORMATS_MAX];
        cl_uint count = 0, kept = 0;
        if (domain->api->clGetSupportedImageFormats(domain->context, flags, type, FORMATS_MAX, list,
                                                    &count) != CL_SUCCESS)
                return;
        for (cl_uint i = 0; i < count && i < FORMATS_MAX; i++)
                if (image_pixel_size(list[i].image_channel_order, list[i].image_channel_data_type))
                        list[kept++] = list[i];
        if (!kept)
                return;
        size_t mark = emit_begin(e, INFO_IMAGE_FORMATS);
        emit_u64(e, INFO_IMAGE_FORMATS_TYPE, type);
        emit_u64(e, INFO_IMAGE_FORMATS_FLAGS, flags);
        emit_data(e, INFO_IMAGE_FORMATS_LIST, list, kept * sizeof(list[0]));
        emit_end(e, mark);
}

void native_emit_formats(struct emit *e, const struct native_domain *domain)
{
        static const cl_mem_object_type types[] = {
                CL_MEM_OBJECT_IMAGE1D, CL_MEM_OBJECT_IMAGE1D_BUFFER, CL_MEM_OBJECT_IMAGE1D_ARRAY,
                CL_MEM_OBJECT_IMAGE2D, CL_MEM_OBJECT_IMAGE2D_ARRAY,  CL_MEM_OBJECT_IMAGE3D,
        };
        static const cl_mem_flags flags[] = { CL_MEM_READ_WRITE, CL_MEM_WRITE_ONLY,
                                              CL_MEM_READ_ONLY, CL_MEM_KERNEL_READ_AND_WRITE };
        for (size_t i = 0; i < array_size(types); i++)
                for (size_t j = 0; j < array_size(flags); j++)
                        emit_list(e, domain, types[i], flags[j]);
}

/* ---- samplers ------------------------------------------------------------------------------- */

cl_int native_sampler_create(struct backend *b, unsigned domain, const struct sampler_desc *d,
                             struct backend_sampler **ret)
{
        if (domain >= b->domain_count)
                return CL_INVALID_CONTEXT;
        struct native_domain *in = &b->domains[domain];
        const cl_icd_dispatch *api = in->api;
        struct backend_sampler *s = mem_zalloc(sizeof(*s));
        if (!s)
                return CL_OUT_OF_HOST_MEMORY;
        const cl_sampler_properties list[] = { CL_SAMPLER_NORMALIZED_COORDS,
                                               d->normalized,
                                               CL_SAMPLER_ADDRESSING_MODE,
                                               d->addressing,
                                               CL_SAMPLER_FILTER_MODE,
                                               d->filter,
                                               0 };
        cl_int err = CL_INVALID_OPERATION;
        *s = (struct backend_sampler){ .domain = in };
        op_enter();
        if (api->clCreateSamplerWithProperties)
                s->sampler = api->clCreateSamplerWithProperties(in->context, list, &err);
        else if (api->clCreateSampler)
                s->sampler = api->clCreateSampler(in->context, d->normalized, d->addressing,
                                                  d->filter, &err);
        op_leave();
        if (!s->sampler) {
                mem_free(s);
                return err ? err : CL_OUT_OF_RESOURCES;
        }
        *ret = s;
        return CL_SUCCESS;
}

void native_sampler_release(struct backend_sampler *s)
{
        if (!s)
                return;
        op_enter();
        s->domain->api->clReleaseSampler(s->sampler);
        op_leave();
        mem_free(s);
}

/* ---- commands ------------------------------------------------------------------------------- */

/* Which of the two sides of a command has to be an image? */
static cl_int check_sides(const struct backend_queue *q, const struct backend_command *c)
{
        const struct backend_buffer *to = c->buffer, *from = c->source;
        bool to_image = c->op != BACKEND_IMAGE_TO_BUFFER;
        bool from_image = c->op == BACKEND_IMAGE_TO_BUFFER || c->op == BACKEND_COPY_IMAGE;
        bool has_source = from_image || c->op == BACKEND_BUFFER_TO_IMAGE;
        if (!to || !to->image.type == to_image || has_source != (from != NULL) ||
            (from && !from->image.type == from_image))
                return CL_INVALID_MEM_OBJECT;
        if (to->domain != q->domain || (from && from->domain != q->domain))
                return CL_INVALID_CONTEXT;
        return bounds_check_image(c, to_image ? &to->image : NULL, from_image ? &from->image : NULL,
                                  to_image && from ? from->size : to->size);
}

/* One side of a command: an image, or bytes of a buffer. */
struct side {
        cl_mem mem;
        bool image;
        const size_t *origin; /* of an image */
        size_t offset;        /* in a buffer */
};

static size_t pixel_size(const struct image_desc *d)
{
        return image_pixel_size(d->order, d->data_type);
}

static struct side side_of(const struct backend_buffer *b, const size_t *origin, size_t offset)
{
        if (!b)
                return (struct side){ 0 };
        if (b->bytes)
                return (struct side){ b->bytes, false, NULL, origin[0] * pixel_size(&b->image) };
        return (struct side){ b->mem, b->image.type != 0, origin, offset };
}

static cl_int enqueue_between(struct backend_queue *q, struct side from, struct side to,
                              const size_t *region, size_t size, cl_uint count,
                              const cl_event *deps, cl_event *ret)
{
        const cl_icd_dispatch *api = q->domain->api;
        if (from.image && to.image)
                return api->clEnqueueCopyImage(q->queue, from.mem, to.mem, from.origin, to.origin,
                                               region, count, deps, ret);
        if (from.image)
                return api->clEnqueueCopyImageToBuffer(q->queue, from.mem, to.mem, from.origin,
                                                       region, to.offset, count, deps, ret);
        if (to.image)
                return api->clEnqueueCopyBufferToImage(q->queue, from.mem, to.mem, from.offset,
                                                       to.origin, region, count, deps, ret);
        return api->clEnqueueCopyBuffer(q->queue, from.mem, to.mem, from.offset, to.offset, size,
                                        count, deps, ret);
}

/* Pixels of one colour, piece after piece from an image of its own. */
static cl_int fill_bytes(struct backend_queue *q, const struct backend_command *c, struct side to,
                         cl_uint count, const cl_event *deps, cl_event *ret)
{
        enum { PIECE = 4096 };
        const cl_icd_dispatch *api = q->domain->api;
        struct image_desc d = c->buffer->image;
        const size_t zero[3] = { 0, 0, 0 };
        size_t left = c->region[0], region[3] = { left < PIECE ? left : PIECE, 1, 1 };
        cl_event last = NULL;
        cl_int r;
        d.type = CL_MEM_OBJECT_IMAGE1D;
        d.width = region[0];
        cl_mem colour = create_image(q->domain, CL_MEM_READ_WRITE, &d, NULL, &r);
        if (!colour)
                return r ? r : CL_OUT_OF_RESOURCES;
        r = api->clEnqueueFillImage(q->queue, colour, c->pattern, zero, region, count, deps, &last);
        for (; r == CL_SUCCESS && left; left -= region[0]) {
                cl_event next = NULL;
                region[0] = left < PIECE ? left : PIECE;
                r = api->clEnqueueCopyImageToBuffer(q->queue, colour, to.mem, zero, region,
                                                    to.offset, 1, &last, &next);
                api->clReleaseEvent(last);
                last = next;
                to.offset += region[0] * pixel_size(&d);
        }
        api->clReleaseMemObject(colour);
        if (r == CL_SUCCESS)
                *ret = last;
        return r;
}

cl_int native_enqueue_image(struct backend_queue *q, const struct backend_command *c, cl_uint count,
                            const cl_event *deps, cl_event *ret)
{
        const cl_icd_dispatch *api = q->domain->api;
        const size_t *at = c->box.origin, *from = c->source_box.origin;
        cl_int r = check_sides(q, c);
        if (r != CL_SUCCESS)
                return r;
        cl_mem mem = c->buffer->mem;
        struct side to = side_of(c->buffer, at, c->offset_bytes);
        bool of_image = c->buffer->image.type != 0;
        size_t size = image_bytes(of_image ? &c->buffer->image : &c->source->image, c->region);
        switch (c->op) {
        case BACKEND_WRITE_IMAGE:
                if (!to.image)
                        return api->clEnqueueWriteBuffer(q->queue, to.mem, CL_FALSE, to.offset,
                                                         size, c->host, count, deps, ret);
                return api->clEnqueueWriteImage(q->queue, mem, CL_FALSE, at, c->region, 0, 0,
                                                c->host, count, deps, ret);
        case BACKEND_READ_IMAGE:
                if (!to.image)
                        return api->clEnqueueReadBuffer(q->queue, to.mem, CL_FALSE, to.offset, size,
                                                        c->host, count, deps, ret);
                return api->clEnqueueReadImage(q->queue, mem, CL_FALSE, at, c->region, 0, 0,
                                               c->host, count, deps, ret);
        case BACKEND_COPY_IMAGE:
        case BACKEND_IMAGE_TO_BUFFER:
        case BACKEND_BUFFER_TO_IMAGE:
                return enqueue_between(q, side_of(c->source, from, c->source_offset), to, c->region,
                                       size, count, deps, ret);
        case BACKEND_FILL_IMAGE:
                if (!api->clEnqueueFillImage)
                        return CL_INVALID_OPERATION;
                if (!to.image)
                        return fill_bytes(q, c, to, count, deps, ret);
                return api->clEnqueueFillImage(q->queue, mem, c->pattern, at, c->region, count,
                                               deps, ret);
        default:
                return CL_INVALID_OPERATION;
        }
}
