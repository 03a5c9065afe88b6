/* A peer is the other end of one of the engine's sessions: the client, or another server. */
#ifndef SPANCL_ENGINE_PEER_H
#define SPANCL_ENGINE_PEER_H

#include "engine/state.h"

struct peer {
        struct engine *engine;
        uint64_t id; /* 0: the client */
        struct session *session;
        struct relay *relay; /* NULL: it has connections of its own */
        uint64_t relays;     /* peer_relay's last number; 0: it never was relayed */
        char *name;          /* where it was connected to; NULL: it connects */
        uint64_t token[2];
        uint64_t forgotten; /* the newest of the events told too early that were; 0: none */
        bool expected;      /* it connects and shows the token; else this server did */
        bool lost;
        bool dirty;    /* has something to send, or may receive again: engine_settle flushes */
        bool waiting;  /* its bulk lane waits for a transfer to become known */
        uint8_t *sink; /* where bytes go that nobody needs: one half for inlined ones */
};

enum { PEER_SINK_SIZE = 64 << 10 }; /* of one half */

/* The handlers of what the client, and what another server, may send. */
extern const struct wire_handlers engine_client_handlers, engine_server_handlers;

/* Make a peer with its session. SP_E_NOMEM, SP_E_LIMIT, SP_E_PROTO (that id is taken). */
SP_NODISCARD int engine_peer_new(struct engine *e, uint64_t id, struct peer **ret);
struct peer *engine_peer_free(struct peer *p);

/* Another server by its id; made if it is new. The same errors. */
SP_NODISCARD int engine_peer_known(struct engine *e, uint64_t id, struct peer **ret);

struct peer *engine_client(struct engine *e);

/* By id, 0 being the client. NULL: never announced. */
/* Whose session it is, but the client; NULL: nobody's. */
struct peer *engine_peer_of(struct engine *e, const struct session *s);
struct peer *engine_peer_find(struct engine *e, uint64_t id);

/* peer_send(peer, marker, .event = e, ...): a message that cannot be refused: when memory lacks, the
 * session is beyond repair. */
#define peer_send(p, name, ...) engine_peer_sent(p, session_send((p)->session, name, __VA_ARGS__))
void engine_peer_sent(struct peer *p, int status);

/* A transfer became known: lanes that wait for one go on. */
void engine_peer_retry_all(struct engine *e);

int engine_handle_peer_open(void *user, const struct wire_peer_open *m);
int engine_handle_peer_expect(void *user, const struct wire_peer_expect *m);
int engine_handle_peer_lost(void *user, const struct wire_peer_lost *m);
/* relay.c */
int engine_handle_peer_relay(void *user, const struct wire_peer_relay *m);
int engine_handle_relay_hello(void *user, const struct wire_relay_hello *m);
int engine_handle_relay_data(void *user, const struct wire_relay_data *m);
int engine_handle_relay_taken(void *user, const struct wire_relay_taken *m);
int engine_handle_stats_query(void *user, const struct wire_stats_query *m);
/* tracing.c */
int engine_handle_trace_start(void *user, const struct wire_trace_start *m);
int engine_handle_trace_query(void *user, const struct wire_trace_query *m);
int engine_handle_clock_query(void *user, const struct wire_clock_query *m);
int engine_handle_clock_reply(void *user, const struct wire_clock_reply *m);

#endif
