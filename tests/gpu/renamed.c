/* An OpenCL layer that renames every platform to SpanCL's name and vendor. Some programs, hashcat
 * for instance, choose their kernels by the platform's vendor. Natively under this layer they run
 * the kernels that they run over SpanCL. So the cost of SpanCL can be told from the cost of other
 * kernels. Layers: OpenCL-ICD-Loader, "OpenCL Layers Tutorial". */
#include <CL/cl_layer.h>
#include <string.h>

static struct _cl_icd_dispatch layer;
static const struct _cl_icd_dispatch *below;

static cl_int CL_API_CALL platform_info(cl_platform_id platform, cl_platform_info what, size_t size,
                                        void *value, size_t *ret_size)
{
        static const char name[] = "SpanCL";
        if (what != CL_PLATFORM_NAME && what != CL_PLATFORM_VENDOR)
                return below->clGetPlatformInfo(platform, what, size, value, ret_size);
        if (value && size < sizeof(name))
                return CL_INVALID_VALUE;
        if (value)
                memcpy(value, name, sizeof(name));
        if (ret_size)
                *ret_size = sizeof(name);
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, size_t size, void *value,
                                               size_t *ret_size)
{
        const cl_layer_api_version version = CL_LAYER_API_VERSION_100;
        if (what != CL_LAYER_API_VERSION || (value && size < sizeof(version)))
                return CL_INVALID_VALUE;
        if (value)
                memcpy(value, &version, sizeof(version));
        if (ret_size)
                *ret_size = sizeof(version);
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const struct _cl_icd_dispatch *target,
                                            cl_uint *ret_entries,
                                            const struct _cl_icd_dispatch **ret_layer)
{
        if (!target || !ret_layer || !ret_entries || entries < sizeof(layer) / sizeof(void *))
                return CL_INVALID_VALUE;
        below = target;
        layer = *target;
        layer.clGetPlatformInfo = platform_info;
        *ret_layer = &layer;
        *ret_entries = sizeof(layer) / sizeof(void *);
        return CL_SUCCESS;
}
