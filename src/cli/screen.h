/* The terminal of a program that fills the screen, by the escape sequences that all of today's terminals know (ECMA-48,
 * xterm's alternate screen). The terminal gets its former state back on every end of the program but SIGKILL. One
 * screen in a process; its owner is the main thread, which opens it before it starts others: the screen blocks the
 * signals that it waits for. */
#ifndef SPANCL_CLI_SCREEN_H
#define SPANCL_CLI_SCREEN_H

#include <stdbool.h>

#include "base/bytes.h"

enum screen_event {
        SCREEN_TIME = 0x100, /* the time is over */
        SCREEN_WAKE,         /* `wake` is readable */
        SCREEN_SIZE,         /* the size has changed, or the program goes on after it was stopped */
        SCREEN_UP,
        SCREEN_DOWN,
        SCREEN_LEFT,
        SCREEN_RIGHT,
        SCREEN_PAGE_UP,
        SCREEN_PAGE_DOWN,
        SCREEN_HOME,
        SCREEN_END_KEY,
        SCREEN_GONE, /* the terminal is gone */
        /* SCREEN_SIGNAL + N: signal N, which should end the program: close the screen, then signals_die. */
        SCREEN_SIGNAL = 0x200,
};

/* Return true if standard input and output are a terminal that can do it. */
bool screen_is_possible(void);

SP_NODISCARD int screen_open(void);
void screen_close(void);

/* Return the next event: a letter of the keyboard, or an enum screen_event. */
int screen_wait(int wake, int timeout_ms);

/* Show lines, which end with '\n' and fit the width. The caller's escape sequences change colours only, and end in
 * their line. */
void screen_show(struct bytes lines);

#endif
