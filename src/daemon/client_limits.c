#include "daemon/client_limits.h"

#include <stdio.h>
#include <string.h>

#include "daemon/reservation.h"
#include "transport/keys.h"

enum {
        WINDOW_S = 3600, /* of --client-time without a window */
        TIME_MOST_S = 31 * 86400,
        MEMORY_MOST_MIB = 1 << 30,
        VALUE_MAX = KEYS_NAME_MAX + 1,
};

/* Take a number of at most `max` off the text. False: it does not begin with one. */
static bool take_number(const char **p, uint64_t max, uint64_t *ret)
{
        if (**p < '0' || **p > '9')
                return false;
        *ret = 0;
        for (; **p >= '0' && **p <= '9'; ++*p) {
                *ret = *ret * 10 + (uint64_t)(**p - '0');
                if (*ret > max)
                        return false;
        }
        return true;
}

static bool take_memory(const char **p, uint64_t *ret_bytes)
{
        uint64_t mib;
        if (!take_number(p, MEMORY_MOST_MIB, &mib))
                return false;
        *ret_bytes = mib << 20;
        return true;
}

static bool take_time(const char **p, struct client_time *ret)
{
        ret->window_s = WINDOW_S;
        if (!take_number(p, 1000ull * TIME_MOST_S, &ret->time_s))
                return false;
        if (**p != '/')
                return true;
        ++*p;
        return take_number(p, TIME_MOST_S, &ret->window_s) && ret->window_s;
}

/* Return the device's entry, which is added if it is missing. NULL: there are too many. */
static struct client_device *device_of(struct client_limits *l, unsigned number)
{
        for (size_t i = 0; i < l->device_count; i++)
                if (l->devices[i].number == number)
                        return &l->devices[i];
        if (l->device_count == CLIENT_DEVICES)
                return NULL;
        struct client_device *d = &l->devices[l->device_count++];
        *d = (struct client_device){ .number = number };
        return d;
}

/* Remove the devices that have no limit. */
static void compact(struct client_limits *l)
{
        size_t kept = 0;
        for (size_t i = 0; i < l->device_count; i++)
                if (l->devices[i].memory_bytes || l->devices[i].time.time_s)
                        l->devices[kept++] = l->devices[i];
        l->device_count = kept;
}

/* Remove the limits of memory, or of time. */
static void forget(struct client_limits *l, bool time)
{
        if (time)
                l->time = (struct client_time){ 0 };
        else
                l->memory_bytes = 0;
        for (size_t i = 0; i < l->device_count; i++) {
                if (time)
                        l->devices[i].time = (struct client_time){ 0 };
                else
                        l->devices[i].memory_bytes = 0;
        }
        compact(l);
}

/* Take one term, for the device before its `=` or for all together. */
static bool take_term(struct client_limits *l, bool time, const char **p)
{
        struct client_device all = { 0 }, *d = &all;
        const char *value = *p;
        uint64_t number;
        if (take_number(&value, CLIENT_DEVICE_MAX, &number) && *value == '=') {
                *p = value + 1;
                d = device_of(l, (unsigned)number);
        }
        if (!d || !(time ? take_time(p, &d->time) : take_memory(p, &d->memory_bytes)))
                return false;
        if (d == &all && time)
                l->time = all.time;
        else if (d == &all)
                l->memory_bytes = all.memory_bytes;
        return true;
}

/* Return true if two terms are for the same device, or for all. */
static bool repeats(const char *text)
{
        unsigned seen[CLIENT_DEVICES];
        size_t count = 0, all = 0;
        for (const char *p = text; *p; p += strcspn(p, ","), p += *p == ',') {
                const char *value = p;
                uint64_t number;
                if (!take_number(&value, CLIENT_DEVICE_MAX, &number) || *value != '=') {
                        if (all++)
                                return true;
                        continue;
                }
                for (size_t i = 0; i < count; i++)
                        if (seen[i] == number)
                                return true;
                if (count < CLIENT_DEVICES)
                        seen[count++] = (unsigned)number;
        }
        return false;
}

/* Replace the limits of memory, or of time. Return false, and change nothing, if the text is malformed. */
static bool take_terms(struct client_limits *l, bool time, const char *text)
{
        struct client_limits taken = *l;
        const char *p = text;
        bool more = true;
        forget(&taken, time);
        while (more) {
                if (!take_term(&taken, time, &p))
                        return false;
                more = *p == ',';
                p += more;
        }
        if (*p || repeats(text))
                return false;
        compact(&taken);
        *l = taken;
        return true;
}

bool client_memory_check(const char *text)
{
        struct client_limits l = { 0 };
        return take_terms(&l, false, text);
}

bool client_time_check(const char *text)
{
        struct client_limits l = { 0 };
        return take_terms(&l, true, text);
}

struct client_limits client_limits_of(const struct config_options *o)
{
        struct client_limits l = {
                .sessions = config_option_number(o, CONFIG_client_sessions),
                .builds = config_option_number(o, CONFIG_client_builds),
                .cache_bytes = config_option_number(o, CONFIG_client_cache_quota) << 20,
                .priority = (enum client_priority)config_option_number(o, CONFIG_client_priority),
        };
        /* spancld does not start with other values. */
        (void)take_terms(&l, false, config_option_text(o, CONFIG_client_memory));
        (void)take_terms(&l, true, config_option_text(o, CONFIG_client_time));
        return l;
}

bool client_limits_set(struct client_limits *l, struct bytes key, struct bytes value)
{
        char name[VALUE_MAX], text[VALUE_MAX];
        uint64_t n;
        if (key.size >= sizeof(name) || value.size >= sizeof(text))
                return false;
        snprintf(name, sizeof(name), "%.*s", (int)key.size, (const char *)key.data);
        snprintf(text, sizeof(text), "%.*s", (int)value.size, (const char *)value.data);
        if (!strcmp(name, "reserve")) /* the supervisor's, see reserving.h */
                return reservation_is_list(text);
        if (!strcmp(name, "time"))
                return take_terms(l, true, text);
        if (!strcmp(name, "memory"))
                return take_terms(l, false, text);
        if (!strcmp(name, "sessions") && config_convert(CONFIG_client_sessions, text, &n))
                l->sessions = n;
        else if (!strcmp(name, "builds") && config_convert(CONFIG_client_builds, text, &n))
                l->builds = n;
        else if (!strcmp(name, "cache") && config_convert(CONFIG_client_cache_quota, text, &n))
                l->cache_bytes = n << 20;
        else if (!strcmp(name, "priority") && config_convert(CONFIG_client_priority, text, &n))
                l->priority = (enum client_priority)n;
        else
                return false;
        return true;
}

void client_limits_apply(struct client_limits *l, const char *settings)
{
        struct keys_setting s;
        while (keys_setting(&settings, &s))
                (void)!client_limits_set(l, s.key, s.value);
}

uint64_t client_cache_bytes(const struct config_options *o, const char *list, const char *owner)
{
        struct client_limits l = client_limits_of(o);
        uint8_t key[CRYPTO_FINGERPRINT];
        struct keys_entry e;
        if (list && keys_unhex(owner, key) && keys_find(list, key, NULL, &e))
                client_limits_apply(&l, e.settings);
        return l.cache_bytes && *owner ? l.cache_bytes
                                       : config_option_number(o, CONFIG_cache_size) << 20;
}
