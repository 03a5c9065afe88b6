/* A further lane of a client's session, or lane 0 again, being connected on a thread of its own: once, or again and
 * again. The client's loop owns an attempt until it has finished, or gives it up to its thread. */
#ifndef SPANCL_LOOP_ATTEMPT_H
#define SPANCL_LOOP_ATTEMPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "loop/dial.h"
#include "os/condition.h"
#include "os/lock.h"
#include "os/thread.h"
#include "session/hello.h"

struct client_loop;
struct server_loop;

struct attempt {
        char *address; /* dial.address; owned, because the thread may outlive the link */
        struct client_loop *loop;
        struct dial_params dial;
        struct buf
                early; /* for the first try; a server that refuses would then not always be understood */
        struct hello_devices devices; /* if the dial asks for them */
        struct server_loop *local;    /* in-process; NULL: another process */
        atomic_bool *attached;        /* set when it has finished, if nobody has abandoned it */
        unsigned lane;
        uint64_t until_ns; /* it is tried again and again; 0: once */
        uint64_t begin_ns; /* not before */
        bool fresh;        /* a new session: each try has an id and a key of its own */
        bool awaited;      /* that a call waits for */
        struct lock lock;  /* guards the following */
        struct condition given_up;
        bool finished, abandoned;
        bool hurried;  /* what is waited for may be there now */
        char *refusal; /* it was awaited in vain: why; NULL: not so far */
        int status;
        struct conn *conn;
        struct dial_reply reply;
};

/* Connect once, on the calling thread, to an engine of this process (`local`) or another one. SP_E_* with a text. */
SP_NODISCARD int attempt_dial(struct server_loop *local, const struct dial_params *p,
                              struct conn **ret, struct dial_reply *reply);

/* Could it be another time? Else the server has answered, and said no. */
bool attempt_may_work_later(int status);

/* Start the thread of an attempt whose lock and condition are initialised. SP_E_*: nothing has begun. */
SP_NODISCARD int attempt_begin(struct attempt *a);

/* Nobody wants it any more: it is freed, now or by its thread. */
void attempt_abandon(struct attempt *a);

/* Addresses have changed: try at once. */
void attempt_hurry(struct attempt *a);

/* Why a call that waits for it is to give up, valid while the attempt is; NULL: not so far. */
const char *attempt_refusal(struct attempt *a);

/* It has finished, or did not begin. */
void attempt_free(struct attempt *a);

#endif
