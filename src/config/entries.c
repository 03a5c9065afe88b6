#include "config/entries.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/device_filter.h"

static const struct config_entry entries[] = {
#define CONFIG(side_, id, name_, value_, kind_, fallback_, lo_, hi_, allowed_, doc_) \
        { .side = CONFIG_##side_,                                                    \
          .name = name_,                                                             \
          .value = value_,                                                           \
          .kind = CONFIG_##kind_,                                                    \
          .fallback = fallback_,                                                     \
          .lo = lo_,                                                                 \
          .hi = hi_,                                                                 \
          .allowed = allowed_,                                                       \
          .doc = doc_ },
#include "config/config.def"
};

const struct config_entry *config_entry(enum config_id id)
{
        return &entries[id];
}

enum config_id config_find(enum config_side side, const char *name, size_t size)
{
        enum config_id id = 0;
        while (id < CONFIG_COUNT && (entries[id].side != side || strlen(entries[id].name) != size ||
                                     memcmp(entries[id].name, name, size) != 0))
                id++;
        return id;
}

int config_fail(char **ret_error, const char *fmt, ...)
{
        char text[1024];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        char *copy = mem_strdup(text);
        if (!copy)
                return SP_E_NOMEM;
        *ret_error = copy;
        return SP_E_INVAL;
}

bool config_is_limited(enum config_id id)
{
        enum config_kind kind = entries[id].kind;
        return kind == CONFIG_NUMBER || kind == CONFIG_CHOICE || kind == CONFIG_WAIT;
}

static bool knows_auto(const struct config_entry *e)
{
        return !strncmp(e->allowed, "auto|", 5);
}

void config_allowed(enum config_id id, char *text, size_t size)
{
        const struct config_entry *e = &entries[id];
        switch (e->kind) {
        case CONFIG_NUMBER:
                snprintf(text, size, "a number from %llu to %llu", (unsigned long long)e->lo,
                         (unsigned long long)e->hi);
                break;
        case CONFIG_CHOICE: {
                size_t n = (size_t)snprintf(text, size, "one of ");
                for (const char *p = e->allowed; *p && n + 3 < size; p++) {
                        if (*p == '|')
                                text[n++] = ',';
                        text[n++] = *p == '|' ? ' ' : *p;
                        text[n] = 0;
                }
                break;
        }
        case CONFIG_WAIT:
                snprintf(text, size, "%sfail, wait, or wait:SECONDS with %llu to %llu seconds",
                         knows_auto(e) ? "auto, " : "", (unsigned long long)e->lo,
                         (unsigned long long)e->hi);
                break;
        case CONFIG_FLAG:
                snprintf(text, size, "0 or 1");
                break;
        default:
                snprintf(text, size, "a text");
        }
}

bool config_parse_number(const char *text, uint64_t *ret)
{
        size_t n = strspn(text, "0123456789");
        if (!n || text[n] || n > 18)
                return false;
        *ret = strtoull(text, NULL, 10);
        return true;
}

static bool parse_choice(const char *allowed, const char *text, uint64_t *ret)
{
        size_t len = strlen(text);
        uint64_t i = 0;
        for (const char *word = allowed; word; i++) {
                const char *end = strchr(word, '|');
                size_t n = end ? (size_t)(end - word) : strlen(word);
                if (n == len && !memcmp(word, text, n)) {
                        *ret = i;
                        return true;
                }
                word = end ? end + 1 : NULL;
        }
        return false;
}

static bool parse_wait(const struct config_entry *e, const char *text, uint64_t *ret)
{
        static const char prefix[] = "wait:";
        uint64_t seconds;
        if (!strncmp(text, prefix, sizeof(prefix) - 1)) {
                if (!config_parse_number(text + sizeof(prefix) - 1, &seconds) || seconds < e->lo ||
                    seconds > e->hi)
                        return false;
                *ret = seconds * 1000000000;
                return true;
        }
        *ret = !strcmp(text, "auto") ? CONFIG_WAIT_AUTO : strcmp(text, "wait") ? 0 : UINT64_MAX;
        return *ret == CONFIG_WAIT_AUTO ? knows_auto(e) : *ret || !strcmp(text, "fail");
}

bool config_convert(enum config_id id, const char *text, uint64_t *ret)
{
        const struct config_entry *e = &entries[id];
        uint64_t v = 0;
        bool ok = true;
        switch (e->kind) {
        case CONFIG_NUMBER:
                ok = config_parse_number(text, &v) && v >= e->lo && v <= e->hi;
                break;
        case CONFIG_CHOICE:
                ok = parse_choice(e->allowed, text, &v);
                break;
        case CONFIG_WAIT:
                ok = parse_wait(e, text, &v);
                break;
        case CONFIG_FLAG:
                ok = parse_choice("0|1", text, &v);
                break;
        default:
                break;
        }
        if (ok)
                *ret = v;
        return ok;
}

int config_check(enum config_id id, const char *text, char **ret_error)
{
        uint64_t v;
        struct device_filter filter;
        char allowed[256];
        if (entries[id].kind == CONFIG_FILTER)
                return device_filter_parse(text, entries[id].name, &filter, ret_error);
        if (config_convert(id, text, &v))
                return 0;
        config_allowed(id, allowed, sizeof(allowed));
        return config_fail(ret_error, "%s: '%s' is not allowed: it takes %s", entries[id].name,
                           text, allowed);
}
