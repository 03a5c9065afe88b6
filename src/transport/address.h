/* Typed addresses. Only this folder knows how an address is written. Other code parses one, reads
 * its parts and the capabilities of its transport (`ops->caps`), and writes it. transport.h lists
 * the texts. No function resolves a name; no locks, any thread. */
#ifndef SPANCL_TRANSPORT_ADDRESS_H
#define SPANCL_TRANSPORT_ADDRESS_H

#include "transport/transport.h"

enum { ADDRESS_MAX = 400 }; /* of the text of any address, with its final 0 */

struct address {
        const struct transport_ops *ops;
        /* TRANSPORT_HOSTS: a name or number, IPv6 without brackets. Else the path or name. */
        char host[256];
        unsigned port; /* TRANSPORT_HOSTS; more than 65535 only where it is no address of IP */
        char key[65];  /* TRANSPORT_ENCRYPTED: the server's fingerprint, in hex; "": not given */
        bool shows_own; /* with `key`: this side shows its own key, too, as a user does; a peer does not */
};

/* SP_E_INVAL */
SP_NODISCARD int address_parse(const char *text, struct address *ret);

/* The address of a Unix socket. SP_E_INVAL: the path is too long. */
SP_NODISCARD int address_of_path(const char *path, struct address *ret);

/* Parse an address of --listen: HOST, HOST:PORT, or either with the scheme of a transport in front.
 * Without a scheme it is TCP's, without a port `port`. SP_E_INVAL. */
SP_NODISCARD int address_of_listen(const char *text, unsigned port, struct address *ret);

/* Parse a server's place as the message peer_open has it: HOST, perhaps with a scheme in front, and
 * with '#' and a key behind; or a whole address without a port. IPv6 has no brackets. HOST without
 * a scheme is in the clear only if it is this host's loopback. SP_E_INVAL, also if servers do not
 * reach each other by such addresses (TRANSPORT_PEERS). */
SP_NODISCARD int address_of_peer(const char *host, unsigned port, struct address *ret);

/* Write the place of a server for peer_open: `host`, as the configuration has it, and the key that
 * the server must have (""; none). Without a key a `host` without a scheme is in the clear if
 * `plain`. */
void address_put_peer(const char *host, const char *key, bool plain, char *ret, size_t size);

/* Write the address as connect and listen take it. */
void address_put(const struct address *a, char ret[ADDRESS_MAX]);

/* Write an address as people know it: without the key, and hosts of IP without a scheme. Other
 * texts stay as they are. */
void address_show(const char *text, char ret[ADDRESS_MAX]);

/* Take the encrypted transport above the address's own, if there is one. */
void address_encrypt(struct address *a);

/* Is it on this host: no network, or loopback? */
bool address_is_here(const struct address *a);

/* Return true if it is an address of IP that other hosts reach: not loopback. */
bool address_is_reached(const struct address *a);

/* Connect or listen, as transport_ops do. SP_E_INVAL: the transport cannot. */
SP_NODISCARD int address_connect(const struct address *a, int timeout_ms, struct conn **ret);
SP_NODISCARD int address_listen(const struct address *a, struct listener **ret);

/* Write the address that a conn, made by connecting to `text`, has reached. It has numbers instead
 * of a name, which may lead to another host the next time. SP_E_LINK, SP_E_INVAL. */
SP_NODISCARD int conn_reached(const struct conn *c, const char *text, char ret[ADDRESS_MAX]);

/* Write the other end of an accepted conn as people know it: an address as address_show writes it, with numbers, or
 * "uid 1000", or "unknown". */
void conn_from(const struct conn *c, char ret[ADDRESS_MAX]);

/* Find the origin of an accepted conn: the other side's address in `net`, of IPv6 the part that
 * belongs to one customer; zeros if it has none. True: it is loopback's. */
bool conn_origin(const struct conn *c, uint8_t net[16]);

#endif
