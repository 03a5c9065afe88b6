/* The pictures of a run: where they go, and how they compare with those of another run. */
#ifndef AR_OUTPUT_H
#define AR_OUTPUT_H

#include <stdint.h>
#include <stdio.h>

#include "options.h"
#include "window.h"
#include "y4m.h"

/* A finished picture. */
struct shown {
        size_t frame;
        double at_ms;      /* when it was finished, from the first measured frame on */
        double frame_ms;   /* since the last one */
        double latency_ms; /* since the camera's picture */
        double since_loss_ms; /* since the loss of the other device was known; < 0: no first picture after a loss */
        bool full; /* quality */
};

struct output {
        const struct options *o;
        size_t size; /* bytes of a picture */
        uint8_t *other;
        FILE *raw, *compared, *times;
        struct y4m video;
        struct window *window; /* NULL: none */
        double squares;        /* sum of the differences' */
        size_t count;          /* pictures */
        uint64_t print;        /* fingerprint of all pictures (FNV-1a) */
};

/* Ends the program on errors, as all functions do. */
void output_open(struct output *u, const struct options *o);
void output_close(struct output *u);
/* Returns false if the user closed the window. */
bool output_picture(struct output *u, const uint8_t *rgba, const struct shown *shown);

/* Return the mean of the squared differences of red, green and blue. */
double output_mean_square(const struct output *u);

/* Write the last picture, if there is --png. */
void output_last(const struct output *u, const uint8_t *rgba);

#endif
