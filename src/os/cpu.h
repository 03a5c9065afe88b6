/* The instructions of this CPU. */
#ifndef SPANCL_OS_CPU_H
#define SPANCL_OS_CPU_H

#include <stdbool.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

/* Return true if the CPU computes CRC-32C (SSE 4.2, ARMv8). */
static inline bool cpu_has_crc32c(void)
{
#if defined(__x86_64__)
        return __builtin_cpu_supports("sse4.2");
#elif defined(__aarch64__)
        enum { HWCAP_CRC = 1 << 7 };
        return (getauxval(AT_HWCAP) & HWCAP_CRC) != 0;
#else
        return false;
#endif
}

#endif
