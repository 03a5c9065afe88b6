/* The grammar of SPANCL_DEVICES, and the devices that pass. */
#include "support/check.h"

#include <string.h>

#include "base/mem.h"
#include "config/device_filter.h"

static const cl_ulong gib = 1ull << 30;

/* A filter that is right. */
static struct device_filter right(const char *text)
{
        struct device_filter f;
        char *error = NULL;
        assert_int_equal(device_filter_parse(text, "SPANCL_DEVICES", &f, &error), 0);
        assert_null(error);
        return f;
}

static void wrong(const char *text, const char *named)
{
        struct device_filter f;
        char *error = NULL;
        assert_int_equal(device_filter_parse(text, "SPANCL_DEVICES", &f, &error), SP_E_INVAL);
        assert_non_null(error);
        assert_non_null(strstr(error, "SPANCL_DEVICES: '"));
        assert_non_null(strstr(error, named));
        assert_int_equal(f.count_max, 0);
        mem_free(error);
}

static bool takes(const char *text, cl_device_type type, const char *vendor, const char *name,
                  cl_ulong memory)
{
        struct device_filter f = right(text);
        return device_filter_takes(&f, &(struct device_traits){ type, vendor, name, memory });
}

TEST(an_empty_filter_takes_all_devices)
{
        assert_true(takes("", CL_DEVICE_TYPE_GPU, "v", "n", 0));
        assert_true(takes("  ", CL_DEVICE_TYPE_CUSTOM, "", "", 0));
        assert_int_equal(right("").count_max, CL_UINT_MAX);
        assert_int_equal(right("").order, DEVICE_ORDER_FOUND);
}

TEST(a_type_takes_devices_of_that_type)
{
        assert_true(takes("gpu", CL_DEVICE_TYPE_GPU, "v", "n", 0));
        assert_false(takes("gpu", CL_DEVICE_TYPE_CPU, "v", "n", 0));
        assert_true(takes(" gpu , cpu ", CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_DEFAULT, "v", "n", 0));
        assert_false(takes("gpu,cpu", CL_DEVICE_TYPE_ACCELERATOR, "v", "n", 0));
        assert_true(takes("custom", CL_DEVICE_TYPE_CUSTOM, "v", "n", 0));
}

TEST(globs_match_names_and_vendors)
{
        assert_true(takes("vendor=nvidia*", CL_DEVICE_TYPE_GPU, "NVIDIA Corporation", "", 0));
        assert_false(takes("vendor=nvidia", CL_DEVICE_TYPE_GPU, "NVIDIA Corporation", "", 0));
        assert_true(takes("name=*h?00*", CL_DEVICE_TYPE_GPU, "", "NVIDIA H100 PCIe", 0));
        assert_false(takes("name=*h?00", CL_DEVICE_TYPE_GPU, "", "NVIDIA H100 PCIe", 0));
        assert_true(takes("name=a*b*c", CL_DEVICE_TYPE_GPU, "", "aXbXbc", 0));
        assert_true(takes("name=*", CL_DEVICE_TYPE_GPU, "", "", 0));
        assert_false(takes("name=?", CL_DEVICE_TYPE_GPU, "", "", 0));
        assert_true(takes("name=x,name=y", CL_DEVICE_TYPE_GPU, "", "y", 0));
        assert_false(takes("name=x,vendor=y", CL_DEVICE_TYPE_GPU, "z", "x", 0));
        assert_true(takes("name=two words", CL_DEVICE_TYPE_GPU, "", "Two Words", 0));
}

TEST(memory_count_and_order_are_numbers_and_words)
{
        assert_true(takes("memory>=8", CL_DEVICE_TYPE_GPU, "", "", 8 * gib));
        assert_false(takes("memory>=8", CL_DEVICE_TYPE_GPU, "", "", 8 * gib - 1));
        assert_false(takes("gpu,memory>=8", CL_DEVICE_TYPE_CPU, "", "", 9 * gib));
        assert_int_equal(right("count=3,gpu").count_max, 3);
        assert_int_equal(right("order=latency").order, DEVICE_ORDER_LATENCY);
        assert_int_equal(right("order=load").order, DEVICE_ORDER_LOAD);
        assert_int_equal(right("order=memory").order, DEVICE_ORDER_MEMORY);
}

TEST(a_wrong_filter_is_an_error_and_takes_no_device)
{
        char many[4096] = "", large[2048] = { 0 };
        wrong("gpus", "'gpus'");
        wrong("gpu,,cpu", "''");
        wrong("gpu,", "''");
        wrong(",", "''");
        wrong("GPU", "'GPU'");
        wrong("memory=8", "'memory=8'");
        wrong("memory>=0", "");
        wrong("memory>=-1", "");
        wrong("memory>=8,memory>=9", "");
        wrong("memory>=99999999999999999999", "");
        wrong("count=0", "");
        wrong("count=", "");
        wrong("count=1,count=1", "");
        wrong("order=speed", "");
        wrong("order=memory,order=memory", "");
        wrong("name=", "");
        for (int i = 0; i <= DEVICE_FILTER_TERMS; i++)
                strcat(many, i ? ",name=a" : "name=a");
        wrong(many, "'");
        memset(large, 'x', sizeof(large) - 1);
        wrong(large, "xxx' is not a term");
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(an_empty_filter_takes_all_devices),
                cmocka_unit_test(a_type_takes_devices_of_that_type),
                cmocka_unit_test(globs_match_names_and_vendors),
                cmocka_unit_test(memory_count_and_order_are_numbers_and_words),
                cmocka_unit_test(a_wrong_filter_is_an_error_and_takes_no_device),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
