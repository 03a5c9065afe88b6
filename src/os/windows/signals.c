/* Windows sends no signals but those of the C library: keys of the terminal and faults. */
#include "os/signals.h"

#include <errno.h>
#include <process.h>
#include <stdlib.h>

int signals_watch(const int *numbers, size_t count)
{
        (void)numbers, (void)count;
        errno = ENOSYS;
        return -1;
}

int signals_next(int fd)
{
        (void)fd;
        return 0;
}

void signals_catch_faults(void (*handler)(int number))
{
        (void)handler;
}

bool signals_catch_free(int number, void (*handler)(int number))
{
        (void)number, (void)handler;
        return false;
}

void signals_release(int number, void (*handler)(int number))
{
        (void)number, (void)handler;
}

void signals_die(int number)
{
        _exit(128 + number);
}
