/* A native implementation with the habits of NVIDIA's driver 580, over the one of this host's
 * pocl.icd. So the server's answers to these habits are tested without a GPU. The habits:
 *
 * - A buffer or image takes memory when a command first uses it. A transfer that finds none left
 *   fails; a kernel or a fill breaks the context.
 * - In a broken context every command fails, and a build ends the process.
 * - CL_KERNEL_WORK_GROUP_SIZE is 256, but larger groups run, up to the device's limit of 1024. A
 *   kernel whose name begins with `heavy` needs so many registers that 512 are refused when the
 *   launch is submitted.
 * - A query of the binaries, or their sizes, of a program whose last build failed ends the process.
 *   This habit is PoCL's.
 * - Objects that were compiled with -cl-kernel-arg-info do not link.
 * - It accepts buffers beyond CL_DEVICE_MAX_MEM_ALLOC_SIZE, a quarter of the device's memory, and
 *   even beyond all memory. It accepts sub-buffers at any byte, and local arguments without size.
 *
 * A kernel whose name begins with `wild` breaks the context, as one does that writes to wild
 * addresses.
 *
 * While there is a file of the name BRITTLE_HANG, the devices do not answer: not even their names
 * can be queried.
 *
 * While there is a file PATH.NUMBER.HOW, PATH being BRITTLE_SICK, the device of that number is
 * out of order. Its kernels and transfers do not return (HOW is `hang`), fail (`fail`) or end the
 * process (`crash`), or its fills do nothing (`lie`).
 *
 * BRITTLE_NAME: the platform's name, if the server shall know it for another driver's.
 *
 * BRITTLE_MIB: the device's memory. One thread at a time is in a function that counts (`lock`). */
#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
        GROUP_TOLD = 256,
        GROUP_MAX = 1024,
        GROUP_HEAVY = 512,
        MEMS = 8192,
        KERNELS = 1024,
        PROGRAMS = 256,
        ARGS = 16
};

/* cl_khr_icd: the dispatch table comes first. */
struct platform {
        const cl_icd_dispatch *dispatch;
        cl_platform_id base;
};

struct memory {
        cl_mem mem;
        size_t size;
        bool committed;
        int references;
};

struct kernel {
        cl_kernel kernel;
        cl_mem args[ARGS];
};

static cl_icd_dispatch base, table;
static struct platform platform = { &table, NULL };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct memory mems[MEMS];
static struct kernel kernels[KERNELS];
static cl_program failed[PROGRAMS]; /* the last build of each failed */
static size_t used, limit;
static bool broken;

/* ---- memory --------------------------------------------------------------------------------- */

static void remember(cl_mem mem, size_t size)
{
        pthread_mutex_lock(&lock);
        for (size_t i = 0; mem && i < MEMS; i++) {
                if (!mems[i].mem) {
                        mems[i] = (struct memory){ mem, size, false, 1 };
                        break;
                }
        }
        pthread_mutex_unlock(&lock);
}

/* The memory is there now; false: there is not so much left. Others than ours are in the host's memory. */
static bool commit(cl_mem mem)
{
        bool there = true;
        pthread_mutex_lock(&lock);
        for (size_t i = 0; i < MEMS; i++) {
                struct memory *m = &mems[i];
                if (m->mem != mem || m->committed)
                        continue;
                there = m->size <= limit - used;
                m->committed = there;
                used += there ? m->size : 0;
                break;
        }
        pthread_mutex_unlock(&lock);
        return there;
}

static cl_mem CL_API_CALL create_buffer(cl_context x, cl_mem_flags flags, size_t size, void *host,
                                        cl_int *err)
{
        /* No transfer finds so much memory, so that no byte of it is used. */
        cl_mem m = base.clCreateBuffer(x, flags, size > limit && !host ? 1 : size, host, err);
        if (!(flags & (CL_MEM_ALLOC_HOST_PTR | CL_MEM_USE_HOST_PTR)))
                remember(m, size);
        return m;
}

/* The address of the buffer on PoCL's CPU devices. */
static uint8_t *place_of(cl_context x, cl_mem mem, size_t size)
{
        cl_device_id device = NULL;
        cl_int err;
        void *at = NULL;
        base.clGetContextInfo(x, CL_CONTEXT_DEVICES, sizeof(device), &device, NULL);
        cl_command_queue q = base.clCreateCommandQueue(x, device, 0, &err);
        if (q)
                at = base.clEnqueueMapBuffer(q, mem, CL_TRUE, CL_MAP_READ, 0, size, 0, NULL, NULL,
                                             &err);
        if (at)
                base.clEnqueueUnmapMemObject(q, mem, at, 0, NULL, NULL);
        if (q) {
                base.clFinish(q);
                base.clReleaseCommandQueue(q);
        }
        return at;
}

/* A sub-buffer that PoCL refuses because of its offset is a buffer over the same bytes; the server keeps the parent. */
static cl_mem CL_API_CALL create_sub_buffer(cl_mem parent, cl_mem_flags flags,
                                            cl_buffer_create_type type, const void *info,
                                            cl_int *err)
{
        const cl_buffer_region *r = info;
        cl_context x = NULL;
        size_t size = 0;
        cl_mem m = base.clCreateSubBuffer(parent, flags, type, info, err);
        if (m || *err != CL_MISALIGNED_SUB_BUFFER_OFFSET)
                return m;
        base.clGetMemObjectInfo(parent, CL_MEM_CONTEXT, sizeof(x), &x, NULL);
        base.clGetMemObjectInfo(parent, CL_MEM_SIZE, sizeof(size), &size, NULL);
        uint8_t *at = place_of(x, parent, size);
        return at ? base.clCreateBuffer(x, flags | CL_MEM_USE_HOST_PTR, r->size, at + r->origin,
                                        err)
                  : NULL;
}

static cl_mem CL_API_CALL create_image(cl_context x, cl_mem_flags flags, const cl_image_format *f,
                                       const cl_image_desc *d, void *host, cl_int *err)
{
        cl_mem m = base.clCreateImage(x, flags, f, d, host, err);
        size_t size = 0;
        if (m && !d->mem_object &&
            base.clGetMemObjectInfo(m, CL_MEM_SIZE, sizeof(size), &size, NULL) == CL_SUCCESS)
                remember(m, size);
        return m;
}

/* Only references of the program count: those of commands that are about to end are PoCL's. */
static void refer(cl_mem mem, int more)
{
        pthread_mutex_lock(&lock);
        for (size_t i = 0; i < MEMS; i++) {
                if (mems[i].mem != mem)
                        continue;
                mems[i].references += more;
                if (mems[i].references > 0)
                        continue;
                used -= mems[i].committed ? mems[i].size : 0;
                mems[i] = (struct memory){ 0 };
        }
        pthread_mutex_unlock(&lock);
}

static cl_int CL_API_CALL retain_mem(cl_mem mem)
{
        refer(mem, 1);
        return base.clRetainMemObject(mem);
}

static cl_int CL_API_CALL release_mem(cl_mem mem)
{
        refer(mem, -1);
        return base.clReleaseMemObject(mem);
}

/* ---- commands ------------------------------------------------------------------------------- */

static bool is_broken(void)
{
        pthread_mutex_lock(&lock);
        bool is = broken;
        pthread_mutex_unlock(&lock);
        return is;
}

/* The command is accepted, and fails with `status` while it runs. */
static cl_int break_context(cl_command_queue q, cl_int status, cl_event *ret)
{
        cl_context x = NULL;
        cl_int err;
        pthread_mutex_lock(&lock);
        broken = true;
        pthread_mutex_unlock(&lock);
        base.clGetCommandQueueInfo(q, CL_QUEUE_CONTEXT, sizeof(x), &x, NULL);
        cl_event e = base.clCreateUserEvent(x, &err);
        if (!e)
                return err;
        base.clSetUserEventStatus(e, status);
        if (ret)
                *ret = e;
        else
                base.clReleaseEvent(e);
        return CL_SUCCESS;
}

/* Is the queue's device out of order in this way? */
static bool is_sick(cl_command_queue q, const char *how)
{
        enum { DEVICES = 16 };
        const char *path = getenv("BRITTLE_SICK");
        cl_device_id own = NULL, all[DEVICES];
        cl_uint n = 0;
        char file[4096];
        if (!path ||
            base.clGetCommandQueueInfo(q, CL_QUEUE_DEVICE, sizeof(own), &own, NULL) != CL_SUCCESS)
                return false;
        base.clGetDeviceIDs(platform.base, CL_DEVICE_TYPE_ALL, DEVICES, all, &n);
        for (cl_uint i = 0; i < n && i < DEVICES; i++) {
                snprintf(file, sizeof(file), "%s.%u.%s", path, i, how);
                if (all[i] == own)
                        return !access(file, F_OK);
        }
        return false;
}

static cl_int suffer(cl_command_queue q)
{
        while (is_sick(q, "hang"))
                usleep(10000);
        if (is_sick(q, "crash"))
                _exit(70); /* abort(3) differs for the first process of a namespace, and with sanitizers */
        return is_sick(q, "fail") ? CL_OUT_OF_RESOURCES : CL_SUCCESS;
}

/* Return the error of a transfer of `mem` before it is done. */
static cl_int transfer(cl_command_queue q, cl_mem mem)
{
        return suffer(q)     ? CL_OUT_OF_RESOURCES
               : is_broken() ? CL_OUT_OF_RESOURCES
               : commit(mem) ? CL_SUCCESS
                             : CL_MEM_OBJECT_ALLOCATION_FAILURE;
}

static cl_int CL_API_CALL read_buffer(cl_command_queue q, cl_mem m, cl_bool block, size_t offset,
                                      size_t size, void *to, cl_uint n, const cl_event *waits,
                                      cl_event *ret)
{
        cl_int r = transfer(q, m);
        return r ? r : base.clEnqueueReadBuffer(q, m, block, offset, size, to, n, waits, ret);
}

static cl_int CL_API_CALL write_buffer(cl_command_queue q, cl_mem m, cl_bool block, size_t offset,
                                       size_t size, const void *from, cl_uint n,
                                       const cl_event *waits, cl_event *ret)
{
        cl_int r = transfer(q, m);
        return r ? r : base.clEnqueueWriteBuffer(q, m, block, offset, size, from, n, waits, ret);
}

static cl_int CL_API_CALL copy_buffer(cl_command_queue q, cl_mem from, cl_mem to, size_t at,
                                      size_t offset, size_t size, cl_uint n, const cl_event *waits,
                                      cl_event *ret)
{
        cl_int r = transfer(q, from);
        if (!r)
                r = transfer(q, to);
        return r ? r : base.clEnqueueCopyBuffer(q, from, to, at, offset, size, n, waits, ret);
}

static cl_int CL_API_CALL read_image(cl_command_queue q, cl_mem m, cl_bool block,
                                     const size_t *origin, const size_t *region, size_t row,
                                     size_t slice, void *to, cl_uint n, const cl_event *waits,
                                     cl_event *ret)
{
        cl_int r = transfer(q, m);
        return r ? r
                 : base.clEnqueueReadImage(q, m, block, origin, region, row, slice, to, n, waits,
                                           ret);
}

static cl_int CL_API_CALL write_image(cl_command_queue q, cl_mem m, cl_bool block,
                                      const size_t *origin, const size_t *region, size_t row,
                                      size_t slice, const void *from, cl_uint n,
                                      const cl_event *waits, cl_event *ret)
{
        cl_int r = transfer(q, m);
        return r ? r
                 : base.clEnqueueWriteImage(q, m, block, origin, region, row, slice, from, n, waits,
                                            ret);
}

static cl_int CL_API_CALL fill_buffer(cl_command_queue q, cl_mem m, const void *pattern,
                                      size_t pattern_size, size_t offset, size_t size, cl_uint n,
                                      const cl_event *waits, cl_event *ret)
{
        if (suffer(q) || is_broken())
                return CL_OUT_OF_RESOURCES;
        if (!commit(m))
                return break_context(q, CL_MEM_OBJECT_ALLOCATION_FAILURE, ret);
        if (is_sick(q, "lie"))
                return base.clEnqueueMarkerWithWaitList(q, n, waits, ret);
        return base.clEnqueueFillBuffer(q, m, pattern, pattern_size, offset, size, n, waits, ret);
}

static cl_int CL_API_CALL fill_image(cl_command_queue q, cl_mem m, const void *color,
                                     const size_t *origin, const size_t *region, cl_uint n,
                                     const cl_event *waits, cl_event *ret)
{
        if (is_broken())
                return CL_OUT_OF_RESOURCES;
        if (!commit(m))
                return break_context(q, CL_MEM_OBJECT_ALLOCATION_FAILURE, ret);
        return base.clEnqueueFillImage(q, m, color, origin, region, n, waits, ret);
}

static cl_int CL_API_CALL finish(cl_command_queue q)
{
        cl_int r = base.clFinish(q);
        return is_broken() ? CL_OUT_OF_RESOURCES : r;
}

/* ---- kernels -------------------------------------------------------------------------------- */

static struct kernel *find_kernel(cl_kernel k)
{
        struct kernel *free_one = NULL;
        for (size_t i = 0; i < KERNELS; i++) {
                if (kernels[i].kernel == k)
                        return &kernels[i];
                if (!kernels[i].kernel && !free_one)
                        free_one = &kernels[i];
        }
        if (free_one)
                *free_one = (struct kernel){ .kernel = k };
        return free_one;
}

static cl_int CL_API_CALL set_arg(cl_kernel k, cl_uint index, size_t size, const void *value)
{
        cl_int r = base.clSetKernelArg(k, index, size, value);
        if (r == CL_INVALID_ARG_SIZE && !size && !value)
                r = base.clSetKernelArg(k, index, 1, NULL);
        if (r != CL_SUCCESS || index >= ARGS)
                return r;
        pthread_mutex_lock(&lock);
        struct kernel *found = find_kernel(k);
        if (found) {
                found->args[index] = NULL;
                if (value && size == sizeof(cl_mem))
                        memcpy(&found->args[index], value, sizeof(cl_mem));
        }
        pthread_mutex_unlock(&lock);
        return r;
}

static cl_int CL_API_CALL release_kernel(cl_kernel k)
{
        cl_uint refs = 0;
        pthread_mutex_lock(&lock);
        base.clGetKernelInfo(k, CL_KERNEL_REFERENCE_COUNT, sizeof(refs), &refs, NULL);
        if (refs == 1)
                *find_kernel(k) = (struct kernel){ 0 };
        pthread_mutex_unlock(&lock);
        return base.clReleaseKernel(k);
}

static bool commit_args(cl_kernel k)
{
        cl_mem args[ARGS] = { 0 };
        bool all = true;
        pthread_mutex_lock(&lock);
        const struct kernel *found = find_kernel(k);
        if (found)
                memcpy(args, found->args, sizeof(args));
        pthread_mutex_unlock(&lock);
        for (size_t i = 0; i < ARGS; i++)
                all = all && (!args[i] || commit(args[i]));
        return all;
}

static cl_int CL_API_CALL launch(cl_command_queue q, cl_kernel k, cl_uint dims,
                                 const size_t *offset, const size_t *global, const size_t *local,
                                 cl_uint n, const cl_event *waits, cl_event *ret)
{
        char name[64] = "";
        size_t group = 1;
        base.clGetKernelInfo(k, CL_KERNEL_FUNCTION_NAME, sizeof(name), name, NULL);
        for (cl_uint i = 0; local && i < dims; i++)
                group *= local[i];
        if (suffer(q) || is_broken())
                return CL_OUT_OF_RESOURCES;
        if (group > GROUP_MAX)
                return CL_INVALID_WORK_GROUP_SIZE;
        if (group >= GROUP_HEAVY && !strncmp(name, "heavy", 5))
                return CL_OUT_OF_RESOURCES;
        if (!commit_args(k))
                return break_context(q, CL_MEM_OBJECT_ALLOCATION_FAILURE, ret);
        if (!strncmp(name, "wild", 4))
                return break_context(q, CL_OUT_OF_RESOURCES, ret);
        return base.clEnqueueNDRangeKernel(q, k, dims, offset, global, local, n, waits, ret);
}

static cl_int CL_API_CALL group_info(cl_kernel k, cl_device_id d, cl_kernel_work_group_info name,
                                     size_t size, void *value, size_t *ret_size)
{
        const size_t told = GROUP_TOLD;
        if (name != CL_KERNEL_WORK_GROUP_SIZE)
                return base.clGetKernelWorkGroupInfo(k, d, name, size, value, ret_size);
        if (ret_size)
                *ret_size = sizeof(told);
        if (value && size < sizeof(told))
                return CL_INVALID_VALUE;
        if (value)
                memcpy(value, &told, sizeof(told));
        return CL_SUCCESS;
}

/* ---- programs ------------------------------------------------------------------------------- */

/* Its place in `failed`; NULL finds a free one. */
static cl_program *failure_of(cl_program p)
{
        for (size_t i = 0; i < PROGRAMS; i++)
                if (failed[i] == p)
                        return &failed[i];
        return NULL;
}

static bool has_failed(cl_program p)
{
        pthread_mutex_lock(&lock);
        bool has = failure_of(p);
        pthread_mutex_unlock(&lock);
        return has;
}

static void note_build(cl_program p, cl_int status)
{
        pthread_mutex_lock(&lock);
        cl_program *at = failure_of(p);
        if (!at && status != CL_SUCCESS)
                at = failure_of(NULL);
        if (at)
                *at = status == CL_SUCCESS ? NULL : p;
        pthread_mutex_unlock(&lock);
}

static cl_int CL_API_CALL build(cl_program p, cl_uint n, const cl_device_id *devices,
                                const char *options, void(CL_CALLBACK *done)(cl_program, void *),
                                void *user)
{
        if (is_broken())
                abort();
        cl_int r = base.clBuildProgram(p, n, devices, options, done, user);
        note_build(p, r);
        return r;
}

static cl_int CL_API_CALL compile(cl_program p, cl_uint n, const cl_device_id *devices,
                                  const char *options, cl_uint count, const cl_program *headers,
                                  const char **names, void(CL_CALLBACK *done)(cl_program, void *),
                                  void *user)
{
        cl_int r = base.clCompileProgram(p, n, devices, options, count, headers, names, done, user);
        note_build(p, r);
        return r;
}

static cl_int CL_API_CALL program_info(cl_program p, cl_program_info name, size_t size, void *value,
                                       size_t *ret_size)
{
        if ((name == CL_PROGRAM_BINARIES || name == CL_PROGRAM_BINARY_SIZES) && has_failed(p))
                _exit(70);
        return base.clGetProgramInfo(p, name, size, value, ret_size);
}

/* A later program may have its address. */
static cl_int CL_API_CALL release_program(cl_program p)
{
        cl_uint refs = 0;
        if (base.clGetProgramInfo(p, CL_PROGRAM_REFERENCE_COUNT, sizeof(refs), &refs, NULL) ==
                    CL_SUCCESS &&
            refs == 1)
                note_build(p, CL_SUCCESS);
        return base.clReleaseProgram(p);
}

static cl_program CL_API_CALL link_program(cl_context x, cl_uint n, const cl_device_id *devices,
                                           const char *options, cl_uint count,
                                           const cl_program *inputs,
                                           void(CL_CALLBACK *done)(cl_program, void *), void *user,
                                           cl_int *err)
{
        for (cl_uint i = 0; i < count; i++) {
                char text[4096] = "";
                base.clGetProgramBuildInfo(inputs[i], devices[0], CL_PROGRAM_BUILD_OPTIONS,
                                           sizeof(text), text, NULL);
                if (strstr(text, "-cl-kernel-arg-info")) {
                        *err = CL_LINK_PROGRAM_FAILURE;
                        return NULL;
                }
        }
        return base.clLinkProgram(x, n, devices, options, count, inputs, done, user, err);
}

/* ---- the platform --------------------------------------------------------------------------- */

static cl_int answer(const void *from, size_t from_size, size_t size, void *value, size_t *ret_size)
{
        if (ret_size)
                *ret_size = from_size;
        if (value && size < from_size)
                return CL_INVALID_VALUE;
        if (value)
                memcpy(value, from, from_size);
        return CL_SUCCESS;
}

static cl_int CL_API_CALL device_info(cl_device_id d, cl_device_info name, size_t size, void *value,
                                      size_t *ret_size)
{
        static const cl_device_type type = CL_DEVICE_TYPE_GPU;
        static const size_t group = GROUP_MAX;
        const cl_ulong memory = limit, part = limit / 4;
        switch (name) {
        case CL_DEVICE_TYPE:
                return answer(&type, sizeof(type), size, value, ret_size);
        case CL_DEVICE_MAX_WORK_GROUP_SIZE:
                return answer(&group, sizeof(group), size, value, ret_size);
        case CL_DEVICE_GLOBAL_MEM_SIZE:
                return answer(&memory, sizeof(memory), size, value, ret_size);
        case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
                return answer(&part, sizeof(part), size, value, ret_size);
        default:
                return base.clGetDeviceInfo(d, name, size, value, ret_size);
        }
}

static cl_int CL_API_CALL platform_info(cl_platform_id p, cl_platform_info name, size_t size,
                                        void *value, size_t *ret_size)
{
        const char *text = getenv("BRITTLE_NAME");
        text = text ? text : "NVIDIA CUDA, or something with its habits";
        (void)p;
        if (name == CL_PLATFORM_NAME)
                return answer(text, strlen(text) + 1, size, value, ret_size);
        return base.clGetPlatformInfo(platform.base, name, size, value, ret_size);
}

static cl_int CL_API_CALL device_ids(cl_platform_id p, cl_device_type type, cl_uint n,
                                     cl_device_id *ids, cl_uint *ret_count)
{
        const char *hang = getenv("BRITTLE_HANG");
        (void)p;
        while (hang && !access(hang, F_OK))
                usleep(10000);
        return base.clGetDeviceIDs(platform.base,
                                   type & CL_DEVICE_TYPE_GPU ? CL_DEVICE_TYPE_ALL : type, n, ids,
                                   ret_count);
}

/* Its properties name our platform at most, which the implementation does not know. */
static cl_context CL_API_CALL create_context(const cl_context_properties *list, cl_uint n,
                                             const cl_device_id *devices,
                                             void(CL_CALLBACK *notify)(const char *, const void *,
                                                                       size_t, void *),
                                             void *user, cl_int *err)
{
        (void)list;
        return base.clCreateContext(NULL, n, devices, notify, user, err);
}

static void *CL_API_CALL extension(cl_platform_id p, const char *name)
{
        (void)p;
        return base.clGetExtensionFunctionAddressForPlatform(platform.base, name);
}

static bool load(void)
{
        char name[4096] = "libpocl.so.2";
        FILE *f = fopen("/etc/OpenCL/vendors/pocl.icd", "re");
        if (f) {
                if (fgets(name, sizeof(name), f))
                        name[strcspn(name, "\r\n")] = '\0';
                fclose(f);
        }
        void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
        void *(*address)(const char *) = NULL;
        cl_int (*ids)(cl_uint, cl_platform_id *, cl_uint *) = NULL;
        void *found = library ? dlsym(library, "clGetExtensionFunctionAddress") : NULL;
        memcpy(&address, &found, sizeof(address));
        found = address ? address("clIcdGetPlatformIDsKHR") : NULL;
        memcpy(&ids, &found, sizeof(ids));
        if (!ids || ids(1, &platform.base, NULL) != CL_SUCCESS)
                return false;
        memcpy(&base, *(cl_icd_dispatch **)(void *)platform.base, sizeof(base));
        const char *mib = getenv("BRITTLE_MIB");
        limit = (mib ? strtoul(mib, NULL, 10) : 64) << 20;

        table = base;
        table.clGetPlatformInfo = platform_info;
        table.clGetDeviceIDs = device_ids;
        table.clGetDeviceInfo = device_info;
        table.clCreateContext = create_context;
        table.clGetExtensionFunctionAddressForPlatform = extension;
        table.clCreateBuffer = create_buffer;
        table.clCreateSubBuffer = create_sub_buffer;
        table.clCreateImage = create_image;
        table.clRetainMemObject = retain_mem;
        table.clReleaseMemObject = release_mem;
        table.clEnqueueReadBuffer = read_buffer;
        table.clEnqueueWriteBuffer = write_buffer;
        table.clEnqueueCopyBuffer = copy_buffer;
        table.clEnqueueReadImage = read_image;
        table.clEnqueueWriteImage = write_image;
        table.clEnqueueFillBuffer = fill_buffer;
        table.clEnqueueFillImage = fill_image;
        table.clEnqueueNDRangeKernel = launch;
        table.clFinish = finish;
        table.clSetKernelArg = set_arg;
        table.clReleaseKernel = release_kernel;
        table.clGetKernelWorkGroupInfo = group_info;
        table.clBuildProgram = build;
        table.clCompileProgram = compile;
        table.clGetProgramInfo = program_info;
        table.clReleaseProgram = release_program;
        table.clLinkProgram = link_program;
        return true;
}

static cl_int CL_API_CALL platform_ids(cl_uint n, cl_platform_id *ids, cl_uint *ret_count)
{
        static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
        pthread_mutex_lock(&once);
        bool there = platform.base || load();
        pthread_mutex_unlock(&once);
        if (ret_count)
                *ret_count = there;
        if (!there)
                return CL_PLATFORM_NOT_FOUND_KHR;
        if (ids && n)
                ids[0] = (cl_platform_id)(void *)&platform;
        return CL_SUCCESS;
}

__attribute__((visibility("default"))) void *CL_API_CALL
clGetExtensionFunctionAddress(const char *name)
{
        void *fn = NULL;
        cl_int (*found)(cl_uint, cl_platform_id *, cl_uint *) = platform_ids;
        if (!strcmp(name, "clIcdGetPlatformIDsKHR"))
                memcpy(&fn, &found, sizeof(fn));
        return fn;
}
