#include "core/status.h"

cl_int status_to_cl(int status)
{
        switch (status) {
        case SP_OK:
                return CL_SUCCESS;
        case SP_E_NOMEM:
                return CL_OUT_OF_HOST_MEMORY;
        case SP_E_INVAL:
                return CL_INVALID_VALUE;
        case SP_E_UNSUPP:
                return CL_INVALID_OPERATION;
        case SP_E_AGAIN:
        case SP_E_LIMIT:
        case SP_E_BUSY:
                return CL_OUT_OF_RESOURCES;
        case SP_E_NOENT:
        case SP_E_PROTO:
        case SP_E_VERSION:
        case SP_E_AUTH:
        case SP_E_NODEV:
        case SP_E_GONE:
        case SP_E_LINK:
        case SP_E_REFUSED:
        case SP_E_TIMEOUT:
        case SP_E_HOST:
        case SP_E_UNREACH:
                return CL_DEVICE_NOT_AVAILABLE;
        default:
                return status > -10000 ? status : CL_OUT_OF_RESOURCES; /* already a cl_int */
        }
}
