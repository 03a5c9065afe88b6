#include "base/log.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/journal.h"
#include "base/mem.h"
#include "base/quote.h"
#include "os/clock.h"
#include "os/date.h"
#include "os/file.h"
#include "os/poll.h"

_Atomic enum log_level log_threshold = LOG_WARN;
_Atomic bool log_never_waits;
enum log_format log_format;

static const char *const level_names[] = { "error", "warn", "info", "debug" };

const char *log_level_name(enum log_level level)
{
        return level_names[level < LOG_ERROR ? LOG_ERROR : level];
}

int log_level_parse(const char *name)
{
        for (int i = 0; i < 4; i++)
                if (!strcmp(name, level_names[i]))
                        return i;
        return -1;
}

static bool is_taken(void)
{
        struct pollfd p = { .fd = FILE_STDERR, .events = POLLOUT };
        return poll(&p, 1, 0) != 0; /* also after an error: then the write fails at once */
}

/* Send an entry to the journal, or count it as lost. */
static void put_entry(const char *entry, size_t size)
{
        static _Atomic unsigned lost;
        unsigned n = atomic_exchange(&lost, 0);
        char text[64], out[LOG_LINE_MAX];
        snprintf(text, sizeof(text), "%u lines were lost: the journal did not take them", n);
        const struct log_line line = { .level = level_names[LOG_WARN],
                                       .component = "log",
                                       .text = bytes_str(text) };
        if ((n && !journal_send(out, journal_compose(&line, out))) || !journal_send(entry, size))
                lost += n + 1;
}

void log_put(const char *line, size_t size)
{
        static _Atomic unsigned lost;
        if (log_format == LOG_NATIVE) {
                put_entry(line, size);
                return;
        }
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

/* Write the time in UTC. */
static void put_time(char out[32])
{
        const struct date d = date_of(clock_wall_ns());
        snprintf(out, 32, "%04d-%02u-%02uT%02u:%02u:%02u.%03uZ", d.year % 10000, d.month % 100,
                 d.day % 100, d.hour % 100, d.minute % 100, d.second % 100, d.ms % 1000);
}

static size_t compose_json(const struct log_line *line, char *out, const char *end)
{
        char time[32], *p = out;
        put_time(time);
        p += sprintf(p, "{\"time\":\"%s\",\"level\":\"%s\",\"component\":", time, line->level);
        p = quote_text(p, out + LOG_LINE_MAX / 4, bytes_str(line->component));
        if (line->about) {
                p = stpcpy(p, ",\"about\":");
                p = quote_text(p, out + LOG_LINE_MAX / 2, bytes_str(line->about));
        }
        p = stpcpy(p, ",\"text\":");
        p = quote_text(p, end - 2, line->text);
        p = stpcpy(p, "}\n");
        return (size_t)(p - out);
}

/* The priority of syslog(3). */
static int priority(const char *level)
{
        static const int priorities[] = { 3, 4, 6, 7 };
        int i = log_level_parse(level);
        return i < 0 ? 6 : priorities[i];
}

size_t log_compose(const struct log_line *line, char out[LOG_LINE_MAX])
{
        char time[32];
        int n = 0;
        switch (log_format) {
        case LOG_JSON:
                return compose_json(line, out, out + LOG_LINE_MAX);
        case LOG_NATIVE:
                return journal_compose(line, out);
        case LOG_JOURNAL:
                n = sprintf(out, "<%d>", priority(line->level));
                break;
        case LOG_TEXT:
                put_time(time);
                n = sprintf(out, "%s ", time);
                break;
        default:
                break;
        }
        if (log_format != LOG_PLAIN && line->about)
                n += snprintf(out + n, LOG_LINE_MAX / 4, "[%.512s] ", line->about);
        n += snprintf(out + n, LOG_LINE_MAX / 4, "spancl[%.256s] %s: ", line->component,
                      line->level);
        size_t room = LOG_LINE_MAX - (size_t)n - 1;
        size_t size = line->text.size < room ? line->text.size : room;
        memcpy(out + n, line->text.data, size);
        out[(size_t)n + size] = '\n';
        return (size_t)n + size + 1;
}

void log_write(enum log_level level, const char *component, const char *fmt, ...)
{
        char text[1024], out[LOG_LINE_MAX];
        va_list ap;
        va_start(ap, fmt);
        int m = vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (m < 0)
                return;
        bytes_tame(text, sizeof(text));
        const struct log_line line = {
                .level = log_level_name(level),
                .component = component,
                .text = bytes_str(text),
        };
        log_put(out, log_compose(&line, out));
}
