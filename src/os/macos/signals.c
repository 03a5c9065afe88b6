/* Signals that a descriptor reports: a queue of EVFILT_SIGNAL. */
#include "os/signals.h"

#include "os/macos/queue.h"

/* The queue notes signals from now on, also those that are blocked. So it is there before the block: a signal in
 * between acts as one before the call. */
int signals_watch(const int *numbers, size_t count)
{
        sigset_t set;
        int fd = queue_new(EVFILT_SIGNAL, numbers, count);
        sigemptyset(&set);
        for (size_t i = 0; i < count; i++)
                sigaddset(&set, numbers[i]);
        sigprocmask(SIG_BLOCK, &set, NULL);
        return fd;
}

/* The queue takes no signal from the process, so this does. One that the process ignores is not pending. */
int signals_next(int fd)
{
        struct kevent e;
        sigset_t set;
        if (!queue_take(fd, &e))
                return 0;
        int number = (int)e.ident, taken;
        if (sigpending(&set) == 0 && sigismember(&set, number) == 1) {
                sigemptyset(&set);
                sigaddset(&set, number);
                (void)sigwait(&set, &taken);
        }
        return number;
}
