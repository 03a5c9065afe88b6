/* Memory of NVIDIA's GPUs with a file descriptor, by CUDA's driver library (cuda.h of CUDA 10.2 and later). The first
 * call loads the library and starts the driver, which takes 0.1 to 0.2 s. One thread. */
#ifndef SPANCL_DAEMON_CUDA_H
#define SPANCL_DAEMON_CUDA_H

#include "backend/backend.h"

/* Make `size` bytes of memory on the device with this UUID. *ret_fd is the memory's descriptor, for the caller to
 * close; it alone keeps the memory. SP_E_UNSUPP: there is no such library, driver or device (for the first two the log
 * says so, once); SP_E_NOMEM: the driver makes none, and the log says why. */
SP_NODISCARD int cuda_export(const uint8_t device[BACKEND_DEVICE_NAME], uint64_t size, int *ret_fd);

#endif
