/* Functions of glibc that Android's C library (bionic) does not have, or has only on later versions of Android. An
 * Android build includes this header at the start of each source (CMakeLists.txt). The contracts are those of the
 * functions' man pages, except where a comment says otherwise. Any thread. */
#ifndef SPANCL_OS_ANDROID_BIONIC_H
#define SPANCL_OS_ANDROID_BIONIC_H

#include <dlfcn.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/types.h>

/* Android's filter of system calls ends an application that makes a call which its version does not know. Code that
 * tries these calls has another way without them. */
#undef SYS_userfaultfd
#undef SYS_close_range

/* An application has no rights beyond those of its user. */
#define secure_getenv getenv

#define program_invocation_short_name getprogname()

void bionic_clear(void *at, size_t size);
#define explicit_bzero bionic_clear

char *bionic_current_folder(void);
#define get_current_dir_name bionic_current_folder

int bionic_join_signals(sigset_t *ret, const sigset_t *a, const sigset_t *b);
#define sigorset bionic_join_signals

/* Returns -1, because Android's linker does not give this information. */
int bionic_library_info(void *library, int what, void *ret);
#define RTLD_DI_LINKMAP 2
#define dlinfo          bionic_library_info

#if __ANDROID_API__ < 28
ssize_t bionic_random(void *ret, size_t size, unsigned flags);
#define getrandom bionic_random
#endif

#if __ANDROID_API__ < 30
/* ENOSYS: Android is older than 11. */
int bionic_memory_file(const char *name, unsigned flags);
#define memfd_create bionic_memory_file
#endif

#endif
