/* The client core's interface to the outside: it moves bytes, gives the time, and sleeps. Two
 * implementations: sockets and threads (src/loop/client_loop.c) and the simulator's virtual time
 * (tests/sim). Core itself polls nothing, reads no clock and opens no socket.
 *
 * Threads: everything but `wake` and `now_ns` is called with the client's lock held. */
#ifndef SPANCL_CORE_IO_H
#define SPANCL_CORE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "os/lock.h"
#include "proto/wire.h"
#include "session/hello.h"

struct server_spec;
struct session;

/* The connections of one server's session; the implementation's own. */
struct io_link;

/* One server to connect to: lane 0, hello exchanged. */
struct io_connect {
        /* In: */
        const struct server_spec *spec; /* borrowed while the link lives */
        struct session *session;        /* for session_next_seq and session_lane_up */
        uint64_t id[2], key[2];         /* of the session: hello's hi, lo */
        bool describe; /* descriptions of the devices will do (link/described.h); for in-process servers without effect */
        /* Out: */
        int status;        /* 0, or the SP_E_* why not */
        char text[256];    /* the cause, after the name of the server; "": unknown */
        char identity[65]; /* what the server's key is known by, in hex; "": it has none */
        char local_path[WIRE_LOCAL_PATH_MAX +
                        1];   /* where servers of its host reach it; "": nowhere */
        struct io_link *link; /* status 0: to be closed with `close`; but NULL if `described` */
        bool uploads;         /* the server takes upload_offer */
        bool knows_recorder;  /* the server takes TRACE_START_RECORDER */
        bool described;       /* there is no session; the server has given the following: */
        struct hello_devices devices; /* the caller frees it */
        /* Client's clock when hello left and the answer came; the server's clock in between. */
        uint64_t sent_ns, received_ns, remote_ns;
};

struct client_io {
        /* May core start its progress thread? If not, the owner calls client_step now and then. */
        bool threads;

        /* CLOCK_MONOTONIC in ns. Any thread. */
        uint64_t (*now_ns)(void *user);

        /* Connect to all at the same time and bring up lane 0 of their sessions (session_lane_up).
         * Returns when each has succeeded or failed. */
        void (*connect)(void *user, struct io_connect *all, size_t count);

        /* Begin to attach another lane; does not block. It is up (session_lane_up) at the latest when
         * a later `receive` finds it done; if it can't be attached, `receive` fails. */
        int (*attach)(void *user, struct io_link *l, unsigned lane);

        /* All connections of the link are lost, or useless: close them, and try to attach lane 0
         * anew (session_lane_up, session_resume) again and again until `until_ns`. Other lanes are
         * not attached again. Does not block. When lane 0 is up, `receive` says 1; when the time is
         * over, `receive` fails. Only the thread that receives calls it. */
        int (*reconnect)(void *user, struct io_link *l, uint64_t until_ns);

        /* Begin another session with a server: connect from `at_ns` on, again and again until it
         * succeeds or the link is closed. Each attempt has its own id and key. Does not block. When
         * lane 0 is up, `receive` says 1, and `opened` fills in the results of io_connect. `at_ns` 0:
         * at once, and a call waits for it. Then `refused` returns the reason when the first attempts
         * have failed, and NULL before. `describe`: see io_connect; then `opened` may say `described`, the session
         * has no lane, and the caller closes the link. NULL: not supported. */
        int (*open)(void *user, const struct server_spec *spec, struct session *session,
                    uint64_t at_ns, bool describe, struct io_link **ret);
        void (*opened)(void *user, struct io_link *l, struct io_connect *ret);
        const char *(*refused)(void *user, const struct io_link *l);

        /* Large transfers are coming: attach more lanes if that pays. They may be moved by threads of
         * the implementation, which call the session's ops with `lock` held. Does nothing when it was
         * called before. NULL: no more lanes. */
        void (*widen)(void *user, struct io_link *l, struct lock *lock);

        /* The link is lost, or useless for now, and `close` or `reconnect` comes later: when this returns, threads that
         * `widen` started touch no memory of the session's transfers any more. Does not release the lock.
         * NULL: there are no such threads. */
        void (*halt)(void *user, struct io_link *l);

        /* Send all that the session has to send on all lanes, without blocking. 0: everything is
         * sent. SP_E_AGAIN: there is more; `wait` returns when there is room. SP_E_LINK and other
         * errors: the link is lost. */
        int (*send)(void *user, struct io_link *l);

        /* Is the host of the server silent: has it acknowledged none of the sent bytes for SPANCL_LINK_TIMEOUT?
         * Lowers *next_ns to the time to ask again. On the thread that receives; `wait` returns when another thread
         * sends and that time is not known. NULL: the implementation's connections end by themselves. */
        bool (*silent)(void *user, struct io_link *l, uint64_t now_ns, uint64_t *next_ns);

        /* Receive the bytes that are there, without blocking, and feed them to the session, which
         * dispatches. 1: something came; 0: nothing; negative: the link or the session is lost.
         */
        int (*receive)(void *user, struct io_link *l);

        /* Sleep until a link may have something to receive, or has room again for what `send` left.
         * A call of `wake` since the last wait began also ends it, and so does the deadline
         * (UINT64_MAX: none). Releases `lock` while it sleeps, as condition_wait does; the links
         * stay open meanwhile. One thread at a time. `due`: the application waits for the bytes
         * that come. */
        void (*wait)(void *user, struct io_link *const *links, size_t count, bool due,
                     uint64_t deadline_ns, struct lock *lock);

        /* End the present or the next `wait`. Any thread, with or without the lock. */
        void (*wake)(void *user);

        /* Close the link. The threads that `widen` started have ended when it returns; `lock` may
         * have been released meanwhile. `after_fork`: this is a child process, and the parent goes
         * on using the connections, so only the descriptors are closed. */
        void (*close)(void *user, struct io_link *l, bool after_fork);

        /* The address that lane 0 has reached, as transport/address.h writes it, with numbers instead of a
         * name. Lives as the link does. NULL: not known. May be NULL. */
        const char *(*reached)(void *user, const struct io_link *l);

        /* The link's rate in bytes per second; 0: not known yet; UINT64_MAX: the link stays within this host.
         * May be NULL. */
        uint64_t (*rate)(void *user, const struct io_link *l);

        /* Describe the connections for a person: transport, encryption, lanes, compression. NULL: not known. */
        void (*describe)(void *user, const struct io_link *l, char *ret, size_t size);

        /* The memory that this process and the server have in common: its descriptor, which lives as
         * the link does, and its size, which can't change. -1: there is none. May be NULL. */
        int (*arena)(void *user, struct io_link *l, uint64_t *ret_size);

        /* Random bytes for ids and keys. */
        void (*random)(void *user, void *out, size_t size);

        /* Text for the application's stdout. */
        void (*output)(void *user, const void *text, size_t size);
};

/* The real one. Its user pointer: client_io_loop_new / _free. */
extern const struct client_io client_io_loop;
SP_NODISCARD int client_io_loop_new(void **ret);
void client_io_loop_free(void *user);

#endif
