/* The state that core's files share: struct client. Private to core/. Everything is guarded by the
 * client's lock. */
#ifndef SPANCL_CORE_STATE_H
#define SPANCL_CORE_STATE_H

#include "base/list.h"
#include "base/map.h"
#include "core/client.h"
#include "core/link/io.h"
#include "os/condition.h"
#include "os/thread.h"

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
        } specs;
        unsigned server_count;
        struct server *servers[CLIENT_SERVERS_MAX];
        bool connecting, connected; /* tries to, tried to */
        bool closing;
        struct {
                cl_device_id *all; /* in the order in which they came */
                cl_uint all_count;
                cl_device_id *list; /* those that are shown now: as large as `all` */
                cl_uint count;
        } devices;
        uint64_t next_id; /* one counter for all types */
        struct {
                struct map all; /* memory objects and samplers, by their address (client_object) */
                uint64_t gone;  /* counts those of them, and queues, that are there no more */
        } objects;
        struct {
                struct condition
                        changed;  /* something was dispatched, or the receiver's place is free */
                unsigned waiters; /* in client_wait */
                uint64_t count;   /* how often a thread had to wait there */
                bool pumping;     /* a thread receives */
                bool progress_pumping; /* it is the progress thread */
                bool sleeping;         /* in io->wait */
        } wait;
        struct client *abandoned_next;

        struct list contexts; /* context.c */

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
        } progress;

        struct map requests; /* link/request.c */
        uint64_t relayed;    /* link/peers.c: the last peer_relay's number */
        /* link/disconnected.c */
        struct {
                uint64_t reconnect_ns, wait_ns, answer_ns; /* struct client_params */
                unsigned count;                            /* servers that are disconnected */
        } disconnected;
        /* link/new_session.c */
        struct {
                bool due;            /* to be tried again by servers_begin_sessions */
                struct list retired; /* servers */
        } sessions;
        /* link/found.c */
        struct {
                char *sources;
                uint64_t wait_ns;            /* client_params */
                struct discovery *discovery; /* NULL: nothing is searched */
                struct list all;             /* struct found */
                bool settled;                /* the sources have said what they find at first */
                bool told_full;              /* that not all of them have room */
                size_t strangers;            /* servers that may not be used */
        } found;
        /* link/availability.c */
        struct {
                cl_device_id telling; /* the callback about it runs */
                thread_id teller;
        } availability;

        struct map queues; /* command/queue.c */
        struct buf
                args; /* command/launch.c: room for a launch's, while it is put into its message */
        /* command/event.c */
        struct {
                struct map pending;
                struct list followers; /* events whose turn has come */
                bool following;        /* a thread works them off */
        } events;
        /* command/transfer.c */
        struct {
                struct map incoming;     /* struct incoming */
                struct list outgoing;    /* struct outgoing, all */
                struct list host_copies; /* struct host_copy that are to be made */
                uint64_t moving;         /* bytes that go to all servers and come from them */
        } transfers;

        /* memory/migration.c */
        struct {
                struct map all;
                uint64_t small
                        [64]; /* a ring of small ones, whose completion is not notified; 0: none */
                unsigned next_small;
        } migrations;
        /* memory/svm.c */
        struct {
                struct server *
                        address_owner; /* its device chooses the addresses; NULL: the client does */
                struct server *sharer; /* the one in this process that uses the client's memory */
                unsigned base;         /* where addresses are looked for */
                uint64_t offset;
        } svm;
        /* memory/storage.c */
        struct arena {
                struct server *server; /* that has it, too; NULL: there is none */
                int fd;
                uint64_t size;
                struct range_set free;
                unsigned used;        /* struct storage of buffers */
                struct list released; /* struct storage that the server may still use */
        } arena;
};

/* For clang, which sees the lock only here. */
void client_lock(struct client *c) ACQUIRE(c->lock);
void client_unlock(struct client *c) RELEASE(c->lock);

#endif
