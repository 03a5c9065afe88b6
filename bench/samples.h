/* Samples of one measurement and their JSON line; shared by the benchmark programs. Times are in
 * microseconds unless the name says otherwise. Not thread-safe. */

#ifndef BENCH_SAMPLES_H
#define BENCH_SAMPLES_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SAMPLES_MAX 20000

struct samples {
        size_t count;
        double values[SAMPLES_MAX];
};

static inline double now_us(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static inline void samples_add(struct samples *s, double value)
{
        if (s->count < SAMPLES_MAX)
                s->values[s->count++] = value;
}

static inline int samples_order(const void *a, const void *b)
{
        double x = *(const double *)a;
        double y = *(const double *)b;
        return (x > y) - (x < y);
}

/* The value below which `share` of the samples lie. Sorts. */
static inline double samples_at(struct samples *s, double share)
{
        if (!s->count)
                return 0.0;
        qsort(s->values, s->count, sizeof(s->values[0]), samples_order);
        size_t i = (size_t)(share * (double)(s->count - 1) + 0.5);
        return s->values[i];
}

/* One member of the JSON object that a benchmark program prints; empties the samples. */
static inline void samples_print(struct samples *s, const char *name, const char *unit)
{
        static int members;
        printf("%s\n  \"%s\": {\"unit\": \"%s\", \"n\": %zu, \"median\": %.4g, \"p10\": %.4g, "
               "\"p90\": %.4g}",
               members++ ? "," : "{", name, unit, s->count, samples_at(s, 0.5), samples_at(s, 0.1),
               samples_at(s, 0.9));
        fflush(stdout);
        s->count = 0;
}

#endif
