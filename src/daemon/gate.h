/* The gate: who may come in. Knows the keys (transport/keys.h), decides on what came over a connection, and
 * makes TLS of one that asks for it. No I/O on connections; one owner. */
#ifndef SPANCL_DAEMON_GATE_H
#define SPANCL_DAEMON_GATE_H

#include <sys/stat.h>

#include "base/config.h"
#include "proto/wire.h"
#include "transport/tls.h"

struct gate {
        const struct config_options *options;
        char folder[KEYS_PATH_MAX];  /* of the keys; "": none */
        struct tls_server *tls;      /* NULL: not needed yet, or not possible */
        char identity[KEYS_HEX + 1]; /* "": none yet */
        struct stat file;            /* identity.pem, as `tls` has it */
        unsigned *socket_users;      /* whom --socket-users names */
        size_t socket_user_count;
        bool socket_any; /* it is everybody */
};

/* Where a connection comes from. */
struct gate_origin {
        bool local;    /* this host: a Unix socket, or loopback; what may come in unencrypted */
        bool stranger; /* a Unix socket's other user, who may not come in */
        unsigned uid;  /* its number */
        uint8_t net
                [16]; /* the address, as far as one of IPv6 belongs to one customer; zeros: local */
};

/* The rights of a session that is let in: another process is made ready for each kind. */
struct gate_grant {
        char devices[KEYS_NAME_MAX + 1]; /* that it may use; "": all of the server's */
        /* The owner of the compile caches that it shares: a key's fingerprint, "token" for all who have that; "": those of the server's own
         * user, whom connections of this host belong to. */
        char owner[KEYS_HEX + 1];
};

/* Zeroed memory is a valid gate without keys. */
void gate_init(struct gate *g, const struct config_options *o);
void gate_fini(struct gate *g);

/* Get ready for TLS, making keys when there are none, and with a new key when that was replaced. SP_E_UNSUPP, SP_E_AUTH, SP_E_INVAL, SP_E_NOMEM; the
 * log says why. */
SP_NODISCARD int gate_keys(struct gate *g);

/* Get ready if there are keys already. */
void gate_keys_if_any(struct gate *g);

/* Can anybody be told from a stranger: is there a client, a token, an authority, or a code shown now? */
bool gate_has_friends(const struct gate *g);

/* `tls_only`: the listener of "tls:", for which loopback is no better than another host. */
struct gate_origin gate_origin_of(const struct gate *g, const struct conn *c, bool tls_only);

/* Has its first byte come, and is it one of TLS? 1: yes, the conn was replaced; 0: no, or it is plain;
 * SP_E_AGAIN: nothing came; SP_E_LINK: it is closed, or TLS is not possible; the conn stays the
 * caller's. */
SP_NODISCARD int gate_listen(struct gate *g, struct conn **c);

/* May who sent this hello come in? 0, with what it has; or SP_E_AUTH with what to tell it (static). */
SP_NODISCARD int gate_admit(const struct gate *g, const struct gate_origin *from,
                            const struct conn *c, const struct wire_hello *m,
                            struct gate_grant *ret, const char **ret_text);

/* Put who showed the code into the list of clients. SP_E_AUTH: it showed none; SP_E_PROTO, SP_E_INVAL,
 * SP_E_NOMEM; with what to tell it (static). */
SP_NODISCARD int gate_pair(struct gate *g, const struct conn *c, const struct wire_hello *m,
                           const char **ret_text);

/* "spancld pair": show a code; with --rotate: a new key. The exit status. */
int gate_show_code(const struct config_options *o);
int gate_rotate(const struct config_options *o);

#endif
