#include "api/dispatch.h"

#include <CL/cl_egl.h>
#include <CL/cl_ext.h>
#include <CL/cl_gl.h>
#include <spancl/availability.h>
#include <spancl/servers.h>
#include <string.h>

#include "base/mem.h"
#include "core/client.h"
#include "core/memory/content_size.h"

/* Slots of other systems' extensions stay empty, because no header declares their functions. */
const struct _cl_icd_dispatch spancl_dispatch = {
#define CORE(major, minor, name) .name = name,
#define EXT(extension, name)     .name = name,
#define WINDOWS(extension, name)
#include "api/dispatch.def"
};

const void *const handle_dispatch = &spancl_dispatch;

static const struct entry {
        const char *name;
        void *address;
} entries[] = {
#define CORE(major, minor, name) { #name, (void *)name },
#define EXT(extension, name)     { #name, (void *)name },
#define WINDOWS(extension, name)
#include "api/dispatch.def"
        /* Without slots. */
        { "clIcdGetPlatformIDsKHR", (void *)clIcdGetPlatformIDsKHR },
        { "clCreateCommandQueueWithPropertiesKHR", (void *)clCreateCommandQueueWithPropertiesKHR },
        { "clCreateProgramWithILKHR", (void *)clCreateProgramWithILKHR },
        { "clGetKernelSuggestedLocalWorkSizeKHR", (void *)clGetKernelSuggestedLocalWorkSizeKHR },
        { "clSetDeviceAvailabilityCallbackSPANCL", (void *)clSetDeviceAvailabilityCallbackSPANCL },
        { "clAddServersSPANCL", (void *)clAddServersSPANCL },
        { "clRemoveServersSPANCL", (void *)clRemoveServersSPANCL },
        { "clGetServersSPANCL", (void *)clGetServersSPANCL },
        { "clSetContentSizeBufferPoCL", (void *)clSetContentSizeBufferPoCL },
};

void *dispatch_find(const char *name)
{
        for (size_t i = 0; name && i < array_size(entries); i++) {
                if (!strcmp(entries[i].name, name))
                        return entries[i].address;
        }
        void *found = name ? command_buffer_find(name) : NULL;
        return found || !name ? found : usm_find(name);
}
