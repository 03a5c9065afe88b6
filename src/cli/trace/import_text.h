/* Readers of the texts that other tracers print: babeltrace2 of a trace of LTTng, and perf script.
 *
 *     babeltrace2 --clock-cycles --no-delta FOLDER
 *     perf script --ns -F comm,pid,tid,cpu,time,event,trace
 *
 * Each processor is a row, and so is each thread that makes system calls or has events of LTTng's userspace tracer. A
 * processor runs a thread from one sched_switch to the next. Interrupts and system calls last from entry to exit. An
 * event of a thread with the fields begin_ns and duration_ns, as SpanCL's own have, lasts so long. Other events are
 * moments. The text may be anyone's. No state. */
#ifndef SPANCL_CLI_TRACE_IMPORT_TEXT_H
#define SPANCL_CLI_TRACE_IMPORT_TEXT_H

#include "cli/trace/imported.h"

enum import_format { IMPORT_UNKNOWN, IMPORT_LTTNG, IMPORT_PERF, IMPORT_CHROME };

/* Return the format of a text, as far as its first 64 KiB show it: '[' or '{' of JSON, or a line of a tracer. */
enum import_format import_format_of(const char *text, size_t size);

/* Add the events of a text. Lines that are no events are passed over. SP_E_NOMEM. */
SP_NODISCARD int import_text(struct imported *s, enum import_format format, const char *text,
                             size_t size);

#endif
