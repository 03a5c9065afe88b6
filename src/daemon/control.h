/* The messages between supervisor, workers, zygote and helpers, over a SOCK_SEQPACKET pair. Each
 * packet is one message: a kind, its bytes, and perhaps a descriptor. No state. */
#ifndef SPANCL_DAEMON_CONTROL_H
#define SPANCL_DAEMON_CONTROL_H

#include "base/bytes.h"
#include "proto/frame.h"

enum control_kind {
        /* Supervisor to worker. */
        CONTROL_CONNECTION = 'C', /* a connection's descriptor, the hello read from it, the server's
                                   * identity and Unix socket, its state */
        /* An observer's connection (daemon/worker/observing.h): its descriptor, the hello, the number of its key in
         * 8 bytes, its state. And: drop the observers with this number. */
        CONTROL_OBSERVER = 'o',
        CONTROL_UNOBSERVE = 'u',
        CONTROL_STOP = 'S', /* end the session; the reason as text */
        /* Before its first connection: the number of other sessions, 8 bytes. */
        CONTROL_LOAD = 'L',
        CONTROL_DRAIN = 'G', /* notify the client that spancld drains */
        /* Other sessions run beside this one; without a byte: no other does any more. */
        CONTROL_SHARED = 'H',
        /* Both ways: a query for this server's statistics. The request is a number. Each answer
         * repeats the number in front of some INFO_LINK records; the last answer has no records. */
        CONTROL_STATS = 'T',
        /* Both ways, several times a second if devices of this server have energy counters (daemon/supervisor/energy.h).
         * To a worker: the sample's number, then the number of each device that has a counter, and the microjoules that
         * its session has used of it. From the worker: the sample's number (0: the session is over), then the number of
         * each device that it has used, and for how many ns. All in 8 bytes each. */
        CONTROL_USE = 'Z',
        /* To a worker, before its first connection: the page of its client's account (engine/account.h) as a
         * descriptor. Text: its slot, the limit of memory in bytes, 1 if device time is limited, the limit of builds
         * at a time, and that of the cache in bytes; 0: these two have none. Then for each device that has limits of
         * its own: its number, its column, the limit of memory in bytes, 1 if its time is limited. */
        CONTROL_ACCOUNT = 'Q',
        /* To the worker: its socket with the dialler; to the dialler: the other end of one. */
        CONTROL_DIALLER = 'D',
        /* The same with media-io (daemon/supervisor/introduce.h), if there are sources. */
        CONTROL_STREAMS = 'J',
        /* The same with the allocator (daemon/allocator/allocator.h), if the session may use it. */
        CONTROL_ALLOCATOR = 'a',
        /* Between worker and dialler: a request or its answer (daemon/dialler/dial_message.h). */
        CONTROL_DIAL = 'N',
        /* To a worker, as its first message: check your devices, and end. */
        CONTROL_CHECK = 'K',
        /* To the meter, each part with a NUL: a session's number, its process's number, whether
         * the meter may inspect that process, the inode of its CONTROL_FD, and the bytes that its
         * caches may take, as text; its folder; its owner. With a descriptor of /proc/PID. */
        CONTROL_MEASURE = 'M',
        /* From the meter: a session's number and an enum meter_verdict, as text. */
        CONTROL_OVER = 'V',
        /* To the sensors: read the devices. From them: the readings as text (daemon/sensors/sensors.h). */
        CONTROL_SENSE = 'I',
        CONTROL_SENSED = 'U',
        /* To the exporter, as its first message: the listening socket. From the exporter: a query of
         * statistics, with the socket that gets the answer. */
        CONTROL_METRICS = 'X',
        /* To the zygote: a worker's end and its standard error; its folder, its devices and its
         * owner, each with a NUL. */
        CONTROL_FORK = 'W',
        /* Worker to supervisor. */
        /* The first message. Text: the number of its process, and the errno that kept it from
         * namespaces of its own; 0: it has them, or should have none. */
        CONTROL_PID = 'P',
        /* The sandbox is complete. With the descriptor of daemon/system/refusals.h, if there is one. */
        CONTROL_CALLS = 'A',
        /* Before CONTROL_READY: a part of the devices' descriptions (daemon/supervisor/describing.h). */
        CONTROL_DEVICES = 'Y',
        /* The backend is open. Text: number of devices, number of bytes that CONTROL_DEVICES had in all, and a line
         * of each device that can be checked (backend_ops.device.label): number, `c` for a CPU or `-`, and name. */
        CONTROL_READY = 'R',
        /* The backend can't be opened, and the worker ends. Text: the reason, for the client and
         * the log. */
        CONTROL_FAILED = 'F',
        /* After CONTROL_CHECK: the devices work; with text: they do not, and why. */
        CONTROL_HEALTH = 'B',
        /* The session is in a driver's call that does not return; the worker ends. */
        CONTROL_STUCK = 'O',
        /* The session is over. AUDIT_TOTALS numbers of 8 bytes, then the reason as text. */
        CONTROL_ENDED = 'E',
};

/* The totals of a session. */
enum audit_total {
        AUDIT_SENT,         /* bytes */
        AUDIT_RECEIVED,     /* bytes */
        AUDIT_BUFFERS_PEAK, /* bytes that its buffers held at most */
        AUDIT_DEVICE_NS, /* how long its commands were in flight on devices; the sum of all devices */
        AUDIT_TOTALS,
};

enum {
        CONTROL_FD = 3,          /* the worker's end */
        CONTROL_STATE_MAX = 384, /* the connection's state (conn_export), behind the hello */
        CONTROL_MAX = FRAME_MAGIC_SIZE + FRAME_HEADER_SIZE + FRAME_HELLO_MAX + CONTROL_STATE_MAX,
};

struct control {
        enum control_kind kind;
        size_t size;
        int fd;                                    /* the receiver closes it; -1: none */
        int log;                                   /* the same: the second one, of CONTROL_FORK */
        _Alignas(8) uint8_t data[CONTROL_MAX + 1]; /* with a NUL behind the last byte */
};

/* Send a message. Does not block. `fd` -1: no descriptor; else it is copied to the other process
 * and stays the caller's. SP_E_AGAIN: the other side does not keep up; SP_E_LINK: the other side
 * is gone; SP_E_LIMIT: the message is too large. */
SP_NODISCARD int control_send(int socket, enum control_kind kind, struct bytes data, int fd);
/* Send CONTROL_FORK, with both descriptors. Errors as control_send. */
SP_NODISCARD int control_send_fork(int socket, struct bytes data, int control, int log);

/* Receive a message. Does not block. SP_E_AGAIN: there is none; SP_E_LINK: the other side is
 * gone; SP_E_PROTO: it is malformed. */
SP_NODISCARD int control_receive(int socket, struct control *ret);

/* Close the message's descriptors, unless the caller has taken them (-1). */
void control_drop(struct control *c);

#endif
