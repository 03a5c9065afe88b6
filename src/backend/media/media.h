/* The media backend: one device (CL_DEVICE_TYPE_CUSTOM) whose built-in kernels decode video and convert
 * pictures. docs/MEDIA.md describes the kernels. The decoders are in a module (codec.h), which is
 * loaded when the backend is opened. Commands run on the executors of the reference backend. */
#ifndef SPANCL_BACKEND_MEDIA_MEDIA_H
#define SPANCL_BACKEND_MEDIA_MEDIA_H

#include "backend/backend.h"

/* As backend_ops.open. SP_E_NODEV: --media is empty or wrong, or the module is not installed; the log
 * has the reason. */
SP_NODISCARD int media_open(const struct backend_params *params, struct backend **ret);

#endif
