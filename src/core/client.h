/* The client: every server, the platform, and the one lock.
 *
 * Lock order: the client lock is the only one; no other lock is taken under it. Application
 * callbacks run without it, on the progress thread. The thread that waits also receives
 * (client_wait), so no other thread is involved in a command. */
#ifndef SPANCL_CORE_CLIENT_H
#define SPANCL_CORE_CLIENT_H

#include <CL/cl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "core/object.h"
#include "session/session.h"

enum { CLIENT_SERVERS_MAX = 64 };

struct client;
struct client_io;
struct server_spec;

struct client_params {
        const struct client_io *io;
        void *io_user; /* handed to io's functions; not owned */
        const struct server_spec
                *specs; /* borrowed while the client lives; NULL: the configuration's */
        size_t spec_count;
        uint64_t
                reconnect_ns; /* a server whose connection is lost is tried again for so long; 0: not */
        uint64_t answer_ns; /* session_tick's limit for servers of other processes; 0: none */
        uint64_t wait_ns;   /* and calls that need it wait for so long, then they fail */
};

/* A separate client, for tests and the simulator. Objects made from its platform belong to it, and
 * use nothing of the process's client. It connects at the first call that needs devices.
 * SP_E_NOMEM. */
SP_NODISCARD int client_new(const struct client_params *params, struct client **ret);

/* Take leave of the servers, and free the client, its devices and its platform. Every other object
 * must be freed by then. NULL is allowed. */
struct client *client_free(struct client *c);

/* For io without threads: run deferred callbacks and send what was left unsent. True: it did
 * something, or has something to do. No lock held. */
bool client_step(struct client *c);

/* The client's platform; immutable. The platform's and the devices' handles are made by
 * core/platform.c and core/device.c (see the seams below). */
cl_platform_id client_platform(struct client *c);

/* The process's client: made at the first call; connects to the servers of SPANCL_SERVERS at the first
 * call that needs devices. NULL: out of memory. Thread-safe. After fork() the child gets a new one. */
struct client *client_get(void);

void client_lock(struct client *c);
void client_unlock(struct client *c);

/* Return false if no server is configured and the default one is not there. The check connects to
 * the default server; it does not connect to others. */
bool client_has_platform(struct client *c);

/* All devices of all servers, in the order of SPANCL_SERVERS; connects when needed. A server that can't
 * be reached is logged and has none. Lock held. */
void client_devices(struct client *c, cl_device_id const **ret, cl_uint *ret_count);

/* A new object id (proto/object_id.h). Lock held. */
uint64_t client_new_id(struct client *c, enum object_type type);

/* Wait until done(arg) returns true. The wait sends unsent messages; it receives and dispatches on
 * this thread when no other thread does. Lock held; released while it sleeps. */
void client_wait(struct client *c, bool (*done)(void *arg), void *arg);

/* A request to one server and its answer. */
struct request {
        uint64_t id; /* field `request` of the message */
        bool done;
        cl_int status;   /* the answer's; CL_DEVICE_NOT_AVAILABLE when the server is gone */
        struct buf info; /* the answer's block; the requester's to free (buf_fini) */
        struct server *server;
        /* Optional: called with the lock held when done, for requests that no thread waits for. */
        void (*notify)(struct request *r);
        void *user;
};

/* Register `r` with a fresh id, before its message is sent. SP_E_NOMEM. Lock held. */
SP_NODISCARD int request_begin(struct client *c, struct server *s, struct request *r);

/* Wait for the answer; afterwards `r` is no longer registered. Lock held. */
void request_wait(struct client *c, struct request *r);

/* The memory object or sampler at this address, which may be any value; NULL: there is none. Lock held. */
struct handle *client_object(struct client *c, const void *address);

/* The session to send on; NULL when the server is gone: then the call returns
 * CL_DEVICE_NOT_AVAILABLE. While it is disconnected, messages gather. Lock held. */
struct session *server_session(struct server *s);

/* Return true if the server is gone, or disconnected for too long. Then new commands and requests
 * return CL_DEVICE_NOT_AVAILABLE, and so do calls that wait already. Lock held. */
bool server_refuses(const struct server *s);

/* Number of the server in the client, < CLIENT_SERVERS_MAX: its bit in `declared` and `imported`, its
 * index in kernel->sent. Immutable. */
unsigned server_index(const struct server *s);
const char *server_name(const struct server *s);

/* Send a message that no thread waits for: now if the link is idle or enough has gathered,
 * otherwise with the next wait, flush or the progress thread. Lock held. */
void server_kick(struct server *s);

/* Send everything now. Lock held. */
void server_flush(struct server *s);

/* Run fn(d), an application callback, on the progress thread soon, without the lock. *d must not be
 * deferred already; it belongs to the client until fn runs. Lock held. */
void client_defer(struct client *c, struct deferred *d, void (*fn)(struct deferred *d));

/* CLOCK_MONOTONIC (virtual in the simulator), ns. */
uint64_t client_now_ns(struct client *c);

/* Notify the application of an error that concerns the whole context. The progress thread calls the
 * context's callback (core/progress.c). Lock held. */
void context_notify(cl_context x, const char *text);

/* The one place where SP_E_* becomes a cl_int; `link_error` is what a lost server means here, normally
 * CL_DEVICE_NOT_AVAILABLE. */
cl_int status_to_cl(int status);

/* ---- handles -------------------------------------------------------------------------------- */

/* The dispatch table that handle_init puts into each handle; api/dispatch.c defines it next to
 * spancl_dispatch: `const void *const handle_dispatch = &spancl_dispatch;` */
extern const void *const handle_dispatch;

/* ICD 2: the value that the loader wants behind `dispatch` in each object
 * (clIcdSetPlatformDispatchDataKHR); NULL until the loader sets it. handle_init copies it.
 * api/dispatch.c defines it. */
extern void *handle_dispatch_data;

/* Fill in dispatch, type, one application reference and the hold that goes with it. */
void handle_init(struct handle *h, enum handle_type type);

/* Is it a live handle of that type? NULL is not. */
static inline bool handle_is(const void *handle, enum handle_type type)
{
        const struct handle *h = handle;
        return h && h->type == type;
}

/* References of the application: clRetain* and clRelease*. An object without any may still be held
 * by others, and come back to the application through a query. handle_release returns 1 when the
 * last reference went: the caller then drops the hold with the type's own *_unhold, which frees the
 * object at zero. SP_E_INVAL: there was no reference to release. */
void handle_retain(struct handle *h);
SP_NODISCARD int handle_release(struct handle *h);

/* Free an object of `size` bytes that begins with `h`. The last few freed objects stay readable, so
 * that a call with a freed handle returns an error. */
void handle_free(struct handle *h, size_t size);

/* Each family's file in core/ defines NAME_hold and NAME_unhold over h.holds; those of root devices
 * do nothing. The last *_unhold frees the object, and sends `release` to the servers that know it.
 * Lock held. */
void device_hold(cl_device_id d);
void device_unhold(cl_device_id d);
void context_hold(cl_context x);
void context_unhold(cl_context x);
void queue_hold(cl_command_queue q);
void queue_unhold(cl_command_queue q);
void mem_hold(cl_mem m);
void mem_unhold(cl_mem m);
void program_hold(cl_program p);
void program_unhold(cl_program p);
void kernel_hold(cl_kernel k);
void kernel_unhold(cl_kernel k);
void sampler_hold(cl_sampler s);
void sampler_unhold(cl_sampler s);
void event_hold(cl_event e);
void event_unhold(cl_event e);

/* ---- seams between the files of core -------------------------------------------------------- */

/* kernel.c: make sure that the server knows the kernel (sends kernel_create once per server). SP_E_*.
 * Lock held. */
SP_NODISCARD int kernel_declare(cl_kernel k, struct server *s);

/* platform.c: the platform of a client. SP_E_NOMEM. platform_free takes NULL. */
SP_NODISCARD int platform_new(struct client *c, cl_platform_id *ret);
void platform_free(cl_platform_id p);

/* device.c: one device from its INFO_DEVICE block, which stays where it is while the device lives.
 * SP_E_NOMEM, SP_E_PROTO (the block lacks what a device must have). device_free takes NULL. */
SP_NODISCARD int device_new(struct client *c, struct server *s, struct bytes info,
                            cl_device_id *ret);
void device_free(cl_device_id d);

/* context.c: every context of a client is in client_contexts from its creation until it is freed. */
struct list *client_contexts(struct client *c);

#endif
