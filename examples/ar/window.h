/* A window that shows pictures, by SDL2. */
#ifndef AR_WINDOW_H
#define AR_WINDOW_H

#include <stdbool.h>
#include <stdint.h>

struct window;

/* Ends the program if there is no display, or if it was built without SDL2. */
struct window *window_open(int width, int height);
void window_close(struct window *w);

/* Show a picture. Returns false if the user closed the window. */
bool window_show(struct window *w, const uint8_t *rgba);

#endif
