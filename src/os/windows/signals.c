/* Windows sends no signals. Events of the console, such as Ctrl-C, take the place of those that end a program. Other
 * parts of os note the ends of children and the requests of the service manager. */
#include "os/signals.h"

#include <process.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "os/file.h"
#include "os/net/socket.h"
#include "os/windows/signals.h"

#include <windows.h>

/* The writing end of the connection whose reading end is the descriptor of the watch. */
static atomic_int events = -1;

static int signal_of(DWORD event)
{
        return event == CTRL_C_EVENT       ? SIGINT
               : event == CTRL_BREAK_EVENT ? SIGQUIT
               : event == CTRL_CLOSE_EVENT ? SIGHUP
                                           : SIGTERM;
}

bool signals_note(int number)
{
        char byte = (char)number;
        int to = atomic_load(&events);
        return to >= 0 && socket_send(to, &byte, 1) == 1;
}

/* The system calls it in a thread of its own. After the reader has closed its end, the event ends the program. The
 * system ends the process when this function returns from other events than Ctrl-C and Ctrl-Break, and after some
 * seconds; so it lets the main thread return first. */
static BOOL WINAPI note(DWORD event)
{
        if (event == CTRL_LOGOFF_EVENT) /* of any user, and only services get it */
                return TRUE;
        bool noted = signals_note(signal_of(event));
        if (noted && event != CTRL_C_EVENT && event != CTRL_BREAK_EVENT)
                Sleep(INFINITE);
        return noted;
}

/* The events of the console that end a program. All are noted, also where `numbers` has only a part of them. */
int signals_watch(const int *numbers, size_t count)
{
        int ends[2];
        (void)numbers, (void)count;
        if (!socket_pair_streams(ends))
                return -1;
        if (!file_never_wait(ends[0]) || !file_never_wait(ends[1])) {
                (void)file_close(ends[0]);
                (void)file_close(ends[1]);
                return -1;
        }
        int before = atomic_exchange(&events, ends[1]);
        if (before >= 0)
                (void)file_close(before);
        else
                (void)SetConsoleCtrlHandler(note, TRUE);
        return ends[0];
}

int signals_next(int fd)
{
        char number;
        return socket_receive(fd, &number, 1) == 1 ? number : 0;
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

void signals_ignore_pipe(void)
{
}

void signals_die(int number)
{
        _exit(128 + number);
}

/* The system has no job control, so no event asks for this. */
void signals_stop(void)
{
}
