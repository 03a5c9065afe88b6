/* Sizes of pixels, regions and images. */
#include "support/check.h"

#include <CL/cl.h>

#include "proto/image.h"

static const struct image_desc flat = {
        .type = CL_MEM_OBJECT_IMAGE2D,
        .order = CL_RGBA,
        .data_type = CL_FLOAT,
        .width = 7,
        .height = 5,
};

TEST(pixels_have_the_size_of_their_channels)
{
        assert_int_equal(image_pixel_size(CL_RGBA, CL_UNORM_INT8), 4);
        assert_int_equal(image_pixel_size(CL_BGRA, CL_UNORM_INT8), 4);
        assert_int_equal(image_pixel_size(CL_R, CL_HALF_FLOAT), 2);
        assert_int_equal(image_pixel_size(CL_RG, CL_SIGNED_INT32), 8);
        assert_int_equal(image_pixel_size(CL_DEPTH, CL_FLOAT), 4);
        assert_int_equal(image_pixel_size(CL_RGB, CL_UNORM_SHORT_565), 2);
        assert_int_equal(image_pixel_size(CL_RGB, CL_UNORM_INT_101010), 4);
        /* what there is not */
        assert_int_equal(image_pixel_size(CL_RGBA, CL_UNORM_SHORT_565), 0);
        assert_int_equal(image_pixel_size(0, CL_FLOAT), 0);
        assert_int_equal(image_pixel_size(CL_RGBA, 0), 0);
}

TEST(a_type_has_its_sizes_and_no_others)
{
        struct image_desc d = flat;
        assert_true(image_is_valid(&d));
        d.depth = 1;
        assert_false(image_is_valid(&d));
        d.type = CL_MEM_OBJECT_IMAGE3D;
        assert_true(image_is_valid(&d));
        d.height = 0;
        assert_false(image_is_valid(&d));
        d = flat;
        d.width = 0;
        assert_false(image_is_valid(&d));
        d = flat;
        d.type = CL_MEM_OBJECT_BUFFER;
        assert_false(image_is_valid(&d));
}

TEST(layers_of_arrays_are_the_next_coordinate)
{
        struct image_desc d = flat;
        size_t all[3];
        d.type = CL_MEM_OBJECT_IMAGE2D_ARRAY;
        d.array_size = 3;
        image_region(&d, all);
        assert_int_equal(all[1], 5);
        assert_int_equal(all[2], 3);
        d.type = CL_MEM_OBJECT_IMAGE1D_ARRAY;
        d.height = 0;
        image_region(&d, all);
        assert_int_equal(all[1], 3);
        assert_int_equal(all[2], 1);
        assert_int_equal(image_bytes(&d, all), 7 * 3 * 16);
}

TEST(regions_outside_are_outside_however_large)
{
        const size_t zero[3] = { 0, 0, 0 }, last[3] = { 6, 4, 0 }, behind[3] = { 7, 0, 0 };
        const size_t one[3] = { 1, 1, 1 }, all[3] = { 7, 5, 1 }, none[3] = { 1, 0, 1 };
        const size_t deep[3] = { 1, 1, 2 }, huge[3] = { SIZE_MAX, 1, 1 };
        assert_true(image_has(&flat, zero, all));
        assert_true(image_has(&flat, last, one));
        assert_false(image_has(&flat, behind, one));
        assert_false(image_has(&flat, last, all));
        assert_false(image_has(&flat, zero, none));
        assert_false(image_has(&flat, zero, deep));
        assert_false(image_has(&flat, last, huge));
        assert_false(image_has(&flat, huge, one));
        assert_int_equal(image_bytes(&flat, huge), 0);
}

TEST(an_image_in_a_buffer_ends_with_its_last_pixel)
{
        struct image_desc d = flat;
        d.row_pitch = 128;
        assert_int_equal(image_span(&d), 4 * 128 + 7 * 16);
        d.row_pitch = SIZE_MAX / 2;
        assert_int_equal(image_span(&d), 0);
        d = (struct image_desc){ .type = CL_MEM_OBJECT_IMAGE1D_BUFFER,
                                 .order = CL_R,
                                 .data_type = CL_FLOAT,
                                 .width = 9 };
        assert_int_equal(image_span(&d), 36);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(pixels_have_the_size_of_their_channels),
                cmocka_unit_test(a_type_has_its_sizes_and_no_others),
                cmocka_unit_test(layers_of_arrays_are_the_next_coordinate),
                cmocka_unit_test(regions_outside_are_outside_however_large),
                cmocka_unit_test(an_image_in_a_buffer_ends_with_its_last_pixel),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
