/* Functions of POSIX and GNU that the C library of Windows lacks (posix/). */
#include <errno.h>
#include <io.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

#include "os/process/environment.h"
#include "os/windows/wide.h"

#include <fnmatch.h>

void *memmem(const void *data, size_t size, const void *what, size_t what_size)
{
        const char *p = data;
        for (size_t i = 0; what_size <= size && i <= size - what_size; i++)
                if (!memcmp(p + i, what, what_size))
                        return (void *)(uintptr_t)(p + i);
        return NULL;
}

void *memrchr(const void *data, int c, size_t size)
{
        const unsigned char *p = data;
        while (size)
                if (p[--size] == (unsigned char)c)
                        return (void *)(uintptr_t)(p + size);
        return NULL;
}

char *strchrnul(const char *s, int c)
{
        char *at = strchr(s, c);
        return at ? at : (char *)(uintptr_t)(s + strlen(s));
}

char *strndup(const char *s, size_t size)
{
        size_t n = strnlen(s, size);
        char *copy = malloc(n + 1);
        if (!copy)
                return NULL;
        memcpy(copy, s, n);
        copy[n] = 0;
        return copy;
}

char *stpcpy(char *to, const char *from)
{
        size_t n = strlen(from);
        memcpy(to, from, n + 1);
        return to + n;
}

char *strsep(char **s, const char *separators)
{
        char *begin = *s;
        if (!begin)
                return NULL;
        char *end = begin + strcspn(begin, separators);
        *s = *end ? end + 1 : NULL;
        *end = 0;
        return begin;
}

void explicit_bzero(void *data, size_t size)
{
        SecureZeroMemory(data, size);
}

FILE *windows_fopen(const char *path, const char *mode)
{
        wchar_t name[WIDE_MAX], how[16];
        if (!wide_path(path, name) || strlen(mode) >= 8)
                return NULL;
        size_t n = 0;
        bool exclusive = false;
        for (const char *p = mode; *p; p++) {
                exclusive |= *p == 'x';
                if (*p != 'e' && *p != 'x' && *p != 'b')
                        how[n++] = (wchar_t)*p;
        }
        how[n++] = L'b';
        how[n] = 0;
        if (exclusive && GetFileAttributesW(name) != INVALID_FILE_ATTRIBUTES) {
                errno = EEXIST;
                return NULL;
        }
        return _wfopen(name, how);
}

int dprintf(int fd, const char *format, ...)
{
        char text[4096];
        va_list ap;
        va_start(ap, format);
        int n = vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        if (n < 0)
                return -1;
        return _write(fd, text, n < (int)sizeof(text) ? (unsigned)n : (unsigned)sizeof(text) - 1);
}

struct comparison {
        int (*compare)(const void *a, const void *b, void *user);
        void *user;
};

static int compare(void *arg, const void *a, const void *b)
{
        const struct comparison *c = arg;
        return c->compare(a, b, c->user);
}

void qsort_r(void *all, size_t count, size_t size,
             int (*fn)(const void *a, const void *b, void *user), void *user)
{
        struct comparison c = { fn, user };
        qsort_s(all, count, size, compare, &c);
}

/* free() takes only memory from malloc(). */
int posix_memalign(void **ret, size_t alignment, size_t size)
{
        (void)alignment;
        *ret = malloc(size);
        return *ret ? 0 : ENOMEM;
}

void *aligned_alloc(size_t alignment, size_t size)
{
        (void)alignment;
        return malloc(size);
}

int setenv(const char *name, const char *value, int replace)
{
        return !replace && getenv(name) ? 0 : _putenv_s(name, value) ? -1 : 0;
}

int unsetenv(const char *name)
{
        return _putenv_s(name, "") ? -1 : 0;
}

char *secure_getenv(const char *name)
{
        return (char *)(uintptr_t)environment_get(name);
}

const char *windows_program_name(void)
{
        static char name[64];
        wchar_t path[WIDE_MAX];
        char text[WIDE_MAX];
        DWORD n = GetModuleFileNameW(NULL, path, WIDE_MAX);
        if (!*name && n && n < WIDE_MAX && wide_path_text(path, text, sizeof(text))) {
                const char *slash = strrchr(text, '/');
                snprintf(name, sizeof(name), "%s", slash ? slash + 1 : text);
        }
        return name;
}

/* Match one character, or a set; returns the rest of the pattern, or NULL. */
static const char *match_one(const char *p, unsigned char c)
{
        if (*p == '?')
                return p + 1;
        if (*p == '[' && strchr(p + 2, ']')) {
                const char *q = p + 1;
                bool other = *q == '!' || *q == '^', in = false;
                q += other;
                do {
                        unsigned char from = (unsigned char)*q++, to = from;
                        if (*q == '-' && q[1] && q[1] != ']') {
                                to = (unsigned char)q[1];
                                q += 2;
                        }
                        in |= from <= c && c <= to;
                } while (*q && *q != ']');
                return *q && in != other ? q + 1 : NULL;
        }
        if (*p == '\\' && p[1])
                p++;
        return (unsigned char)*p == c ? p + 1 : NULL;
}

int fnmatch(const char *pattern, const char *name, int flags)
{
        (void)flags;
        const char *star = NULL, *from = NULL;
        while (*name) {
                if (*pattern == '*') {
                        star = ++pattern;
                        from = name;
                        continue;
                }
                const char *next = *pattern ? match_one(pattern, (unsigned char)*name) : NULL;
                if (next) {
                        pattern = next;
                        name++;
                } else if (star) {
                        pattern = star;
                        name = ++from;
                } else {
                        return 1;
                }
        }
        while (*pattern == '*')
                pattern++;
        return *pattern ? 1 : 0;
}
