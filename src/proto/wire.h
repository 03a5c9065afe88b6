/* The messages of the protocol, generated from proto/schema: a struct, an encoder, a checking
 * decoder, a printer and a smallest sample for each.
 *
 * A message is: u16 id, u16 zero, u32 size in bytes (header included, a multiple of 8), then its
 * fields in schema order in 8-byte little-endian slots:
 *   U64, S64, REF, OPT, ANY   one slot. REF is an id of the named type, OPT that or 0, ANY any type.
 *   U64S, REFS                a slot with the count, then that many slots.
 *   BYTES, STR, INFO, ARGS    a slot with the size in bytes, then the bytes, padded with zeros.
 *                             STR has no zero byte, INFO is checked by info_check, ARGS by args_check.
 *
 * Decoded structs borrow arrays and bytes from the received message. No allocation, no state. */
#ifndef SPANCL_PROTO_WIRE_H
#define SPANCL_PROTO_WIRE_H

#include "base/bytes.h"
#include "proto/object_id.h"

enum {
        WIRE_VERSION = 1, /* the only version that this build speaks */
        WIRE_HEADER_SIZE = 8,
        WIRE_LANES_MAX = 8,
        WIRE_DEVICES_MAX = 4096,
        WIRE_LINK_MAX = 65536,
        WIRE_WAITS_MAX = 65536,
        WIRE_SLOTS_MAX = 4096, /* queues of a recording */
        WIRE_TEXT_MAX = 1 << 20,
        WIRE_LOCAL_PATH_MAX = 107, /* of a Unix socket's path */
        WIRE_BLOB_MAX = 256 << 20,
        WIRE_DESCRIPTION_MAX = 1 << 20, /* of all of a server's devices */
        WIRE_DESCRIPTION_PART = 3072,   /* in one `description` */
        WIRE_INLINE_MAX = 64 << 10,     /* bytes of bulk that may travel on lane 0 */
        WIRE_RELAY_MAX = 64 << 10,      /* in one relay_data */
        WIRE_RELAY_WINDOW = 2 << 20,
        WIRE_UPLOAD_CHUNK = 1 << 20, /* bytes of a chunk of a write, which has one name */
        WIRE_UPLOAD_NAME = 32,       /* bytes of that name */
        WIRE_UPLOAD_CHUNKS = 64,     /* in one message */
};
#define WIRE_MESSAGE_MAX ((size_t)WIRE_BLOB_MAX + (8 << 20))
#define WIRE_BULK_MAX    ((uint64_t)1 << 42)
#define WIRE_STAGING_MAX ((uint64_t)256 << 20) /* bytes of device staging memory */
#define STAGING_ACCEPTED 1                     /* staging_emptied: status */

enum {
        COMMAND_NOTIFY = 1,     /* notify the client when it completes */
        COMMAND_BARRIER = 2,    /* marker only: later commands of the queue wait for it */
        COMMAND_REGARDLESS = 4, /* `waits` only order: start also when some have failed */
        COMMAND_NAMED = 8,      /* a later message may name this command's event */
        /* The last of `waits` must not fail; a read may send the bytes that it has already written. */
        COMMAND_FOLLOW = 16,
        COMMAND_WIDE = 32, /* a read's bytes come over lanes from 2 on, if there are any */
        COMMAND_FLAGS_ALL = 63,
};

enum {
        BUILD_COMPILE = 1,  /* clCompileProgram */
        BUILD_EMBEDDED = 2, /* among the headers are some that are no files of the client */
        BUILD_FLAGS_ALL = 3,
};

/* Flags of trace_start. */
enum {
        TRACE_START_RECORDER = 1, /* only the probes that the client's flight recorder has */
        TRACE_START_FLAGS_ALL = 1,
};

/* A status of program_built: the client named content that the build needs, and it is not here. */
enum {
        BUILD_NEEDS = 1,
};

/* Feature bits of hello. */
enum {
        /* After the answer the connection continues over shared memory (transport/shm.c). Unix
         * sockets only. */
        FEATURE_SHARED_MEMORY = 1,
        /* Bulk lanes: both sides unpack FRAME_PACKED (proto/frame.h); each side packs as it likes. */
        FEATURE_LZ4 = 2,
        /* After both hellos the connection, which is TCP without TLS, continues in records with
         * checksums (transport/checked.h). */
        FEATURE_CHECKSUM = 4,
        /* Lane 0 of a client: it understands `drain`. */
        FEATURE_DRAIN = 8,
        /* Lane 0 of a client's session: the client takes `notice`. */
        FEATURE_NOTICES = 16,
        /* Lane 0 of a client's first connection: descriptions of the devices will do (`description`). In the
         * answer: they follow, and there is no session. */
        FEATURE_DESCRIPTION = 32,
        /* Lane 0 of a client's session: the client understands upload_answer. In the answer: the server has a
         * store of what this client has uploaded, and takes upload_offer. */
        FEATURE_UPLOADS = 64,
        /* Lane 0 between two servers over shared memory: the side takes staging_offer, and descriptors over the
         * connection. */
        FEATURE_STAGING = 128,
        /* Lane 0 of a client's session: the side knows TRACE_START_RECORDER. */
        FEATURE_RECORDER = 256,
};

/* A borrowed array of 64-bit values. A decoded one is in wire byte order, one to be encoded in host
 * order (equal on little-endian hosts). wire_u64s_at decodes, encoders encode. */
struct wire_u64s {
        const uint64_t *data; /* 8-byte aligned */
        size_t count;
};

static inline uint64_t wire_u64s_at(struct wire_u64s v, size_t i)
{
        return bytes_le64(v.data[i]);
}

/* struct wire_NAME */
#define MSG(id, name, doc) struct wire_##name {
#define U64(f, lo, hi)     uint64_t f;
#define S64(f)             int64_t f;
#define REF(f, type)       uint64_t f;
#define OPT(f, type)       uint64_t f;
#define ANY(f)             uint64_t f;
#define U64S(f, max)       struct wire_u64s f;
#define REFS(f, type, max) struct wire_u64s f;
#define BYTES(f, max)      struct bytes f;
#define STR(f, max)        struct bytes f;
#define INFO(f, max)       struct bytes f;
#define ARGS(f, max)       struct bytes f;
#define END(name) \
        }         \
        ;
#include "proto/schema/all.def"

/* WIRE_NAME ids */
enum wire_id {
#define MSG(id, name, doc) WIRE_##name = id,
#include "proto/schema/no_fields.def"
#define END(name)
#include "proto/schema/all.def"
};

/* wire_put_NAME: append the whole message to `b`. SP_E_NOMEM, SP_E_LIMIT (an array or blob is larger than
 * its field allows): nothing changed. Other values are not checked.
 * wire_get_NAME: decode and check a message of that id; `msg` is the whole message, header included,
 * 8-byte aligned. SP_E_PROTO: not a valid one; *ret is unspecified. */
#define MSG(id, name, doc)                                                            \
        SP_NODISCARD int wire_put_##name(struct buf *b, const struct wire_##name *m); \
        SP_NODISCARD int wire_get_##name(struct bytes msg, struct wire_##name *ret);
#include "proto/schema/no_fields.def"
#define END(name)
#include "proto/schema/all.def"

/* One function per message; NULL: not expected by this side. Each returns 0 or an SP_E_*; an error
 * ends the session. */
struct wire_handlers {
#define MSG(id, name, doc) int (*name)(void *user, const struct wire_##name *m);
#include "proto/schema/no_fields.def"
#define END(name)
#include "proto/schema/all.def"
};

/* Decode, check and hand to its handler. SP_E_PROTO: unknown, malformed or unexpected. */
SP_NODISCARD int wire_dispatch(const struct wire_handlers *h, void *user, struct bytes msg);

/* The id of a message and its size, from its 8-byte header. */
static inline unsigned wire_message_id(const void *msg)
{
        return bytes_get_u16(msg);
}
/* Messages of commands begin with event, queue and flags. If `msg` is the message of this command,
 * set COMMAND_NOTIFY, so that the client is notified. False: it is another message. */
bool wire_command_notify(uint8_t *msg, uint64_t event, uint64_t queue);

static inline size_t wire_message_size(const void *msg)
{
        return bytes_get_u32((const uint8_t *)msg + 4);
}

/* The message's name, "?" if unknown. */
const char *wire_name(unsigned id);

/* Print as "name field=value ...", cut at `size` and always terminated. Returns the length. */
size_t wire_print(struct bytes msg, char *text, size_t size);

/* All ids in schema order: the i-th, or 0 past the end. */
unsigned wire_id_at(size_t i);

/* Append the smallest valid message of that id: fuzz seeds and tests. */
SP_NODISCARD int wire_sample(struct buf *b, unsigned id);

/* Write the documentation of the protocol as Markdown: calls `out` piecewise. */
void wire_document(void (*out)(void *user, const char *text), void *user);

#endif
