/* A video file of raw pictures: YUV4MPEG2, which players and encoders read. 4:2:0, BT.601, 16 to 235. */
#ifndef AR_Y4M_H
#define AR_Y4M_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct y4m {
        FILE *file;
        const char *path;
        int width, height;
        uint8_t *planes;
};

/* Width and height are even; `rate` is pictures a second. "-" is standard output. All functions end the program on
 * errors. */
void y4m_open(struct y4m *v, const char *path, int width, int height, int rate);
void y4m_picture(struct y4m *v, const uint8_t *rgba);
void y4m_close(struct y4m *v);

#endif
