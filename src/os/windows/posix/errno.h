/* Errors of POSIX that Windows lacks, and the name of the program. */
#ifndef SPANCL_OS_WINDOWS_POSIX_ERRNO_H
#define SPANCL_OS_WINDOWS_POSIX_ERRNO_H

#include_next <errno.h>

#ifndef EHOSTDOWN
#define EHOSTDOWN 2001
#endif

const char *windows_program_name(void);
#define program_invocation_short_name windows_program_name()

#endif
