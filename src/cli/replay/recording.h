/* A recording: the part of a timeline file (trace/timeline.h) that a replay needs. It has calls that enqueue, waits,
 * commands with their times on devices, and migrations (here: moves). A file may come from anybody, so all of it is
 * checked and bounded. No state. */
#ifndef SPANCL_CLI_REPLAY_RECORDING_H
#define SPANCL_CLI_REPLAY_RECORDING_H

#include "cli/profile/ledger.h"

enum { RECORDING_AFTER = 4, RECORDING_EVENTS_MAX = 1 << 21 /* of a kind; the rest is counted */ };

/* A clEnqueue*, from its begin to its return. */
struct recording_call {
        uint64_t thread, begin_ns, end_ns, event;
};

struct recording_wait {
        uint64_t thread, begin_ns, end_ns;
        uint64_t event, bytes;
        uint32_t server; /* LEDGER_SERVERS: it has none */
        enum ledger_kind kind;
};

/* Launches that are alike: of a kernel and a size in a queue, the same on a server, of a kernel there. */
enum { RECORDING_WORKS = 3 };

enum recording_way { RECORDING_STAYS, RECORDING_UP, RECORDING_DOWN };

struct recording_command {
        uint64_t event, queue, begin_ns, end_ns, bytes;
        uint64_t after[RECORDING_AFTER]; /* events */
        uint32_t server;
        uint8_t after_count;
        uint8_t way;                     /* of its bytes */
        uint64_t works[RECORDING_WORKS]; /* of a launch: what takes as long */
        bool kernel;
        bool asked;   /* the server told of its end only to somebody who waited for it */
        bool untimed; /* begin_ns is that of its call, and end_ns is not known */
        bool beside;  /* an earlier command of its queue ran at the same time */
};

/* A migration: memory that is sent to a server because a command needs it there. */
struct recording_move {
        uint64_t event, asked_ns, begin_ns, end_ns, bytes;
        uint32_t from, to; /* from: LEDGER_SERVERS: the program's memory */
};

struct recording {
        struct recording_call *calls;
        struct recording_wait *waits;
        struct recording_command *commands;
        struct recording_move *moves;
        size_t call_count, wait_count, command_count, move_count;
        uint64_t dropped; /* records of the client that are missing */
        bool tls;         /* a link is encrypted */
};

/* Read the text of a timeline. SP_E_PROTO: it is none; SP_E_NOMEM. */
SP_NODISCARD int recording_read(const char *text, size_t size, const struct ledger_file *ledger,
                                struct recording *ret);
void recording_fini(struct recording *r);

#endif
