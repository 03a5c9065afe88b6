#include "core/device.h"

#include <CL/cl_ext.h>

#include "base/mem.h"
#include "core/client.h"
#include "core/command/khr_command_buffer.h"
#include "core/device_place.h"
#include "core/handle.h"
#include "core/link/idle.h"
#include "core/link/request.h"
#include "core/link/server.h"
#include "core/memory/content_size.h"
#include "core/memory/usm.h"
#include "core/progress.h"
#include "core/status.h"
#include "os/vm.h"
#include "proto/info.h"
#include "transport/address.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "values travel as a little-endian host returns them (proto/info.h)");
_Static_assert(sizeof(size_t) == 8 || sizeof(size_t) == 4, "info_put_local knows these");

/* No memory object is larger: 1 GiB for a 32-bit application, which is what OpenCL asks for, and may have that twice
 * (core/memory/view.h). */
#define OBJECT_MAX (sizeof(size_t) == 8 ? UINT64_MAX : (cl_ulong)1 << 30)

/* ---- masks ---------------------------------------------------------------------------------- */

enum mask_how {
        MASK_DROP, /* not answered: the extension that it belongs to is not offered, or api does */
        MASK_ZERO, /* as many zero bytes */
        MASK_OBJECT, /* the size of a memory object */
        MASK_BITS,   /* bits are cleared */
        MASK_SVM, /* the kind of shared virtual memory that the client offers, if the device has it here */
        MASK_PARTITIONS, /* ways to divide a device */
        MASK_VERSION,    /* a text that begins with the version */
        MASK_NUMBER,     /* cl_version */
        MASK_NAMES,      /* extensions in a text */
        MASK_VERSIONS,   /* extensions as cl_name_version */
        MASK_FEATURES,   /* OpenCL C features, and other names, as cl_name_version */
        MASK_TEXT, /* left out if it does not end with a NUL, on which applications rely; also several texts */
};

static const struct mask {
        cl_device_info name;
        enum mask_how how;
        cl_bitfield bits;
} masks[] = {
        /* Handles and counts are the client's own. */
        { CL_DEVICE_PLATFORM, MASK_DROP },
        { CL_DEVICE_PARENT_DEVICE, MASK_DROP },
        { CL_DEVICE_REFERENCE_COUNT, MASK_DROP },
        { CL_DEVICE_AVAILABLE, MASK_DROP },
        { CL_DEVICE_SVM_CAPABILITIES, MASK_SVM, ~(cl_bitfield)CL_DEVICE_SVM_COARSE_GRAIN_BUFFER },

        /* The host's memory is on the other side of a network. */
        { CL_DEVICE_HOST_UNIFIED_MEMORY, MASK_ZERO },

        /* A function of the application can't run elsewhere. */
        { CL_DEVICE_EXECUTION_CAPABILITIES, MASK_BITS, CL_EXEC_NATIVE_KERNEL },

        /* Only in the ways that OpenCL has itself. */
        { CL_DEVICE_PARTITION_PROPERTIES, MASK_PARTITIONS },

        /* The address space of a 32-bit application is smaller than that of a device. */
        { CL_DEVICE_MAX_MEM_ALLOC_SIZE, MASK_OBJECT },
        { CL_DEVICE_MAX_CONSTANT_BUFFER_SIZE, MASK_OBJECT },

        /* The entry points are those of OpenCL 3.0. */
        { CL_DEVICE_VERSION, MASK_VERSION },
        { CL_DEVICE_NUMERIC_VERSION, MASK_NUMBER },

        /* Lists of offered names. */
        { CL_DEVICE_EXTENSIONS, MASK_NAMES },
        { CL_DEVICE_EXTENSIONS_WITH_VERSION, MASK_VERSIONS },
        { CL_DEVICE_OPENCL_C_FEATURES, MASK_FEATURES },
        { CL_DEVICE_OPENCL_C_ALL_VERSIONS, MASK_FEATURES },
        { CL_DEVICE_ILS_WITH_VERSION, MASK_FEATURES },
        { CL_DEVICE_BUILT_IN_KERNELS_WITH_VERSION, MASK_FEATURES },

        { CL_DEVICE_NAME, MASK_TEXT },
        { CL_DEVICE_VENDOR, MASK_TEXT },
        { CL_DRIVER_VERSION, MASK_TEXT },
        { CL_DEVICE_PROFILE, MASK_TEXT },
        { CL_DEVICE_OPENCL_C_VERSION, MASK_TEXT },
        { CL_DEVICE_BUILT_IN_KERNELS, MASK_TEXT },
        { CL_DEVICE_IL_VERSION, MASK_TEXT },
        { CL_DEVICE_LATEST_CONFORMANCE_VERSION_PASSED, MASK_TEXT },
        { 0x12B9, MASK_TEXT }, /* cl_khr_spirv_queries: extended instruction sets */
        { 0x12BA, MASK_TEXT }, /* extensions */

        { CL_DEVICE_PCI_BUS_INFO_KHR, MASK_DROP }, /* core/device_place.c */

        /* Command buffers are ours, whatever the device has. */
        { CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR, MASK_DROP },
        { CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR, MASK_DROP },
        { CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR, MASK_DROP },
        { CL_DEVICE_COMMAND_BUFFER_NUM_SYNC_DEVICES_KHR, MASK_DROP },
        { CL_DEVICE_COMMAND_BUFFER_SYNC_DEVICES_KHR, MASK_DROP },
        { CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR, MASK_DROP },

        /* So is unified shared memory. */
        { CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, MASK_DROP },
        { CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL, MASK_DROP },
        { CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL, MASK_DROP },
        { CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL, MASK_DROP },
        { CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL, MASK_DROP },

        /* Queries of extensions that are not offered, by number where older headers lack the name. */
        { 0x2031, MASK_DROP }, /* cl_khr_terminate_context */
        { 0x204C, MASK_DROP }, /* cl_khr_semaphore: types */
        { 0x204D, MASK_DROP }, /* import handle types */
        { 0x204E, MASK_DROP }, /* export handle types */
        { 0x204F, MASK_DROP }, /* cl_khr_external_memory: import handle types */
        { 0x2052, MASK_DROP }, /* handle types that assume linear images */
        { 0x4054, MASK_DROP }, /* cl_ext_device_fission: parent */
        { 0x4055, MASK_DROP }, /* partition types */
        { 0x4056, MASK_DROP }, /* affinity domains */
        { 0x4057, MASK_DROP }, /* reference count */
        { 0x4058, MASK_DROP }, /* partition style */
        { 0x40B6, MASK_DROP }, /* cl_arm_shared_virtual_memory */
        { 0x40E0, MASK_DROP }, /* cl_khr_spir */
        { 0x4104, MASK_DROP }, /* cl_intel_simultaneous_sharing: interops */
        { 0x4105, MASK_DROP }, /* their number */
        { 0x417E, MASK_DROP }, /* cl_intel_planar_yuv: width */
        { 0x417F, MASK_DROP }, /* height */
        { 0x418B, MASK_DROP }, /* cl_intel_command_queue_families */
        { 0x4501, MASK_DROP }, /* PoCL's remote devices: core/link/remote_info.c answers */
        { 0x4503, MASK_DROP }, /* the server's address */
        { 0x4504, MASK_DROP }, /* its port */
        { 0x5000, MASK_DROP }, /* cl_ext_buffer_device_address */
};

/* Extensions that change the language or describe the device, so that the API needs only queries,
 * or functions that it has. Others are not offered. */
static const char *const extensions[] = {
        "cl_khr_3d_image_writes",
        "cl_khr_async_work_group_copy_fence",
        "cl_khr_byte_addressable_store",
        "cl_khr_depth_images",
        "cl_khr_device_enqueue_local_arg_types",
        "cl_khr_expect_assume",
        "cl_khr_extended_async_copies",
        "cl_khr_extended_bit_ops",
        "cl_khr_extended_versioning",
        "cl_khr_fp16",
        "cl_khr_fp64",
        "cl_khr_global_int32_base_atomics",
        "cl_khr_global_int32_extended_atomics",
        "cl_khr_il_program",
        "cl_khr_image2d_from_buffer",
        "cl_khr_int64_base_atomics",
        "cl_khr_int64_extended_atomics",
        "cl_khr_integer_dot_product",
        "cl_khr_kernel_clock",
        "cl_khr_local_int32_base_atomics",
        "cl_khr_local_int32_extended_atomics",
        "cl_khr_select_fprounding_mode",
        "cl_khr_spirv_extended_debug_info",
        "cl_khr_spirv_linkonce_odr",
        "cl_khr_spirv_no_integer_wrap_decoration",
        "cl_khr_spirv_queries",
        "cl_khr_srgb_image_writes",
        "cl_khr_subgroup_ballot",
        "cl_khr_subgroup_clustered_reduce",
        "cl_khr_subgroup_extended_types",
        "cl_khr_subgroup_named_barrier",
        "cl_khr_subgroup_non_uniform_arithmetic",
        "cl_khr_subgroup_non_uniform_vote",
        "cl_khr_subgroup_rotate",
        "cl_khr_subgroup_shuffle",
        "cl_khr_subgroup_shuffle_relative",
        "cl_khr_subgroups",
        "cl_khr_suggested_local_work_size",
        "cl_khr_work_group_uniform_arithmetic",
        "cl_ext_cxx_for_opencl",
        "cl_ext_float_atomics",
        "cl_amd_device_attribute_query",
        "cl_amd_fp64",
        "cl_amd_media_ops",
        "cl_amd_media_ops2",
        "cl_arm_core_id",
        "cl_arm_integer_dot_product_accumulate_int16",
        "cl_arm_integer_dot_product_accumulate_int8",
        "cl_arm_integer_dot_product_accumulate_saturate_int8",
        "cl_arm_integer_dot_product_int8",
        "cl_arm_non_uniform_work_group_size",
        "cl_intel_bfloat16",
        "cl_intel_bfloat16_conversions",
        "cl_intel_device_attribute_query",
        "cl_intel_media_block_io",
        "cl_intel_required_subgroup_size",
        "cl_intel_sigmoid",
        "cl_intel_spirv_subgroups",
        "cl_intel_split_work_group_barrier",
        "cl_intel_subgroup_local_block_io",
        "cl_intel_subgroup_matrix_multiply_accumulate",
        "cl_intel_subgroups",
        "cl_intel_subgroups_char",
        "cl_intel_subgroups_long",
        "cl_intel_subgroups_short",
        "cl_intel_vec_len_hint",
        "cl_nv_compiler_options",
        "cl_nv_device_attribute_query",
        "cl_nv_kernel_attribute",
        "cl_nv_pragma_unroll",
};

/* Extensions that every device has here, because the client implements them. The first one needs
 * shared virtual memory; it stands at the front so that an answer can leave it out. The last one needs
 * a place on a PCI bus. */
static const cl_name_version extensions_own[] = {
        { USM_VERSION, USM_NAME },
        { CL_MAKE_VERSION(1, 0, 0), "cl_khr_create_command_queue" },
        { CONTENT_SIZE_VERSION, "cl_pocl_content_size" },
        { COMMAND_BUFFER_VERSION, "cl_khr_command_buffer" },
        { COMMAND_BUFFER_MULTI_DEVICE_VERSION, "cl_khr_command_buffer_multi_device" },
        { MUTABLE_DISPATCH_VERSION, "cl_khr_command_buffer_mutable_dispatch" },
        { CL_MAKE_VERSION(1, 0, 0), "cl_khr_device_uuid" },
        { CL_MAKE_VERSION(1, 0, 0), "cl_khr_pci_bus_info" },
};

/* The properties of a device that decide about some of these. */
struct own {
        bool svm, usm, pci;
};

static size_t own_count(struct own own)
{
        return array_size(extensions_own) - !own.pci;
}

/* Features of OpenCL C whose objects can't be made. */
static const char *const features_missing[] = {
        "__opencl_c_program_scope_host_pipe",
};

static bool name_in(const char *const *list, size_t count, const char *name, size_t size)
{
        for (size_t i = 0; i < count; i++) {
                if (strlen(list[i]) == size && !memcmp(list[i], name, size))
                        return true;
        }
        return false;
}

static int put_name(struct buf *out, const char *name, size_t size)
{
        int r = out->size ? buf_put(out, " ", 1) : 0;
        return r ? r : buf_put(out, name, size);
}

static int mask_names(struct buf *out, cl_device_info name, struct bytes v, struct own own)
{
        struct buf kept = { 0 };
        const char *p = v.data;
        size_t left = v.size;
        int r = own.usm ? put_name(&kept, USM_NAME, strlen(USM_NAME)) : 0;
        while (left && !r) {
                size_t n = 0;
                while (n < left && p[n] && p[n] != ' ')
                        n++;
                if (name_in(extensions, array_size(extensions), p, n))
                        r = put_name(&kept, p, n);
                if (n < left)
                        n++;
                p += n;
                left -= n;
        }
        for (size_t i = 1; i < own_count(own) && !r; i++)
                r = put_name(&kept, extensions_own[i].name, strlen(extensions_own[i].name));
        if (!r)
                r = buf_put(&kept, "", 1);
        if (!r)
                r = info_put(out, name, kept.data, kept.size);
        buf_fini(&kept);
        return r;
}

static int mask_versions(struct buf *out, cl_device_info name, struct bytes v, bool feature,
                         struct own own)
{
        const cl_name_version *in = v.data;
        struct buf kept = { 0 };
        int r = own.usm ? buf_put(&kept, extensions_own, sizeof(extensions_own[0])) : 0;
        for (size_t i = 0; i < v.size / sizeof(*in) && !r; i++) {
                size_t n = strnlen(in[i].name, sizeof(in[i].name));
                bool keep = feature ? !name_in(features_missing, array_size(features_missing),
                                               in[i].name, n)
                                    : name_in(extensions, array_size(extensions), in[i].name, n);
                if (keep && n < sizeof(in[i].name))
                        r = buf_put(&kept, &in[i], sizeof(in[i]));
        }
        if (!r && !feature)
                r = buf_put(&kept, &extensions_own[1],
                            (own_count(own) - 1) * sizeof(extensions_own[0]));
        if (!r)
                r = info_put(out, name, kept.data, kept.size);
        buf_fini(&kept);
        return r;
}

static bool is_ended(struct bytes v)
{
        return !v.size || !((const char *)v.data)[v.size - 1];
}

/* "OpenCL<space><major_version.minor_version><space><vendor-specific information>" */
static int mask_version(struct buf *out, cl_device_info name, struct bytes v)
{
        static const char ours[] = "OpenCL 3.0";
        enum { PREFIX = sizeof(ours) - 1 };
        const char *text = v.data;
        struct buf kept = { 0 };
        bool later = v.size > PREFIX && !memcmp(text, ours, 7) &&
                     (text[PREFIX] == ' ' || !text[PREFIX]) && memcmp(text, ours, PREFIX) > 0;
        int r = buf_put(&kept, text, v.size);
        if (!r && later)
                memcpy(kept.data, ours, PREFIX);
        if (!r)
                r = info_put(out, name, kept.data, kept.size);
        buf_fini(&kept);
        return r;
}

static int mask_number(struct buf *out, cl_device_info name, struct bytes v)
{
        cl_version version;
        if (v.size != sizeof(version))
                return 0;
        memcpy(&version, v.data, sizeof(version));
        if (version > CL_MAKE_VERSION(3, 0, 0))
                version = CL_MAKE_VERSION(3, 0, 0);
        return info_put(out, name, &version, sizeof(version));
}

static bool partition_known(cl_device_partition_property p)
{
        return p == CL_DEVICE_PARTITION_EQUALLY || p == CL_DEVICE_PARTITION_BY_COUNTS ||
               p == CL_DEVICE_PARTITION_BY_AFFINITY_DOMAIN;
}

static int mask_partitions(struct buf *out, cl_device_info name, struct bytes v)
{
        cl_device_partition_property kept[4] = { 0 }, p;
        size_t n = 0;
        for (size_t i = 0; i < v.size / sizeof(p) && n < 3; i++) {
                memcpy(&p, (const char *)v.data + i * sizeof(p), sizeof(p));
                if (partition_known(p))
                        kept[n++] = p;
        }
        /* "If the device cannot be partitioned [...] a value of 0 will be returned." */
        return info_put(out, name, kept, (n ? n : 1) * sizeof(p));
}

static int mask_object(struct buf *out, cl_device_info name, struct bytes v)
{
        cl_ulong size;
        if (v.size != sizeof(size))
                return info_put(out, name, v.data, v.size);
        memcpy(&size, v.data, sizeof(size));
        if (size > OBJECT_MAX)
                size = OBJECT_MAX;
        return info_put(out, name, &size, sizeof(size));
}

/* `v` is in the application's layout. */
static int mask_one(struct buf *out, cl_device_info name, struct bytes v, struct own own)
{
        const struct mask *m = NULL;
        for (size_t i = 0; i < array_size(masks) && !m; i++) {
                if (masks[i].name == name)
                        m = &masks[i];
        }
        if (!m)
                return info_put(out, name, v.data, v.size);

        static const char zeros[64];
        static const struct own own_none;
        cl_bitfield bits;
        switch (m->how) {
        case MASK_DROP:
                return 0;
        case MASK_ZERO:
                return info_put(out, name, zeros, v.size < sizeof(zeros) ? v.size : sizeof(zeros));
        case MASK_OBJECT:
                return mask_object(out, name, v);
        case MASK_PARTITIONS:
                return mask_partitions(out, name, v);
        case MASK_SVM:
        case MASK_BITS:
                if (v.size != sizeof(bits))
                        return 0;
                memcpy(&bits, v.data, sizeof(bits));
                bits &= ~m->bits;
                if (m->how == MASK_SVM && !own.svm)
                        bits = 0;
                return info_put(out, name, &bits, sizeof(bits));
        case MASK_VERSION:
                return is_ended(v) ? mask_version(out, name, v) : 0;
        case MASK_NUMBER:
                return mask_number(out, name, v);
        case MASK_NAMES:
                return mask_names(out, name, v, own);
        case MASK_VERSIONS:
                return mask_versions(out, name, v, false, own);
        case MASK_FEATURES:
                return mask_versions(out, name, v, true, own_none);
        case MASK_TEXT:
                return is_ended(v) ? info_put(out, name, v.data, v.size) : 0;
        }
        return 0;
}

static bool has_svm(struct bytes native)
{
        return info_u64(native, INFO_DEVICE_SVM, INFO_SVM_NONE) != INFO_SVM_NONE;
}

/* Return true if the client offers unified shared memory. It keeps a view of each allocation (core/memory/view.h). */
static bool has_usm(struct bytes native)
{
        return has_svm(native) && vm_can_map_twice();
}

/* Answer the queries that the client answers itself, whatever the device says. */
static int put_own(struct bytes native, struct buf *out)
{
        const cl_bitfield host = CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE | CL_QUEUE_PROFILING_ENABLE;
        const struct {
                cl_device_info name;
                cl_bitfield value;
        } own[] = {
                { CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR,
                  CL_COMMAND_BUFFER_CAPABILITY_KERNEL_PRINTF_KHR |
                          (info_u64(native, CL_DEVICE_DEVICE_ENQUEUE_CAPABILITIES, 0)
                                   ? CL_COMMAND_BUFFER_CAPABILITY_DEVICE_SIDE_ENQUEUE_KHR
                                   : 0) |
                          CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR |
                          CL_COMMAND_BUFFER_CAPABILITY_MULTIPLE_QUEUE_KHR },
                { CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR, 0 },
                { CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR,
                  info_u64(native, CL_DEVICE_QUEUE_PROPERTIES, 0) & host },
        };
        const struct {
                cl_device_info name;
                cl_bitfield value;
        } usm[] = {
                { CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL },
                { CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL,
                  CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL |
                          CL_UNIFIED_SHARED_MEMORY_ATOMIC_ACCESS_INTEL },
                { CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL,
                  CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL },
                { CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL,
                  CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL },
                { CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL, 0 },
        };
        int r = 0;
        for (size_t i = 0; i < array_size(own) && !r; i++)
                r = info_put(out, own[i].name, &own[i].value, sizeof(own[i].value));
        for (size_t i = 0; i < array_size(usm) && has_usm(native) && !r; i++)
                r = info_put(out, usm[i].name, &usm[i].value, sizeof(usm[i].value));
        return r;
}

int device_mask(struct bytes native, struct buf *out)
{
        struct bytes all = native;
        struct info_entry e;
        cl_device_pci_bus_info_khr pci;
        const struct own own = { has_svm(native), has_usm(native), device_place_pci(native, &pci) };
        struct buf local = { 0 };
        int r = 0;
        while (!r && info_next(&native, &e)) {
                if (e.key >= 0x10000) /* the protocol's own */
                        continue;
                local.size = 0;
                r = info_put_local(&local, e.key, e.value);
                struct bytes one = bytes_of(local.data, local.size);
                if (!r && info_next(&one, &e))
                        r = mask_one(out, e.key, e.value, own);
        }
        buf_fini(&local);
        if (r < 0)
                return r;
        r = own.pci ? info_put(out, CL_DEVICE_PCI_BUS_INFO_KHR, &pci, sizeof(pci)) : 0;
        return r ? r : put_own(all, out);
}

/* ---- the device ----------------------------------------------------------------------------- */

/* An answer of a device whose shared virtual memory can't be had beside the other servers' (core/memory/svm.h). */
static bool without_svm(cl_device_info name, bool usm, struct bytes *v)
{
        static const cl_device_svm_capabilities none;
        size_t front = 0;
        switch (name) {
        case CL_DEVICE_SVM_CAPABILITIES:
                *v = bytes_of(&none, sizeof(none));
                return true;
        case CL_DEVICE_EXTENSIONS:
                front = usm ? strlen(USM_NAME " ") : 0;
                break;
        case CL_DEVICE_EXTENSIONS_WITH_VERSION:
                front = usm ? sizeof(extensions_own[0]) : 0;
                break;
        case CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL:
        case CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL:
        case CL_DEVICE_SINGLE_DEVICE_SHARED_MEM_CAPABILITIES_INTEL:
        case CL_DEVICE_CROSS_DEVICE_SHARED_MEM_CAPABILITIES_INTEL:
        case CL_DEVICE_SHARED_SYSTEM_MEM_CAPABILITIES_INTEL:
                return false;
        default:
                break;
        }
        *v = bytes_of((const uint8_t *)v->data + front, v->size - front);
        return true;
}

int device_info(cl_device_id d, cl_device_info name, struct bytes *ret)
{
        if (name >= 0x10000 || !info_find(d->info, name, ret))
                return false;
        return d->svm || !has_svm(d->info) || without_svm(name, has_usm(d->info), ret);
}

cl_ulong device_number(cl_device_id d, cl_device_info name)
{
        struct bytes v;
        cl_ulong value = 0;
        if (device_info(d, name, &v))
                memcpy(&value, v.data, v.size < sizeof(value) ? v.size : sizeof(value));
        return value;
}

const char *device_text(cl_device_id d, cl_device_info name)
{
        struct bytes v;
        if (!device_info(d, name, &v) || !v.size || ((const char *)v.data)[v.size - 1])
                return "";
        return v.data;
}

const char *device_own_text(const struct _cl_device_id *d, unsigned key)
{
        struct bytes v;
        return info_find(d->info, key, &v) ? v.data : "";
}

bool device_list_has(const char *list, char separator, const char *name, size_t name_size)
{
        for (;;) {
                const char *end = strchrnul(list, separator);
                if (name_size && (size_t)(end - list) == name_size &&
                    !memcmp(list, name, name_size))
                        return true;
                if (!*end)
                        return false;
                list = end + 1;
        }
}

/* Copy a value that every device has. */
static int take(cl_device_id d, cl_device_info name, void *ret, size_t size)
{
        struct bytes v;
        if (!device_info(d, name, &v) || v.size != size)
                return SP_E_PROTO;
        memcpy(ret, v.data, size);
        return 0;
}

static int take_all(cl_device_id d)
{
        cl_uint dimensions, align;
        cl_uint bits = 64;
        struct bytes sizes, v;
        if (take(d, CL_DEVICE_TYPE, &d->type, sizeof(d->type)) < 0 ||
            take(d, CL_DEVICE_MAX_WORK_GROUP_SIZE, &d->max_work_group_size, sizeof(size_t)) < 0 ||
            take(d, CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, &dimensions, sizeof(dimensions)) < 0 ||
            take(d, CL_DEVICE_MEM_BASE_ADDR_ALIGN, &align, sizeof(align)) < 0 ||
            take(d, CL_DEVICE_MAX_MEM_ALLOC_SIZE, &d->max_mem_alloc_size, sizeof(cl_ulong)) < 0 ||
            take(d, CL_DEVICE_LOCAL_MEM_SIZE, &d->local_mem_size, sizeof(cl_ulong)) < 0 ||
            take(d, CL_DEVICE_MAX_PARAMETER_SIZE, &d->max_parameter_size, sizeof(size_t)) < 0 ||
            take(d, CL_DEVICE_QUEUE_PROPERTIES, &d->queue_properties, sizeof(d->queue_properties)) <
                    0)
                return SP_E_PROTO;
        if (!device_info(d, CL_DEVICE_MAX_WORK_ITEM_SIZES, &sizes))
                return SP_E_PROTO;
        d->max_work_item_dimensions = dimensions;
        if (device_info(d, CL_DEVICE_ADDRESS_BITS, &v) && v.size == sizeof(bits))
                memcpy(&bits, v.data, sizeof(bits));
        d->size_max = bits < 64 ? (1ull << bits) - 1 : UINT64_MAX;
        /* In bits, and 0 from a custom device that has no such limit. */
        d->sub_buffer_align = align < 8 ? 1 : align / 8;
        if (device_accepts(d, DEVICE_ACCEPTS_SUB_BUFFER_ORIGIN))
                d->sub_buffer_align = 1;
        d->max_buffer_size = d->max_mem_alloc_size;
        if (device_accepts(d, DEVICE_ACCEPTS_BUFFER_SIZE) && d->max_buffer_size < d->size_max)
                d->max_buffer_size = d->size_max < OBJECT_MAX ? d->size_max : OBJECT_MAX;
        for (size_t i = 0; i < 3; i++) {
                d->max_work_item_sizes[i] = 1;
                if (sizes.size >= (i + 1) * sizeof(size_t))
                        memcpy(&d->max_work_item_sizes[i],
                               (const char *)sizes.data + i * sizeof(size_t), sizeof(size_t));
        }
        return *device_text(d, CL_DEVICE_NAME) ? 0 : SP_E_PROTO;
}

/* Append the values of the protocol's own. */
static int keep_own(struct bytes info, struct buf *out)
{
        struct info_entry e;
        int r = 0;
        while (!r && info_next(&info, &e))
                if (e.key >= 0x10000)
                        r = info_put(out, e.key, e.value.data, e.value.size);
        return r;
}

int device_new(struct client *c, struct server *s, struct bytes info, cl_device_id *ret)
{
        cl_device_id d = mem_zalloc(sizeof(*d));
        if (!d)
                return SP_E_NOMEM;
        handle_init(&d->h, HANDLE_DEVICE);
        list_init(&d->link);
        d->client = c;
        d->server = s;
        d->index = (unsigned)info_u64(info, INFO_DEVICE_NUMBER, 0);
        d->domain = (unsigned)info_u64(info, INFO_DEVICE_DOMAIN, 0);
        d->svm = (enum info_svm)info_u64(info, INFO_DEVICE_SVM, INFO_SVM_NONE);
        /* Addresses that a device chooses are beyond the address space of a 32-bit application. */
        if (d->svm == INFO_SVM_OWN_ADDRESSES && sizeof(void *) < 8)
                d->svm = INFO_SVM_NONE;
        d->accepts = info_u64(info, INFO_DEVICE_ACCEPTS, 0);
        d->available = !s->drains;
        d->shown = d->present = d;
        struct address at;
        const char *address = s->spec->address;
        bool known = address && address_parse(address, &at) == 0;
        bool remote = known && at.ops->caps & TRANSPORT_HOSTS;
        const struct device_place place = { .server = server_name(s),
                                            .host = remote ? at.host : "",
                                            .identity = s->identity,
                                            .here = !known || address_is_here(&at),
                                            .number = d->index };
        int r = device_mask(info, &d->mirror);
        if (!r)
                r = device_place_put(&place, &d->mirror);
        if (!r)
                r = keep_own(info, &d->mirror);
        buf_shrink(&d->mirror);
        d->info = bytes_of(d->mirror.data, d->mirror.size);
        if (!r)
                r = take_all(d);
        if (r < 0) {
                device_free(d);
                return r;
        }
        *ret = d;
        return 0;
}

void device_free(cl_device_id d)
{
        if (!d)
                return;
        list_remove(&d->link);
        buf_fini(&d->mirror);
        handle_free(&d->h, sizeof(*d));
}

/* ---- sub-devices ---------------------------------------------------------------------------- */

void device_hold(cl_device_id d)
{
        if (d->parent)
                atomic_fetch_add(&d->h.holds, 1);
}

void device_unhold(cl_device_id d)
{
        if (!d->parent || atomic_fetch_sub(&d->h.holds, 1) != 1)
                return;
        device_unwatch(d);
        cl_device_id parent = d->parent;
        struct session *session = server_session(d->server);
        /* Without memory the server keeps the device until the session ends. */
        if (session && session_send(session, device_release, .device = d->index) == 0)
                server_kick(d->server);
        device_free(d);
        servers_unused(parent->client);
        device_unhold(parent);
}

static int sub_device_new(cl_device_id parent, struct bytes info, cl_device_id *ret)
        REQUIRES(client_held)
{
        cl_device_id d;
        int r = device_new(parent->client, parent->server, info, &d);
        if (r < 0)
                return r;
        d->parent = parent;
        /* As svm_settle decided; and one domain only may choose addresses. */
        if (d->svm != parent->svm || d->svm == INFO_SVM_OWN_ADDRESSES)
                d->svm = INFO_SVM_NONE;
        device_hold(parent);
        list_append(&parent->server->sub_devices, &d->link);
        *ret = d;
        return 0;
}

/* Make the devices of an answer. On failure none stays. */
static cl_int take_sub_devices(cl_device_id parent, struct bytes info, cl_device_id **ret,
                               cl_uint *ret_count) REQUIRES(client_held)
{
        struct info_entry e;
        cl_uint count = 0, made = 0;
        for (struct bytes b = info; info_next(&b, &e);)
                count += e.key == INFO_DEVICE;
        cl_device_id *devices = mem_zalloc(count * sizeof(*devices));
        int r = devices ? 0 : SP_E_NOMEM;
        for (struct bytes b = info; !r && info_next(&b, &e);) {
                if (e.key != INFO_DEVICE)
                        continue;
                r = sub_device_new(parent, e.value, &devices[made]);
                if (!r)
                        made++;
        }
        if (!r) {
                *ret = devices;
                *ret_count = count;
                return CL_SUCCESS;
        }
        for (cl_uint i = 0; i < made; i++)
                device_unhold(devices[i]);
        mem_free(devices);
        return status_to_cl(r);
}

bool device_is_available(const struct _cl_device_id *d)
{
        /* Perhaps nobody has looked since its connection was lost. */
        client_poll(d->client);
        return device_present(d)->available;
}

cl_device_id device_present(const struct _cl_device_id *d)
{
        return d->shown->present;
}

/* Return true for a query whose answer may change while the device stays the same. */
static bool may_change(cl_device_info name)
{
        enum { GLOBAL_FREE_MEMORY_AMD = 0x4039 };
        return name == CL_DEVICE_MAX_CLOCK_FREQUENCY || name == GLOBAL_FREE_MEMORY_AMD;
}

static bool next_fixed(struct bytes *b, struct info_entry *e)
{
        bool more;
        do
                more = info_next(b, e);
        while (more && (e->key >= 0x10000 || may_change(e->key) || device_place_gives(e)));
        return more;
}

bool device_is_same(const struct _cl_device_id *a, const struct _cl_device_id *b)
{
        struct bytes x = a->info, y = b->info;
        struct info_entry e, f;
        if (strcmp(device_own_text(a, DEVICE_OWN_NAME), device_own_text(b, DEVICE_OWN_NAME)) != 0 ||
            strcmp(device_own_text(a, DEVICE_OWN_VENDOR), device_own_text(b, DEVICE_OWN_VENDOR)) !=
                    0)
                return false;
        for (;;) {
                bool more = next_fixed(&x, &e);
                if (more != next_fixed(&y, &f))
                        return false;
                if (!more)
                        return info_u64(a->info, INFO_DEVICE_SVM, INFO_SVM_NONE) ==
                               info_u64(b->info, INFO_DEVICE_SVM, INFO_SVM_NONE);
                if (e.key != f.key || e.value.size != f.value.size ||
                    memcmp(e.value.data, f.value.data, e.value.size) != 0)
                        return false;
        }
}

cl_int device_partition(cl_device_id d, const cl_device_partition_property *properties,
                        size_t property_count, cl_device_id **ret, cl_uint *ret_count)
{
        struct client *c = d->client;
        devices_begin_use(c, &d, 1);
        d = device_present(d);
        struct session *session = server_session(d->server);
        struct request q = { 0 };
        uint64_t values[WIRE_DEVICES_MAX];
        if (!session)
                return CL_DEVICE_NOT_AVAILABLE;
        if (property_count > WIRE_DEVICES_MAX)
                return CL_INVALID_DEVICE_PARTITION_COUNT;
        for (size_t i = 0; i < property_count; i++)
                values[i] = (uint64_t)properties[i];
        int r = request_begin(c, d->server, &q);
        if (r < 0)
                return status_to_cl(r);
        if (session_send(session, device_partition, .request = q.id, .device = d->index,
                         .properties = { values, property_count }) < 0)
                request_done(c, q.id, CL_OUT_OF_HOST_MEMORY, (struct bytes){ 0 });
        c->sessions.waiters++; /* no session ends as unused meanwhile */
        request_wait(c, &q);
        c->sessions.waiters--;
        cl_int status = q.status;
        if (status == CL_SUCCESS)
                status = take_sub_devices(d, bytes_of(q.info.data, q.info.size), ret, ret_count);
        buf_fini(&q.info);
        return status;
}
