#include "os/macos/libc.h"

#include <stdint.h>

#undef qsort_r

struct comparison {
        int (*compare)(const void *a, const void *b, void *user);
        void *user;
};

static int compare(void *comparison, const void *a, const void *b)
{
        const struct comparison *c = comparison;
        return c->compare(a, b, c->user);
}

void macos_sort(void *all, size_t count, size_t size,
                int (*fn)(const void *a, const void *b, void *user), void *user)
{
        struct comparison c = { fn, user };
        qsort_r(all, count, size, &c, compare);
}

void *macos_memrchr(const void *data, int c, size_t size)
{
        const unsigned char *p = data;
        while (size)
                if (p[--size] == (unsigned char)c)
                        return (void *)(uintptr_t)(p + size);
        return NULL;
}
