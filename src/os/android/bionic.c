#include "os/android/bionic.h"

#include <errno.h>
#include <sys/system_properties.h>
#include <unistd.h>

void bionic_clear(void *at, size_t size)
{
        memset(at, 0, size);
        __asm__ volatile("" : : "r"(at) : "memory"); /* the compiler keeps the writes */
}

char *bionic_current_folder(void)
{
        return getcwd(NULL, 0);
}

int bionic_join_signals(sigset_t *ret, const sigset_t *a, const sigset_t *b)
{
        enum { SIGNALS = 8 * sizeof(sigset_t) };
        sigset_t both;
        sigemptyset(&both);
        for (int i = 1; i <= SIGNALS; i++) {
                if (sigismember(a, i) == 1 || sigismember(b, i) == 1)
                        (void)sigaddset(&both, i);
        }
        *ret = both;
        return 0;
}

int bionic_library_info(void *library, int what, void *ret)
{
        (void)library;
        (void)what;
        (void)ret;
        return -1;
}

#if __ANDROID_API__ < 28
ssize_t bionic_random(void *ret, size_t size, unsigned flags)
{
        (void)flags; /* bionic always seeds its generator */
        arc4random_buf(ret, size);
        return (ssize_t)size;
}
#endif

#if __ANDROID_API__ < 30
int bionic_memory_file(const char *name, unsigned flags)
{
        enum { ANDROID_11 = 30 };
        char text[PROP_VALUE_MAX] = "";
        if (__system_property_get("ro.build.version.sdk", text) <= 0 || atoi(text) < ANDROID_11) {
                errno = ENOSYS;
                return -1;
        }
        return (int)syscall(SYS_memfd_create, name, flags);
}
#endif
