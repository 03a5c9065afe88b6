/* The gate: it decides who may connect. It knows the keys (transport/keys.h), judges the hello of
 * a connection, and starts TLS on a connection that asks for it. One owner. Apart from reading a
 * connection's first byte, it does no I/O on connections. */
#ifndef SPANCL_DAEMON_GATE_H
#define SPANCL_DAEMON_GATE_H

#include "config/options.h"
#include "os/file_info.h"
#include "proto/wire.h"
#include "transport/tls.h"

enum { GATE_WHO_MAX = KEYS_HEX + 16, GATE_RESERVED_MAX = 512 };

struct gate {
        const struct config_options *options;
        char folder[KEYS_PATH_MAX];  /* the folder of the keys; "": none */
        struct tls_server *tls;      /* NULL: not needed yet, or not possible */
        char identity[KEYS_HEX + 1]; /* "": none yet */
        struct file_info file;       /* identity.pem at the time when `tls` was made */
        unsigned *socket_users;      /* the users that --socket-users names */
        size_t socket_user_count;
        bool socket_any; /* --socket-users names everybody */
};

/* The origin of a connection. */
struct gate_origin {
        /* From this host, by a Unix socket or loopback; may be unencrypted. */
        bool local;
        bool stranger; /* a Unix socket's other user, who is refused */
        unsigned uid;  /* the number of that user */
        unsigned user; /* the user at a Unix socket; UINT_MAX: it is none, or unknown */
        /* The address; of IPv6, the part that belongs to one customer. Zeros: local. */
        uint8_t net[16];
};

/* The rights of an admitted session. Each worker is made for one set of rights. */
struct gate_grant {
        /* The devices that the session may use; "": all of the server's. */
        char devices[KEYS_NAME_MAX + 1];
        /* The owner of the compile caches that the session shares: a key's fingerprint, or
         * "token" for all clients that have the token. "": the server's own user, as for
         * connections of this host. */
        char owner[KEYS_HEX + 1];
        /* The client's name in the list of clients, for the log; "": it has none. */
        char client[KEYS_NAME_MAX + 1];
        /* The client whose account the session uses (daemon/supervisor/accounts.h): "key HEX", "token", "user UID",
         * "address HEX", or "local" for connections of this host that show none of these. */
        char who[GATE_WHO_MAX];
        /* The fingerprint by which the list of clients has it; "": the list does not decide. */
        char key[KEYS_HEX + 1];
        char was[KEYS_HEX + 1]; /* the key that `key` has just replaced in the list; "": none */
        char user[KEYS_NAME_MAX + 1], host[KEYS_NAME_MAX + 1]; /* the same, as it named itself */
        char settings[KEYS_SETTINGS_MAX + 1]; /* of its line in the list (transport/keys.h) */
        bool own; /* the client has proved a key that counts as the server's own */
        /* The devices that are reserved for other clients, as terms of a device filter: "!0,!2"
         * (daemon/supervisor/reserving.h). */
        char reserved[GATE_RESERVED_MAX];
};

/* Zeroed memory is a valid gate without keys. */
void gate_init(struct gate *g, const struct config_options *o);
void gate_fini(struct gate *g);

/* Get ready for TLS. Makes keys if there are none, and loads the key again after it was replaced.
 * SP_E_UNSUPP, SP_E_AUTH, SP_E_INVAL, SP_E_NOMEM; the log says why. */
SP_NODISCARD int gate_keys(struct gate *g);

/* Get ready for TLS if there are keys already. */
void gate_keys_if_any(struct gate *g);

/* Return true if anybody can authenticate: there is a client, a token, an authority, or a code on
 * show. */
bool gate_has_friends(const struct gate *g);

/* Find the origin of a connection. `tls_only`: it came to a listener of "tls:", which does not
 * favour loopback over other hosts. */
struct gate_origin gate_origin_of(const struct gate *g, const struct conn *c, bool tls_only);

/* Wait for the first byte of a connection, which shows if it is TLS. 1: it is, and the conn was
 * replaced; 0: it is plain; SP_E_AGAIN: no byte yet; SP_E_LINK: the connection is closed, or TLS
 * is not possible. The conn stays the caller's. */
SP_NODISCARD int gate_listen(struct gate *g, struct conn **c);

/* Decide if the sender of this hello may connect. 0: yes, with its rights; SP_E_AUTH: no, with a
 * static text for the sender. */
SP_NODISCARD int gate_admit(const struct gate *g, const struct gate_origin *from,
                            const struct conn *c, const struct wire_hello *m,
                            struct gate_grant *ret, const char **ret_text);

/* Is the admitted connection that of the server's own user? Its system says so (a Unix socket of this
 * user or root), or it has proved a key that counts as the server's own. */
bool gate_is_owner(const struct gate_origin *from, const struct conn *c,
                   const struct gate_grant *grant);

/* Put the client that proved the code into the list of clients. SP_E_AUTH: it has proved none;
 * SP_E_PROTO, SP_E_INVAL, SP_E_NOMEM. Each comes with a static text for the client. */
SP_NODISCARD int gate_pair(struct gate *g, const struct conn *c, const struct wire_hello *m,
                           const char **ret_text);

/* Read the list of clients, which the caller frees with mem_free. SP_E_NOENT: there is none. SP_E_AUTH, SP_E_INVAL,
 * SP_E_LIMIT, SP_E_NOMEM: it is unusable; the log says why. */
SP_NODISCARD int gate_clients(const struct gate *g, char **ret);

/* Find the folder of the keys: --keys, the state folder that systemd gives a service, or the user's own. Errors as
 * keys_folder. */
SP_NODISCARD int gate_folder(const struct config_options *o, char ret[KEYS_PATH_MAX]);

/* Run "spancld pair": show a code, or with --rotate make a new key. Return the exit status. */
int gate_show_code(const struct config_options *o);
/* Run "spancld pair --nano NAME": make the key of a device with the nano client, enter the device into the list of
 * clients, and print the key. Return the exit status. */
int gate_nano(const struct config_options *o, const char *name);
int gate_rotate(const struct config_options *o);

#endif
