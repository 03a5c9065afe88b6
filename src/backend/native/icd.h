/* Finding the OpenCL implementations of this host, as an ICD loader does but without one, so that no
 * loader has to be installed and none can lead back to SpanCL.
 *
 * Where they are looked for: OCL_ICD_VENDORS, else OPENCL_VENDOR_PATH (a folder of .icd files, one .icd
 * file, or a library), else the usual folders; and OCL_ICD_FILENAMES (libraries, separated by colons)
 * comes first. A library that can't be loaded is logged at level info and left out. SpanCL's own
 * library is recognised by its symbol spancl_icd_version; nothing in it is called.
 *
 * Libraries stay loaded until the process ends: drivers have threads of their own. Reads the
 * environment. */
#ifndef SPANCL_BACKEND_NATIVE_ICD_H
#define SPANCL_BACKEND_NATIVE_ICD_H

#include <CL/cl_icd.h>

#include "base/status.h"

struct icd_platform {
        cl_platform_id id;
        /* The platform's entry points. Those that its OpenCL version does not have are NULL: the table
         * of an older implementation ends before them. Those of OpenCL 1.0 that backend/native
         * needs are there. */
        cl_icd_dispatch api;
        unsigned version; /* major × 100 + minor × 10: 120, 300 */
        char name[128], version_text[128];
};

/* Load those of the libraries whose file name matches one of `patterns` (fnmatch, separated by spaces), and call nothing in
 * them: what loading costs, processes that are forked from this one then share. Returns how many. */
size_t icd_preload(const char *patterns);

/* All platforms; *ret is to be freed with mem_free. SP_E_NOENT: none. SP_E_NOMEM. */
SP_NODISCARD int icd_platforms(struct icd_platform **ret, size_t *ret_count);

#endif
