/* The engine executes one session's command stream on a backend. It holds the server-side event
 * graph, the objects, the transfers and the links to peers. spancld is an engine behind a listener.
 * For the client's own devices the same engine runs inside the application behind the in-process
 * transport.
 *
 * Sans-IO: bytes move through the engine's sessions, time comes in as an argument. One lock
 * (engine_lock) guards an engine and its sessions. The caller of an engine_* function below, or of
 * a session_* function on one of its sessions, holds it unless said otherwise. Completions arrive
 * on the backend's threads; the engine takes its lock there itself. */
#ifndef SPANCL_ENGINE_ENGINE_H
#define SPANCL_ENGINE_ENGINE_H

#include "backend/backend.h"
#include "engine/limits.h"
#include "engine/lock.h"
#include "session/session.h"

struct engine;

struct engine_ops {
        /* A session got something to send, outside session_lane_received of the loop's own thread.
         * The engine calls this on any thread with the lock held, after the action that caused it.
         * The loop sends now, without blocking, or wakes the thread that polls. */
        void (*flush)(void *user, struct session *s);

        /* Connect lanes 0 and 1 to a peer, in the background. The hello has role 1, the given
         * session, the token as key, and generations from 1 on. Once a lane is connected, the loop
         * calls session_lane_up and session_resume on `s`. It tries again and again until hang_up,
         * also when a connection is lost later. It calls engine_peer_unreachable when that takes
         * long. The callee copies the strings. */
        void (*dial)(void *user, struct session *s, uint64_t peer, const char *host, unsigned port,
                     const char *local_path, const uint64_t session_id[2], const uint64_t token[2]);

        /* Close all connections of a peer's session, and stop dialling it. */
        void (*hang_up)(void *user, struct session *s);
        /* The session has no connections of its own: the client relays its lanes. If this side
         * dials the peer, the loop keeps trying now and then. It reports success with
         * engine_peer_connected and engine_peer_direct, and each failure with
         * engine_peer_unreachable. */
        void (*relayed)(void *user, struct session *s);

        /* Append to `text` the output of the client's kernels (device printf) since the last call.
         * May be NULL. */
        void (*output)(void *user, struct buf *text);

        /* Map `size` bytes, from `offset` on, of the memory that the client shares with this
         * process, at any address. The caller unmaps them with vm_unmap. SP_E_NOENT: there is no
         * such memory, or less of it; SP_E_NOMEM. May be NULL. */
        int (*map_arena)(void *user, uint64_t offset, size_t size, uint64_t *ret_address);

        /* Return memory that the client's process has mapped, too: the bounce buffer for bulk data
         * from and to the client. It stays until the engine is freed. The result is NULL if there
         * is none; the function may be NULL. */
        void *(*bounce)(void *user, uint64_t *ret_size);

        /* Pass a descriptor, which stays the caller's, to the peer of the session, over the connection of lane 0.
         * Messages sent afterwards come behind it. SP_E_UNSUPP, SP_E_AGAIN, SP_E_LINK: it was not passed. May be
         * NULL. */
        int (*pass)(void *user, struct session *s, int fd);
        /* Take a descriptor that the peer has passed; the caller closes it. SP_E_NOENT: there is none. May be NULL. */
        int (*take)(void *user, struct session *s);

        /* The backend is broken (backend_params.broken): end the session and send the client
         * `text`. Called on any thread, with or without the lock. May be NULL. */
        void (*broken)(void *user, const char *text);

        /* CLOCK_MONOTONIC in ns (virtual in the simulator). */
        uint64_t (*now_ns)(void *user);
};

struct engine_params {
        const struct config_options *options; /* read by engine_new; NULL: the defaults */
        const struct backend_ops *backend;
        const char *
                scratch_dir; /* private folder for headers; NULL: the system's (in_process), or none */
        const char *cache_dir;  /* where compiled programs are kept; NULL: nowhere */
        const char *upload_dir; /* where chunks of this client's writes are kept; NULL: nowhere */
        struct engine_limits limits;
        const struct engine_ops *ops;
        void *user;
        /* true: builds run inside the message handler instead of on a thread (simulator). */
        bool single_threaded;
        bool in_process; /* with the client, whose memory it may use (backend.h) */
};

/* Opens the backend. SP_E_NODEV, SP_E_NOMEM. No lock needed. */
SP_NODISCARD int engine_new(const struct engine_params *params, struct engine **ret);

/* Stops: waits for builds and commands in flight, then frees all. NULL is allowed. */
struct engine *engine_free(struct engine *e) EXCLUDES(engine_held);

void engine_lock(struct engine *e) ACQUIRE(engine_held);
void engine_unlock(struct engine *e) RELEASE(engine_held);

/* The session with the client. */
struct session *engine_session(struct engine *e) REQUIRES(engine_held);

/* The session with the peer that presents `token`, which the client announced. NULL: there is none
 * (yet). */
struct session *engine_peer_session(struct engine *e, const uint64_t token[2])
        REQUIRES(engine_held);

/* All sessions: the i-th (0 is the client's), NULL past the end. */
struct session *engine_session_at(struct engine *e, size_t i) REQUIRES(engine_held);

/* The session with that peer has ended: commands that wait for the peer fail, and the engine
 * notifies the client. */
void engine_peer_failed(struct engine *e, struct session *s, int status, const char *text)
        REQUIRES(engine_held);

/* The peer can't be reached for now. The engine notifies the client, which may find another way or
 * have the other side try. */
void engine_peer_unreachable(struct engine *e, struct session *s, const char *text)
        REQUIRES(engine_held);

/* Lane 0 of a peer has a connection: from now on the client does not relay its lanes. Return true
 * if the client relayed them. Then the other side may have acknowledged more since its hello
 * (session_acked_seq). */
bool engine_peer_connected(struct engine *e, struct session *s) REQUIRES(engine_held);
/* Lane 0 of a peer has a connection. `near`: engine_ops.pass and take work with it, and the peer has
 * FEATURE_STAGING. */
void engine_peer_near(struct engine *e, struct session *s, bool near) REQUIRES(engine_held);
/* All lanes that this side has dialled are connected. If the client relayed them, the engine
 * notifies it. */
void engine_peer_direct(struct engine *e, struct session *s) REQUIRES(engine_held);
/* The connections with a peer are lost. If the other side believes that there never were any, the
 * client still relays. */
void engine_peer_disconnected(struct engine *e, struct session *s) REQUIRES(engine_held);

/* Call this after each batch of bytes received on any lane of any of the engine's sessions. It
 * starts what was enqueued (clFlush). It calls ops->flush for each session that has something to
 * send or whose bulk lane may receive again (session_lane_want). */
void engine_settle(struct engine *e) REQUIRES(engine_held);

/* Report completions on this thread (backend_ops.poll). */
enum backend_polled engine_poll(struct engine *e, bool last) EXCLUDES(engine_held);

/* Use the client's account, and its limit of the cache, from now on, before the session has any object. The engine
 * unmaps nothing. */
void engine_use_account(struct engine *e, const struct account *a) REQUIRES(engine_held);

/* Append for each device that the session has used its number, and for how many ns its commands have been in flight
 * there, in 8 bytes each. Any thread, without the lock. SP_E_NOMEM. */
SP_NODISCARD int engine_put_times(struct engine *e, struct buf *ret);

/* Set the session's use of each device that has a counter of energy, by the sample of this number: the device's number
 * and microjoules, in 8 bytes each. The client gets it when it asks. Any thread, without the lock. */
void engine_use_energy(struct engine *e, uint64_t sample, struct bytes uses);

/* engine_lock, if the lock is free. */
bool engine_try_lock(struct engine *e) TRY_ACQUIRE(true, engine_held);

/* The client takes `notice` messages (FEATURE_NOTICES). */
void engine_take_notices(struct engine *e) REQUIRES(engine_held);

/* Return true if the client may name chunks of its writes (FEATURE_UPLOADS). */
bool engine_takes_uploads(const struct engine *e);

/* Send the client a notice, which its contexts' error callbacks get. */
void engine_notice(struct engine *e, const char *text) REQUIRES(engine_held);

/* The time at which engine_expire has to be called at the latest, in ns of ops->now_ns; UINT64_MAX:
 * never. */
uint64_t engine_deadline(struct engine *e) REQUIRES(engine_held);

/* Let commands that wait for memory try again. Answer builds that take longer than the limits
 * allow. SP_E_LIMIT: a command takes longer, which nothing can stop. The engine has notified the
 * client that all commands failed, and the session is over. */
SP_NODISCARD int engine_expire(struct engine *e, uint64_t now_ns) REQUIRES(engine_held);

/* Has the client closed the session (regular end)? */
bool engine_closed(struct engine *e) REQUIRES(engine_held);

/* The backend, for tests. */
struct backend *engine_backend(struct engine *e);

/* The number of devices that the backend found, without sub-devices. No lock. */
unsigned engine_device_count(const struct engine *e);

/* The server has so many other sessions, which server_info tells the client. No lock. */
void engine_set_load(struct engine *e, uint64_t sessions);

/* Append the descriptions of the devices, as server_info has them. SP_E_NOMEM, or the backend's. */
SP_NODISCARD int engine_describe(struct engine *e, struct buf *out) REQUIRES(engine_held);

/* Give the number and name by which the backend's filter knows a device (backend_ops.device.label).
 * Return false if they are not known. No lock. */
bool engine_device_label(struct engine *e, unsigned device, unsigned *ret_number, char *ret_name,
                         size_t size);

/* Counts of the things that the engine holds now, for leak tests and statistics. `events` are those
 * not complete; `objects` does not include peers. */
struct engine_counts {
        size_t objects, events, transfers, commands_held, commands_running;
        uint64_t transfer_bytes; /* of transfers, in this host's memory */
        /* Bytes of staging memory, and how many of them are not in use. */
        size_t staging, staging_free;
};
void engine_get_counts(struct engine *e, struct engine_counts *ret) REQUIRES(engine_held);

/* Append an INFO_SESSION record. `round_trip_ns`: to the client; 0: not known. SP_E_NOMEM. */
SP_NODISCARD int engine_get_usage(struct engine *e, uint64_t round_trip_ns, struct buf *ret)
        REQUIRES(engine_held);

/* Add an observer of the session, or remove one. While there are observers, the process records its probes, and the
 * engine the newest commands. New queues then record times. SP_E_NOMEM: the observer was not added. */
SP_NODISCARD int engine_observe(struct engine *e, bool on) REQUIRES(engine_held);

/* Append what was recorded for observers: of the process's threads, INFO_TRACE_THREAD records, without a lock; and of
 * the commands, INFO_TRACE_COMMAND and the records beside it. SP_E_NOMEM. */
SP_NODISCARD int engine_get_threads(struct buf *ret);
SP_NODISCARD int engine_get_observed(struct engine *e, struct buf *ret) REQUIRES(engine_held);

/* Append an INFO_LINK record for each link, the client's first. SP_E_NOMEM. */
SP_NODISCARD int engine_get_links(struct engine *e, struct buf *ret) REQUIRES(engine_held);

#endif
