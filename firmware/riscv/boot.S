/* What the core of hdl/riscv does before the firmware, which finds in it what machine.h asks for. At 0x80001000 it begins,
 * at 0x80001040 it goes on after a trap. */
#define RAM 0x80000000

        .section .text.start, "ax"
        .option norvc
        .global boot
boot:
        li a0, RAM
        la a1, machine
        lw t0, 0x318(a0) /* ALMAIF_CONFIG_START */
        add t0, t0, a0
        jr t0
        .balign 64
trap:
        la t0, machine
        lw t0, 8(t0)
        jr t0
idle:
        wfi
        ret
ready:
        li t0, RAM
        sw zero, 0(t0) /* ALMAIF_STATUS */
        ret
        .balign 4
machine:
        .word idle, ready, 0
