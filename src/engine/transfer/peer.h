/* A peer is the other end of one of the engine's sessions: the client, or another server. */
#ifndef SPANCL_ENGINE_PEER_H
#define SPANCL_ENGINE_PEER_H

#include "engine/state.h"
#include "engine/transfer/device_staging.h"

struct peer {
        struct engine *engine;
        uint64_t id; /* 0: the client */
        struct session *session;
        struct relay *relay; /* NULL: has connections of its own */
        uint64_t relays;     /* peer_relay's last number; 0: it never was relayed */
        char *name;          /* the address this side connected to; NULL: the peer connects */
        uint64_t token[2];
        /* The newest of its early completions that were forgotten; 0: none. */
        uint64_t forgotten;
        bool expected; /* it connects and presents the token; else this server connects */
        bool lost;
        bool dirty;   /* has something to send, or may receive again: engine_settle flushes */
        bool waiting; /* its bulk lane waits for an unknown transfer */
        struct device_staging staging;
        /* Memory for bytes that no command needs: one half for inlined ones. */
        uint8_t *sink;
};

enum { PEER_SINK_SIZE = 64 << 10 }; /* of one half */

/* The handlers of messages from the client, and from another server. */
extern const struct wire_handlers engine_client_handlers, engine_server_handlers;

/* Make a peer with its session. SP_E_NOMEM, SP_E_LIMIT, SP_E_PROTO (that id is taken). */
SP_NODISCARD int engine_peer_new(struct engine *e, uint64_t id, struct peer **ret)
        REQUIRES(engine_held);
struct peer *engine_peer_free(struct peer *p);

/* Find another server by its id, or make it. The same errors. */
SP_NODISCARD int engine_peer_known(struct engine *e, uint64_t id, struct peer **ret)
        REQUIRES(engine_held);

struct peer *engine_client(struct engine *e) REQUIRES(engine_held);

/* Find the server that has the session; NULL: none. The client is not searched. */
struct peer *engine_peer_of(struct engine *e, const struct session *s) REQUIRES(engine_held);
/* Find a peer by id, 0 being the client. NULL: never announced. */
struct peer *engine_peer_find(struct engine *e, uint64_t id) REQUIRES(engine_held);

/* peer_send(peer, marker, .event = e, ...): send a message that cannot be refused. If there is no
 * memory for it, the session ends. */
#define peer_send(p, name, ...) engine_peer_sent(p, session_send((p)->session, name, __VA_ARGS__))
void engine_peer_sent(struct peer *p, int status) REQUIRES(engine_held);

/* A transfer became known: lanes that wait for one continue. */
void engine_peer_retry_all(struct engine *e) REQUIRES(engine_held);

int engine_handle_peer_open(void *user, const struct wire_peer_open *m) REQUIRES(engine_held);
int engine_handle_peer_expect(void *user, const struct wire_peer_expect *m) REQUIRES(engine_held);
int engine_handle_peer_lost(void *user, const struct wire_peer_lost *m) REQUIRES(engine_held);
/* relay.c */
int engine_handle_peer_relay(void *user, const struct wire_peer_relay *m) REQUIRES(engine_held);
int engine_handle_relay_hello(void *user, const struct wire_relay_hello *m) REQUIRES(engine_held);
int engine_handle_relay_data(void *user, const struct wire_relay_data *m) REQUIRES(engine_held);
int engine_handle_relay_taken(void *user, const struct wire_relay_taken *m) REQUIRES(engine_held);
int engine_handle_stats_query(void *user, const struct wire_stats_query *m) REQUIRES(engine_held);
int engine_handle_clock_query(void *user, const struct wire_clock_query *m) REQUIRES(engine_held);
int engine_handle_clock_reply(void *user, const struct wire_clock_reply *m);

#endif
