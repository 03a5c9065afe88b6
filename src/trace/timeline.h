/* A timeline file: the JSON of Chrome's trace viewer, which ui.perfetto.dev reads, too ("Trace Event
 * Format"). Processes are numbered by the caller, threads by their system's id. */
#ifndef SPANCL_TRACE_TIMELINE_H
#define SPANCL_TRACE_TIMELINE_H

#include <stdio.h>

#include "trace/trace.h"

struct timeline {
        FILE *out;
        bool started;
};

/* Errors of the file are the stream's (ferror). */
void timeline_begin(struct timeline *t, FILE *out);
void timeline_process(struct timeline *t, unsigned process, const char *name);
void timeline_thread(struct timeline *t, unsigned process, uint64_t thread, const char *name);
/* Write a record. It is left out if its probe is not known, or if it ends before it begins. */
void timeline_record(struct timeline *t, unsigned process, uint64_t thread,
                     const struct trace_record *r);
void timeline_end(struct timeline *t);

#endif
