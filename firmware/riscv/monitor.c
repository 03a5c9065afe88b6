/* QEMU's `virt` machine as an accelerator: registers, queue and memories lie in its RAM, which is a file that
 * the host maps. This takes commands (reset, run) by looking for them, while a kernel runs on a timer's tick. */
#include <spancl/almaif.h>

#include "machine.h"

/* The RAM's start is that of the registers. */
#define RAM      0x80000000u
#define MTIME    ((volatile uint32_t *)0x0200bff8)
#define MTIMECMP ((volatile uint32_t *)0x02004000)

enum { TICKS_PER_US = 10, TICK_US = 1000, TIMER_INTERRUPT = 7, MIE = 8, MTIE = 128 };

void monitor_start(void);
void monitor(void);
uint32_t trapped(uint32_t cause);

static struct machine machine;

static volatile uint32_t *word(uint32_t at)
{
        return (volatile uint32_t *)(RAM + at);
}

static void timer_in(uint32_t us)
{
        uint32_t high, low;
        do {
                high = MTIME[1];
                low = MTIME[0];
        } while (high != MTIME[1]);
        uint32_t at = low + us * TICKS_PER_US;
        MTIMECMP[1] = UINT32_MAX;
        MTIMECMP[0] = at;
        MTIMECMP[1] = high + (at < low);
}

static void idle(uint32_t us)
{
        timer_in(us);
        __asm__ volatile("wfi" ::: "memory");
}

static void ready(void)
{
        *word(ALMAIF_STATUS) = 0;
}

/* Where to go on; 0: where it was. */
uint32_t trapped(uint32_t cause)
{
        if (cause != (1u << 31 | TIMER_INTERRUPT))
                return (uint32_t)machine.fault;
        timer_in(TICK_US);
        return *word(ALMAIF_COMMAND) == ALMAIF_COMMAND_RESET ? (uint32_t)monitor_start : 0;
}

/* A core enters here when it has just been started, or is reset: with interrupts off, on the
 * monitor's stack. */
void monitor(void)
{
        __asm__ volatile("csrci mstatus, 8; csrw mie, %0" : : "r"(MTIE));
        *word(ALMAIF_WRITE_INDEX) = *word(ALMAIF_READ_INDEX);
        *word(ALMAIF_WRITE_INDEX + 4) = *word(ALMAIF_READ_INDEX + 4);
        __asm__ volatile("fence rw, rw" ::: "memory");
        *word(ALMAIF_STATUS) = ALMAIF_STATUS_RESET;
        machine.idle = idle;
        machine.ready = ready;
        while (*word(ALMAIF_COMMAND) != ALMAIF_COMMAND_RUN)
                idle(TICK_US);
        __asm__ volatile(".word 0x0000100f; fence rw, rw" ::: "memory");
        timer_in(TICK_US);
        __asm__ volatile("csrsi mstatus, 8");
        uint32_t config = RAM + *word(ALMAIF_CONFIG_START);
        ((void (*)(uint32_t, struct machine *))config)(RAM, &machine);
}
