/* The reservations of one client as a text, "DEVICE[:UNTIL],...": the setting `reserve` in the list of clients
 * (transport/keys.h). DEVICE is a number as in --devices. UNTIL is a date in UTC, "2026-11-27T18:00[:00]Z"; without it
 * the reservation has no end. Values only; no state. */
#ifndef SPANCL_DAEMON_RESERVATION_H
#define SPANCL_DAEMON_RESERVATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { RESERVATION_DEVICE_MAX = 99999, RESERVATION_DATE = 32 };

struct reservation {
        unsigned device;
        uint64_t until_s; /* since 1970; 0: no end */
};

/* Take the first reservation off a text. `now_s` other than 0 also permits a duration for UNTIL: a number with `s`,
 * `min`, `h` or `d`, from that time on. 1: *ret is it; 0: there is no more; SP_E_INVAL: the text is malformed. */
SP_NODISCARD int reservation_next(const char **text, uint64_t now_s, struct reservation *ret);

/* Return true if the text is a list of reservations as the list of clients has them. */
bool reservation_is_list(const char *text);

/* Write the reservation as the list of clients has it. Returns the length. */
int reservation_put(const struct reservation *r, char *ret, size_t size);

/* Write " until DATE", or "" if it has no end. */
const char *reservation_end(const struct reservation *r, char ret[RESERVATION_DATE]);

/* Return true if it has ended by then. */
bool reservation_is_over(const struct reservation *r, uint64_t now_s);

#endif
