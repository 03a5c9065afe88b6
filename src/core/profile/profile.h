/* Hooks in commands, events and waits, for SPANCL_PROFILE_FILE and SPANCL_TRACE. They keep two things.
 *
 * The ledger of SPANCL_PROFILE_FILE: where the program's time with SpanCL goes, as counts and sums by kernel, by kind
 * of transfer, by kind of wait and by server. The client writes it when the program exits (profile_write), and
 * `spancl profile` makes a report of it. The journal of SPANCL_TRACE (core/profile/journal.h): the newest commands,
 * waits and moves, for the timeline.
 *
 * One ledger for the process's client; its lock guards it. Memory is bounded: a table that is full sums up the rest
 * in one row. While it is off, each place that keeps it costs a load and a branch. */
#ifndef SPANCL_CORE_PROFILE_H
#define SPANCL_CORE_PROFILE_H

#include "core/client.h"

struct command;
struct kernel_info;
struct server;
struct share;

/* The hooks must not change the code around them. */
#define PROFILE_COLD __attribute__((cold, noinline))

extern bool
        profile_timing; /* devices record when commands ran, also for queues that do not ask for it */
extern bool profile_on; /* set before the first server is connected; a child of fork() clears it */

static inline bool profile_is_on(void)
{
        return __builtin_expect(profile_on, false);
}

/* Return true if all commands are to be timed. */
static inline bool profile_is_timing(void)
{
        return profile_is_on() && profile_timing;
}

/* Keep the ledger if SPANCL_PROFILE_FILE is set, and the journal if SPANCL_TRACE is. */
void profile_start(void);
void profile_stop(void);
/* Write it. */
void profile_write(struct client *c) REQUIRES(client_held);

/* ---- waits ---------------------------------------------------------------------------------- */

/* Named as in the file. */
enum profile_wait {
        PROFILE_FINISH,   /* clFinish and what implies it */
        PROFILE_EVENTS,   /* clWaitForEvents */
        PROFILE_BLOCKING, /* a blocking command */
        PROFILE_TAKEN,    /* a blocking write, until the link has taken the bytes */
        PROFILE_ROOM,     /* a command, until the server's session takes more */
        PROFILE_ANSWER,   /* a request that is no command: a build, a query */
        PROFILE_WAITS
};

/* client_wait has waited from begin_ns until now, or not at all (0). */
PROFILE_COLD void profile_waited(struct client *c, uint64_t begin_ns) REQUIRES(client_held);

/* The reason of this thread's last client_wait: for a server (NULL: several), and for an event of it (NULL: none is
 * known). `bytes`: that came or went with the command. */
PROFILE_COLD void profile_wait_was(enum profile_wait kind, const struct server *s,
                                   const struct _cl_event *e, uint64_t bytes) REQUIRES(client_held);

/* ---- commands ------------------------------------------------------------------------------- */

/* The ledger's part of struct command: a command on its way. */
struct profile_command {
        uint64_t begin_ns, waited_ns; /* at its begin */
        struct kernel_info *kernel;   /* NULL: it is no launch */
        const size_t *global, *local; /* of a launch; NULL: none; borrowed until it was sent */
        unsigned dims;
        uint64_t bytes;
        uint32_t row; /* of the ledger, and 1; 0: it was not sent */
        bool untimed; /* a launch that is not to be timed */
};

/* Return true if the ledger counts the command. */
static inline bool profile_counts(const struct profile_command *p)
{
        return __builtin_expect(p->begin_ns != 0, false);
}

/* Return true if the command, or with NULL a move, is to be timed though nothing asks about it. Launches:
 * profile_launch. */
PROFILE_COLD bool profile_times(const struct profile_command *p);

PROFILE_COLD void profile_begin(struct command *m);
/* It launches a kernel. Returns true if the launch is to be timed though the program does not ask for it: all of them,
 * or the first ones of each kernel, and then some. Of an out-of-order queue a replay needs all. */
PROFILE_COLD bool profile_launch(struct command *m, struct kernel_info *k, cl_uint dims,
                                 const size_t *global, const size_t *local) REQUIRES(client_held);
/* It was sent; before it is waited for. */
PROFILE_COLD void profile_sent(struct command *m) REQUIRES(client_held);
/* Its call ends. */
PROFILE_COLD void profile_end(struct command *m) REQUIRES(client_held);

/* The times of the event have come. */
PROFILE_COLD void profile_timed(const struct _cl_event *e) REQUIRES(client_held);

/* Bytes of a memory object move to a server because a command needs them there; `event` completes the move. */
PROFILE_COLD void profile_move(const struct _cl_mem *root, const struct share *share,
                               const struct server *to, uint64_t event) REQUIRES(client_held);
/* It has come. The times are the server's, of its submission, start and end. */
PROFILE_COLD void profile_moved(const struct server *to, uint64_t event, const uint64_t times[3])
        REQUIRES(client_held);

#endif
