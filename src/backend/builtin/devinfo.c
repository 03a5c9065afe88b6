#include "backend/builtin/devinfo.h"

#include <CL/cl_ext.h>
#include <stdio.h>
#include <string.h>

#include <spancl/riscv.h>

#include "base/mem.h"
#include "proto/args.h"

#define DEVICE_VERSION CL_MAKE_VERSION(3, 0, 0)

enum kind { UINT, ULONG, SIZE };

/* Everything that is one number. */
static const struct {
        cl_device_info key;
        enum kind kind;
        uint64_t value;
} numbers[] = {
        { CL_DEVICE_TYPE, ULONG, CL_DEVICE_TYPE_CUSTOM },
        { CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, UINT, 3 },
        { CL_DEVICE_MAX_WORK_GROUP_SIZE, SIZE, DEVINFO_GROUP_MAX },
        { CL_DEVICE_PREFERRED_VECTOR_WIDTH_CHAR, UINT, 1 },
        { CL_DEVICE_PREFERRED_VECTOR_WIDTH_SHORT, UINT, 1 },
        { CL_DEVICE_PREFERRED_VECTOR_WIDTH_INT, UINT, 1 },
        { CL_DEVICE_PREFERRED_VECTOR_WIDTH_LONG, UINT, 1 },
        { CL_DEVICE_PREFERRED_VECTOR_WIDTH_FLOAT, UINT, 1 },
        { CL_DEVICE_PREFERRED_VECTOR_WIDTH_DOUBLE, UINT, 0 },
        { CL_DEVICE_PREFERRED_VECTOR_WIDTH_HALF, UINT, 0 },
        { CL_DEVICE_NATIVE_VECTOR_WIDTH_CHAR, UINT, 1 },
        { CL_DEVICE_NATIVE_VECTOR_WIDTH_SHORT, UINT, 1 },
        { CL_DEVICE_NATIVE_VECTOR_WIDTH_INT, UINT, 1 },
        { CL_DEVICE_NATIVE_VECTOR_WIDTH_LONG, UINT, 1 },
        { CL_DEVICE_NATIVE_VECTOR_WIDTH_FLOAT, UINT, 1 },
        { CL_DEVICE_NATIVE_VECTOR_WIDTH_DOUBLE, UINT, 0 },
        { CL_DEVICE_NATIVE_VECTOR_WIDTH_HALF, UINT, 0 },
        { CL_DEVICE_MAX_CLOCK_FREQUENCY, UINT, 0 },
        { CL_DEVICE_ADDRESS_BITS, UINT, 64 },
        { CL_DEVICE_IMAGE_SUPPORT, UINT, CL_FALSE },
        { CL_DEVICE_MAX_READ_IMAGE_ARGS, UINT, 0 },
        { CL_DEVICE_MAX_WRITE_IMAGE_ARGS, UINT, 0 },
        { CL_DEVICE_MAX_READ_WRITE_IMAGE_ARGS, UINT, 0 },
        { CL_DEVICE_IMAGE2D_MAX_WIDTH, SIZE, 0 },
        { CL_DEVICE_IMAGE2D_MAX_HEIGHT, SIZE, 0 },
        { CL_DEVICE_IMAGE3D_MAX_WIDTH, SIZE, 0 },
        { CL_DEVICE_IMAGE3D_MAX_HEIGHT, SIZE, 0 },
        { CL_DEVICE_IMAGE3D_MAX_DEPTH, SIZE, 0 },
        { CL_DEVICE_IMAGE_MAX_BUFFER_SIZE, SIZE, 0 },
        { CL_DEVICE_IMAGE_MAX_ARRAY_SIZE, SIZE, 0 },
        { CL_DEVICE_IMAGE_PITCH_ALIGNMENT, UINT, 0 },
        { CL_DEVICE_IMAGE_BASE_ADDRESS_ALIGNMENT, UINT, 0 },
        { CL_DEVICE_MAX_SAMPLERS, UINT, 0 },
        { CL_DEVICE_MAX_PARAMETER_SIZE, SIZE, 1024 },
        { CL_DEVICE_MEM_BASE_ADDR_ALIGN, UINT, DEVINFO_ALIGN * 8 },
        { CL_DEVICE_MIN_DATA_TYPE_ALIGN_SIZE, UINT, DEVINFO_ALIGN },
        { CL_DEVICE_SINGLE_FP_CONFIG, ULONG,
          CL_FP_DENORM | CL_FP_INF_NAN | CL_FP_ROUND_TO_NEAREST },
        { CL_DEVICE_DOUBLE_FP_CONFIG, ULONG, 0 },
        { CL_DEVICE_GLOBAL_MEM_CACHE_TYPE, UINT, CL_NONE },
        { CL_DEVICE_GLOBAL_MEM_CACHELINE_SIZE, UINT, 0 },
        { CL_DEVICE_GLOBAL_MEM_CACHE_SIZE, ULONG, 0 },
        { CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, ULONG, 64 << 10 },
        { CL_DEVICE_MAX_CONSTANT_ARGS, UINT, 8 },
        { CL_DEVICE_MAX_GLOBAL_VARIABLE_SIZE, SIZE, 0 },
        { CL_DEVICE_GLOBAL_VARIABLE_PREFERRED_TOTAL_SIZE, SIZE, 0 },
        { CL_DEVICE_LOCAL_MEM_TYPE, UINT, CL_GLOBAL },
        { CL_DEVICE_LOCAL_MEM_SIZE, ULONG, 32 << 10 },
        { CL_DEVICE_ERROR_CORRECTION_SUPPORT, UINT, CL_FALSE },
        { CL_DEVICE_HOST_UNIFIED_MEMORY, UINT, CL_TRUE },
        { CL_DEVICE_PROFILING_TIMER_RESOLUTION, SIZE, 1 },
        { CL_DEVICE_ENDIAN_LITTLE, UINT, CL_TRUE },
        { CL_DEVICE_AVAILABLE, UINT, CL_TRUE },
        { CL_DEVICE_COMPILER_AVAILABLE, UINT, CL_FALSE },
        { CL_DEVICE_LINKER_AVAILABLE, UINT, CL_FALSE },
        { CL_DEVICE_EXECUTION_CAPABILITIES, ULONG, CL_EXEC_KERNEL },
        { CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, ULONG, DEVINFO_QUEUE_PROPS },
        { CL_DEVICE_QUEUE_ON_DEVICE_PROPERTIES, ULONG, 0 },
        { CL_DEVICE_QUEUE_ON_DEVICE_PREFERRED_SIZE, UINT, 0 },
        { CL_DEVICE_QUEUE_ON_DEVICE_MAX_SIZE, UINT, 0 },
        { CL_DEVICE_MAX_ON_DEVICE_QUEUES, UINT, 0 },
        { CL_DEVICE_MAX_ON_DEVICE_EVENTS, UINT, 0 },
        { CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES, ULONG, 0 },
        { CL_DEVICE_PARENT_DEVICE, SIZE, 0 },
        { CL_DEVICE_PARTITION_MAX_SUB_DEVICES, UINT, 0 },
        { CL_DEVICE_PARTITION_PROPERTIES, SIZE, 0 },
        { CL_DEVICE_PARTITION_AFFINITY_DOMAIN, ULONG, 0 },
        { CL_DEVICE_REFERENCE_COUNT, UINT, 1 },
        { CL_DEVICE_PREFERRED_INTEROP_USER_SYNC, UINT, CL_TRUE },
        { CL_DEVICE_PRINTF_BUFFER_SIZE, SIZE, 0 },
        { CL_DEVICE_MAX_PIPE_ARGS, UINT, 0 },
        { CL_DEVICE_PIPE_MAX_ACTIVE_RESERVATIONS, UINT, 0 },
        { CL_DEVICE_PIPE_MAX_PACKET_SIZE, UINT, 0 },
        { CL_DEVICE_PIPE_SUPPORT, UINT, CL_FALSE },
        { CL_DEVICE_PREFERRED_PLATFORM_ATOMIC_ALIGNMENT, UINT, 0 },
        { CL_DEVICE_PREFERRED_GLOBAL_ATOMIC_ALIGNMENT, UINT, 0 },
        { CL_DEVICE_PREFERRED_LOCAL_ATOMIC_ALIGNMENT, UINT, 0 },
        { CL_DEVICE_MAX_NUM_SUB_GROUPS, UINT, 0 },
        { CL_DEVICE_SUB_GROUP_INDEPENDENT_FORWARD_PROGRESS, UINT, CL_FALSE },
        { CL_DEVICE_NUMERIC_VERSION, UINT, DEVICE_VERSION },
        { CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES, ULONG,
          CL_DEVICE_ATOMIC_ORDER_RELAXED | CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP },
        { CL_DEVICE_ATOMIC_FENCE_CAPABILITIES, ULONG,
          CL_DEVICE_ATOMIC_ORDER_RELAXED | CL_DEVICE_ATOMIC_ORDER_ACQ_REL |
                  CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP },
        { CL_DEVICE_NON_UNIFORM_WORK_GROUP_SUPPORT, UINT, CL_TRUE },
        { CL_DEVICE_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, SIZE, 1 },
        { CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT, UINT, CL_FALSE },
        { CL_DEVICE_GENERIC_ADDRESS_SPACE_SUPPORT, UINT, CL_FALSE },
};

static const struct {
        cl_device_info key;
        const char *text;
} texts[] = {
        { CL_DRIVER_VERSION, SPANCL_VERSION },
        { CL_DEVICE_PROFILE, "EMBEDDED_PROFILE" },
        { CL_DEVICE_OPENCL_C_VERSION, "OpenCL C 1.2" },
        { CL_DEVICE_IL_VERSION, "" },
        { CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED, "" },
};

/* The value of numbers[i], which differs on devices that run compiled kernels. */
static uint64_t number_of(size_t i, const struct devinfo_params *p)
{
        static const struct {
                cl_device_info key;
                uint64_t value;
        } compiled[] = {
                { CL_DEVICE_ADDRESS_BITS, 32 },
                { CL_DEVICE_LOCAL_MEM_SIZE, RISCV_LOCAL_SIZE },
                { CL_DEVICE_PRINTF_BUFFER_SIZE, RISCV_OUTPUT_SIZE },
                { CL_DEVICE_WORK_GROUP_COLLECTIVE_FUNCTIONS_SUPPORT, CL_TRUE },
                { CL_DEVICE_ATOMIC_MEMORY_CAPABILITIES,
                  CL_DEVICE_ATOMIC_ORDER_RELAXED | CL_DEVICE_ATOMIC_ORDER_ACQ_REL |
                          CL_DEVICE_ATOMIC_ORDER_SEQ_CST | CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP |
                          CL_DEVICE_ATOMIC_SCOPE_DEVICE },
                { CL_DEVICE_ATOMIC_FENCE_CAPABILITIES,
                  CL_DEVICE_ATOMIC_ORDER_RELAXED | CL_DEVICE_ATOMIC_ORDER_ACQ_REL |
                          CL_DEVICE_ATOMIC_ORDER_SEQ_CST | CL_DEVICE_ATOMIC_SCOPE_WORK_GROUP |
                          CL_DEVICE_ATOMIC_SCOPE_DEVICE },
        };
        cl_device_info key = numbers[i].key;
        if (key == CL_DEVICE_MAX_WORK_GROUP_SIZE && p->group_max)
                return p->group_max;
        if (p->rv32im && (key == CL_DEVICE_COMPILER_AVAILABLE || key == CL_DEVICE_LINKER_AVAILABLE))
                return p->compiler;
        for (size_t n = 0; p->rv32im && n < array_size(compiled); n++)
                if (compiled[n].key == key)
                        return compiled[n].value;
        return numbers[i].value;
}

static void emit_numbers(struct emit *e, const struct devinfo_params *p)
{
        for (size_t i = 0; i < array_size(numbers); i++) {
                uint64_t value = number_of(i, p);
                size_t size = value;
                cl_ulong wide = value;
                if (numbers[i].kind == UINT)
                        emit_uint(e, numbers[i].key, (cl_uint)value);
                else if (numbers[i].kind == ULONG)
                        emit_data(e, numbers[i].key, &wide, sizeof(wide));
                else
                        emit_data(e, numbers[i].key, &size, sizeof(size));
        }
}

static void emit_built_in_kernels(struct emit *e, const struct devinfo_params *p)
{
        struct buf names = { 0 }, versions = { 0 };
        for (size_t i = 0; e->status >= 0 && i < p->kernel_count; i++) {
                const struct registry_kernel *k = p->kernels[i];
                cl_name_version v = { .version = CL_MAKE_VERSION(1, 0, 0) };
                snprintf(v.name, sizeof(v.name), "%s", k->name);
                if (i)
                        e->status = buf_put(&names, ";", 1);
                if (e->status >= 0)
                        e->status = buf_put(&names, k->name, strlen(k->name));
                if (e->status >= 0)
                        e->status = buf_put(&versions, &v, sizeof(v));
        }
        if (e->status >= 0)
                e->status = buf_put(&names, "", 1);
        emit_data(e, CL_DEVICE_BUILT_IN_KERNELS, names.data, names.size);
        emit_data(e, CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION, versions.data, versions.size);
        buf_fini(&names);
        buf_fini(&versions);
}

static void emit_names(struct emit *e, cl_device_info key, const char *const *names, size_t count,
                       cl_version version)
{
        cl_name_version list[8] = { 0 };
        for (size_t i = 0; i < count; i++) {
                list[i].version = version;
                snprintf(list[i].name, sizeof(list[i].name), "%s", names[i]);
        }
        emit_data(e, key, list, count * sizeof(*list));
}

/* Emit the versions, extensions and features of OpenCL C that programs can use. */
static void emit_language(struct emit *e, bool compiled)
{
        static const cl_name_version versions[] = { { CL_MAKE_VERSION(1, 2, 0), "OpenCL C" },
                                                    { CL_MAKE_VERSION(3, 0, 0), "OpenCL C" },
                                                    { CL_MAKE_VERSION(1, 1, 0), "OpenCL C" },
                                                    { CL_MAKE_VERSION(1, 0, 0), "OpenCL C" } };
        static const char *const extensions[] = {
                "cl_khr_global_int32_base_atomics", "cl_khr_global_int32_extended_atomics",
                "cl_khr_local_int32_base_atomics",  "cl_khr_local_int32_extended_atomics",
                "cl_khr_byte_addressable_store",    "cles_khr_int64"
        };
        static const char *const features[] = { "__opencl_c_work_group_collective_functions",
                                                "__opencl_c_atomic_order_acq_rel",
                                                "__opencl_c_atomic_order_seq_cst",
                                                "__opencl_c_atomic_scope_device",
                                                "__opencl_c_int64" };
        char text[512] = "";
        for (size_t i = 0, n = 0; compiled && i < array_size(extensions); i++)
                n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s", i ? " " : "",
                                      extensions[i]);
        emit_str(e, CL_DEVICE_EXTENSIONS, text);
        emit_names(e, CL_DEVICE_EXTENSIONS_WITH_VERSION, extensions,
                   compiled ? array_size(extensions) : 0, CL_MAKE_VERSION(1, 0, 0));
        emit_names(e, CL_DEVICE_OPENCL_C_FEATURES, features, compiled ? array_size(features) : 0,
                   CL_MAKE_VERSION(3, 0, 0));
        emit_data(e, CL_DEVICE_OPENCL_C_ALL_VERSIONS, versions,
                  compiled ? sizeof(versions) : sizeof(*versions));
}

void devinfo_device(struct emit *e, const struct devinfo_params *p)
{
        emit_numbers(e, p);
        for (size_t i = 0; i < array_size(texts); i++)
                emit_str(e, texts[i].key, texts[i].text);
        emit_language(e, p->rv32im);
        emit_str(e, CL_DEVICE_NAME, p->name);
        emit_str(e, CL_DEVICE_VENDOR, p->vendor);
        emit_str(e, CL_DEVICE_VERSION, p->version);
        emit_uint(e, CL_DEVICE_VENDOR_ID, p->vendor_id);
        emit_uint(e, CL_DEVICE_MAX_COMPUTE_UNITS, p->compute_units);
        cl_device_svm_capabilities svm = p->svm ? CL_DEVICE_SVM_COARSE_GRAIN_BUFFER : 0;
        emit_data(e, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &p->buffer_max, sizeof(p->buffer_max));
        emit_data(e, CL_DEVICE_GLOBAL_MEM_SIZE, &p->memory, sizeof(p->memory));
        emit_data(e, CL_DEVICE_SVM_CAPABILITIES, &svm, sizeof(svm));

        size_t most = p->group_max ? p->group_max : DEVINFO_GROUP_MAX;
        size_t items[3] = { most, most, most };
        emit_data(e, CL_DEVICE_MAX_WORK_ITEM_SIZES, items, sizeof(items));
        emit_data(e, CL_DEVICE_PARTITION_TYPE, NULL, 0);
        emit_data(e, CL_DEVICE_ILS_WITH_VERSION, NULL, 0);
        emit_built_in_kernels(e, p);

        emit_u64(e, INFO_DEVICE_DOMAIN, p->domain);
        emit_u64(e, INFO_DEVICE_FLAGS, DEVICE_FLAG_LITTLE);
        emit_u64(e, INFO_DEVICE_SVM, p->svm ? INFO_SVM_FOLLOWS : INFO_SVM_NONE);
        size_t mark = emit_begin(e, INFO_DEVICE_PLATFORM);
        emit_str(e, CL_PLATFORM_NAME, p->platform);
        emit_str(e, CL_PLATFORM_VENDOR, "SpanCL");
        emit_str(e, CL_PLATFORM_VERSION, "OpenCL 3.0 SpanCL " SPANCL_VERSION);
        emit_str(e, CL_PLATFORM_EXTENSIONS, "");
        emit_str(e, CL_PLATFORM_PROFILE, "EMBEDDED_PROFILE");
        emit_end(e, mark);
}

static void emit_arg(struct emit *e, const struct registry_arg *a)
{
        bool constant = a->buffer && a->access == REGISTRY_IN;
        cl_ulong qualifier = constant ? CL_KERNEL_ARG_TYPE_CONST : CL_KERNEL_ARG_TYPE_NONE;
        size_t mark = emit_begin(e, INFO_KERNEL_ARG);
        emit_uint(e, CL_KERNEL_ARG_ADDRESS_QUALIFIER,
                  a->buffer ? CL_KERNEL_ARG_ADDRESS_GLOBAL : CL_KERNEL_ARG_ADDRESS_PRIVATE);
        emit_uint(e, CL_KERNEL_ARG_ACCESS_QUALIFIER, CL_KERNEL_ARG_ACCESS_NONE);
        emit_str(e, CL_KERNEL_ARG_TYPE_NAME, a->type);
        emit_data(e, CL_KERNEL_ARG_TYPE_QUALIFIER, &qualifier, sizeof(qualifier));
        emit_str(e, CL_KERNEL_ARG_NAME, a->name);
        emit_u64(e, INFO_ARG_KIND, a->buffer ? ARG_BUFFER : ARG_VALUE);
        emit_u64(e, INFO_ARG_SIZE, a->buffer ? 8 : a->size);
        emit_end(e, mark);
}

void devinfo_kernel(struct emit *e, const struct registry_kernel *k, const unsigned *devices,
                    size_t device_count)
{
        size_t mark = emit_begin(e, INFO_KERNEL);
        emit_str(e, CL_KERNEL_FUNCTION_NAME, k->name);
        emit_uint(e, CL_KERNEL_NUM_ARGS, registry_arg_count(k));
        emit_str(e, CL_KERNEL_ATTRIBUTES, "");
        emit_u64(e, INFO_ARG_NATIVE_INFO, 1);
        for (unsigned i = 0; i < registry_arg_count(k); i++)
                emit_arg(e, &k->args[i]);

        for (size_t i = 0; i < device_count; i++) {
                size_t group = DEVINFO_GROUP_MAX, one = 1, none[3] = { 0, 0, 0 };
                size_t work[3] = { SIZE_MAX, SIZE_MAX, SIZE_MAX };
                cl_ulong zero = 0;
                size_t device = emit_begin(e, INFO_KERNEL_DEVICE);
                emit_u64(e, INFO_BUILD_DEVICE, devices[i]);
                emit_data(e, CL_KERNEL_WORK_GROUP_SIZE, &group, sizeof(group));
                emit_data(e, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, none, sizeof(none));
                emit_data(e, CL_KERNEL_LOCAL_MEM_SIZE, &zero, sizeof(zero));
                emit_data(e, CL_KERNEL_PREFERRED_WORK_GROUP_SIZE_MULTIPLE, &one, sizeof(one));
                emit_data(e, CL_KERNEL_PRIVATE_MEM_SIZE, &zero, sizeof(zero));
                emit_data(e, CL_KERNEL_GLOBAL_WORK_SIZE, work, sizeof(work));
                emit_end(e, device);
        }
        emit_end(e, mark);
}
