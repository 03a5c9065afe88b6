/* The state that core's files share: struct client. Private to core/. Everything is guarded by the
 * client's lock. */
#ifndef SPANCL_CORE_STATE_H
#define SPANCL_CORE_STATE_H

#include <pthread.h>

#include "base/list.h"
#include "base/map.h"
#include "core/client.h"
#include "core/link/io.h"

struct client {
        const struct client_io *io;
        void *io_user;
        pthread_mutex_t lock;
        cl_platform_id platform;
        struct server_spec *own_specs; /* from the configuration */
        size_t own_spec_count;
        bool misconfigured; /* that was logged */
        const struct server_spec *specs;
        size_t spec_count;
        unsigned server_count;
        struct server *servers[CLIENT_SERVERS_MAX];
        bool connecting, connected; /* tries to, tried to */
        bool closing;
        cl_device_id *devices;
        cl_uint device_count;

        uint64_t next_id; /* one counter for all types */
        uint64_t relayed; /* the last peer_relay's number */
        struct map requests, events, incoming, migrations, queues;
        uint64_t small_migrations
                [64]; /* a ring of small ones, whose completion is not notified; 0: none */
        unsigned next_small_migration;
        struct list followers; /* events whose turn has come */
        bool following;        /* a thread works them off */
        struct list
                host_copies; /* struct host_copy (core/command/transfer.h) that are to be made */
        struct list contexts;
        uint64_t reconnect_ns, wait_ns, answer_ns; /* struct client_params */
        unsigned disconnected;                     /* servers */
        bool sessions_due;                         /* to be tried again by servers_begin_sessions */
        struct list retired;
        struct list outgoing; /* struct outgoing (transfer.c), all */
        uint64_t moving;      /* bytes that go to all servers and come from them */
        struct map objects;   /* memory objects and samplers, by their address (client_object) */
        uint64_t gone;        /* counts those of them, and queues, that are there no more */
        struct buf args;      /* room for those of a launch, while it is put into its message */

        /* Shared virtual memory (svm.c). */
        struct server
                *svm_address_owner; /* its device chooses the addresses; NULL: the client does */
        struct server *svm_sharer;  /* the one in this process that uses the client's memory */
        unsigned svm_base;          /* where addresses are looked for */
        uint64_t svm_offset;

        struct arena {
                struct server *server; /* that has it, too; NULL: there is none */
                int fd;
                uint64_t size;
                struct range_set free;
                unsigned used;        /* struct storage of buffers */
                struct list released; /* struct storage that the server may still use */
        } arena;                      /* storage.c */

        /* Waiting (client.c). */
        pthread_cond_t progress; /* something was dispatched, or the receiver's place is free */
        unsigned waiters;        /* in client_wait */
        uint64_t waits;          /* how often somebody had to wait there */
        bool pumping;            /* somebody receives */
        bool progress_pumping;   /* it is the progress thread */
        bool sleeping;           /* in io->wait */

        /* The progress thread (progress.c). */
        pthread_t progress_thread;
        pthread_cond_t progress_cond;
        bool progress_started, progress_stop;
        bool progress_idle;    /* sleeps until it is signalled */
        bool progress_calling; /* in a callback */
        struct list deferred;
        unsigned interests;   /* callbacks that wait for a server's word */
        unsigned watchers;    /* device watches: notify when servers go and come */
        cl_device_id telling; /* the callback about it runs (availability.c) */
        pthread_t teller;
        struct client *abandoned_next;
};

#endif
