/* The state that core's files share: struct client. Private to core/. GUARDED_BY marks the fields
 * that the client's lock guards. */
#ifndef SPANCL_CORE_STATE_H
#define SPANCL_CORE_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "config/device_filter.h"
#include "core/client.h"
#include "core/link/io.h"
#include "os/condition.h"
#include "os/thread.h"

enum { UPLOADS_THREADS = 4 };

/* The fields that one file owns stand together. */
struct client {
        /* client.c */
        const struct client_io *io;
        void *io_user;
        struct lock lock;
        cl_platform_id platform;
        struct {
                struct server_spec
                        *own; /* from the configuration; NULL: client_new's, or not read yet */
                size_t own_count;
                const struct server_spec *list;
                size_t count;
                bool misconfigured; /* that was logged */
        } specs GUARDED_BY(client_held);
        unsigned server_count GUARDED_BY(client_held);
        struct server *servers[CLIENT_SERVERS_MAX] GUARDED_BY(client_held);
        bool connecting GUARDED_BY(client_held); /* tries to */
        bool connected GUARDED_BY(client_held);  /* tried to */
        bool closing GUARDED_BY(client_held);
        struct {
                cl_device_id *all; /* in the order in which they came */
                cl_uint all_count;
                cl_device_id *list; /* those that are shown now: as large as `all` */
                cl_uint count;
                char *filter_text;
                struct device_filter filter;
        } devices GUARDED_BY(client_held);
        uint64_t next_id GUARDED_BY(client_held); /* one counter for all types */
        struct {
                struct map all; /* memory objects and samplers, by their address (client_object) */
                uint64_t gone;  /* counts those of them, and queues, that are there no more */
        } objects GUARDED_BY(client_held);
        struct {
                struct condition
                        changed;  /* something was dispatched, or the receiver's place is free */
                unsigned waiters; /* in client_wait */
                uint64_t count;   /* how often a thread had to wait there */
                bool pumping;     /* a thread receives */
                bool progress_pumping; /* it is the progress thread */
                bool sleeping;         /* in io->wait */
                unsigned pumps;        /* rounds of the receiver */
        } wait GUARDED_BY(client_held);
        struct client *abandoned_next; /* guarded by client.c's global lock */

        struct list contexts GUARDED_BY(client_held); /* context.c */

        /* progress.c */
        struct {
                thread_id thread;
                struct condition cond;
                bool started, stop;
                bool idle;    /* sleeps until it is signalled */
                bool calling; /* in a callback */
                struct list deferred;
                unsigned interests; /* callbacks that wait for a server's word */
                unsigned watchers;  /* device watches: notify when servers go and come */
        } progress GUARDED_BY(client_held);

        struct map requests GUARDED_BY(client_held); /* link/request.c */
        uint64_t relayed GUARDED_BY(client_held); /* link/peers.c: the last peer_relay's number */
        /* link/disconnected.c */
        struct {
                uint64_t reconnect_ns, wait_ns, answer_ns; /* struct client_params */
                bool watchers_fail;                        /* the same */
                unsigned count;                            /* servers that are disconnected */
        } disconnected GUARDED_BY(client_held);
        /* link/new_session.c, link/idle.c */
        struct {
                bool due;            /* to be tried again by servers_begin_sessions */
                struct list retired; /* servers */
                uint64_t idle_ns;    /* struct client_params */
                unsigned waiters;    /* calls that wait for sessions to begin again */
        } sessions GUARDED_BY(client_held);
        /* link/found.c */
        struct {
                char *sources;               /* "": none */
                bool automatic;              /* they were "auto" */
                uint64_t wait_ns;            /* client_params */
                bool wait_implied;           /* as client_params.sources_ns_implied */
                struct discovery *discovery; /* NULL: nothing is searched */
                struct list all;             /* struct found */
                bool settled;                /* the sources have said what they find at first */
                bool told_full;              /* that not all of them have room */
                size_t strangers;            /* servers that may not be used */
        } found GUARDED_BY(client_held);
        /* link/availability.c */
        struct {
                cl_device_id telling; /* the callback about it runs */
                thread_id teller;
                spancl_availability_fn
                        fn; /* that devices get which join the platform; NULL: none */
                void *user_data;
                unsigned watched; /* devices with a callback */
        } availability GUARDED_BY(client_held);

        struct map queues GUARDED_BY(client_held); /* command/queue.c */
        struct buf args GUARDED_BY(
                client_held); /* command/launch.c: room for a launch's, while it is put into its message */
        /* command/event.c */
        struct {
                struct map pending;
                struct list followers; /* events whose turn has come */
                bool following;        /* a thread works them off */
                bool ahead; /* waits return early where nobody can tell (command/ahead.h) */
                uint64_t ahead_limit_ns; /* 0: some round trips */
                bool prefetch;           /* small reads are sent ahead (command/prefetch.h) */
        } events GUARDED_BY(client_held);
        /* command/transfer.c */
        struct {
                struct map incoming;     /* struct incoming */
                struct list outgoing;    /* struct outgoing, all */
                struct list host_copies; /* struct host_copy that are to be made */
                uint64_t moving;         /* bytes that go to all servers and come from them */
                /* command/upload.c */
                struct {
                        unsigned mode;           /* enum upload_mode */
                        struct list all;         /* struct upload */
                        struct lock lock;        /* a leaf; guards upload.readers */
                        struct condition unread, /* of `lock`: no thread reads an upload's bytes */
                                work; /* of the client lock: there is something to hash */
                        thread_id threads[UPLOADS_THREADS];
                        unsigned thread_count;
                        bool stop;
                        uint64_t rate;   /* bytes per second that one thread hashes; 0: not known */
                        uint64_t misses; /* chunks in a row that servers lacked */
                        uint64_t tries;  /* writes since `misses` reached its limit */
                } uploads;
        } transfers GUARDED_BY(client_held);

        /* memory/migration.c */
        struct {
                struct map all;
                uint64_t small
                        [64]; /* a ring of small ones, whose completion is not notified; 0: none */
                unsigned next_small;
        } migrations GUARDED_BY(client_held);
        /* memory/svm.c */
        struct {
                struct server *
                        address_owner; /* its device chooses the addresses; NULL: the client does */
                struct server *sharer; /* the one in this process that uses the client's memory */
                bool managed;          /* SPANCL_SVM */
                enum svm_writes writes;
                unsigned base; /* where addresses are looked for */
                uint64_t offset;
        } svm GUARDED_BY(client_held);
        /* memory/storage.c */
        struct arena {
                struct server *server; /* that has it, too; NULL: there is none */
                int fd;
                uint64_t size;
                struct range_set free;
                unsigned used;        /* struct storage of buffers */
                struct list released; /* struct storage that the server may still use */
                struct list kept;     /* and that nothing uses, with their pages */
                uint64_t waiting;     /* bytes of both that are mapped */
        } arena GUARDED_BY(client_held);
};

/* Sleep until the condition is signalled, or until a time of clock_now_ns (UINT64_MAX: no limit).
 * The lock is released meanwhile. */
static inline void client_sleep(struct client *c, struct condition *until, uint64_t deadline_ns)
        REQUIRES(client_held) LOCK_UNCHECKED
{
        if (deadline_ns == UINT64_MAX)
                condition_wait(until, &c->lock);
        else
                condition_wait_until(until, &c->lock, deadline_ns);
}

#endif
