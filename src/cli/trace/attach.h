/* `spancl trace --attach`: a timeline of sessions that run already, from their servers. Blocking; once in a process,
 * because it takes signals over. */
#ifndef SPANCL_CLI_TRACE_ATTACH_H
#define SPANCL_CLI_TRACE_ATTACH_H

#include <stddef.h>
#include <stdint.h>

#include "config/server_spec.h"

enum {
        ATTACH_SESSIONS_MAX = 64,
        ATTACH_SECONDS_MAX = 24 * 3600,
};

struct attach {
        const struct server_spec *servers;
        size_t count;
        const char *
                session; /* a process's number or a program's name, as `spancl top` shows them; NULL: all */
        uint64_t seconds; /* 0: until a signal comes, or the sessions end */
        const char *file; /* is there, empty */
};

/* Record, and write the file. Negative: it is still empty; the reason was printed. */
SP_NODISCARD int attach_record(const struct attach *a);

/* Read a duration such as 10s, 5min or 1h. False: it is none, or too long. */
bool attach_seconds(const char *text, uint64_t *ret);

#endif
