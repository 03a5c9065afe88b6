/* The program's options. */
#ifndef AR_OPTIONS_H
#define AR_OPTIONS_H

#include <stdbool.h>

struct options {
        const char *kernels, *platform, *stream, *place, *codec, *link;
        const char *png, *raw, *compare, *times, *video; /* files; NULL: none */
        int width, height, frames, warm, ahead, thin, voxels, opacity, capacity;
        int near, far, feed; /* devices of the list; -1: by default */
        int sort;            /* keys to sort and compare; -1: none */
        bool libavcodec, wide, list, figures, verify, fallback, window;
};

#endif
