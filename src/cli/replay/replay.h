/* A replay: how long a recorded run would take over other links. The run is a graph of commands, and a list of steps
 * for each thread of the program: it computes, sends a command, waits. A discrete-event simulation executes the steps.
 * Links have a given round trip and rate, and servers take their recorded times. It is deterministic and knows no file,
 * clock or thread. docs/PROFILE.md has the rules of the model.
 *
 * Times are in ns from the begin of the run. The graph may come from anyone's file: it is checked, and all sums are
 * bounded by REPLAY_TIME_MAX. */
#ifndef SPANCL_CLI_REPLAY_REPLAY_H
#define SPANCL_CLI_REPLAY_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
        REPLAY_SERVERS_MAX = 320,
        REPLAY_THREADS_MAX = 4096,
        REPLAY_ENTRIES_MAX = 1 << 22, /* of commands, of steps, and of dependencies */
        REPLAY_SLOTS_MAX = 256,       /* of a server */
        REPLAY_INLINE = 16 << 10,     /* bytes that travel with the messages, not as bulk data */
        REPLAY_OPEN_TRIPS = 2,        /* to connect: TCP's own, and a hello */
        REPLAY_SLEEPS = 3,
};

#define REPLAY_TIME_MAX (UINT64_C(1) << 57) /* of a run: four years */
#define REPLAY_TRIP_MAX (UINT64_C(1) << 40) /* of a link: 18 minutes */
#define REPLAY_NONE     UINT32_MAX

/* A link between the client and a server. */
struct replay_link {
        uint64_t round_trip_ns;
        uint64_t bytes_per_s; /* in each direction; 0: without limit */
};

struct replay_server {
        uint32_t slots;       /* kernels that it executes at a time; at least 1 */
        uint64_t bytes_per_s; /* of the recorded link; 0: not known */
};

/* How a command takes part. */
enum replay_kind {
        REPLAY_KERNEL, /* it occupies a slot of its server */
        REPLAY_OTHER,  /* it occupies none */
        REPLAY_MOVE, /* bytes from another server: it begins when its message and its dependencies are there */
};

struct replay_command {
        enum replay_kind kind;
        uint32_t server;
        uint32_t message_bytes;        /* of its message to the server */
        uint64_t up_bytes, down_bytes; /* data to the server, and from it */
        uint64_t carry_ns;             /* the time that its bulk data took over the recorded link */
        uint64_t
                before_ns; /* the server's own time between the moment at which it could begin and its begin */
        uint64_t device_ns; /* its time on the device, from when its data is there */
        uint32_t after;     /* the first of its own places in `after` of the run */
        uint32_t after_count;
        bool opens; /* it is the first with bulk data, so the connection for that is made */
        bool asked; /* the server tells of its end only to a thread that waits, which asks */
};

enum replay_action {
        REPLAY_SEND, /* sends the command `target` */
        REPLAY_WAIT, /* waits until the client knows that the command `target` is complete, and has its data */
        REPLAY_TAKEN,  /* waits until the server has confirmed the data of the command `target` */
        REPLAY_ANSWER, /* waits for an answer of a server */
};

struct replay_step {
        uint64_t own_ns; /* the thread's own time before it */
        uint64_t
                ns; /* its own part of the wait: of the thread that wakes up, or of the server that answers */
        uint64_t slept_ns; /* of a WAIT: how long it waited over the recorded link */
        uint32_t target;
        uint8_t trips; /* of an answer */
        uint8_t action;
};

/* A message to a thread that has slept for `ns` takes `cost_ns` longer than to one that has just begun to. */
struct replay_sleep {
        uint64_t ns, cost_ns;
};

/* A thread of the program. It begins `begin_ns` after the step `after_step` of the run, or after the run's begin. */
struct replay_thread {
        uint32_t first, count; /* steps */
        uint32_t after_step;   /* REPLAY_NONE: the run's begin */
        uint64_t begin_ns;
};

struct replay_run {
        const struct replay_server *servers;
        const struct replay_command *commands; /* in the order in which they were sent */
        const uint32_t
                *after; /* numbers of commands, each smaller than the one that depends on it */
        const struct replay_step *steps;
        const struct replay_thread *threads;
        size_t server_count, command_count, after_count, step_count, thread_count;
        uint64_t own_ns;    /* before and after all steps */
        unsigned own_trips; /* of a link, before all steps */
        struct replay_sleep
                sleeps[REPLAY_SLEEPS]; /* from the shortest to the longest; all 0: no cost */
};

/* The parts of a run that a replay leaves out. */
struct replay_without {
        bool devices; /* devices take no time */
        bool program; /* the program, its calls and the servers take no time */
};

/* Predict how long the run takes over `links`, one for each server.
 * SP_E_PROTO: the run is not well-formed, or a thread waits for a command that nothing sends. SP_E_NOMEM. */
SP_NODISCARD int replay(const struct replay_run *run, const struct replay_link *links,
                        struct replay_without without, uint64_t *ret_ns);

#endif
