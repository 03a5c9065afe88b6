/* `spancl trace --import`: events that other programs recorded, added to a timeline (docs/TRACING.md). All files may be
 * anyone's. No state. */
#ifndef SPANCL_CLI_TRACE_IMPORT_H
#define SPANCL_CLI_TRACE_IMPORT_H

#include <stdio.h>

#include "base/bytes.h"
#include "cli/trace/import_text.h"

enum { IMPORT_SOURCES = 16 };

/* A file, and whose clock it has. */
struct import_source {
        const char *path;
        char server[IMPORTED_TEXT]; /* "": the client's host */
        int64_t offset_ns;          /* is added to its times */
        /* Results: */
        enum import_format format;
        uint64_t events;   /* that were added */
        uint64_t outside;  /* of the timeline's time */
        uint64_t left_out; /* without room, or of other kinds */
        uint64_t error_ns; /* by how much its times may be wrong */
        int64_t shift_ns;  /* was added to its times */
};

/* Parse [[SERVER][@NS]=]FILE. False: it is no such text. */
SP_NODISCARD bool import_parse(const char *text, struct import_source *ret);

/* Write the timeline with the events of each source, whose contents are `texts`. SP_E_NOENT: the timeline is empty, or
 * has no clock of that server (*ret_bad: the source); SP_E_PROTO: it is none, or (*ret_bad) the source has no known
 * format; SP_E_NOMEM. *ret_bad is `count` if the timeline is bad. */
SP_NODISCARD int import_write(FILE *to, struct bytes timeline, struct import_source *sources,
                              const struct bytes *texts, size_t count, size_t *ret_bad);

const char *import_format_name(enum import_format format);

#endif
