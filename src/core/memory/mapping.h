/* clEnqueueMapBuffer, clEnqueueMapImage and clEnqueueUnmapMemObject. The mapped bytes lie in the
 * application's own memory (CL_MEM_USE_HOST_PTR) or in a shadow. Mapping reads them from the
 * device, unmapping writes them back. As the other commands of core/command/enqueue.h. */
#ifndef SPANCL_CORE_MAPPING_H
#define SPANCL_CORE_MAPPING_H

#include "core/command/enqueue.h"

/* *ret_pointer is written on success only. */
cl_int enqueue_map(const struct enqueue *q, cl_mem m, cl_map_flags flags, size_t offset,
                   size_t size, void **ret_pointer);
cl_int enqueue_map_image(const struct enqueue *q, cl_mem m, cl_map_flags flags,
                         const size_t origin[3], const size_t region[3], void **ret_pointer);
/* CL_INVALID_VALUE: nothing of m is mapped there. */
cl_int enqueue_unmap(const struct enqueue *q, cl_mem m, void *pointer);

#endif
