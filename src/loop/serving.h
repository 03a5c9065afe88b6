/* The state that the files of a server's loop share. Private to server_loop.c (the thread),
 * channel.c (connections of a session), attaching.c (incoming connections) and peering.c
 * (connections to other servers). */
#ifndef SPANCL_LOOP_SERVING_H
#define SPANCL_LOOP_SERVING_H

#include "base/list.h"
#include "engine/engine.h"
#include "loop/arena.h"
#include "loop/lanes.h"
#include "loop/mailbox.h"
#include "loop/server_loop.h"
#include "os/thread.h"
#include "transport/address.h"

struct wire_hello;

/* One of the engine's sessions with its connections. Lives as long as the loop. */
struct channel {
        struct list link;
        struct server_loop *loop;
        struct lanes lanes;
        int broken
                [SESSION_LANES]; /* negative: the error that a lane thread found, for the loop's thread */
        bool failed;             /* the engine was told that this peer is lost */
        bool no_fabric;          /* a fabric to it has failed */
        /* The target if this side dials the peer; NULL: the peer dials. */
        struct target *target;
        uint64_t try;        /* the generation of the last one, of this target or an earlier one */
        unsigned relayed_ms; /* the pause between tries while the client relays; 0: it does not */
};

/* The address of a peer, and the state of connecting to it. */
struct target {
        char address[ADDRESS_MAX];
        char local_path[ADDRESS_MAX]; /* as an address; empty: none */
        uint64_t id[2], token[2];
        uint64_t again_ns;  /* when to try again; UINT64_MAX: it is connected, or being dialled */
        uint64_t report_ns; /* when to tell the client; UINT64_MAX: it is connected, or was told */
        unsigned pause_ms;
        bool reached; /* it was connected at least once */
};

struct server_loop {
        struct server_loop_params params;
        uint64_t answer_ns; /* session_tick's limit; 0: none */
        uint64_t spin_ns; /* how long the thread may poll for messages before it sleeps (spin.h) */
        struct engine *engine;
        struct mailbox *box;
        struct link_lock lock; /* the engine's */
        thread_id thread;
        bool started;

        /* Guarded by the engine's lock. */
        thread_id self; /* the thread, known once `running` */
        bool running;
        bool asleep;         /* the thread is in poll, or about to be */
        bool polling;        /* the thread uses the conns of `watch` without the lock */
        atomic_uint queries; /* other threads want the lock, which the thread then leaves to them */
        unsigned replacing; /* threads that want to replace these conns: the thread does not poll */
        struct list channels;
        struct channel *client;
        bool over; /* nobody may attach any more */

        /* The right to attach (attaching.c); guarded, too. */
        struct {
                bool claimed; /* a client has attached: id and key are its */
                uint64_t id[2], key[2];
                bool attached; /* at least one connection came */
        } attach;

        /* spancld drains (server_loop.c); guarded, but for `due`. */
        struct {
                atomic_bool due;
                bool understood; /* the client's last hello says so */
                bool announced;
                uint64_t
                        until_ns; /* the session, which is empty, ends then; UINT64_MAX: it is not */
        } drain;

        /* The memory in common with the client (attaching.c); guarded, too. */
        struct {
                int fd; /* of its first connection; -1: none */
                uint64_t size;
                struct arena_bounce bounce;
        } arena;

        /* The client's process (transport/other_end.h); guarded, too. */
        struct {
                bool direct;       /* nothing stands in between */
                bool closed;       /* its system has closed a lane */
                bool ended;        /* it has ended, and no one comes back */
                struct conn *conn; /* of lane 1 before lane 0 was lost; NULL: none, or no longer */
                int fd;            /* conn_process; -1: none */
                uint64_t ask_ns;   /* when to poll it again */
                uint64_t pause_ns;
        } process;

        /* The thread's own. */
        struct list early;
        uint64_t linger_ns; /* UINT64_MAX: lane 0 is up, or was never asked for */

        /* The client knows that the session will end (server_loop.c). */
        struct {
                uint64_t until_ns; /* it has time until then; UINT64_MAX: it was not told */
                int status;
                char text[256];
        } farewell;

        /* How the session ended, once `over` (channel.c). */
        struct {
                int status;
                char text[256];
        } end;

        /* The descriptors that the thread sleeps on (server_loop.c). */
        struct {
                /* No other thread closes its conns. The thread receives from its links while it
                 * spins. Each array has room for `cap` entries. */
                struct spin_on on;
                size_t cap;
        } watch;

        struct spin spin;
        atomic_bool broken; /* the driver's context broke */

        /* Signs of life: server_loop_is_alive. */
        struct {
                atomic_uint asked, answered;
        } life;

        /* The backend's completions, which the thread polls (server_loop.c). */
        struct {
                bool polls;         /* it does: messages about them are sent at once */
                atomic_bool looks;  /* the backend has had completions to poll */
                atomic_bool sleeps; /* the thread does not poll them now */
        } completions;
};

/* The value of an option of the server (config_option_number). */
static inline uint64_t serving_option(const struct server_loop *l, enum config_id id)
{
        return config_option_number(l->params.options, id);
}

/* The engine's lock, by the name that clang checks. */
static inline void serving_lock(struct server_loop *l) ACQUIRE(l->lock, engine_held) LOCK_UNCHECKED
{
        engine_lock(l->engine);
}

static inline void serving_unlock(struct server_loop *l)
        RELEASE(l->lock, engine_held) LOCK_UNCHECKED
{
        engine_unlock(l->engine);
}

/* All of the following: engine's lock held. */

/* ---- server_loop.c -------------------------------------------------------------------------- */

/* engine_ops.flush. */
void serving_flush(void *user, struct session *s);

/* ---- channel.c ------------------------------------------------------------------------------ */

bool serving_on_thread(const struct server_loop *l) REQUIRES(l->lock, engine_held);

/* Wake the loop's thread if it sleeps. */
void serving_rouse(struct server_loop *l) REQUIRES(l->lock, engine_held);

/* End the session; the first call counts. */
void serving_end(struct server_loop *l, int status, const char *fmt, ...)
        REQUIRES(l->lock, engine_held) __attribute__((format(printf, 3, 4)));

/* The channel of the session, made if there is none. NULL: out of memory. */
struct channel *channel_of(struct server_loop *l, struct session *s) REQUIRES(l->lock, engine_held);

/* The client's process is the one behind this descriptor, which is taken over (conn_process). */
void serving_know_process(struct server_loop *l, int fd);

/* Close its connections. */
void channel_down(struct channel *c);

/* Wait for threads that copy bytes of lanes that are down already. They copy without the lock and
 * never block, so they are done soon. The lock is released meanwhile. */
void channel_await(struct server_loop *l, struct channel *c) REQUIRES(l->lock, engine_held);

/* A connection of `c` is lost, or its session has ended. Called on the loop's thread. It may poll
 * for the other threads. */
void channel_lost(struct server_loop *l, struct channel *c, unsigned lane, int status)
        REQUIRES(l->lock, engine_held);

/* Lane `up` came up: choose the thread that moves it. */
void channel_carry(struct server_loop *l, struct channel *c, unsigned up)
        REQUIRES(l->lock, engine_held);

/* ---- attaching.c: on the loop's thread, and in process -------------------------------------- */

/* Decide on a hello. 0 with the session and lane; SP_E_AGAIN: a peer that is not announced yet;
 * else the reason to refuse it, with a text. */
SP_NODISCARD int attaching_admit(struct server_loop *l, const struct wire_hello *m,
                                 struct session **ret, const char **ret_text)
        REQUIRES(l->lock, engine_held);

/* Attach `conn` (taken over) to a lane. With `reply`, in process, the answer goes there. */
SP_NODISCARD int attaching_attach(struct server_loop *l, const struct wire_hello *m,
                                  struct session *s, struct conn *conn, struct dial_reply *reply)
        REQUIRES(l->lock, engine_held);

/* Handle all arrivals in the mailbox. */
void attaching_take(struct server_loop *l) REQUIRES(l->lock, engine_held);

/* ---- peering.c ------------------------------------------------------------------------------ */

/* engine_ops.dial, hang_up, relayed. */
void peering_dial(void *user, struct session *s, uint64_t peer, const char *host, unsigned port,
                  const char *local_path, const uint64_t session_id[2], const uint64_t token[2]);
void peering_hang_up(void *user, struct session *s);
void peering_relayed(void *user, struct session *s);

/* engine_ops.pass, take. */
int peering_pass(void *user, struct session *s, int fd);
int peering_take(void *user, struct session *s);

/* Lane 0 of a peer has a connection, for which both hellos said these FEATURE_*. */
void peering_connected(struct server_loop *l, struct channel *c, uint64_t features)
        REQUIRES(l->lock, engine_held);

/* The session with a peer has ended. */
void peering_failed(struct server_loop *l, struct channel *c, int status, const char *text)
        REQUIRES(l->lock, engine_held);

/* The connections with a peer are lost. The side that dialled the peer dials again, unless its
 * session ends. */
void peering_disconnected(struct channel *c) REQUIRES(engine_held);

/* Take the result of dialling; takes `a` over. */
void peering_settle(struct server_loop *l, struct arrival *a) REQUIRES(l->lock, engine_held);

/* Handle peers that are due for a new try, or were unreachable for too long. */
void peering_see_to(struct server_loop *l) REQUIRES(l->lock, engine_held);

#endif
