#include "backend/filter.h"

#include <stdint.h>
#include <string.h>

static const struct {
        const char *name;
        cl_device_type type;
} types[] = {
        { "cpu", CL_DEVICE_TYPE_CPU },
        { "gpu", CL_DEVICE_TYPE_GPU },
        { "accelerator", CL_DEVICE_TYPE_ACCELERATOR },
        { "custom", CL_DEVICE_TYPE_CUSTOM },
};

static bool term_is(const char *term, size_t size, const char *word)
{
        return strlen(word) == size && !strncasecmp(term, word, size);
}

static bool contains(const char *name, const char *part, size_t size)
{
        for (size_t i = 0, n = strlen(name); i + size <= n; i++)
                if (!strncasecmp(name + i, part, size))
                        return true;
        return false;
}

static bool term_match(const char *term, size_t size, unsigned number, cl_device_type type,
                       const char *name)
{
        if (strspn(term, "0123456789") >= size) {
                uint64_t value = 0;
                for (size_t i = 0; i < size && value <= UINT32_MAX; i++)
                        value = value * 10 + (uint64_t)(term[i] - '0');
                return value == number;
        }
        if (term_is(term, size, "all"))
                return true;
        for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
                if (term_is(term, size, types[i].name))
                        return type & types[i].type;
        return contains(name, term, size);
}

bool filter_match(const char *filter, unsigned number, cl_device_type type, const char *name)
{
        bool any = false, found = false;
        for (const char *p = filter; p && *p;) {
                p += strspn(p, ", \t");
                size_t size = strcspn(p, ",");
                size_t used = size;
                while (used && (p[used - 1] == ' ' || p[used - 1] == '\t'))
                        used--;
                bool not = used > 1 && *p == '!';
                if (not &&term_match(p + 1, used - 1, number, type, name))
                        return false;
                any |= used && !not ;
                found |= used && !not &&term_match(p, used, number, type, name);
                p += size;
        }
        return found || !any;
}
