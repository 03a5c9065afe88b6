#include "daemon/client_limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
        WINDOW_S = 3600, /* of --client-time without a window */
        TIME_MOST_S = 31 * 86400,
        VALUE_MAX = 64,
        MIB_MAX = 1 << 30, /* as --client-memory */
};

bool client_time_parse(const char *text, uint64_t *ret_time_s, uint64_t *ret_window_s)
{
        char *end;
        uint64_t window_s = WINDOW_S, time_s;
        if (*text < '0' || *text > '9')
                return false;
        time_s = strtoull(text, &end, 10);
        if (*end == '/' && end[1] >= '0' && end[1] <= '9')
                window_s = strtoull(end + 1, &end, 10);
        if (*end || time_s > 1000ull * TIME_MOST_S || !window_s || window_s > TIME_MOST_S)
                return false;
        *ret_time_s = time_s;
        *ret_window_s = window_s;
        return true;
}

struct client_limits client_limits_of(const struct config_options *o)
{
        struct client_limits l = {
                .sessions = config_option_number(o, CONFIG_client_sessions),
                .memory_bytes = config_option_number(o, CONFIG_client_memory) << 20,
                .priority = (enum client_priority)config_option_number(o, CONFIG_client_priority),
        };
        if (!client_time_parse(config_option_text(o, CONFIG_client_time), &l.time_s, &l.window_s))
                l.time_s = l.window_s = 0; /* spancld does not start with such a value */
        return l;
}

static bool parse_number(const char *text, uint64_t max, uint64_t *ret)
{
        char *end;
        if (*text < '0' || *text > '9')
                return false;
        uint64_t n = strtoull(text, &end, 10);
        if (*end || n > max)
                return false;
        *ret = n;
        return true;
}

static bool parse_priority(const char *text, enum client_priority *ret)
{
        static const char *const names[] = { "low", "normal", "high" };
        for (size_t i = 0; i < array_size(names); i++) {
                if (strcmp(text, names[i]) != 0)
                        continue;
                *ret = (enum client_priority)i;
                return true;
        }
        return false;
}

bool client_limits_set(struct client_limits *l, struct bytes key, struct bytes value)
{
        char name[VALUE_MAX], text[VALUE_MAX];
        uint64_t mib;
        if (key.size >= sizeof(name) || value.size >= sizeof(text))
                return false;
        snprintf(name, sizeof(name), "%.*s", (int)key.size, (const char *)key.data);
        snprintf(text, sizeof(text), "%.*s", (int)value.size, (const char *)value.data);
        if (!strcmp(name, "sessions"))
                return parse_number(text, UINT32_MAX, &l->sessions);
        if (!strcmp(name, "time"))
                return client_time_parse(text, &l->time_s, &l->window_s);
        if (!strcmp(name, "priority"))
                return parse_priority(text, &l->priority);
        if (strcmp(name, "memory") != 0 || !parse_number(text, MIB_MAX, &mib))
                return false;
        l->memory_bytes = mib << 20;
        return true;
}
