#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"

_Atomic enum log_level log_threshold = LOG_WARN;

static const char *const level_names[] = { "error", "warn", "info", "debug" };

int log_level_parse(const char *name)
{
        for (int i = 0; i < 4; i++)
                if (!strcmp(name, level_names[i]))
                        return i;
        return -1;
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
        fwrite(line, 1, len, stderr); /* one call, so that lines of several threads stay whole */
}
