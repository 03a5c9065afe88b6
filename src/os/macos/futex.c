#include "os/futex.h"

#include <stddef.h>

/* Of macOS 14.4: <os/os_sync_wait_on_address.h>, which the headers of some compilers lack. */
enum { SHARED = 1, MACH_ABSOLUTE_TIME = 32 };
int os_sync_wait_on_address_with_timeout(void *word, uint64_t seen, size_t size, uint32_t flags,
                                         uint32_t clock, uint64_t timeout_ns);
int os_sync_wake_by_address_all(void *word, size_t size, uint32_t flags);

void futex_wait(void *word, uint32_t seen, uint64_t timeout_ns)
{
        if (timeout_ns) /* 0 is an error there */
                (void)os_sync_wait_on_address_with_timeout(word, seen, sizeof(seen), SHARED,
                                                           MACH_ABSOLUTE_TIME, timeout_ns);
}

void futex_wake(void *word)
{
        (void)os_sync_wake_by_address_all(word, sizeof(uint32_t), SHARED);
}
