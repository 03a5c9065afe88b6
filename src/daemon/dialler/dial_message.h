/* The messages between a worker and the dialler (CONTROL_DIAL). Neither side trusts the other.
 * Any bytes decode to an error, or to values within their bounds. No state.
 *
 *     request   number, flags, a hello as frames have it (proto/schema/session.def), the address
 *     answer    number, status; with status 0: the server's hello_reply as it came, the
 *               connection's state (conn_export), and its descriptor beside the packet;
 *               with an error: its text */
#ifndef SPANCL_DAEMON_DIAL_MESSAGE_H
#define SPANCL_DAEMON_DIAL_MESSAGE_H

#include "base/bytes.h"
#include "loop/dial.h"
#include "transport/fabric.h"

enum { DIAL_ADDRESS_MAX = 1100 };

/* A decoded request. `params` points into it, so it must not be copied. */
struct dial_request {
        uint64_t number; /* the answer repeats it */
        struct dial_params params;
        char address[DIAL_ADDRESS_MAX];
        struct fabric_choice fabric;
};

/* Append a request for a peer's link: address, lane, ids, next_seq, generation, features, checks
 * and fabrics of `p`. With own_user the address is the Unix socket of a server for servers of its
 * host (daemon/dialler/local_path.h). SP_E_NOMEM, SP_E_INVAL (address). */
SP_NODISCARD int dial_request_put(struct buf *b, uint64_t number, const struct dial_params *p);

/* Decode a request. The dialler sets role, name and timeout itself, whatever the request says.
 * `data` is 8-byte aligned. SP_E_PROTO. */
SP_NODISCARD int dial_request_get(struct bytes data, struct dial_request *ret);

struct dial_answer {
        uint64_t number;
        int status;
        struct bytes text;         /* if the status is negative */
        struct bytes hello, state; /* if the status is 0 */
};

/* Append the head of an answer, and its text (NULL: none). SP_E_NOMEM. */
SP_NODISCARD int dial_answer_put(struct buf *b, uint64_t number, int status, const char *text);

/* Decode an answer. Its fields borrow from `data`; both `data` and `hello` are 8-byte aligned.
 * SP_E_PROTO. */
SP_NODISCARD int dial_answer_get(struct bytes data, struct dial_answer *ret);

#endif
