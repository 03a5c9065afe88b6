/* The table of entry points that an ICD loader calls through (cl_khr_icd), and entry points by name. */
#ifndef SPANCL_API_DISPATCH_H
#define SPANCL_API_DISPATCH_H

#include <CL/cl.h>
#include <CL/cl_icd.h>

extern const struct _cl_icd_dispatch spancl_dispatch;

/* The entry point called `name`, core or extension; NULL: none. For
 * clGetExtensionFunctionAddress. */
void *dispatch_find(const char *name);

/* The same for those of cl_khr_command_buffer and its layers alone; cl_command_buffer.c. */
void *command_buffer_find(const char *name);
/* And for those of cl_intel_unified_shared_memory; cl_usm.c. */
void *usm_find(const char *name);

/* The handle that the loader knows for the client's platform, and the client behind it: after fork()
 * the loader still has the parent's handle, and it stands for the child's own client then. */
struct client;
cl_platform_id icd_platform(struct client *c);
struct client *icd_client(cl_platform_id platform);

/* Entry points that older headers do not declare. */
CL_API_ENTRY cl_int CL_API_CALL clIcdGetPlatformIDsKHR(cl_uint num_entries,
                                                       cl_platform_id *platforms,
                                                       cl_uint *num_platforms);
CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithILKHR(cl_context context, const void *il,
                                                             size_t length, cl_int *errcode_ret);
/* By its presence a process recognises this library among the ICDs it may load. */
CL_API_ENTRY const char *CL_API_CALL spancl_icd_version(void);

#endif
