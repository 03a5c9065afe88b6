/* The client: every server, the platform, and the one lock.
 *
 * Lock order: the client lock is the only one but for a leaf, which guards the threads that read the
 * bytes of an upload (command/upload.c). Application callbacks run without the lock, on the progress
 * thread. The thread that waits also receives (client_wait), so no other thread is involved in a
 * command. */
#ifndef SPANCL_CORE_CLIENT_H
#define SPANCL_CORE_CLIENT_H

#include <CL/cl.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "core/object.h"
#include "session/session.h"

struct client;
struct client_io;
struct server_spec;

/* How the client finds what the application has written into unified shared memory: SPANCL_USM_WRITES. */
enum svm_writes {
        SVM_WRITES_AUTO,
        SVM_WRITES_USERFAULTFD,
        SVM_WRITES_MPROTECT,
};

struct client_params {
        const struct client_io *io;
        void *io_user; /* handed to io's functions; not owned */
        const struct server_spec
                *specs; /* borrowed while the client lives; NULL: the configuration's */
        size_t spec_count;
        uint64_t
                reconnect_ns; /* a server whose connection is lost is tried again for so long; 0: not */
        uint64_t
                idle_ns; /* sessions that nothing has used for so long end (link/idle.h); 0: none does */
        uint64_t answer_ns; /* session_tick's limit for servers of other processes; 0: none */
        uint64_t wait_ns;   /* and calls that need it wait for so long, then they fail */
        bool watchers_fail; /* but at once when the application watches a device (device_watch) */
        bool finish_ahead;  /* waits return early where nobody can tell (core/command/ahead.h) */
        uint64_t finish_ahead_ns; /* they are so far ahead at most; 0: some round trips */
        bool prefetch;            /* small reads are sent ahead (core/command/prefetch.h) */
        unsigned uploads;         /* enum upload_mode */
        bool managed_svm;         /* allocations of clSVMAlloc have views (core/memory/view.h) */
        enum svm_writes svm_writes;
        const char *sources;     /* of further servers, as SPANCL_DISCOVERY; NULL: none */
        const char *devices;     /* the filter of SPANCL_DEVICES; NULL: all */
        uint64_t sources_ns;     /* how long the first query of devices waits for their servers */
        bool sources_ns_implied; /* but it does not wait if servers are configured */
};

/* A separate client, for tests and the simulator. Objects made from its platform belong to it, and
 * use nothing of the process's client. It connects at the first call that needs devices.
 * SP_E_NOMEM. */
SP_NODISCARD int client_new(const struct client_params *params, struct client **ret);

/* Take leave of the servers, and free the client, its devices and its platform. Every other object
 * must be freed by then. NULL is allowed. */
struct client *client_free(struct client *c);

/* The client's platform; immutable. core/platform.c makes its handle. */
cl_platform_id client_platform(struct client *c);

/* The process's client: made at the first call; connects to the servers of SPANCL_SERVERS at the first
 * call that needs devices. NULL: out of memory. Thread-safe. After fork() the child gets a new one. */
struct client *client_get(void);

void client_lock(struct client *c) ACQUIRE(client_held);
void client_unlock(struct client *c) RELEASE(client_held);

/* Return false if no server is configured and the default one is not there. The check connects to
 * the default server; it does not connect to others. */
bool client_has_platform(struct client *c);

/* All devices of all servers, in the order of SPANCL_SERVERS, then those of found servers; connects when
 * needed. A server that can't be reached is logged and has none. Devices of a server that is gone
 * are left out, unless a context has them. The list changes with the next call. */
void client_devices(struct client *c, cl_device_id const **ret, cl_uint *ret_count)
        REQUIRES(client_held);

/* CLOCK_MONOTONIC (virtual in the simulator), ns. */
uint64_t client_now_ns(struct client *c);

/* ---- for core's own files --------------------------------------------------------------------- */

/* A new object id (proto/object_id.h). */
uint64_t client_new_id(struct client *c, enum object_type type) REQUIRES(client_held);

/* Append the devices of a server to the list. SP_E_NOMEM: they are not in it. */
struct server;
SP_NODISCARD int client_add_devices(struct client *c, struct server *s) REQUIRES(client_held);

/* Decide which devices of a server that was added later the program sees, and tell it of them. */
void client_show_devices(struct client *c, struct server *s) REQUIRES(client_held);

/* Wait until done(arg) returns true. The wait sends unsent messages; it receives and dispatches on
 * this thread when no other thread does. Releases the lock while it sleeps. */
void client_wait(struct client *c, bool (*done)(void *arg), void *arg) REQUIRES(client_held);

/* The memory object or sampler at this address, which may be any value; NULL: there is none. */
struct handle *client_object(struct client *c, const void *address) REQUIRES(client_held);

/* Every context, from its creation until it is freed. */
struct list *client_contexts(struct client *c) REQUIRES(client_held);

/* As client_wait, but not longer than until deadline_ns. True: done. */
bool client_wait_until(struct client *c, bool (*done)(void *arg), void *arg, uint64_t deadline_ns)
        REQUIRES(client_held);

/* Something has changed that a waiting thread may check. */
void client_changed(struct client *c) REQUIRES(client_held);

/* Receive what is there without waiting (and send what is unsent). True: something was received. */
bool client_poll(struct client *c) REQUIRES(client_held);

/* Send what is unsent on all servers. */
void client_flush(struct client *c) REQUIRES(client_held);

/* One round of the receiver: send, then receive. If nothing came and `done` (may be NULL) does not
 * return true, sleep until the deadline, and receive again. The caller has checked that no thread
 * is `pumping`. */
void client_pump(struct client *c, bool progress_thread, bool (*done)(void *arg), void *arg,
                 uint64_t deadline_ns) REQUIRES(client_held);

#endif
