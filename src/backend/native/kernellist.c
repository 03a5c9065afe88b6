#include "backend/native/kernellist.h"

#include "backend/native/program.h"

#include <ctype.h>

#include "base/log.h"
#include "base/mem.h"
#include "proto/info.h"

enum {
        KERNELS_MAX = 1 << 20,
        NAME_SAFE = 256, /* up to this size no implementation is known to fail */
};

/* ---- by name -------------------------------------------------------------------------------- */

/* Kernels by `names`, of `size` bytes, which are separated by semicolons and overwritten. */
static cl_uint kernels_named(struct backend_program *p, char *names, size_t size, cl_kernel **ret)
{
        char *rest = names, *name;
        cl_uint count = 0;
        cl_int err;
        cl_kernel *kernels = mem_zalloc((size + 1) * sizeof(cl_kernel)); /* more than there are */
        while (kernels && (name = strsep(&rest, ";"))) {
                cl_kernel k = *name ? p->domain->api->clCreateKernel(p->program, name, &err) : NULL;
                if (k)
                        kernels[count++] = k;
        }
        *ret = kernels;
        return count;
}

/* Intel's clCreateKernelsInProgram of 2026 wants a program that was built for all of its devices. */
static cl_uint kernels_by_given_names(struct backend_program *p, cl_kernel **ret)
{
        __typeof__(clGetProgramInfo) *ask = p->domain->api->clGetProgramInfo;
        size_t size = 0;
        cl_uint count = 0;
        if (ask(p->program, CL_PROGRAM_KERNEL_NAMES, 0, NULL, &size) != CL_SUCCESS)
                return 0;
        char *names = mem_zalloc(size + 1);
        if (names && ask(p->program, CL_PROGRAM_KERNEL_NAMES, size, names, NULL) == CL_SUCCESS)
                count = kernels_named(p, names, size, ret);
        mem_free(names);
        return count;
}

/* ---- from PTX ------------------------------------------------------------------------------- */

static bool in_name(char c)
{
        return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%';
}

/* PTX ISA, 11.1: ".entry kernel-name", perhaps behind a linking directive. */
bool kernellist_next_entry(struct bytes *text, struct bytes *ret)
{
        static const char word[] = ".entry";
        enum { WORD = sizeof(word) - 1 };
        const char *p = text->data, *end = p + text->size;
        while (p && (p = memmem(p, (size_t)(end - p), word, WORD))) {
                const char *name = p += WORD;
                while (name < end && isspace((unsigned char)*name))
                        name++;
                const char *behind = name;
                while (behind < end && in_name(*behind))
                        behind++;
                if (name == p || behind == name)
                        continue;
                *ret = bytes_of(name, (size_t)(behind - name));
                *text = bytes_of(behind, (size_t)(end - behind));
                return true;
        }
        return false;
}

/* If it has a kernel with a long name, and is in PTX. False: it has none, or that can't be seen. */
static bool has_long_names(struct backend_program *p, unsigned device, struct buf *names)
{
        struct buf part = { 0 };
        struct bytes text = { 0 }, name;
        bool is_long = false;
        int r = 0;
        if (native_program_binary(p, device, &part) == CL_SUCCESS)
                (void)info_find(bytes_of(part.data, part.size), INFO_PART, &text);
        while (!r && kernellist_next_entry(&text, &name)) {
                is_long |= name.size > NAME_SAFE;
                r = buf_put(names, name.data, name.size);
                if (!r)
                        r = buf_put(names, ";", 1);
        }
        if (!r)
                r = buf_put(names, "", 1);
        buf_fini(&part);
        return is_long && !r;
}

/* ---- all ------------------------------------------------------------------------------------ */

cl_uint kernellist_new(struct backend_program *p, unsigned device, cl_kernel **ret)
{
        const cl_icd_dispatch *api = p->domain->api;
        struct buf names = { 0 };
        cl_uint count = 0;
        *ret = NULL;
        if (p->domain->quirks->kernel_names == KERNEL_NAMES_OVERRUN &&
            has_long_names(p, device, &names))
                count = kernels_named(p, (char *)names.data, names.size, ret);
        buf_fini(&names);
        if (count)
                return count;
        cl_int r = api->clCreateKernelsInProgram(p->program, 0, NULL, &count);
        if (r == CL_INVALID_PROGRAM_EXECUTABLE)
                return kernels_by_given_names(p, ret);
        if (r != CL_SUCCESS || !count || count > KERNELS_MAX) {
                log_debug("native", "a program without kernels (%d)", r);
                return 0;
        }
        *ret = mem_zalloc(count * sizeof(cl_kernel));
        if (!*ret || api->clCreateKernelsInProgram(p->program, count, *ret, NULL) != CL_SUCCESS)
                return 0;
        return count;
}
