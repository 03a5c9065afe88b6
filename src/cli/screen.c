#include "cli/screen.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "os/file.h"
#include "os/poll.h"
#include "os/process/environment.h"
#include "os/signals.h"
#include "os/terminal.h"

/* The alternate screen, without a cursor, without line breaks at the margin; and back. */
static const char begin[] = "\033[?1049h\033[?25l\033[?7l\033[H\033[2J";
static const char end[] = "\033[0m\033[?7h\033[?25h\033[?1049l";

/* All that end or stop a program from outside. */
static const int waited[] = { SIGINT,  SIGTERM, SIGHUP,  SIGQUIT,   SIGTSTP, SIGCONT, SIGWINCH,
                              SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGIO };

static struct {
        bool open;
        int signals;
        /* Bytes of the keyboard that are not used yet. */
        char input[64];
        size_t size;
} screen = { .signals = -1 };

/* Called by the handler of fatal signals, too. */
static void restore(void)
{
        if (!screen.open)
                return;
        screen.open = false;
        terminal_write(end, sizeof(end) - 1);
        terminal_restore();
}

static void on_fatal(int signal)
{
        restore();
        (void)raise(signal); /* its handler is the default again */
}

static void set_up(void)
{
        terminal_read_keys();
        screen.open = true;
        terminal_write(begin, sizeof(begin) - 1);
}

bool screen_is_possible(void)
{
        const char *term = environment_get("TERM");
        return file_is_terminal(FILE_STDIN) && file_is_terminal(FILE_STDOUT) && term && *term &&
               strcmp(term, "dumb") != 0 && terminal_keep() == 0;
}

int screen_open(void)
{
        int r = terminal_keep();
        if (r < 0)
                return r;
        screen.signals = signals_watch(waited, array_size(waited));
        if (screen.signals < 0)
                return SP_E_LIMIT;
        signals_catch_faults(on_fatal);
        set_up();
        return 0;
}

void screen_close(void)
{
        restore();
        if (screen.signals >= 0)
                (void)file_close(screen.signals);
        screen.signals = -1;
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
        signals_stop();
        set_up();
        return SCREEN_SIZE;
}

/* 0: no signal that matters. */
static int take_signal(void)
{
        int number = signals_next(screen.signals);
        switch (number) {
        case 0:
                return 0;
        case SIGTSTP:
                return stop();
        case SIGCONT:
        case SIGWINCH:
                return SCREEN_SIZE;
        default:
                return SCREEN_SIGNAL + number;
        }
}

int screen_wait(int wake, int timeout_ms)
{
        int key = take_key();
        if (key)
                return key;
        struct pollfd p[] = { { .fd = screen.signals, .events = POLLIN },
                              { .fd = FILE_STDIN, .events = POLLIN },
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
                int64_t got = file_read(FILE_STDIN, screen.input + screen.size,
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
                terminal_write((const char *)out.data, out.size);
}
