#include "config/device_filter.h"

#include <ctype.h>
#include <string.h>

#include "config/entries.h"

enum { GIB_MAX = 1 << 20 };

static bool is_word(const char *p, size_t n, const char *word)
{
        return strlen(word) == n && !memcmp(p, word, n);
}

/* Skip `head` at the begin of the text. False: the text begins otherwise. */
static bool skip(const char **p, size_t *n, const char *head)
{
        size_t size = strlen(head);
        if (*n < size || memcmp(*p, head, size) != 0)
                return false;
        *p += size;
        *n -= size;
        return true;
}

static bool read_number(const char *p, size_t n, unsigned max, unsigned *ret)
{
        *ret = 0;
        for (size_t i = 0; i < n; i++) {
                if (p[i] < '0' || p[i] > '9')
                        return false;
                *ret = *ret * 10 + (unsigned)(p[i] - '0');
                if (*ret > max)
                        return false;
        }
        return n && *ret;
}

static bool read_type(const char *p, size_t n, cl_device_type *ret)
{
        static const struct {
                const char *word;
                cl_device_type type;
        } all[] = {
                { "gpu", CL_DEVICE_TYPE_GPU },
                { "cpu", CL_DEVICE_TYPE_CPU },
                { "accelerator", CL_DEVICE_TYPE_ACCELERATOR },
                { "custom", CL_DEVICE_TYPE_CUSTOM },
        };
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                if (is_word(p, n, all[i].word)) {
                        *ret |= all[i].type;
                        return true;
                }
        return false;
}

static bool read_term(struct device_filter *f, const char *p, size_t n)
{
        unsigned number;
        if (read_type(p, n, &f->types))
                return true;
        bool vendor = skip(&p, &n, "vendor=");
        if (vendor || skip(&p, &n, "name=")) {
                if (!n || f->glob_count == DEVICE_FILTER_TERMS)
                        return false;
                f->globs[f->glob_count].vendor = vendor;
                f->globs[f->glob_count].glob = p;
                f->globs[f->glob_count++].size = n;
                return true;
        }
        if (skip(&p, &n, "memory>=") && !f->memory_min && read_number(p, n, GIB_MAX, &number)) {
                f->memory_min = (cl_ulong)number << 30;
                return true;
        }
        if (skip(&p, &n, "count=") && f->count_max == CL_UINT_MAX &&
            read_number(p, n, GIB_MAX, &number)) {
                f->count_max = number;
                return true;
        }
        if (!skip(&p, &n, "order=") || f->order != DEVICE_ORDER_FOUND)
                return false;
        if (is_word(p, n, "latency"))
                f->order = DEVICE_ORDER_LATENCY;
        else if (is_word(p, n, "load"))
                f->order = DEVICE_ORDER_LOAD;
        else if (is_word(p, n, "memory"))
                f->order = DEVICE_ORDER_MEMORY;
        return f->order != DEVICE_ORDER_FOUND;
}

int device_filter_parse(const char *text, const char *origin, struct device_filter *ret,
                        char **ret_error)
{
        *ret = (struct device_filter){ .count_max = CL_UINT_MAX };
        if (!text[strspn(text, " ")])
                return 0;
        for (const char *p = text, *end; p; p = *end ? end + 1 : NULL) {
                end = strchrnul(p, ',');
                const char *first = p + strspn(p, " "), *last = end;
                while (last > first && last[-1] == ' ')
                        last--;
                if (read_term(ret, first, (size_t)(last - first)))
                        continue;
                *ret = (struct device_filter){ 0 };
                return config_fail(ret_error,
                                   "%s: '%.*s' is not a term, or one too many: it takes gpu, cpu, "
                                   "accelerator, custom, vendor=GLOB, name=GLOB, memory>=GIB, "
                                   "count=N and order=latency|load|memory, separated by commas",
                                   origin, (int)(last - first < 100 ? last - first : 100), first);
        }
        return 0;
}

/* '*' stands for any letters, '?' for one; letters count as equal in either case. */
static bool matches(const char *glob, size_t size, const char *text)
{
        size_t g = 0, star = size; /* the last '*' */
        const char *at = NULL;     /* where the text behind its part begins */
        while (*text) {
                if (g < size && glob[g] == '*') {
                        star = g++;
                        at = text;
                } else if (g < size && (glob[g] == '?' || tolower((unsigned char)glob[g]) ==
                                                                  tolower((unsigned char)*text))) {
                        g++;
                        text++;
                } else if (at) {
                        g = star + 1;
                        text = ++at;
                } else {
                        return false;
                }
        }
        while (g < size && glob[g] == '*')
                g++;
        return g == size;
}

/* Return true if one of the filter's globs of this kind matches, or if it has none. */
static bool any_matches(const struct device_filter *f, bool vendor, const char *text)
{
        bool none = true;
        for (size_t i = 0; i < f->glob_count; i++) {
                if (f->globs[i].vendor != vendor)
                        continue;
                if (matches(f->globs[i].glob, f->globs[i].size, text))
                        return true;
                none = false;
        }
        return none;
}

bool device_filter_takes(const struct device_filter *f, const struct device_traits *t)
{
        return !device_filter_refuses(f, t);
}

const char *device_filter_refuses(const struct device_filter *f, const struct device_traits *t)
{
        if (f->types && !(f->types & t->type))
                return "type";
        if (t->memory < f->memory_min)
                return "memory";
        if (!any_matches(f, true, t->vendor))
                return "vendor";
        return any_matches(f, false, t->name) ? NULL : "name";
}
