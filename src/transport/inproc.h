/* Conns within one process. */
#ifndef SPANCL_TRANSPORT_INPROC_H
#define SPANCL_TRANSPORT_INPROC_H

#include "transport/transport.h"

/* Make a connected pair of conns of the in-process transport. `rendezvous`: bytes go straight from
 * the sender's memory to the receiver's, so sendv takes bytes only when they have been received;
 * for bulk lanes. SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int inproc_pair(bool rendezvous, struct conn *ret[2]);

#endif
