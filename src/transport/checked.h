/* A checked connection carries bytes in records with a checksum (CRC-32C). It stands on a conn that
 * is neither encrypted nor in memory: TCP. No byte is handed out before its whole record was
 * checked. A record that is altered, repeated or missing ends the conn with SP_E_LINK, and the log
 * says so once.
 *
 * It detects accidents, and changes by machines between the two hosts that do not know the
 * checksum. It does not detect an attacker that computes new checksums: TLS does.
 *
 * recvv hands out nothing of a record that has not arrived whole. On a slow link that can take
 * seconds, and the clocks of sessions (session/owed.h) must not take the pause for silence. So
 * records are small. Records with `places` may be large, because conn.came counts their bytes as
 * they arrive.
 *
 * Record: a header of 12 bytes, little-endian, and 1 to CHECKED_RECORD_MAX bytes:
 *   u32 size      of the bytes behind the header
 *   u32 payload   their CRC-32C
 *   u32 header    CRC-32C of: the record's number (u64), size, payload
 * The number counts the records of this direction of this connection, from 0 on. */
#ifndef SPANCL_TRANSPORT_CHECKED_H
#define SPANCL_TRANSPORT_CHECKED_H

#include "transport/transport.h"

enum {
        CHECKED_RECORD_MAX =
                128 << 10, /* largest record that is accepted; largest sent with `places` */
        CHECKED_RECORD_SMALL = 4 << 10, /* largest record sent without `places` */
        CHECKED_HEADER = 12,
};

/* Replace `*c` by a checked connection over it, or close it on failure. Both sides have agreed on
 * it and stand at the same point of the stream. `places`: large records are received straight into
 * their place, as TRANSPORT_PLACED says; for bulk lanes. SP_E_NOMEM. */
SP_NODISCARD int checked_begin(struct conn **c, bool places);

/* True if the next recvv has bytes without asking the conn below. For tests, which do not poll. */
bool checked_has_rest(const struct conn *c);

#endif
