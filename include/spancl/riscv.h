/* The interface of an AlmaIF accelerator that runs compiled kernels on a RISC-V core (rv32im): the
 * contents of its configuration memory, and the structs that host, firmware and kernels share.
 * docs/internals/riscv.md explains it.
 *
 * Plain C that firmware includes, too. All values are little-endian; pointers of the core are 32
 * bits. */
#ifndef SPANCL_RISCV_H
#define SPANCL_RISCV_H

#define RISCV_MAGIC       0x52435053 /* "SPCR" */
#define RISCV_ABI         1          /* of programs: changes whenever something here does */
#define RISCV_STACK_SIZE  16384      /* of a work-item */
#define RISCV_ITEM_SIZE   128        /* most bytes of the firmware's record of a work-item */
#define RISCV_GROUP_MAX   1024       /* work-items of a group, if the memory suffices */
#define RISCV_LOCAL_SIZE  65536      /* local memory that arguments can have */
#define RISCV_OUTPUT_SIZE 65536      /* ring for what kernels print, a power of two */

/* The image begins with code (a jump to it), then the header. The host fills in what follows `image_size`
 * before the core runs; offsets are from the start of the configuration memory. */
#define RISCV_HEADER_AT 8

#ifndef __ASSEMBLER__
#ifdef __OPENCL_VERSION__
typedef uint uint32_t;
#else
#include <stdint.h>
#endif

struct riscv_header {
        uint32_t magic, abi;
        uint32_t image_size; /* bytes, with the part that is zeroed at the start */
        uint32_t group_max;  /* work-items that items and stacks suffice for */
        uint32_t items_at, stacks_at, local_at, output_at;
        uint32_t address;     /* firmware: where the core sees the configuration memory */
        uint32_t output_end;  /* firmware: bytes printed so far; place in the ring by the size */
        uint32_t output_read; /* host: bytes taken out; the firmware waits when the ring is full */
};

/* The start of a kernel's arguments. The arguments follow it, each at a multiple of its alignment.
 * Addresses have 8 bytes and are relative to the data memory; addresses of local memory are
 * relative to the group's. A dispatch packet names a kernel by its entry's offset in the
 * configuration memory. */
struct riscv_arguments {
        uint32_t offset[3]; /* of global ids */
        uint32_t reserved;
};

/* A work-group's state. Each work-item's struct riscv_item, which the thread pointer (tp) points
 * to, refers to it. */
struct riscv_group {
        uint32_t dimensions;
        uint32_t global_size[3], offset[3], local_size[3], group_size[3], groups[3], group[3];
        uint32_t local_memory; /* addresses */
        uint32_t data_memory;
        uint32_t items;
        uint32_t barrier;    /* address of void (*)(void): until all work-items were here */
        uint32_t print;      /* of void (*)(const char *, uint32_t) */
        uint32_t shared[64]; /* for functions of the whole group */
};

struct riscv_item {
        uint32_t group; /* address */
        uint32_t local_id[3], global_id[3];
        uint32_t index; /* in the group */
};

#endif
#endif
