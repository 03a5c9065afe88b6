/* A checked connection: what it carries goes in records with a checksum (CRC-32C), over another conn that is neither encrypted nor
 * in memory: TCP. No byte is handed out before its whole record was checked. A record that is altered, repeated or missing
 * ends the conn (SP_E_LINK), which the log says once.
 *
 * It finds accidents, and altering by machines between two hosts that do not know of it. An attacker that computes checksums anew is not
 * found: for that there is TLS.
 *
 * recvv hands out nothing of a record whose rest is on its way, for seconds on a slow link, and the clocks of sessions
 * (session/owed.h) must not take that for silence. So records are small, but those with `places`, of which conn.came tells.
 *
 * Record: a header of 12 bytes, little-endian, and 1 to CHECKED_RECORD_MAX bytes:
 *   u32 size      of the bytes behind the header
 *   u32 payload   their CRC-32C
 *   u32 header    CRC-32C of the number of the record on this connection in this direction, from 0 on (u64), size and payload */
#ifndef SPANCL_TRANSPORT_CHECKED_H
#define SPANCL_TRANSPORT_CHECKED_H

#include "transport/transport.h"

enum {
        CHECKED_RECORD_MAX = 128 << 10, /* what is accepted, and sent with `places` */
        CHECKED_RECORD_SMALL = 4 << 10, /* what is sent without */
        CHECKED_HEADER = 12,
};

/* Both sides have agreed on it and stand at the same point of the stream. `*c` is replaced, or closed when it fails. `places`:
 * large records are received straight into their place, as TRANSPORT_PLACED says (bulk lanes). SP_E_NOMEM. */
SP_NODISCARD int checked_begin(struct conn **c, bool places);

/* Something has come that the next recvv gives without asking the conn below: for tests, which do not poll. */
bool checked_has_rest(const struct conn *c);

#endif
