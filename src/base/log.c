#include "base/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/mem.h"

_Atomic enum log_level log_threshold = LOG_WARN;
_Atomic bool log_never_waits;

static const char *const level_names[] = { "error", "warn", "info", "debug" };

int log_level_parse(const char *name)
{
        for (int i = 0; i < 4; i++)
                if (!strcmp(name, level_names[i]))
                        return i;
        return -1;
}

static bool is_taken(void)
{
        struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };
        return poll(&p, 1, 0) !=
               0; /* an error of it, too: then the write fails, but does not wait */
}

void log_put(const char *line, size_t size)
{
        static _Atomic unsigned lost;
        if (log_never_waits) {
                if (!is_taken()) {
                        lost++;
                        return;
                }
                unsigned n = atomic_exchange(&lost, 0);
                if (n) {
                        fprintf(stderr, "spancl[log] warn: %u lines were lost: nobody read them\n",
                                n);
                        if (!is_taken()) {
                                lost++;
                                return;
                        }
                }
        }
        fwrite(line, 1, size, stderr); /* one call, so that lines of several threads stay whole */
}

size_t log_head_parse(const char *line, size_t size, struct log_head *ret)
{
        static const char begin[] = "spancl[";
        size_t at = sizeof(begin) - 1, n = 0;
        if (size <= at || memcmp(line, begin, at) != 0)
                return 0;
        while (at + n < size && n < sizeof(ret->component) - 1 &&
               ((line[at + n] >= 'a' && line[at + n] <= 'z') || line[at + n] == '_'))
                n++;
        for (size_t i = 0; n && i < array_size(level_names); i++) {
                char rest[16];
                size_t len = (size_t)snprintf(rest, sizeof(rest), "] %s: ", level_names[i]);
                if (size - at - n < len || memcmp(line + at + n, rest, len) != 0)
                        continue;
                memcpy(ret->component, line + at, n);
                ret->component[n] = 0;
                ret->level = level_names[i];
                return at + n + len;
        }
        return 0;
}

void log_write(enum log_level level, const char *component, const char *fmt, ...)
{
        char line[1024];
        int n = snprintf(line, sizeof(line), "spancl[%s] %s: ", component, level_names[level]);
        va_list ap;
        va_start(ap, fmt);
        int m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, fmt, ap);
        va_end(ap);
        if (m < 0)
                return;
        size_t len = strnlen(line, sizeof(line) - 2);
        bytes_tame(line, len);
        line[len++] = '\n';
        log_put(line, len);
}
