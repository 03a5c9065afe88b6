/* The parts of a fit (cli/replay/fit.h), for its own files. These find, in this order: the commands and moves as they
 * were sent, the recorded links, the times that the recording lacks, those of commands, the steps of threads. */
#ifndef SPANCL_CLI_REPLAY_FITTING_H
#define SPANCL_CLI_REPLAY_FITTING_H

#include "base/mem.h"
#include "cli/replay/fit.h"

enum {
        FIT_LOOK_BACK = 256, /* how many commands, or moves of a call, a search looks at */
};

/* A command or a move, in the order in which they were sent. */
struct node {
        uint64_t sent_ns, begin_ns, end_ns; /* begin and end: on the device */
        uint64_t event, queue;
        const struct recording_command *command; /* NULL: it is a move */
        const struct recording_move *move;
        bool asked;         /* recording_command's */
        bool guessed;       /* the recording has no times of it */
        uint64_t waited_ns; /* when its own call's wait was over; 0: it does not wait */
        uint64_t known_ns;  /* when the client knows its end, by the model of the recorded link */
        uint64_t data_ns;   /* when its data is at the server, likewise */
};

/* A wait of a thread, or a moment at which it sends a command. */
struct item {
        uint64_t thread, begin_ns, end_ns; /* begin == end: it sends a command */
        uint64_t event;                    /* of the command that it sends */
        const struct recording_wait *wait; /* NULL: it sends */
};

struct event_index {
        uint64_t event;
        uint32_t node;
};

struct fitting {
        const struct recording *r;
        const struct ledger_file *ledger;
        uint32_t places[LEDGER_SERVERS +
                        1];           /* of a server's number in the ledger's list; REPLAY_NONE */
        struct recording_call *calls; /* by thread and begin */
        struct recording_wait *waits; /* likewise */
        struct node *nodes;
        struct event_index *events; /* by event */
        struct item *items;         /* by thread and begin */
        size_t call_count, wait_count, node_count, item_count;
        struct replay_server *servers;
        struct replay_link *links;
        struct replay_command *commands;
        struct replay_step *steps;
        struct replay_thread *threads;
        struct recording_move *moves; /* by the time at which they were asked for */
        bool *taken;                  /* of each move: it is a node */
        bool *sent;                   /* of each node: a step sends it */
        uint32_t *before; /* of each node: the one before it in its queue; REPLAY_NONE */
        uint32_t *after;
        uint64_t *step_ends; /* in the recording */
        size_t after_count, thread_count;
};

/* Order the calls, waits and moves, and find the nodes and the items that send. SP_E_NOMEM. */
SP_NODISCARD int fit_nodes(struct fitting *f);
/* Find the round trips and rates of the recorded links. */
void fit_links(struct fitting *f);
/* Guess when the commands ran that the recording has no times of. SP_E_NOMEM. */
SP_NODISCARD int fit_untimed(struct fitting *f);
/* Find the dependencies and times of the commands. SP_E_NOMEM. */
SP_NODISCARD int fit_commands(struct fitting *f);
/* Find the command before each one in its queue. SP_E_NOMEM. */
SP_NODISCARD int fit_before(struct fitting *f);
/* Find how many kernels each server executes at a time. `ret`: for each node, when its slot became free. */
void fit_slots(const struct fitting *f, const struct node **order, uint64_t *ret);
/* Make the steps of the threads. SP_E_NOENT: there are none; SP_E_LIMIT: too many threads or steps; SP_E_NOMEM. */
SP_NODISCARD int fit_threads(struct fitting *f, struct replay_run *run, uint64_t *ret_span_ns);

/* The node that completes an event; REPLAY_NONE: there is none. */
uint32_t fit_node_of(const struct fitting *f, uint64_t event);

static inline uint64_t later(uint64_t a, uint64_t b)
{
        return a > b ? a : b;
}

static inline uint64_t minus(uint64_t a, uint64_t b)
{
        return a > b ? a - b : 0;
}

static inline int compare(uint64_t a, uint64_t b)
{
        return (a > b) - (a < b);
}

/* The place of a server in the ledger's list; REPLAY_NONE: it is not there. */
static inline uint32_t fit_place_of(const struct fitting *f, uint32_t server)
{
        return server < LEDGER_SERVERS ? f->places[server] : REPLAY_NONE;
}

static inline uint32_t fit_server_of(const struct fitting *f, const struct node *n)
{
        return fit_place_of(f, n->command ? n->command->server : n->move->to);
}

#endif
