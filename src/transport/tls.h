/* TLS 1.3 over TCP: the functions that the transport "tls" has beyond transport.h.
 *
 * The module makes the handshake (transport/crypto.h). Records are made here. So both directions
 * are independent, and a connection can move to another process with its keys (conn_export). Data
 * is encrypted out of the caller's pieces and decrypted into the caller's places.
 *
 * There are no session tickets, no renegotiation and no padding. The key of a direction is renewed
 * before it has sealed too much. If the kernel can seal and open records, it gets the keys after
 * the handshake. In a server's worker that happens after the connection was imported. A connection
 * ends with TCP's end: the layer above knows whether the stream was complete.
 *
 * Addresses: "tls:HOST:PORT" is a server known by the user's keys (transport/keys.h), to which this
 * user's identity is shown. "tls:HOST:PORT#FINGERPRINT" is a server with exactly this key, to which
 * nothing is shown; with '+' behind it this user's identity is shown, unless tls_for_others. */
#ifndef SPANCL_TRANSPORT_TLS_H
#define SPANCL_TRANSPORT_TLS_H

#include "transport/crypto.h"
#include "transport/keys.h"
#include "transport/transport.h"

/* Load the module at the first call and return its table. NULL: it is not there; `text` says why.
 * Any thread. */
const struct crypto_ops *tls_crypto(char text[KEYS_TEXT_MAX]);

/* The acceptor of handshakes: the identity and the authority of a folder of keys. */
struct tls_server;

/* Make an acceptor; the identity is made if there is none yet. `find` looks up a secret that a
 * client offers; NULL: none. SP_E_UNSUPP: no module; SP_E_AUTH, SP_E_INVAL: see keys_read;
 * SP_E_NOMEM. `text` explains the error. */
SP_NODISCARD int tls_server_new(const char *folder,
                                bool (*find)(void *user, struct crypto_psk *psk), void *user,
                                struct tls_server **ret, char text[KEYS_TEXT_MAX]);
struct tls_server *tls_server_free(struct tls_server *s); /* its conns go on; NULL allowed */
const uint8_t *tls_server_fingerprint(const struct tls_server *s);

/* The server's side of TLS on a connected conn, which this call takes over, also when it fails.
 * recvv makes the handshake. It returns SP_E_AGAIN until the handshake is done; until then nothing
 * can be sent. SP_E_NOMEM, SP_E_INVAL (`plain` is no socket). */
SP_NODISCARD int tls_accept(struct tls_server *s, struct conn *plain, struct conn **ret);

/* For a conn that will be exported: from now on it reads nothing beyond the record that it is
 * receiving. So the following bytes are left for the process that imports the conn. Costs one more
 * system call for each record. */
void tls_be_careful(struct conn *c);

/* The client's side, as the transport's connect does it, but with a secret that both sides must
 * have instead of keys. An address of the transport below is taken, too. */
SP_NODISCARD int tls_connect_psk(const char *address, const struct crypto_psk *psk, int timeout_ms,
                                 struct conn **ret);

/* The other side of a conn, known once something was received. NULL: the conn has no TLS. */
struct tls_peer {
        bool known; /* it has the key of this fingerprint (of a nano client: the secret) */
        uint8_t fingerprint[CRYPTO_FINGERPRINT];
        unsigned before_count; /* earlier keys, newest first, which handed over to it */
        uint8_t before[CRYPTO_BEFORE_MAX][CRYPTO_FINGERPRINT];
        bool vouched;                  /* the authority vouches for it */
        char psk[CRYPTO_NAME_MAX + 1]; /* it has this secret; "": none */
};
const struct tls_peer *tls_peer(const struct conn *c);

/* The reason why the last connect of this thread failed, or the handshake of an accepted conn. ""
 * if the status says it all. */
const char *tls_reason(void);

/* Whether the kernel may seal and open the records (os/net/ktls.h). Applies to conns made from
 * now on; set before the first. */
extern bool tls_by_kernel;

/* This process connects on behalf of others. It connects only to servers whose key the address
 * names, and shows no keys of this user. Each conn can be exported (tls_be_careful). Set before the
 * first. */
extern bool tls_for_others;

/* Name of the side that seals and opens the records of a conn. "tls": the process; "ktls": the
 * kernel; "ktls sends" or "ktls receives": the kernel in this direction only. NULL: the conn has no
 * TLS. */
const char *tls_name(const struct conn *c);

/* The number of records that a key may seal before it is renewed; for tests. */
extern uint64_t tls_records_per_key;

/* For conn_export and conn_import (transport.h). */
enum { TLS_STATE_SIZE = 88 };
SP_NODISCARD int tls_export(struct conn *c, uint8_t ret[TLS_STATE_SIZE]);
SP_NODISCARD int tls_import(int fd, const uint8_t state[TLS_STATE_SIZE], struct conn **ret);

#endif
