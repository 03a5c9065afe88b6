/* The summary of a timeline: counts, the longest kernels, transfers and waits, what is missing, and how exact the
 * clocks are. As text for people and as JSON (docs/JSON.md). No state. */
#ifndef SPANCL_CLI_TRACE_SUMMARY_H
#define SPANCL_CLI_TRACE_SUMMARY_H

#include <stdio.h>

#include "cli/trace/file.h"

enum { SUMMARY_TOP = 5 };

/* The kinds of which there are the longest ones, too. */
enum summary_kind {
        SUMMARY_KERNEL,
        SUMMARY_TRANSFER,
        SUMMARY_MIGRATION,
        SUMMARY_WAIT,
        SUMMARY_KINDS
};

struct summary {
        uint64_t wall_ns; /* from the first event to the end of the last one */
        uint64_t events;  /* spans */
        uint64_t processes;
        struct {
                uint64_t count, ns, bytes;
                const struct trace_file_event *longest[SUMMARY_TOP];
                size_t shown;
        } kinds[SUMMARY_KINDS];
        uint64_t enqueued, compiled, cached, disconnected, reconnected, lost, failed;
};

/* Make it. It points into the file. */
void summary_make(const struct trace_file *f, struct summary *ret);

/* `path`: of the file, for the reader. */
void summary_text(FILE *to, const struct trace_file *f, const struct summary *s, const char *path);
void summary_json(FILE *to, const struct trace_file *f, const struct summary *s, const char *path);

#endif
