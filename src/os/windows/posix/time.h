/* C's times, with POSIX's conversions that any thread may call. */
#ifndef SPANCL_OS_WINDOWS_POSIX_TIME_H
#define SPANCL_OS_WINDOWS_POSIX_TIME_H

#ifndef _POSIX_THREAD_SAFE_FUNCTIONS
#define _POSIX_THREAD_SAFE_FUNCTIONS 200809L
#endif
#include_next <time.h>

#define timegm _mkgmtime

#endif
