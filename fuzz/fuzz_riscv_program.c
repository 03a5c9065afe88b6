/* A program for RISC-V accelerators, as clCreateProgramWithBinary brings it. */
#include "fuzz/target.h"

#include "backend/riscv/program.h"
#include "base/mem.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char error[RISCV_ERROR_SIZE];
        struct riscv_program *p;
        struct buf elf = { 0 }, info = { 0 };
        unsigned device = 0;
        if (buf_put(&elf, data, size) < 0)
                return 0;
        if (riscv_program_new(&elf, &p, error) < 0) {
                buf_fini(&elf);
                return 0;
        }
        fuzz_check(!elf.data && p->elf.size == size);
        uint8_t *image = mem_alloc((size_t)p->size + 1);
        if (image)
                riscv_program_load(p, 0x80000000, image);
        struct emit e = { .out = &info };
        riscv_program_describe(&e, p, &device, 1, 64);
        fuzz_check(e.status < 0 || info_check(bytes_of(info.data, info.size)) == 0);
        for (size_t i = 0; i < p->kernel_count; i++) {
                fuzz_check(riscv_program_find(p, p->kernels[i].name));
                fuzz_check(p->kernels[i].entry <= p->size);
        }
        mem_free(image);
        buf_fini(&info);
        riscv_program_unref(p);
        return 0;
}
