#include "backend/native/quirks.h"

#include <stddef.h>
#include <string.h>

#include "proto/info.h"

static const struct quirks table[] = {
        /* 3.1: threads still look at the device of an event that nobody has any more; a link that is
         * made twice at the same time fails once, and a build meanwhile gives no kernels; commands on 1D images
         * of buffers end the process. */
        { "Portable Computing Language", "", ARG_INFO_ADD, COMPLETION_CALLBACK, REBUILD_SAME,
          SUB_DEVICES_STAY, DISK_CACHE_RACES, BUFFER_IMAGES_FAIL, .binary = BINARY_COMPILES,
          .marker = MARKER_SEARCHES,
          .accepts = DEVICE_ACCEPTS_VECTOR_ARG_SHORT | DEVICE_ACCEPTS_IMAGE_PITCH_UNUSED |
                     DEVICE_ACCEPTS_IMAGE_PARENT_FLAGS },
        /* Commands of 22.3 on 1D images of buffers move wrong bytes. */
        { "rusticl", "", ARG_INFO_ADD, COMPLETION_CALLBACK, REBUILD_SAME, SUB_DEVICES_GO,
          DISK_CACHE_SAFE, BUFFER_IMAGES_FAIL },
        /* The CPU runtime 2026.2.0 cannot build a program whose build failed, nor compile one that was
         * built, compiled and linked. A thread that ends a command while its queue is released, even behind a
         * clFinish, waits for itself. */
        { "Intel(R) OpenCL", "", ARG_INFO_ADD, COMPLETION_CALLBACK, REBUILD_ANEW,
          .queues = QUEUES_STAY,
          .accepts = DEVICE_ACCEPTS_LOCAL_ARG_EMPTY | DEVICE_ACCEPTS_MARKER_NO_EVENT |
                     DEVICE_ACCEPTS_IMAGE_SLICE_ODD | DEVICE_ACCEPTS_IMAGE_HOST_UNUSED },
        { "AMD Accelerated Parallel Processing", "", ARG_INFO_ADD, COMPLETION_CALLBACK,
          REBUILD_SAME },
        /* Driver 580 fails to build kernels without arguments with the option, and to link them when their objects
         * were compiled with it. It compiles to PTX. Between GPUs of one context it moves 1.6 GB/s. */
        { "NVIDIA CUDA", "", ARG_INFO_RETRY, COMPLETION_WAIT, REBUILD_SAME,
          .failure = FAILURE_STAYS, .kernel_names = KERNEL_NAMES_OVERRUN,
          .contexts = CONTEXTS_DEVICE, .given_memory = GIVEN_MEMORY_PINNED,
          .shared_memory = SHARED_MEMORY_CUDA,
          .accepts = DEVICE_ACCEPTS_BUFFER_SIZE | DEVICE_ACCEPTS_SUB_BUFFER_ORIGIN |
                     DEVICE_ACCEPTS_LOCAL_ARG_EMPTY | DEVICE_ACCEPTS_NULL_ARG_SIZE |
                     DEVICE_ACCEPTS_RECT_EMPTY | DEVICE_ACCEPTS_UNMAP_NULL |
                     DEVICE_ACCEPTS_IMAGE_PITCH_UNUSED | DEVICE_ACCEPTS_IMAGE_ROW_ODD |
                     DEVICE_ACCEPTS_IMAGE_SLICE_ODD | DEVICE_ACCEPTS_IMAGE_PARENT_FLAGS |
                     DEVICE_ACCEPTS_MAP_NO_PITCH | DEVICE_ACCEPTS_SVM_PAGES },
        /* 21.10 runs kernels inside clFlush, and inside blocking transfers. */
        { "Oclgrind", "", ARG_INFO_RETRY, COMPLETION_CALLBACK, REBUILD_SAME, .calls = CALLS_BLOCK },
        { "", "", ARG_INFO_RETRY, COMPLETION_CALLBACK, REBUILD_SAME },
};

const struct quirks *quirks_find(const char *platform, const char *version)
{
        const struct quirks *q = table;
        while (!strstr(platform, q->platform) || !strstr(version, q->version))
                q++;
        return q;
}
