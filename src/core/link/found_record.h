/* A server that comes and goes: discovery has found it, or the program has named it. A server is one
 * name with one key; several records of it, and several sources, are one server, and so is a record
 * that comes back at another address. The client has a list of them. Lock held, unless it says
 * otherwise. */
#ifndef SPANCL_CORE_FOUND_RECORD_H
#define SPANCL_CORE_FOUND_RECORD_H

#include "core/link/server.h"
#include "discovery/discovered.h"

/* A place where the server is, or was. Links borrow the specification, so it stays. */
struct target {
        struct list link;
        struct server_spec spec;
        bool current;
};

struct found {
        struct list link;     /* the client's */
        char *identity;       /* key and name; without a key source and id */
        struct server *first; /* NULL: no session has begun yet */
        struct list targets;
        unsigned target_count;
        bool by_program; /* the program has named it */
        bool present;    /* it has a current target */
        bool added;      /* its devices have joined the client's */
        bool twin;       /* it is a server that the client has otherwise */
        uint64_t tried_ns;
        uint64_t begun_ns; /* its session, or when that gave way */
};

/* The server behind a session; NULL: it is configured. */
struct found *found_of(const struct server *s);

/* The server with this identity; NULL: none. */
struct found *found_find(struct client *c, const char *identity) REQUIRES(client_held);

/* The same, or a new one without targets. NULL: there are too many, or out of memory. */
struct found *found_find_or_make(struct client *c, const char *identity) REQUIRES(client_held);

/* Take it from the list, and free it. No server borrows its targets. */
void found_free(struct found *f);

/* Is the identity one of the network's, with a key at its beginning? */
bool found_has_key(const char *identity);

/* Make `spec`, whose memory it takes over, a current target. It drops `spec` if the server has too many. */
void found_add_target(struct client *c, struct found *f, struct server_spec *spec)
        REQUIRES(client_held);

/* The current target behind the one with `spec`, or the first one. NULL: none. */
struct target *found_next_target(const struct found *f, const struct server_spec *spec);

/* Is it the specification of a current target? */
bool found_is_current(const struct found *f, const struct server_spec *spec);

/* Log once that servers are not used, because of `status`. */
void found_report_full(struct client *c, const char *name, int status) REQUIRES(client_held);

#endif
