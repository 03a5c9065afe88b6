/* The supervisor's state, for its files: supervisor (start, loop, end), pending connections (connections that no worker has
 * yet), workers (processes that have sessions, or will). */
#ifndef SPANCL_DAEMON_SUPERVISING_H
#define SPANCL_DAEMON_SUPERVISING_H

#include <sys/epoll.h>

#include "base/list.h"
#include "daemon/child_log.h"
#include "daemon/gate.h"
#include "daemon/health.h"
#include "daemon/janitor.h"
#include "daemon/listen.h"
#include "daemon/rate.h"
#include "daemon/refusals.h"
#include "daemon/scratch.h"
#include "daemon/spare.h"
#include "daemon/spawn.h"
#include "sandbox/cgroup.h"

#define LOG "supervisor"
#define MS  1000000ull /* ns */

enum source_kind {
        SOURCE_LISTENER,
        SOURCE_SIGNALS,
        SOURCE_PENDING,
        SOURCE_WORKER,
        SOURCE_WORKER_LOG,
        SOURCE_ZYGOTE,
        SOURCE_ZYGOTE_LOG,
        SOURCE_DIALLER_LOG,
        SOURCE_CALLS,
        SOURCE_METER,
};

/* The source that an epoll event names: the first member of each. */
struct source {
        enum source_kind kind;
};

struct listener_source {
        struct source source;
        const struct listening *where;
};

/* A connection that no worker has yet. */
struct pending {
        struct source source;
        struct list link;  /* supervisor's pending connections, waiting or dead */
        struct conn *conn; /* NULL: dead */
        struct gate_origin from;
        bool heard; /* its first byte: whether it is TLS is known */
        bool waits;
        uint64_t deadline_ns;
        struct buf hello;
        uint64_t look;    /* it looks at this server, under this number; 0: it does not */
        unsigned answers; /* that it still gets */
        struct buf state; /* of the connection, for the worker */
        struct gate_grant grant;
};

enum { WORKER_LOOKS = 8 };

enum worker_state {
        WORKER_WARMING,
        WORKER_WARM,
        WORKER_BUSY,
        WORKER_CHECKING, /* it never has a session: daemon/health.h */
};

struct worker {
        struct source source, log_source, calls_source;
        struct list link;
        enum worker_state state;
        pid_t pid; /* 0: it has not told yet */
        int control;
        struct child_log log;
        struct refusals refusals;
        uint64_t id[2]; /* its session */
        char name[64];  /* the client's program */
        char scratch[SCRATCH_PATH_MAX];
        int scratch_lock;
        unsigned group;          /* its control group; 0: none */
        struct gate_grant grant; /* for sessions that have this */
        bool shut_in;            /* it can hand us no descriptor any more */
        uint64_t ready_by_ns;    /* warming: when it is given up */
        uint64_t heard_due_ns;   /* when as many packets as came would have come at their rate */
        uint64_t hear_ns;        /* it says too much: when to listen again; 0: now */
        uint64_t looks
                [WORKER_LOOKS]; /* it was asked for its counters under these numbers; 0: none */
        unsigned checks;        /* the number of the device that it checks */
        uint64_t measured;      /* the meter knows it by this number; 0: it does not */
        uint64_t control_inode; /* of the worker's end */
        bool open;              /* the meter may look into it */
        bool over;              /* it exceeded a limit, and the log says so */
        bool told;              /* it said why it can't serve, or what its check found */
        bool stuck;             /* it says that a driver keeps its session for ever */
        bool short_slices;      /* its threads take them, and it knows (daemon/time_slice.h) */
        bool gone;              /* it hears nothing any more; SIGCHLD will follow */
};

struct dialler_process {
        struct source log_source;
        struct child_log log;
        int control;       /* -1: none */
        pid_t pid;         /* 0: none */
        uint64_t again_ns; /* when to start one; UINT64_MAX: there is one */
};

struct meter_process {
        struct source source;
        int control;       /* -1: none */
        pid_t pid;         /* 0: none */
        uint64_t last;     /* number given last to a session */
        uint64_t again_ns; /* when to try again; 0: nothing failed */
};

/* A session that was ended here, for its client, which comes back to it. */
struct ended {
        uint64_t id[2];
        const char *why; /* NULL: there was none yet */
};

enum { ENDED_MAX = 64 };

struct supervisor {
        const struct config_options *options;
        struct spawner spawner;
        struct spare spare;
        struct dialler_process dialler;
        struct meter_process meter;
        struct cgroups cgroups;
        struct janitor janitor;
        struct ended ended[ENDED_MAX]; /* a ring */
        size_t ended_count;
        struct gate gate;
        struct health health;
        struct rate rate;
        struct listeners listeners;
        struct listener_source *listener_sources;
        struct source signal_source, zygote_source, zygote_log_source;
        int epoll, signals;
        struct list pending; /* in order of arrival */
        size_t pending_count;
        struct list waiting; /* whose hello asks for a new session */
        size_t waiting_count;
        struct list workers;
        struct list dead;  /* pending connections to free once the events at hand are done */
        uint64_t spawn_ns; /* when to make a warm worker; UINT64_MAX: when one is asked for */
        uint64_t
                trim_ns; /* when to trim the caches of sessions that go on; UINT64_MAX: there are none */
        uint64_t accept_ns;   /* when to accept again; UINT64_MAX: accepting */
        unsigned crashes;     /* failed starts in a row */
        unsigned rate_per_s;  /* 0: any */
        unsigned start_s;     /* that a worker may take to become ready */
        uint64_t looks;       /* how often somebody looked */
        bool namespaces_told; /* the log says that sessions have none of their own */
        bool unreaped;        /* children may have ended that were not looked at yet */
        bool stopping;
};

static inline int supervisor_watch(struct supervisor *s, int fd, void *source)
{
        struct epoll_event e = { .events = EPOLLIN | EPOLLRDHUP, .data.ptr = source };
        return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e);
}

static inline void supervisor_unwatch(struct supervisor *s, int fd)
{
        (void)epoll_ctl(s->epoll, EPOLL_CTL_DEL, fd, NULL);
}

#endif
