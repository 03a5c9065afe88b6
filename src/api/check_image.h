/* Checks of images that several files share. */
#ifndef SPANCL_API_CHECK_IMAGE_H
#define SPANCL_API_CHECK_IMAGE_H

#include "core/memory/image.h"

/* "CL_INVALID_OPERATION if the device associated with command_queue does not support images".
 * "CL_INVALID_IMAGE_SIZE if image dimensions [...] are not supported by device associated with
 * queue".
 * "CL_IMAGE_FORMAT_NOT_SUPPORTED if image format [...] for image is not supported by device
 * associated with queue". */
static inline cl_int check_image_device(cl_device_id d, const struct _cl_mem *m)
{
        cl_image_format format = { m->image.order, m->image.data_type };
        if (!device_has_images(d))
                return CL_INVALID_OPERATION;
        if (!device_takes_image_size(d, &m->image))
                return CL_INVALID_IMAGE_SIZE;
        if (!device_takes_image_format(d, m->image.type, m->flags, &format))
                return CL_IMAGE_FORMAT_NOT_SUPPORTED;
        return CL_SUCCESS;
}

#endif
