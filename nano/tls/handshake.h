/* The handshake of TLS 1.3 with a pre-shared key alone (RFC 8446, psk_ke); private to nano/tls. One thread. */
#ifndef SPANCL_NANO_TLS_HANDSHAKE_H
#define SPANCL_NANO_TLS_HANDSHAKE_H

#include "tls/keys.h"

/* Make the handshake on a lane that was just connected. Returns NULL when it is done, else a static text with the
 * reason why it failed. */
const char *tls_shake_hands(struct spancl_nano_tls *t, unsigned lane);

/* Receive the rest of the record at l->in. Returns its size, 0 if it is not whole yet. Negative: the connection is
 * lost, or this is no record that the server may send. */
int tls_receive_record(struct spancl_nano_tls *t, unsigned lane);

/* Send what l->out holds. False: the connection is lost. */
bool tls_flush(struct spancl_nano_tls *t, unsigned lane);

#endif
