/* Dialling: connect to an address and exchange hellos. Blocking, with a timeout; no locks, any thread.
 * Used for the client's lanes, for peers and by the command-line tool. */
#ifndef SPANCL_LOOP_DIAL_H
#define SPANCL_LOOP_DIAL_H

#include <stdint.h>

#include "base/status.h"
#include "proto/wire.h"
#include "transport/transport.h"

struct fabric_choice;
struct hello_devices;

enum dial_role {
        DIAL_CLIENT = 0,
        DIAL_PEER = 1,
        DIAL_LOOK = 2,    /* HELLO_ROLE_LOOK */
        DIAL_PAIR = 3,    /* HELLO_ROLE_PAIR */
        DIAL_DRAIN = 4,   /* HELLO_ROLE_DRAIN */
        DIAL_OBSERVE = 5, /* HELLO_ROLE_OBSERVE */
};

/* In the order of SPANCL_CHECKSUM's values. */
enum checking {
        CHECKING_OFF,
        CHECKING_AUTO, /* but not over loopback */
        CHECKING_ON,
};

/* The pause between two tries to reach the same side again: at first, and at most. */
enum {
        RETRY_FIRST_MS = 20,
        RETRY_MAX_MS = 1000,
};

struct dial_params {
        const char *address; /* of a transport (transport.h) */
        int timeout_ms;      /* for all of it; 0: 10 s */
        enum dial_role role;
        unsigned lane;
        uint64_t session_id[2], key[2]; /* hello's hi, lo */
        uint64_t next_seq;              /* session_next_seq of the session on this side, lane 0 */
        uint64_t generation;            /* of hello */
        struct bytes
                early; /* sent right behind the hello, but for shared memory and with checksums; a server that
                                         * refuses may then be SP_E_LINK without its reason */
        const char *name; /* of this program, for the server's log; NULL: none */
        bool own_user;    /* refuse a Unix socket whose listener is neither this user nor root */
        bool share;       /* go on over shared memory if the server agrees (transport_shm) */
        bool packs;       /* this side unpacks FRAME_PACKED */
        enum checking checks;               /* of data that comes over TCP without TLS */
        const struct fabric_choice *fabric; /* offered (transport/fabric.h); NULL: none */
        /* Instead of a session, descriptions of the devices will do. If the server gives them, they are here, the
         * answer has FEATURE_DESCRIPTION, and the conn is closed: *ret is NULL. NULL: a session is wanted. */
        struct hello_devices *devices;
};

struct dial_reply {
        uint64_t version, features;    /* features: of both sides */
        uint64_t next_seq;             /* for session_lane_up */
        uint64_t time_ns;              /* the server's clock when it answered */
        uint64_t sent_ns, received_ns; /* this side's, when hello went and the answer came */
        bool early;                    /* dial_params.early was sent */
        char identity[65]; /* what the server's key is known by, in hex; "": it has none */
        char local_path[WIRE_LOCAL_PATH_MAX +
                        1]; /* a Unix socket where servers of its host reach it; "": nowhere */
        /* Always written: the reason of a failure and its remedy, as a sentence that names the
         * address. "" on success. */
        char text[1200];
};

/* Dial. Errors found on this side:
 *   SP_E_HOST, SP_E_UNREACH, SP_E_REFUSED, SP_E_TIMEOUT
 *   SP_E_LINK     no answer
 *   SP_E_PROTO    the answer is not SpanCL's
 *   SP_E_INVAL    the address
 *   SP_E_NOMEM
 *   SP_E_AUTH     one side does not trust the other
 *   SP_E_UNSUPP   no TLS here
 * Errors that the server reports: SP_E_VERSION, SP_E_AUTH, SP_E_NODEV, SP_E_GONE, SP_E_LIMIT. */
SP_NODISCARD int loop_connect(const struct dial_params *p, struct conn **ret,
                              struct dial_reply *reply);

/* Make the hello for these params; its texts are borrowed. loop_hello adds features and fabrics,
 * which depend on the connection. */
struct wire_hello dial_hello(const struct dial_params *p);

/* Exchange hellos over a conn that is already connected. The conn is closed on failure. */
SP_NODISCARD int loop_hello(const struct dial_params *p, struct conn *conn, struct conn **ret,
                            struct dial_reply *reply);

/* loop_connect and loop_hello in two halves, for two processes. One process makes the connection
 * and exchanges hellos, the other one uses it. loop_greet appends the server's whole answer to
 * `ret`, if the server has accepted the hello; the conn stays the caller's. loop_settle takes this
 * answer and sets up the features that both sides agreed on; it takes `conn` over. */
SP_NODISCARD int loop_greet(const struct dial_params *p, struct conn *conn, struct buf *ret,
                            struct dial_reply *reply);
SP_NODISCARD int loop_settle(const struct dial_params *p, struct bytes answer, struct conn *conn,
                             struct conn **ret, struct dial_reply *reply);

/* Write the text for a connection that could not be made. */
void loop_explain(const struct dial_params *p, int status, struct dial_reply *reply);

/* A try has failed. Returns the pause before the next one in ms, and doubles *pause_ms up to
 * `max_ms`. */
unsigned dial_pause(unsigned *pause_ms, unsigned max_ms);

/* Does a SpanCL server answer? Sends a hello that contains nothing that a caller has chosen. Takes
 * `conn` over. SP_E_PROTO: not SpanCL; SP_E_LINK, SP_E_TIMEOUT. */
SP_NODISCARD int loop_probe(struct conn *conn, int timeout_ms);

#endif
