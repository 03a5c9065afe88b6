/* Declarations of cl_khr_command_buffer 0.9.8, _multi_device 0.9.2 and _mutable_dispatch 0.9.5. All
 * are provisional: system headers have none of it, or other versions whose functions and structs
 * differ. So the types of handles and values are declared here again, which C allows. Structs and
 * functions have names of our own, and constants have their final values. */
#ifndef SPANCL_CORE_KHR_COMMAND_BUFFER_H
#define SPANCL_CORE_KHR_COMMAND_BUFFER_H

#include <CL/cl.h>
#include <CL/cl_ext.h>

#define COMMAND_BUFFER_VERSION              CL_MAKE_VERSION(0, 9, 8)
#define COMMAND_BUFFER_MULTI_DEVICE_VERSION CL_MAKE_VERSION(0, 9, 2)
#define MUTABLE_DISPATCH_VERSION            CL_MAKE_VERSION(0, 9, 5)

typedef cl_bitfield cl_device_command_buffer_capabilities_khr;
typedef struct _cl_command_buffer_khr *cl_command_buffer_khr;
typedef cl_uint cl_sync_point_khr;
typedef cl_uint cl_command_buffer_info_khr;
typedef cl_uint cl_command_buffer_state_khr;
typedef cl_properties cl_command_buffer_properties_khr;
typedef cl_bitfield cl_command_buffer_flags_khr;
typedef struct _cl_mutable_command_khr *cl_mutable_command_khr;
typedef cl_bitfield cl_mutable_dispatch_fields_khr;
typedef cl_uint cl_mutable_command_info_khr;
typedef cl_bitfield cl_mutable_dispatch_asserts_khr;

/* cl_command_properties_khr, which an old header has under another name. */
typedef cl_properties command_property;

struct mutable_dispatch_arg {
        cl_uint arg_index;
        size_t arg_size;
        const void *arg_value;
};

struct mutable_dispatch_exec_info {
        cl_uint param_name;
        size_t param_value_size;
        const void *param_value;
};

struct mutable_dispatch_config {
        cl_mutable_command_khr command;
        cl_uint num_args, num_svm_args, num_exec_infos, work_dim;
        const struct mutable_dispatch_arg *arg_list, *arg_svm_list;
        const struct mutable_dispatch_exec_info *exec_info_list;
        const size_t *global_work_offset, *global_work_size, *local_work_size;
};

/* Values that some header has otherwise. */
#undef CL_COMMAND_BUFFER_STATE_RECORDING_KHR
#undef CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR
#undef CL_COMMAND_BUFFER_STATE_FINALIZED_KHR
#undef CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR
#define CL_COMMAND_BUFFER_STATE_RECORDING_KHR         0
#define CL_COMMAND_BUFFER_STATE_EXECUTABLE_KHR        1
#define CL_COMMAND_BUFFER_STATE_FINALIZED_KHR         2
#define CL_STRUCTURE_TYPE_MUTABLE_DISPATCH_CONFIG_KHR 0

/* The same in all headers that have them. */
#ifndef CL_INVALID_COMMAND_BUFFER_KHR
#define CL_INVALID_COMMAND_BUFFER_KHR -1138
#endif
#ifndef CL_INVALID_SYNC_POINT_WAIT_LIST_KHR
#define CL_INVALID_SYNC_POINT_WAIT_LIST_KHR -1139
#endif
#ifndef CL_INCOMPATIBLE_COMMAND_QUEUE_KHR
#define CL_INCOMPATIBLE_COMMAND_QUEUE_KHR -1140
#endif
#ifndef CL_INVALID_MUTABLE_COMMAND_KHR
#define CL_INVALID_MUTABLE_COMMAND_KHR -1141
#endif
#ifndef CL_PLATFORM_COMMAND_BUFFER_CAPABILITIES_KHR
#define CL_PLATFORM_COMMAND_BUFFER_CAPABILITIES_KHR 0x0908
#endif
#ifndef CL_COMMAND_BUFFER_PLATFORM_UNIVERSAL_SYNC_KHR
#define CL_COMMAND_BUFFER_PLATFORM_UNIVERSAL_SYNC_KHR (1 << 0)
#endif
#ifndef CL_COMMAND_BUFFER_PLATFORM_REMAP_QUEUES_KHR
#define CL_COMMAND_BUFFER_PLATFORM_REMAP_QUEUES_KHR (1 << 1)
#endif
#ifndef CL_COMMAND_BUFFER_PLATFORM_AUTOMATIC_REMAP_KHR
#define CL_COMMAND_BUFFER_PLATFORM_AUTOMATIC_REMAP_KHR (1 << 2)
#endif
#ifndef CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR
#define CL_DEVICE_COMMAND_BUFFER_CAPABILITIES_KHR 0x12A9
#endif
#ifndef CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR
#define CL_DEVICE_COMMAND_BUFFER_REQUIRED_QUEUE_PROPERTIES_KHR 0x12AA
#endif
#ifndef CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR
#define CL_DEVICE_COMMAND_BUFFER_SUPPORTED_QUEUE_PROPERTIES_KHR 0x129A
#endif
#ifndef CL_DEVICE_COMMAND_BUFFER_NUM_SYNC_DEVICES_KHR
#define CL_DEVICE_COMMAND_BUFFER_NUM_SYNC_DEVICES_KHR 0x12AB
#endif
#ifndef CL_DEVICE_COMMAND_BUFFER_SYNC_DEVICES_KHR
#define CL_DEVICE_COMMAND_BUFFER_SYNC_DEVICES_KHR 0x12AC
#endif
#ifndef CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR
#define CL_DEVICE_MUTABLE_DISPATCH_CAPABILITIES_KHR 0x12B0
#endif
#ifndef CL_COMMAND_BUFFER_CAPABILITY_KERNEL_PRINTF_KHR
#define CL_COMMAND_BUFFER_CAPABILITY_KERNEL_PRINTF_KHR (1 << 0)
#endif
#ifndef CL_COMMAND_BUFFER_CAPABILITY_DEVICE_SIDE_ENQUEUE_KHR
#define CL_COMMAND_BUFFER_CAPABILITY_DEVICE_SIDE_ENQUEUE_KHR (1 << 1)
#endif
#ifndef CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR
#define CL_COMMAND_BUFFER_CAPABILITY_SIMULTANEOUS_USE_KHR (1 << 2)
#endif
#ifndef CL_COMMAND_BUFFER_CAPABILITY_MULTIPLE_QUEUE_KHR
#define CL_COMMAND_BUFFER_CAPABILITY_MULTIPLE_QUEUE_KHR (1 << 4)
#endif
#ifndef CL_COMMAND_BUFFER_FLAGS_KHR
#define CL_COMMAND_BUFFER_FLAGS_KHR 0x1293
#endif
#ifndef CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR
#define CL_COMMAND_BUFFER_SIMULTANEOUS_USE_KHR (1 << 0)
#endif
#ifndef CL_COMMAND_BUFFER_MUTABLE_KHR
#define CL_COMMAND_BUFFER_MUTABLE_KHR (1 << 1)
#endif
#ifndef CL_COMMAND_BUFFER_DEVICE_SIDE_SYNC_KHR
#define CL_COMMAND_BUFFER_DEVICE_SIDE_SYNC_KHR (1 << 2)
#endif
#ifndef CL_COMMAND_BUFFER_MUTABLE_DISPATCH_ASSERTS_KHR
#define CL_COMMAND_BUFFER_MUTABLE_DISPATCH_ASSERTS_KHR 0x12B7
#endif
#ifndef CL_COMMAND_BUFFER_QUEUES_KHR
#define CL_COMMAND_BUFFER_QUEUES_KHR 0x1294
#endif
#ifndef CL_COMMAND_BUFFER_NUM_QUEUES_KHR
#define CL_COMMAND_BUFFER_NUM_QUEUES_KHR 0x1295
#endif
#ifndef CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR
#define CL_COMMAND_BUFFER_REFERENCE_COUNT_KHR 0x1296
#endif
#ifndef CL_COMMAND_BUFFER_STATE_KHR
#define CL_COMMAND_BUFFER_STATE_KHR 0x1297
#endif
#ifndef CL_COMMAND_BUFFER_PROPERTIES_ARRAY_KHR
#define CL_COMMAND_BUFFER_PROPERTIES_ARRAY_KHR 0x1298
#endif
#ifndef CL_COMMAND_BUFFER_CONTEXT_KHR
#define CL_COMMAND_BUFFER_CONTEXT_KHR 0x1299
#endif
#ifndef CL_COMMAND_COMMAND_BUFFER_KHR
#define CL_COMMAND_COMMAND_BUFFER_KHR 0x12A8
#endif
#ifndef CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR
#define CL_MUTABLE_DISPATCH_UPDATABLE_FIELDS_KHR 0x12B1
#endif
#ifndef CL_MUTABLE_DISPATCH_ASSERTS_KHR
#define CL_MUTABLE_DISPATCH_ASSERTS_KHR 0x12B8
#endif
#ifndef CL_MUTABLE_DISPATCH_ASSERT_NO_ADDITIONAL_WORK_GROUPS_KHR
#define CL_MUTABLE_DISPATCH_ASSERT_NO_ADDITIONAL_WORK_GROUPS_KHR (1 << 0)
#endif
#ifndef CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR
#define CL_MUTABLE_DISPATCH_GLOBAL_OFFSET_KHR (1 << 0)
#endif
#ifndef CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR
#define CL_MUTABLE_DISPATCH_GLOBAL_SIZE_KHR (1 << 1)
#endif
#ifndef CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR
#define CL_MUTABLE_DISPATCH_LOCAL_SIZE_KHR (1 << 2)
#endif
#ifndef CL_MUTABLE_DISPATCH_ARGUMENTS_KHR
#define CL_MUTABLE_DISPATCH_ARGUMENTS_KHR (1 << 3)
#endif
#ifndef CL_MUTABLE_DISPATCH_EXEC_INFO_KHR
#define CL_MUTABLE_DISPATCH_EXEC_INFO_KHR (1 << 4)
#endif
#ifndef CL_MUTABLE_COMMAND_COMMAND_QUEUE_KHR
#define CL_MUTABLE_COMMAND_COMMAND_QUEUE_KHR 0x12A0
#endif
#ifndef CL_MUTABLE_COMMAND_COMMAND_BUFFER_KHR
#define CL_MUTABLE_COMMAND_COMMAND_BUFFER_KHR 0x12A1
#endif
#ifndef CL_MUTABLE_COMMAND_PROPERTIES_ARRAY_KHR
#define CL_MUTABLE_COMMAND_PROPERTIES_ARRAY_KHR 0x12A2
#endif
#ifndef CL_MUTABLE_DISPATCH_KERNEL_KHR
#define CL_MUTABLE_DISPATCH_KERNEL_KHR 0x12A3
#endif
#ifndef CL_MUTABLE_DISPATCH_DIMENSIONS_KHR
#define CL_MUTABLE_DISPATCH_DIMENSIONS_KHR 0x12A4
#endif
#ifndef CL_MUTABLE_DISPATCH_GLOBAL_WORK_OFFSET_KHR
#define CL_MUTABLE_DISPATCH_GLOBAL_WORK_OFFSET_KHR 0x12A5
#endif
#ifndef CL_MUTABLE_DISPATCH_GLOBAL_WORK_SIZE_KHR
#define CL_MUTABLE_DISPATCH_GLOBAL_WORK_SIZE_KHR 0x12A6
#endif
#ifndef CL_MUTABLE_DISPATCH_LOCAL_WORK_SIZE_KHR
#define CL_MUTABLE_DISPATCH_LOCAL_WORK_SIZE_KHR 0x12A7
#endif
#ifndef CL_MUTABLE_COMMAND_COMMAND_TYPE_KHR
#define CL_MUTABLE_COMMAND_COMMAND_TYPE_KHR 0x12AD
#endif

#endif
