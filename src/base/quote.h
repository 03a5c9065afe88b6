/* Texts as strings of JSON (RFC 8259). The result is printable UTF-8, and no text can end its string or a line.
 * Stateless. */
#ifndef SPANCL_BASE_QUOTE_H
#define SPANCL_BASE_QUOTE_H

#include <stddef.h>

#include "base/bytes.h"

enum { QUOTE_CHARACTER = 6 }; /* bytes of an escaped character */

/* Take the first character from a text that is not empty, and write it as it stands between the quotes. A byte that
 * is no UTF-8 becomes U+FFFD. Returns the bytes written. */
size_t quote_character(struct bytes *text, char ret[QUOTE_CHARACTER]);

/* Write a text with its quotes into the bytes from `p` to `end`, which are at least 2. Characters that have no room
 * are left out. Returns the place behind the last quote. */
char *quote_text(char *p, const char *end, struct bytes text);

#endif
