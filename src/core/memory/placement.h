/* Placement: a record of which bytes of a buffer are current where, and which commands must still
 * be waited for. No I/O; guarded by its owner. A location is one domain of one server. A byte that
 * is current nowhere is undefined (a fresh buffer) and needs no transfer. */
#ifndef SPANCL_CORE_PLACEMENT_H
#define SPANCL_CORE_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/range_set.h"
#include "base/status.h"
#include "core/server_set.h"

enum { PLACEMENT_SEEN_MAX = 4 };

/* A command that made bytes current at a location. */
struct writer {
        struct range range;
        uint64_t event;
        uint64_t queue; /* the in-order queue that it runs in; 0: none */
        bool arrival;   /* it brought a copy from elsewhere */
        bool awaited;   /* every later user waits for it: an arrival, or a blocking write */
        /* Awaited: in-order queues that have waited for it, the last ones; 0: none. */
        uint64_t seen[PLACEMENT_SEEN_MAX];
        /* Awaited: the last command that waited for it and may have written there; 0: none. */
        uint64_t behind;
        bool here; /* an arrival that the client knows to be complete */
        bool many; /* a marker behind several */
};

struct replica {
        uint32_t server; /* server_index; PLACEMENT_HOST, PLACEMENT_VIEW */
        uint32_t domain;
        struct range_set current;
        /* The commands that a migration from here has to wait for: the last writer of each byte,
         * and maybe more. Bounded: the owner replaces them by markers when they are
         * PLACEMENT_WRITERS_MAX. */
        struct writer *writers;
        size_t writer_count, writer_cap;
        unsigned
                sends; /* large copies that are brought from here now, as far as the client has heard */
};

/* PLACEMENT_HOST: the application's memory, with initial data. PLACEMENT_VIEW: the memory that it sees in mappings,
 * which nothing is ever brought from. */
enum {
        PLACEMENT_HOST = UINT32_MAX,
        PLACEMENT_VIEW = UINT32_MAX - 1,
        PLACEMENT_WRITERS_MAX = 32,
        PLACEMENT_SHARES_MAX = 4,
};

/* From this size on, each replica sends one copy before any sends two. So copies go down a chain,
 * whose links send at the same time. From twice this size on, several replicas each send a share.
 * Only tests change it. */
extern uint64_t placement_chain_bytes;

struct placement {
        struct replica *replicas;
        size_t count;
        struct server_set avoid; /* nothing is brought from there that others have */
};

/* The replica at a location, made if new. NULL: out of memory. The pointer is valid until the next
 * call. */
struct replica *placement_at(struct placement *p, uint32_t server, uint32_t domain);

/* The same, but NULL when there is none. */
static inline struct replica *placement_find(const struct placement *p, uint32_t server,
                                             uint32_t domain)
{
        for (size_t i = 0; i < p->count; i++)
                if (p->replicas[i].server == server && p->replicas[i].domain == domain)
                        return &p->replicas[i];
        return NULL;
}

/* Bytes r were written at the location by command `event` (0: by no command, and nothing waits for
 * it) in the in-order queue `queue` (0: out of order): current there and nowhere else. SP_E_NOMEM:
 * nothing is claimed to be current that is not. */
SP_NODISCARD int placement_write(struct placement *p, uint32_t server, uint32_t domain,
                                 struct range r, uint64_t event, uint64_t queue);

/* Make room, so that the next `count` calls of placement_write do not fail. That holds for calls without
 * an event, at a location that has a replica. SP_E_NOMEM. */
SP_NODISCARD int placement_reserve(struct placement *p, size_t count);

/* The same as placement_write for a command that may have left bytes of r as they were, as a kernel may. Then the
 * application need not order a later user behind it, so that user still waits for what every user
 * waits for. */
SP_NODISCARD int placement_may_write(struct placement *p, uint32_t server, uint32_t domain,
                                     struct range r, uint64_t event, uint64_t queue);

/* The command `event` that will write `r` there waits for `events`. So later commands that wait for
 * it need not wait for those of them whose writes lie within `r`. `covers`: it writes all of `r`;
 * else those that every later user waits for stay. */
void placement_follow(struct placement *p, uint32_t server, uint32_t domain, struct range r,
                      uint64_t event, bool covers, const uint64_t *events, size_t count);

/* Does a command that waits for these events come after `w`? */
bool writer_is_among(const struct writer *w, const uint64_t *events, size_t count);

/* Awaited: has the in-order queue waited for it? Record that it has. */
bool writer_is_seen(const struct writer *w, uint64_t queue);
void writer_see(struct writer *w, uint64_t queue);

/* That command was a blocking write. The application may rely on its completion in any queue. */
void placement_await(struct placement *p, uint32_t server, uint32_t domain, uint64_t event);

/* Is a copy on its way to some byte of r at the location that a command later than `event` asked for? Ids of events
 * grow. */
bool placement_arrives_after(const struct placement *p, uint32_t server, uint32_t domain,
                             struct range r, uint64_t event);

/* Bytes r arrive at the location as a copy, by command `event`, which waits for the arrivals that r
 * overlaps. SP_E_NOMEM as above. */
SP_NODISCARD int placement_copy(struct placement *p, uint32_t server, uint32_t domain,
                                struct range r, uint64_t event);

/* Find the first stale part of `within` at the location, and the replica to bring it from. Prefers
 * the same server, then other servers, then the host. Of other servers, it prefers for a large part
 * the one that sends least. 1: found; 0: all is current (or undefined everywhere). *ret is cut to
 * the bytes that one source has. */
int placement_stale(const struct placement *p, uint32_t server, uint32_t domain,
                    struct range within, struct range *ret, const struct replica **ret_from);

/* Bytes r are not current at the location any more. */
SP_NODISCARD int placement_drop(struct placement *p, uint32_t server, uint32_t domain,
                                struct range r);

/* The command that should have brought bytes to the server has failed: they are not current there.
 * A marker behind several commands does not show which of them failed. Then no bytes of its range
 * that other replicas have are current there. True: it was a command of this buffer. */
bool placement_arrival_failed(struct placement *p, uint32_t server, uint64_t event);

/* The bytes that the command brought to the view (placement_copy) have arrived. */
void placement_view_arrived(struct placement *p, uint64_t event);

/* The view's bytes in `r` are current, unless a copy is on its way there. Without memory they count
 * as stale. */
void placement_view_right(struct placement *p, struct range r);

/* Is all of `r` current in the view, and has it arrived? */
bool placement_view_has(const struct placement *p, struct range r);

/* Does a command come after all commands that write in `r` at the location? It is in the in-order
 * queue `queue` (0: out of order). It waits for these events, and for the writers that every later
 * user waits for. */
bool placement_comes_after(const struct placement *p, uint32_t server, uint32_t domain,
                           struct range r, uint64_t queue, const uint64_t *events, size_t count);

/* The part that one replica sends. */
struct share {
        struct range part;
        uint32_t server, domain;
};

/* Divide a stale part among replicas that have all of it. `from` is the best source that
 * placement_stale named; the others are as idle, one on each other server. `rates`, by server, in
 * any unit, set the proportions; 0: not known, taken for as fast as the fastest. Bytes that are
 * still arriving at `from` are divided as they arrive there, so that it sends them on. Returns the
 * number of shares, at least one; together they are `part`. */
unsigned placement_share(const struct placement *p, uint32_t server, struct range part,
                         const struct replica *from, const uint32_t *rates,
                         struct share ret[PLACEMENT_SHARES_MAX]);

/* Count a large copy that the replica begins to send (1) or does not send any more (-1). */
void placement_sends(struct placement *p, uint32_t server, uint32_t domain, int more);

/* The arrival `event` is complete. */
void placement_arrived(struct placement *p, uint32_t server, uint32_t domain, uint64_t event);

/* The newest arrival at the replica if it brought all of `part`. 0: there is none, or other
 * commands wrote there since. */
uint64_t replica_arrival(const struct replica *r, struct range part);

/* Replace writers at the replica by one command that waited for them: those that every later user
 * waits for (`awaited`), or all others. In the first case the command fails if one of them did. */
void replica_collapse(struct replica *r, bool awaited, uint64_t event);

/* Everything at a server is lost. */
void placement_forget_server(struct placement *p, uint32_t server);

/* Event ids, a few without allocation. */
struct ids {
        uint64_t few[PLACEMENT_WRITERS_MAX + 1];
        size_t count;
};

enum which_writers {
        WRITERS_ALL,
        WRITERS_ARRIVALS, /* those that bring bytes */
        WRITERS_ARRIVING, /* those of them that no later command has passed */
        WRITERS_OTHER,
};

/* Has a later command, which waits for number `i` of the writers, perhaps written all its bytes? */
bool replica_passed(const struct replica *at, size_t i);

/* Get the commands at the replica, which may be NULL, that wrote in r. */
struct ids replica_waits(const struct replica *at, struct range r, enum which_writers which);

void placement_fini(struct placement *p);

#endif
