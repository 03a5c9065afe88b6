/* A program for RISC-V accelerators (rv32im): an ELF file, position independent, with the kernels' descriptions
 * in it. Read once, checked, immutable; shared by reference. Thread-safe. */
#ifndef SPANCL_BACKEND_RISCV_PROGRAM_H
#define SPANCL_BACKEND_RISCV_PROGRAM_H

#include <CL/cl.h>
#include <spancl/riscv.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "backend/emit.h"
#include "base/bytes.h"
#include "proto/args.h"

enum { RISCV_ARGS_SIZE = 1024 /* CL_DEVICE_MAX_PARAMETER_SIZE */, RISCV_ERROR_SIZE = 200 };

struct riscv_arg {
        const char *name, *type; /* in the program */
        enum arg_kind kind;      /* ARG_VALUE, ARG_BUFFER, ARG_LOCAL */
        cl_kernel_arg_address_qualifier address;
        cl_kernel_arg_type_qualifier qualifier;
        uint32_t at, size; /* behind struct riscv_arguments */
};

struct riscv_kernel {
        const char *name, *attributes;
        size_t required[3]; /* reqd_work_group_size; 0: none */
        uint32_t entry;     /* from the start of the program */
        uint64_t local_size;
        uint32_t args_size;
        struct riscv_arg *args;
        unsigned arg_count;
};

struct riscv_program {
        atomic_uint refs;
        struct buf elf;
        uint32_t size; /* of it in memory */
        struct riscv_kernel *kernels;
        size_t kernel_count;
        char *names; /* memory of all names */
};

/* Make a program of `elf`, which is taken over on success only. SP_E_INVAL with a sentence: not a
 * program of this interface; SP_E_NOMEM. */
SP_NODISCARD int riscv_program_new(struct buf *elf, struct riscv_program **ret,
                                   char error[RISCV_ERROR_SIZE]);
struct riscv_program *riscv_program_ref(struct riscv_program *p);
void riscv_program_unref(struct riscv_program *p);

const struct riscv_kernel *riscv_program_find(const struct riscv_program *p, const char *name);

/* Load its `size` bytes of memory for a core that sees them at `address`. */
void riscv_program_load(const struct riscv_program *p, uint32_t address, uint8_t *ret);

/* Emit one INFO_KERNEL record for each kernel, with a block for each of `devices`. */
void riscv_program_describe(struct emit *e, const struct riscv_program *p, const unsigned *devices,
                            size_t device_count, size_t group_max);

#endif
