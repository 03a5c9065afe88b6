/* The mailbox of a server loop's thread. Other threads leave in it connections that came, results
 * of dialling, and the order to stop. It outlives the loop while dialling threads hold it. Any
 * thread. */
#ifndef SPANCL_LOOP_MAILBOX_H
#define SPANCL_LOOP_MAILBOX_H

#include <stdatomic.h>

#include "base/bytes.h"
#include "base/list.h"
#include "loop/dial.h"
#include "os/lock.h"

struct session;

/* A connection that came, or the result of dialling. */
struct arrival {
        struct list link;
        struct conn *conn; /* NULL: dialling failed */
        /* A connection that came: its hello. */
        struct buf hello;
        uint64_t deadline_ns;
        /* One that was dialled: where it belongs. */
        struct session *session;
        unsigned lane;
        uint64_t next_seq, generation, features;
        int status;
        char text[sizeof(((struct dial_reply *)NULL)->text)];
};

struct mailbox {
        atomic_bool full; /* there may be an arrival, or the order to stop; set with the lock */
        struct lock lock; /* guards all below; innermost */
        unsigned refs;
        bool closed;
        bool stop;
        char stop_text[256];
        struct list arrivals;
        int wake_fd;
};

/* SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int box_new(struct mailbox **ret);
struct mailbox *box_ref(struct mailbox *box);
struct mailbox *box_unref(struct mailbox *box);

/* Make the present or the next poll return. */
void box_wake(struct mailbox *box);

/* Add an arrival; takes `a` over. */
void box_post(struct mailbox *box, struct arrival *a);

/* Take the oldest arrival; NULL: there is none. */
struct arrival *box_take(struct mailbox *box);

/* NULL is allowed. */
struct arrival *arrival_free(struct arrival *a);
void arrivals_free(struct list *all);

#endif
