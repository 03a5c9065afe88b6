/* A strict reader of one JSON text (RFC 8259) in borrowed memory. It checks the whole text while it
 * reads, allocates nothing, and goes JSON_DEPTH_MAX values deep. After an error every function
 * returns false. One owner. */
#ifndef SPANCL_DISCOVERY_JSON_H
#define SPANCL_DISCOVERY_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { JSON_DEPTH_MAX = 8 };

struct json {
        const char *at, *end;
        bool bad; /* it is not JSON, or too deep */
};

/* Take '{' and then each member's name; the caller reads the value before the next call. `first` is
 * true before the first member. A name that has no room in `size` bytes becomes "". False: the
 * object has ended, or the text is bad. */
bool json_open(struct json *j, char bracket);
bool json_member(struct json *j, bool *first, char *ret_name, size_t size);

/* The same for the elements of an array. */
bool json_element(struct json *j, bool *first);

/* Read a text of at most `size` - 1 bytes: valid UTF-8 without control characters and without
 * characters that change the direction of writing. False: it is another value. */
bool json_text(struct json *j, char *ret, size_t size);

/* Read an integer from 0 to 2^53. False: it is another value. */
bool json_number(struct json *j, uint64_t *ret);

/* Pass over any value. */
bool json_skip(struct json *j);

/* Return true if only blanks are left and no function has failed. */
bool json_ends(struct json *j);

#endif
