#include <CL/cl_ext.h>
#include <stdatomic.h>
#include <stddef.h>

#include "api/dispatch.h"
#include "core/client.h"
#include "core/handle.h"

/* The loader finds the table at the start of every object. The tag of cl_khr_icd 2.0.0 is not offered:
 * Debian 13's loader (ocl-icd 2.3.3) sorts its platforms after it has given each the address of its
 * data, and then calls functions that are not there. */
_Static_assert(offsetof(struct handle, dispatch) == 0, "cl_khr_icd");

/* The platform that the loader was given first. The loader keeps it for good, also across fork(). */
static _Atomic(cl_platform_id) first_platform;

cl_platform_id icd_platform(struct client *c)
{
        cl_platform_id known = atomic_load(&first_platform);
        return known && c == client_get() ? known : client_platform(c);
}

struct client *icd_client(cl_platform_id platform)
{
        return platform == atomic_load(&first_platform) ? client_get() : platform->client;
}

CL_API_ENTRY cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint num_entries,
                                                       cl_platform_id *platforms,
                                                       cl_uint *num_platforms)
{
        /* clGetPlatformIDs: CL_INVALID_VALUE if `platforms` is given with 0 entries, or if both
         * results are NULL. */
        if ((!num_entries && platforms) || (!platforms && !num_platforms))
                return CL_INVALID_VALUE;
        struct client *c = client_get();
        if (!c)
                return CL_OUT_OF_HOST_MEMORY;
        if (!client_has_platform(c)) {
                if (num_platforms)
                        *num_platforms = 0;
                return CL_PLATFORM_NOT_FOUND_KHR;
        }
        cl_platform_id none = NULL;
        atomic_compare_exchange_strong(&first_platform, &none, client_platform(c));
        if (platforms)
                platforms[0] = icd_platform(c);
        if (num_platforms)
                *num_platforms = 1;
        return CL_SUCCESS;
}

CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddress(const char *func_name)
{
        return dispatch_find(func_name);
}

CL_API_ENTRY void *CL_API_CALL clGetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                                                        const char *func_name)
{
        return handle_is(platform, HANDLE_PLATFORM) ? dispatch_find(func_name) : NULL;
}

CL_API_ENTRY const char *CL_API_CALL spancl_icd_version(void)
{
        return SPANCL_VERSION;
}
