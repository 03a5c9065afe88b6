/* The start of the configuration memory: jump, header, entry; and changing from one stack to another. */
#include <spancl/riscv.h>

        .section .text.start, "ax"
        .option norvc
        .global start
start:
        j begin
        nop
        .global header
header: /* struct riscv_header */
        .word RISCV_MAGIC, RISCV_ABI
        .word image_size
        .zero 8 * 4

/* a0: the accelerator's registers; a1: struct machine (firmware.c). Memory behind the image is zeroed. */
begin:
        la t0, bss_begin
        la t1, bss_end
1:      bgeu t0, t1, 2f
        sw zero, 0(t0)
        addi t0, t0, 4
        j 1b
2:      la sp, main_stack_end
        la tp, nothing
        call firmware
3:      j 3b

/* void change(uint32_t **from, uint32_t *to): leave this stack, noting where in *from, go on with another. */
        .global change
change:
        addi sp, sp, -64
        sw ra, 0(sp)
        sw s0, 4(sp)
        sw s1, 8(sp)
        sw s2, 12(sp)
        sw s3, 16(sp)
        sw s4, 20(sp)
        sw s5, 24(sp)
        sw s6, 28(sp)
        sw s7, 32(sp)
        sw s8, 36(sp)
        sw s9, 40(sp)
        sw s10, 44(sp)
        sw s11, 48(sp)
        sw tp, 52(sp)
        sw sp, 0(a0)
        mv sp, a1
/* What the core does instead of an instruction that it cannot: sp is set by whoever comes here. */
restore:
        lw ra, 0(sp)
        lw s0, 4(sp)
        lw s1, 8(sp)
        lw s2, 12(sp)
        lw s3, 16(sp)
        lw s4, 20(sp)
        lw s5, 24(sp)
        lw s6, 28(sp)
        lw s7, 32(sp)
        lw s8, 36(sp)
        lw s9, 40(sp)
        lw s10, 44(sp)
        lw s11, 48(sp)
        lw tp, 52(sp)
        addi sp, sp, 64
        ret

/* The first thing on a new stack (firmware.c: item_stack). */
        .global first
first:
        mv a0, s0
        jr s1

/* Where the machine goes when a kernel does what it must not: back to the main stack. */
        .global fault
fault:
        la t0, faulted
        li t1, 1
        sw t1, 0(t0)
        la t0, main_context
        lw sp, 0(t0)
        j restore

        .section .bss.stack, "aw", @nobits
        .balign 16
        .zero 4096
main_stack_end:
        .global nothing
nothing:
        .zero 64
