#include "backend/native/quirks.h"

#include <stddef.h>
#include <string.h>

static const struct quirks table[] = {
        { "Portable Computing Language", "", ARG_INFO_ADD, COMPLETION_CALLBACK, REBUILD_AGAIN },
        { "rusticl", "", ARG_INFO_ADD, COMPLETION_CALLBACK, REBUILD_AGAIN },
        /* Seen with the CPU runtime 2026.2.0. */
        { "Intel(R) OpenCL", "", ARG_INFO_ADD, COMPLETION_CALLBACK, REBUILD_STUCK },
        { "AMD Accelerated Parallel Processing", "", ARG_INFO_ADD, COMPLETION_CALLBACK,
          REBUILD_AGAIN },
        /* Driver 580 fails to build kernels without arguments with the option. */
        { "NVIDIA CUDA", "", ARG_INFO_RETRY, COMPLETION_WAIT, REBUILD_AGAIN },
        { "", "", ARG_INFO_RETRY, COMPLETION_CALLBACK, REBUILD_AGAIN },
};

const struct quirks *quirks_find(const char *platform, const char *version)
{
        const struct quirks *q = table;
        while (!strstr(platform, q->platform) || !strstr(version, q->version))
                q++;
        return q;
}
