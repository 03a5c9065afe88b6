/* Answers of clGetDeviceInfo that differ from the physical device's. */
#include "support/check.h"

#include <CL/cl_ext.h>
#include <stdlib.h>
#include <string.h>

#include "config/server_spec.h"
#include "core/device.h"
#include "core/device_place.h"
#include "core/link/server.h"
#include "core/memory/usm.h"
#include "proto/info.h"

static struct buf native, masked;

static void put(cl_device_info name, const void *value, size_t size)
{
        assert_int_equal(0, info_put(&native, name, value, size));
}

static int teardown(void **state)
{
        buf_fini(&native);
        buf_fini(&masked);
        return 0;
}

/* The value of a query after the masks. */
static struct bytes mask(cl_device_info name)
{
        struct bytes v = { 0 };
        buf_fini(&masked);
        assert_int_equal(0, device_mask(bytes_of(native.data, native.size), &masked));
        assert_true(info_find(bytes_of(masked.data, masked.size), name, &v));
        return v;
}

static const char *mask_text(const char *text)
{
        buf_fini(&native);
        put(CL_DEVICE_VERSION, text, strlen(text) + 1);
        return mask(CL_DEVICE_VERSION).data;
}

TEST(a_device_has_no_later_version_than_the_platform)
{
        assert_string_equal(mask_text("OpenCL 3.1 (Build 0)"), "OpenCL 3.0 (Build 0)");
        assert_string_equal(mask_text("OpenCL 4.0"), "OpenCL 3.0");
        assert_string_equal(mask_text("OpenCL 3.0 CUDA"), "OpenCL 3.0 CUDA");
        assert_string_equal(mask_text("OpenCL 1.2 pocl"), "OpenCL 1.2 pocl");
        cl_version version = CL_MAKE_VERSION(3, 1, 0);
        put(CL_DEVICE_NUMERIC_VERSION, &version, sizeof(version));
        memcpy(&version, mask(CL_DEVICE_NUMERIC_VERSION).data, sizeof(version));
        assert_int_equal(version, CL_MAKE_VERSION(3, 0, 0));
}

TEST(extensions_that_need_the_host_are_not_offered)
{
        static const char names[] = "cl_khr_fp64 cl_khr_gl_sharing cl_khr_spirv_queries "
                                    "cl_khr_terminate_context cl_khr_fp16 ";
        static const cl_name_version list[] = {
                { CL_MAKE_VERSION(1, 2, 3), "cl_khr_fp64" },
                { CL_MAKE_VERSION(1, 0, 0), "cl_khr_external_memory" },
        };
        put(CL_DEVICE_EXTENSIONS, names, sizeof(names));
        put(CL_DEVICE_EXTENSIONS_WITH_VERSION, list, sizeof(list));
        assert_string_equal(
                mask(CL_DEVICE_EXTENSIONS).data,
                "cl_khr_fp64 cl_khr_spirv_queries cl_khr_fp16 cl_khr_create_command_queue cl_pocl_content_size "
                "cl_khr_command_buffer cl_khr_command_buffer_multi_device "
                "cl_khr_command_buffer_mutable_dispatch cl_khr_device_uuid");
        struct bytes v = mask(CL_DEVICE_EXTENSIONS_WITH_VERSION);
        const cl_name_version *kept = v.data;
        assert_int_equal(v.size, 7 * sizeof(*kept));
        assert_string_equal(kept[0].name, "cl_khr_fp64");
        assert_int_equal(kept[0].version, CL_MAKE_VERSION(1, 2, 3));
        assert_string_equal(kept[1].name, "cl_khr_create_command_queue");
        assert_string_equal(kept[3].name, "cl_khr_command_buffer");
        assert_int_equal(kept[3].version, CL_MAKE_VERSION(0, 9, 8));
}

TEST(devices_are_divided_in_the_ways_of_opencl)
{
        static const cl_device_partition_property all[] = { CL_DEVICE_PARTITION_BY_COUNTS, 0x4052,
                                                            CL_DEVICE_PARTITION_EQUALLY };
        cl_device_partition_property kept[4];
        put(CL_DEVICE_PARTITION_PROPERTIES, all, sizeof(all));
        struct bytes v = mask(CL_DEVICE_PARTITION_PROPERTIES);
        assert_int_equal(v.size, 2 * sizeof(kept[0]));
        memcpy(kept, v.data, v.size);
        assert_int_equal(kept[0], CL_DEVICE_PARTITION_BY_COUNTS);
        assert_int_equal(kept[1], CL_DEVICE_PARTITION_EQUALLY);
}

TEST(properties_not_true_over_a_network_are_masked)
{
        cl_bool yes = CL_TRUE;
        cl_device_exec_capabilities exec = CL_EXEC_KERNEL | CL_EXEC_NATIVE_KERNEL;
        put(CL_DEVICE_HOST_UNIFIED_MEMORY, &yes, sizeof(yes));
        put(CL_DEVICE_EXECUTION_CAPABILITIES, &exec, sizeof(exec));
        memcpy(&yes, mask(CL_DEVICE_HOST_UNIFIED_MEMORY).data, sizeof(yes));
        assert_int_equal(yes, CL_FALSE);
        memcpy(&exec, mask(CL_DEVICE_EXECUTION_CAPABILITIES).data, sizeof(exec));
        assert_int_equal(exec, CL_EXEC_KERNEL);
}

static bool answers(cl_device_info name)
{
        struct bytes v;
        buf_fini(&masked);
        assert_int_equal(0, device_mask(bytes_of(native.data, native.size), &masked));
        return info_find(bytes_of(masked.data, masked.size), name, &v);
}

/* A GPU of the client's own process has such memory natively, but the client does not offer it. */
TEST(shared_virtual_memory_is_that_which_the_backend_offers)
{
        cl_device_svm_capabilities can =
                CL_DEVICE_SVM_COARSE_GRAIN_BUFFER | CL_DEVICE_SVM_FINE_GRAIN_BUFFER;
        put(CL_DEVICE_SVM_CAPABILITIES, &can, sizeof(can));
        memcpy(&can, mask(CL_DEVICE_SVM_CAPABILITIES).data, sizeof(can));
        assert_int_equal(can, 0);

        uint64_t how = INFO_SVM_FOLLOWS;
        put(INFO_DEVICE_SVM, &how, sizeof(how));
        memcpy(&can, mask(CL_DEVICE_SVM_CAPABILITIES).data, sizeof(can));
        assert_int_equal(can, CL_DEVICE_SVM_COARSE_GRAIN_BUFFER);
}

/* Ours, whatever the device has itself, and where there is shared virtual memory only. */
TEST(unified_shared_memory_is_that_of_devices_with_svm)
{
        const cl_bitfield native_all = 0xF;
        const cl_name_version none = { 0 };
        put(CL_DEVICE_EXTENSIONS, "cl_khr_fp64 cl_intel_unified_shared_memory", 43);
        put(CL_DEVICE_EXTENSIONS_WITH_VERSION, &none, 0);
        put(CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL, &native_all, sizeof(native_all));
        put(CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL, &native_all, sizeof(native_all));
        assert_false(answers(CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL));
        assert_false(answers(CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL));
        assert_null(strstr(mask(CL_DEVICE_EXTENSIONS).data, USM_NAME));

        uint64_t how = INFO_SVM_OWN_ADDRESSES;
        cl_bitfield can;
        put(INFO_DEVICE_SVM, &how, sizeof(how));
        memcpy(&can, mask(CL_DEVICE_HOST_MEM_CAPABILITIES_INTEL).data, sizeof(can));
        assert_int_equal(can, CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL);
        memcpy(&can, mask(CL_DEVICE_DEVICE_MEM_CAPABILITIES_INTEL).data, sizeof(can));
        assert_int_equal(can, CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL |
                                      CL_UNIFIED_SHARED_MEMORY_ATOMIC_ACCESS_INTEL);
        const char *text = mask(CL_DEVICE_EXTENSIONS).data;
        assert_ptr_equal(text, strstr(text, USM_NAME " cl_khr_fp64 "));
        assert_null(strstr(text + 1, USM_NAME));
        const cl_name_version *list = mask(CL_DEVICE_EXTENSIONS_WITH_VERSION).data;
        assert_string_equal(list[0].name, USM_NAME);
        assert_int_equal(list[0].version, USM_VERSION);
}

/* Applications, and we, read to the NUL. */
/* A device of what it must have, and of what it accepts; its block is to be freed. */
static cl_device_id device_named(const char *name, struct server *server, uint64_t accepts,
                                 struct buf *block)
{
        const cl_device_type type = CL_DEVICE_TYPE_GPU;
        const size_t size = 1024, sizes[3] = { 1024, 1, 1 };
        const cl_uint dimensions = 3, align = 4096;
        const cl_ulong memory = 1 << 20;
        const cl_command_queue_properties queue = 0;
        const struct {
                cl_device_info name;
                const void *value;
                size_t size;
        } all[] = {
                { CL_DEVICE_TYPE, &type, sizeof(type) },
                { CL_DEVICE_MAX_WORK_GROUP_SIZE, &size, sizeof(size) },
                { CL_DEVICE_MAX_WORK_ITEM_DIMENSIONS, &dimensions, sizeof(dimensions) },
                { CL_DEVICE_MAX_WORK_ITEM_SIZES, sizes, sizeof(sizes) },
                { CL_DEVICE_MEM_BASE_ADDR_ALIGN, &align, sizeof(align) },
                { CL_DEVICE_MAX_MEM_ALLOC_SIZE, &memory, sizeof(memory) },
                { CL_DEVICE_LOCAL_MEM_SIZE, &memory, sizeof(memory) },
                { CL_DEVICE_MAX_PARAMETER_SIZE, &size, sizeof(size) },
                { CL_DEVICE_QUEUE_PROPERTIES, &queue, sizeof(queue) },
                { CL_DEVICE_NAME, name, strlen(name) + 1 },
        };
        cl_device_id d;
        for (size_t i = 0; i < array_size(all); i++)
                assert_int_equal(0, info_put(block, all[i].name, all[i].value, all[i].size));
        if (accepts)
                assert_int_equal(0, info_put_u64(block, INFO_DEVICE_ACCEPTS, accepts));
        assert_int_equal(0, device_new(NULL, server, bytes_of(block->data, block->size), &d));
        return d;
}

static cl_device_id device_of(uint64_t accepts, struct buf *block)
{
        static const struct server_spec spec = { .name = "in-process", .in_process = true };
        static struct server server = { .spec = &spec };
        return device_named("any", &server, accepts, block);
}

TEST(one_devices_leniency_does_not_count_for_its_context)
{
        const enum device_accepts size = DEVICE_ACCEPTS_BUFFER_SIZE,
                                  origin = DEVICE_ACCEPTS_SUB_BUFFER_ORIGIN;
        struct buf blocks[3] = { 0 };
        cl_device_id devices[3] = {
                device_of(0, &blocks[0]),
                device_of(size | origin, &blocks[1]),
                device_of(origin | 1ull << 63, &blocks[2]),
        };
        struct _cl_context both = { .devices = devices, .device_count = 2 };
        struct _cl_context later = { .devices = devices + 1, .device_count = 2 };
        assert_int_equal(devices[0]->max_buffer_size, 1 << 20);
        assert_int_equal(devices[0]->sub_buffer_align, 512);
        assert_true(devices[1]->max_buffer_size == UINT64_MAX);
        assert_int_equal(devices[1]->sub_buffer_align, 1);
        assert_int_equal(devices[1]->max_mem_alloc_size, 1 << 20);
        assert_int_equal(device_number(devices[1], CL_DEVICE_MEM_BASE_ADDR_ALIGN), 4096);
        assert_false(context_accepts(&both, origin));
        assert_true(context_accepts(&later, origin));
        assert_false(context_accepts(&later, size));
        for (int i = 0; i < 3; i++) {
                device_free(devices[i]);
                buf_fini(&blocks[i]);
        }
}

static const void *placed(cl_device_info name)
{
        struct bytes v;
        assert_true(info_find(bytes_of(masked.data, masked.size), name, &v));
        return v.data;
}

TEST(a_device_tells_which_one_it_is_and_where)
{
        const cl_uint bus = 0x65, slot = 2 << 3 | 1;
        const uint8_t topology[24] = { 1, [21] = 0x0a, [22] = 4, [23] = 3 };
        struct device_place place = { "gpu2:7777", "gpu2", "ab12", false, 1 };
        uint8_t first[CL_UUID_SIZE_KHR];
        buf_fini(&native);
        put(CL_DEVICE_NAME, "Big GPU", 8);
        put(CL_DEVICE_VENDOR, "Big", 4);
        put(CL_DEVICE_EXTENSIONS, "cl_khr_pci_bus_info", 20);
        assert_string_equal(strstr(mask(CL_DEVICE_EXTENSIONS).data, "cl_khr_device_uuid"),
                            "cl_khr_device_uuid"); /* the last one: its driver has no PCI info */
        assert_false(answers(CL_DEVICE_PCI_BUS_INFO_KHR));

        assert_int_equal(0, device_place_put(&place, &masked));
        assert_string_equal(placed(CL_DEVICE_NAME), "Big GPU");
        assert_string_equal(placed(0x4038), "Big GPU (gpu2:7777)");
        assert_true(device_place_gives(&(struct info_entry){
                CL_DEVICE_UUID_KHR, bytes_of(placed(CL_DEVICE_UUID_KHR), sizeof(first)) }));
        memcpy(first, placed(CL_DEVICE_UUID_KHR), sizeof(first));
        for (unsigned i = 0; i < 5; i++) { /* the last two as the first */
                place = (struct device_place){ i == 1 ? "gpu3" : "gpu2:7777", "gpu2",
                                               i == 2 ? "ab13" : "ab12", i == 4, i == 0 ? 0 : 1 };
                assert_true(answers(CL_DEVICE_NAME));
                assert_int_equal(0, device_place_put(&place, &masked));
                assert_int_equal(!memcmp(first, placed(CL_DEVICE_UUID_KHR), sizeof(first)), i >= 3);
        }
        /* Other hosts have an "in-process", too. Elsewhere a name means the same host for all. */
        for (unsigned here = 0; here < 2; here++) {
                place = (struct device_place){ "in-process", "", "", here, 0 };
                assert_true(answers(CL_DEVICE_NAME));
                assert_int_equal(0, device_place_put(&place, &masked));
                assert_int_equal(!memcmp(first, placed(CL_DEVICE_UUID_KHR), sizeof(first)), 0);
                memcpy(first, placed(CL_DEVICE_UUID_KHR), sizeof(first));
        }
        place = (struct device_place){ "gpu2:7777", "gpu2", "ab12", false, 1 };
        assert_true(answers(CL_DEVICE_NAME));

        setenv("SPANCL_DEVICE_LABEL", "host", 1);
        setenv("SPANCL_DEVICE_NAME", "Old GPU", 1);
        setenv("SPANCL_DEVICE_VENDOR", "Old", 1);
        assert_true(answers(CL_DEVICE_NAME));
        assert_int_equal(0, device_place_put(&place, &masked));
        assert_string_equal(placed(CL_DEVICE_NAME), "gpu2: Old GPU");
        assert_string_equal(placed(CL_DEVICE_VENDOR), "Old");
        assert_string_equal(placed(DEVICE_OWN_NAME), "Big GPU");
        assert_string_equal(placed(DEVICE_OWN_VENDOR), "Big");
        unsetenv("SPANCL_DEVICE_LABEL");
        unsetenv("SPANCL_DEVICE_NAME");
        unsetenv("SPANCL_DEVICE_VENDOR");

        put(0x4008, &bus, sizeof(bus));
        put(0x4009, &slot, sizeof(slot));
        const cl_device_pci_bus_info_khr nv = { 0, 0x65, 2, 1 }, amd = { 0, 0x0a, 4, 3 };
        assert_memory_equal(mask(CL_DEVICE_PCI_BUS_INFO_KHR).data, &nv, sizeof(nv));
        assert_non_null(strstr(mask(CL_DEVICE_EXTENSIONS).data, "cl_khr_pci_bus_info"));
        put(0x4037, topology, sizeof(topology));
        assert_memory_equal(mask(CL_DEVICE_PCI_BUS_INFO_KHR).data, &amd, sizeof(amd));
}

/* The names that the application sees do not count: the server's address may be in them. */
TEST(a_device_is_the_same_by_the_names_of_its_driver)
{
        static const char *const names[] = { "Big GPU", "Big GPU", "Small GPU" };
        static const char *const addresses[] = { "tcp:gpu2:7777", "tcp:gpu3:7777",
                                                 "tcp:gpu2:7777" };
        struct buf blocks[3] = { 0 };
        struct server_spec specs[3];
        struct server servers[3];
        cl_device_id d[3];
        setenv("SPANCL_DEVICE_LABEL", "host", 1);
        setenv("SPANCL_DEVICE_VENDOR", "Old", 1);
        for (int i = 0; i < 3; i++) {
                specs[i] = (struct server_spec){ .name = (char *)(uintptr_t)addresses[i],
                                                 .address = (char *)(uintptr_t)addresses[i] };
                servers[i] = (struct server){ .spec = &specs[i] };
                d[i] = device_named(names[i], &servers[i], 0, &blocks[i]);
        }
        assert_string_equal(device_text(d[0], CL_DEVICE_NAME), "gpu2: Big GPU");
        assert_string_equal(device_text(d[1], CL_DEVICE_NAME), "gpu3: Big GPU");
        assert_string_equal(device_own_text(d[1], DEVICE_OWN_NAME), "Big GPU");
        assert_string_equal(device_own_text(d[1], DEVICE_OWN_VENDOR), "");
        assert_true(device_is_same(d[0], d[1]));
        assert_false(device_is_same(d[0], d[2]));
        unsetenv("SPANCL_DEVICE_LABEL");
        unsetenv("SPANCL_DEVICE_VENDOR");
        for (int i = 0; i < 3; i++) {
                device_free(d[i]);
                buf_fini(&blocks[i]);
        }
}

TEST(texts_that_do_not_end_are_left_out)
{
        enum { SPIRV_EXTENSIONS = 0x12BA };
        cl_name_version list[2] = { { 1, "" }, { 2, "__opencl_c_fp64" } };
        memset(list[0].name, 'x', sizeof(list[0].name));
        put(CL_DEVICE_NAME, "device", 6);
        put(CL_DEVICE_VENDOR, "vendor", 7);
        put(SPIRV_EXTENSIONS, "SPV_one\0SPV_two", 15);
        put(CL_DEVICE_OPENCL_C_FEATURES, list, sizeof(list));
        assert_false(answers(CL_DEVICE_NAME));
        assert_true(answers(CL_DEVICE_VENDOR));
        assert_false(answers(SPIRV_EXTENSIONS));
        struct bytes v = mask(CL_DEVICE_OPENCL_C_FEATURES);
        assert_int_equal(v.size, sizeof(list[1]));
        assert_memory_equal(v.data, &list[1], sizeof(list[1]));
        buf_fini(&native);
        put(SPIRV_EXTENSIONS, "SPV_one\0SPV_two", 16);
        assert_true(answers(SPIRV_EXTENSIONS));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_teardown(a_device_has_no_later_version_than_the_platform,
                                          teardown),
                cmocka_unit_test_teardown(extensions_that_need_the_host_are_not_offered, teardown),
                cmocka_unit_test_teardown(devices_are_divided_in_the_ways_of_opencl, teardown),
                cmocka_unit_test_teardown(properties_not_true_over_a_network_are_masked, teardown),
                cmocka_unit_test_teardown(shared_virtual_memory_is_that_which_the_backend_offers,
                                          teardown),
                cmocka_unit_test_teardown(unified_shared_memory_is_that_of_devices_with_svm,
                                          teardown),
                cmocka_unit_test(one_devices_leniency_does_not_count_for_its_context),
                cmocka_unit_test_teardown(a_device_tells_which_one_it_is_and_where, teardown),
                cmocka_unit_test(a_device_is_the_same_by_the_names_of_its_driver),
                cmocka_unit_test_teardown(texts_that_do_not_end_are_left_out, teardown),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
