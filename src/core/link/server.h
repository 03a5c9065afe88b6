/* One session with a server, and its link. */
#ifndef SPANCL_CORE_SERVER_H
#define SPANCL_CORE_SERVER_H

#include "base/bytes.h"
#include "base/log.h"
#include "config/server_spec.h"
#include "core/link/request.h"
#include "core/state.h"

/* DISCONNECTED: its connections are lost, and are made again; the session and everything in flight
 * are kept. IDLE: the client has ended its session, because nothing used it; its devices are
 * available, and their next use begins another one. */
enum server_state { SERVER_NEW, SERVER_UP, SERVER_DISCONNECTED, SERVER_IDLE, SERVER_LOST };

/* The fields that one file owns stand together. */
struct server {
        struct client *client;
        unsigned index;
        const struct server_spec *spec;
        enum server_state state;
        int lost_status;     /* found while sending; server_broken follows (0: none) */
        bool receiving;      /* its session is dispatching: it must stay */
        bool reaped;         /* lost, and connections and session are freed */
        uint64_t noticed_ns; /* when its last notice came; 0: none has */
        struct session *session;
        struct io_link *link;
        uint64_t id[2], key[2];
        char identity[65]; /* what its key is known by, in hex; "": it has none */
        char local_path[WIRE_LOCAL_PATH_MAX +
                        1]; /* a Unix socket where servers of its host reach it; "": none */

        unsigned used;       /* devices of it, or parts of such, in contexts */
        bool drains;         /* it has said so: its devices are not available for new contexts */
        struct found *found; /* found.c, of a first one; NULL: it was configured */

        uint64_t load; /* other sessions there when this one began */
        cl_device_id *devices;
        cl_uint device_count;
        struct list sub_devices;

        struct {
                bool bulk_lane;        /* lane 1 was asked for */
                bool backlog;          /* the last send left something: it waits for room */
                bool fresh_bulk;       /* a transfer was begun since the last send */
                uint64_t unsent_since; /* when server_kick first left something; 0: nothing */
                uint64_t last_traffic; /* when something was last sent or received */
        } sending;

        /* remote clock = client's + offset, as the exchange with the least round trip showed. */
        struct {
                int64_t offset;
                uint64_t rtt_ns, at_ns, asked_ns;
                unsigned due;          /* questions to be sent yet */
                uint64_t pings, pongs; /* clock_query sent, and answered */
        } clock;

        /* disconnected.c */
        struct {
                uint64_t
                        progress; /* at the last loss of a connection: messages that had come through */
                unsigned losses; /* of connections in a row through which none came */
                bool redialled;  /* being connected again */
                bool refusing;   /* calls do not wait for it any more */
                uint64_t refuse_at_ns;
                enum log_level untold_level;
                char untold[160]; /* the loss that no call has met yet; "": none */
                uint64_t
                        silence_ns; /* when to ask for its host's silence again (client_io.silent) */
        } disconnected;

        /* idle.c */
        struct {
                uint64_t unused_ns; /* since when nothing uses it; 0: something does */
                uint64_t close_ns;  /* SERVER_IDLE: when its link is closed at the latest */
                bool awaited;   /* SERVER_NEW, or its devices are not known: a call waits for it */
                bool described; /* it has had no session (described.h) */
        } idle;

        /* new_session.c: its session may be one of several with the same server, one after another. */
        struct {
                struct server *first; /* the struct whose devices the application knows; itself */
                struct server *last;  /* of the first: the newest */
                unsigned fruitless;   /* sessions before it that brought no devices */
                bool wanted;          /* at once: the program has added the server */
                struct request ask;   /* for the devices of a later one */
                const struct server_spec
                        *moves_to;   /* where it is to be reached now; NULL: `spec` */
                struct list retired; /* client's: a first one without a number */
        } sessions;

        /* peers.c */
        struct {
                uint64_t id;                  /* names it on the other servers */
                struct server_set introduced; /* to each other */
                struct server_set
                        turned; /* not the one that was to connect first does, but the other */
                struct server_set bad; /* their session has ended */
                /* peer_relay's, with each: what they exchange goes through the client; 0: it does not. */
                uint64_t relays[CLIENT_SERVERS_MAX];
        } peers;

        struct map contents; /* program/content.c: that were sent */

        /* memory/migration.c: with which the last large copy came from each other server. */
        struct {
                uint32_t mb_s; /* 0: not known */
                uint64_t at_ns;
        } rates[CLIENT_SERVERS_MAX];

        /* command/transfer.c */
        struct {
                bool uploads; /* it has a store of what this client has sent (FEATURE_UPLOADS) */
                size_t small_incoming; /* reads whose bytes come behind messages */
                uint8_t sink[4096];    /* for bytes that nobody wants any more */
        } transfers;
};

/* The session to send on; NULL when the server is gone: then the call returns
 * CL_DEVICE_NOT_AVAILABLE. While it is disconnected, messages gather. */
struct session *server_session(struct server *s) REQUIRES(client_held);

/* Number of the server in the client, < CLIENT_SERVERS_MAX: its element of a server_set, its
 * index in kernel->sent. Immutable. */
unsigned server_index(const struct server *s);
const char *server_name(const struct server *s);

/* Send a message that no thread waits for: now if the link is idle or enough has gathered,
 * otherwise with the next wait, flush or the progress thread. */
void server_kick(struct server *s) REQUIRES(client_held);

/* Send everything now. */
void server_flush(struct server *s) REQUIRES(client_held);

/* SP_E_NOMEM. */
SP_NODISCARD int server_new(struct client *c, unsigned index, const struct server_spec *spec,
                            struct server **ret) REQUIRES(client_held);
struct server *server_free(struct server *s, bool after_fork) REQUIRES(client_held);

/* In the child of a fork: close the descriptors; it is lost here. */
void server_abandon(struct server *s) REQUIRES(client_held);

/* Connect to all servers and ask for their devices. A server that fails is logged and has no
 * devices. */
void servers_connect(struct client *c) REQUIRES(client_held);

/* Lane 0 is up: ask for the devices. Or the server has described them (described.h). */
struct io_connect;
void server_connected(struct server *s, struct io_connect *at, struct request *q)
        REQUIRES(client_held);
/* Make the devices of one answer. On failure it has none. SP_E_NOMEM, SP_E_PROTO. */
SP_NODISCARD int server_take_devices(struct server *s, struct bytes info) REQUIRES(client_held);

/* Notify the servers that the client ends, and disconnect. `exiting`: the process ends. Servers
 * inside the process are then left alone, because the native implementations may have ended
 * already. */
void servers_close(struct client *c, bool exiting) REQUIRES(client_held);

/* The server is gone: complete its commands with errors, and notify the contexts. */
void server_lost(struct server *s, int status, const char *text) REQUIRES(client_held);

/* Free link and session of a server that is lost or idle. */
void server_reap(struct server *s, bool after_fork) REQUIRES(client_held);

/* Say goodbye, and forget all that was kept for the session. */
void server_idle(struct server *s) REQUIRES(client_held);

/* Called before calls that use the server return with errors: bytes on their way touch no memory of
 * the application any more. */
void server_halt(struct server *s) REQUIRES(client_held);

/* The connection is lost (SP_E_LINK), or the session has ended: disconnect the server, or give it
 * up. */
void server_broken(struct server *s, int status) REQUIRES(client_held);

/* Send / receive without blocking; may lose the server. True: something was received. */
void server_send(struct server *s) REQUIRES(client_held);
bool server_receive(struct server *s) REQUIRES(client_held);

/* Attach lanes for `size` bytes of bulk data that will not travel inline: several lanes if these
 * bytes, or all that move now, are many. */
void server_want_bulk(struct server *s, uint64_t size) REQUIRES(client_held);

/* Wait until the server has answered what was sent up to now. SP_E_*. Releases the lock while it waits. */
SP_NODISCARD int server_round_trip(struct server *s) REQUIRES(client_held);

/* A time of the server's clock in the client's. */
uint64_t server_local_ns(const struct server *s, uint64_t remote_ns) REQUIRES(client_held);
/* By how much such a time may be wrong: half the round trip that showed the clock, and what the clocks drift since. */
uint64_t server_clock_error_ns(const struct server *s) REQUIRES(client_held);
/* Ask for the server's clock if the last answer is old. Called just before a wait, so that the
 * answer is seen as soon as it comes. */
void server_ask_clock(struct server *s) REQUIRES(client_held);

#endif
