/* Command buffers (cl_khr_command_buffer and its layers). A command is recorded by the same enqueue_*
 * function that would enqueue it: its message goes to a queue of the server that records (`slots`), and
 * what it does to memory is noted. An enqueue brings what all commands together need, and sends one message.
 * The application does not use one from several threads at once; the lock guards what others share. */
#ifndef SPANCL_CORE_COMMAND_BUFFER_H
#define SPANCL_CORE_COMMAND_BUFFER_H

#include "core/command/command.h"
#include "core/command/khr_command_buffer.h"

/* What a command does to a range of a memory object, in this order: it needs the bytes there, it only must
 * not meet those that are on their way, it has written them, or made a copy of what another has written. */
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
        cl_kernel args; /* ours, for the values of arguments; NULL: they will not change */
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

/* All that the commands do to one memory object in one domain. */
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
        /* Domains of the devices. With several, each has a slot behind those of the queues, out of order,
         * for what brings data from one to another. */
        cl_uint domain_count;
        struct _cl_command_queue *slots; /* what m->queue is while recording */
        size_t *last;                    /* per slot: its last command */
        /* Several domains, while it records: where the commands leave what they have written, by the root's
         * id; writers are commands, by number. */
        struct map placements;
        cl_command_buffer_properties_khr *properties; /* as given, with the final 0 */
        size_t property_count;
        cl_command_buffer_flags_khr flags;
        cl_mutable_dispatch_asserts_khr asserts;
        bool finalized;
        bool broken; /* out of memory: the server has something else than we */
        cl_mutable_command_khr *commands;
        size_t count, cap;
        struct list changed;
        bool summed; /* `sums` is right */
        struct list sums;
};

/* What a struct enqueue has in addition when its command is recorded. */
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
bool command_buffer_can_sync(cl_device_id a, cl_device_id b);

/* SP_E_NOMEM, SP_E_GONE. Lock held. */
SP_NODISCARD int command_buffer_new(const struct command_buffer_params *params,
                                    cl_command_buffer_khr *ret);
/* Its last hold went. Lock held. */
void command_buffer_unhold(cl_command_buffer_khr b);

/* No more commands. SP_E_NOMEM, SP_E_GONE. Lock held. */
SP_NODISCARD int command_buffer_finalize(cl_command_buffer_khr b);

cl_command_buffer_state_khr command_buffer_state(const struct _cl_command_buffer_khr *b);

/* A cl_int. `queues` as many as it was made with; q->queue is the first. Takes the lock. */
cl_int enqueue_command_buffer(const struct enqueue *q, cl_command_buffer_khr b,
                              const cl_command_queue *queues);

/* ---- changes -------------------------------------------------------------------------------- */

/* Make command->next a copy of ->now, if it is none yet; what is then changed in it counts from
 * command_buffer_commit on. SP_E_NOMEM. Lock held. */
SP_NODISCARD int command_change(cl_mutable_command_khr command);

/* Take over all that changed; if that fails, nothing. SP_E_NOMEM, SP_E_GONE. Lock held. */
SP_NODISCARD int command_buffer_commit(cl_command_buffer_khr b);

/* Forget what changed. Lock held. */
void command_buffer_abort(cl_command_buffer_khr b);

/* ---- for command.c and transfer.c: their steps while q->record ------------------------------ */

SP_NODISCARD int record_begin(struct command *m);
/* A message has no room for more waits: one recorded marker for them all. */
SP_NODISCARD int record_fold_waits(struct command *m);
SP_NODISCARD int record_use(struct command *m, cl_mem mem, struct range r, bool bring);
SP_NODISCARD int record_wrote(struct command *m, cl_mem mem, struct range r);
SP_NODISCARD int record_ready(struct command *m);
void record_end(struct command *m, int r);

/* ---- recorded_memory.c ---------------------------------------------------------------------- */

void memory_uses_fini(struct memory_uses *u);

/* What all commands of b need, and have written, for the command m that runs them; SP_E_*. */
SP_NODISCARD int recorded_use_all(struct command *m, cl_command_buffer_khr b);
SP_NODISCARD int recorded_wrote_all(struct command *m, cl_command_buffer_khr b);

/* It is finalized; it ends. */
void recorded_placements_free(cl_command_buffer_khr b);
void recorded_memory_free(cl_command_buffer_khr b);

/* ---- for recorded_memory.c ------------------------------------------------------------------ */

/* How commands are named within a recording. */
static inline uint64_t recorded_number(size_t number)
{
        return object_id(OBJECT_EVENT, number);
}

/* A command, and room for it in the list, to whose end it then goes. NULL: no memory. */
cl_mutable_command_khr recorded_alloc(cl_command_buffer_khr b, cl_command_type type);
void recorded_append(cl_mutable_command_khr c);
void recorded_free(cl_mutable_command_khr c);

#endif
