#include "backend/media/settings.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE_MAX = 16384, THREADS_MAX = 16, STREAMS_MAX = 1024 };

/* Parse digits that end with `end`; false: they are none, or the number is not 1 to `max`. */
static bool take_number(const char **at, char end, unsigned max, unsigned *ret)
{
        char *rest;
        unsigned long n = isdigit((unsigned char)**at) ? strtoul(*at, &rest, 10) : 0;
        if (!n || n > max || (*rest != end && (end || *rest != ',')))
                return false;
        *at = rest;
        *ret = (unsigned)n;
        return true;
}

static bool take_name(const char **at, const char *name)
{
        size_t n = strlen(name);
        if (strncmp(*at, name, n) != 0)
                return false;
        *at += n;
        return true;
}

/* Parse TYPE or TYPE:NAME. */
static bool take_device(const char **at, char ret[AV_DEVICE_MAX])
{
        size_t n = strcspn(*at, ",");
        size_t type = strspn(*at, "abcdefghijklmnopqrstuvwxyz0123456789");
        bool named = type < n && (*at)[type] == ':' && type + 1 < n;
        if (!type || n >= AV_DEVICE_MAX || (type != n && !named))
                return false;
        memcpy(ret, *at, n);
        ret[n] = 0;
        *at += n;
        return true;
}

int media_settings_parse(const char *text, struct media_settings *ret)
{
        char device[AV_DEVICE_MAX] = "";
        unsigned width = 4096, height = 2304, threads = 2, streams = 16;
        bool valid = !strcmp(text, "on");
        for (const char *at = text; !valid; at++) {
                bool known = false;
                if (take_name(&at, "size="))
                        known = take_number(&at, 'x', SIDE_MAX, &width) && at++ &&
                                take_number(&at, 0, SIDE_MAX, &height);
                else if (take_name(&at, "threads="))
                        known = take_number(&at, 0, THREADS_MAX, &threads);
                else if (take_name(&at, "streams="))
                        known = take_number(&at, 0, STREAMS_MAX, &streams);
                else if (take_name(&at, "device="))
                        known = take_device(&at, device);
                if (!known)
                        return SP_E_INVAL;
                valid = !*at;
        }
        *ret = (struct media_settings){
                .limits = { .threads = threads, .pixels = (uint64_t)width * height },
                .streams = streams,
        };
        memcpy(ret->device, device, sizeof(device));
        return 0;
}
