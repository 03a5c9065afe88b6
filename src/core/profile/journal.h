/* The journal of SPANCL_TRACE: the newest commands, waits and moves of memory, with what the probes
 * of src/trace do not know: sizes, the devices' own times. tracing.c writes it into the timeline (journal_write).
 *
 * The hooks of core/profile/profile.h feed it. Memory is bounded: new entries overwrite the oldest. The client's lock
 * guards it. A child of fork() keeps none. */
#ifndef SPANCL_CORE_PROFILE_JOURNAL_H
#define SPANCL_CORE_PROFILE_JOURNAL_H

#include "core/profile/calls.h"
#include "core/profile/names.h"
#include "core/profile/profile.h"
#include "trace/timeline.h"

enum { JOURNAL_AFTER = 4 };

/* A command, as the timeline shows it. */
struct journal_command {
        uint64_t id, queue;
        uint64_t bytes;
        uint64_t submit_ns, start_ns, end_ns; /* 0: not known */
        uint64_t global[3], local[3];
        uint64_t after
                [JOURNAL_AFTER]; /* events that its message waits for; the newest, if there are more */
        uint32_t server, device;
        uint8_t dims; /* 0: it is no launch */
        uint8_t after_count;
        bool in_order, failed;
        bool by_server; /* the times are those at which the server submitted it, and noticed its end */
        bool asked;     /* its times come only to somebody who waits for it */
        bool untimed;     /* they did not come: only start_ns is there, of its call */
        const char *name; /* names_text, or of the entry's array */
};

struct journal_wait {
        uint64_t begin_ns, end_ns, thread;
        uint64_t event; /* that was waited for; 0: none is known */
        uint64_t bytes;
        uint32_t server;
        enum profile_wait kind;
};

struct journal_move {
        uint64_t event, memory, bytes;
        uint64_t begin_ns, start_ns, end_ns; /* the latter two: 0, or when the bytes were taken */
        int from;                            /* LEDGER_HOST: the program's memory */
        uint32_t to;
};

/* Keep it if SPANCL_TRACE is set. False: it is not kept. */
bool journal_start(void);
bool journal_is_kept(void);

/* The command was sent, and its device may time it, or does not on purpose (profile_command.untimed). */
void journal_command(const struct command *m) REQUIRES(client_held);
void journal_timed(const struct _cl_event *e) REQUIRES(client_held);
/* The calling thread has waited; `thread` is set here. */
void journal_wait(const struct journal_wait *w) REQUIRES(client_held);
void journal_move(const struct _cl_mem *root, const struct share *share, const struct server *to,
                  uint64_t event) REQUIRES(client_held);

/* The numbers of processes in the timeline: the client, then its servers, their devices, and their links. */
enum {
        JOURNAL_CLIENT = 1,
        JOURNAL_SERVERS = 2,
        JOURNAL_DEVICES = JOURNAL_SERVERS + CLIENT_SERVERS_MAX,
        JOURNAL_LINKS = JOURNAL_DEVICES + CLIENT_SERVERS_MAX,
};

/* The first rows of a link's moves; its lanes have the rows below these. */
enum {
        JOURNAL_MOVES_FROM = 1 << 10,
        JOURNAL_MOVES_TO = 1 << 16,
};

/* Counts of entries that are missing in the timeline. */
struct journal_gaps {
        uint64_t dropped; /* entries and records that were overwritten */
        uint64_t untimed; /* commands without times */
};

/* Put all of it into the timeline; adds to the gaps. `calls`: those of the timeline, sorted. SP_E_NOMEM: the commands
 * are missing. */
SP_NODISCARD int journal_write(struct client *c, struct calls *calls, struct timeline *out,
                               struct journal_gaps *gaps) REQUIRES(client_held);

/* For journal_write.c: how many entries there are, and entry `i` of them, the oldest first. */
struct journal_counts {
        size_t commands, waits, moves;
        uint64_t overwritten;
};
void journal_count(struct journal_counts *ret) REQUIRES(client_held);
void journal_command_at(size_t i, struct journal_command *ret) REQUIRES(client_held);
const struct journal_wait *journal_wait_at(size_t i) REQUIRES(client_held);
const struct journal_move *journal_move_at(size_t i) REQUIRES(client_held);

#endif
