#include "backend/native/quirks.h"

#include <stddef.h>
#include <string.h>

static const struct quirks table[] = {
        { "Portable Computing Language", "", ARG_INFO_ADD, COMPLETION_CALLBACK },
        { "rusticl", "", ARG_INFO_ADD, COMPLETION_CALLBACK },
        { "Intel(R) OpenCL", "", ARG_INFO_ADD, COMPLETION_CALLBACK },
        { "AMD Accelerated Parallel Processing", "", ARG_INFO_ADD, COMPLETION_CALLBACK },
        /* Driver 580 fails to build kernels without arguments with the option. */
        { "NVIDIA CUDA", "", ARG_INFO_RETRY, COMPLETION_WAIT },
        { "", "", ARG_INFO_RETRY, COMPLETION_CALLBACK },
};

const struct quirks *quirks_find(const char *platform, const char *version)
{
        const struct quirks *q = table;
        while (!strstr(platform, q->platform) || !strstr(version, q->version))
                q++;
        return q;
}
