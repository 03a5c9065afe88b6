#include "os/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

void futex_wait(void *word, uint32_t seen, uint64_t timeout_ns)
{
        /* As this system call has it on every host, also where the C library's own time is wider. */
        const struct {
                long seconds, nanoseconds;
        } t = { (long)(timeout_ns / 1000000000), (long)(timeout_ns % 1000000000) };
        (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

void futex_wake(void *word)
{
        (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
