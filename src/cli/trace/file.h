/* A timeline file, read: the JSON of SPANCL_TRACE (trace/timeline.h). The file may be anyone's: all of it is checked
 * and bounded, and names have no control characters. No state. */
#ifndef SPANCL_CLI_TRACE_FILE_H
#define SPANCL_CLI_TRACE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
        TRACE_FILE_NAME_MAX = 128,
        TRACE_FILE_NAMES_MAX = 1 << 16,  /* different ones; the rest is "(others)" */
        TRACE_FILE_EVENTS_MAX = 1 << 22, /* the rest is counted */
        TRACE_FILE_ROWS_MAX = 1 << 12,   /* processes and threads with names */
        TRACE_FILE_SIZE_MAX = 1 << 30,   /* of the file, in bytes */
        TRACE_FILE_SERVERS_MAX = 512,
};

struct trace_file_event {
        uint64_t begin_ns, duration_ns, thread;
        uint64_t bytes;
        uint32_t process;
        uint32_t name, category;  /* trace_file_text */
        uint32_t command, server; /* of its arguments; 0: they have none */
        char phase;               /* of the format: X, i, s, t, f, C, M */
};

/* A process (thread 0), or one of its threads. */
struct trace_file_row {
        uint64_t thread;
        uint32_t process, name;
};

/* How well a server's clock is known on the client's. */
struct trace_file_clock {
        uint32_t server; /* its name */
        uint64_t error_ns;
        int64_t offset_ns; /* it is so far ahead, if the file has that */
        bool has_offset;
};

/* The energy that the program has used of a device. */
struct trace_file_energy {
        uint32_t server, name; /* trace_file_text */
        uint64_t device, energy_uj;
};

struct trace_file {
        struct trace_file_event *events; /* without metadata */
        struct trace_file_row *rows;
        struct trace_file_clock *clocks;
        struct trace_file_energy *energies;
        size_t event_count, row_count, clock_count, energy_count;
        uint64_t left_out; /* events without room here */
        uint64_t dropped;  /* records without room when they were made */
        uint64_t untimed;  /* commands whose times on the device are not known */
        uint32_t reason;   /* why a flight recorder wrote the file; 0: it did not */
        struct trace_file_texts *texts;
};

/* Read it. SP_E_NOENT: errno gives the reason; SP_E_PROTO: it is no timeline; SP_E_LIMIT: it is too large;
 * SP_E_NOMEM. */
SP_NODISCARD int trace_file_read(const char *path, struct trace_file *ret);
/* Read the text of it, which the caller frees with mem_free. */
SP_NODISCARD int trace_file_load(const char *path, char **ret_text, size_t *ret_size);
/* Read it from memory. */
SP_NODISCARD int trace_file_parse(const char *text, size_t size, struct trace_file *ret);
void trace_file_fini(struct trace_file *f);

/* Make room for another element of an array that grows by doubling. Returns the array's new place; NULL: out of memory,
 * or it has `max` elements. */
void *trace_file_room(void *all, size_t count, size_t size, size_t max);

/* A text by its number. */
const char *trace_file_text(const struct trace_file *f, uint32_t number);

/* The name of a process or (thread not 0) of its thread; "?": the file has none. */
const char *trace_file_row_name(const struct trace_file *f, uint32_t process, uint64_t thread);

#endif
