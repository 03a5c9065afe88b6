/* lwIP's view of the compiler. */
#ifndef ARCH_CC_H
#define ARCH_CC_H

#include <stdint.h>

#define LWIP_NO_INTTYPES_H 0
#define LWIP_NO_CTYPE_H    1
#define LWIP_NO_UNISTD_H   1
#define LWIP_NO_LIMITS_H   0
#define LWIP_PLATFORM_DIAG(x)
#define LWIP_PLATFORM_ASSERT(x) __builtin_trap()

uint32_t firmware_random(void);
#define LWIP_RAND() firmware_random()

#endif
