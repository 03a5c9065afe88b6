/* Functions and constants of glibc that macOS has by other names. A macOS build includes this header at the start of
 * each source (CMakeLists.txt). The contracts are those of the functions' man pages. Any thread. */
#ifndef SPANCL_OS_MACOS_LIBC_H
#define SPANCL_OS_MACOS_LIBC_H

#define __STDC_WANT_LIB_EXT1__ 1 /* for memset_s */

#include <crt_externs.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A library has no symbol `environ` there. */
#define environ (*_NSGetEnviron())

#define program_invocation_short_name getprogname()

static inline char *macos_secure_getenv(const char *name)
{
        return issetugid() ? NULL : getenv(name);
}
#define secure_getenv macos_secure_getenv

#define explicit_bzero(at, size) ((void)memset_s((at), (size), 0, (size)))

/* macOS passes `user` first. */
void macos_sort(void *all, size_t count, size_t size,
                int (*compare)(const void *a, const void *b, void *user), void *user);
#define qsort_r macos_sort

void *macos_memrchr(const void *data, int c, size_t size);
#define memrchr macos_memrchr

#define get_current_dir_name() getcwd(NULL, 0)

#define st_mtim st_mtimespec

/* recvmsg(2) drops descriptors for which it gets no room, and os/net/socket_io.h gives it none. */
#define MSG_CMSG_CLOEXEC 0

#define TCP_KEEPIDLE TCP_KEEPALIVE

#endif
