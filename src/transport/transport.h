/* Transports: byte pipes between two processes, or within one. Each is a small table of operations
 * and knows nothing of sessions. Non-blocking; a conn has one owner at a time for each direction
 * (one thread may send while another receives).
 *
 * Shared memory (shm) is what a connected Unix socket becomes when both sides agree, a fabric
 * (transport/fabric.h) what a connection between servers becomes, checked (transport/checked.h) what TCP becomes.
 *
 * Addresses: "tcp:HOST:PORT" (HOST an IPv4, [IPv6] or name), "unix:PATH", "inproc:NAME" (buffered) and
 * "inproc:NAME/bulk" (rendezvous, see inproc_pair), "tls:HOST:PORT[#FINGERPRINT]" (transport/tls.h),
 * "loopback:HOST:PORT[#FINGERPRINT]" (TCP if HOST resolves to loopback addresses only, else TLS; only to connect to).
 * Listening on "tcp:*:PORT" takes IPv4 and IPv6. */
#ifndef SPANCL_TRANSPORT_TRANSPORT_H
#define SPANCL_TRANSPORT_TRANSPORT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "base/bytes.h"

struct conn;
struct listener;

/* After so many milliseconds without a sign of life from the other host a conn is lost (TCP); 0: when the
 * system says so. Of conns made from now on; set before the first. */
extern unsigned transport_timeout_ms;

enum transport_caps {
        TRANSPORT_ORDERED = 1,   /* ordered bytes */
        TRANSPORT_SAME_HOST = 2, /* both ends on one host */
        TRANSPORT_PASS_FD = 4,   /* its descriptor can be handed to another process */
        TRANSPORT_PLACED = 8, /* bytes go straight into the place given: the larger, the better */
};

struct transport_ops {
        const char *name; /* "tcp", "unix", "shm", "inproc", "tls", "fabric" */
        unsigned caps;

        /* Connect, waiting at most timeout_ms. SP_E_HOST, SP_E_REFUSED, SP_E_TIMEOUT, SP_E_LINK,
         * SP_E_INVAL (address), SP_E_NOMEM; unix: SP_E_AUTH (this user may not open the socket); tls: SP_E_AUTH, SP_E_UNSUPP,
         * see tls_reason. */
        int (*connect)(const char *address, int timeout_ms, struct conn **ret);

        /* Listen. Port 0: one of the system's choosing (listener_address tells). SP_E_BUSY: the
         * address is in use; SP_E_HOST, SP_E_INVAL, SP_E_NOMEM. */
        int (*listen)(const char *address, struct listener **ret);

        /* SP_E_AGAIN: nobody waits; SP_E_LIMIT: out of descriptors; SP_E_LINK: it went away. */
        int (*accept)(struct listener *l, struct conn **ret);

        void (*listener_close)(struct listener *l);

        /* Gather `n` pieces; returns the bytes taken (at least 1), SP_E_AGAIN or SP_E_LINK. After
         * SP_E_AGAIN the pieces' memory stays valid, and the next call offers the same bytes first,
         * until they were taken or the conn is closed: an in-process receiver may read them. */
        ssize_t (*sendv)(struct conn *c, const struct iovec *iov, int n);

        /* Scatter into `n` places; bytes received (at least 1), SP_E_AGAIN, SP_E_LINK (closed). Fewer
         * than asked for: nothing more is there now, and fd becomes ready when more comes.
         * TRANSPORT_PLACED: after SP_E_AGAIN the next call has the same first place, which stays valid
         * until then or until the conn is closed: the other side may write there. */
        ssize_t (*recvv)(struct conn *c, const struct iovec *iov, int n);

        void (*close)(struct conn *c);

        /* Both NULL where poll(2) says all; see conn_peek, conn_arm and conn_polled. */
        bool (*peek)(struct conn *c, bool arm);
        unsigned (*polled)(struct conn *c, bool reported);
};

struct conn {
        const struct transport_ops *ops;
        int fd;      /* poll for POLLIN: recvv may give bytes, or tell that it is closed */
        int room_fd; /* after sendv said SP_E_AGAIN, poll for room_events: sendv may take some */
        short room_events; /* POLLOUT; where room_fd is not a stream's descriptor, POLLIN */
        bool in, out;      /* what conn_poll was asked for last */
        /* Bytes that came over the network, those that recvv does not hand out yet included. For the receiving thread.
         * 0: the conn holds nothing back for long, and does not count. */
        uint64_t came;
};

struct listener {
        const struct transport_ops *ops;
        int fd;            /* to poll for POLLIN */
        char address[256]; /* in the form that connect takes */
};

extern const struct transport_ops transport_tcp, transport_unix, transport_shm, transport_inproc,
        transport_tls, transport_fabric, transport_loopback, transport_checked;

/* The transport of an address by its prefix. NULL: none. */
const struct transport_ops *transport_of(const char *address);

/* Fill in what poll(2) has to wait for: bytes to receive (`in`), room to send (`out`). Returns how many
 * entries, at most 2. */
int conn_poll(struct conn *c, bool in, bool out, struct pollfd ret[2]);

/* Is what conn_poll was asked for there already? No system call; where only poll(2) can tell, false.
 * On the receiving thread, as the next two. */
bool conn_peek(struct conn *c);

/* Before poll(2) sleeps: the other side has to wake this one from now on, which it may not do unasked.
 * True: do not sleep, as after conn_peek. */
bool conn_arm(struct conn *c);

/* After poll(2), whose entries are among `fds`: which of CONN_IN (recvv) and CONN_OUT (sendv) is worth
 * a try. A thread that slept has to call it. */
enum { CONN_IN = 1, CONN_OUT = 2 };
unsigned conn_polled(struct conn *c, const struct pollfd *fds, size_t n);

/* All of the above for one conn. SP_E_AGAIN: nothing happened for timeout_ms, or a signal
 * came, or the thread was woken for what it has seen already. */
int conn_wait(struct conn *c, bool in, bool out, int timeout_ms);

/* Its name, for people: its ops' name, or tls_name. */
const char *conn_name(const struct conn *c);

/* How many bytes a second the connection carried, as the system has seen it; 0: it can't tell, or has not sent
 * as much as it could have. */
uint64_t conn_rate(const struct conn *c);

/* A conn over a connected stream socket that this call takes over, also when it fails: for
 * descriptors received from another process. SP_E_NOMEM, SP_E_INVAL. */
SP_NODISCARD int conn_from_fd(int fd, struct conn **ret);

/* Hand a conn with TRANSPORT_PASS_FD to another process: `fd` of it goes there beside this state, appended
 * to `ret`, and is made a conn again. Then this side only closes its own. SP_E_BUSY: bytes have come, or are
 * to go, that would be lost; SP_E_NOMEM. */
SP_NODISCARD int conn_export(struct conn *c, struct buf *ret);

/* `fd` is taken over, also when it fails. SP_E_NOMEM, SP_E_INVAL, SP_E_UNSUPP. */
SP_NODISCARD int conn_import(int fd, struct bytes state, struct conn **ret);

/* From Unix sockets to shared memory (shm.c). Both sides have agreed on it and stand at the same point of
 * the stream; one offers, the other accepts. `*c` is replaced, or closed when it fails. Either side may
 * find that it can't be: then both go on over the socket.
 * `size` is that of a ring in each direction, a power of two; `arena` that of memory for other purposes,
 * whose pages come into being when they are touched; 0: none. shm_accept says SP_E_AGAIN, and `*c` is as
 * before, while the offer has not come. SP_E_LINK; shm_accept also SP_E_PROTO. */
SP_NODISCARD int shm_offer(struct conn **c, size_t size, uint64_t arena);
SP_NODISCARD int shm_accept(struct conn **c);

/* The memory that both sides have in common: its descriptor, to be mapped, which is the conn's, and its
 * size, which can't change. -1: there is none. */
int conn_arena(const struct conn *c, uint64_t *ret_size);

/* Both sides of a conn over shared memory have mapped these bytes: what is received into them, and large pieces that are
 * sent from there, is copied once (transport/bounce.h). Before the first byte of it. Stays mapped until the conn is closed.
 * TRANSPORT_PLACED's rule counts for places there. Of other conns nothing. */
void conn_bounce(struct conn *c, void *base, uint64_t size);

/* Do bytes go straight into the place given, as TRANSPORT_PLACED says? */
bool conn_places(const struct conn *c);

/* The other side is copying between this one's memory and its own, or is to say where: that is over soon. On the
 * receiving thread. */
bool conn_is_engaged(const struct conn *c);

/* A connected pair of conns of the in-process transport. `rendezvous`: bytes go straight from the
 * sender's memory to the receiver's, so sendv takes bytes only when they have been received (bulk
 * lanes). SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int inproc_pair(bool rendezvous, struct conn *ret[2]);

/* NULL is allowed; returns NULL. */
struct conn *conn_close(struct conn *c);
struct listener *listener_close(struct listener *l);

#endif
