/* The tables of the ledger, for src/core/profile alone. */
#ifndef SPANCL_CORE_PROFILE_LEDGER_H
#define SPANCL_CORE_PROFILE_LEDGER_H

#include "core/profile/profile.h"
#include "session/session.h"

enum {
        LEDGER_ROWS = 512,   /* kernels and kinds of commands, on all servers */
        LEDGER_MOVES = 1024, /* memory objects that move, by source and destination */
        LEDGER_NAME = 96,
        LEDGER_HOST = -1, /* as the source of a move: the program's own memory */
};

/* A kernel or a kind of command on one server. Row 0 has those for which there was no room. */
struct ledger_row {
        bool used, kernel;
        uint32_t server;
        char name[LEDGER_NAME];
        uint64_t count, bytes;
        uint64_t timed, device_ns; /* how many of them were timed, and the sum of those */
        uint64_t wait_ns;          /* of calls that wait for their command */
};

/* A memory object that moves from here to there. Move 0 has those for which there was no room. */
struct ledger_move {
        bool used;
        uint64_t id, size;
        int from;
        uint32_t to;
        uint64_t count, bytes;
};

struct ledger_wait {
        uint64_t calls, waits; /* how many, and how many of them had to wait */
        uint64_t ns;
        uint64_t device_ns, link_ns, server_ns; /* its parts */
};

struct ledger {
        uint64_t begin_ns;
        uint64_t calls, call_ns;              /* clEnqueue*, without the time of waits */
        uint64_t waits, wait_ns;              /* all of them */
        uint64_t awaited[CLIENT_SERVERS_MAX]; /* commands since the last wait for the server */
        uint64_t carried
                [CLIENT_SERVERS_MAX]; /* bytes of these commands, on their way to or from it */
        uint64_t expected
                [CLIENT_SERVERS_MAX]; /* what they take on devices, by the times of others */
        /* The last element is of waits for several servers. */
        struct ledger_wait by_server[CLIENT_SERVERS_MAX + 1][PROFILE_WAITS];
        struct ledger_row rows[LEDGER_ROWS];
        struct ledger_move moves[LEDGER_MOVES];
};

extern struct ledger profile_ledger GUARDED_BY(client_held);

#endif
