/* The messages between a worker and the dialler (CONTROL_DIAL). Neither trusts the other: decoding any bytes ends with an
 * error, or with values within their bounds. No state.
 *
 *     request   number, flags, a hello as frames have it (proto/schema/session.def), the address
 *     answer    number, status; with status 0 the server's hello_reply as it came, the connection's state (conn_export),
 *               and its descriptor beside the packet; with an error its text
 */
#ifndef SPANCL_DAEMON_DIAL_MESSAGE_H
#define SPANCL_DAEMON_DIAL_MESSAGE_H

#include "base/bytes.h"
#include "loop/dial.h"
#include "transport/fabric.h"

enum { DIAL_ADDRESS_MAX = 1100 };

/* A decoded request. `params` points into it: do not copy it. */
struct dial_request {
        uint64_t number; /* which the answer repeats */
        struct dial_params params;
        char address[DIAL_ADDRESS_MAX];
        struct fabric_choice fabric;
};

/* Append a request for a peer's link: address, lane, ids, next_seq, generation, features, checks and fabrics of `p`. With own_user
 * the address is the Unix socket of a server for servers of its host (daemon/local_path.h). SP_E_NOMEM, SP_E_INVAL (address). */
SP_NODISCARD int dial_request_put(struct buf *b, uint64_t number, const struct dial_params *p);

/* Decode. Role, name and timeout are the dialler's, whatever the request says. `data` is 8-byte aligned. SP_E_PROTO. */
SP_NODISCARD int dial_request_get(struct bytes data, struct dial_request *ret);

struct dial_answer {
        uint64_t number;
        int status;
        struct bytes text;         /* status negative */
        struct bytes hello, state; /* status 0 */
};

/* Append an answer's head, and its text; NULL: none. SP_E_NOMEM. */
SP_NODISCARD int dial_answer_put(struct buf *b, uint64_t number, int status, const char *text);

/* Fields borrow from `data`, which is 8-byte aligned; `hello` is, too. SP_E_PROTO. */
SP_NODISCARD int dial_answer_get(struct bytes data, struct dial_answer *ret);

#endif
