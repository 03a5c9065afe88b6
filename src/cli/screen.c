#include "cli/screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

#include "base/mem.h"

/* The alternate screen, without a cursor, without line breaks at the margin; and back. */
static const char begin[] = "\033[?1049h\033[?25l\033[?7l\033[H\033[2J";
static const char end[] = "\033[0m\033[?7h\033[?25h\033[?1049l";

static const int waited[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH };
static const int fatal[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };

static struct {
        struct termios before;
        bool open;
        int signals;
        /* Bytes of the keyboard that are not used yet. */
        char input[64];
        size_t size;
} screen = { .signals = -1 };

static void put(const char *data, size_t size)
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

/* Called by the handler of fatal signals, too. */
static void restore(void)
{
        if (!screen.open)
                return;
        screen.open = false;
        put(end, sizeof(end) - 1);
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &screen.before);
}

static void on_fatal(int signal)
{
        restore();
        (void)raise(signal); /* its handler is the default again */
}

static void set_up(void)
{
        struct termios t = screen.before;
        t.c_lflag &= (tcflag_t) ~(ICANON | ECHO);
        t.c_cc[VMIN] = 1;
        t.c_cc[VTIME] = 0;
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &t);
        screen.open = true;
        put(begin, sizeof(begin) - 1);
}

bool screen_is_possible(void)
{
        const char *term = getenv("TERM");
        return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) && term && *term &&
               strcmp(term, "dumb") != 0;
}

int screen_open(void)
{
        struct sigaction a = { .sa_handler = on_fatal, .sa_flags = SA_RESETHAND | SA_NODEFER };
        sigset_t set;
        sigemptyset(&set);
        for (size_t i = 0; i < array_size(waited); i++)
                sigaddset(&set, waited[i]);
        if (tcgetattr(STDIN_FILENO, &screen.before) < 0)
                return SP_E_UNSUPP;
        screen.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
        if (screen.signals < 0)
                return SP_E_LIMIT;
        sigprocmask(SIG_BLOCK, &set, NULL);
        for (size_t i = 0; i < array_size(fatal); i++)
                (void)sigaction(fatal[i], &a, NULL);
        set_up();
        return 0;
}

void screen_close(void)
{
        restore();
        if (screen.signals >= 0)
                close(screen.signals);
        screen.signals = -1;
}

void screen_size(int *ret_width, int *ret_height)
{
        struct winsize w = { 0 };
        if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) < 0 || !w.ws_col || !w.ws_row)
                w = (struct winsize){ .ws_col = 80, .ws_row = 24 };
        *ret_width = w.ws_col;
        *ret_height = w.ws_row;
}

/* ---- input ---------------------------------------------------------------------------------- */

static void drop(size_t n)
{
        screen.size -= n;
        memmove(screen.input, screen.input + n, screen.size);
}

/* Take a sequence of CSI or SS3 that begins with ESC. 0: it is no key that we know; -1: its end has not come. */
static int take_sequence(void)
{
        static const struct {
                const char *text;
                int event;
        } keys[] = {
                { "A", SCREEN_UP },       { "B", SCREEN_DOWN },     { "C", SCREEN_RIGHT },
                { "D", SCREEN_LEFT },     { "5~", SCREEN_PAGE_UP }, { "6~", SCREEN_PAGE_DOWN },
                { "H", SCREEN_HOME },     { "F", SCREEN_END_KEY },  { "1~", SCREEN_HOME },
                { "4~", SCREEN_END_KEY },
        };
        size_t n = 2;
        int event = 0;
        if (screen.size < 2)
                return -1;
        if (screen.input[1] != '[' && screen.input[1] != 'O') {
                drop(1);
                return 0;
        }
        while (n < screen.size && (screen.input[n] < '@' || screen.input[n] > '~'))
                n++; /* parameters and intermediates in front of the final byte */
        if (n == screen.size && n < sizeof(screen.input))
                return -1;
        n += n < screen.size;
        for (size_t i = 0; i < array_size(keys); i++)
                if (n - 2 == strlen(keys[i].text) && !memcmp(screen.input + 2, keys[i].text, n - 2))
                        event = keys[i].event;
        drop(n);
        return event;
}

/* Return the next key that has been read; 0: there is none. */
static int take_key(void)
{
        int key = 0;
        while (screen.size && !key) {
                if (screen.input[0] == '\033') {
                        key = take_sequence();
                        continue;
                }
                key = (unsigned char)screen.input[0];
                drop(1);
        }
        return key > 0 ? key : 0;
}

/* ---- events --------------------------------------------------------------------------------- */

/* Let the job control stop the program, in the terminal's former state. */
static int stop(void)
{
        restore();
        (void)raise(SIGSTOP);
        set_up();
        return SCREEN_SIZE;
}

/* 0: no signal that matters. */
static int take_signal(void)
{
        struct signalfd_siginfo info;
        if (read(screen.signals, &info, sizeof(info)) != sizeof(info))
                return 0;
        switch (info.ssi_signo) {
        case SIGTSTP:
                return stop();
        case SIGCONT:
        case SIGWINCH:
                return SCREEN_SIZE;
        default:
                return SCREEN_SIGNAL + (int)info.ssi_signo;
        }
}

int screen_wait(int wake, int timeout_ms)
{
        int key = take_key();
        if (key)
                return key;
        struct pollfd p[] = { { .fd = screen.signals, .events = POLLIN },
                              { .fd = STDIN_FILENO, .events = POLLIN },
                              { .fd = wake, .events = POLLIN } };
        int n = poll(p, array_size(p), timeout_ms);
        if (n <= 0)
                return SCREEN_TIME;
        if (p[0].revents) {
                int event = take_signal();
                if (event)
                        return event;
        }
        if (p[1].revents) {
                ssize_t got = read(STDIN_FILENO, screen.input + screen.size,
                                   sizeof(screen.input) - screen.size);
                if (got == 0 || (got < 0 && errno != EINTR && errno != EAGAIN))
                        return SCREEN_GONE;
                screen.size += got > 0 ? (size_t)got : 0;
                key = take_key();
                return key ? key : SCREEN_TIME;
        }
        return p[2].revents ? SCREEN_WAKE : SCREEN_TIME;
}

void screen_show(struct bytes lines)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        const char *p = lines.data, *stop_at = p + lines.size;
        int r = buf_put(&out, "\033[H", 3);
        while (p < stop_at && !r) {
                const char *line = memchr(p, '\n', (size_t)(stop_at - p));
                if (!line)
                        line = stop_at;
                /* Erase first: behind a line that fills the width, it would erase the last letter. */
                r = buf_put(&out, "\033[K", 3);
                if (!r)
                        r = buf_put(&out, p, (size_t)(line - p));
                p = line + (line < stop_at);
                if (!r && p < stop_at) /* none behind the last line: it would scroll */
                        r = buf_put(&out, "\r\n", 2);
        }
        if (!r)
                r = buf_put(&out, "\033[J", 3);
        if (!r)
                put((const char *)out.data, out.size);
}

void screen_die(int signal)
{
        sigset_t set;
        (void)sigaction(signal, &(struct sigaction){ .sa_handler = SIG_DFL }, NULL);
        sigemptyset(&set);
        sigaddset(&set, signal);
        sigprocmask(SIG_UNBLOCK, &set, NULL);
        (void)raise(signal);
        _exit(128 + signal);
}
