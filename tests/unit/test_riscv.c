/* Programs for RISC-V accelerators: what the compiler makes is read again, what is damaged is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/riscv/compile.h"
#include "backend/riscv/kernels.h"
#include "base/mem.h"
#include "support/check.h"
#include "support/random.h"

enum { ROUNDS = 4000 };

static const char source[] =
        "kernel __attribute__((reqd_work_group_size(8, 4, 2)))\n"
        "void first(global const int *restrict in, constant float4 *c, local uint *l, uchar3 v, ulong n)\n"
        "{\n"
        "        local int mine[100];\n"
        "        mine[get_local_id(0)] = in[n] + v.x + l[0] + (int)c->x;\n"
        "        barrier(CLK_LOCAL_MEM_FENCE);\n"
        "        ((global int *)in)[n] = mine[0];\n"
        "}\n"
        "kernel void second() { }\n";

/* NULL: no compiler here. */
static struct riscv_compiler *compiler(void)
{
        char error[RISCV_ERROR_SIZE];
        struct riscv_compiler *c = NULL;
        return riscv_compiler_new("", NULL, &c, error) < 0 ? NULL : c;
}

static void build(const struct riscv_compiler *c, const char *text, struct buf *ret)
{
        struct buf object = { 0 }, log = { 0 };
        assert_int_equal(riscv_compile(c, bytes_str(text), "-w", &object, &log), CL_SUCCESS);
        struct bytes one = bytes_of(object.data, object.size);
        assert_int_equal(riscv_link(c, &one, 1, false, ret, &log), CL_SUCCESS);
        buf_fini(&object);
        buf_fini(&log);
}

TEST(a_program_describes_its_kernels)
{
        struct riscv_compiler *c = compiler();
        struct riscv_program *p;
        struct buf elf = { 0 };
        char error[RISCV_ERROR_SIZE];
        if (!c)
                skip();
        build(c, source, &elf);
        assert_int_equal(riscv_program_new(&elf, &p, error), 0);
        assert_int_equal(p->kernel_count, 2);
        const struct riscv_kernel *k = riscv_program_find(p, "first");
        assert_non_null(k);
        assert_int_equal(k->arg_count, 5);
        assert_string_equal(k->attributes, "reqd_work_group_size(8,4,2)");
        assert_int_equal(k->required[2], 2);
        assert_int_equal(k->local_size, 400);
        static const unsigned kinds[] = { ARG_BUFFER, ARG_BUFFER, ARG_LOCAL, ARG_VALUE, ARG_VALUE };
        static const unsigned at[] = { 0, 8, 16, 24, 32 }, sizes[] = { 8, 8, 8, 4, 8 };
        for (unsigned i = 0; i < 5; i++) {
                assert_int_equal(k->args[i].kind, kinds[i]);
                assert_int_equal(k->args[i].at, at[i]);
                assert_int_equal(k->args[i].size, sizes[i]);
        }
        assert_string_equal(k->args[1].type, "float4*");
        assert_string_equal(k->args[3].name, "v");
        assert_int_equal(k->args[0].qualifier,
                         CL_KERNEL_ARG_TYPE_CONST | CL_KERNEL_ARG_TYPE_RESTRICT);
        assert_int_equal(riscv_program_find(p, "second")->arg_count, 0);
        assert_null(riscv_program_find(p, "third"));
        riscv_program_unref(p);
        riscv_compiler_free(c);
}

TEST(damaged_programs_are_refused_or_read_within_their_bounds)
{
        struct riscv_compiler *c = compiler();
        struct rng r = { 1 };
        struct buf elf = { 0 };
        char error[RISCV_ERROR_SIZE];
        unsigned refused = 0;
        if (!c)
                skip();
        build(c, source, &elf);
        for (int i = 0; i < ROUNDS; i++) {
                struct buf copy = { 0 };
                struct riscv_program *p;
                assert_int_equal(buf_put(&copy, elf.data, elf.size), 0);
                for (uint64_t n = rng_range(&r, 1, 4); n; n--) {
                        uint64_t at =
                                rng_chance(&r, 50) ? rng_below(&r, 400) : rng_below(&r, copy.size);
                        copy.data[at % copy.size] = (uint8_t)rng_u64(&r);
                }
                if (rng_chance(&r, 20))
                        copy.size = rng_below(&r, copy.size);
                if (riscv_program_new(&copy, &p, error) == 0) {
                        uint8_t *image = mem_alloc((size_t)p->size + 1);
                        riscv_program_load(p, 0x80000000, image);
                        mem_free(image);
                        riscv_program_unref(p);
                } else {
                        refused++;
                        buf_fini(&copy);
                }
        }
        assert_true(refused > ROUNDS / 10);
        buf_fini(&elf);
        riscv_compiler_free(c);
}

TEST(without_clang_there_is_a_sentence)
{
        struct riscv_compiler *c = compiler();
        char error[RISCV_ERROR_SIZE] = "", *path = mem_strdup(getenv("PATH"));
        if (!c)
                skip();
        riscv_compiler_free(c);
        setenv("PATH", "/nowhere", 1);
        assert_int_equal(riscv_compiler_new("", NULL, &c, error), SP_E_NOENT);
        assert_non_null(strstr(error, "clang"));
        setenv("PATH", path, 1);
        mem_free(path);
}

/* kernels_adapt replaces the parts of the text that the compiler for RISC-V does not take, in the
 * syntax of each version of LLVM. */
TEST(intermediate_text_is_adapted)
{
        static const char text[] = "@f.x = internal global [4 x i32] undef, align 4\n"
                                   "@g = internal constant i32 1\n"
                                   "define hidden spir_kernel void @f(ptr %0) {\n"
                                   "  call spir_func void @g()\n";
        static const char want[] = "@f.x = protected global [4 x i32] undef, align 4\n"
                                   "@g = internal constant i32 1\n"
                                   "define hidden void @f(ptr %0) {\n"
                                   "  call void @g()\n";
        struct buf out = { 0 };
        assert_int_equal(kernels_adapt(bytes_str(text), &out), 0);
        assert_int_equal(out.size, strlen(want));
        assert_memory_equal(out.data, want, out.size);
        buf_fini(&out);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_program_describes_its_kernels),
                cmocka_unit_test(damaged_programs_are_refused_or_read_within_their_bounds),
                cmocka_unit_test(without_clang_there_is_a_sentence),
                cmocka_unit_test(intermediate_text_is_adapted),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
