/* The state that the engine's files share: struct engine, the limits, and engine_run, which works
 * off the consequences of a message or a completion. Private to engine/. GUARDED_BY marks
 * the fields that the engine's lock guards; the others are immutable. */
#ifndef SPANCL_ENGINE_STATE_H
#define SPANCL_ENGINE_STATE_H

#include <stdbool.h>

#include "base/list.h"
#include "base/map.h"
#include "base/pool.h"
#include "engine/engine.h"
#include "engine/observed.h"
#include "engine/program/build.h"
#include "engine/program/content.h"
#include "engine/transfer/staging.h"
#include "engine/usage.h"
#include "os/condition.h"

/* The most that one client may make the engine hold. Beyond these limits its session ends with
 * SP_E_LIMIT, unless said otherwise. */
enum {
        ENGINE_OBJECTS_MAX = 1 << 20,
        ENGINE_EVENTS_MAX = 4 << 20, /* not complete */
        ENGINE_HELD_MAX = 1 << 20,   /* commands */
        ENGINE_RECORDED_MAX = 1 << 20,
        ENGINE_TRANSFERS_MAX = 1 << 20,
        ENGINE_PEERS_MAX = 1024,
        ENGINE_FAILED_MAX = 65536,     /* newest failed events that the engine remembers */
        ENGINE_EARLY_MAX = 65536,      /* newest completions that came before their import */
        ENGINE_EARLY_BYTES = 64 << 20, /* bulk data that peers sent before its command came */
        ENGINE_EARLY_TRANSFERS = 1 << 18,
};

struct peer;
struct upload_store;

/* transfer/peer.c */
struct engine_peers {
        struct peer **all; /* the first is the client */
        size_t count;
};

/* object.c */
struct engine_objects {
        struct map table;
        /* Counted against the session's limits. */
        uint64_t programs, storage;
        uint64_t storage_peak; /* the most that `storage` was */
        /* Counts the objects that the client released. */
        uint64_t releases;
        /* Queues with submissions that are not flushed. */
        struct list dirty_queues;
};

/* command/event.c */
struct engine_events {
        struct map table;
        /* Complete events that the engine remembers, oldest first. */
        struct list failed, early;
        size_t failed_count, early_count;
        /* Events of commands in running recordings. */
        size_t nameless;
        struct pool pool;
};

/* command/command.c */
struct engine_commands {
        struct list all;
        /* Commands that engine_run has to try again. */
        struct list ready;
        size_t held, running;
        struct pool pool; /* for small ones */
        struct buf deps;  /* room for a wait list while it is handed to the backend */
        /* enqueue.c: a content_size message, kept until its command comes. event 0: none. */
        struct {
                uint64_t event, buffer, offset;
        } content_size;
        size_t recorded; /* recording.c: commands of all recordings */
};

/* completion/ */
struct engine_completion {
        /* coalesced.c: submitted commands that the backend does not report, yet. */
        struct list unreported;
        /* early_completion.c: commands that completed before one that they come after. */
        struct list completed_early;
        /* Those of them to check again, since one that they come after completed. */
        struct list candidates;
        /* untracked.c: queues with untracked commands in flight. */
        struct list untracked_queues;
        /* Those commands, also among engine_commands.running. */
        size_t untracked;
};

/* transfer/transfer.c */
struct engine_transfers {
        struct map table;
        size_t count;
        uint64_t bytes; /* counted against the session's limit */
        /* The part of them that is on its way to the client. */
        uint64_t leaving_bytes;
        /* Native commands in flight that use transfer memory. */
        size_t parts;
        /* Reads that wait until other transfers free memory. */
        struct list over_quota;
        /* Bulk lanes wait for that, too. */
        bool lanes_over_quota;
        /* Transfers for which the client has to name another source. */
        struct list orphaned;
        size_t early_count, early_bytes; /* that came before their commands */
        struct pool pool;

        struct staging staging; /* for domains to which all host memory is equal */
        struct map stagings;    /* for other domains, by number + 1 */
        /* Bytes of the bounce buffer that these stagings hold. */
        uint64_t bounced;
};

enum { UPLOAD_THREADS = 4 };

/* transfer/upload.c */
struct engine_uploads {
        struct upload_store *store; /* NULL: none, and no offers are taken. Immutable */
        struct list waiting;        /* struct upload with chunks to be looked up */
        struct list jobs;           /* chunks to be stored */
        size_t job_bytes, names;    /* of jobs; for how many names all transfers have room */
        struct condition wake;
        thread_id threads[UPLOAD_THREADS];
        unsigned thread_count;
        bool stop;
        bool inside;    /* single-threaded: chunks are being looked up */
        uint8_t *bytes; /* single-threaded: room for a chunk */
};

/* limits.c */
struct engine_limit_state {
        unsigned reported;       /* bits of the limits that were logged as exceeded */
        struct map busy_devices; /* by number + 1 */
        /* Those of them that have commands in flight. */
        struct list busy;
        struct account account;
        struct list roomless; /* commands that wait for device memory, time, or other kernels */
        /* The client knows that its kernels wait; that its builds wait; that its cache is full. */
        bool pause_reported, builds_reported, cache_reported;
        /* The same by device: of its memory; that its kernels wait. */
        device_set full_devices, paused_devices;
        uint64_t room_again_ns; /* when to try them again */
        bool may_get_room;      /* others' memory is why storage could not be made last */
        uint64_t lacks;         /* its bytes; 0: the account was not why */
        unsigned lacks_on;      /* 1 + entry of the account's devices; 0: all together */
};

/* program/ */
struct engine_programs {
        struct builder builder GUARDED_BY(engine_held);        /* build.c */
        struct content_store contents GUARDED_BY(engine_held); /* content.c */
        struct cache *cache;           /* cached_build.c; immutable; NULL: none */
        struct cache_key *device_keys; /* cached_build.c; NULL: there is no cache */
        struct pool value_pool GUARDED_BY(engine_held); /* kernel.c: for small ones */
        bool prints GUARDED_BY(engine_held);            /* program.c: a program may use printf */
};

/* Fields without a file in their comment are engine.c's. */
struct engine {
        /* Immutable. */
        struct engine_params params;
        char *scratch_dir;
        const struct backend_ops *be;
        struct backend *backend;
        unsigned device_count; /* without sub-devices */

        struct lock lock;
        unsigned lock_tries; /* engine_lock: before it sleeps */
        /* The error that ends the client's session, found outside its messages; 0: none. */
        int status GUARDED_BY(engine_held);
        bool closed GUARDED_BY(engine_held);       /* the client said close */
        bool closing GUARDED_BY(engine_held);      /* engine_free runs: the engine starts nothing */
        bool notices GUARDED_BY(engine_held);      /* the client takes them */
        uint64_t activity GUARDED_BY(engine_held); /* counts what arrives */
        _Atomic uint64_t load; /* other sessions of this server, as engine_set_load was told */

        struct map sub_devices
                GUARDED_BY(engine_held); /* device.c: those that the client may name, by number */
        struct engine_peers peers GUARDED_BY(engine_held);
        struct engine_objects objects GUARDED_BY(engine_held);
        struct engine_events events GUARDED_BY(engine_held);
        struct engine_commands commands GUARDED_BY(engine_held);
        struct engine_completion completion GUARDED_BY(engine_held);
        struct engine_transfers transfers GUARDED_BY(engine_held);
        struct engine_uploads uploads GUARDED_BY(engine_held);
        struct engine_limit_state limits GUARDED_BY(engine_held);
        struct engine_programs programs;
        struct engine_observed observed GUARDED_BY(engine_held);
        _Atomic uint64_t energy_sample; /* usage.c; the number of the last one */
        struct device_use *uses; /* usage.c: one for each device; what they point to is guarded */
};

/* Sleep until the condition is signalled, or until a time of clock_now_ns (UINT64_MAX: no limit).
 * The lock is released meanwhile. Return false if the time is over. */
static inline bool engine_sleep(struct engine *e, struct condition *until, uint64_t deadline_ns)
        REQUIRES(engine_held) LOCK_UNCHECKED
{
        if (deadline_ns != UINT64_MAX)
                return condition_wait_until(until, &e->lock, deadline_ns);
        condition_wait(until, &e->lock);
        return true;
}

/* Run the commands that became ready. Handlers and completions call it last; nothing that it calls
 * calls it again. */
void engine_run(struct engine *e) REQUIRES(engine_held);

#endif
