/* A server loop runs one engine. Its thread polls the lanes of the session and of its peers, and
 * drives the engine. Threads that report completions send them directly. A server loop runs inside
 * spancld's workers and, for the client's own devices, inside the client.
 *
 * Locks: the engine's lock (engine_lock) guards the links, too. The mailbox's lock guards items
 * that other threads leave for the loop's thread; it is taken after the engine's, or alone. All
 * functions: any thread, no lock held. */
#ifndef SPANCL_LOOP_SERVER_LOOP_H
#define SPANCL_LOOP_SERVER_LOOP_H

#include "backend/backend.h"
#include "base/bytes.h"
#include "engine/engine.h"
#include "loop/compression.h"
#include "loop/dial.h"

struct server_loop;

struct server_loop_params {
        /* Options that the loop, its engine and its backend read; borrowed until server_loop_free.
         * NULL: the defaults. */
        const struct config_options *options;
        const struct backend_ops *backend;
        const char *scratch_dir; /* see engine.h */
        const char *cache_dir;   /* see engine.h */
        const char *upload_dir;  /* see engine.h */
        const char
                *local_path; /* where servers of this host reach it, a Unix socket; NULL: nowhere */
        /* Connect to another server, as loop_connect does, on a thread that may block; NULL:
         * loop_connect. */
        int (*connect)(void *user, const struct dial_params *p, struct conn **ret,
                       struct dial_reply *reply);
        const char *identity; /* what the server's key is known by, in hex; NULL: it has none */
        struct engine_limits limits;
        bool in_process; /* see engine.h */
        /* The reading end of a pipe with what kernels print; taken over; -1: none. */
        int output_fd;
        /* Called when the session is over. 0: the client closed it; SP_E_GONE: no client came back
         * in time, or server_loop_stop or _free was called; SP_E_NODEV: the driver's context broke;
         * else the error that ended it. Called once, on the loop's thread, without locks; `text`
         * says more. May be NULL. The owner still calls server_loop_free. */
        void (*ended)(void *user, int status, const char *text);
        void *user;
};

/* Open the backend and start the thread. SP_E_NODEV, SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int server_loop_new(const struct server_loop_params *params, struct server_loop **ret);

/* Close all connections, wait for commands in flight, free all. NULL is allowed. */
struct server_loop *server_loop_free(struct server_loop *l);

/* Take over a connection whose whole hello, `hello`, was read. The loop's thread answers and
 * attaches it, or refuses it with a text. SP_E_NOMEM, SP_E_PROTO: closed without an answer. */
SP_NODISCARD int server_loop_attach(struct server_loop *l, struct conn *conn, struct bytes hello);

/* Attach from within this process. It works as loop_connect, with an in-process pair instead of an
 * address: rendezvous for bulk lanes. p->address is not used. */
SP_NODISCARD int server_loop_connect(struct server_loop *l, const struct dial_params *p,
                                     struct conn **ret, struct dial_reply *reply);

/* Notify the client that the session ends (a close message with status and text), send for at most
 * a second, then call `ended` with SP_E_GONE. Returns at once. */
void server_loop_stop(struct server_loop *l, const char *text);

/* Notify the client that the server takes no new sessions and ends with the last one, if the client
 * understands it. The session goes on, but ends when it has been empty for a second. Any thread. */
void server_loop_drain(struct server_loop *l);

/* This server has so many other sessions: the client learns it with the devices. Any thread. */
void server_loop_load(struct server_loop *l, uint64_t sessions);

/* Use the client's account (engine/account.h), before the first connection. Any thread. */
void server_loop_use_account(struct server_loop *l, const struct account *a);

/* See engine_put_times. Any thread. */
SP_NODISCARD int server_loop_times(struct server_loop *l, struct buf *ret);

/* See engine_use_energy. Any thread. */
void server_loop_use_energy(struct server_loop *l, uint64_t sample, struct bytes uses);

/* Set whether this server has other sessions, whose threads need the cores, too. Any thread; false
 * at first. */
void server_loop_share(struct server_loop *l, bool shared);

/* Append an INFO_SESSION record, and an INFO_LINK record for each of its links (proto/info.h). Any
 * thread. SP_E_NOMEM. */
SP_NODISCARD int server_loop_stats(struct server_loop *l, struct buf *ret);

/* Have the session observed, or no longer (engine_observe). Any thread. SP_E_NOMEM. */
SP_NODISCARD int server_loop_observe(struct server_loop *l, bool on);

/* Append what was recorded for observers (proto/info.h). Any thread. SP_E_NOMEM. */
SP_NODISCARD int server_loop_get_observed(struct server_loop *l, struct buf *ret);

/* Number of devices. */
unsigned server_loop_devices(struct server_loop *l);

/* See engine_describe. Before the first connection; any thread. */
SP_NODISCARD int server_loop_describe(struct server_loop *l, struct buf *ret);

/* See engine_device_label. */
bool server_loop_label(struct server_loop *l, unsigned device, unsigned *ret_number, char *ret_name,
                       size_t size);

/* Ask the loop's thread for a sign of life. False: it has not given the last one that was asked
 * for. Then it is in a call of a driver, or waits for a thread that is. Takes no lock; one thread
 * at a time. */
bool server_loop_is_alive(struct server_loop *l);

#endif
