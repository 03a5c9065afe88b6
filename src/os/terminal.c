#include "os/terminal.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

static struct termios kept;

int terminal_keep(void)
{
        return tcgetattr(STDIN_FILENO, &kept) < 0 ? SP_E_UNSUPP : 0;
}

void terminal_read_keys(void)
{
        struct termios t = kept;
        t.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
        t.c_cc[VMIN] = 1;
        t.c_cc[VTIME] = 0;
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &t);
}

void terminal_restore(void)
{
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &kept);
}

void terminal_write(const char *data, size_t size)
{
        while (size) {
                ssize_t n = write(STDOUT_FILENO, data, size);
                if (n < 0 && errno == EAGAIN) {
                        struct pollfd p = { .fd = STDOUT_FILENO, .events = POLLOUT };
                        (void)poll(&p, 1, -1);
                }
                if (n < 0 && errno != EINTR && errno != EAGAIN)
                        return;
                data += n > 0 ? n : 0;
                size -= n > 0 ? (size_t)n : 0;
        }
}

void terminal_never_pause(void)
{
}

void terminal_size(int *ret_width, int *ret_height)
{
        struct winsize w = { 0 };
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || !w.ws_col || !w.ws_row)
                w = (struct winsize){ .ws_col = 80, .ws_row = 24 };
        *ret_width = w.ws_col;
        *ret_height = w.ws_row;
}
