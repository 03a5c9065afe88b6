/* The state of the nano client. All of it lies in the application's arena. */
#ifndef SPANCL_NANO_STATE_H
#define SPANCL_NANO_STATE_H

#include <stdbool.h>

#include "info_reader.h"
#include "session/session.h"
#include "spancl_nano.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "SpanCL runs between little-endian sides only"
#endif

/* Sizes of the tables. A build may define others. */
#ifndef NANO_DEVICES
#define NANO_DEVICES 4
#endif
#ifndef NANO_CONTEXTS
#define NANO_CONTEXTS 2
#endif
#ifndef NANO_QUEUES
#define NANO_QUEUES 4
#endif
#ifndef NANO_BUFFERS
#define NANO_BUFFERS 16
#endif
#ifndef NANO_PROGRAMS
#define NANO_PROGRAMS 4
#endif
#ifndef NANO_KERNELS
#define NANO_KERNELS 6
#endif
#ifndef NANO_EVENTS
#define NANO_EVENTS 16
#endif
#ifndef NANO_TRANSFERS
#define NANO_TRANSFERS 6 /* reads, and large writes, that have not ended */
#endif
#ifndef NANO_DESCRIBED
#define NANO_DESCRIBED 12 /* kernels of all built programs */
#endif
#ifndef NANO_ARGS
#define NANO_ARGS 16 /* arguments of a kernel */
#endif
#ifndef NANO_ARG_BYTES
#define NANO_ARG_BYTES 256 /* those set since the last launch, each with 16 bytes more */
#endif
#ifndef NANO_WAITS
#define NANO_WAITS 8 /* events in a wait list */
#endif
#ifndef NANO_LOG
#define NANO_LOG 256 /* bytes of the build log */
#endif

enum {
        NANO_NAME = 32,        /* a kernel's name, with its NUL; longer ones are not found */
        NANO_DEVICE_NAME = 48, /* cut */
        NANO_IN_BYTES = 768,   /* of the buffer of received messages */
        NANO_OUT_MIN = 768,    /* messages to the server */
        NANO_OUT_KEPT = 256,   /* of it, for messages of the session itself */
        NANO_HELLO_MAX = 1408, /* the largest hello_reply is smaller */
        NANO_INLINE_MAX = 256, /* a write of so many bytes travels with the messages */
};

/* The first member of each object of the application. */
struct object {
        uint32_t refs; /* 0: the place is free */
        uint32_t tag;
        uint64_t id; /* its name in messages */
};

enum object_tag {
        TAG_DEVICE = 0x6e616e01,
        TAG_CONTEXT,
        TAG_QUEUE,
        TAG_MEM,
        TAG_PROGRAM,
        TAG_KERNEL,
        TAG_EVENT,
};

struct _cl_device_id {
        struct object object;
        uint64_t type, number, domain, global_size, alloc_size, local_size;
        uint64_t group_size;
        uint32_t units;
        char name[NANO_DEVICE_NAME], version[NANO_NAME];
};

struct _cl_context {
        struct object object;
        unsigned count;
        cl_device_id devices[NANO_DEVICES];
};

struct _cl_command_queue {
        struct object object;
        cl_context context; /* held */
        cl_device_id device;
};

struct _cl_mem {
        struct object object;
        cl_context context; /* held */
        uint64_t flags;
        size_t size;
        cl_mem content; /* held; NULL: none */
};

struct _cl_program {
        struct object object;
        cl_context context; /* held */
        unsigned count;
        cl_device_id devices[NANO_DEVICES];
        cl_int status; /* CL_PROGRAM_BUILD_STATUS */
};

/* A kernel as the build described it. */
struct described {
        cl_program program; /* NULL: the place is free */
        char name[NANO_NAME];
        uint32_t arg_count;        /* as the server says */
        uint32_t args;             /* how many were described */
        uint8_t kinds[NANO_ARGS];  /* enum arg_kind */
        uint16_t sizes[NANO_ARGS]; /* bytes; 0: any */
};

struct _cl_kernel {
        struct object object;
        cl_program program; /* held */
        const struct described *as;
        uint32_t set; /* bits of the arguments that have a value */
        struct buf changed;
        uint64_t bytes[NANO_ARG_BYTES / 8];
};

struct _cl_event {
        struct object object;
        cl_command_queue queue; /* held */
        cl_int status;
        cl_uint type;
        bool told; /* event_done will come, so the place is kept */
        bool over; /* it has ended, and nano_pump releases it */
};

/* Bytes on their way: a read, or a write that does not travel with the messages. */
struct nano_transfer {
        struct session_bulk bulk; /* bulk.transfer 0: the place is free */
        uint8_t *at;
        size_t total, below; /* of a read: bytes, and those that have come */
        size_t placed;       /* bytes below it may be written now */
        cl_event event; /* of a read that has not ended, or of a write that the server has ended */
        cl_int status;  /* of that write */
        cl_command_queue queue; /* of a write */
        bool reads;
};

/* The request that waits for an answer. */
struct nano_request {
        uint64_t id; /* 0: none */
        cl_int status;
        bool done;
        unsigned expects;   /* the id of the answer's message */
        cl_program program; /* of program_built; NULL: server_info */
        /* The answer while it arrives: its next part, the kernel that it describes, and whether something does not
         * fit. */
        unsigned slot, part;
        struct described *kernel;
        bool overflow;
};

struct nano_link {
        bool up[2];
        bool wants_bulk; /* data for lane 1 is on its way, or was */
        uint64_t generation, now_ms, next_try_ms;
        uint64_t lost_ms, progress; /* when connections were lost, and after how many messages */
        unsigned pause_ms, resumed;
};

struct nano {
        struct spancl_nano_config config;
        struct session *session;
        int status; /* 0, or the SP_E_* that ended the session */
        uint64_t session_id[2], key[2];
        struct nano_link link;
        uint64_t next_id;
        struct nano_request request;
        struct info_reader reader;
        bool pumps; /* nano_pump moves bytes, so nothing may wait */
        unsigned device_count;
        cl_program logged; /* whose build `log` is of */
        char log[NANO_LOG];
        struct _cl_device_id devices[NANO_DEVICES];
        struct _cl_context contexts[NANO_CONTEXTS];
        struct _cl_command_queue queues[NANO_QUEUES];
        struct _cl_mem buffers[NANO_BUFFERS];
        struct _cl_program programs[NANO_PROGRAMS];
        struct _cl_kernel kernels[NANO_KERNELS];
        struct described described[NANO_DESCRIBED];
        struct _cl_event events[NANO_EVENTS];
        struct nano_transfer transfers[NANO_TRANSFERS];
        uint64_t hello[NANO_HELLO_MAX / 8];
};

/* The client; NULL: not started. */
extern struct nano *nano;

/* ---- memory.c ---- */

/* base/mem.h allocates from the arena until nano_memory_close; after that allocations fail. */
void nano_memory_open(void *arena, size_t size);
size_t nano_memory_left(void);
size_t nano_memory_used(void);
void nano_memory_close(void);

/* ---- link.c: connections ---- */

/* Make the first connection of lane 0. SP_E_*. */
SP_NODISCARD int nano_link_begin(void);

/* Send and receive as much as possible, and make lost connections again. `waits`: if there is nothing to do, wait
 * a little. */
void nano_pump(bool waits);

/* Pump until `done` or until the session has ended: then negative. */
SP_NODISCARD int nano_until(bool (*done)(const void *arg), const void *arg);

/* Pump until the server has acknowledged all messages, so that the outbox is empty. Negative: the session has ended. */
SP_NODISCARD int nano_drain(void);

/* The session has ended: `status` (SP_E_*) is why. All commands fail. */
void nano_end(int status);

/* ---- answers.c: what the server sends ---- */

extern const struct session_ops nano_session_ops;

/* Begin a request, whose answer is a message with the id `expects`. Returns its number. */
uint64_t nano_request_begin(unsigned expects, cl_program program);

/* `r`: the result of sending the request. Wait for the answer, and return its status. */
cl_int nano_request_wait(int r);

/* ---- objects.c ---- */

/* Return the object if `handle` is one with this tag, else NULL. */
void *nano_object(const void *handle, uint32_t tag);

/* Make an object in a free place of a table; its other members are zero. NULL: there is none. */
void *nano_object_new(void *table, size_t count, size_t size, uint32_t tag, unsigned type);
#define nano_new(table, tag, type) \
        nano_object_new(table, array_size(table), sizeof((table)[0]), tag, type)

/* Free the place. */
void nano_object_free(struct object *o);

/* Send `release`. */
void nano_release(uint64_t id);

/* Return an SP_E_* as cl_int. */
cl_int nano_status(int status);

/* Answer a query. CL_INVALID_VALUE: `size` is too small. */
cl_int nano_reply(const void *from, size_t from_size, size_t size, void *value, size_t *size_ret);

/* Is the device one of the context's? */
bool nano_context_has(cl_context c, cl_device_id d);

/* Set *errcode_ret, if there is one. Returns NULL. */
void *nano_fail(cl_int status, cl_int *errcode_ret);

/* ---- events.c ---- */

/* An event of a command that is about to be sent. NULL: none is free, nor will be. */
cl_event nano_event_new(cl_command_queue queue, cl_uint type);

/* The command has ended. In nano_pump its queue is not released before nano_events_release, because that may wait. */
void nano_event_end(cl_event e, cl_int status);
void nano_events_release(void);
cl_event nano_event_find(uint64_t id);

/* Wait for its end. Returns its status, or CL_DEVICE_NOT_AVAILABLE. */
cl_int nano_event_wait(cl_event e);
void nano_event_unhold(cl_event e);

/* A free place for a transfer; waits for one. NULL: the session has ended. */
struct nano_transfer *nano_transfer_new(void);
struct nano_transfer *nano_transfer_find(uint64_t id);
void nano_transfer_end(struct nano_transfer *t, cl_int status);

/* ---- sending ---- */

/* Make sure that the outbox has room for `size` bytes: wait until the server has taken earlier messages. SP_E_NOMEM: it
 * never has so much; or the error that ended the session. */
SP_NODISCARD int nano_room(size_t size);

/* nano_send(name, .field = ...): send a message. Errors of nano_room. */
#define nano_send(name, ...)                                                                 \
        __extension__({                                                                      \
                const struct wire_##name m_ = { __VA_ARGS__ };                               \
                int r_ = nano_room(0);                                                       \
                if (!r_)                                                                     \
                        r_ = nano_commit(wire_put_##name(nano_outbox(), &m_));               \
                if (r_ == SP_E_NOMEM && session_kept(nano->session) && !(r_ = nano_drain())) \
                        r_ = nano_commit(wire_put_##name(nano_outbox(), &m_));               \
                r_;                                                                          \
        })

/* The outbox without the bytes that are kept, until nano_commit. */
struct buf *nano_outbox(void);
SP_NODISCARD int nano_commit(int put_result);

#endif
