/* Dates of the Gregorian calendar, in UTC. No state. */
#ifndef SPANCL_OS_DATE_H
#define SPANCL_OS_DATE_H

#include <stdint.h>

struct date {
        int year;
        unsigned month, day; /* from 1 */
        unsigned hour, minute, second, ms;
};

/* Convert a time of clock_wall_ns. */
struct date date_of(uint64_t wall_ns);

/* Return the time at which a day begins, in ns since 1970. */
uint64_t date_begin_ns(int year, unsigned month, unsigned day);

#endif
