/* Writes pictures as PNG. */
#ifndef EXAMPLES_PICTURE_H
#define EXAMPLES_PICTURE_H

#include <stdint.h>

/* Write a picture of 4 bytes a pixel: red, green, blue and opacity. Returns NULL, or a text that tells the error and
 * stays until the next call. One thread at a time. */
const char *picture_write(const char *path, const uint8_t *rgba, int width, int height);

#endif
