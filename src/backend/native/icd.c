#include "backend/native/icd.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/icd.h"
#include "os/pattern.h"
#include "os/process/library.h"

/* The folders where distributions put .icd files. Windows has a loader of its own instead (icd_loader), and macOS one
 * framework, which this file does not search. */
static const char *const folders[] = { "/etc/OpenCL/vendors", "/usr/local/etc/OpenCL/vendors" };

enum { LIBRARIES_MAX = 64, PLATFORMS_MAX = 64, FILES_MAX = 256 };

struct search {
        struct library *libraries[LIBRARIES_MAX];
        size_t library_count;
        struct icd_platform *platforms;
        size_t count;
        bool own; /* our own library was among them */
        const char *
                preload; /* only load libraries that match one of these patterns; NULL: find platforms */
};

/* ---- platforms ------------------------------------------------------------------------------ */

static unsigned parse_version(const char *text)
{
        unsigned major, minor;
        if (sscanf(text, "OpenCL %u.%u", &major, &minor) != 2 || major > 90 || minor > 9)
                return 100;
        return major * 100 + minor * 10;
}

/* How much of the dispatch table an implementation of `version` surely has. */
static size_t table_size(unsigned version)
{
        static const struct {
                unsigned below;
                size_t size;
        } ends[] = {
                { 110, offsetof(cl_icd_dispatch, clSetEventCallback) },
                { 120, offsetof(cl_icd_dispatch, clCreateSubDevices) },
                { 200, offsetof(cl_icd_dispatch, clCreateCommandQueueWithProperties) },
                { 210, offsetof(cl_icd_dispatch, clCloneKernel) },
                { 220, offsetof(cl_icd_dispatch, clSetProgramReleaseCallback) },
                { 300, offsetof(cl_icd_dispatch, clCreateBufferWithProperties) },
        };
        for (size_t i = 0; i < array_size(ends); i++)
                if (version < ends[i].below)
                        return ends[i].size;
        return sizeof(cl_icd_dispatch);
}

/* Are all functions there that are called without a check for NULL? */
static bool complete_enough(const cl_icd_dispatch *d)
{
        return d->clGetDeviceIDs && d->clGetDeviceInfo && d->clCreateContext &&
               d->clReleaseContext &&
               (d->clCreateCommandQueue || d->clCreateCommandQueueWithProperties) &&
               d->clReleaseCommandQueue && d->clCreateBuffer && d->clReleaseMemObject &&
               d->clCreateProgramWithSource && d->clBuildProgram && d->clReleaseProgram &&
               d->clGetProgramInfo && d->clGetProgramBuildInfo && d->clCreateKernel &&
               d->clCreateKernelsInProgram && d->clReleaseKernel && d->clSetKernelArg &&
               d->clGetKernelInfo && d->clGetKernelWorkGroupInfo && d->clWaitForEvents &&
               d->clGetEventInfo && d->clReleaseEvent && d->clGetEventProfilingInfo && d->clFlush &&
               d->clEnqueueReadBuffer && d->clEnqueueWriteBuffer && d->clEnqueueCopyBuffer &&
               d->clEnqueueNDRangeKernel;
}

/* Add a platform with these functions. */
static void add_platform(struct search *s, cl_platform_id id, const cl_icd_dispatch *d,
                         const char *library)
{
        for (size_t i = 0; i < s->count; i++)
                if (s->platforms[i].id == id)
                        return;
        if (s->count == PLATFORMS_MAX)
                return;
        struct icd_platform *p = &s->platforms[s->count];
        *p = (struct icd_platform){ .id = id };
        if (!d || !d->clGetPlatformInfo ||
            d->clGetPlatformInfo(id, CL_PLATFORM_VERSION, sizeof(p->version_text) - 1,
                                 p->version_text, NULL) != CL_SUCCESS) {
                log_info("native", "%s: a platform without dispatch table or version", library);
                return;
        }
        if (d->clGetPlatformInfo(id, CL_PLATFORM_NAME, sizeof(p->name) - 1, p->name, NULL) !=
            CL_SUCCESS)
                snprintf(p->name, sizeof(p->name), "unnamed");
        if (strstr(p->version_text, " SpanCL ")) { /* a loader gives it, too */
                log_debug("native", "%s: platform %s is SpanCL itself", library, p->name);
                return;
        }
        p->version = parse_version(p->version_text);
        memcpy(&p->api, d, table_size(p->version));
        if (!complete_enough(&p->api)) {
                log_info("native", "%s: platform %s lacks functions of OpenCL 1.0", library,
                         p->name);
                return;
        }
        log_debug("native", "%s: platform %s, %s", library, p->name, p->version_text);
        s->count++;
}

/* ---- platforms of the system's loader ------------------------------------------------------- */

/* The functions that backend/native calls. */
static const struct {
        const char *name;
        size_t offset;
} functions[] = {
#define FUNCTION(name)                                 \
        {                                              \
#name, offsetof(cl_icd_dispatch, name) \
        }
        FUNCTION(clGetPlatformIDs),
        FUNCTION(clGetPlatformInfo),
        FUNCTION(clGetDeviceIDs),
        FUNCTION(clGetDeviceInfo),
        FUNCTION(clCreateContext),
        FUNCTION(clReleaseContext),
        FUNCTION(clGetContextInfo),
        FUNCTION(clCreateCommandQueue),
        FUNCTION(clReleaseCommandQueue),
        FUNCTION(clCreateBuffer),
        FUNCTION(clCreateImage2D),
        FUNCTION(clCreateImage3D),
        FUNCTION(clReleaseMemObject),
        FUNCTION(clGetSupportedImageFormats),
        FUNCTION(clGetImageInfo),
        FUNCTION(clCreateSampler),
        FUNCTION(clReleaseSampler),
        FUNCTION(clCreateProgramWithSource),
        FUNCTION(clCreateProgramWithBinary),
        FUNCTION(clReleaseProgram),
        FUNCTION(clBuildProgram),
        FUNCTION(clGetProgramInfo),
        FUNCTION(clGetProgramBuildInfo),
        FUNCTION(clCreateKernel),
        FUNCTION(clCreateKernelsInProgram),
        FUNCTION(clReleaseKernel),
        FUNCTION(clSetKernelArg),
        FUNCTION(clGetKernelInfo),
        FUNCTION(clGetKernelWorkGroupInfo),
        FUNCTION(clWaitForEvents),
        FUNCTION(clGetEventInfo),
        FUNCTION(clReleaseEvent),
        FUNCTION(clGetEventProfilingInfo),
        FUNCTION(clFlush),
        FUNCTION(clFinish),
        FUNCTION(clEnqueueReadBuffer),
        FUNCTION(clEnqueueWriteBuffer),
        FUNCTION(clEnqueueCopyBuffer),
        FUNCTION(clEnqueueReadImage),
        FUNCTION(clEnqueueWriteImage),
        FUNCTION(clEnqueueCopyImage),
        FUNCTION(clEnqueueCopyImageToBuffer),
        FUNCTION(clEnqueueCopyBufferToImage),
        FUNCTION(clEnqueueMapBuffer),
        FUNCTION(clEnqueueUnmapMemObject),
        FUNCTION(clEnqueueNDRangeKernel),
        FUNCTION(clEnqueueMarker),
        FUNCTION(clEnqueueWaitForEvents),
        FUNCTION(clEnqueueBarrier),
        FUNCTION(clGetExtensionFunctionAddress),
        FUNCTION(clSetEventCallback),
        FUNCTION(clCreateSubBuffer),
        FUNCTION(clSetMemObjectDestructorCallback),
        FUNCTION(clEnqueueReadBufferRect),
        FUNCTION(clEnqueueWriteBufferRect),
        FUNCTION(clEnqueueCopyBufferRect),
        FUNCTION(clCreateSubDevices),
        FUNCTION(clReleaseDevice),
        FUNCTION(clCreateImage),
        FUNCTION(clCreateProgramWithBuiltInKernels),
        FUNCTION(clCompileProgram),
        FUNCTION(clLinkProgram),
        FUNCTION(clGetKernelArgInfo),
        FUNCTION(clEnqueueFillBuffer),
        FUNCTION(clEnqueueFillImage),
        FUNCTION(clEnqueueMarkerWithWaitList),
        FUNCTION(clEnqueueBarrierWithWaitList),
        FUNCTION(clGetExtensionFunctionAddressForPlatform),
        FUNCTION(clCreateCommandQueueWithProperties),
        FUNCTION(clCreatePipe),
        FUNCTION(clSVMAlloc),
        FUNCTION(clSVMFree),
        FUNCTION(clEnqueueSVMMemFill),
        FUNCTION(clCreateSamplerWithProperties),
        FUNCTION(clSetKernelArgSVMPointer),
        FUNCTION(clSetKernelExecInfo),
        FUNCTION(clGetKernelSubGroupInfoKHR),
        FUNCTION(clCloneKernel),
        FUNCTION(clCreateProgramWithIL),
        FUNCTION(clGetDeviceAndHostTimer),
        FUNCTION(clGetKernelSubGroupInfo),
        FUNCTION(clSetDefaultDeviceCommandQueue),
        FUNCTION(clSetProgramReleaseCallback),
        FUNCTION(clSetProgramSpecializationConstant),
        FUNCTION(clCreateBufferWithProperties),
#undef FUNCTION
};

/* Add the platforms of a loader, by the functions that it exports. */
static void add_loader(struct search *s, const char *name)
{
        struct library *lib = library_load(name, 0);
        cl_icd_dispatch all = { 0 };
        cl_platform_id ids[PLATFORMS_MAX];
        cl_uint count = 0;
        if (!lib) {
                log_info("native", "cannot load %s: %s", name, library_error());
                return;
        }
        if (s->preload) {
                s->library_count++;
                return;
        }
        for (size_t i = 0; i < array_size(functions); i++) {
                void *symbol = library_symbol(lib, functions[i].name);
                memcpy((char *)&all + functions[i].offset, &symbol, sizeof(symbol));
        }
        cl_int r = all.clGetPlatformIDs ? all.clGetPlatformIDs(PLATFORMS_MAX, ids, &count)
                                        : CL_INVALID_OPERATION;
        if (r != CL_SUCCESS)
                log_info("native", "%s: no platforms (%d)", name, r);
        for (cl_uint i = 0; i < count && i < PLATFORMS_MAX; i++)
                add_platform(s, ids[i], &all, name);
}

/* ---- platforms of one library --------------------------------------------------------------- */

typedef void *(CL_API_CALL *address_fn)(const char *name);

static bool matches(const char *name, const char *patterns)
{
        const char *slash = strrchr(name, '/');
        for (size_t n; *patterns; patterns += n + (patterns[n] == ' ')) {
                char one[256];
                n = strcspn(patterns, " ");
                snprintf(one, sizeof(one), "%.*s", (int)n, patterns);
                if (n && n < sizeof(one) && pattern_matches(one, slash ? slash + 1 : name))
                        return true;
        }
        return false;
}

static void add_library(struct search *s, const char *name)
{
        if (s->preload && !matches(name, s->preload))
                return;
        struct library *lib = library_load(name, 0);
        if (!lib) {
                log_info("native", "cannot load %s: %s", name, library_error());
                return;
        }
        for (size_t i = 0; i < s->library_count; i++)
                if (s->libraries[i] == lib)
                        return;
        if (s->library_count == LIBRARIES_MAX)
                return;
        s->libraries[s->library_count++] = lib;
        if (s->preload)
                return;
        if (library_symbol(lib, "spancl_icd_version")) {
                log_debug("native", "%s is SpanCL itself", name);
                s->own = true;
                return;
        }
        void *symbol = library_symbol(lib, "clGetExtensionFunctionAddress");
        address_fn address;
        memcpy(&address, &symbol, sizeof(address));
        void *found = symbol ? address("clIcdGetPlatformIDsKHR") : NULL;
        if (!found)
                found = library_symbol(lib, "clIcdGetPlatformIDsKHR");
        if (!found) {
                log_info("native", "%s is no OpenCL ICD", name);
                return;
        }
        __typeof__(clGetPlatformIDs) *platform_ids;
        memcpy(&platform_ids, &found, sizeof(platform_ids));
        cl_platform_id ids[PLATFORMS_MAX];
        cl_uint count = 0;
        cl_int r = platform_ids(PLATFORMS_MAX, ids, &count);
        if (r != CL_SUCCESS) {
                log_info("native", "%s: no platforms (%d)", name, r);
                return;
        }
        /* cl_khr_icd: the first member of every object points to the dispatch table. */
        for (cl_uint i = 0; i < count && i < PLATFORMS_MAX; i++)
                add_platform(s, ids[i],
                             ids[i] ? *(const cl_icd_dispatch *const *)(const void *)ids[i] : NULL,
                             name);
}

/* ---- folders, files, lists ------------------------------------------------------------------ */

/* An .icd file's first line names a library. */
static void add_icd_file(struct search *s, const char *path)
{
        FILE *f = fopen(path, "re");
        if (!f) {
                log_info("native", "cannot read %s: %s", path, strerror(errno));
                return;
        }
        char line[4096];
        size_t n = fgets(line, sizeof(line), f) ? strcspn(line, "\r\n") : 0;
        fclose(f);
        while (n && (line[n - 1] == ' ' || line[n - 1] == '\t'))
                n--;
        line[n] = '\0';
        char *name = line + strspn(line, " \t");
        if (*name)
                add_library(s, name);
        else
                log_info("native", "%s names no library", path);
}

static bool has_suffix(const char *s, const char *suffix)
{
        size_t n = strlen(s), m = strlen(suffix);
        return n >= m && !strcmp(s + n - m, suffix);
}

struct names {
        char *all[FILES_MAX];
        size_t count;
};

static void note_name(void *user, const char *name)
{
        struct names *n = user;
        if (has_suffix(name, ".icd") && n->count < FILES_MAX && (n->all[n->count] = strdup(name)))
                n->count++;
}

static int compare(const void *a, const void *b)
{
        return strcoll(*(char *const *)a, *(char *const *)b);
}

static void add_folder(struct search *s, const char *folder)
{
        struct names names = { .count = 0 };
        if (folder_names(folder, note_name, &names) < 0) {
                log_info("native", "cannot read %s: %s", folder, strerror(errno));
                return;
        }
        qsort(names.all, names.count, sizeof(names.all[0]), compare);
        for (size_t i = 0; i < names.count; i++) {
                char path[4096];
                int length = snprintf(path, sizeof(path), "%s/%s", folder, names.all[i]);
                if (length > 0 && (size_t)length < sizeof(path))
                        add_icd_file(s, path);
                free(names.all[i]);
        }
}

/* The value of OCL_ICD_VENDORS. A file name without folder is looked for in the usual ones, too. */
static void add_vendors(struct search *s, const char *path)
{
        if (folder_exists(path)) {
                add_folder(s, path);
                return;
        }
        if (!has_suffix(path, ".icd")) {
                add_library(s, path);
                return;
        }
        char usual[4096];
        if (!strchr(path, '/') && !file_exists(path)) {
                for (size_t i = 0; i < array_size(folders); i++) {
                        int n = snprintf(usual, sizeof(usual), "%s/%s", folders[i], path);
                        if (n > 0 && (size_t)n < sizeof(usual) && file_exists(usual)) {
                                add_icd_file(s, usual);
                                return;
                        }
                }
        }
        add_icd_file(s, path);
}

static void add_list(struct search *s, const char *list)
{
        while (*list) {
                size_t n = strcspn(list, ":");
                char name[4096];
                if (n && n < sizeof(name)) {
                        memcpy(name, list, n);
                        name[n] = '\0';
                        add_library(s, name);
                }
                list += n + (list[n] == ':');
        }
}

static void add_usual(struct search *s)
{
        for (size_t i = 0; i < array_size(folders); i++)
                if (folder_exists(folders[i]))
                        add_folder(s, folders[i]);
}

static const char *env(const char *name)
{
        const char *value = secure_getenv(name);
        return value && *value ? value : NULL;
}

static void search_everywhere(struct search *s)
{
        if (icd_loader()) {
                add_loader(s, icd_loader());
                return;
        }
        const char *libraries = env("OCL_ICD_FILENAMES");
        if (libraries)
                add_list(s, libraries);
        const char *vendors = env("OCL_ICD_VENDORS");
        if (!vendors)
                vendors = env("OPENCL_VENDOR_PATH");
        if (vendors)
                add_vendors(s, vendors);
        /* The environment may point the application at SpanCL alone. SpanCL itself then searches
         * the usual folders. */
        if (!vendors || (!s->count && s->own))
                add_usual(s);
}

size_t icd_preload(const char *patterns)
{
        struct search s = { .preload = patterns };
        search_everywhere(&s);
        return s.library_count;
}

int icd_platforms(struct icd_platform **ret, size_t *ret_count)
{
        struct search s = { .platforms = mem_alloc(PLATFORMS_MAX * sizeof(*s.platforms)) };
        if (!s.platforms)
                return SP_E_NOMEM;
        search_everywhere(&s);
        if (!s.count) {
                mem_free(s.platforms);
                return SP_E_NOENT;
        }
        *ret = s.platforms;
        *ret_count = s.count;
        return 0;
}
