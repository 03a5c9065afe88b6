/* Transports are byte pipes between two processes, or within one. Each transport is a small table
 * of operations and knows nothing of sessions. Operations do not block. A conn has one owner at a
 * time for each direction: one thread may send while another receives.
 *
 * Some transports replace a connection when both sides agree. Shared memory (shm) replaces a
 * connected Unix socket. A fabric (transport/fabric.h) replaces a connection between servers. A
 * checked connection (transport/checked.h) replaces TCP.
 *
 * Addresses:
 *   tcp:HOST:PORT                      HOST: IPv4, [IPv6] or a name
 *   unix:PATH
 *   vsock:CID:PORT[#FINGERPRINT]       transport/vsock.c: with TLS; to listen, CID may be "any"
 *   vsock-plain:CID:PORT               the same without TLS
 *   inproc:NAME                        buffered
 *   inproc:NAME/bulk                   rendezvous, see inproc_pair
 *   tls:HOST:PORT[#FINGERPRINT[+]]     transport/tls.h
 *   loopback:HOST:PORT[#FINGERPRINT]   only to connect to: TCP if all of HOST's addresses are
 *                                      loopback, else TLS
 * Other code handles them as struct address (transport/address.h). Listening on "tcp:*:PORT" takes IPv4 and IPv6. */
#ifndef SPANCL_TRANSPORT_TRANSPORT_H
#define SPANCL_TRANSPORT_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "os/iovec.h"
#include "os/poll.h"

struct conn;
struct listener;

/* A TCP conn is lost after so many milliseconds without a sign of life from the other host: the
 * system's probes of idle hosts, and conn_silence. 0: when the system says so. Applies to conns made
 * from now on; set before the first. */
extern unsigned transport_timeout_ms;

/* TCP over several paths where both hosts have it (os/net/multipath.h): for connections and listeners made from now on,
 * but not for those over loopback. Set before the first. */
extern bool transport_multipath;

/* Properties of a transport's conns, and of its addresses. The code outside src/transport asks for
 * these, never for a particular transport. */
enum transport_caps {
        /* Of addresses. */
        TRANSPORT_HOSTS = 1 << 0, /* they are HOST:PORT, perhaps with a key behind */
        TRANSPORT_PEERS = 1 << 1, /* hosts of an IP network, where servers reach each other */

        /* Of addresses and conns. */
        TRANSPORT_SAME_HOST = 1 << 2, /* both ends are on one host */
        /* Bytes that leave the host are encrypted, and the server has proved its key. For addresses:
         * connect sets tls_reason. */
        TRANSPORT_ENCRYPTED = 1 << 3,
        TRANSPORT_KNOWS_USER = 1 << 4, /* the system knows the user at the other end: conn_user */

        /* Of conns. */
        TRANSPORT_TAKES_TLS = 1 << 5,  /* the other side may begin with a handshake: tls_accept */
        TRANSPORT_ALTERABLE = 1 << 6,  /* a network may alter bytes unnoticed: checked_begin */
        TRANSPORT_PASSES_FDS = 1 << 7, /* descriptors can be sent over it: shm_offer */
        TRANSPORT_DIRECT = 1 << 8,     /* recvv is one system call: trying it needs no poll(2) */
        TRANSPORT_WIDE = 1 << 9,       /* several conns, each with a thread, carry more than one */
        TRANSPORT_MEMORY = 1 << 10,    /* bytes are copied within memory: compressing costs more */
        TRANSPORT_PLACED =
                1 << 11, /* bytes go straight into the given place: the larger, the better */
        /* The other host acknowledges bytes (TCP, also below TLS), and the system tells: conn_silence,
         * conn_rate, conn_round_trip. */
        TRANSPORT_ACKNOWLEDGES = 1 << 12,
};

struct transport_ops {
        const char *name; /* the scheme of its addresses */
        unsigned caps;
        /* TRANSPORT_ENCRYPTED: the transport below the encryption, which takes TLS. Else NULL. */
        const struct transport_ops *below;

        /* Connect, waiting at most timeout_ms. SP_E_HOST, SP_E_UNREACH, SP_E_REFUSED, SP_E_TIMEOUT, SP_E_LINK,
         * SP_E_INVAL (address), SP_E_NOMEM; unix: SP_E_AUTH (this user may not open the socket);
         * tls: SP_E_AUTH, SP_E_UNSUPP, see tls_reason. */
        int (*connect)(const char *address, int timeout_ms, struct conn **ret);

        /* Listen. Port 0: the system chooses one, see listener's address. SP_E_BUSY: the address is
         * in use; SP_E_HOST, SP_E_INVAL, SP_E_NOMEM. */
        int (*listen)(const char *address, struct listener **ret);

        /* SP_E_AGAIN: no connection waits; SP_E_LIMIT: out of descriptors; SP_E_LINK: it went
         * away. */
        int (*accept)(struct listener *l, struct conn **ret);

        void (*listener_close)(struct listener *l);

        /* Gather `n` pieces; returns the bytes taken (at least 1), SP_E_AGAIN or SP_E_LINK. After
         * SP_E_AGAIN the pieces' memory stays valid, because an in-process receiver may read it.
         * The next call offers the same bytes first, until they were taken or the conn is
         * closed. */
        ssize_t (*sendv)(struct conn *c, const struct iovec *iov, int n);

        /* Scatter into `n` places; returns the bytes received (at least 1), SP_E_AGAIN or SP_E_LINK
         * (closed). Fewer bytes than asked for: no more are there now, and fd becomes ready when
         * more arrive. TRANSPORT_PLACED: after SP_E_AGAIN the next call has the same first place.
         * It stays valid until then, or until the conn is closed, because the other side may write
         * there. */
        ssize_t (*recvv)(struct conn *c, const struct iovec *iov, int n);

        void (*close)(struct conn *c);

        /* Both NULL if poll(2) reports everything; see conn_peek, conn_arm and conn_polled. `want`: CONN_IN,
         * CONN_OUT. */
        bool (*peek)(struct conn *c, unsigned want, bool arm);
        unsigned (*polled)(struct conn *c, unsigned want, bool reported);
};

struct conn {
        const struct transport_ops *ops;
        int fd;      /* poll for POLLIN: recvv may have bytes, or report that the conn is closed */
        int room_fd; /* after sendv's SP_E_AGAIN poll for room_events: sendv may take some */
        short room_events; /* POLLOUT; POLLIN if room_fd is not a stream's descriptor */
        unsigned want;     /* CONN_IN, CONN_OUT: the last arguments of conn_poll */
        /* Bytes that came over the network, also those that recvv does not hand out yet. For the
         * receiving thread. 0: the conn holds nothing back for long, and does not count. */
        uint64_t came;
};

struct listener {
        const struct transport_ops *ops;
        int fd;            /* to poll for POLLIN */
        char address[256]; /* in the form that connect takes */
        bool inherited;    /* another process has made it, and removes its file */
};

extern const struct transport_ops transport_tcp, transport_unix, transport_shm, transport_inproc,
        transport_tls, transport_fabric, transport_loopback, transport_checked, transport_vsock,
        transport_vsock_plain;

/* Find the transport of an address by its prefix. NULL: none. */
const struct transport_ops *transport_of(const char *address);

/* Fill in entries for poll(2): bytes to receive (`in`), room to send (`out`). Returns the number of
 * entries, at most 2. */
int conn_poll(struct conn *c, bool in, bool out, struct pollfd ret[2]);

/* Is an event that conn_poll was asked for there already? No system call; false if only poll(2) can
 * tell. Call it on the receiving thread, like the next two. */
bool conn_peek(struct conn *c);

/* Called before poll(2) sleeps: the other side has to wake this one from now on. Unasked it may not
 * do so. True: do not sleep, as after conn_peek. */
bool conn_arm(struct conn *c);

/* Called after poll(2), with the conn's entries among `fds`: is CONN_IN (recvv) or CONN_OUT (sendv)
 * worth a try? A thread that slept has to call it. */
enum { CONN_IN = 1, CONN_OUT = 2 };
unsigned conn_polled(struct conn *c, const struct pollfd *fds, size_t n);

/* Poll one conn with all of the above. SP_E_AGAIN: no event for timeout_ms, or a signal came, or
 * the thread was woken for an event that it has seen already. */
int conn_wait(struct conn *c, bool in, bool out, int timeout_ms);

/* Its name, for people: the name of its ops, or tls_name. */
const char *conn_name(const struct conn *c);

/* Nanoseconds to the other side and back, as the system measured it. 0: the system can't tell. */
uint64_t conn_round_trip(const struct conn *c);

/* Bytes per second that the connection carried, as the system measured it. 0: the system can't
 * tell, or this side has sent less than the connection could take. */
uint64_t conn_rate(const struct conn *c);

/* Does the other host acknowledge the bytes that this side sent? The answer is about the host, not
 * the process: a process that reads nothing for hours is not silent. Zeroed memory is a clock that
 * does not run; ask again each quarter of transport_timeout_ms while bytes are owed. */
struct silence_clock {
        uint64_t since_ns; /* the host owes an acknowledgement; 0: it does not */
};
enum silence {
        SILENCE_NONE, /* all is acknowledged, or the transport can't tell */
        SILENCE_OWES, /* not all; ask again */
        SILENCE_LOST, /* nothing was for transport_timeout_ms */
};
enum silence conn_silence(const struct conn *c, struct silence_clock *k, uint64_t now_ns);

/* Make a conn over a connected stream socket, which this call takes over, also when it fails. For
 * descriptors received from another process. SP_E_NOMEM, SP_E_INVAL. */
SP_NODISCARD int conn_from_fd(int fd, struct conn **ret);

/* The number of the user whose process is at the other end. False: the transport or the system does
 * not tell. */
bool conn_user(const struct conn *c, unsigned *ret);

/* Is the other end of the Unix socket this process's user, or root? */
bool conn_is_own_user(const struct conn *c);

/* Export a conn to another process: of a socket, or with TLS. This call appends the conn's state to
 * `ret`; the caller sends it beside the conn's `fd`, and conn_import makes a conn of both. Then
 * this side only closes its own. SP_E_BUSY: received or unsent bytes would be lost; SP_E_NOMEM. */
SP_NODISCARD int conn_export(struct conn *c, struct buf *ret);

/* Make a conn of an exported one. `fd` is taken over, also when it fails. SP_E_NOMEM, SP_E_INVAL,
 * SP_E_UNSUPP. */
SP_NODISCARD int conn_import(int fd, struct bytes state, struct conn **ret);

/* NULL is allowed; returns NULL. */
struct conn *conn_close(struct conn *c);
struct listener *listener_close(struct listener *l);

/* Take over a listening socket that another process has made. The descriptor is the callee's, also
 * on failure. SP_E_UNSUPP: it is neither a Unix socket with a path nor TCP, or does not listen;
 * SP_E_NOMEM. */
SP_NODISCARD int listener_adopt(int fd, struct listener **ret);

#endif
