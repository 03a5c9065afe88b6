/* Info records: values that the client asks for once and answers locally from then on. A block of
 * info is a sequence of entries {u32 key, u32 size, `size` bytes, zero padding to 8}. An entry may
 * hold a block again. Keys from 0x10000 on are ours. Keys below are OpenCL's query names
 * (CL_DEVICE_NAME ...), with the value exactly as the query returns it on a 64-bit little-endian
 * host. */
#ifndef SPANCL_PROTO_INFO_H
#define SPANCL_PROTO_INFO_H

#include "base/bytes.h"

enum info_key {
        /* server_info: top level */
        INFO_DEVICE = 0x10000,     /* block: CL_DEVICE_* values and the following */
        INFO_DEVICE_DOMAIN,        /* u64: number of its native context on this server */
        INFO_DEVICE_PLATFORM,      /* block of its native platform: CL_PLATFORM_* values */
        INFO_DEVICE_FLAGS,         /* u64: DEVICE_FLAG_* */
        INFO_IMAGE_FORMATS,        /* block, one for each pair of type and flags */
        INFO_IMAGE_FORMATS_TYPE,   /* u64: cl_mem_object_type */
        INFO_IMAGE_FORMATS_FLAGS,  /* u64: the one cl_mem_flags bit that was asked with */
        INFO_IMAGE_FORMATS_LIST,   /* cl_image_format values */
        INFO_DEVICE_NUMBER,        /* u64: by which messages name it */
        INFO_DEVICE_SVM = 0x10010, /* u64: enum info_svm */
        INFO_DEVICE_ACCEPTS,       /* u64: DEVICE_ACCEPTS_* */

        /* program_create, program_binaries */
        INFO_PART = 0x10100, /* bytes: source, binary, IL, names */

        /* program_build */
        INFO_HEADER = 0x10110, /* block */
        INFO_HEADER_PATH,      /* text: absolute path on the client, normalised */
        INFO_HEADER_TEXT,      /* bytes: the file */
        INFO_CONSTANT,         /* u64: its id; then its bytes */

        /* program_built */
        INFO_BUILD = 0x10120, /* block for one device: INFO_BUILD_DEVICE, CL_PROGRAM_BUILD_* values,
                                 CL_PROGRAM_BINARY_TYPE, CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE */
        INFO_BUILD_DEVICE,    /* u64: device number */
        INFO_KERNEL,        /* block: CL_KERNEL_FUNCTION_NAME, _NUM_ARGS, _ATTRIBUTES, then args */
        INFO_KERNEL_ARG,    /* block, in argument order: CL_KERNEL_ARG_* values and the following */
        INFO_ARG_KIND,      /* u64: ARG_* of proto/args.h that it takes */
        INFO_ARG_SIZE,      /* u64: size in bytes of a value; 0 when not known */
        INFO_KERNEL_DEVICE, /* block: INFO_BUILD_DEVICE, CL_KERNEL_WORK_GROUP_SIZE ... values */
        INFO_ARG_NATIVE_INFO, /* u64 in INFO_KERNEL: 1 if CL_KERNEL_ARG_* came from the native side */

        /* kernel_query */
        INFO_LOCAL_SIZE = 0x10128, /* clGetKernelSuggestedLocalWorkSizeKHR */

        /* stats */
        INFO_LINK = 0x10130, /* block */
        INFO_LINK_PEER,      /* u64: peer id; 0: the client */
        INFO_LINK_MESSAGES_SENT,
        INFO_LINK_BYTES_SENT, /* lane 0, frames included */
        INFO_LINK_BULK_SENT,  /* bulk bytes on all lanes */
        INFO_LINK_MESSAGES_RECEIVED,
        INFO_LINK_BYTES_RECEIVED,
        INFO_LINK_BULK_RECEIVED,
        INFO_LINK_NAME,        /* text: where the peer was connected to; not there: it connected */
        INFO_LINK_RELAYED,     /* u64: 1: through the client */
        INFO_LINK_FABRIC_SENT, /* the bulk bytes that a fabric carried; absent: none */
        INFO_LINK_FABRIC_RECEIVED,
        INFO_OUT_OF_SERVICE, /* u64, in session_stats: new sessions do not get the device of this number (--devices); `name`
                                says why, `process` is the supervisor */

        /* trace */
        INFO_TRACE_THREAD = 0x10140, /* block */
        INFO_TRACE_THREAD_ID,        /* u64 */
        INFO_TRACE_THREAD_NAME,      /* text, at most 15 bytes */
        INFO_TRACE_RECORDS,          /* four u64 each: begin_ns, end_ns, probe, value */
        INFO_TRACE_LOST,             /* u64; older records that had no room; absent: 0 */
        /* The same for an observer, beside the threads; there INFO_TRACE_LOST is about commands. */
        INFO_TRACE_COMMAND, /* INFO_TRACE_COMMAND_FIELDS times u64 (enum info_trace_command), then its name, with zeros to a multiple of 8 bytes */
        INFO_TRACE_DEVICE,  /* text: the name of the next device, from number 0 on */
        INFO_TRACE_UNTIMED, /* u64: commands without times */

        /* session_stats, from the worker */
        INFO_SESSION = 0x10150,  /* block */
        INFO_SESSION_MEMORY,     /* u64: bytes of its buffers, images and shared virtual memory */
        INFO_SESSION_PROGRAMS,   /* u64 */
        INFO_SESSION_PEAK,       /* u64: the most that INFO_SESSION_MEMORY was */
        INFO_SESSION_COMMANDS,   /* u64: commands that are held or in flight */
        INFO_SESSION_ROUND_TRIP, /* u64: ns to the client and back; 0: not known */

        /* session_stats, from the supervisor, whose number `process` is; `name` is empty */
        INFO_SERVER = 0x10158,      /* block */
        INFO_SERVER_UP_NS,          /* u64 */
        INFO_SERVER_SESSIONS,       /* u64: now */
        INFO_SERVER_SESSIONS_MAX,   /* u64: --sessions */
        INFO_SERVER_SESSIONS_BEGUN, /* u64: since its start */
        INFO_SERVER_SESSIONS_LOST,  /* u64: those that ended by a crash or over a limit */
        INFO_SERVER_REFUSED,   /* block for each reason: INFO_SERVER_REASON, INFO_SERVER_COUNT */
        INFO_SERVER_REASON,    /* text: lower-case letters and underscores */
        INFO_SERVER_COUNT,     /* u64: connections since its start */
        INFO_SERVER_DRAINING,  /* u64: 1: it takes no new sessions, and ends with the last one */
        INFO_SERVER_SANDBOX,   /* u64: enum info_sandbox */
        INFO_HEALTH = 0x10168, /* block, one message for each device */
        INFO_HEALTH_DEVICE,    /* u64: its number for --devices */
        INFO_HEALTH_NAME,      /* text */
        INFO_HEALTH_STATE,     /* u64: enum info_health_state */
        INFO_HEALTH_FAILURES,  /* u64: failed checks in a row */
        INFO_WHOLE,            /* u64: 1, the last record for the exporter: no session is missing */

        /* INFO_SESSION: one for each device that the session has used */
        INFO_USE = 0x10170, /* block */
        INFO_USE_DEVICE,    /* u64: its number for --devices */
        INFO_USE_NAME,      /* text, at most 63 bytes */
        INFO_USE_BUSY_NS,   /* u64: how long commands of the session were in flight there */

        /* session_stats, from the supervisor: whose session that of this `process` and `name` is */
        INFO_ORIGIN = 0x10178, /* block */
        INFO_ORIGIN_CLIENT,    /* text: its name in the list of clients; empty: it has none */
        INFO_ORIGIN_USER,      /* text: as the client named itself; empty: not known */
        INFO_ORIGIN_HOST,      /* text: the same */
        INFO_ORIGIN_FROM,      /* text: its address or user, as the server sees it */
        INFO_ORIGIN_AGE_NS,    /* u64 */

        /* INFO_HEALTH: what the driver's management library tells; each may be absent */
        INFO_SENSOR_BUSY = 0x10180, /* u64: percent of the time */
        INFO_SENSOR_MEMORY_USED,    /* u64: bytes */
        INFO_SENSOR_MEMORY_TOTAL,   /* u64: bytes */
        INFO_SENSOR_TEMPERATURE,    /* u64: degrees Celsius */
        INFO_SENSOR_POWER,          /* u64: milliwatts */
        INFO_SENSOR_ENERGY,         /* u64: microjoules since the server read it first */

        /* session_stats, from the supervisor: a device that other clients do not get; `name` says so */
        INFO_RESERVED = 0x10188, /* block */
        INFO_RESERVED_DEVICE,    /* u64: its number for --devices */
        INFO_RESERVED_NAME,      /* text */
        INFO_RESERVED_CLIENT,    /* text: the client that gets it */
        INFO_RESERVED_UNTIL,     /* u64: seconds since 1970; absent: it has no end */

        /* session_stats, from the supervisor: a client with sessions, or with device time in a window */
        INFO_ACCOUNT = 0x10190, /* block */
        INFO_ACCOUNT_CLIENT, /* text: its name in the list of clients, or what the server knows it by */
        INFO_ACCOUNT_SESSIONS,     /* u64: now */
        INFO_ACCOUNT_SESSIONS_MAX, /* u64; absent: no limit */
        INFO_ACCOUNT_SHARE, /* block: of all devices together; and one for each device with limits */

        /* INFO_ACCOUNT_SHARE: what the client uses, and its limits; use that nobody counts is absent */
        INFO_SHARE_DEVICE = 0x10198, /* u64: its number for --devices; absent: all together */
        INFO_SHARE_NAME,             /* text: the device's */
        INFO_SHARE_MEMORY,           /* u64: bytes of buffers and images */
        INFO_SHARE_MEMORY_MAX,       /* u64; absent: no limit */
        INFO_SHARE_TIME_NS,          /* u64: device time in the window */
        INFO_SHARE_TIME_MAX_NS,      /* u64; absent: no limit */
        INFO_SHARE_WINDOW_NS,        /* u64: the length of the window */
        INFO_SHARE_WINDOW_LEFT_NS,   /* u64: until it ends */
        INFO_SHARE_PAUSED,           /* u64: 1: kernels wait until it ends */

        /* stats, and session_stats from the supervisor: what the session has used of a device with an energy counter */
        INFO_ENERGY = 0x101b0, /* block */
        INFO_ENERGY_DEVICE,    /* u64: its number for --devices */
        INFO_ENERGY_NAME,      /* text */
        INFO_ENERGY_UJ,        /* u64: microjoules, up to the last sample */
        INFO_ENERGY_SAMPLE,    /* u64, in stats only: the number of that sample, which grows */
};

enum {
        DEVICE_FLAG_LITTLE = 1, /* reserved for later use */
};

/* The numbers of INFO_TRACE_COMMAND. Times are of the server's monotonic clock, in ns. */
enum info_trace_command {
        INFO_TRACE_COMMAND_EVENT,
        INFO_TRACE_COMMAND_QUEUE,
        INFO_TRACE_COMMAND_DEVICE, /* INFO_TRACE_DEVICE's */
        INFO_TRACE_COMMAND_DIMS,   /* 0: it is no launch */
        INFO_TRACE_COMMAND_FLAGS,  /* enum info_trace_flags */
        INFO_TRACE_COMMAND_BYTES,
        INFO_TRACE_COMMAND_SUBMIT,
        INFO_TRACE_COMMAND_START,
        INFO_TRACE_COMMAND_END,
        INFO_TRACE_COMMAND_GLOBAL, /* 3 of them */
        INFO_TRACE_COMMAND_LOCAL = INFO_TRACE_COMMAND_GLOBAL + 3,
        INFO_TRACE_COMMAND_FIELDS = INFO_TRACE_COMMAND_LOCAL + 3,
};

enum info_trace_flags {
        TRACE_COMMAND_IN_ORDER = 1 << 0, /* the queue is */
        TRACE_COMMAND_BY_SERVER =
                1
                << 1, /* the times are those at which the server submitted it and noticed its end */
        TRACE_COMMAND_FAILED = 1 << 2,
};

enum info_sandbox {
        INFO_SANDBOX_WHOLE,
        INFO_SANDBOX_SHARED, /* sessions have no namespaces of their own */
        INFO_SANDBOX_OFF,    /* --sandbox 0 */
};

enum info_health_state {
        INFO_HEALTH_IN_SERVICE,
        INFO_HEALTH_KEPT_OUT,       /* new sessions do not get it until a check passes */
        INFO_HEALTH_OUT_OF_SERVICE, /* the same, after several failed checks */
};

/* How a device gets shared virtual memory. */
enum info_svm {
        INFO_SVM_NONE = 0,
        INFO_SVM_FOLLOWS = 1,       /* at any address that the client wants */
        INFO_SVM_OWN_ADDRESSES = 2, /* at an address that it chooses */
        INFO_SVM_SHARES = 3, /* it is in the client's process: the client's memory is its own */
};

/* Calls that the specification calls an error, but the device's implementation accepts. The client
 * does not refuse these; bits that it does not know change nothing. If a call is about a context,
 * all devices of the context have to accept it, unless the specification itself requires only one
 * device. */
enum device_accepts {
        /* clCreateBuffer: more than CL_DEVICE_MAX_MEM_ALLOC_SIZE. */
        DEVICE_ACCEPTS_BUFFER_SIZE = 1 << 0,
        /* Sub-buffers: an origin that is not aligned to CL_DEVICE_MEM_BASE_ADDR_ALIGN. */
        DEVICE_ACCEPTS_SUB_BUFFER_ORIGIN = 1 << 1,
        /* clSetKernelArg: local memory of size 0. */
        DEVICE_ACCEPTS_LOCAL_ARG_EMPTY = 1 << 2,
        /* clSetKernelArg: a buffer without a value, of any size: it is NULL. */
        DEVICE_ACCEPTS_NULL_ARG_SIZE = 1 << 3,
        /* clSetKernelArg: three quarters of the size of a vector: a vector of three without its padding. */
        DEVICE_ACCEPTS_VECTOR_ARG_SHORT = 1 << 4,
        /* Reads, writes and copies of rectangles without bytes. */
        DEVICE_ACCEPTS_RECT_EMPTY = 1 << 5,
        /* clEnqueueUnmapMemObject of NULL: nothing is unmapped. */
        DEVICE_ACCEPTS_UNMAP_NULL = 1 << 6,
        /* clEnqueueMarker without a place for its event. */
        DEVICE_ACCEPTS_MARKER_NO_EVENT = 1 << 7,
        /* clCreateImage: a row pitch without host memory. It is not used. */
        DEVICE_ACCEPTS_IMAGE_PITCH_UNUSED = 1 << 8,
        /* clCreateImage: a row pitch that is no multiple of a pixel. */
        DEVICE_ACCEPTS_IMAGE_ROW_ODD = 1 << 9,
        /* clCreateImage: a slice pitch that is no multiple of the row pitch. */
        DEVICE_ACCEPTS_IMAGE_SLICE_ODD = 1 << 10,
        /* clCreateImage: host memory that no flag uses. */
        DEVICE_ACCEPTS_IMAGE_HOST_UNUSED = 1 << 11,
        /* clCreateImage: flags that are in conflict with those of the buffer that it lies in. */
        DEVICE_ACCEPTS_IMAGE_PARENT_FLAGS = 1 << 12,
        /* clEnqueueMapImage without a place for its pitches. */
        DEVICE_ACCEPTS_MAP_NO_PITCH = 1 << 13,
        /* clSVMAlloc: an alignment of up to 4096. */
        DEVICE_ACCEPTS_SVM_PAGES = 1 << 14,
};

struct info_entry {
        uint32_t key;
        struct bytes value; /* borrowed; data is 8-byte aligned if the block is */
};

/* Is the whole block well formed? Nested blocks are not looked into. */
SP_NODISCARD int info_check(struct bytes block);

/* Take the next entry off the front of *block. 1: *ret is it; 0: the end, or malformed. */
int info_next(struct bytes *block, struct info_entry *ret);

/* The first entry with `key`. 1 found, 0 not. */
int info_find(struct bytes block, uint32_t key, struct bytes *ret);

/* The u64 value of `key`, or `fallback`. */
uint64_t info_u64(struct bytes block, uint32_t key, uint64_t fallback);

/* Append entries. */
SP_NODISCARD int info_put(struct buf *b, uint32_t key, const void *data, size_t size);
SP_NODISCARD int info_put_u64(struct buf *b, uint32_t key, uint64_t value);

/* Is the answer to this query one number of type size_t, or several of size_t or intptr_t? These have
 * another width on a 32-bit host. */
bool info_is_words(uint32_t key);

/* Append the words of such an answer in another width: `from` and `to` are 4 or 8 bytes. A number that is too large
 * becomes the largest one. An answer that is no whole number of words stays as it is. */
SP_NODISCARD int info_put_words(struct buf *b, uint32_t key, struct bytes value, size_t from,
                                size_t to);

/* Append an answer that an implementation in this process gave. */
SP_NODISCARD int info_put_native(struct buf *b, uint32_t key, const void *data, size_t size);

/* Append an answer as this process's application takes it. */
SP_NODISCARD int info_put_local(struct buf *b, uint32_t key, struct bytes value);

/* Open a nested block: everything appended to `b` until info_end belongs to it. *ret_mark is to be
 * handed to info_end. */
SP_NODISCARD int info_begin(struct buf *b, uint32_t key, size_t *ret_mark);
void info_end(struct buf *b, size_t mark);

#endif
