/* An event of a timeline file, with its arguments, read from JSON. The file may be anyone's: sizes are bounded, texts
 * have no control characters, and a value of another type than the format says counts as 0 or "". No state. */
#ifndef SPANCL_CLI_TRACE_EVENT_H
#define SPANCL_CLI_TRACE_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "discovery/json.h"

enum {
        TRACE_EVENT_TEXT = 128, /* longer texts are cut */
        TRACE_EVENT_NAME = 32,  /* of an argument */
        TRACE_EVENT_ARGS = 12,  /* the rest is left out */
};

enum trace_arg_kind { TRACE_ARG_NUMBER, TRACE_ARG_REAL, TRACE_ARG_TEXT };

struct trace_arg {
        enum trace_arg_kind kind;
        uint64_t number;
        double real;
        char name[TRACE_EVENT_NAME], text[TRACE_EVENT_TEXT];
};

struct trace_event {
        char phase; /* of the format: X, i, s, t, f, C, M; '?': of several letters */
        uint32_t process;
        uint64_t thread, begin_ns, duration_ns;
        char name[TRACE_EVENT_TEXT], category[TRACE_EVENT_TEXT], id[TRACE_EVENT_NAME];
        struct trace_arg args[TRACE_EVENT_ARGS];
        size_t arg_count;
};

/* Read an event. False: it is no object, or the text is bad. */
bool trace_event_read(struct json *j, struct trace_event *ret);

/* The events and the rest of a timeline, as they are read. */
struct trace_reader {
        void (*event)(void *user, const struct trace_event *e,
                      const char *at); /* `at`: its place */
        void (*other)(void *user,
                      struct json *j); /* of "otherData"; reads the value, or passes over it */
};

/* Read a whole timeline. SP_E_PROTO: it is none. */
SP_NODISCARD int trace_read_all(const char *text, size_t size, const struct trace_reader *r,
                                void *user);

/* Read a value: a text, cut to the room for it; an integer; any scalar as an argument (false: it is none). Each of them
 * passes over another value. */
void trace_value_text(struct json *j, char *ret, size_t size);
uint64_t trace_value_number(struct json *j);
bool trace_value_arg(struct json *j, struct trace_arg *ret);

/* Begin an object. False: it is another value, which is passed over. */
bool trace_value_opens(struct json *j);

/* Return the place of the next value. */
const char *trace_value_at(struct json *j);

#endif
