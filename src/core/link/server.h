/* The insides of the client and its servers, for the files of core/ that move messages. Everything is
 * guarded by the client's lock. */
#ifndef SPANCL_CORE_SERVER_H
#define SPANCL_CORE_SERVER_H

#include "config/server_spec.h"
#include "core/client.h"
#include "core/link/io.h"

/* DISCONNECTED: its connections are lost, and are made again; the session and everything in flight
 * are kept. */
enum server_state { SERVER_NEW, SERVER_UP, SERVER_DISCONNECTED, SERVER_LOST };

struct server {
        struct client *client;
        unsigned index;
        const struct server_spec *spec;
        enum server_state state;
        int lost_status;   /* found while sending; server_broken follows (0: none) */
        uint64_t progress; /* when a connection was lost last: messages that had come through */
        unsigned losses;   /* of connections in a row through which none came */
        bool receiving;    /* its session is dispatching: it must stay */
        bool reaped;       /* lost, and connections and session are freed */
        bool redialled;    /* disconnected, and being connected again */
        bool refusing;     /* disconnected, and calls do not wait for it any more */
        uint64_t refuse_at_ns;

        /* Its session may be one of several with the same server, one after another
         * (new_session.c). */
        struct server *first; /* the struct whose devices the application knows; itself */
        struct server *last;  /* of the first: the newest */
        unsigned fruitless;   /* sessions before it that brought no devices */
        struct request ask;   /* for the devices of a later one */
        struct list retired;  /* client's: a first one without a number */

        struct session *session;
        struct io_link *link;
        uint64_t id[2], key[2];

        struct buf info; /* the server_info block; devices borrow from it */
        cl_device_id *devices;
        cl_uint device_count;
        struct list sub_devices;

        struct map known;  /* contents that were sent (core/program/content.c) */
        uint64_t peer_id;  /* names it on the other servers */
        char identity[65]; /* what its key is known by, in hex; "": it has none */
        char local_path[WIRE_LOCAL_PATH_MAX +
                        1]; /* a Unix socket where servers of its host reach it; "": none */
        /* Bits per server. */
        uint64_t peers;        /* introduced to each other */
        uint64_t peers_turned; /* not the one that was to connect first does, but the other */
        uint64_t peers_bad;    /* their session has ended */
        /* peer_relay's, with each: what they exchange goes through the client; 0: it does not. */
        uint64_t relays[CLIENT_SERVERS_MAX];

        struct {
                uint32_t mb_s; /* 0: not known */
                uint64_t at_ns;
        } rates[CLIENT_SERVERS_MAX]; /* with which the last large copy came from each other server */

        size_t small_incoming; /* reads whose bytes come behind messages (core/command/transfer.c) */
        bool bulk_lane;        /* lane 1 was asked for */
        bool backlog;          /* the last send left something: it waits for room */
        uint64_t unsent_since; /* when server_kick first left something; 0: nothing */
        uint64_t last_traffic; /* when something was last sent or received */
        bool fresh_bulk;       /* a transfer was begun since the last send */

        /* remote clock = client's + clock_offset, as the exchange with the least round trip showed. */
        int64_t clock_offset;
        uint64_t clock_rtt_ns, clock_at_ns, clock_asked_ns;
        unsigned clock_pings;  /* to be sent yet */
        uint64_t pings, pongs; /* clock_query sent, and answered */

        uint8_t sink[4096]; /* for bytes that nobody wants any more */
};

struct client {
        const struct client_io *io;
        void *io_user;
        pthread_mutex_t lock;
        cl_platform_id platform;
        struct server_spec *own_specs; /* from the configuration */
        size_t own_spec_count;
        bool misconfigured; /* that was logged */
        const struct server_spec *specs;
        size_t spec_count;
        unsigned server_count;
        struct server *servers[CLIENT_SERVERS_MAX];
        bool connecting, connected; /* tries to, tried to */
        bool closing;
        cl_device_id *devices;
        cl_uint device_count;

        uint64_t next_id; /* one counter for all types */
        uint64_t relayed; /* the last peer_relay's number */
        struct map requests, events, incoming, migrations, queues;
        uint64_t small_migrations
                [64]; /* a ring of small ones, whose completion is not notified; 0: none */
        unsigned next_small_migration;
        struct list followers; /* events whose turn has come */
        bool following;        /* a thread works them off */
        struct list
                host_copies; /* struct host_copy (core/command/transfer.h) that are to be made */
        struct list contexts;
        uint64_t reconnect_ns, wait_ns, answer_ns; /* struct client_params */
        unsigned disconnected;                     /* servers */
        bool sessions_due;                         /* to be tried again by servers_begin_sessions */
        struct list retired;
        struct list outgoing; /* struct outgoing (transfer.c), all */
        uint64_t moving;      /* bytes that go to all servers and come from them */
        struct map objects;   /* memory objects and samplers, by their address (client_object) */
        uint64_t gone;        /* counts those of them, and queues, that are there no more */
        struct buf args;      /* room for those of a launch, while it is put into its message */

        /* Shared virtual memory (svm.c). */
        struct server
                *svm_address_owner; /* its device chooses the addresses; NULL: the client does */
        struct server *svm_sharer;  /* the one in this process that uses the client's memory */
        unsigned svm_base;          /* where addresses are looked for */
        uint64_t svm_offset;

        struct arena {
                struct server *server; /* that has it, too; NULL: there is none */
                int fd;
                uint64_t size;
                struct range_set free;
                unsigned used;        /* struct storage of buffers */
                struct list released; /* struct storage that the server may still use */
        } arena;                      /* storage.c */

        /* Waiting (client.c). */
        pthread_cond_t progress; /* something was dispatched, or the receiver's place is free */
        unsigned waiters;        /* in client_wait */
        uint64_t waits;          /* how often somebody had to wait there */
        bool pumping;            /* somebody receives */
        bool progress_pumping;   /* it is the progress thread */
        bool sleeping;           /* in io->wait */

        /* The progress thread (progress.c). */
        pthread_t progress_thread;
        pthread_cond_t progress_cond;
        bool progress_started, progress_stop;
        bool progress_idle;    /* sleeps until it is signalled */
        bool progress_calling; /* in a callback */
        struct list deferred;
        unsigned interests;   /* callbacks that wait for a server's word */
        unsigned watchers;    /* device watches: notify when servers go and come */
        cl_device_id telling; /* the callback about it runs (availability.c) */
        pthread_t teller;
        struct client *abandoned_next;
};

/* ---- client.c ------------------------------------------------------------------------------- */

/* As client_wait, but not longer than until deadline_ns. True: done. */
bool client_wait_until(struct client *c, bool (*done)(void *arg), void *arg, uint64_t deadline_ns);

/* Something has changed that a waiting thread may check. */
void client_changed(struct client *c);

/* Receive what is there without waiting (and send what is unsent). True: something was received. */
bool client_poll(struct client *c);

/* Send what is unsent on all servers. */
void client_flush(struct client *c);

/* One round of the receiver: send, then receive. If nothing came and `done` (may be NULL) does not
 * return true, sleep until the deadline, and receive again. The caller has checked that no thread
 * is `pumping`. */
void client_pump(struct client *c, bool progress_thread, bool (*done)(void *arg), void *arg,
                 uint64_t deadline_ns);

/* ---- server.c ------------------------------------------------------------------------------- */

/* SP_E_NOMEM. */
SP_NODISCARD int server_new(struct client *c, unsigned index, const struct server_spec *spec,
                            struct server **ret);
struct server *server_free(struct server *s, bool after_fork);

/* In the child of a fork: close the descriptors; it is lost here. */
void server_abandon(struct server *s);

/* Connect to all servers and ask for their devices. A server that fails is logged and has no
 * devices. */
void servers_connect(struct client *c);

/* Lane 0 is up: ask for the devices. */
struct io_connect;
void server_connected(struct server *s, const struct io_connect *at, struct request *q);
/* Make the devices of one answer; takes the memory of `info`. SP_E_NOMEM, SP_E_PROTO. */
SP_NODISCARD int server_take_devices(struct server *s, struct buf *info);

/* Notify the servers that the client ends, and disconnect. `exiting`: the process ends. Servers
 * inside the process are then left alone, because the native implementations may have ended
 * already. */
void servers_close(struct client *c, bool exiting);

/* The server is gone: complete its commands with errors, and notify the contexts. */
void server_lost(struct server *s, int status, const char *text);

/* Called before calls that use the server return with errors: bytes on their way touch no memory of
 * the application any more. */
void server_halt(struct server *s);

/* The connection is lost (SP_E_LINK), or the session has ended: disconnect the server, or give it
 * up. */
void server_broken(struct server *s, int status);

/* Send / receive without blocking; may lose the server. True: something was received. */
void server_send(struct server *s);
bool server_receive(struct server *s);

/* Attach lanes for `size` bytes of bulk data that will not travel inline: several lanes if these
 * bytes, or all that move now, are many. */
void server_want_bulk(struct server *s, uint64_t size);

/* Wait until the server has answered what was sent up to now. SP_E_*. Lock held, released meanwhile. */
SP_NODISCARD int server_round_trip(struct server *s);

/* A time of the server's clock in the client's. */
uint64_t server_local_ns(const struct server *s, uint64_t remote_ns);
/* Ask for the server's clock if the last answer is old. Called just before a wait, so that the
 * answer is seen as soon as it comes. */
void server_ask_clock(struct server *s);

/* ---- peers.c -------------------------------------------------------------------------------- */

/* Make two servers able to reach each other. SP_E_HOST: their session has ended. */
SP_NODISCARD int server_introduce(struct server *a, struct server *b);

/* The server is lost: pass on nothing from it any more. */
void peers_part(struct server *s);

/* Handlers of messages about the link to another server, and of data to be passed on. */
int peers_lost(void *user, const struct wire_peer_lost *m);
int peers_direct(void *user, const struct wire_peer_direct *m);
int peers_relay_hello(void *user, const struct wire_relay_hello *m);
int peers_relay_again(void *user, const struct wire_relay_again *m);
int peers_relay_data(void *user, const struct wire_relay_data *m);
int peers_relay_taken(void *user, const struct wire_relay_taken *m);

/* ---- disconnected.c --------------------------------------------------------------------------------- */

/* Set CL_DEVICE_AVAILABLE of its devices. */
void server_set_available(struct server *s, bool available);

/* Is the server worth waiting for after a loss with that status? */
bool server_may_return(const struct server *s, int status);

/* Count a lost connection. True: many in a row were lost without a message coming through, so the
 * server is lost. */
bool server_tries_in_vain(struct server *s);
/* Did sending find that the session has ended? If only connections are lost, the session goes on:
 * messages to the server are kept, and sent after the link reconnects. */
static inline bool server_ends(const struct server *s)
{
        return s->lost_status && !server_may_return(s, s->lost_status);
}
void server_disconnected(struct server *s);

/* The receiver's part while the server is disconnected: have the link reconnect. SP_E_*: the server
 * is lost. */
SP_NODISCARD int server_redial(struct server *s);
/* It is connected again. */
void server_back(struct server *s);

/* Let a disconnected server refuse calls from now on if they have waited for it long enough. */
void servers_refuse(struct client *c);

/* Check the time limits of all sessions (session_tick); on the thread that receives. A server that
 * owes an answer for too long is disconnected. */
void servers_tick(struct client *c);

/* The time at which servers_tick or servers_refuse is due next. */
uint64_t servers_deadline(const struct client *c);

/* ---- availability.c ------------------------------------------------------------------------- */

/* Called when the availability of a device that is shown may have changed. */
void device_changed(cl_device_id d);

/* ---- new_session.c -------------------------------------------------------------------------------- */

/* The server's session has ended: begin another one, with another struct server, if the server may
 * come back. */
void server_begin_session(struct server *s);
/* Begin the sessions that server_begin_session had to put off. Called when no call is in the midst of anything. */
void servers_begin_sessions(struct client *c);
/* The receiver's part, while the session is being opened. True: something came. */
bool server_opening(struct server *s);

/* ---- request.c ------------------------------------------------------------------------------ */

void request_done(struct client *c, uint64_t id, cl_int status, struct bytes info);
/* An answer of that server: completes the request if this server was asked. */
void request_answered(struct server *s, uint64_t id, cl_int status, struct bytes info);
void requests_fail(struct server *s, cl_int status);

/* Does it have a device there? */
bool context_uses(cl_context x, const struct server *s);

/* ---- event.c -------------------------------------------------------------------------------- */

/* A command's event with an object, known to the client's map until it is complete; one part: the
 * server's word. `app`: with a reference of the application; in both cases one hold is the caller's.
 * SP_E_NOMEM. */
SP_NODISCARD int event_new(cl_command_queue q, cl_command_type type, uint64_t id, bool app,
                           cl_event *ret);

/* The application waits for or queries the event: the server has to notify how it completes.
 * SP_E_NOMEM. */
SP_NODISCARD int event_watch(cl_event e);

/* All commands of the queue up to that id have completed, and failures have been notified. */
void events_passed(cl_command_queue q, uint64_t id);

/* Has the client itself something to do for e, or for an event that has to end before e? */
static inline bool event_lags(const struct _cl_event *e)
{
        return e->status > CL_COMPLETE && (e->lags || e->before);
}

/* e must not be complete before `first`, if that lags. SP_E_NOMEM. */
SP_NODISCARD int event_follow(cl_event e, cl_event first);

/* One of e->parts is done. */
void event_part_done(cl_event e, cl_int status);

/* Give it a last part, `tail`, which it owns from now on; before its message is sent. */
void event_set_tail(cl_event e, struct event_tail *tail);

/* Complete with `status`, whatever is still open. */
void event_complete(cl_event e, cl_int status);

/* The server's word on an event. SP_E_PROTO. */
SP_NODISCARD int event_heard(struct server *s, uint64_t id, cl_int status, uint64_t queue,
                             const uint64_t times[3], bool timed);

/* All events of a server that is lost. */
void events_fail(struct server *s, cl_int status);

/* Make sure that `s` knows or will be told of e, so that its id may stand in a wait list there. 1: yes;
 * 0: not necessary, it is complete; negative: SP_E_*. */
SP_NODISCARD int event_reach(cl_event e, struct server *s);

/* The link between two servers is lost: completions that either waits for come through the client. */
void events_relay(struct server *a, struct server *b);

/* Has `e` ended, one way or the other? For client_wait. */
bool event_is_done(void *event);
/* The same, or its server is not waited for any more. */
bool event_is_settled(void *event);

/* ---- queue.c -------------------------------------------------------------------------------- */

/* Does anything lag that the next command of q has to come after? `all`: it is a marker or barrier without wait
 * list. */
bool queue_lags(const struct _cl_command_queue *q, bool all);
/* e, the queue's newest, must not be complete before that. SP_E_NOMEM. */
SP_NODISCARD int queue_follow(cl_command_queue q, cl_event e, bool all);

/* Have the server notify the client when an event of the queue completes. If the message of the
 * last command has not left yet, the request goes into it. SP_E_NOMEM. */
SP_NODISCARD int queue_watch_event(cl_command_queue q, struct session *session, uint64_t event);

/* The side queue for migrations of a domain. SP_E_*. */
SP_NODISCARD int queue_side(cl_context x, struct server *s, unsigned domain, uint64_t *ret_id);

/* ---- transfer.c ----------------------------------------------------------------------------- */

/* Everything that e comes after is done: the bytes that were held for e may move to or from the
 * application's memory. */
void transfer_turn(cl_event e);
/* The call that sends or awaits e's bytes returns without them: the application's memory must not
 * be touched any more. */
void transfer_detach(cl_event e);

/* The server will not send the bytes that were asked for. */
void incoming_fail(struct server *s);
/* A command without an event has failed; if it brought data to the server, they are not there. */
void arrival_failed(struct server *s, uint64_t event);
/* No bytes come: it was not asked for. */
void incoming_cancel(struct client *c, uint64_t transfer);
/* Its command has failed: no bytes come, or all of them have. SP_E_PROTO: some have. */
SP_NODISCARD int incoming_failed(struct server *s, uint64_t transfer);

/* Not all of it comes. */
int transfer_cut(void *user, const struct wire_transfer_cut *m);

/* session_ops for bulk data; user is the server. */
int transfer_place(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                   void **ret);
int transfer_restart(void *user);
int transfer_arrived(void *user, uint64_t transfer, uint64_t offset, size_t len,
                     uint64_t *ret_below);

/* ---- progress.c ------------------------------------------------------------------------------- */

/* Give the progress thread something to do: start it at first, wake it when it sleeps. */
void progress_wake(struct client *c);
/* A device gets a watch callback, or loses it (client.watchers). */
void progress_watch(struct client *c);
void progress_unwatch(struct client *c);
/* The last waiter has left: does the progress thread have to take over? */
void progress_relieve(struct client *c);
/* End the thread, unless it is in a callback. Lock held; released meanwhile. */
void progress_stop(struct client *c);
/* The child of a fork has no progress thread. */
void progress_forget(struct client *c);

/* ---- stats.c -------------------------------------------------------------------------------- */

/* Write the traffic of each link to the file of SPANCL_STATS, if set; asks the servers for theirs. */
void stats_write(struct client *c);

/* ---- tracing.c ------------------------------------------------------------------------------ */

/* Record if SPANCL_TRACE is set; on a server that has just been connected; and write it all. */
void tracing_start(void);
void tracing_server(struct server *s);
void tracing_write(struct client *c);

#endif
