/* The instructions of this CPU. */
#ifndef SPANCL_OS_CPU_H
#define SPANCL_OS_CPU_H

#include <stdbool.h>
#if defined(__aarch64__) && !defined(__ARM_FEATURE_CRC32)
#include <sys/auxv.h>
#elif defined(__x86_64__)
#include <cpuid.h>
#endif

/* Return true if the CPU computes CRC-32C (SSE 4.2, ARMv8). */
static inline bool cpu_has_crc32c(void)
{
#if defined(__x86_64__)
        return __builtin_cpu_supports("sse4.2");
#elif defined(__ARM_FEATURE_CRC32) /* all CPUs of the target do, as those of Macs */
        return true;
#elif defined(__aarch64__)
        enum { HWCAP_CRC = 1 << 7 };
        return (getauxval(AT_HWCAP) & HWCAP_CRC) != 0;
#else
        return false;
#endif
}

/* Return true if the counter of rdtsc runs at the same rate in all states of the CPU ("invariant TSC"). */
static inline bool cpu_has_constant_counter(void)
{
#if defined(__x86_64__)
        unsigned a, b, c, d = 0;
        return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & 1u << 8;
#else
        return false;
#endif
}

#endif
