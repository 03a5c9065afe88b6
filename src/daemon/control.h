/* Messages between supervisor, workers, zygote and dialler over a SOCK_SEQPACKET pair: one packet per message, a
 * kind and its bytes, perhaps with a descriptor. No state. */
#ifndef SPANCL_DAEMON_CONTROL_H
#define SPANCL_DAEMON_CONTROL_H

#include "base/bytes.h"
#include "proto/frame.h"

enum control_kind {
        /* supervisor to worker */
        CONTROL_CONNECTION = 'C', /* a connection's descriptor, the hello read from it, the server's
                                   * identity and Unix socket, its state */
        CONTROL_STOP = 'S',       /* end the session; the reason as text */
        CONTROL_SHARED = 'H', /* there are other sessions; with no byte behind it: not any more */
        /* both ways: somebody looks at this server. A number, which the answers repeat with some INFO_LINK
         * records behind it; the last answer has none. */
        CONTROL_STATS = 'T',
        CONTROL_DIALLER =
                'D', /* to the worker: its socket with the dialler; to the dialler: the other end of one */
        CONTROL_DIAL =
                'N', /* between these two: a request, or the answer (daemon/dial_message.h) */
        CONTROL_CHECK = 'K', /* to a worker, before anything else: check your devices, and end */
        CONTROL_MEASURE =
                'M', /* to the meter: a session's number, its process's, whether that may be looked into, and the
                      * inode of its CONTROL_FD, as text; its folder; its owner; each with a NUL; with a
                      * descriptor of /proc/PID */
        CONTROL_OVER =
                'V', /* from the meter: a session's number and an enum meter_verdict, as text */
        CONTROL_FORK = 'W', /* to the zygote: a worker's end and its standard error, its folder, its
                             * devices and its owner, each with a NUL */
        /* worker to supervisor */
        CONTROL_PID =
                'P', /* the first thing; text: the number of its process, and why it has no namespaces of its
                      * own, an errno; 0: it has, or is to have none */
        CONTROL_CALLS =
                'A', /* it is shut in; with the descriptor of daemon/refusals.h, if there is one */
        CONTROL_READY =
                'R', /* the backend is open; text: number of devices, and a line with number and name of each that
                               * can be checked (backend_ops.device_label) */
        CONTROL_FAILED = 'F', /* it can't be; text: for the client and the log; the worker ends */
        CONTROL_HEALTH = 'B', /* after CONTROL_CHECK: the devices work; text: not, and why */
        CONTROL_STUCK =
                'O', /* its session is in a call of a driver that does not return; it ends */
};

enum {
        CONTROL_FD = 3,          /* the worker's end */
        CONTROL_STATE_MAX = 384, /* behind the hello; of the connection, conn_export */
        CONTROL_MAX = FRAME_MAGIC_SIZE + FRAME_HEADER_SIZE + FRAME_HELLO_MAX + CONTROL_STATE_MAX,
};

struct control {
        enum control_kind kind;
        size_t size;
        int fd;                                    /* the receiver's to close; -1: none */
        int log;                                   /* the same, a second one: of CONTROL_FORK */
        _Alignas(8) uint8_t data[CONTROL_MAX + 1]; /* NUL behind the last byte */
};

/* Does not block. `fd` -1: none; else it is copied to the other process and stays the caller's.
 * SP_E_AGAIN: the other side does not keep up; SP_E_LINK: it is gone; SP_E_LIMIT: too large. */
SP_NODISCARD int control_send(int socket, enum control_kind kind, struct bytes data, int fd);
/* CONTROL_FORK, with both descriptors. */
SP_NODISCARD int control_send_fork(int socket, struct bytes data, int control, int log);

/* Does not block. SP_E_AGAIN: nothing there; SP_E_LINK: the other side is gone; SP_E_PROTO. */
SP_NODISCARD int control_receive(int socket, struct control *ret);

/* Close what came with it and was not taken (-1). */
void control_drop(struct control *c);

#endif
