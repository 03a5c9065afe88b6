#include "daemon/client_limits.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/reservation.h"
#include "transport/keys.h"

enum {
        WINDOW_S = 3600, /* of --client-time without a window */
        TIME_MOST_S = 31 * 86400,
        VALUE_MAX = KEYS_NAME_MAX + 1,
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
                .builds = config_option_number(o, CONFIG_client_builds),
                .cache_bytes = config_option_number(o, CONFIG_client_cache_quota) << 20,
                .priority = (enum client_priority)config_option_number(o, CONFIG_client_priority),
        };
        if (!client_time_parse(config_option_text(o, CONFIG_client_time), &l.time_s, &l.window_s))
                l.time_s = l.window_s = 0; /* spancld does not start with such a value */
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
                return client_time_parse(text, &l->time_s, &l->window_s);
        if (!strcmp(name, "sessions") && config_convert(CONFIG_client_sessions, text, &n))
                l->sessions = n;
        else if (!strcmp(name, "memory") && config_convert(CONFIG_client_memory, text, &n))
                l->memory_bytes = n << 20;
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

uint64_t client_cache_bytes(const struct config_options *o, const char *list, const char *owner)
{
        struct client_limits l = client_limits_of(o);
        uint8_t key[CRYPTO_FINGERPRINT];
        struct keys_entry e;
        struct keys_setting s;
        if (list && keys_unhex(owner, key) && keys_find(list, key, NULL, &e))
                for (const char *left = e.settings; keys_setting(&left, &s);)
                        (void)!client_limits_set(&l, s.key, s.value);
        return l.cache_bytes && *owner ? l.cache_bytes
                                       : config_option_number(o, CONFIG_cache_size) << 20;
}
