/* A timeline file: the JSON of Chrome's trace viewer, which ui.perfetto.dev reads, too ("Trace Event
 * Format"). Processes are numbered by the caller, threads by their system's id. */
#ifndef SPANCL_TRACE_TIMELINE_H
#define SPANCL_TRACE_TIMELINE_H

#include <stdio.h>

#include "trace/trace.h"

struct timeline {
        FILE *out;
        bool started;
        bool other; /* the other data has begun */
        bool more;  /* an argument stands in front of the next one */
        uint64_t
                flow_salt; /* bits that change the ids of arrows, so that those of several programs are apart */
};

/* Errors of the file are the stream's (ferror). */
void timeline_begin(struct timeline *t, FILE *out);
void timeline_process(struct timeline *t, unsigned process, const char *name);
void timeline_thread(struct timeline *t, unsigned process, uint64_t thread, const char *name);
/* Write a record. It is left out if its probe is not known, or if it ends before it begins. `command`: the name of the
 * command that its event completes; NULL: none is known. */
void timeline_record(struct timeline *t, unsigned process, uint64_t thread,
                     const struct trace_record *r, const char *command);
/* The same, but the arrow of its event begins here: viewers leave out arrows without a begin. */
void timeline_record_first(struct timeline *t, unsigned process, uint64_t thread,
                           const struct trace_record *r);

/* ---- what is no record ---------------------------------------------------------------------- */

/* Begin a slice of a row. Between it and timeline_slice_end stand its arguments. */
void timeline_slice(struct timeline *t, unsigned process, uint64_t thread, uint64_t begin_ns,
                    uint64_t end_ns, const char *category, const char *name);
void timeline_slice_end(struct timeline *t);

/* An argument of the slice, or a member of the other data. `name` needs no escapes. */
void timeline_arg(struct timeline *t, const char *name, uint64_t value);
void timeline_arg_text(struct timeline *t, const char *name, const char *value);
/* A value that is no number is left out. */
void timeline_arg_real(struct timeline *t, const char *name, double value);

/* Begin a point of a process's curves: each argument up to timeline_slice_end is one. */
void timeline_counter(struct timeline *t, unsigned process, uint64_t ns, const char *name);

/* A point of an arrow, which joins slices by the category and the id. It is bound to the slice around its time. */
void timeline_flow(struct timeline *t, enum trace_flow flow, unsigned process, uint64_t thread,
                   uint64_t ns, const char *category, uint64_t id);

/* Bytes in a time of `width_ns`, as a rate in both directions. */
void timeline_rate(struct timeline *t, unsigned process, uint64_t ns, uint64_t width_ns,
                   uint64_t sent, uint64_t received);

/* Behind all events: begin the other data, with arguments up to timeline_end. */
void timeline_other(struct timeline *t);
/* The exactness of a server's clock, as elements of the other data's member `clocks`. */
struct timeline_clock {
        const char *server;
        uint64_t error_ns;
        int64_t offset_ns; /* its clock is so far ahead of the timeline's */
};
void timeline_clocks(struct timeline *t, const struct timeline_clock *clocks, size_t count);

/* The energy that the program has used of a server's device, as elements of the other data's member `energy`. */
struct timeline_energy {
        const char *server, *name; /* name: the device's */
        uint64_t device, energy_uj;
};
void timeline_energy(struct timeline *t, const struct timeline_energy *all, size_t count);

void timeline_end(struct timeline *t);

/* The path of file `number` of a flight recorder, from 1 on: FILE.json, FILE-2.json. False: it is too long. */
enum { TIMELINE_FILES = 16 }; /* that it writes at most */
bool timeline_path(const char *path, unsigned number, char *ret, size_t size);

#endif
