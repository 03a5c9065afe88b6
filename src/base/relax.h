/* A pause for threads that poll. */
#ifndef SPANCL_BASE_RELAX_H
#define SPANCL_BASE_RELAX_H

/* Leave the core's resources to its other thread for some tens of nanoseconds. */
static inline void cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
        __builtin_ia32_pause();
#elif defined(__aarch64__)
        __asm__ volatile("yield");
#endif
}

#endif
