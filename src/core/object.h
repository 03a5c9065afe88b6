/* The objects behind OpenCL's handles. The first two members of each are for the ICD loader.
 * Everything mutable is guarded by the client's lock (core/client.h); members that are called
 * immutable may be read without it. */
#ifndef SPANCL_CORE_OBJECT_H
#define SPANCL_CORE_OBJECT_H

#include <CL/cl.h>
#include <spancl/availability.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "core/memory/placement.h"
#include "core/server_set.h"
#include "os/lock.h"
#include "os/thread.h"
#include "proto/args.h"
#include "proto/image.h"
#include "proto/info.h"

struct client;
struct prefetch;
struct server;

/* The client's lock as clang's analysis sees it: it does not know that all objects lead to the same
 * client. There is no such object. REQUIRES(client_held) marks a function that is called with the
 * lock held, which client_lock takes. */
extern struct lock client_held;

/* Type tags; the values are random so that a wrong pointer is noticed. Zeroed when freed. */
enum handle_type {
        HANDLE_PLATFORM = 0x70a1c3e5,
        HANDLE_DEVICE = 0x3b9d27f1,
        HANDLE_CONTEXT = 0x51e08b6d,
        HANDLE_QUEUE = 0x1c7f4a93,
        HANDLE_MEM = 0x6d2b95c7,
        HANDLE_PROGRAM = 0x2fa6e019,
        HANDLE_KERNEL = 0x48c3d77b,
        HANDLE_EVENT = 0x07b5f28d,
        HANDLE_SAMPLER = 0x6a19d3f4,
        HANDLE_COMMAND_BUFFER = 0x5e71c0a3,
        HANDLE_MUTABLE_COMMAND = 0x13d8b96f,
};

/* A call that the progress thread makes without the lock (client_defer). It is embedded in the
 * object that it is about. */
struct deferred {
        struct list link;
        void (*fn)(struct deferred *d);
};

struct handle {
        /* struct _cl_icd_dispatch. Aligned as the objects that begin with a handle are, also on 32-bit Arm. */
        _Alignas(8) const void *dispatch;
        enum handle_type type;
        atomic_uint refs; /* the application's references */
        /* References by other objects and commands in flight; the object is freed when both are 0.
         * The application's references together hold one of these. */
        atomic_uint holds;
};

struct _cl_platform_id {
        struct handle h;
        struct client *client;
};

/* A device. A root device lives as long as the client, a sub-device until nothing needs it.
 * Immutable except `available`, `listed` and `present`.
 *
 * If a server is restarted, its device becomes another object, of the new session
 * (core/link/new_session.c). The application keeps the first object's handle (`shown`). Objects
 * made from now on use the newest device (`present`). Contexts, and all objects in them, keep the
 * device that was present when they were made. */
struct _cl_device_id {
        struct handle h;
        struct server *server;
        unsigned index;      /* number on the server */
        unsigned domain;     /* number of the native context on the server */
        struct bytes info;   /* all of `mirror` */
        cl_device_id parent; /* of a sub-device, held; NULL: it is none */
        struct list link;    /* of a sub-device: the server's */
        cl_device_type type;
        bool available;
        bool listed;        /* clGetDeviceIDs has shown it (client.c) */
        cl_device_id shown; /* the device whose handle the application has; a sub-device: itself */
        cl_device_id present; /* a shown device: the device that stands for it now */
        struct client *client;
        /* Shown devices only: the callback that is notified when the device goes or comes
         * (core/link/availability.c). */
        struct {
                spancl_availability_fn fn; /* NULL: nobody */
                void *user_data;
                bool notified; /* the last news */
                bool gone;     /* it was unavailable at some time since */
                bool due;      /* `call` is deferred */
                struct deferred call;
        } watch;
        /* The answers of clGetDeviceInfo, which are the server's with core/device.c's masks; then the INFO_*
         * values of the device's INFO_DEVICE block. */
        struct buf mirror;
        /* often asked */
        size_t max_work_group_size, max_work_item_sizes[3];
        unsigned max_work_item_dimensions;
        unsigned sub_buffer_align; /* that it wants: bytes, not 0 */
        cl_ulong max_mem_alloc_size, local_mem_size;
        cl_ulong max_buffer_size; /* that it takes: at least max_mem_alloc_size */
        size_t max_parameter_size;
        uint64_t size_max; /* of its size_t */
        cl_command_queue_properties queue_properties;
        enum info_svm svm; /* shared virtual memory, as it can be had beside the other servers' */
        uint64_t accepts;  /* DEVICE_ACCEPTS_* */
};

/* A side queue for migrations on one domain. */
struct domain_queue {
        struct list link; /* context's */
        struct server *server;
        unsigned domain;
        uint64_t queue_id;
};

struct destructor {
        struct destructor *next; /* called in reverse order of registration */
        void(CL_CALLBACK *fn)(void *object, void *user_data);
        void *user_data;
};

struct _cl_context {
        struct handle h;
        struct list link; /* client_contexts() */
        struct client *client;
        cl_device_id *devices; /* immutable */
        cl_uint device_count;
        cl_context_properties *properties; /* as given, with the final 0; NULL if none */
        size_t property_count;             /* values in it */
        void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *);
        void *notify_data;
        struct destructor *destructors;
        struct deferred end; /* calls them */
        struct list domain_queues;
        struct list svm_chunks; /* core/memory/svm.h */
        atomic_bool paged;      /* an allocation of a paged svm_chunk was made */
        struct {
                struct list touched, hot; /* struct view */
                /* Kernels that may have written any allocation, and where the last one ran. */
                uint64_t launches;
                cl_device_id device; /* one of the context's */
        } views;                     /* core/memory/view.h */
        struct {
                struct list
                        events; /* that count as waited for, and are not complete (ahead.link) */
                unsigned count; /* of them */
                uint64_t stamp; /* counts all that ever were */
                uint64_t received_ns; /* when completions were last received for their sake */
                unsigned host_memory; /* memory objects with CL_MEM_USE_HOST_PTR */
                unsigned user_events; /* that are not set */
                cl_command_queue
                        late;     /* with a clFinish whose event is not ahead yet; NULL: none */
                bool allowed;     /* by the context's property, or else by SPANCL_FINISH */
                bool never;       /* something was done that shows early waits: all are real */
                bool ended;       /* waited for at the program's end */
                thread_id thread; /* of the last wait */
        } ahead;                  /* core/command/ahead.h */
};

struct _cl_command_queue {
        struct handle h;
        cl_context context;
        cl_device_id device;
        uint64_t id;
        uint64_t order; /* queue_order; 0: `id` */
        cl_command_queue_properties properties;
        cl_uint size;                       /* on the device: CL_QUEUE_SIZE */
        bool is_default;                    /* on the device: its default one in the context */
        cl_queue_properties *property_list; /* as given to clCreateCommandQueueWithProperties */
        size_t property_count;
        /* Core's (core/command/queue.c). */
        uint64_t last_event; /* id of the last command, 0: none */
        uint64_t last_at;    /* where its message is (session_unsent_at) */
        uint64_t completed;  /* in-order: every command up to this id is known to be complete */
        uint64_t finished;   /* the value of last_event when all was waited for */
        uint64_t unnamed;    /* the last command without an event */
        bool failed;         /* in-order: a command failed, so that ids tell nothing any more */
        unsigned
                unwatched; /* in-order: events that other servers wait for, since one was watched */
        struct list
                commands;  /* events not known to be complete (queue_link), in order of their ids */
        cl_event fence;    /* out-of-order: the last barrier, if it lags; not held */
        uint64_t ahead_ns; /* when its newest event came to be ahead */
        uint64_t ahead_last;   /* in-order: the newest event that was ever ahead */
        uint64_t ahead_seen;   /* the context's ahead.stamp up to which the commands are ordered */
        cl_int deferred_error; /* of a command without an event, for the next call that waits */
        struct prefetch
                *prefetch; /* core/command/prefetch.h; owned; NULL: no reads are sent ahead */
};

struct mapping {
        struct list link; /* the root's */
        cl_mem mem;       /* the mapped object: the root or an object in it */
        void *pointer;
        size_t offset, size;         /* buffer: of the root buffer's bytes */
        size_t origin[3], region[3]; /* image */
        cl_map_flags flags;
        bool waiting; /* in the call that maps it: the application does not have the pointer yet */
};

/* An allocation of cl_intel_unified_shared_memory. */
struct usm_kind {
        cl_uint type;        /* CL_MEM_TYPE_*_INTEL; 0: the memory is none */
        cl_device_id device; /* by the handle that the application has; NULL: none */
        cl_bitfield flags;   /* CL_MEM_ALLOC_FLAGS_INTEL */
};

struct _cl_mem {
        struct handle h;
        cl_context context;
        uint64_t id;
        cl_mem_flags flags; /* with the defaults filled in */
        /* The number of placed bytes. An image of its own: its pixels without gaps. An image in a
         * buffer: all bytes from its first to its last. */
        size_t size;
        struct image_desc image; /* type 0: a buffer, or a pipe */
        /* A pipe's packets can't be read or moved: it stays where it is used first. */
        struct {
                cl_uint packet_size, packets; /* 0: not a pipe */
                struct server *server;
                unsigned domain;
        } pipe;
        /* Image: in the application's memory; slice_pitch 0: it has no slices. */
        size_t row_pitch, slice_pitch;
        void *host_ptr; /* USE_HOST_PTR */
        struct {
                enum { HOST_WATCH_NEW, HOST_WATCH_RUNS, HOST_WATCH_ENDED } state;
                uint64_t digest; /* of the memory at the last launch */
        } host_watch;            /* of a root */
        void *initial;    /* COPY_HOST_PTR: our copy, until it has gone to a server; else NULL */
        unsigned sending; /* transfers that read `initial` now */
        cl_mem parent;    /* of a sub-buffer, or an image in a buffer or image; else NULL */
        size_t origin;    /* in the parent */
        /* The place of an allocation of shared virtual memory; host_ptr is its address. Such an
         * allocation is no handle of the application's. NULL: a memory object. */
        struct svm_chunk *chunk;
        struct usm_kind usm;
        struct view *view;       /* core/memory/view.h; owned; NULL: it has none */
        struct storage *storage; /* of a root buffer: where its shadow lies; NULL: on its own */
        cl_mem_properties *properties;
        size_t property_count;
        struct destructor *destructors;
        struct deferred end; /* calls them */
        bool awaited; /* released, its destructors are still to be called: one of the client's interests */
        cl_mem content;       /* holds how many of its bytes mean something; held; NULL: all do */
        struct list mappings; /* of the root only: also of objects in it */
        cl_uint map_count;
        /* Backing of mappings (and ALLOC_HOST_PTR), made at the first map. */
        void *shadow;
        struct placement placement; /* root only; with a parent: the parent's */
        struct server_set declared; /* servers that know the id */
};

struct _cl_sampler {
        struct handle h;
        cl_context context;
        uint64_t id;
        struct sampler_desc desc;
        cl_sampler_properties *properties; /* as given, with the final 0; NULL: none */
        size_t property_count;
        struct server_set declared; /* servers that know it */
};

/* One kernel of a built program, as far as it is known; immutable. */
struct kernel_arg_info {
        enum arg_kind kind;
        size_t size; /* of a value; 0: not known */
        cl_kernel_arg_address_qualifier address;
        cl_kernel_arg_access_qualifier access;
        cl_kernel_arg_type_qualifier type_qualifier;
        char *type_name, *name; /* NULL: not known */
        bool read_only;         /* the kernel can't write the buffer (const or constant) */
};

struct kernel_info {
        char *name, *attributes;
        unsigned name_number; /* names_of_kernel; 0: none yet (core/profile/names.h) */
        cl_uint arg_count;
        struct kernel_arg_info *args;
        bool native_info; /* CL_KERNEL_ARG_* are known */
        bool arg_info;    /* and may be queried */
        bool differs;     /* devices disagree about the arguments: no kernel object can be made */
        struct kernel_device *devices; /* index as in the program's */
};

/* A kernel on a device that the program was built for. */
struct kernel_device {
        struct bytes info; /* the block INFO_KERNEL_DEVICE; size 0: it was not built there */
        /* Often asked. */
        size_t required_size[3];    /* of a work-group, in the source; 0: none */
        size_t max_work_group_size; /* 0: not known */
        atomic_size_t
                accepted_group_size; /* the device took a launch with so many work-items a group */
};

struct program_build; /* core/program/program.h */
struct program_job;

struct _cl_program {
        struct handle h;
        cl_context context;
        uint64_t id;
        cl_device_id *devices;
        cl_uint device_count;
        unsigned kind; /* enum program_kind */
        char *source;  /* with a final NUL; NULL for binaries */
        size_t source_size;
        void *il;
        size_t il_size;
        struct buf constants;   /* of IL: INFO_CONSTANT for each that was set */
        struct bytes *binaries; /* per device, given by the application; owned; NULL for source */
        cl_program_binary_type *
                binary_types; /* theirs; owned; NULL: the servers were not asked (program_inspect) */
        char *kernel_names_given;    /* built-in kernels */
        struct program_build *build; /* of the last clBuildProgram; NULL: none yet */
        struct program_job *job;     /* the one in progress; NULL: none */
        struct bytes *executables;   /* per device: its binary as clGetProgramInfo gives it; owned,
                                        NULL or empty until asked for */
        struct buf sent_source; /* the servers' version, if not `source` (core/program/include.h) */
        struct server_set declared; /* servers that know it */
        unsigned kernel_count;      /* attached kernel objects */
        bool prints;                /* its kernels may print: the client can't rule that out */
};

/* One argument's value; `version` is 0 while not set. */
struct kernel_arg {
        uint64_t version;   /* value of kernel->version when it was set */
        struct arg arg;     /* arg.value is owned */
        cl_mem mem;         /* ARG_BUFFER, ARG_IMAGE; not retained (clSetKernelArg doesn't) */
        cl_sampler sampler; /* ARG_SAMPLER; the same. ARG_QUEUE: arg.object tells */
};

/* Allocations that a kernel reaches by pointers other than its arguments: a set of clSetKernelExecInfo's. */
enum kernel_reach {
        KERNEL_REACH_SVM, /* CL_KERNEL_EXEC_INFO_SVM_PTRS */
        KERNEL_REACH_USM, /* CL_KERNEL_EXEC_INFO_USM_PTRS_INTEL */
};

struct kernel_pointers {
        const void **at; /* owned */
        size_t count;
};

struct _cl_kernel {
        struct handle h;
        cl_program program;
        uint64_t id;
        struct kernel_info *info; /* owned by the program's build, which the kernel holds */
        struct program_build *build;
        struct kernel_arg *args;
        uint64_t version; /* counts clSetKernelArg, and changes of `reached` */
        /* By the numbers of servers, those of later contexts left out: the version that each has; 0: the
         * kernel is not declared there yet. */
        uint64_t *sent;
        struct kernel_pointers reached[2]; /* by enum kernel_reach */
        unsigned char reaches;             /* CL_KERNEL_EXEC_INFO_INDIRECT_*: bits of usm_bit() */
        /* The last call of kernel_is_right: the device, the version, and client.objects.gone at that time. */
        struct {
                cl_device_id device;
                uint64_t version, gone;
        } right;
};

struct event_callback {
        struct event_callback *next; /* the one that was registered before */
        struct deferred call;
        cl_event event; /* held while the call is deferred */
        cl_int type, status;
        void(CL_CALLBACK *fn)(cl_event, cl_int, void *);
        void *user_data;
};

/* Work that the client does after all else of a command is done: one of the event's parts. */
struct event_tail {
        /* Called with the lock held; `status`: the result of the other parts. Calls
         * event_part_done, at once or later. */
        void (*run)(struct event_tail *t, cl_event e, cl_int status);
        void (*free)(struct event_tail *t);
};

struct _cl_event {
        struct handle h;
        cl_context context;
        cl_command_queue queue; /* NULL: user event */
        bool many_queues;       /* of a command buffer that has more than that one */
        cl_command_type command;
        uint64_t id;
        struct server
                *server; /* where it completes; NULL: user event, or completed by the client */
        cl_int status;   /* CL_QUEUED ... CL_COMPLETE or negative */
        cl_int result;   /* the first error of its parts */
        unsigned parts;  /* still missing before it completes: the server's notification, bytes */
        bool tracked;    /* in the client's map of pending events, which then has a hold */
        bool stands_in;  /* for a command without an event object, which is waited for */
        bool watched;    /* the server notifies success, too, or its notification is not missing */
        bool notified;   /* the server's notification has come, or is not missing */
        cl_ulong queued_ns, submit_ns, start_ns, end_ns; /* client's CLOCK_MONOTONIC */
        struct event_callback *callbacks;
        struct event_tail *tail;    /* owned; NULL: none */
        struct server_set imported; /* servers that were or will be told of the completion */
        struct server_set relay; /* servers that this client has to notify, because no peer will */
        struct list queue_link;
        uint32_t profile_row; /* the ledger's, and 1; 0: none (core/profile/profile.h) */
        uint32_t journal; /* its place in the journal, and 1; 0: none (core/profile/journal.h) */
        /* Order (event.c). */
        bool lags;             /* the client has to take bytes, or run the tail */
        unsigned before;       /* events that must complete first; each is one of its parts */
        struct list followers; /* events that must complete after it */
        struct outgoing *held; /* bytes that go when `before` is 0, held too; NULL: none */
        struct {
                struct list link;  /* the context's */
                uint64_t since_ns; /* when it counted as waited for; 0: it is not ahead */
                uint64_t stamp;    /* the context's then */
                bool finish;       /* it stands for all commands of the queue up to it */
                bool waited;       /* clWaitForEvents has let it pass */
                bool guessed;      /* of a read ahead, which the program did not enqueue */
        } ahead;                   /* core/command/ahead.h */
};

#endif
