/* Command buffers (cl_khr_command_buffer and its layers). The same enqueue_* function that would
 * enqueue a command records it. Its message goes to a recording queue of the server (`slots`), and
 * its uses of memory are noted. Enqueuing the buffer brings the bytes that all its commands
 * together need, and sends one message.
 * The application does not use one command buffer from several threads at once; the lock guards the
 * objects that others share. */
#ifndef SPANCL_CORE_COMMAND_BUFFER_H
#define SPANCL_CORE_COMMAND_BUFFER_H

#include "core/command/command.h"
#include "core/command/khr_command_buffer.h"

/* A command's use of a range of a memory object. BRING: it needs the bytes there. MEET: it needs no
 * contents, but waits for copies on their way there. WROTE: it has written them. COPIED: it made a
 * copy of bytes that another command has written. */
struct memory_use {
        enum { USE_BRING, USE_MEET, USE_WROTE, USE_COPIED } what;
        cl_mem mem; /* held */
        unsigned domain;
        struct range range;
};

struct memory_uses {
        struct memory_use *list;
        size_t count, cap;
};

/* How a kernel is launched. */
struct launch {
        cl_kernel args; /* the client's copy, for argument values; NULL: they will not change */
        uint64_t sent;  /* those up to this version of it are on the server */
        cl_uint dims;
        size_t offset[3], global[3], local[3];
        bool has_local;
};

struct _cl_mutable_command_khr {
        struct handle h;
        struct list changed; /* buffer's: `next` differs */
        cl_command_buffer_khr buffer;
        cl_command_queue queue;
        cl_command_type type;
        size_t number; /* its sync point; from 1 on */
        command_property *properties;
        size_t property_count;
        struct memory_uses uses, next_uses;
        cl_kernel kernel; /* held; NULL: not a launch */
        cl_mutable_dispatch_fields_khr fields;
        bool incomplete; /* not all arguments are set */
        struct launch now, next;
};

/* The uses of one memory object in one domain by all commands. */
struct memory_sum {
        struct list link;
        struct memory_sum *elsewhere; /* the same object in another domain; NULL: no more */
        cl_mem root;                  /* held by the commands */
        unsigned domain;
        struct range_set bring, meet, wrote;
};

struct _cl_command_buffer_khr {
        struct handle h;
        cl_context context;
        uint64_t id;
        struct server *server;
        cl_command_queue *queues; /* held */
        cl_uint queue_count;
        /* Domains of the devices. With several, each domain has an out-of-order slot behind those
         * of the queues, for migrations between domains. */
        cl_uint domain_count;
        struct _cl_command_queue *slots; /* the value of m->queue while recording */
        size_t *last;                    /* per slot: its last command */
        /* Several domains, while recording: where the commands leave the bytes that they have
         * written, by the root's id. Writers are commands, by number. */
        struct map placements;
        cl_command_buffer_properties_khr *properties; /* as given, with the final 0 */
        size_t property_count;
        cl_command_buffer_flags_khr flags;
        cl_mutable_dispatch_asserts_khr asserts;
        unsigned char reaches; /* kernel.reaches of all its kernels */
        bool finalized;
        bool broken; /* out of memory: the server's recording differs from ours */
        cl_mutable_command_khr *commands;
        size_t count, cap;
        struct list changed;
        bool summed; /* `sums` is right */
        struct list sums;
};

/* The additional parameters of a struct enqueue whose command is recorded. */
struct recorder {
        cl_command_buffer_khr buffer;
        unsigned slot;
        cl_uint sync_count;
        const cl_sync_point_khr *syncs;
        const command_property *properties; /* with the final 0; NULL: none */
        cl_mutable_dispatch_fields_khr fields;
        bool may_be_incomplete; /* arguments may be missing */
        cl_kernel kernel;       /* of a launch, else NULL */
        const struct launch *launch;
        cl_mutable_command_khr command; /* once it is recorded */
        struct memory_uses *uses;       /* where its uses are noted */
};

struct command_buffer_params {
        const cl_command_queue *queues; /* of devices that command_buffer_can_sync */
        cl_uint queue_count;
        const cl_command_buffer_properties_khr *properties; /* NULL: none */
        cl_command_buffer_flags_khr flags;
        cl_mutable_dispatch_asserts_khr asserts;
};

/* May one command buffer have queues on both devices? */
bool command_buffer_can_sync(cl_device_id a, cl_device_id b) REQUIRES(client_held);

/* SP_E_NOMEM, SP_E_GONE. */
SP_NODISCARD int command_buffer_new(const struct command_buffer_params *params,
                                    cl_command_buffer_khr *ret) REQUIRES(client_held);
/* Its last hold went. */
void command_buffer_unhold(cl_command_buffer_khr b) REQUIRES(client_held);

/* No more commands. SP_E_NOMEM, SP_E_GONE. */
SP_NODISCARD int command_buffer_finalize(cl_command_buffer_khr b) REQUIRES(client_held);

cl_command_buffer_state_khr command_buffer_state(const struct _cl_command_buffer_khr *b);

/* A cl_int. `queues` as many as it was made with; q->queue is the first. Takes the lock. */
cl_int enqueue_command_buffer(const struct enqueue *q, cl_command_buffer_khr b,
                              const cl_command_queue *queues);

/* ---- changes -------------------------------------------------------------------------------- */

/* Make command->next a copy of ->now, unless it is one already. Changes to it take effect with
 * command_buffer_commit. SP_E_NOMEM. */
SP_NODISCARD int command_change(cl_mutable_command_khr command) REQUIRES(client_held);

/* Apply all changes; on failure, none. SP_E_NOMEM, SP_E_GONE. */
SP_NODISCARD int command_buffer_commit(cl_command_buffer_khr b) REQUIRES(client_held);

/* Forget all changes. */
void command_buffer_abort(cl_command_buffer_khr b) REQUIRES(client_held);

/* ---- for command.c: its steps while q->record ------------------------------------------------ */

SP_NODISCARD int record_begin(struct command *m) REQUIRES(client_held);
/* A message has no room for more waits: one recorded marker for them all. */
SP_NODISCARD int record_fold_waits(struct command *m) REQUIRES(client_held);
SP_NODISCARD int record_ready(struct command *m) REQUIRES(client_held);
void record_end(struct command *m, int r) REQUIRES(client_held);

/* ---- for recorded_memory.c ------------------------------------------------------------------ */

/* How commands are named within a recording. */
static inline uint64_t recorded_number(size_t number)
{
        return object_id(OBJECT_EVENT, number);
}

/* Allocate a command, and room for it in the list; recorded_append then puts it at the list's end.
 * NULL: no memory. */
cl_mutable_command_khr recorded_alloc(cl_command_buffer_khr b, cl_command_type type);
void recorded_append(cl_mutable_command_khr c);
void recorded_free(cl_mutable_command_khr c) REQUIRES(client_held);

#endif
