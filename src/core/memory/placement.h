/* Placement: which bytes of a buffer are current where, and which commands are still to be waited for.
 * Pure bookkeeping, no I/O; guarded by its owner. A location is one domain of one server. A byte that is
 * current nowhere is undefined (a fresh buffer) and needs no transfer. */
#ifndef SPANCL_CORE_PLACEMENT_H
#define SPANCL_CORE_PLACEMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Half-open range of bytes. */
struct range {
        uint64_t begin, end;
};

static inline bool range_overlaps(struct range a, struct range b)
{
        return a.begin < b.end && b.begin < a.end;
}

/* Sorted, disjoint, not adjacent. Zeroed memory is an empty set. */
struct range_set {
        struct range *ranges;
        size_t count, cap;
};

SP_NODISCARD int range_set_add(struct range_set *s, struct range r);
SP_NODISCARD int range_set_remove(struct range_set *s, struct range r);
/* Is all of r in the set? An empty range is. */
bool range_set_has(const struct range_set *s, struct range r);
/* The first part of `within` from `within.begin` on that is in the set (member) or not. 0: none. */
int range_set_next(const struct range_set *s, struct range within, bool member, struct range *ret);
void range_set_fini(struct range_set *s);

/* A command that made bytes current at a location. */
struct writer {
        struct range range;
        uint64_t event;
        uint64_t queue; /* the in-order queue that it runs in; 0: none */
        bool arrival;   /* it brought a copy from elsewhere */
        bool awaited;   /* every later user waits for it: an arrival, or a blocking write */
        uint64_t seen;  /* awaited: the in-order queue that has waited for it, 0: none */
        bool here;      /* an arrival of which the client has heard that it is complete */
        bool many;      /* a marker behind several */
};

struct replica {
        uint32_t server; /* server_index; PLACEMENT_HOST, PLACEMENT_VIEW */
        uint32_t domain;
        struct range_set current;
        /* What a migration from here has to wait for: the last writer of each byte, and maybe more.
         * Bounded: the owner replaces them by markers when they are PLACEMENT_WRITERS_MAX. */
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

/* Of so many bytes each replica sends one copy before any sends two: so they go down a chain, whose links
 * send at the same time. Twice as many are brought from several replicas at once. Changed by tests only. */
extern uint64_t placement_chain_bytes;

struct placement {
        struct replica *replicas;
        size_t count;
        uint64_t avoid; /* bit per server: nothing is brought from there that others have */
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

/* Bytes r were written at the location by command `event` in the in-order queue `queue` (0: out of
 * order): current there and nowhere else. SP_E_NOMEM: nothing is claimed to be current that is not. */
SP_NODISCARD int placement_write(struct placement *p, uint32_t server, uint32_t domain,
                                 struct range r, uint64_t event, uint64_t queue);

/* The command that will write `r` there waits for these events: who waits for it need not wait for those of
 * them that wrote no more. */
void placement_follow(struct placement *p, uint32_t server, uint32_t domain, struct range r,
                      const uint64_t *events, size_t count);

/* That command was a blocking write: "complete" for the application, in whatever queue it goes on. */
void placement_await(struct placement *p, uint32_t server, uint32_t domain, uint64_t event);

/* Bytes r arrive at the location as a copy, by command `event`, which waits for the arrivals that r
 * overlaps. SP_E_NOMEM as above. */
SP_NODISCARD int placement_copy(struct placement *p, uint32_t server, uint32_t domain,
                                struct range r, uint64_t event);

/* The first stale part of `within` at the location and the replica to bring it from; prefers the same
 * server, then other servers, of which the one that sent least if it is large, then the host. 1 found; 0: all current (or undefined everywhere). *ret is
 * cut to what one source has. */
int placement_stale(const struct placement *p, uint32_t server, uint32_t domain,
                    struct range within, struct range *ret, const struct replica **ret_from);

/* Bytes r are not current at the location any more. */
SP_NODISCARD int placement_drop(struct placement *p, uint32_t server, uint32_t domain,
                                struct range r);

/* The command that should have brought bytes to the server has failed: they are not current there. Of one behind
 * several nobody knows which did not come: what others have, too, is not current there. True: it was one of this
 * buffer's. */
bool placement_arrival_failed(struct placement *p, uint32_t server, uint64_t event);

/* What the command brought to the view (placement_copy) is there. */
void placement_view_arrived(struct placement *p, uint64_t event);

/* What is in the view is what was written last, unless something is on its way there. Without memory it is
 * not known to be. */
void placement_view_right(struct placement *p, struct range r);

/* Is all of `r` current in the view, and there? */
bool placement_view_has(const struct placement *p, struct range r);

/* Does a command come after all that writes in `r` at the location? It is in the in-order queue `queue` (0: out of
 * order), and waits for these events and for what every later user waits for. */
bool placement_comes_after(const struct placement *p, uint32_t server, uint32_t domain,
                           struct range r, uint64_t queue, const uint64_t *events, size_t count);

/* What is brought from one replica. */
struct share {
        struct range part;
        uint32_t server, domain;
};

/* Divide a stale part, of which placement_stale named the best source `from`, among those that have all of it and
 * have nothing else to send, one of each other server, by how fast they send: `rates`, by server, in any unit; 0:
 * not known, taken for as fast as the fastest. What is still arriving at `from` goes on as it arrived. The number of shares,
 * at least one; together they are `part`. */
unsigned placement_share(const struct placement *p, uint32_t server, struct range part,
                         const struct replica *from, const uint32_t *rates,
                         struct share ret[PLACEMENT_SHARES_MAX]);

/* A large copy is brought from there (1), or is not any more (-1). */
void placement_sends(struct placement *p, uint32_t server, uint32_t domain, int more);

/* The arrival `event` is complete. */
void placement_arrived(struct placement *p, uint32_t server, uint32_t domain, uint64_t event);

/* The newest arrival at the replica if it brought all of `part`; 0: none, or others wrote there since. */
uint64_t replica_arrival(const struct replica *r, struct range part);

/* Replace all writers at the replica that every later user waits for (`awaited`), or all others, by one command that
 * waited for them; of the former it fails if one did. */
void replica_collapse(struct replica *r, bool awaited, uint64_t event);

/* Everything at a server is lost. */
void placement_forget_server(struct placement *p, uint32_t server);

void placement_fini(struct placement *p);

#endif
