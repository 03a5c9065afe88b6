/* Numbers of POSIX's signals that Windows lacks and never sends. */
#ifndef SPANCL_OS_WINDOWS_POSIX_SIGNAL_H
#define SPANCL_OS_WINDOWS_POSIX_SIGNAL_H

#include_next <signal.h>

enum {
        SIGHUP = 1,
        SIGQUIT = 3,
        SIGTRAP = 5,
        SIGBUS = 7,
        SIGKILL = 9,
        SIGUSR1 = 10,
        SIGUSR2 = 12,
        SIGPIPE = 13,
        SIGALRM = 14,
        SIGCHLD = 17,
        SIGCONT = 18,
        SIGSTOP = 19,
        SIGTSTP = 20,
        SIGXCPU = 24,
        SIGVTALRM = 26,
        SIGPROF = 27,
        SIGWINCH = 28,
        SIGIO = 29
};

#endif
