/* TLS 1.3 over TCP: what the transport "tls" has beyond transport.h.
 *
 * The handshake is the module's (transport/crypto.h); records are made here, so that both directions are
 * independent, data is encrypted out of the caller's pieces and decrypted into its places, and a
 * connection moves to another process with its keys (conn_export). There are no session tickets, no
 * renegotiation and no padding; a direction's key is renewed before it sealed too much. Where the kernel can, it has the
 * keys once the handshake is done and, of a server's worker, the connection was imported. A connection ends with
 * TCP's end: what is above knows whether all was said.
 *
 * Addresses: "tls:HOST:PORT", a server known by the user's keys (transport/keys.h), which shows this user's
 * identity; or "tls:HOST:PORT#FINGERPRINT", a server with exactly this key, to which nothing is shown. */
#ifndef SPANCL_TRANSPORT_TLS_H
#define SPANCL_TRANSPORT_TLS_H

#include "transport/crypto.h"
#include "transport/keys.h"
#include "transport/transport.h"

/* The module, loaded at the first call. NULL, with a sentence: it is not there. Any thread. */
const struct crypto_ops *tls_crypto(char text[KEYS_TEXT_MAX]);

/* The acceptor of handshakes: the identity and the authority of a folder of keys. */
struct tls_server;

/* With the identity made when there is none yet. SP_E_UNSUPP: no module; SP_E_AUTH, SP_E_INVAL: see
 * keys_read; SP_E_NOMEM. `text` says so. `find` is asked for secrets that clients offer; NULL: none. */
SP_NODISCARD int tls_server_new(const char *folder,
                                bool (*find)(void *user, struct crypto_psk *psk), void *user,
                                struct tls_server **ret, char text[KEYS_TEXT_MAX]);
struct tls_server *tls_server_free(struct tls_server *s); /* its conns go on; NULL allowed */
const uint8_t *tls_server_fingerprint(const struct tls_server *s);

/* TLS on a connected conn, which this call takes over, also when it fails: the server's side. The handshake
 * is made by recvv, which says SP_E_AGAIN until it is done; until then nothing can be sent. SP_E_NOMEM,
 * SP_E_INVAL (`plain` is no socket). */
SP_NODISCARD int tls_accept(struct tls_server *s, struct conn *plain, struct conn **ret);

/* For conns that will be exported: from now on nothing is read from the socket beyond the record that is being received, so
 * that what comes behind it is left for who imports the conn. Costs a system call more for each record. */
void tls_be_careful(struct conn *c);

/* The client's side, as the transport's connect does it, but with a secret that both must have instead
 * of keys. */
SP_NODISCARD int tls_connect_psk(const char *address, const struct crypto_psk *psk, int timeout_ms,
                                 struct conn **ret);

/* The other side of a conn, once something was received. NULL: the conn has no TLS. */
struct tls_peer {
        bool known; /* it has the key of this fingerprint */
        uint8_t fingerprint[CRYPTO_FINGERPRINT];
        unsigned before_count; /* and these before, newest first, which have handed over to it */
        uint8_t before[CRYPTO_BEFORE_MAX][CRYPTO_FINGERPRINT];
        bool vouched;                  /* the authority says so */
        char psk[CRYPTO_NAME_MAX + 1]; /* it has this secret; "": none */
};
const struct tls_peer *tls_peer(const struct conn *c);

/* Why the last connect of this thread failed, or the handshake of an accepted conn, when the status does not
 * say it all; "" else. */
const char *tls_reason(void);

/* Whether the kernel makes and opens the records where it can (transport/ktls.h). Of conns made from now on; set before
 * the first. */
extern bool tls_by_kernel;

/* This process connects for others: only to servers whose key the address names, with no keys of this user's; and each
 * conn can be exported (tls_be_careful). Set before the first. */
extern bool tls_for_others;

/* Whom the records of a conn are sealed and opened by: "tls", the process; "ktls", the kernel; "ktls sends" or "ktls
 * receives", each one of them. NULL: the conn has no TLS. */
const char *tls_name(const struct conn *c);

/* How many records a key may seal before it is renewed; for tests. */
extern uint64_t tls_records_per_key;

/* For conn_export and conn_import (transport.h). */
enum { TLS_STATE_SIZE = 88 };
SP_NODISCARD int tls_export(struct conn *c, uint8_t ret[TLS_STATE_SIZE]);
SP_NODISCARD int tls_import(int fd, const uint8_t state[TLS_STATE_SIZE], struct conn **ret);

#endif
