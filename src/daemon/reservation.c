#include "daemon/reservation.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "os/date.h"

enum {
        DAY_S = 86400,
        YEAR_MIN = 1971,
        YEAR_MAX = 2500, /* times in ns have 64 bits */
        DURATION_DIGITS = 5,
};

/* Take a number of `min` to `max` digits. False: the text does not begin with one. */
static bool take_number(const char **p, size_t min, size_t max, unsigned *ret)
{
        size_t n = strspn(*p, "0123456789");
        if (n < min || n > max)
                return false;
        *ret = 0;
        for (size_t i = 0; i < n; i++)
                *ret = *ret * 10 + (unsigned)((*p)[i] - '0');
        *p += n;
        return true;
}

static bool take_letter(const char **p, char letter)
{
        if (**p != letter)
                return false;
        ++*p;
        return true;
}

static bool take_date(const char **text, uint64_t *ret_s)
{
        unsigned year, month, day, hour, minute, second = 0;
        const char *p = *text;
        if (!take_number(&p, 4, 4, &year) || !take_letter(&p, '-') ||
            !take_number(&p, 2, 2, &month) || !take_letter(&p, '-') ||
            !take_number(&p, 2, 2, &day) || !take_letter(&p, 'T') ||
            !take_number(&p, 2, 2, &hour) || !take_letter(&p, ':') ||
            !take_number(&p, 2, 2, &minute))
                return false;
        if (take_letter(&p, ':') && !take_number(&p, 2, 2, &second))
                return false;
        if (!take_letter(&p, 'Z') || year < YEAR_MIN || year > YEAR_MAX || !month || month > 12 ||
            !day || day > 31 || hour > 23 || minute > 59 || second > 59)
                return false;
        *ret_s = date_begin_ns((int)year, month, day) / 1000000000 + hour * 3600ull + minute * 60 +
                 second;
        *text = p;
        return *ret_s != 0;
}

static bool take_duration(const char **text, uint64_t now_s, uint64_t *ret_s)
{
        static const struct {
                const char *name;
                unsigned seconds;
        } units[] = { { "s", 1 }, { "min", 60 }, { "h", 3600 }, { "d", DAY_S } };
        const char *p = *text;
        unsigned number;
        if (!now_s || !take_number(&p, 1, DURATION_DIGITS, &number))
                return false;
        size_t n = strcspn(p, ",");
        for (size_t i = 0; i < array_size(units); i++) {
                if (strlen(units[i].name) != n || memcmp(p, units[i].name, n) != 0)
                        continue;
                *ret_s = now_s + (uint64_t)number * units[i].seconds;
                *text = p + n;
                return true;
        }
        return false;
}

int reservation_next(const char **text, uint64_t now_s, struct reservation *ret)
{
        const char *p = *text;
        struct reservation r = { 0 };
        if (!*p)
                return 0;
        if (!take_number(&p, 1, 5, &r.device) ||
            (take_letter(&p, ':') && !take_date(&p, &r.until_s) &&
             !take_duration(&p, now_s, &r.until_s)) ||
            (*p && (!take_letter(&p, ',') || !*p)))
                return SP_E_INVAL;
        *ret = r;
        *text = p;
        return 1;
}

bool reservation_is_list(const char *text)
{
        struct reservation one;
        int r = SP_E_INVAL; /* an empty one is none */
        while (*text && (r = reservation_next(&text, 0, &one)) > 0)
                ;
        return r > 0;
}

static void put_date(uint64_t time_s, char ret[RESERVATION_DATE])
{
        const struct date d = date_of(time_s * 1000000000);
        snprintf(ret, RESERVATION_DATE, "%04d-%02u-%02uT%02u:%02u:%02uZ", d.year % 10000,
                 d.month % 100, d.day % 100, d.hour % 100, d.minute % 100, d.second % 100);
}

int reservation_put(const struct reservation *r, char *ret, size_t size)
{
        char date[RESERVATION_DATE] = "";
        if (r->until_s)
                put_date(r->until_s, date);
        return snprintf(ret, size, "%u%s%s", r->device, *date ? ":" : "", date);
}

const char *reservation_end(const struct reservation *r, char ret[RESERVATION_DATE])
{
        char date[RESERVATION_DATE];
        *ret = 0;
        if (r->until_s) {
                put_date(r->until_s, date);
                snprintf(ret, RESERVATION_DATE, " until %.20s", date);
        }
        return ret;
}

bool reservation_is_over(const struct reservation *r, uint64_t now_s)
{
        return r->until_s && r->until_s <= now_s;
}
