/* The answers that a ledger gives: where the time went, what bounds the program, and what to do. No state. */
#ifndef SPANCL_CLI_PROFILE_ANSWERS_H
#define SPANCL_CLI_PROFILE_ANSWERS_H

#include "cli/profile/ledger.h"
#include "cli/replay/what_if.h"

enum {
        ANSWERS_TOP = 10,    /* kernels and transfers of the report */
        ANSWERS_ADVICE = 12, /* texts of advice */
        ANSWERS_MOVES = 3,   /* of them, on memory that moves to and fro */
        ANSWERS_TEXT_MAX = 400,
};

enum answers_bound {
        BOUND_PROGRAM,         /* its own code, between the calls */
        BOUND_CLIENT,          /* the calls of clEnqueue* themselves */
        BOUND_DEVICE,          /* it waits for computing devices */
        BOUND_LATENCY,         /* it waits for the way there and back */
        BOUND_SYNCHRONISATION, /* the same, because it waits after nearly each command */
        BOUND_BANDWIDTH,       /* it waits for data */
        BOUND_SERVER,          /* it waits for builds, queries, and the work of servers */
        BOUND_WAITING,         /* it waits for something else */
        BOUND_NOTHING,         /* the ledger is empty */
};

struct answers {
        /* The parts of wall_ns. With several threads, `waiting` and the others are sums of all. */
        uint64_t wall_ns, program_ns, client_ns, device_ns, link_ns, server_ns, waiting_ns;
        uint64_t latency_ns, bandwidth_ns; /* the parts of link_ns */
        uint64_t commands, synchronisations;
        enum answers_bound bound;
        const struct ledger_file_row *kernels[ANSWERS_TOP],
                *transfers[ANSWERS_TOP]; /* dearest first */
        size_t kernel_count, transfer_count;
        char advice[ANSWERS_ADVICE][ANSWERS_TEXT_MAX];
        size_t advice_count;
        const struct what_if_results
                *what_if; /* borrowed; NULL: none was asked for, or there are none */
};

/* Find the answers. They point into the ledger. */
void answers_find(const struct ledger_file *l, struct answers *ret);

const char *answers_bound_name(enum answers_bound b);

/* The estimated time on the device of all commands of a row, in ns; 0: none was timed. */
uint64_t answers_cost_ns(const struct ledger_file_row *r);

/* The estimated time of a server's devices. */
uint64_t answers_busy_ns(const struct ledger_file *l, uint64_t server);
uint64_t answers_commands(const struct ledger_file *l, uint64_t server);

/* The number of a memory object among those that moved, in the order in which the program made them. */
size_t answers_buffer_number(const struct ledger_file *l, uint64_t id);

/* Texts of numbers: 98,000; 9.1 µs; 4.0 MiB. */
enum { ANSWERS_NUMBER_MAX = 32 };
const char *answers_count(uint64_t n, char ret[ANSWERS_NUMBER_MAX]);
const char *answers_time(uint64_t ns, char ret[ANSWERS_NUMBER_MAX]);
const char *answers_size(uint64_t bytes, char ret[ANSWERS_NUMBER_MAX]);

#endif
