/* cl_khr_command_buffer 0.9.8 and its layers, by name, whatever the headers have. */
#ifndef TESTS_API_COMMAND_BUFFER_H
#define TESTS_API_COMMAND_BUFFER_H

#include <CL/cl_ext.h>

#include "api.h"

#define BUFFER_HEAD void *buffer, cl_command_queue queue, const cl_properties *properties
#define BUFFER_TAIL cl_uint count, const cl_uint *syncs, cl_uint *sync, void **handle

struct dispatch_arg {
        cl_uint index;
        size_t size;
        const void *value;
};

struct dispatch_config {
        void *command;
        cl_uint num_args, num_svm_args, num_exec_infos, work_dim;
        const struct dispatch_arg *args, *svm_args;
        const void *exec_infos;
        const size_t *offset, *global, *local;
};

enum {
        FLAGS = 0x1293,
        SIMULTANEOUS_USE = 1,
        MUTABLE = 2,
        DEVICE_SIDE_SYNC = 4,
        STATE = 0x1297,
        RECORDING = 0,
        EXECUTABLE = 1,
        FINALIZED = 2,
        UPDATABLE_FIELDS = 0x12B1,
        ASSERTS = 0x12B8,
        OFFSET = 1,
        SIZE = 2,
        LOCAL = 4,
        ARGUMENTS = 8,
        EXEC_INFO = 16,
        INVALID_COMMAND_BUFFER = -1138,
        INVALID_SYNC_POINT_WAIT_LIST = -1139,
        INCOMPATIBLE_COMMAND_QUEUE = -1140,
        INVALID_MUTABLE_COMMAND = -1141,
};

static struct {
        void *(*create)(cl_uint, const cl_command_queue *, const cl_properties *, cl_int *);
        cl_int (*retain)(void *);
        cl_int (*release)(void *);
        cl_int (*finalize)(void *);
        cl_int (*enqueue)(cl_uint, cl_command_queue *, void *, cl_uint, const cl_event *,
                          cl_event *);
        cl_int (*barrier)(BUFFER_HEAD, BUFFER_TAIL);
        cl_int (*copy)(BUFFER_HEAD, cl_mem, cl_mem, size_t, size_t, size_t, BUFFER_TAIL);
        cl_int (*copy_rect)(BUFFER_HEAD, cl_mem, cl_mem, const size_t *, const size_t *,
                            const size_t *, size_t, size_t, size_t, size_t, BUFFER_TAIL);
        cl_int (*buffer_to_image)(BUFFER_HEAD, cl_mem, cl_mem, size_t, const size_t *,
                                  const size_t *, BUFFER_TAIL);
        cl_int (*copy_image)(BUFFER_HEAD, cl_mem, cl_mem, const size_t *, const size_t *,
                             const size_t *, BUFFER_TAIL);
        cl_int (*image_to_buffer)(BUFFER_HEAD, cl_mem, cl_mem, const size_t *, const size_t *,
                                  size_t, BUFFER_TAIL);
        cl_int (*fill)(BUFFER_HEAD, cl_mem, const void *, size_t, size_t, size_t, BUFFER_TAIL);
        cl_int (*fill_image)(BUFFER_HEAD, cl_mem, const void *, const size_t *, const size_t *,
                             BUFFER_TAIL);
        cl_int (*kernel)(BUFFER_HEAD, cl_kernel, cl_uint, const size_t *, const size_t *,
                         const size_t *, BUFFER_TAIL);
        cl_int (*svm_memcpy)(BUFFER_HEAD, void *, const void *, size_t, BUFFER_TAIL);
        cl_int (*svm_fill)(BUFFER_HEAD, void *, const void *, size_t, size_t, BUFFER_TAIL);
        cl_int (*info)(void *, cl_uint, size_t, void *, size_t *);
        cl_int (*update)(void *, cl_uint, const cl_uint *, const void **);
        cl_int (*command_info)(void *, cl_uint, size_t, void *, size_t *);
        void *(*remap)(void *, cl_bool, cl_uint, const cl_command_queue *, cl_uint, void *const *,
                       void **, cl_int *);
} cb;

static inline void cb_load(cl_platform_id platform)
{
        const struct {
                void *to;
                const char *name;
        } all[] = {
                { &cb.create, "clCreateCommandBufferKHR" },
                { &cb.retain, "clRetainCommandBufferKHR" },
                { &cb.release, "clReleaseCommandBufferKHR" },
                { &cb.finalize, "clFinalizeCommandBufferKHR" },
                { &cb.enqueue, "clEnqueueCommandBufferKHR" },
                { &cb.barrier, "clCommandBarrierWithWaitListKHR" },
                { &cb.copy, "clCommandCopyBufferKHR" },
                { &cb.copy_rect, "clCommandCopyBufferRectKHR" },
                { &cb.buffer_to_image, "clCommandCopyBufferToImageKHR" },
                { &cb.copy_image, "clCommandCopyImageKHR" },
                { &cb.image_to_buffer, "clCommandCopyImageToBufferKHR" },
                { &cb.fill, "clCommandFillBufferKHR" },
                { &cb.fill_image, "clCommandFillImageKHR" },
                { &cb.kernel, "clCommandNDRangeKernelKHR" },
                { &cb.svm_memcpy, "clCommandSVMMemcpyKHR" },
                { &cb.svm_fill, "clCommandSVMMemFillKHR" },
                { &cb.info, "clGetCommandBufferInfoKHR" },
                { &cb.update, "clUpdateMutableCommandsKHR" },
                { &cb.command_info, "clGetMutableCommandInfoKHR" },
                { &cb.remap, "clRemapCommandBufferKHR" },
        };
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
                void *address = clGetExtensionFunctionAddressForPlatform(platform, all[i].name);
                CHECK(address);
                memcpy(all[i].to, &address, sizeof(address));
        }
}

static inline void *cb_create(cl_uint count, const cl_command_queue *queues, cl_bitfield flags)
{
        cl_int err;
        const cl_properties properties[] = { FLAGS, flags, 0 };
        void *b = cb.create(count, queues, flags ? properties : NULL, &err);
        OK(err);
        return b;
}

static inline cl_uint cb_state(void *b)
{
        cl_uint state = 99;
        OK(cb.info(b, STATE, sizeof(state), &state, NULL));
        return state;
}

/* One change of one command. */
static inline cl_int cb_update(void *b, const struct dispatch_config *config)
{
        const cl_uint type = 0;
        const void *configs[] = { config };
        return cb.update(b, 1, &type, configs);
}

#endif
