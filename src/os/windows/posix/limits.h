/* Limits of POSIX that Windows lacks. */
#ifndef SPANCL_OS_WINDOWS_POSIX_LIMITS_H
#define SPANCL_OS_WINDOWS_POSIX_LIMITS_H

#include_next <limits.h>

#ifndef NAME_MAX
#define NAME_MAX 255
#endif

#endif
