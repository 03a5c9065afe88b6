#include "y4m.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "opencl.h"

static size_t size_of(const struct y4m *v)
{
        return (size_t)v->width * (size_t)v->height * 3 / 2;
}

void y4m_open(struct y4m *v, const char *path, int width, int height, int rate)
{
        *v = (struct y4m){ .path = path, .width = width, .height = height };
        v->file = strcmp(path, "-") == 0 ? stdout : fopen(path, "wb");
        if (!v->file ||
            fprintf(v->file, "YUV4MPEG2 W%d H%d F%d:1 Ip A1:1 C420jpeg\n", width, height, rate) < 0)
                die("%s: %s", path, strerror(errno));
        v->planes = allocate(size_of(v), 1);
}

void y4m_close(struct y4m *v)
{
        if (fclose(v->file) != 0)
                die("%s: %s", v->path, strerror(errno));
        free(v->planes);
}

/* Chroma is that of the mean of four pixels. */
static void write_chroma(const struct y4m *v, const uint8_t *rgba, uint8_t *cb, uint8_t *cr)
{
        size_t row = (size_t)v->width * 4;
        for (int y = 0; y < v->height; y += 2)
                for (int x = 0; x < v->width; x += 2) {
                        const uint8_t *p = rgba + (size_t)y * row + (size_t)x * 4;
                        int c[3];
                        for (int i = 0; i < 3; i++)
                                c[i] = p[i] + p[4 + i] + p[row + (size_t)i] +
                                       p[row + 4 + (size_t)i];
                        *cb++ = (uint8_t)(128 + (-38 * c[0] - 74 * c[1] + 112 * c[2]) / 1024);
                        *cr++ = (uint8_t)(128 + (112 * c[0] - 94 * c[1] - 18 * c[2]) / 1024);
                }
}

void y4m_picture(struct y4m *v, const uint8_t *rgba)
{
        size_t pixels = (size_t)v->width * (size_t)v->height;
        for (size_t i = 0; i < pixels; i++) {
                const uint8_t *p = rgba + 4 * i;
                v->planes[i] = (uint8_t)(16 + (66 * p[0] + 129 * p[1] + 25 * p[2] + 128) / 256);
        }
        write_chroma(v, rgba, v->planes + pixels, v->planes + pixels + pixels / 4);
        if (fputs("FRAME\n", v->file) == EOF ||
            fwrite(v->planes, 1, size_of(v), v->file) != size_of(v))
                die("%s: %s", v->path, strerror(errno));
}
