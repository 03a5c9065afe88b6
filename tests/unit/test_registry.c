/* The registry of built-in kernels: what each row computes, in numbers worked out by hand, and what a designer's
 * rows add. */
#include "support/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backend/builtin/registry.h"
#include "base/mem.h"

TEST(arithmetic)
{
        (void)state;
        uint8_t a[4] = { 200, 100, 0, 255 }, b[4] = { 100, 2, 3, 2 }, c[4] = { 0 };
        float p[6] = { 1, 2, 3, 4, 5, 6 }, q[6] = { 1, 0, 0, 1, 2, 2 }, s[4] = { 0 };
        uint32_t pixels[4] = { 100, 101, 0xFF, 0xFF00 }, red = 10, m = 2, n = 2, k = 3;
        struct registry_launch l = { .dims = 1, .global = { 4, 1, 1 } };
        l.args[0] = (struct registry_value){ a, 4 };
        l.args[1] = (struct registry_value){ b, 4 };
        l.args[2] = (struct registry_value){ c, 4 };
        assert_int_equal(registry_find("pocl.add.i8", 11)->run(&l), CL_SUCCESS);
        assert_memory_equal(c, ((uint8_t[4]){ 44, 102, 3, 1 }), 4);
        assert_int_equal(registry_find("pocl.mul.i8", 11)->run(&l), CL_SUCCESS);
        assert_memory_equal(c, ((uint8_t[4]){ 32, 200, 0, 254 }), 4);
        l.offset[0] = 1;
        assert_int_equal(registry_find("pocl.mul.i8", 11)->run(&l), CL_OUT_OF_RESOURCES);

        l = (struct registry_launch){ .dims = 1, .global = { 4, 1, 1 } };
        l.args[0] = (struct registry_value){ pixels, sizeof(pixels) };
        l.args[1] = (struct registry_value){ &red, 4 };
        assert_int_equal(registry_find("pocl.countred", 13)->run(&l), CL_SUCCESS);
        assert_int_equal(red, 2);

        l = (struct registry_launch){ .dims = 2, .global = { 2, 2, 1 } };
        l.args[0] = (struct registry_value){ p, sizeof(p) };
        l.args[1] = (struct registry_value){ q, sizeof(q) };
        l.args[2] = (struct registry_value){ s, sizeof(s) };
        l.args[3] = (struct registry_value){ &m, 4 };
        l.args[4] = (struct registry_value){ &n, 4 };
        l.args[5] = (struct registry_value){ &k, 4 };
        assert_int_equal(registry_find("pocl.sgemm.local.f32", 20)->run(&l), CL_SUCCESS);
        assert_memory_equal(s, ((float[4]){ 7, 8, 16, 17 }), sizeof(s));
        assert_int_equal(registry_find("pocl.mul.i16", 12)->id, 15);
        assert_null(registry_find("pocl.mul.i1", 11));
}

/* ---- shorthands ----------------------------------------------------------------------------- */

#define BUFFER(x)              \
        {                      \
                (x), sizeof(x) \
        }
#define VALUE_OF(x)             \
        {                       \
                &(x), sizeof(x) \
        }

static cl_int run(const char *name, size_t x, size_t y, size_t z, const struct registry_value *args)
{
        struct registry_launch l = { .dims = z > 1 ? 3 : y > 1 ? 2 : 1, .global = { x, y, z } };
        const struct registry_kernel *k = registry_find(name, strlen(name));
        assert_non_null(k);
        for (unsigned i = 0; i < registry_arg_count(k); i++)
                l.args[i] = args[i];
        return k->run(&l);
}

#define RUN(name, x, y, z, ...) \
        assert_int_equal(run(name, x, y, z, (struct registry_value[]){ __VA_ARGS__ }), CL_SUCCESS)
#define REFUSES(name, x, y, z, ...)                                                    \
        assert_int_equal(run(name, x, y, z, (struct registry_value[]){ __VA_ARGS__ }), \
                         CL_OUT_OF_RESOURCES)

/* ---- every row ------------------------------------------------------------------------------ */

TEST(every_row_is_one_of_its_own_and_can_be_computed)
{
        (void)state;
        const struct registry_kernel *k, *other;
        size_t count = 0;
        for (; (k = registry_at(count)); count++) {
                assert_non_null(k->run);
                assert_true(*k->doc);
                assert_ptr_equal(registry_find(k->name, strlen(k->name)), k);
                assert_ptr_equal(registry_find_id(k->id), k);
                for (size_t i = 0; i < count; i++) {
                        other = registry_at(i);
                        assert_true(other->id != k->id && strcmp(other->name, k->name));
                }
        }
        /* The field's numbers; 5 and 10 are not defined anywhere. */
        for (unsigned id = 0; id < 30; id++)
                assert_int_equal(registry_find_id(id) != NULL, id != 5 && id != 10);
}

/* Without its buffers, and with each of them too small, a kernel fails and writes nothing. */
TEST(no_kernel_leaves_its_buffers)
{
        (void)state;
        const struct registry_kernel *k;
        for (size_t n = 0; (k = registry_at(n)); n++) {
                uint8_t bytes[REGISTRY_ARGS_MAX][4096], before[REGISTRY_ARGS_MAX][4096];
                uint64_t one[REGISTRY_ARGS_MAX];
                struct registry_launch l = { .dims = 1, .global = { 3, 1, 1 } };
                unsigned buffers = 0;
                memset(bytes, 1, sizeof(bytes));
                for (unsigned i = 0; k->args[i].name; i++) {
                        one[i] = !strcmp(k->args[i].type, "float") ? 0x3F800000 : 3;
                        l.args[i] = k->args[i].buffer
                                            ? (struct registry_value){ bytes[i], sizeof(bytes[i]) }
                                            : (struct registry_value){ &one[i], 8 };
                        buffers += k->args[i].buffer;
                }
                if (!buffers)
                        continue;
                for (unsigned i = 0; k->args[i].name; i++) {
                        struct registry_value whole = l.args[i];
                        bool used = k->args[i].buffer &&
                                    (k->id < 18 || k->id > 19 || i < 5); /* three votes */
                        memcpy(before, bytes, sizeof(bytes));
                        for (unsigned how = 0; used && how < 2; how++) {
                                l.args[i] = how ? (struct registry_value){ NULL, 0 }
                                                : (struct registry_value){ bytes[i], 0 };
                                if (k->run(&l) != CL_OUT_OF_RESOURCES)
                                        fail_msg("%s, argument %u", k->name, i);
                                assert_memory_equal(before, bytes, sizeof(bytes));
                        }
                        l.args[i] = whole;
                }
        }
}

/* ---- arrays --------------------------------------------------------------------------------- */

TEST(data_streamed_out_comes_in)
{
        (void)state;
        int out[3] = { 5, -6, 7 }, in[2] = { 0 }, interval = 1, times = 2;
        RUN("pocl.streamout.i32", 3, 1, 1, BUFFER(out));
        RUN("pocl.streamin.i32", 2, 1, 1, BUFFER(in));
        assert_memory_equal(in, out, sizeof(in));
        REFUSES("pocl.streamin.i32", 2, 1, 1, BUFFER(in));
        RUN("pocl.streamin.i32", 1, 1, 1, BUFFER(in));
        assert_int_equal(in[0], 7);
        static int many[65537];
        REFUSES("pocl.streamout.i32", 65537, 1, 1, BUFFER(many));
        for (int i = 0; i < 3; i++) { /* round its end */
                many[1] = i;
                RUN("pocl.streamout.i32", 40000, 1, 1, BUFFER(many));
                many[1] = -1;
                RUN("pocl.streamin.i32", 40000, 1, 1, BUFFER(many));
                assert_int_equal(many[1], i);
        }
        RUN("pocl.ledblink", 4, 1, 1, VALUE_OF(interval), VALUE_OF(times));
}

TEST(matrices_of_halves)
{
        (void)state;
        /* 1 2 3; 4 5 6 and 1 0; 0 0.5; -2 1, by columns. */
        uint16_t a[6] = { 0x3C00, 0x4400, 0x4000, 0x4500, 0x4200, 0x4600 };
        uint16_t b[6] = { 0x3C00, 0, 0xC000, 0, 0x3800, 0x3C00 };
        float c[4] = { 10, 20, 30, 40 }, alpha = 2, beta = 0.5f;
        uint32_t m = 2, n = 2, k = 3;
        RUN("pocl.sgemm.scale.tensor.f16f16f32", 1, 1, 1, BUFFER(a), BUFFER(b), BUFFER(c),
            VALUE_OF(m), VALUE_OF(n), VALUE_OF(k), VALUE_OF(alpha), VALUE_OF(beta));
        assert_memory_equal(c, ((float[4]){ -5, -6, 23, 37 }), sizeof(c));
        RUN("pocl.sgemm.tensor.f16f16f32", 1, 1, 1, BUFFER(a), BUFFER(b), BUFFER(c), VALUE_OF(m),
            VALUE_OF(n), VALUE_OF(k));
        assert_memory_equal(c, ((float[4]){ -5, -8, 4, 8.5f }), sizeof(c));
        /* The least half, the largest, infinity, not a number. */
        uint16_t odd[4] = { 1, 0x7BFF, 0xFC00, 0x7E00 }, one = 0x3C00;
        uint32_t four = 4, single = 1;
        RUN("pocl.sgemm.tensor.f16f16f32", 1, 1, 1, BUFFER(odd), VALUE_OF(one), BUFFER(c),
            VALUE_OF(four), VALUE_OF(single), VALUE_OF(single));
        assert_true(c[0] == ldexpf(1, -24) && c[1] == 65504 && c[2] == -INFINITY && isnan(c[3]));
}

TEST(votes_are_counted)
{
        (void)state;
        uint32_t out[2], n = 4, first[2] = { 7, 1 }, second[2] = { 8, 2 }, third[2] = { 8, 1 },
                         fourth[2] = { 9, 2 };
        RUN("pocl.vote.u32", 2, 1, 1, BUFFER(out), VALUE_OF(n), BUFFER(first), BUFFER(second),
            BUFFER(third), BUFFER(fourth), { NULL, 0 }, { NULL, 0 }, { NULL, 0 }, { NULL, 0 });
        assert_memory_equal(out, ((uint32_t[2]){ 8, 1 }), sizeof(out)); /* two each: the first's */
        uint8_t byte, ballots[8] = { 3, 4, 4, 5, 5, 5, 6, 6 };
        n = 8;
        struct registry_value args[10] = { VALUE_OF(byte), VALUE_OF(n) };
        for (unsigned i = 0; i < 8; i++)
                args[2 + i] = (struct registry_value){ &ballots[i], 1 };
        assert_int_equal(run("pocl.vote.u8", 1, 1, 1, args), CL_SUCCESS);
        assert_int_equal(byte, 5);
        n = 9;
        assert_int_equal(run("pocl.vote.u8", 1, 1, 1, args), CL_OUT_OF_RESOURCES);
}

/* ---- layers --------------------------------------------------------------------------------- */

TEST(the_largest_of_each_window)
{
        (void)state;
        int8_t in[2 * 3 * 5], out[2 * 2 * 2];
        uint32_t wx = 3, wy = 2, sx = 2, sy = 1;
        for (int i = 0; i < 30; i++)
                in[i] = (int8_t)(i < 15 ? i : -i);
        RUN("pocl.maxpool.i8", 2, 2, 2, BUFFER(in), BUFFER(out), VALUE_OF(wx), VALUE_OF(wy),
            VALUE_OF(sx), VALUE_OF(sy));
        assert_memory_equal(out, ((int8_t[8]){ 7, 9, 12, 14, -15, -17, -20, -22 }), sizeof(out));
        REFUSES("pocl.maxpool.i8", 3, 2, 2, BUFFER(in), BUFFER(out), VALUE_OF(wx), VALUE_OF(wy),
                VALUE_OF(sx), VALUE_OF(sy));
}

static void convolve(float *in, size_t in_size, float *weights, size_t weights_size, float *out,
                     size_t out_size, const int32_t sizes[15], float alpha, float beta)
{
        struct registry_value args[20] = { { in, in_size },
                                           { weights, weights_size },
                                           { out, out_size },
                                           [18] = { &alpha, 4 },
                                           [19] = { &beta, 4 } };
        int32_t copy[15];
        memcpy(copy, sizes, sizeof(copy));
        for (unsigned i = 0; i < 15; i++)
                args[3 + i] = (struct registry_value){ &copy[i], 4 };
        assert_int_equal(run("pocl.dnn.conv2d.nchw.f32", 1, 1, 1, args), CL_SUCCESS);
}

TEST(convolutions)
{
        (void)state;
        /* One channel of 3×3, a 2×2 filter, padded by one, strides 2. */
        float in[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 }, filter[4] = { 1, 10, 100, 1000 };
        float out[4] = { 1, 1, 1, 1 };
        static const int32_t plain[15] = { 1, 1, 3, 3, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 1 };
        convolve(in, sizeof(in), filter, sizeof(filter), out, sizeof(out), plain, 1, 0.5f);
        assert_memory_equal(out, ((float[4]){ 1000.5f, 3200.5f, 7040.5f, 9865.5f }), sizeof(out));
        /* Two groups of one channel each, filters of two, two apart. */
        float two[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, filters[4] = { 1, -1, 1, 1 }, rows[4];
        static const int32_t grouped[15] = { 1, 2, 1, 4, 2, 1, 1, 2, 1, 1, 1, 2, 0, 0, 2 };
        convolve(two, sizeof(two), filters, sizeof(filters), rows, sizeof(rows), grouped, 2, 0);
        assert_memory_equal(rows, ((float[4]){ -4, -4, 24, 28 }), sizeof(rows));
}

/* ---- images --------------------------------------------------------------------------------- */

TEST(images_are_scaled)
{
        (void)state;
        uint8_t in[12] = { 10, 20, 30, 40, 50, 60, 110, 120, 130, 140, 150, 160 }; /* 3×2, twice */
        uint8_t large[2 * 4 * 6], small[2];
        float half = 0.5f, three = 3, two = 2;
        int32_t width = 3, height = 2;
        static const char nn[] = "org.khronos.openvx.scale_image.nn.u8";
        static const char bl[] = "org.khronos.openvx.scale_image.bl.u8";
        RUN(nn, 6, 4, 2, BUFFER(in), BUFFER(large), VALUE_OF(half), VALUE_OF(half), VALUE_OF(width),
            VALUE_OF(height));
        for (unsigned z = 0; z < 2; z++)
                for (unsigned y = 0; y < 4; y++)
                        for (unsigned x = 0; x < 6; x++)
                                assert_int_equal(large[(z * 4 + y) * 6 + x],
                                                 in[(z * 2 + y / 2) * 3 + x / 2]);
        RUN(nn, 1, 1, 2, BUFFER(in), BUFFER(small), VALUE_OF(three), VALUE_OF(two), VALUE_OF(width),
            VALUE_OF(height));
        assert_memory_equal(small, ((uint8_t[2]){ 50, 150 }), 2);
        RUN(bl, 1, 1, 2, BUFFER(in), BUFFER(small), VALUE_OF(three), VALUE_OF(two), VALUE_OF(width),
            VALUE_OF(height));
        assert_memory_equal(small, ((uint8_t[2]){ 35, 135 }), 2); /* between 20 and 50 */
        RUN(bl, 6, 4, 2, BUFFER(in), BUFFER(large), VALUE_OF(half), VALUE_OF(half), VALUE_OF(width),
            VALUE_OF(height));
        assert_int_equal(large[0], 10); /* the corner repeats */
        assert_int_equal(large[1], 12);
        assert_int_equal(large[6], 17);
        width = 0;
        REFUSES(nn, 6, 4, 2, BUFFER(in), BUFFER(large), VALUE_OF(half), VALUE_OF(half),
                VALUE_OF(width), VALUE_OF(height));
}

TEST(pixels_are_converted_and_searched)
{
        (void)state;
        uint8_t in[6] = { 7, 3, 9, 3, 9, 5 }, low, high;
        uint32_t low_at[2], high_at[2];
        float out[6], norm = 2, offset = 3;
        RUN("org.khronos.openvx.tensor_convert_depth.wrap.u8.f32", 3, 2, 1, BUFFER(in), BUFFER(out),
            VALUE_OF(norm), VALUE_OF(offset));
        assert_memory_equal(out, ((float[6]){ 2, 0, 3, 0, 3, 1 }), sizeof(out));
        RUN("org.khronos.openvx.minmaxloc.r1.u8", 3, 2, 1, BUFFER(in), VALUE_OF(low),
            VALUE_OF(high), BUFFER(low_at), BUFFER(high_at));
        assert_int_equal(low, 3);
        assert_int_equal(high, 9);
        assert_memory_equal(low_at, ((uint32_t[2]){ 1, 0 }), 8);
        assert_memory_equal(high_at, ((uint32_t[2]){ 2, 0 }), 8);
}

TEST(gradients_have_a_size_and_a_direction)
{
        (void)state;
        uint8_t in[9] = { 0, 0, 0, 0, 0, 10, 0, 10, 10 }, angle[5];
        int16_t gx[9], gy[9], x[5] = { 3, 0, -5, 0, -32768 }, y[5] = { 4, 7, 0, -7, -32768 };
        uint16_t size[5];
        RUN("pocl.sobel3x3.u8", 3, 3, 1, BUFFER(in), BUFFER(gx), BUFFER(gy));
        assert_int_equal(gx[4], 30);
        assert_int_equal(gy[4], 30);
        assert_int_equal(gx[0], 0);
        assert_int_equal(gx[2], 10); /* 0 0 10 above the lowest row; beyond the edge they repeat */
        assert_int_equal(gy[2], 30);
        RUN("pocl.magnitude.u16", 5, 1, 1, BUFFER(x), BUFFER(y), BUFFER(size));
        assert_memory_equal(size, ((uint16_t[5]){ 5, 7, 5, 7, 46341 }), sizeof(size));
        RUN("pocl.phase.u8", 5, 1, 1, BUFFER(x), BUFFER(y), BUFFER(angle));
        assert_memory_equal(angle, ((uint8_t[5]){ 38, 64, 128, 192, 160 }), sizeof(angle));
}

TEST(edges_are_thinned_and_followed)
{
        (void)state;
        /* Strength across: the middle one of three, the first of two equal ones. */
        uint16_t strength[6] = { 5, 9, 6, 8, 8, 3 }, low = 4, high = 8;
        uint8_t angle[6] = { 0 }, thin[6];
        RUN("pocl.oriented.nonmaxsuppression.u16", 6, 1, 1, BUFFER(strength), BUFFER(angle),
            BUFFER(thin), VALUE_OF(low), VALUE_OF(high));
        assert_memory_equal(thin, ((uint8_t[6]){ 0, 255, 0, 0, 127, 0 }), sizeof(thin));
        memset(angle, 64, sizeof(angle)); /* the edge runs along the row: nothing is across */
        RUN("pocl.oriented.nonmaxsuppression.u16", 6, 1, 1, BUFFER(strength), BUFFER(angle),
            BUFFER(thin), VALUE_OF(low), VALUE_OF(high));
        assert_memory_equal(thin, ((uint8_t[6]){ 127, 255, 127, 127, 127, 0 }), sizeof(thin));

        /* A step from 0 to 200 in the upper half, to 50 in the lower one: that is weak, but goes on. */
        uint8_t image[8 * 8], edges[8 * 8];
        uint16_t lower = 100, upper = 500;
        for (unsigned i = 0; i < 64; i++)
                image[i] = i % 8 < 4 ? 0 : i < 32 ? 200 : 50;
        RUN("pocl.canny.u8", 8, 8, 1, BUFFER(image), BUFFER(edges), VALUE_OF(lower),
            VALUE_OF(upper));
        for (unsigned y = 0; y < 8; y++) {
                unsigned here = 0;
                for (unsigned x = 2; x < 6; x++)
                        here += edges[y * 8 + x] == 255;
                assert_true(here >= 1);
        }
        for (unsigned i = 0; i < 64; i++)
                image[i] = i % 8 < 4 ? 0 : 50; /* weak alone is nothing */
        RUN("pocl.canny.u8", 8, 8, 1, BUFFER(image), BUFFER(edges), VALUE_OF(lower),
            VALUE_OF(upper));
        for (unsigned i = 0; i < 64; i++)
                assert_int_equal(edges[i], 0);
}

/* ---- a designer's rows ---------------------------------------------------------------------- */

TEST(rows_add_kernels)
{
        (void)state;
        char error[REGISTRY_ERROR_SIZE];
        struct registry_rows *rows;
        assert_int_equal(
                registry_rows_parse("# a designer's own\n"
                                    "0x100 acme.fir.f32(const float *in, float* out, uint taps)\n"
                                    "257 acme.add = pocl.add.i32  # the same\n"
                                    "258 acme.go()",
                                    &rows, error),
                0);
        const struct registry_kernel *k = registry_rows_find_id(rows, 0x100);
        assert_string_equal(k->name, "acme.fir.f32");
        assert_int_equal(registry_arg_count(k), 3);
        assert_string_equal(k->args[0].type, "float*");
        assert_string_equal(k->args[2].name, "taps");
        assert_int_equal(k->args[0].access, REGISTRY_IN);
        assert_int_equal(k->args[1].access, REGISTRY_INOUT);
        assert_false(k->args[2].buffer);
        assert_null(k->run);
        k = registry_rows_find_id(rows, 257);
        assert_string_equal(k->name, "acme.add");
        assert_ptr_equal(k->run, registry_find_id(1)->run);
        assert_int_equal(registry_arg_count(registry_rows_find_id(rows, 258)), 0);
        assert_ptr_equal(registry_rows_find_id(rows, 1), registry_find_id(1));
        assert_null(registry_rows_find_id(rows, 9999));
        registry_rows_free(rows);
        static const char *const wrong[][2] = {
                { "\nx y()", "line 2: a row begins" },
                { "1", "name is missing" },
                { "1 a", "`(` or `=`" },
                { "1 a(foo x)", "a type is missing" },
                { "1 a(int)", "name of an argument" },
                { "1 a(int x y)", "`,` or `)`" },
                { "1 a = nothing", "of the table" },
                { "1 a() b", "does not end" },
                { "0xFFFF a()", "0 to 0xFFFE" },
                { "1 x(int a,int b,int c,int d,int e,int f,int g,int h,int i,int j,int k,int l,"
                  "int m,int n,int o,int p,int q,int r,int s,int t,int u)",
                  "at most 20" },
        };
        for (size_t i = 0; i < array_size(wrong); i++) {
                assert_int_equal(registry_rows_parse(wrong[i][0], &rows, error), SP_E_INVAL);
                assert_non_null(strstr(error, wrong[i][1]));
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(arithmetic),
                cmocka_unit_test(every_row_is_one_of_its_own_and_can_be_computed),
                cmocka_unit_test(no_kernel_leaves_its_buffers),
                cmocka_unit_test(data_streamed_out_comes_in),
                cmocka_unit_test(matrices_of_halves),
                cmocka_unit_test(votes_are_counted),
                cmocka_unit_test(the_largest_of_each_window),
                cmocka_unit_test(convolutions),
                cmocka_unit_test(images_are_scaled),
                cmocka_unit_test(pixels_are_converted_and_searched),
                cmocka_unit_test(gradients_have_a_size_and_a_direction),
                cmocka_unit_test(edges_are_thinned_and_followed),
                cmocka_unit_test(rows_add_kernels),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
