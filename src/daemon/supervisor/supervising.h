/* The supervisor's state, which its files share: supervisor (start, loop, end), pending
 * connections (which no worker has yet), and workers (processes that have sessions, or will). */
#ifndef SPANCL_DAEMON_SUPERVISING_H
#define SPANCL_DAEMON_SUPERVISING_H

#include "base/list.h"
#include "daemon/control.h"
#include "daemon/supervisor/child_log.h"
#include "daemon/supervisor/energy_counter.h"
#include "daemon/supervisor/gate.h"
#include "daemon/supervisor/health.h"
#include "daemon/supervisor/helper.h"
#include "daemon/supervisor/listen.h"
#include "daemon/supervisor/rate.h"
#include "daemon/supervisor/reserving.h"
#include "daemon/supervisor/spare.h"
#include "daemon/system/powercap.h"
#include "daemon/system/refusals.h"
#include "daemon/system/scratch.h"
#include "daemon/system/spawn.h"
#include "daemon/upkeep/janitor.h"
#include "os/event_set.h"
#include "sandbox/cgroup.h"
#include "transport/address.h"

#define LOG "supervisor"
#define MS  1000000ull /* ns */

struct listener_source {
        struct source source;
        const struct listening *where;
};

/* Connections in order of arrival, and of their deadlines. */
struct pending_list {
        struct list all;
        size_t count;
};

/* A connection that no worker has yet. */
struct pending {
        struct source source;
        struct list link;
        struct pending_list *in; /* one of the supervisor's lists */
        struct conn *conn;       /* NULL: dropped */
        struct gate_origin from;
        bool tls_known; /* whether it is TLS is known */
        uint64_t deadline_ns;
        struct buf hello;
        uint64_t query;   /* number of its statistics query; 0: it made none */
        unsigned answers; /* workers that have yet to answer */
        bool exports;     /* its query is the exporter's */
        bool missed;      /* some session's counters are not in the answer to its query */
        struct buf state; /* the connection's state, for the worker */
        struct gate_grant grant;
        bool lists; /* a description of the devices will do instead of a session */
        /* The description that it is sent (daemon/supervisor/describing.h). */
        struct {
                struct description *description; /* NULL: none */
                size_t at;                       /* its bytes that are in `out`, or sent */
                struct buf out;
                size_t sent; /* of `out` */
                uint64_t sessions;
        } telling;
};

enum { WORKER_QUERIES = 8, WORKER_OBSERVERS = 8 };

enum worker_state {
        WORKER_WARMING,
        WORKER_WARM,
        WORKER_BUSY,
        WORKER_CHECKING, /* it checks a device and never has a session (daemon/supervisor/health.h) */
};

/* The session's line in the log (daemon/supervisor/audit.h). */
struct audit {
        uint64_t begun_ns;
        char client[KEYS_NAME_MAX + 1]; /* as the list of clients names it; "": it has no name */
        char from[ADDRESS_MAX];         /* its address or user */
        char about[KEYS_NAME_MAX + ADDRESS_MAX + 2]; /* both, for each line of the session */
        bool reported;                               /* the worker sent the following */
        uint64_t totals[AUDIT_TOTALS];
        char why[128];
};

struct client_account;

/* The part of a session in its client's account (daemon/supervisor/accounts.h), and its energy (energy.h). */
struct client_use {
        struct client_account *account; /* NULL: it has no session */
        unsigned slot;                  /* in the account's page, if `has_slot` */
        bool has_slot;
        /* The worker's processor time in the client's window, and before it. */
        uint64_t cpu_ns, cpu_before_ns;
        struct energy_session *energy; /* NULL: it has no session, or there was no memory */
};

struct worker {
        struct source source, log_source, calls_source;
        struct list link;
        enum worker_state state;
        pid_t pid; /* 0: not received yet */
        int control;
        struct child_log log;
        struct refusals refusals;
        uint64_t id[2]; /* of its session */
        char name[64];  /* of the client's program */
        char scratch[SCRATCH_PATH_MAX];
        int scratch_lock;
        unsigned group;          /* number of its control group; 0: none */
        struct gate_grant grant; /* the rights of the sessions that it can serve */
        struct {
                char filter[HEALTH_FILTER_MAX];
                unsigned checks;  /* the number of the device that it checks */
                struct buf parts; /* of their description, while it sends them */
                bool undescribed; /* they are too large, or there was no memory */
        } devices;
        bool shut_in;         /* it can send no more descriptors */
        uint64_t ready_by_ns; /* its start's deadline; if it is warm, its client's */
        struct {
                uint64_t due_ns;   /* when its packets would have come at their rate */
                uint64_t again_ns; /* it sends too much: when to receive again; 0: now */
        } hearing;
        /* Connections of others that are about its session. */
        struct {
                /* The numbers of the statistics queries that it has yet to answer; 0: none. They stay after
                 * a query is gone, so that a worker that does not read has few queries in its socket. */
                uint64_t queries[WORKER_QUERIES];
                /* The keys of observers, and the number that the worker knows each by (observing.h). */
                struct {
                        uint64_t number; /* 0: unused */
                        char key[KEYS_HEX + 1];
                } observers[WORKER_OBSERVERS];
        } viewers;
        uint64_t measured;      /* its number at the meter; 0: not measured */
        uint64_t control_inode; /* of the worker's end */
        bool open;              /* the meter may inspect it */
        struct audit audit;
        struct client_use use;
        bool over;         /* it exceeded a limit, and the log says so */
        bool reported;     /* it sent why it can't serve, or its check's result */
        bool stuck;        /* it reported a driver's call that never returns */
        bool short_slices; /* its threads have short slices (daemon/system/time_slice.h) */
        bool gone;         /* its control socket is closed; SIGCHLD will follow */
};

struct meter_process {
        struct helper process;
        uint64_t last; /* the number of the newest session */
};

struct exporter_process {
        struct helper process;
        struct listener *listener; /* NULL: no metrics are wanted */
        uint64_t query;            /* the number of its last query */
};

/* A program that publishes this server (advertising.h). */
struct advertiser {
        struct helper process;
        uint64_t publish_ns;    /* when to tell a change */
        uint64_t renew_ns;      /* when to tell the record again */
        bool failing;           /* the last try to tell it failed, and the log says so */
        char id[33];            /* of this run, in hex */
        unsigned load;          /* the number of sessions that it knows */
        uint64_t types;         /* the types of devices that it knows, as cl_device_type */
        char key[KEYS_HEX + 1]; /* the key that it knows; "": none */
};

enum { ADVERTISER_MDNS, ADVERTISER_DHT, ADVERTISERS };

/* A session that the supervisor ended. Its client learns why when it reconnects. */
struct ended {
        uint64_t id[2];
        const char *why; /* NULL: unused */
};

enum { ENDED_MAX = 64 };

enum { DESCRIPTIONS_BYTES_MAX = 4 << 20 }; /* of all that is kept for describing.c */

enum { REFUSED_COUNT = 9 }; /* reasons of refusals (report.c) */

/* Counters since the start, for clients that query statistics (report.c). */
struct counts {
        uint64_t since_ns;
        uint64_t begun; /* sessions */
        uint64_t lost;  /* sessions that ended by a crash or over a limit */
        uint64_t refused[REFUSED_COUNT];
        uint64_t warn_due_ns; /* when all refusals so far would be in the log at its rate */
        uint64_t unwarned;    /* refusals since then that are not in the log */
};

/* The energy of a device, or of all processors together (energy.c). */
struct energy_meter {
        bool known;
        uint64_t at_ns;                /* of the last reading */
        uint64_t total_uj;             /* since the first reading */
        uint64_t sample_uj, sample_ns; /* since the last sample */
        uint64_t busy_ns;              /* device time of all sessions, in the sample at hand */
};

enum { ENERGY_METERS = 1 + HEALTH_DEVICES };

struct supervisor {
        const struct config_options *options;
        struct spawner spawner;
        struct spare spare;
        struct helper dialler;
        struct helper streams; /* media-io */
        struct helper allocator;
        struct meter_process meter;
        struct exporter_process exporter;
        struct advertiser advertisers[ADVERTISERS];
        struct cgroups cgroups;
        struct janitor janitor;
        struct gate gate;
        /* The watch over the list of clients (watching.h). */
        struct {
                struct source source;
                int watch;          /* of the folder of keys; -1: none */
                bool impossible;    /* there can be none */
                uint64_t due_ns;    /* when to read the list; 0: it has not changed */
                uint64_t latest_ns; /* when to read it if it goes on changing */
        } clients;
        /* The sensors and their readings (sensing.h). */
        struct {
                struct helper process;
                uint64_t next_ns, told_ns;  /* when to ask again; when they told, 0: never */
                bool none;                  /* this host has none */
                char text[CONTROL_MAX + 1]; /* the readings */
        } sensors;
        struct health health;
        /* The energy of sessions (energy.c). */
        struct {
                struct list sessions;
                struct energy_counter processors[POWERCAP_PROCESSORS], counters[HEALTH_DEVICES];
                struct energy_meter meters[ENERGY_METERS];
                enum { ENERGY_IDLE, ENERGY_ASKING, ENERGY_READING } phase;
                uint64_t sample,
                        settled; /* numbers of the newest sample, and of the last settled one */
                uint64_t next_ns, due_ns; /* of the next sample; the end of the phase */
        } energy;
        struct reservations reservations;
        struct listeners listeners;

        /* The events that the loop waits for (supervisor.c). */
        struct {
                int set, signals; /* event_set_new; signals_watch */
                struct source signal_source, zygote, zygote_log;
                struct listener_source *listeners;
        } events;

        /* Connections that no worker has yet (pending.c). */
        struct {
                struct pending_list silent;  /* their hello has not come: perhaps strangers */
                struct pending_list waiting; /* admitted; their hello asks for a new session */
                struct pending_list served;  /* admitted; they are sent an answer */
                struct list dead;            /* to be freed once the events at hand are done */
                uint64_t accept_ns;          /* when to accept again; UINT64_MAX: accepting */
                uint64_t queries;            /* number of the newest statistics query */
                uint64_t observers;          /* number of the newest observer */
                unsigned rate_per_s;         /* 0: no limit */
                struct rate rate;
        } arrivals;

        struct list workers;
        struct {
                struct described *first; /* in order of their last use (describing.c) */
                size_t bytes;
                uint64_t
                        types; /* cl_device_type: of the devices that a client without a key gets */
        } descriptions;
        struct counts counts;

        /* Clients (accounts.c). */
        struct {
                struct list all;
                uint64_t check_ns; /* when to look at their device time; 0: never */
        } accounts;

        /* Starts of workers (workers.c). */
        struct {
                uint64_t next_ns; /* when to make a warm worker; UINT64_MAX: on demand */
                unsigned crashes; /* failed starts in a row */
                unsigned limit_s; /* deadline for a worker's start */
        } starts;

        /* Sessions that the supervisor ended, a ring (workers.c). */
        struct {
                struct ended ring[ENDED_MAX];
                size_t count;
        } ended;

        /* When to trim the caches of running sessions; UINT64_MAX: there are none. */
        uint64_t trim_ns;
        bool namespaces_reported; /* the log says that sessions lack namespaces */
        bool unreaped;            /* children may have ended that were not collected yet */
        /* The server's end (supervisor.c). */
        struct {
                bool draining;     /* no new sessions; spancld ends with the last one */
                bool stopping;     /* the sessions end now */
                uint64_t grace_ns; /* after SIGTERM: when they end all the same; 0: none came */
        } end;
};

static inline int supervisor_watch(struct supervisor *s, int fd, void *source)
{
        return event_set_add(s->events.set, fd, EVENT_IN | EVENT_END, source) ? 0 : -1;
}

static inline void supervisor_unwatch(struct supervisor *s, int fd)
{
        event_set_remove(s->events.set, fd);
}

#endif
