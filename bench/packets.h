/* For the programs that decode a file of packets: access units, each behind its size (32 bits). */
#ifndef SPANCL_BENCH_PACKETS_H
#define SPANCL_BENCH_PACKETS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* Read the file; the caller never frees it. Ends the program if it can't be read. */
static inline uint8_t *read_file(const char *path, size_t *ret_size)
{
        FILE *f = fopen(path, "rb");
        if (!f || fseek(f, 0, SEEK_END))
                exit(1);
        *ret_size = (size_t)ftell(f);
        rewind(f);
        uint8_t *bytes = malloc(*ret_size + 1);
        if (!bytes || fread(bytes, 1, *ret_size, f) != *ret_size)
                exit(1);
        fclose(f);
        return bytes;
}

static inline double seconds(clockid_t clock)
{
        struct timespec t;
        clock_gettime(clock, &t);
        return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

#endif
