/* The nano client: a part of OpenCL 1.2 for bare metal, over one SpanCL server. C99; no threads, no stdio. All its
 * memory is an arena of the application; nothing is allocated after spancl_nano_start.
 *
 * Functions, types and values have the names and meanings of OpenCL 1.2. docs/LIMITS.md lists what is left out; a call
 * that needs it fails with the error that the specification names. One thread calls all functions. The transport's
 * functions and interrupts call none.
 *
 * Connections: a call that waits also sends, receives and makes lost connections again. Between calls nothing is sent
 * or received, so a program that computes for long calls clGetEventInfo or clFlush now and then. Lost connections
 * only cost time: the session goes on, and no command runs twice. If the server does not have the session any more,
 * or breaks the protocol, every further call fails with CL_DEVICE_NOT_AVAILABLE.
 *
 * Memory: the client borrows memory for the time of a call, unless its comment says otherwise. */
#ifndef SPANCL_NANO_H
#define SPANCL_NANO_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- transport and start ---------------------------------------------------------------------- */

/* Connections to the server, which are TCP: lane 0, and lane 1 for large data. The application implements the four
 * functions. */
struct spancl_nano_transport {
        /* Close the connection of this lane, if there is one (lane 0: of both), and connect anew. Waits until it is
         * connected. Negative: it can't be connected now. */
        int (*open)(void *user, unsigned lane);
        /* Send some of `size` bytes (1 at least), without waiting. Returns how many; 0: none now; negative: the
         * connection is lost. */
        int (*send)(void *user, unsigned lane, const void *data, size_t size);
        /* Receive at most `size` bytes (1 at least), without waiting. Returns as send. */
        int (*receive)(void *user, unsigned lane, void *data, size_t size);
        /* Wait until a connection has bytes to receive or room to send, for `timeout_ms` at most. It may return
         * earlier. 0: do not wait. Returns the time in ms since a fixed moment; it never decreases. */
        uint64_t (*wait)(void *user, unsigned timeout_ms);
        void *user; /* handed to each of them */
};

struct spancl_nano_config {
        const struct spancl_nano_transport *transport; /* borrowed until spancl_nano_stop */
        /* Memory, 8-byte aligned, borrowed until spancl_nano_stop. The bytes that the tables leave free are the buffer of
         * messages to the server. It must have room for the largest command. SPANCL_NANO_ARENA bytes leave 2 KiB. */
        void *arena;
        size_t arena_size; /* bytes */
        /* 32 random bytes, different each time. A program that knows them can take the session over. */
        const uint8_t *random;
        const char *name;   /* the program's, for the server's user; NULL: "nano" */
        unsigned answer_ms; /* connections that give no answer for so long are lost; 0: 10000 */
        unsigned
                retry_ms; /* for so long lost connections are made again, then the session is given up; 0: for ever */
};

#if UINTPTR_MAX == 0xffffffffu
#define SPANCL_NANO_ARENA 14336
#else
#define SPANCL_NANO_ARENA 20480
#endif

/* Connect and begin a session. CL_INVALID_VALUE: a value is missing. CL_OUT_OF_HOST_MEMORY: the arena is too small.
 * CL_DEVICE_NOT_AVAILABLE: no session; spancl_nano_error tells why. CL_INVALID_OPERATION: there is a session. */
int32_t spancl_nano_start(const struct spancl_nano_config *config);

/* End the session. All objects are gone; arena and transport are the application's again. */
void spancl_nano_stop(void);

/* Why there is no session (a text in English), "" if there is one. Static. */
const char *spancl_nano_error(void);

/* How many bytes of the arena are in use, and how often lost connections were made again. */
size_t spancl_nano_used(void);
unsigned spancl_nano_resumed(void);

/* ---- OpenCL ------------------------------------------------------------------------------------ */

typedef int8_t cl_char;
typedef uint8_t cl_uchar;
typedef int16_t cl_short;
typedef uint16_t cl_ushort;
typedef int32_t cl_int;
typedef uint32_t cl_uint;
typedef int64_t cl_long;
typedef uint64_t cl_ulong;
typedef float cl_float;
typedef cl_uint cl_bool;
typedef cl_ulong cl_bitfield;
typedef cl_bitfield cl_device_type, cl_command_queue_properties, cl_mem_flags;
typedef cl_uint cl_platform_info, cl_device_info, cl_program_build_info, cl_event_info;
typedef intptr_t cl_context_properties;

typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;

#define CL_FALSE 0
#define CL_TRUE  1

#define CL_SUCCESS                                   0
#define CL_DEVICE_NOT_FOUND                          -1
#define CL_DEVICE_NOT_AVAILABLE                      -2
#define CL_OUT_OF_RESOURCES                          -5
#define CL_OUT_OF_HOST_MEMORY                        -6
#define CL_MEM_COPY_OVERLAP                          -8
#define CL_BUILD_PROGRAM_FAILURE                     -11
#define CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST -14
#define CL_INVALID_VALUE                             -30
#define CL_INVALID_DEVICE_TYPE                       -31
#define CL_INVALID_PLATFORM                          -32
#define CL_INVALID_DEVICE                            -33
#define CL_INVALID_CONTEXT                           -34
#define CL_INVALID_QUEUE_PROPERTIES                  -35
#define CL_INVALID_COMMAND_QUEUE                     -36
#define CL_INVALID_HOST_PTR                          -37
#define CL_INVALID_MEM_OBJECT                        -38
#define CL_INVALID_BINARY                            -42
#define CL_INVALID_BUILD_OPTIONS                     -43
#define CL_INVALID_PROGRAM                           -44
#define CL_INVALID_PROGRAM_EXECUTABLE                -45
#define CL_INVALID_KERNEL_NAME                       -46
#define CL_INVALID_KERNEL                            -48
#define CL_INVALID_ARG_INDEX                         -49
#define CL_INVALID_ARG_VALUE                         -50
#define CL_INVALID_ARG_SIZE                          -51
#define CL_INVALID_KERNEL_ARGS                       -52
#define CL_INVALID_WORK_DIMENSION                    -53
#define CL_INVALID_WORK_GROUP_SIZE                   -54
#define CL_INVALID_GLOBAL_OFFSET                     -56
#define CL_INVALID_EVENT_WAIT_LIST                   -57
#define CL_INVALID_EVENT                             -58
#define CL_INVALID_OPERATION                         -59
#define CL_INVALID_BUFFER_SIZE                       -61
#define CL_INVALID_GLOBAL_WORK_SIZE                  -63

#define CL_PLATFORM_PROFILE 0x0900
#define CL_PLATFORM_VERSION 0x0901
#define CL_PLATFORM_NAME    0x0902
#define CL_PLATFORM_VENDOR  0x0903

#define CL_DEVICE_TYPE_DEFAULT     (1 << 0)
#define CL_DEVICE_TYPE_CPU         (1 << 1)
#define CL_DEVICE_TYPE_GPU         (1 << 2)
#define CL_DEVICE_TYPE_ACCELERATOR (1 << 3)
#define CL_DEVICE_TYPE_CUSTOM      (1 << 4)
#define CL_DEVICE_TYPE_ALL         0xFFFFFFFFu

#define CL_DEVICE_TYPE                0x1000
#define CL_DEVICE_MAX_COMPUTE_UNITS   0x1002
#define CL_DEVICE_MAX_WORK_GROUP_SIZE 0x1004
#define CL_DEVICE_MAX_MEM_ALLOC_SIZE  0x1010
#define CL_DEVICE_GLOBAL_MEM_SIZE     0x101F
#define CL_DEVICE_LOCAL_MEM_SIZE      0x1023
#define CL_DEVICE_AVAILABLE           0x1027
#define CL_DEVICE_NAME                0x102B
#define CL_DEVICE_VERSION             0x102F

#define CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE (1 << 0)

#define CL_MEM_READ_WRITE     (1 << 0)
#define CL_MEM_WRITE_ONLY     (1 << 1)
#define CL_MEM_READ_ONLY      (1 << 2)
#define CL_MEM_ALLOC_HOST_PTR (1 << 4)

#define CL_PROGRAM_BUILD_STATUS 0x1181
#define CL_PROGRAM_BUILD_LOG    0x1183
#define CL_BUILD_SUCCESS        0
#define CL_BUILD_NONE           -1
#define CL_BUILD_ERROR          -2

#define CL_COMMAND_NDRANGE_KERNEL 0x11F0
#define CL_COMMAND_READ_BUFFER    0x11F3
#define CL_COMMAND_WRITE_BUFFER   0x11F4
#define CL_COMMAND_COPY_BUFFER    0x11F5
#define CL_COMMAND_MARKER         0x11FE

#define CL_EVENT_COMMAND_TYPE             0x11D1
#define CL_EVENT_REFERENCE_COUNT          0x11D2
#define CL_EVENT_COMMAND_EXECUTION_STATUS 0x11D3
#define CL_COMPLETE                       0x0
#define CL_RUNNING                        0x1
#define CL_SUBMITTED                      0x2
#define CL_QUEUED                         0x3

/* Platform and devices. There is one platform, with the server's devices. Queries answered: those that have names
 * above. */
cl_int clGetPlatformIDs(cl_uint num_entries, cl_platform_id *platforms, cl_uint *num_platforms);
cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info name, size_t size, void *value,
                         size_t *size_ret);
cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint num_entries,
                      cl_device_id *devices, cl_uint *num_devices);
cl_int clGetDeviceInfo(cl_device_id device, cl_device_info name, size_t size, void *value,
                       size_t *size_ret);

/* A context. Its devices share memory on the server; CL_INVALID_DEVICE: they do not. `properties` and `notify` are
 * not used: no error is reported by a callback. */
cl_context clCreateContext(const cl_context_properties *properties, cl_uint num_devices,
                           const cl_device_id *devices,
                           void (*notify)(const char *, const void *, size_t, void *), void *user,
                           cl_int *errcode_ret);
cl_int clRetainContext(cl_context context);
cl_int clReleaseContext(cl_context context);

/* CL_INVALID_QUEUE_PROPERTIES: a property other than out-of-order execution. */
cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_command_queue_properties properties, cl_int *errcode_ret);
cl_int clRetainCommandQueue(cl_command_queue queue);
cl_int clReleaseCommandQueue(cl_command_queue queue);

/* A buffer of `size` bytes on the server. CL_INVALID_VALUE: flags that have no name above. */
cl_mem clCreateBuffer(cl_context context, cl_mem_flags flags, size_t size, void *host_ptr,
                      cl_int *errcode_ret);
cl_int clRetainMemObject(cl_mem mem);
cl_int clReleaseMemObject(cl_mem mem);

/* cl_pocl_content_size: the first 8 bytes of `content_size_buffer`, little-endian, say how many bytes of `buffer` mean
 * something. A read or copy of the buffer leaves out most of the others. NULL: all bytes do. */
cl_int clSetContentSizeBufferPoCL(cl_mem buffer, cl_mem content_size_buffer);

/* Programs. The call sends source or binary straight from the caller's memory, such as flash, and waits until the
 * server has it. `count` is 1; more: CL_OUT_OF_HOST_MEMORY. The binary is for the only device of `devices`. It is
 * checked when it is built: *binary_status is CL_SUCCESS. */
cl_program clCreateProgramWithSource(cl_context context, cl_uint count, const char **strings,
                                     const size_t *lengths, cl_int *errcode_ret);
cl_program clCreateProgramWithBinary(cl_context context, cl_uint num_devices,
                                     const cl_device_id *devices, const size_t *lengths,
                                     const unsigned char **binaries, cl_int *binary_status,
                                     cl_int *errcode_ret);
cl_program clCreateProgramWithBuiltInKernels(cl_context context, cl_uint num_devices,
                                             const cl_device_id *devices, const char *kernel_names,
                                             cl_int *errcode_ret);
cl_int clRetainProgram(cl_program program);
cl_int clReleaseProgram(cl_program program);

/* Build, and wait for the end. num_devices 0: for all devices of the program. `notify`, if any, is called before the
 * function returns. CL_OUT_OF_HOST_MEMORY: the options, or the program's kernels, have no room. */
cl_int clBuildProgram(cl_program program, cl_uint num_devices, const cl_device_id *devices,
                      const char *options, void (*notify)(cl_program, void *), void *user);

/* CL_PROGRAM_BUILD_STATUS and CL_PROGRAM_BUILD_LOG. The log has the first bytes of the program's build log. Only the
 * program that was built last has one; other programs have "". */
cl_int clGetProgramBuildInfo(cl_program program, cl_device_id device, cl_program_build_info name,
                             size_t size, void *value, size_t *size_ret);

cl_kernel clCreateKernel(cl_program program, const char *name, cl_int *errcode_ret);
cl_int clRetainKernel(cl_kernel kernel);
cl_int clReleaseKernel(cl_kernel kernel);

/* Copies the value. CL_OUT_OF_RESOURCES: the values set since the last launch do not fit. */
cl_int clSetKernelArg(cl_kernel kernel, cl_uint index, size_t size, const void *value);

/* Commands. Each may wait until the server has taken earlier ones. Without `blocking` the memory of a read or a write
 * is lent until the command is complete. CL_OUT_OF_HOST_MEMORY: all events are in use, or the wait list is too
 * long. */
cl_int clEnqueueReadBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                           size_t size, void *ptr, cl_uint num_waits, const cl_event *waits,
                           cl_event *event);
cl_int clEnqueueWriteBuffer(cl_command_queue queue, cl_mem buffer, cl_bool blocking, size_t offset,
                            size_t size, const void *ptr, cl_uint num_waits, const cl_event *waits,
                            cl_event *event);
cl_int clEnqueueCopyBuffer(cl_command_queue queue, cl_mem src, cl_mem dst, size_t src_offset,
                           size_t dst_offset, size_t size, cl_uint num_waits, const cl_event *waits,
                           cl_event *event);
cl_int clEnqueueNDRangeKernel(cl_command_queue queue, cl_kernel kernel, cl_uint work_dim,
                              const size_t *global_offset, const size_t *global_size,
                              const size_t *local_size, cl_uint num_waits, const cl_event *waits,
                              cl_event *event);

/* Events. clGetEventInfo does not wait, but sends and receives, so a program can poll with it. */
cl_int clWaitForEvents(cl_uint num_events, const cl_event *events);
cl_int clGetEventInfo(cl_event event, cl_event_info name, size_t size, void *value,
                      size_t *size_ret);
cl_int clRetainEvent(cl_event event);
cl_int clReleaseEvent(cl_event event);

/* Send what can be sent now / wait until all commands of the queue are complete. */
cl_int clFlush(cl_command_queue queue);
cl_int clFinish(cl_command_queue queue);

#ifdef __cplusplus
}
#endif

#endif
