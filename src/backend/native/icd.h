/* Finds the OpenCL implementations of this host, as an ICD loader does but without one. So no
 * loader has to be installed, and none can lead back to SpanCL.
 *
 * The search order is that of the environment. OCL_ICD_FILENAMES (libraries, separated by colons)
 * comes first. Then follows OCL_ICD_VENDORS, else OPENCL_VENDOR_PATH: a folder of .icd files, one
 * .icd file, or a library. Without both, the usual folders follow. A library that can't be loaded
 * is logged at level info and skipped. SpanCL's own library is recognised by its symbol
 * spancl_icd_version; nothing in it is called.
 *
 * Libraries stay loaded until the process ends, because drivers have threads of their own. Reads
 * the environment. */
#ifndef SPANCL_BACKEND_NATIVE_ICD_H
#define SPANCL_BACKEND_NATIVE_ICD_H

#include <CL/cl_icd.h>

#include "base/status.h"

struct icd_platform {
        cl_platform_id id;
        /* The platform's entry points. Functions that its OpenCL version does not have are NULL:
         * the table of an older implementation ends before them. The functions of OpenCL 1.0 that
         * backend/native needs are never NULL. */
        cl_icd_dispatch api;
        unsigned version; /* major × 100 + minor × 10: 120, 300 */
        char name[128], version_text[128];
};

/* Load the libraries whose file name matches one of `patterns` (fnmatch, separated by spaces), and
 * call nothing in them. Processes forked from this one then share the cost of loading. Returns how
 * many were loaded. */
size_t icd_preload(const char *patterns);

/* Find all platforms; *ret is to be freed with mem_free. SP_E_NOENT: none. SP_E_NOMEM. */
SP_NODISCARD int icd_platforms(struct icd_platform **ret, size_t *ret_count);

#endif
