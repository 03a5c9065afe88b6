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

/* cl_khr_icd 2.0.0: these two slots hold a tag, by which a loader knows that objects carry its own data
 * behind the table. Loaders of either version answer both calls themselves and never call through
 * the slots. */
#if UINTPTR_MAX == UINT64_MAX
#define ICD2_TAG ((void *)(intptr_t)0x4F50454E434C3331)
#else
#define ICD2_TAG ((void *)(intptr_t)0x434C3331)
#endif

/* Slots of other systems' extensions stay empty, because no header declares their functions. */
const struct _cl_icd_dispatch spancl_dispatch = {
#define CORE(major, minor, name)   .name = name,
#define TAGGED(major, minor, name) .name = ICD2_TAG,
#define EXT(extension, name)       .name = name,
#define WINDOWS(extension, name)
#include "api/dispatch.def"
};

const void *const handle_dispatch = &spancl_dispatch;
void *handle_dispatch_data;

static const struct entry {
        const char *name;
        void *address;
} entries[] = {
#define CORE(major, minor, name)   { #name, (void *)name },
#define TAGGED(major, minor, name) { #name, (void *)name },
#define EXT(extension, name)       { #name, (void *)name },
#define WINDOWS(extension, name)
#include "api/dispatch.def"
        /* Without slots. */
        { "clIcdGetPlatformIDsKHR", (void *)clIcdGetPlatformIDsKHR },
        { "clIcdGetFunctionAddressForPlatformKHR", (void *)clIcdGetFunctionAddressForPlatformKHR },
        { "clIcdSetPlatformDispatchDataKHR", (void *)clIcdSetPlatformDispatchDataKHR },
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
