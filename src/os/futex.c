#include "os/futex.h"

#include <limits.h>
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void futex_wait(void *word, uint32_t seen, uint64_t timeout_ns)
{
        const struct timespec t = { (time_t)(timeout_ns / 1000000000),
                                    (long)(timeout_ns % 1000000000) };
        (void)syscall(SYS_futex, word, FUTEX_WAIT, seen, &t, NULL, 0);
}

void futex_wake(void *word)
{
        (void)syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}
