/* Native images and samplers. */
#ifndef SPANCL_BACKEND_NATIVE_IMAGE_H
#define SPANCL_BACKEND_NATIVE_IMAGE_H

#include "backend/native/native.h"

cl_int native_image_create(struct backend *b, unsigned domain, cl_mem_flags flags,
                           const struct image_desc *d, struct backend_buffer *parent,
                           struct backend_buffer **ret);
cl_int native_sampler_create(struct backend *b, unsigned domain, const struct sampler_desc *d,
                             struct backend_sampler **ret);
void native_sampler_release(struct backend_sampler *s);
/* The INFO_IMAGE_FORMATS records of a domain. */
void native_emit_formats(struct emit *e, const struct native_domain *domain);
/* The clEnqueue* of an image operation. */
cl_int native_enqueue_image(struct backend_queue *q, const struct backend_command *c, cl_uint count,
                            const cl_event *deps, cl_event *ret);

#endif
