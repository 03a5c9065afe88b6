#include "os/signals.h"

#include <string.h>
#include <unistd.h>

void signals_catch_faults(void (*handler)(int number))
{
        static const int faults[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS };
        const struct sigaction a = { .sa_handler = handler, .sa_flags = SA_RESETHAND | SA_NODEFER };
        for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
                (void)sigaction(faults[i], &a, NULL);
}

bool signals_catch_free(int number, void (*handler)(int number))
{
        struct sigaction now;
        if (sigaction(number, NULL, &now) < 0 || now.sa_flags & SA_SIGINFO ||
            now.sa_handler != SIG_DFL)
                return false;
        return !sigaction(
                number, &(struct sigaction){ .sa_handler = handler, .sa_flags = SA_RESTART }, NULL);
}

void signals_release(int number, void (*handler)(int number))
{
        struct sigaction now;
        if (sigaction(number, NULL, &now) == 0 && !(now.sa_flags & SA_SIGINFO) &&
            now.sa_handler == handler)
                (void)sigaction(number, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
}

void signals_stop(void)
{
        (void)raise(SIGSTOP);
}

void signals_die(int number)
{
        sigset_t set;
        (void)sigaction(number, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
        sigemptyset(&set);
        sigaddset(&set, number);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        (void)raise(number);
        _exit(128 + number);
}

static const char *limit_text;

static void on_limit(int number)
{
        (void)number;
        (void)!write(STDERR_FILENO, limit_text, strlen(limit_text));
        _exit(1);
}

void signals_limit(unsigned seconds, const char *text)
{
        limit_text = text;
        (void)sigaction(SIGALRM, &(struct sigaction){ .sa_handler = on_limit }, NULL);
        alarm(seconds);
}

void signals_ignore_pipe(void)
{
        signal(SIGPIPE, SIG_IGN);
}
