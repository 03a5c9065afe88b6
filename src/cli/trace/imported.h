/* The events of a source that `spancl trace --import` adds to a timeline: its processes, rows and slices. All of it is
 * bounded, and what has no room is counted. Times are moved to the timeline's clock, and cut to the time around the
 * timeline. Errors of the file are the stream's (ferror). One owner. */
#ifndef SPANCL_CLI_TRACE_IMPORTED_H
#define SPANCL_CLI_TRACE_IMPORTED_H

#include "base/status.h"
#include "trace/timeline.h"

enum {
        IMPORTED_TEXT = 128,     /* names are cut */
        IMPORTED_ROWS = 1 << 11, /* of a source */
        IMPORTED_PROCESSES = 64, /* of a source */
        IMPORTED_SLOTS = 4 * IMPORTED_ROWS,
};

/* A thread or a processor. */
struct imported_row {
        uint32_t process; /* as the source numbers it */
        uint64_t thread;
        bool named;
        /* The system call that the thread is in, for readers of text. */
        bool open;
        uint64_t open_ns;
        char open_name[IMPORTED_TEXT];
};

struct imported {
        struct timeline *out;
        const char *name; /* of the source: begins the names of its processes */
        uint32_t first;   /* its processes have this number in the timeline, and those behind it */
        int64_t shift_ns; /* brings its times to the timeline's clock */
        uint64_t begin_ns, end_ns;          /* of the timeline's clock: the rest is outside */
        uint64_t room;                      /* events that may be added */
        uint64_t events, outside, left_out; /* events: those that were added */
        struct imported_row rows[IMPORTED_ROWS];
        uint32_t row_count, slots[IMPORTED_SLOTS]; /* a row and 1; 0: free */
        struct {
                uint32_t process;
                bool named;
        } processes[IMPORTED_PROCESSES];
        uint32_t process_count;
};

/* Find a row, or make it. NULL: it has no room. */
struct imported_row *imported_row(struct imported *s, uint32_t process, uint64_t thread);
/* Name a process (once; text "": the source's own name alone) or a row. */
void imported_name_process(struct imported *s, uint32_t process, const char *name);
void imported_name_row(struct imported *s, struct imported_row *r, const char *name);

/* Begin a slice (a moment, if it has no length), at times of the source. Its arguments follow, and timeline_slice_end.
 * False: it is not taken, and counted. `r` may be NULL. */
SP_NODISCARD bool imported_slice(struct imported *s, const struct imported_row *r,
                                 uint64_t begin_ns, uint64_t end_ns, const char *name);
/* The same for a point of curves. */
SP_NODISCARD bool imported_counter(struct imported *s, uint32_t process, uint64_t ns,
                                   const char *name);

/* Name the rows and processes that have no name. */
void imported_end(struct imported *s);

#endif
