/* The start and the end of the client; platform, devices, contexts and queues. */
#include "base/mem.h"
#include "state.h"

struct nano *nano;

static const char *why = "spancl_nano_start was not called";

/* ---- start and end ---------------------------------------------------------------------------- */

static const char *text_of(int status)
{
        switch (status) {
        case 0:
                return "";
        case SP_E_NOMEM:
        case SP_E_LIMIT:
                return "a message of the server, or an answer to it, has no room";
        case SP_E_VERSION:
                return "the server speaks another version, or is big-endian";
        case SP_E_AUTH:
                return "the server does not admit this client without encryption";
        case SP_E_NODEV:
                return "the server has no devices";
        case SP_E_GONE:
                return "the server has ended the session";
        case SP_E_PROTO:
                return "the server broke the protocol";
        default:
                return "the server can't be reached";
        }
}

const char *spancl_nano_error(void)
{
        return nano ? text_of(nano->status) : why;
}

static int make(const struct spancl_nano_config *c)
{
        nano_memory_open(c->arena, c->arena_size);
        nano = mem_zalloc(sizeof(*nano));
        if (!nano)
                return SP_E_NOMEM;
        nano->config = *c;
        memcpy(nano->session_id, c->random, 16);
        memcpy(nano->key, c->random + 16, 16);
        /* The session itself comes first; its size is not known here. */
        const size_t left = nano_memory_left(), fixed = bytes_pad8(session_size()) + NANO_IN_BYTES;
        if (left < fixed + NANO_OUT_MIN)
                return SP_E_NOMEM;
        struct session_params p = {
                .ops = &nano_session_ops,
                .in_bytes = NANO_IN_BYTES,
                .out_bytes = (left - fixed) & ~(size_t)7,
                .window_bytes = left - fixed,
                .inline_bytes = NANO_INLINE_MAX,
        };
        int r = session_new(&p, &nano->session);
        nano_memory_close();
        return r;
}

cl_int spancl_nano_start(const struct spancl_nano_config *c)
{
        if (nano)
                return CL_INVALID_OPERATION;
        if (!c || !c->transport || !c->arena || !c->random || (uintptr_t)c->arena % 8)
                return CL_INVALID_VALUE;
        int r = make(c);
        if (!r)
                r = nano_link_begin();
        cl_int status = nano_status(r);
        if (!r) {
                uint64_t id = nano_request_begin(WIRE_server_info, NULL);
                status = nano_request_wait(nano_send(server_info_query, .request = id));
        }
        if (!status)
                return status;
        why = text_of(r ? r : nano->status ? nano->status : SP_E_NODEV);
        nano = NULL;
        return status == CL_OUT_OF_HOST_MEMORY ? status : CL_DEVICE_NOT_AVAILABLE;
}

void spancl_nano_stop(void)
{
        if (!nano)
                return;
        int r = nano->status ? nano->status : nano_send(close, .status = 0);
        if (!r)
                nano_pump(false);
        nano = NULL;
        why = "spancl_nano_stop was called";
}

size_t spancl_nano_used(void)
{
        return nano ? nano_memory_used() : 0;
}

unsigned spancl_nano_resumed(void)
{
        return nano ? nano->link.resumed : 0;
}

/* ---- what all objects have -------------------------------------------------------------------- */

void *nano_object(const void *handle, uint32_t tag)
{
        const uintptr_t at = (uintptr_t)handle, begin = (uintptr_t)nano;
        const struct object *o = handle;
        if (!nano || at < begin || at - begin > sizeof(*nano) - sizeof(*o) || at % 8)
                return NULL;
        return o->refs && o->tag == tag ? (void *)at : NULL;
}

void *nano_object_new(void *table, size_t count, size_t size, uint32_t tag, unsigned type)
{
        uint8_t *at = table;
        for (size_t i = 0; i < count; i++, at += size) {
                struct object *o = (struct object *)(void *)at;
                if (o->refs)
                        continue;
                memset(at, 0, size);
                *o = (struct object){ 1, tag, object_id(type, ++nano->next_id) };
                return o;
        }
        return NULL;
}

void nano_object_free(struct object *o)
{
        o->refs = o->tag = 0;
}

void nano_release(uint64_t id)
{
        int r = nano->status ? 0 : nano_send(release, .object = id);
        (void)r; /* it fails only if the session has ended */
}

cl_int nano_status(int status)
{
        if (!status)
                return CL_SUCCESS;
        return status == SP_E_NOMEM || status == SP_E_LIMIT ? CL_OUT_OF_HOST_MEMORY
                                                            : CL_DEVICE_NOT_AVAILABLE;
}

cl_int nano_reply(const void *from, size_t from_size, size_t size, void *value, size_t *size_ret)
{
        if (value && size < from_size)
                return CL_INVALID_VALUE;
        if (value)
                memcpy(value, from, from_size);
        if (size_ret)
                *size_ret = from_size;
        return CL_SUCCESS;
}

static cl_int reply_text(const char *text, size_t size, void *value, size_t *size_ret)
{
        return nano_reply(text, strlen(text) + 1, size, value, size_ret);
}

void *nano_fail(cl_int status, cl_int *errcode_ret)
{
        if (errcode_ret)
                *errcode_ret = status;
        return NULL;
}

static cl_int retain(void *handle, uint32_t tag, cl_int invalid)
{
        struct object *o = nano_object(handle, tag);
        if (!o)
                return invalid;
        o->refs++;
        return CL_SUCCESS;
}

/* ---- platform and devices --------------------------------------------------------------------- */

static bool is_platform(cl_platform_id p)
{
        return nano && (void *)p == (void *)nano;
}

cl_int clGetPlatformIDs(cl_uint num_entries, cl_platform_id *platforms, cl_uint *num_platforms)
{
        if ((platforms && !num_entries) || (!platforms && !num_platforms))
                return CL_INVALID_VALUE;
        if (platforms && nano)
                platforms[0] = (cl_platform_id)(void *)nano;
        if (num_platforms)
                *num_platforms = nano != NULL;
        return CL_SUCCESS;
}

cl_int clGetPlatformInfo(cl_platform_id platform, cl_platform_info name, size_t size, void *value,
                         size_t *size_ret)
{
        if (!is_platform(platform))
                return CL_INVALID_PLATFORM;
        switch (name) {
        case CL_PLATFORM_PROFILE:
                return reply_text("EMBEDDED_PROFILE", size, value, size_ret);
        case CL_PLATFORM_VERSION:
                return reply_text("OpenCL 1.2 SpanCL nano", size, value, size_ret);
        case CL_PLATFORM_NAME:
        case CL_PLATFORM_VENDOR:
                return reply_text("SpanCL", size, value, size_ret);
        default:
                return CL_INVALID_VALUE;
        }
}

cl_int clGetDeviceIDs(cl_platform_id platform, cl_device_type type, cl_uint num_entries,
                      cl_device_id *devices, cl_uint *num_devices)
{
        const cl_device_type known = CL_DEVICE_TYPE_DEFAULT | CL_DEVICE_TYPE_CPU |
                                     CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR |
                                     CL_DEVICE_TYPE_CUSTOM;
        cl_uint count = 0;
        if (!is_platform(platform))
                return CL_INVALID_PLATFORM;
        if (type != CL_DEVICE_TYPE_ALL && (!type || type & ~known))
                return CL_INVALID_DEVICE_TYPE;
        if ((devices && !num_entries) || (!devices && !num_devices))
                return CL_INVALID_VALUE;
        for (unsigned i = 0; i < nano->device_count; i++) {
                const cl_device_type own =
                        nano->devices[i].type & ~(cl_device_type)CL_DEVICE_TYPE_DEFAULT;
                const bool custom = type == CL_DEVICE_TYPE_ALL && (own & CL_DEVICE_TYPE_CUSTOM);
                if (!(own & type) && !(i == 0 && type & CL_DEVICE_TYPE_DEFAULT))
                        continue;
                if (custom) /* "all devices except CL_DEVICE_TYPE_CUSTOM" */
                        continue;
                if (devices && count < num_entries)
                        devices[count] = &nano->devices[i];
                count++;
        }
        if (num_devices)
                *num_devices = count;
        return count ? CL_SUCCESS : CL_DEVICE_NOT_FOUND;
}

static cl_int reply_size(uint64_t n, size_t size, void *value, size_t *size_ret)
{
        const size_t own = n > SIZE_MAX ? SIZE_MAX : (size_t)n;
        return nano_reply(&own, sizeof(own), size, value, size_ret);
}

cl_int clGetDeviceInfo(cl_device_id device, cl_device_info name, size_t size, void *value,
                       size_t *size_ret)
{
        const struct _cl_device_id *d = nano_object(device, TAG_DEVICE);
        if (!d)
                return CL_INVALID_DEVICE;
        switch (name) {
        case CL_DEVICE_TYPE:
                return nano_reply(&d->type, 8, size, value, size_ret);
        case CL_DEVICE_MAX_COMPUTE_UNITS:
                return nano_reply(&d->units, 4, size, value, size_ret);
        case CL_DEVICE_MAX_WORK_GROUP_SIZE:
                return reply_size(d->group_size, size, value, size_ret);
        case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
                return nano_reply(&d->alloc_size, 8, size, value, size_ret);
        case CL_DEVICE_GLOBAL_MEM_SIZE:
                return nano_reply(&d->global_size, 8, size, value, size_ret);
        case CL_DEVICE_LOCAL_MEM_SIZE:
                return nano_reply(&d->local_size, 8, size, value, size_ret);
        case CL_DEVICE_AVAILABLE: {
                const cl_bool there = !nano->status;
                return nano_reply(&there, sizeof(there), size, value, size_ret);
        }
        case CL_DEVICE_NAME:
                return reply_text(d->name, size, value, size_ret);
        case CL_DEVICE_VERSION:
                return reply_text(d->version, size, value, size_ret);
        default:
                return CL_INVALID_VALUE;
        }
}

/* ---- contexts --------------------------------------------------------------------------------- */

cl_context clCreateContext(const cl_context_properties *properties, cl_uint num_devices,
                           const cl_device_id *devices,
                           void (*notify)(const char *, const void *, size_t, void *), void *user,
                           cl_int *errcode_ret)
{
        (void)properties;
        if (!devices || !num_devices || (!notify && user))
                return nano_fail(CL_INVALID_VALUE, errcode_ret);
        for (cl_uint i = 0; i < num_devices; i++)
                if (!nano_object(devices[i], TAG_DEVICE) ||
                    devices[i]->domain != devices[0]->domain)
                        return nano_fail(CL_INVALID_DEVICE, errcode_ret);
        if (nano->status)
                return nano_fail(CL_DEVICE_NOT_AVAILABLE, errcode_ret);
        cl_context c = num_devices > NANO_DEVICES
                               ? NULL
                               : nano_new(nano->contexts, TAG_CONTEXT, OBJECT_NONE);
        if (!c)
                return nano_fail(CL_OUT_OF_HOST_MEMORY, errcode_ret);
        c->count = num_devices;
        memcpy(c->devices, devices, num_devices * sizeof(*devices));
        (void)nano_fail(CL_SUCCESS, errcode_ret);
        return c;
}

cl_int clRetainContext(cl_context c)
{
        return retain(c, TAG_CONTEXT, CL_INVALID_CONTEXT);
}

cl_int clReleaseContext(cl_context c)
{
        if (!nano_object(c, TAG_CONTEXT))
                return CL_INVALID_CONTEXT;
        if (!--c->object.refs)
                nano_object_free(&c->object);
        return CL_SUCCESS;
}

bool nano_context_has(cl_context c, cl_device_id d)
{
        for (unsigned i = 0; i < c->count; i++)
                if (c->devices[i] == d)
                        return true;
        return false;
}

/* ---- queues ----------------------------------------------------------------------------------- */

cl_command_queue clCreateCommandQueue(cl_context context, cl_device_id device,
                                      cl_command_queue_properties properties, cl_int *errcode_ret)
{
        if (!nano_object(context, TAG_CONTEXT))
                return nano_fail(CL_INVALID_CONTEXT, errcode_ret);
        if (!nano_object(device, TAG_DEVICE) || !nano_context_has(context, device))
                return nano_fail(CL_INVALID_DEVICE, errcode_ret);
        if (properties & ~(cl_bitfield)3)
                return nano_fail(CL_INVALID_VALUE, errcode_ret);
        if (properties & ~(cl_bitfield)CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)
                return nano_fail(CL_INVALID_QUEUE_PROPERTIES, errcode_ret);
        cl_command_queue q = nano_new(nano->queues, TAG_QUEUE, OBJECT_QUEUE);
        int r = !q ? SP_E_NOMEM
                   : nano_send(queue_create, .queue = q->object.id, .device = device->number,
                               .properties = properties);
        if (r && q)
                nano_object_free(&q->object);
        (void)nano_fail(nano_status(r), errcode_ret);
        if (r)
                return NULL;
        q->context = context;
        q->device = device;
        context->object.refs++;
        return q;
}

cl_int clRetainCommandQueue(cl_command_queue q)
{
        return retain(q, TAG_QUEUE, CL_INVALID_COMMAND_QUEUE);
}

cl_int clReleaseCommandQueue(cl_command_queue q)
{
        if (!nano_object(q, TAG_QUEUE))
                return CL_INVALID_COMMAND_QUEUE;
        if (--q->object.refs)
                return CL_SUCCESS;
        nano_release(q->object.id);
        (void)clReleaseContext(q->context);
        nano_object_free(&q->object);
        return CL_SUCCESS;
}

cl_int clFlush(cl_command_queue q)
{
        if (!nano_object(q, TAG_QUEUE))
                return CL_INVALID_COMMAND_QUEUE;
        nano_pump(false);
        return nano_status(nano->status);
}

cl_int clRetainMemObject(cl_mem m)
{
        return retain(m, TAG_MEM, CL_INVALID_MEM_OBJECT);
}

cl_int clRetainProgram(cl_program p)
{
        return retain(p, TAG_PROGRAM, CL_INVALID_PROGRAM);
}

cl_int clRetainKernel(cl_kernel k)
{
        return retain(k, TAG_KERNEL, CL_INVALID_KERNEL);
}

cl_int clRetainEvent(cl_event e)
{
        return retain(e, TAG_EVENT, CL_INVALID_EVENT);
}
