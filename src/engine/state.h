/* What the engine's files share: struct engine, the limits, and the order in which a message's or a
 * completion's consequences are worked off. Private to engine/. Everything is guarded by engine.lock
 * but what is said to be immutable. */
#ifndef SPANCL_ENGINE_STATE_H
#define SPANCL_ENGINE_STATE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/list.h"
#include "base/map.h"
#include "base/pool.h"
#include "engine/engine.h"
#include "engine/program/build.h"
#include "engine/program/content.h"
#include "engine/transfer/staging.h"

/* What one client may make the engine hold. Past them its session ends with SP_E_LIMIT, unless said
 * otherwise. */
enum {
        ENGINE_OBJECTS_MAX = 1 << 20,
        ENGINE_EVENTS_MAX = 4 << 20, /* not complete */
        ENGINE_HELD_MAX = 1 << 20,   /* commands */
        ENGINE_RECORDED_MAX = 1 << 20,
        ENGINE_TRANSFERS_MAX = 1 << 20,
        ENGINE_PEERS_MAX = 1024,
        ENGINE_FAILED_MAX = 65536,     /* failed events remembered: the newest */
        ENGINE_EARLY_MAX = 65536,      /* completions before their import: the newest */
        ENGINE_EARLY_BYTES = 64 << 20, /* bulk data of peers before its command */
        ENGINE_EARLY_TRANSFERS = 1 << 18,
};

struct peer;

struct engine {
        /* Immutable. */
        struct engine_params params;
        char *scratch_dir;
        const struct backend_ops *be;
        struct backend *backend;
        unsigned device_count; /* without sub-devices */
        struct cache *cache;   /* NULL: none */

        pthread_mutex_t lock;
        unsigned lock_tries; /* engine_lock: before it sleeps */
        int status; /* why the client's session must end: 0, or the error met outside its messages */
        bool closed;  /* the client said close */
        bool closing; /* engine_free: nothing is started any more */
        bool prints;  /* some program may use printf */

        struct peer **peers; /* the first is the client */
        size_t peer_count;

        struct map sub_devices; /* engine/device.c: by number, those that the client may name */
        struct cache_key *device_keys; /* engine/program/cached_build.c; NULL: there is no cache */
        uint64_t activity;             /* counts what arrives */

        struct map objects, events, transfers;
        /* What there are limits of. */
        uint64_t programs, storage, transfer_bytes;
        uint64_t
                leaving_bytes; /* of transfer_bytes: on their way to the client, which takes them */
        size_t transfer_parts; /* native commands in flight that work with them */
        struct list over_quota;    /* reads that wait for others to let go of some */
        bool lanes_over_quota;     /* bulk lanes that do */
        struct list orphaned;      /* transfers for which the client is to name another source */
        unsigned limits_told;      /* of which the log has spoken */
        struct map busy_devices;   /* by number + 1 */
        struct list busy;          /* of them: with commands in flight */
        struct list failed, early; /* complete events that are remembered, oldest first */
        size_t failed_count, early_count;
        size_t nameless; /* events of commands of recordings that run */
        size_t recorded; /* commands of all recordings */
        size_t transfer_count;
        size_t early_transfers, early_bytes;

        struct list commands;         /* all */
        struct list unreported;       /* submitted ones that the backend is not to report, yet */
        struct list ready;            /* commands that may be able to go on: engine_run */
        struct list completed_early;  /* complete, but not what they came after */
        struct list candidates;       /* of these: something that they came after is over */
        struct list dirty_queues;     /* with submissions not flushed */
        struct list untracked_queues; /* with commands that are not kept */
        size_t held, running;         /* commands */
        size_t untracked;             /* of `running`: those that are not kept */
        uint64_t releases;            /* counts objects that the client gave back */

        struct pool command_pool, event_pool, value_pool; /* small ones */
        struct pool transfer_pool;

        struct staging staging; /* for domains that any memory serves */
        struct map stagings;    /* of domains, by number + 1 */
        uint64_t bounced;       /* bytes of the bounce buffer that they have */
        /* content_size, until the command that it is of comes. event 0: none. */
        struct {
                uint64_t event, buffer, offset;
        } content_size;
        struct buf deps; /* room for a wait list while it is handed to the backend */
        struct builder builder;
        struct content_store contents;
};

/* Work off what became ready. Handlers and completions end with it; nothing below it recurses. */
void engine_run(struct engine *e);

#endif
