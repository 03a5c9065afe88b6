/* Log lines to stderr: "spancl[component] level: text". Thread-safe. The level comes from
 * SPANCL_LOG (client) or --log (server): error, warn, info, debug. Default: warn. */
#ifndef SPANCL_BASE_LOG_H
#define SPANCL_BASE_LOG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

/* LOG_NONE is a threshold only: tests that provoke errors. */
enum log_level { LOG_NONE = -1, LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

extern _Atomic enum log_level log_threshold;

/* True: a line is dropped if no process reads stderr, for instance a stopped terminal, so that no thread waits for it.
 * When the terminal reads again, a line tells how many were dropped. Default: false. */
extern _Atomic bool log_never_waits;

/* Return the name of a level, static. LOG_NONE has that of LOG_ERROR. */
const char *log_level_name(enum log_level level);

/* Find a level by its name. Returns -1 for an unknown one. */
int log_level_parse(const char *name);

/* The form of the lines. LOG_PLAIN: as above, for clients and for processes whose log another one
 * reads. The others are spancld's (--log-format). Set before other threads start. */
enum log_format {
        LOG_PLAIN,
        LOG_TEXT,    /* the time in front, as 2026-01-31T12:00:00.123Z, and `about` in brackets */
        LOG_JSON,    /* one object in each line: time, level, component, about, text */
        LOG_JOURNAL, /* the priority in front, as sd-daemon(3) has it; the journal adds the time */
        LOG_NATIVE,  /* no lines but entries of the journal (base/journal.h), which is open */
};
extern enum log_format log_format;

enum { LOG_LINE_MAX = 4096 }; /* bytes of a line, which a pipe takes at once */

/* The parts of a line. No text has control characters, except for LOG_JSON, which escapes them. */
struct log_line {
        const char *level, *component;
        const char *about; /* the client that the line is about; NULL: none */
        struct bytes text;
};

/* Write the line as `log_format` has it, with a newline. Returns its size. A text that is too long is cut. */
size_t log_compose(const struct log_line *line, char out[LOG_LINE_MAX]);

void log_write(enum log_level level, const char *component, const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));

/* Write a whole line as it is; it ends with a newline. At most 4096 bytes, which a pipe takes at
 * once. */
void log_put(const char *line, size_t size);

/* The words before the text of a line. */
struct log_head {
        char component[24];
        const char *level; /* static */
};

/* Parse the head of a line that log_write made, in this process or another. Returns its length; 0:
 * log_write did not make the line. */
size_t log_head_parse(const char *line, size_t size, struct log_head *ret);

#define log_at(level, component, ...)                             \
        do {                                                      \
                if ((level) <= log_threshold)                     \
                        log_write(level, component, __VA_ARGS__); \
        } while (0)
#define log_error(component, ...) log_at(LOG_ERROR, component, __VA_ARGS__)
#define log_warn(component, ...)  log_at(LOG_WARN, component, __VA_ARGS__)
#define log_info(component, ...)  log_at(LOG_INFO, component, __VA_ARGS__)
#define log_debug(component, ...) log_at(LOG_DEBUG, component, __VA_ARGS__)

#endif
