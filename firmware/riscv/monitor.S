/* What QEMU's `virt` machine does for an accelerator in its memory: first code, timer and traps. The rest is
 * monitor.c. */
        .section .text.start, "ax"
        .option norvc
        .global monitor_start
monitor_start:
        la sp, monitor_stack_end
        la t0, trap
        csrw mtvec, t0
        la t0, save
        csrw mscratch, t0
        li a0, 0
        call monitor
1:      j 1b

/* All registers that C may change, on a stack of its own: that of a kernel may be full. */
        .balign 4
trap:
        csrrw t6, mscratch, t6
        sw ra, 0(t6)
        sw sp, 4(t6)
        sw t0, 8(t6)
        sw t1, 12(t6)
        sw t2, 16(t6)
        sw t3, 20(t6)
        sw t4, 24(t6)
        sw t5, 28(t6)
        sw a0, 32(t6)
        sw a1, 36(t6)
        sw a2, 40(t6)
        sw a3, 44(t6)
        sw a4, 48(t6)
        sw a5, 52(t6)
        sw a6, 56(t6)
        sw a7, 60(t6)
        la sp, trap_stack_end
        csrr a0, mcause
        call trapped
        la t6, save
        beqz a0, 1f
        csrw mepc, a0
1:      lw ra, 0(t6)
        lw sp, 4(t6)
        lw t0, 8(t6)
        lw t1, 12(t6)
        lw t2, 16(t6)
        lw t3, 20(t6)
        lw t4, 24(t6)
        lw t5, 28(t6)
        lw a0, 32(t6)
        lw a1, 36(t6)
        lw a2, 40(t6)
        lw a3, 44(t6)
        lw a4, 48(t6)
        lw a5, 52(t6)
        lw a6, 56(t6)
        lw a7, 60(t6)
        csrrw t6, mscratch, t6
        mret

        .section .bss.stack, "aw", @nobits
        .balign 16
save:
        .zero 64
        .zero 1024
monitor_stack_end:
        .zero 1024
trap_stack_end:
