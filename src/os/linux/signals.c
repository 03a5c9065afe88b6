/* Signals that a descriptor reports: signalfd(2). */
#include "os/signals.h"

#include <sys/signalfd.h>
#include <unistd.h>

int signals_watch(const int *numbers, size_t count)
{
        sigset_t set;
        sigemptyset(&set);
        for (size_t i = 0; i < count; i++)
                sigaddset(&set, numbers[i]);
        sigprocmask(SIG_BLOCK, &set, NULL);
        return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

int signals_next(int fd)
{
        struct signalfd_siginfo info;
        return read(fd, &info, sizeof(info)) == sizeof(info) ? (int)info.ssi_signo : 0;
}
