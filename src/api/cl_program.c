#include <CL/cl.h>
#include <CL/cl_ext.h>

#include "api/dispatch.h"
#include "api/reply.h"
#include "base/mem.h"
#include "core/context.h"
#include "core/device.h"
#include "core/memory/svm.h"
#include "core/program/build.h"
#include "core/program/job.h"
#include "core/program/program.h"
#include "core/program/spirv.h"
#include "proto/option.h"
#include "proto/wire.h"

/* ---- making --------------------------------------------------------------------------------- */

/* Takes over what params own. */
static cl_program create(cl_context context, const struct program_params *params,
                         cl_int *errcode_ret)
{
        cl_program p = NULL;
        client_lock(context->client);
        int r = program_new(context, params, &p);
        client_unlock(context->client);
        if (errcode_ret)
                *errcode_ret = status_to_cl(r);
        return p;
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithSource(cl_context context, cl_uint count,
                                                              const char **strings,
                                                              const size_t *lengths,
                                                              cl_int *errcode_ret)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return reply_error(errcode_ret, CL_INVALID_CONTEXT);
        /* CL_INVALID_VALUE if count is zero or if strings or any entry in strings is NULL. */
        if (!count || !strings)
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        struct buf source = { 0 };
        int r = 0;
        for (cl_uint i = 0; i < count && !r; i++) {
                if (!strings[i]) {
                        buf_fini(&source);
                        return reply_error(errcode_ret, CL_INVALID_VALUE);
                }
                /* A length of zero, or no lengths: the string ends with its NUL. */
                size_t n = lengths && lengths[i] ? lengths[i] : strlen(strings[i]);
                r = buf_put(&source, strings[i], n);
        }
        if (!r)
                r = buf_put(&source, "", 1);
        if (r < 0) {
                buf_fini(&source);
                return reply_error(errcode_ret, status_to_cl(r));
        }
        return create(context,
                      &(struct program_params){
                              .kind = PROGRAM_SOURCE,
                              .devices = context->devices,
                              .device_count = context->device_count,
                              .source = (char *)source.data,
                              .source_size = source.size - 1,
                      },
                      errcode_ret);
}

/* CL_INVALID_VALUE if device_list is NULL or num_devices is zero; CL_INVALID_DEVICE if one is not in the
 * list of the context's (or stands twice). */
static cl_int check_devices(cl_context context, cl_uint count, const cl_device_id *devices)
{
        if (!count || !devices)
                return CL_INVALID_VALUE;
        for (cl_uint i = 0; i < count; i++) {
                if (!handle_is(devices[i], HANDLE_DEVICE) ||
                    !context_has_device(context, devices[i]))
                        return CL_INVALID_DEVICE;
                for (cl_uint k = 0; k < i; k++) {
                        if (devices[k] == devices[i])
                                return CL_INVALID_DEVICE;
                }
        }
        return CL_SUCCESS;
}

/* Have the implementations judge the binaries; the first error counts. */
static cl_int inspect(cl_program p, cl_int *binary_status)
{
        cl_int *status = mem_zalloc(p->device_count * sizeof(*status));
        if (!status)
                return CL_OUT_OF_HOST_MEMORY;
        client_lock(p->context->client);
        cl_int e = status_to_cl(program_inspect(p, status));
        client_unlock(p->context->client);
        for (cl_uint i = 0; i < p->device_count; i++) {
                if (binary_status)
                        binary_status[i] = status[i];
                if (e == CL_SUCCESS)
                        e = status[i];
        }
        mem_free(status);
        return e;
}

CL_API_ENTRY cl_program CL_API_CALL
clCreateProgramWithBinary(cl_context context, cl_uint num_devices, const cl_device_id *device_list,
                          const size_t *lengths, const unsigned char **binaries,
                          cl_int *binary_status, cl_int *errcode_ret)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return reply_error(errcode_ret, CL_INVALID_CONTEXT);
        cl_int e = check_devices(context, num_devices, device_list);
        /* CL_INVALID_VALUE if lengths or binaries is NULL. */
        if (e == CL_SUCCESS && (!lengths || !binaries))
                e = CL_INVALID_VALUE;
        if (e != CL_SUCCESS)
                return reply_error(errcode_ret, e);
        for (cl_uint i = 0; i < num_devices; i++) {
                /* CL_INVALID_VALUE if lengths[i] is zero or binaries[i] is NULL. */
                cl_int status = binaries[i] && lengths[i] ? CL_SUCCESS : CL_INVALID_VALUE;
                if (binary_status)
                        binary_status[i] = status;
                if (e == CL_SUCCESS)
                        e = status;
        }
        if (e != CL_SUCCESS)
                return reply_error(errcode_ret, e);

        struct bytes *copies = mem_zalloc(num_devices * sizeof(*copies));
        bool whole = copies;
        for (cl_uint i = 0; i < num_devices && whole; i++) {
                copies[i] = bytes_of(mem_dup(binaries[i], lengths[i]), lengths[i]);
                whole = copies[i].data;
        }
        if (!whole) {
                for (cl_uint i = 0; copies && i < num_devices; i++)
                        mem_free((void *)(uintptr_t)copies[i].data);
                mem_free(copies);
                return reply_error(errcode_ret, CL_OUT_OF_HOST_MEMORY);
        }
        cl_program p = create(context,
                              &(struct program_params){
                                      .kind = PROGRAM_BINARY,
                                      .devices = device_list,
                                      .device_count = num_devices,
                                      .binaries = copies,
                              },
                              errcode_ret);
        /* CL_INVALID_BINARY if a binary is not a valid one for its device, which only the implementation knows. */
        e = p ? inspect(p, binary_status) : CL_SUCCESS;
        if (e == CL_SUCCESS)
                return p;
        clReleaseProgram(p);
        return reply_error(errcode_ret, e);
}

/* Languages but SPIR-V are the devices' to judge. */
static bool il_valid(cl_context x, struct bytes il)
{
        for (cl_uint i = 0; i < x->device_count; i++) {
                for (const char *v = device_text(x->devices[i], CL_DEVICE_IL_VERSION); *v;) {
                        size_t n = strcspn(v, " ");
                        if (n && strncmp(v, "SPIR-V", 6) != 0)
                                return true;
                        v += n + (v[n] == ' ');
                }
        }
        return spirv_valid(il);
}

static bool takes_il(cl_uint count, const cl_device_id *devices)
{
        bool any = false;
        for (cl_uint i = 0; i < count; i++)
                any |= *device_text(devices[i], CL_DEVICE_IL_VERSION) != 0;
        return any;
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithIL(cl_context context, const void *il,
                                                          size_t length, cl_int *errcode_ret)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return reply_error(errcode_ret, CL_INVALID_CONTEXT);
        /* CL_INVALID_OPERATION if no devices in context support intermediate language programs. */
        if (!takes_il(context->device_count, context->devices))
                return reply_error(errcode_ret, CL_INVALID_OPERATION);
        /* CL_INVALID_VALUE if il is NULL or if length is zero, or if it is not well-formed. */
        if (!il || !length || !il_valid(context, bytes_of(il, length)))
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        void *copy = mem_dup(il, length);
        if (!copy)
                return reply_error(errcode_ret, CL_OUT_OF_HOST_MEMORY);
        return create(context,
                      &(struct program_params){
                              .kind = PROGRAM_IL,
                              .devices = context->devices,
                              .device_count = context->device_count,
                              .il = copy,
                              .il_size = length,
                      },
                      errcode_ret);
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithILKHR(cl_context context, const void *il,
                                                             size_t length, cl_int *errcode_ret)
{
        return clCreateProgramWithIL(context, il, length, errcode_ret);
}

CL_API_ENTRY cl_program CL_API_CALL clCreateProgramWithBuiltInKernels(
        cl_context context, cl_uint num_devices, const cl_device_id *device_list,
        const char *kernel_names, cl_int *errcode_ret)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return reply_error(errcode_ret, CL_INVALID_CONTEXT);
        cl_int e = check_devices(context, num_devices, device_list);
        if (e != CL_SUCCESS)
                return reply_error(errcode_ret, e);
        /* CL_INVALID_VALUE if kernel_names is NULL or contains a kernel name that is not supported by
         * any of the devices in device_list. */
        if (!kernel_names || !*kernel_names)
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        for (const char *name = kernel_names, *end; *name; name = *end ? end + 1 : end) {
                end = strchrnul(name, ';');
                bool supported = false;
                for (cl_uint i = 0; i < num_devices; i++)
                        supported |= device_list_has(
                                device_text(device_list[i], CL_DEVICE_BUILT_IN_KERNELS), ';', name,
                                (size_t)(end - name));
                if (!supported)
                        return reply_error(errcode_ret, CL_INVALID_VALUE);
        }
        char *copy = mem_strdup(kernel_names);
        if (!copy)
                return reply_error(errcode_ret, CL_OUT_OF_HOST_MEMORY);
        return create(context,
                      &(struct program_params){
                              .kind = PROGRAM_BUILT_IN,
                              .devices = device_list,
                              .device_count = num_devices,
                              .kernel_names = copy,
                      },
                      errcode_ret);
}

CL_API_ENTRY cl_int CL_API_CALL clRetainProgram(cl_program program)
{
        if (!handle_is(program, HANDLE_PROGRAM))
                return CL_INVALID_PROGRAM;
        handle_retain(&program->h);
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clReleaseProgram(cl_program program)
{
        if (!handle_is(program, HANDLE_PROGRAM))
                return CL_INVALID_PROGRAM;
        struct client *c = program->context->client;
        client_lock(c);
        int last = handle_release(&program->h);
        if (last > 0)
                program_unhold(program);
        client_unlock(c);
        return last < 0 ? CL_INVALID_PROGRAM : CL_SUCCESS;
}

/* ---- building ------------------------------------------------------------------------------- */

/* CL_INVALID_VALUE if there is a list and no number, or the other way round; CL_INVALID_DEVICE if one is
 * not in the list of the program's. */
static cl_int check_program_devices(cl_program p, cl_uint count, const cl_device_id *devices)
{
        if (!count != !devices)
                return CL_INVALID_VALUE;
        for (cl_uint i = 0; i < count; i++) {
                if (!handle_is(devices[i], HANDLE_DEVICE) || program_device(p, devices[i]) < 0)
                        return CL_INVALID_DEVICE;
        }
        return CL_SUCCESS;
}

static bool device_flag(cl_device_id d, cl_device_info name)
{
        struct bytes v;
        cl_bool has = CL_FALSE;
        if (device_info(d, name, &v) && v.size == sizeof(has))
                memcpy(&has, v.data, sizeof(has));
        return has;
}

/* CL_COMPILER_NOT_AVAILABLE if the program is of source or IL and a device has no compiler. */
static cl_int check_compiler(cl_program p, cl_uint count, const cl_device_id *devices)
{
        if (!devices) {
                count = p->device_count;
                devices = p->devices;
        }
        for (cl_uint i = 0; i < count; i++) {
                if (!device_flag(devices[i], CL_DEVICE_COMPILER_AVAILABLE))
                        return CL_COMPILER_NOT_AVAILABLE;
        }
        return CL_SUCCESS;
}

static cl_int keep_linked(cl_program p, void(CL_CALLBACK *notify)(cl_program, void *), void *data)
{
        struct client *c = p->context->client;
        client_lock(c);
        bool built = program_is_built(p) && !p->kernel_count;
        client_unlock(c);
        if (!built)
                return CL_INVALID_OPERATION;
        if (notify)
                notify(p, data);
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clBuildProgram(cl_program program, cl_uint num_devices,
                                               const cl_device_id *device_list, const char *options,
                                               void(CL_CALLBACK *pfn_notify)(cl_program, void *),
                                               void *user_data)
{
        if (!handle_is(program, HANDLE_PROGRAM))
                return CL_INVALID_PROGRAM;
        cl_int e = check_program_devices(program, num_devices, device_list);
        if (e != CL_SUCCESS)
                return e;
        /* CL_INVALID_VALUE if pfn_notify is NULL but user_data is not. */
        if (!pfn_notify && user_data)
                return CL_INVALID_VALUE;
        /* "CL_INVALID_OPERATION if program was not created with clCreateProgramWithSource,
         * clCreateProgramWithIL or clCreateProgramWithBinary." Built-in kernels may be built, too. Native
         * implementations accept an executable that was linked, and keep it. */
        if (program->kind == PROGRAM_LINKED)
                return keep_linked(program, pfn_notify, user_data);
        if (program->kind == PROGRAM_SOURCE || program->kind == PROGRAM_IL)
                e = check_compiler(program, num_devices, device_list);
        if (e != CL_SUCCESS)
                return e;
        /* CL_INVALID_BUILD_OPTIONS: only a device's compiler can judge the options that it alone
         * knows. */
        if (!options_valid(options))
                return CL_INVALID_BUILD_OPTIONS;
        return status_to_cl(program_build(program, &(struct program_build_params){
                                                           .devices = device_list,
                                                           .device_count = num_devices,
                                                           .options = options,
                                                           .notify = pfn_notify,
                                                           .notify_data = user_data,
                                                   }));
}

/* CL_INVALID_VALUE if there are headers and no number or names of them, or the other way round. Each is
 * "created with clCreateProgramWithSource", or CL_INVALID_PROGRAM; "CL_INVALID_CONTEXT if the context
 * associated with program and programs in input_headers are not the same." */
static cl_int check_headers(cl_context x, cl_uint count, const cl_program *headers,
                            const char **names)
{
        if (!count != !headers || !count != !names)
                return CL_INVALID_VALUE;
        for (cl_uint i = 0; i < count; i++) {
                if (!handle_is(headers[i], HANDLE_PROGRAM) || headers[i]->kind != PROGRAM_SOURCE)
                        return CL_INVALID_PROGRAM;
                if (headers[i]->context != x)
                        return CL_INVALID_CONTEXT;
                if (!names[i] || !*names[i])
                        return CL_INVALID_VALUE;
        }
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clCompileProgram(cl_program program, cl_uint num_devices,
                                                 const cl_device_id *device_list,
                                                 const char *options, cl_uint num_input_headers,
                                                 const cl_program *input_headers,
                                                 const char **header_include_names,
                                                 void(CL_CALLBACK *pfn_notify)(cl_program, void *),
                                                 void *user_data)
{
        if (!handle_is(program, HANDLE_PROGRAM))
                return CL_INVALID_PROGRAM;
        cl_int e = check_program_devices(program, num_devices, device_list);
        if (e == CL_SUCCESS)
                e = check_headers(program->context, num_input_headers, input_headers,
                                  header_include_names);
        if (e != CL_SUCCESS)
                return e;
        if (!pfn_notify && user_data)
                return CL_INVALID_VALUE;
        /* CL_INVALID_OPERATION if program has no source or IL. */
        if (program->kind != PROGRAM_SOURCE && program->kind != PROGRAM_IL)
                return CL_INVALID_OPERATION;
        e = check_compiler(program, num_devices, device_list);
        if (e != CL_SUCCESS)
                return e;
        /* CL_INVALID_COMPILER_OPTIONS if the compiler options are invalid. */
        if (!options_valid(options))
                return CL_INVALID_COMPILER_OPTIONS;
        return status_to_cl(program_build(program, &(struct program_build_params){
                                                           .devices = device_list,
                                                           .device_count = num_devices,
                                                           .options = options,
                                                           .compile = true,
                                                           .headers = input_headers,
                                                           .header_names = header_include_names,
                                                           .header_count = num_input_headers,
                                                           .notify = pfn_notify,
                                                           .notify_data = user_data,
                                                   }));
}

CL_API_ENTRY cl_program CL_API_CALL clLinkProgram(cl_context context, cl_uint num_devices,
                                                  const cl_device_id *device_list,
                                                  const char *options, cl_uint num_input_programs,
                                                  const cl_program *input_programs,
                                                  void(CL_CALLBACK *pfn_notify)(cl_program, void *),
                                                  void *user_data, cl_int *errcode_ret)
{
        if (!handle_is(context, HANDLE_CONTEXT))
                return reply_error(errcode_ret, CL_INVALID_CONTEXT);
        /* CL_INVALID_VALUE: one of num_devices and device_list is 0 or NULL and the other is not;
         * there are no input programs; or user_data is given without a callback. */
        if (!num_devices != !device_list || !num_input_programs || !input_programs ||
            (!pfn_notify && user_data))
                return reply_error(errcode_ret, CL_INVALID_VALUE);
        /* "The link operation is performed for devices specified in device_list [...] or for all
         * devices associated with context." */
        if (!device_list) {
                num_devices = context->device_count;
                device_list = context->devices;
        }
        cl_int e = check_devices(context, num_devices, device_list);
        if (e != CL_SUCCESS)
                return reply_error(errcode_ret, e);
        for (cl_uint i = 0; i < num_input_programs; i++) {
                if (!handle_is(input_programs[i], HANDLE_PROGRAM))
                        return reply_error(errcode_ret, CL_INVALID_PROGRAM);
                /* "CL_INVALID_CONTEXT if the context associated with programs in input_programs is not
                 * the same as context." */
                if (input_programs[i]->context != context)
                        return reply_error(errcode_ret, CL_INVALID_CONTEXT);
        }
        /* CL_LINKER_NOT_AVAILABLE if CL_DEVICE_LINKER_AVAILABLE is false for a device. */
        for (cl_uint i = 0; i < num_devices; i++) {
                if (!device_flag(device_list[i], CL_DEVICE_LINKER_AVAILABLE))
                        return reply_error(errcode_ret, CL_LINKER_NOT_AVAILABLE);
        }
        /* CL_INVALID_LINKER_OPTIONS: only a device's linker can judge the other options. */
        if (options && strlen(options) > WIRE_TEXT_MAX)
                return reply_error(errcode_ret, CL_INVALID_LINKER_OPTIONS);
        cl_program p = NULL;
        int r = program_link(context,
                             &(struct program_link_params){
                                     .devices = device_list,
                                     .device_count = num_devices,
                                     .options = options,
                                     .inputs = input_programs,
                                     .input_count = num_input_programs,
                                     .notify = pfn_notify,
                                     .notify_data = user_data,
                             },
                             &p);
        if (errcode_ret)
                *errcode_ret = status_to_cl(r);
        return p;
}

CL_API_ENTRY cl_int CL_API_CALL clUnloadPlatformCompiler(cl_platform_id platform)
{
        /* CL_INVALID_PLATFORM if platform is not a valid platform. It is a hint. */
        return handle_is(platform, HANDLE_PLATFORM) ? CL_SUCCESS : CL_INVALID_PLATFORM;
}

CL_API_ENTRY cl_int CL_API_CALL clUnloadCompiler(void)
{
        return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clSetProgramReleaseCallback(
        cl_program program, void(CL_CALLBACK *pfn_notify)(cl_program, void *), void *user_data)
{
        if (!handle_is(program, HANDLE_PROGRAM))
                return CL_INVALID_PROGRAM;
        if (!pfn_notify)
                return CL_INVALID_VALUE;
        /* CL_INVALID_OPERATION if no devices associated with program support destructors for program
         * scope global variables. */
        return CL_INVALID_OPERATION;
}

CL_API_ENTRY cl_int CL_API_CALL clSetProgramSpecializationConstant(cl_program program,
                                                                   cl_uint spec_id,
                                                                   size_t spec_size,
                                                                   const void *spec_value)
{
        /* CL_INVALID_OPERATION if no devices associated with program support intermediate language
         * programs: of any program, since none can be of IL then. CL_INVALID_PROGRAM if program is not
         * a valid program created from an intermediate language. */
        if (!handle_is(program, HANDLE_PROGRAM))
                return CL_INVALID_PROGRAM;
        if (!takes_il(program->device_count, program->devices))
                return CL_INVALID_OPERATION;
        if (program->kind != PROGRAM_IL)
                return CL_INVALID_PROGRAM;
        /* CL_COMPILER_NOT_AVAILABLE if a compiler is not available: to none of them. */
        bool compiler = false;
        for (cl_uint i = 0; i < program->device_count; i++)
                compiler |= device_flag(program->devices[i], CL_DEVICE_COMPILER_AVAILABLE);
        if (!compiler)
                return CL_COMPILER_NOT_AVAILABLE;
        /* CL_INVALID_SPEC_ID if spec_id is not a valid specialization constant identifier;
         * CL_INVALID_VALUE if spec_size does not match its size, or if spec_value is NULL. */
        struct bytes il = bytes_of(program->il, program->il_size);
        if (spirv_valid(il)) {
                size_t size = spirv_constant_size(il, spec_id);
                if (!size)
                        return CL_INVALID_SPEC_ID;
                if (spec_size != size)
                        return CL_INVALID_VALUE;
        }
        if (!spec_value || !spec_size)
                return CL_INVALID_VALUE;
        struct client *c = program->context->client;
        struct svm_borrowed value;
        int r = svm_borrow(&value, spec_value, spec_size);
        if (r == 0) {
                client_lock(c);
                r = program_constant(program, spec_id, bytes_of(value.at, spec_size));
                client_unlock(c);
        }
        svm_give_back(&value);
        return status_to_cl(r);
}

/* ---- queries -------------------------------------------------------------------------------- */

/* The binary of device i: its executable, or else the binary that the program was created with. */
static struct bytes binary_of(const struct _cl_program *p, cl_uint i)
{
        if (p->executables && p->executables[i].size)
                return p->executables[i];
        return p->binaries ? p->binaries[i] : bytes_of(NULL, 0);
}

/* Copies of the binaries, `ret` has a place for each device; of size 0 where `places` has NULL. */
static int copy_binaries(cl_program p, unsigned char *const *places, struct bytes *ret)
        REQUIRES(client_held)
{
        int r = program_fetch_binaries(p);
        for (cl_uint i = 0; i < p->device_count && r == 0; i++) {
                struct bytes b = binary_of(p, i);
                if (places && (!places[i] || !b.size))
                        continue;
                ret[i] = bytes_of(places ? mem_dup(b.data, b.size) : NULL, b.size);
                r = places && !ret[i].data ? SP_E_NOMEM : 0;
        }
        return r;
}

/* The reply may lie in unified shared memory, which nobody touches with the lock held. */
static cl_int reply_binaries(cl_program p, cl_program_info name, struct reply reply)
{
        size_t entry = name == CL_PROGRAM_BINARIES ? sizeof(unsigned char *) : sizeof(size_t);
        if (reply.value && reply.size < p->device_count * entry)
                return CL_INVALID_VALUE;
        if (reply.size_ret)
                *reply.size_ret = p->device_count * entry;
        if (!reply.value)
                return CL_SUCCESS;
        /* param_value is an array of places, of which some may be NULL: then that binary is not
         * wanted. */
        unsigned char **places =
                name == CL_PROGRAM_BINARIES ? mem_dup(reply.value, p->device_count * entry) : NULL;
        struct bytes *all = mem_zalloc(p->device_count * sizeof(*all));
        int r = all && (places || name != CL_PROGRAM_BINARIES) ? 0 : SP_E_NOMEM;
        if (r == 0) {
                client_lock(p->context->client);
                r = copy_binaries(p, places, all);
                client_unlock(p->context->client);
        }
        for (cl_uint i = 0; i < p->device_count && all; i++) {
                if (r == 0 && !places)
                        ((size_t *)reply.value)[i] = all[i].size;
                else if (r == 0 && all[i].size)
                        memcpy(places[i], all[i].data, all[i].size);
                mem_free((void *)(uintptr_t)all[i].data);
        }
        mem_free(all);
        mem_free(places);
        return status_to_cl(r);
}

#define put_value(b, type, v) buf_put(b, &(type){ v }, sizeof(type))

static int put_string(struct buf *b, const char *s)
{
        return buf_put(b, s ? s : "", s ? strlen(s) + 1 : 1);
}

/* A reply that was put together with the lock held. */
static cl_int reply_buf(struct reply reply, int r, struct buf *b)
{
        cl_int e = r < 0 ? status_to_cl(r) : reply_bytes(reply, b->data, b->size);
        buf_fini(b);
        return e;
}

static int put_executable(cl_program p, cl_program_info name, struct buf *ret) REQUIRES(client_held)
{
        /* CL_INVALID_PROGRAM_EXECUTABLE if there is no executable built for at least one device. */
        if (!program_is_built(p))
                return CL_INVALID_PROGRAM_EXECUTABLE;
        const struct program_build *b = p->build;
        /* OpenCL C has none. */
        if (name == CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT ||
            name == CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT)
                return put_value(ret, cl_bool, CL_FALSE);
        if (name == CL_PROGRAM_NUM_KERNELS)
                return put_value(ret, size_t, b->kernel_count);
        int r = 0;
        for (size_t i = 0; i < b->kernel_count && !r; i++) {
                r = i ? buf_put(ret, ";", 1) : 0;
                if (!r)
                        r = buf_put(ret, b->kernels[i]->name, strlen(b->kernels[i]->name));
        }
        return r ? r : buf_put(ret, "", 1);
}

CL_API_ENTRY cl_int CL_API_CALL clGetProgramInfo(cl_program program, cl_program_info param_name,
                                                 size_t param_value_size, void *param_value,
                                                 size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        if (!handle_is(program, HANDLE_PROGRAM))
                return CL_INVALID_PROGRAM;
        struct client *c = program->context->client;
        struct buf value = { 0 };
        int r;
        switch (param_name) {
        case CL_PROGRAM_REFERENCE_COUNT:
                return reply_value(reply, cl_uint, atomic_load(&program->h.refs));
        case CL_PROGRAM_CONTEXT:
                return reply_value(reply, cl_context, program->context);
        case CL_PROGRAM_NUM_DEVICES:
                return reply_value(reply, cl_uint, program->device_count);
        case CL_PROGRAM_DEVICES:
                return reply_devices(reply, program->devices, program->device_count);
        /* All strings given to clCreateProgramWithSource as one; empty for other programs. */
        case CL_PROGRAM_SOURCE:
                return program->source
                               ? reply_bytes(reply, program->source, program->source_size + 1)
                               : reply_string(reply, "");
        /* Nothing, of size 0, for programs that are not of IL. */
        case CL_PROGRAM_IL:
                return reply_bytes(reply, program->il, program->il_size);
        case CL_PROGRAM_BINARY_SIZES:
        case CL_PROGRAM_BINARIES:
                return reply_binaries(program, param_name, reply);
        case CL_PROGRAM_NUM_KERNELS:
        case CL_PROGRAM_KERNEL_NAMES:
        case CL_PROGRAM_SCOPE_GLOBAL_CTORS_PRESENT:
        case CL_PROGRAM_SCOPE_GLOBAL_DTORS_PRESENT:
                r = program_ready(program);
                if (r < 0)
                        return status_to_cl(r);
                client_lock(c);
                r = put_executable(program, param_name, &value);
                client_unlock(c);
                return reply_buf(reply, r, &value);
        default:
                return CL_INVALID_VALUE;
        }
}

static int put_build(cl_program p, cl_uint i, cl_program_build_info name, struct buf *ret)
        REQUIRES(client_held)
{
        const struct device_build *d = p->build ? &p->build->devices[i] : NULL;
        cl_build_status status = d ? d->status : CL_BUILD_NONE;
        bool running = program_in_progress(p, i);
        switch (name) {
        case CL_PROGRAM_BUILD_STATUS:
                return put_value(ret, cl_build_status, running ? CL_BUILD_IN_PROGRESS : status);
        /* Of the build, compilation or link "performed last", also if it goes on. Empty if the status is
         * CL_BUILD_NONE. */
        case CL_PROGRAM_BUILD_OPTIONS:
                return put_string(ret, running ? program_job_options(p) : d ? d->options : NULL);
        case CL_PROGRAM_BUILD_LOG:
                return put_string(ret, d && !running ? d->log : NULL);
        case CL_PROGRAM_BINARY_TYPE:
                return put_value(ret, cl_program_binary_type, program_binary_type(p, i));
        case CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE:
                return put_value(ret, size_t, d ? d->globals : 0);
        default:
                return CL_INVALID_VALUE;
        }
}

CL_API_ENTRY cl_int CL_API_CALL clGetProgramBuildInfo(cl_program program, cl_device_id device,
                                                      cl_program_build_info param_name,
                                                      size_t param_value_size, void *param_value,
                                                      size_t *param_value_size_ret)
{
        struct reply reply = { param_value_size, param_value, param_value_size_ret };
        if (!handle_is(program, HANDLE_PROGRAM))
                return CL_INVALID_PROGRAM;
        /* CL_INVALID_DEVICE if device is not in the list of devices associated with program. */
        int i = handle_is(device, HANDLE_DEVICE) ? program_device(program, device) : -1;
        if (i < 0)
                return CL_INVALID_DEVICE;
        struct client *c = program->context->client;
        struct buf value = { 0 };
        client_lock(c);
        int r = put_build(program, (cl_uint)i, param_name, &value);
        client_unlock(c);
        return reply_buf(reply, r, &value);
}
