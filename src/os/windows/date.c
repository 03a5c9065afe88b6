#include "os/date.h"

#include <time.h>

#define S 1000000000ull /* ns */

static struct date date_from(const struct tm *tm, uint64_t wall_ns)
{
        return (struct date){
                .year = tm->tm_year + 1900,
                .month = (unsigned)tm->tm_mon + 1,
                .day = (unsigned)tm->tm_mday,
                .hour = (unsigned)tm->tm_hour,
                .minute = (unsigned)tm->tm_min,
                .second = (unsigned)tm->tm_sec,
                .ms = (unsigned)(wall_ns % S / 1000000),
        };
}

struct date date_of(uint64_t wall_ns)
{
        __time64_t t = (__time64_t)(wall_ns / S);
        struct tm tm = { 0 };
        (void)_gmtime64_s(&tm, &t);
        return date_from(&tm, wall_ns);
}

struct date date_here(uint64_t wall_ns)
{
        __time64_t t = (__time64_t)(wall_ns / S);
        struct tm tm = { 0 };
        (void)_localtime64_s(&tm, &t);
        return date_from(&tm, wall_ns);
}

uint64_t date_begin_ns(int year, unsigned month, unsigned day)
{
        struct tm tm = { .tm_year = year - 1900, .tm_mon = (int)month - 1, .tm_mday = (int)day };
        __time64_t t = _mkgmtime64(&tm);
        return t > 0 ? (uint64_t)t * S : 0;
}
