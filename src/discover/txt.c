#include "discover/txt.h"

#include <string.h>

#include "base/mem.h"

static bool key(const char *value, size_t size, char ret[TXT_KEY + 1])
{
        if (size != TXT_KEY)
                return false;
        for (size_t i = 0; i < size; i++) {
                char c = value[i];
                if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
                        return false;
        }
        memcpy(ret, value, size);
        ret[size] = 0;
        return true;
}

static bool number(const char *value, size_t size, bool *ret_has, uint32_t *ret)
{
        uint64_t n = 0;
        if (!size || size > 9)
                return false;
        for (size_t i = 0; i < size; i++) {
                if (value[i] < '0' || value[i] > '9')
                        return false;
                n = n * 10 + (uint64_t)(value[i] - '0');
        }
        *ret_has = true;
        *ret = (uint32_t)n;
        return true;
}

static bool types(const char *value, size_t size, char ret[TXT_TYPES_MAX + 1])
{
        static const char *const known[] = { "cpu", "gpu", "accelerator", "custom" };
        unsigned seen = 0;
        if (size > TXT_TYPES_MAX)
                return false;
        for (size_t begin = 0; begin <= size;) {
                const char *comma = memchr(value + begin, ',', size - begin);
                size_t n = comma ? (size_t)(comma - value) - begin : size - begin;
                unsigned bit = 0;
                for (size_t i = 0; i < array_size(known); i++) {
                        if (strlen(known[i]) == n && !memcmp(known[i], value + begin, n))
                                bit = 1u << i;
                }
                if (!bit || (seen & bit))
                        return false;
                seen |= bit;
                begin += n + 1;
        }
        memcpy(ret, value, size);
        ret[size] = 0;
        return true;
}

int txt_take(struct txt *t, const void *data, size_t size)
{
        const char *name = data, *equals = size ? memchr(data, '=', size) : NULL;
        bool good = true;
        if (!equals)
                return 0;
        const char *value = equals + 1;
        size_t n = (size_t)(equals - name), rest = size - n - 1;
        if (n == 3 && !strncasecmp(name, "key", n))
                good = *t->key || key(value, rest, t->key);
        else if (n == 5 && !strncasecmp(name, "types", n))
                good = *t->types || types(value, rest, t->types);
        else if (n == 1 && !strncasecmp(name, "v", n))
                good = t->has_protocol || number(value, rest, &t->has_protocol, &t->protocol);
        else if (n == 4 && !strncasecmp(name, "load", n))
                good = t->has_load || number(value, rest, &t->has_load, &t->load);
        return good ? 0 : SP_E_INVAL;
}

int txt_parse(const void *data, size_t size, struct txt *ret)
{
        const uint8_t *p = data, *end = p + size;
        *ret = (struct txt){ 0 };
        if (size > TXT_MAX)
                return SP_E_LIMIT;
        while (p < end) {
                size_t n = *p++;
                int r = n > (size_t)(end - p) ? SP_E_INVAL : txt_take(ret, p, n);
                if (r < 0)
                        return r;
                p += n;
        }
        return 0;
}
