/* A writer of JSON (RFC 8259) into a file: it puts commas, quotes and escapes, and no blanks or lines. The caller
 * closes each bracket that it opens, and ends a value with json_line. One owner. The file keeps its error for ferror.
 *
 *     struct json_writer w = { .to = stdout };
 *     json_begin(&w, NULL, '{');
 *     json_put_text(&w, "name", "gpu1");
 *     json_end(&w, '}');
 *     json_line(&w); */
#ifndef SPANCL_BASE_JSON_WRITER_H
#define SPANCL_BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/bytes.h"

struct json_writer {
        FILE *to;
        bool more; /* a value stands in front of the next one */
};

/* `name`: the member's name, which needs no escapes; NULL for an element of an array and for a value that stands
 * alone. */
void json_begin(struct json_writer *w, const char *name, char bracket);
void json_end(struct json_writer *w, char bracket);
/* Texts may have any bytes (base/quote.h). */
void json_put_bytes(struct json_writer *w, const char *name, struct bytes text);
/* NULL is written as null. */
void json_put_text(struct json_writer *w, const char *name, const char *text);
void json_put_u64(struct json_writer *w, const char *name, uint64_t value);
/* With this number of digits behind the point. A value that is no number becomes null. */
void json_put_real(struct json_writer *w, const char *name, double value, int digits);
void json_put_bool(struct json_writer *w, const char *name, bool value);
void json_put_null(struct json_writer *w, const char *name);

/* A member of an object whose name is not known to need no escapes. */
void json_put_named(struct json_writer *w, struct bytes name, struct bytes text);

/* End the line, and flush it: the reader of a pipe gets whole lines. */
void json_line(struct json_writer *w);

#endif
