#include "output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "../common/picture.h"
#include "opencl.h"

enum { VIDEO_RATE = 30 };

static FILE *open_file(const char *path, const char *mode)
{
        if (!path)
                return NULL;
        FILE *f = strcmp(path, "-") == 0 ? stdout : fopen(path, mode);
        if (!f)
                die("%s: %s", path, strerror(errno));
        return f;
}

static void close_file(FILE *f, const char *path)
{
        if (f && fclose(f) != 0)
                die("%s: %s", path, strerror(errno));
}

static uint64_t fingerprint(uint64_t h, const uint8_t *data, size_t size)
{
        for (size_t i = 0; i < size; i++)
                h = (h ^ data[i]) * 0x100000001b3u;
        return h;
}

/* Return the sum of squared differences. The fourth components are the same, so they add nothing. */
static double difference(const uint8_t *a, const uint8_t *b, size_t size)
{
        double sum = 0;
        for (size_t i = 0; i < size; i++)
                sum += (double)((a[i] - b[i]) * (a[i] - b[i]));
        return sum;
}

void output_open(struct output *u, const struct options *o)
{
        *u = (struct output){ .o = o,
                              .size = (size_t)o->width * (size_t)o->height * 4,
                              .print = 0xcbf29ce484222325u };
        u->other = allocate(u->size, 1);
        u->raw = open_file(o->raw, "wb");
        u->compared = open_file(o->compare, "rb");
        u->times = open_file(o->times, "w");
        if (o->video)
                y4m_open(&u->video, o->video, o->width, o->height, VIDEO_RATE);
        u->window = o->window ? window_open(o->width, o->height) : NULL;
        if (u->times)
                fprintf(u->times, "frame,at_ms,frame_ms,latency_ms,quality,since_loss_ms\n");
}

void output_close(struct output *u)
{
        close_file(u->raw, u->o->raw);
        close_file(u->times, u->o->times);
        if (u->o->video)
                y4m_close(&u->video);
        window_close(u->window);
        if (u->compared)
                fclose(u->compared);
        free(u->other);
}

static void write_times(struct output *u, const struct shown *s)
{
        fprintf(u->times, "%zu,%.3f,%.3f,%.3f,%s,", s->frame, s->at_ms, s->frame_ms, s->latency_ms,
                s->full ? "full" : "lower");
        if (s->since_loss_ms >= 0)
                fprintf(u->times, "%.3f", s->since_loss_ms);
        /* Another program may follow the file. */
        if (fputc('\n', u->times) == EOF || fflush(u->times) != 0)
                die("%s: %s", u->o->times, strerror(errno));
}

static void compare(struct output *u, const uint8_t *rgba)
{
        if (fread(u->other, 1, u->size, u->compared) != u->size)
                die("--compare: the file has fewer pictures, or smaller ones");
        u->squares += difference(rgba, u->other, u->size);
}

bool output_picture(struct output *u, const uint8_t *rgba, const struct shown *shown)
{
        u->count++;
        u->print = fingerprint(u->print, rgba, u->size);
        if (u->raw && fwrite(rgba, 1, u->size, u->raw) != u->size)
                die("%s: %s", u->o->raw, strerror(errno));
        if (u->o->video)
                y4m_picture(&u->video, rgba);
        if (u->times)
                write_times(u, shown);
        if (u->compared)
                compare(u, rgba);
        return !u->window || window_show(u->window, rgba);
}

double output_mean_square(const struct output *u)
{
        return u->squares / ((double)u->size * 3 / 4 * (double)u->count);
}

void output_last(const struct output *u, const uint8_t *rgba)
{
        const struct options *o = u->o;
        const char *error = o->png ? picture_write(o->png, rgba, o->width, o->height) : NULL;
        if (error)
                die("%s: %s", o->png, error);
}
