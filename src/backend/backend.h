/* A backend executes commands in domains. A domain is one native context on this host, where one
 * replica of a buffer can live; devices of one domain share its buffers.
 *
 * Threads: the engine calls all operations but program_build, program_compile, program_link
 * and program_binary under its lock, one at a time; those run on threads of their own, at the same time
 * as others, but not two of one program. The backend reports
 * completions by `complete` from any thread, never from inside an operation.
 *
 * Objects are opaque structs of the backend; each has one owner, the engine, who releases it exactly
 * once; the backend keeps alive what commands in flight use. Errors are OpenCL's (cl_int, negative),
 * unlike everywhere else, because they travel to the application as they are. */
#ifndef SPANCL_BACKEND_BACKEND_H
#define SPANCL_BACKEND_BACKEND_H

#include <CL/cl.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "proto/args.h"
#include "proto/image.h"
#include "proto/info.h"

struct backend;
struct backend_buffer; /* or image, or pipe */
struct backend_sampler;
struct backend_svm;
struct backend_queue;
struct backend_program;
struct backend_kernel;
struct backend_event;

/* When a command ran; CLOCK_MONOTONIC ns of this host, all zero when not known. */
struct backend_times {
        uint64_t submit_ns, start_ns, end_ns;
};

/* Which new memory is cleared, so that nothing of another process is in it. */
enum backend_clear {
        BACKEND_CLEAR_OFF,
        BACKEND_CLEAR_APART, /* that of devices that have their own; the host's is the system's business */
        BACKEND_CLEAR_ALL,
};

/* Which devices of one native platform share a context, and so a domain. In the order of --contexts. */
enum backend_contexts {
        BACKEND_CONTEXTS_AUTO,     /* whatever moves data between them fastest */
        BACKEND_CONTEXTS_PLATFORM, /* all, if the implementation can */
        BACKEND_CONTEXTS_DEVICE,   /* none */
};

struct backend_params {
        /* Device filter: NULL or "" all; else a comma-separated list of device numbers ("0,2"), types
         * ("cpu", "gpu") or parts of names. */
        const char *devices;
        unsigned first_number;    /* of its devices, for the filter */
        const char *accelerators; /* almaif: where they are, as in SPANCL_ALMAIF; NULL: none */
        const struct backend_ops *host; /* composite: what has the other devices */
        const char *scratch_dir;        /* an existing private folder for temporary files */
        bool in_process;                /* this is the client's own process */
        enum backend_clear clear;
        enum backend_contexts contexts;
        /* Command `cookie` is complete; status 0 or negative. Any thread, outside any operation. */
        void (*complete)(void *user, void *cookie, cl_int status, const struct backend_times *t);
        /* The driver's context is lost, and with it all that the engine has: nothing will work any more, and commands in
         * flight may never be reported. `text` says
         * why. Once, on any thread, also inside an operation, where the engine's lock is held. May be NULL. */
        void (*broken)(void *user, const char *text);
        void *user;
};

enum backend_op {
        BACKEND_KERNEL,
        BACKEND_WRITE,      /* host memory → buffer */
        BACKEND_READ,       /* buffer → host memory */
        BACKEND_WRITE_RECT, /* host memory without gaps → box */
        BACKEND_READ_RECT,
        BACKEND_COPY,
        BACKEND_COPY_RECT,
        BACKEND_FILL,
        BACKEND_WRITE_IMAGE, /* host memory without gaps → region of an image */
        BACKEND_READ_IMAGE,
        BACKEND_COPY_IMAGE,
        BACKEND_IMAGE_TO_BUFFER,
        BACKEND_BUFFER_TO_IMAGE,
        BACKEND_FILL_IMAGE, /* pattern: 16 bytes of colour */
        BACKEND_MARKER,     /* completes after deps, or all earlier commands of the queue */
        BACKEND_BARRIER,    /* and later ones wait for it */
};

struct backend_box {
        size_t origin[3]; /* bytes, rows, slices; pixels of images, which have no pitches */
        size_t row_pitch, slice_pitch;
};

struct backend_command {
        enum backend_op op;
        /* KERNEL: arguments were set by kernel_set_arg before */
        struct backend_kernel *kernel;
        unsigned dims;
        const size_t *offset, *global, *local; /* offset, local: NULL if none */
        /* transfers: `buffer` is the destination of writes, copies, fills, the source of reads */
        struct backend_buffer *buffer, *source;
        size_t offset_bytes, source_offset, size;
        void *host;          /* valid until complete */
        const void *pattern; /* FILL, copied */
        size_t pattern_size;
        struct backend_box box, source_box;
        size_t region[3];
        /* dependencies in the same domain */
        struct backend_event *const *deps;
        size_t dep_count;
        /* handed to `complete`; NULL: do not report */
        void *cookie;
        /* In an in-order queue, without cookie: most likely nobody will ever ask for it. There is no event (*ret
         * is NULL) where a failure stays. */
        bool untracked;
        /* A READ while nothing is in flight, a small one, or of a buffer whose bytes can be had: better complete when
         * `submit` returns than reported. Then there is no event (*ret is NULL) and no report. */
        bool now;
        /* A KERNEL while nothing else is in flight, in any queue. */
        bool alone;
        /* Kernels may print, which some implementations do when they look at an event: no other way to find the end. */
        bool prints;
};

enum backend_polled {
        BACKEND_IDLE,     /* nothing is in flight that this thread would report */
        BACKEND_WAITING,  /* something is, but not complete */
        BACKEND_REPORTED, /* something was complete */
};

struct backend_ops {
        const char *name;

        /* Load, without opening anything, what processes forked from this one can share: of drivers those
         * with such file names (icd_preload). How many it was. NULL: there is nothing. */
        size_t (*preload)(const char *patterns);

        /* Load, find devices. SP_E_NODEV: none (after the filter), SP_E_NOMEM. */
        int (*open)(const struct backend_params *params, struct backend **ret);
        /* All objects have been released. Waits for commands in flight. */
        void (*close)(struct backend *b);

        unsigned (*device_count)(struct backend *b);
        unsigned (*device_domain)(struct backend *b, unsigned device);
        unsigned (*domain_count)(struct backend *b);
        /* The filter knows the device by these: its number among all that were found, and its name (cut at `size`). False:
         * one process at a time can use it, so that others can't tell if it works. NULL: that is so for all. */
        bool (*device_label)(struct backend *b, unsigned device, unsigned *ret_number,
                             char *ret_name, size_t size);
        /* Append everything of device `device` that goes into its INFO_DEVICE block. */
        int (*device_info)(struct backend *b, unsigned device, struct buf *out);

        /* clCreateSubDevices: the new devices have the numbers from *ret_first on and a domain of their
         * own. NULL: no device can be divided. */
        cl_int (*device_partition)(struct backend *b, unsigned device,
                                   const cl_device_partition_property *properties,
                                   unsigned *ret_first, unsigned *ret_count);
        /* Of a sub-device; no queue of it is left, and nothing new is asked of it. */
        void (*device_release)(struct backend *b, unsigned device);

        cl_int (*buffer_create)(struct backend *b, unsigned domain, cl_mem_flags flags, size_t size,
                                struct backend_buffer **ret);
        cl_int (*sub_buffer_create)(struct backend *b, struct backend_buffer *parent,
                                    cl_mem_flags flags, size_t origin, size_t size,
                                    struct backend_buffer **ret);
        /* `d` is a valid one (proto/image.h); parent: whose bytes it has (they are as many as it
         * needs), or NULL. Ends with buffer_release. CL_INVALID_OPERATION: no images. */
        cl_int (*image_create)(struct backend *b, unsigned domain, cl_mem_flags flags,
                               const struct image_desc *d, struct backend_buffer *parent,
                               struct backend_buffer **ret);
        /* Ends with buffer_release. NULL: no device has pipes. */
        cl_int (*pipe_create)(struct backend *b, unsigned domain, cl_uint packet_size,
                              cl_uint packets, struct backend_buffer **ret);
        void (*buffer_release)(struct backend_buffer *buffer);
        /* The buffer's bytes, where its devices work on the host's memory itself: what is written there while no command
         * uses them is what later commands find. NULL, or returns it: they can't be had. */
        void *(*buffer_bytes)(struct backend_buffer *buffer);

        /* `size` bytes of the host's memory that transfers from and to the devices of the domain are
         * fastest with: `given`, whole pages that stay mapped until close, which others may have mapped, too; NULL: its own. Stays
         * until close. CL_INVALID_OPERATION: any memory is as good, or what was given can't be made so. */
        cl_int (*host_memory)(struct backend *b, unsigned domain, size_t size, void *given,
                              void **ret);

        /* Shared virtual memory for a device that says so (INFO_DEVICE_SVM): `size` bytes at `address`;
         * 0: where the device wants it. `mapped`: the memory is there, ends with vm_unmap, and is
         * taken over. CL_INVALID_HOST_PTR: it can't be there. */
        cl_int (*svm_create)(struct backend *b, unsigned device, uint64_t address, size_t size,
                             bool mapped, struct backend_svm **ret, uint64_t *ret_address);
        /* A buffer with `size` bytes of `svm` from `offset` on; if the domain does not have that
         * memory, one as any other. Released before `svm` is. */
        cl_int (*svm_buffer_create)(struct backend *b, unsigned domain, struct backend_svm *svm,
                                    cl_mem_flags flags, size_t offset, size_t size,
                                    struct backend_buffer **ret);
        void (*svm_release)(struct backend_svm *svm);

        /* CL_INVALID_OPERATION: no images. */
        cl_int (*sampler_create)(struct backend *b, unsigned domain, const struct sampler_desc *d,
                                 struct backend_sampler **ret);
        void (*sampler_release)(struct backend_sampler *s);

        cl_int (*queue_create)(struct backend *b, unsigned device,
                               cl_command_queue_properties props, struct backend_queue **ret);
        /* A queue on the device, of `size` bytes. NULL: no device has them; else the two that follow
         * are there, too. */
        cl_int (*device_queue_create)(struct backend *b, unsigned device,
                                      cl_command_queue_properties props, cl_uint size,
                                      struct backend_queue **ret);
        cl_int (*device_queue_set_default)(struct backend_queue *q);
        cl_int (*kernel_set_queue)(struct backend_kernel *k, unsigned index,
                                   struct backend_queue *q);
        void (*queue_release)(struct backend_queue *q);
        /* Make sure that what was submitted starts (clFlush). */
        void (*queue_flush)(struct backend_queue *q);

        /* `devices` (all of one domain) are those it may be built for. kind and parts as in the
         * message program_create. A program of several domains is several backend programs. */
        cl_int (*program_create)(struct backend *b, unsigned domain, unsigned kind,
                                 const unsigned *devices, size_t device_count, struct bytes parts,
                                 struct backend_program **ret);
        /* Blocking, on any thread. Appends INFO_BUILD and, if built, INFO_KERNEL records to `info`
         * (NULL: they are known). The folders of -I in `options` already name server folders.
         * Returns what clBuildProgram would. */
        cl_int (*program_build)(struct backend_program *p, const unsigned *devices,
                                size_t device_count, const char *options, struct buf *info);
        /* The same for clCompileProgram; there are no INFO_KERNEL records. */
        cl_int (*program_compile)(struct backend_program *p, const unsigned *devices,
                                  size_t device_count, const char *options, struct buf *info);
        /* clLinkProgram. CL_SUCCESS: *ret is the new program. Else there is none, but `info` may tell
         * why. */
        cl_int (*program_link)(struct backend *b, unsigned domain, const unsigned *devices,
                               size_t device_count, struct backend_program *const *inputs,
                               size_t input_count, const char *options, struct buf *info,
                               struct backend_program **ret);
        /* clSetProgramSpecializationConstant, before the build that is to use it. */
        cl_int (*program_constant)(struct backend_program *p, cl_uint id, struct bytes value);
        /* Does a binary take as long as a build, while the implementation keeps what it compiled itself? A launch
         * meanwhile, of a kernel with a required work-group size, may then end the process. NULL: no. */
        bool (*binary_is_dear)(struct backend *b, unsigned domain);
        /* CL_PROGRAM_BINARY_TYPE, also of one made of binaries that is not built yet. NULL: all are
         * executables. */
        cl_program_binary_type (*program_type)(struct backend_program *p, unsigned device);
        /* Append one INFO_PART with the binary for `device`. */
        cl_int (*program_binary)(struct backend_program *p, unsigned device, struct buf *out);
        void (*program_release)(struct backend_program *p);

        cl_int (*kernel_create)(struct backend_program *p, const char *name,
                                struct backend_kernel **ret);
        /* `a->object` is resolved: `buffer` (NULL for a null buffer), which may be an image, or
         * `sampler` is the backend's. ARG_SVM: the object is an address. */
        cl_int (*kernel_set_arg)(struct backend_kernel *k, const struct arg *a,
                                 struct backend_buffer *buffer, struct backend_sampler *sampler);
        /* Query `name` as in kernel_query for `input`: `size` bytes of value. Arguments are set. */
        cl_int (*kernel_query)(struct backend_kernel *k, unsigned device, uint32_t name,
                               const size_t *input, size_t input_count, size_t size, void *ret);
        void (*kernel_release)(struct backend_kernel *k);

        /* Start a command. *ret is an event for the deps of later commands of the domain, to be
         * released by the engine. An error means that it was not started and `complete` will not be
         * called for it. */
        cl_int (*submit)(struct backend_queue *q, const struct backend_command *c,
                         struct backend_event **ret);
        void (*event_release)(struct backend_event *e);
        /* Report after all, once, a command of `q` that was submitted without a cookie. An error: it will not
         * be. NULL: every command is submitted with a cookie. */
        cl_int (*event_report)(struct backend_queue *q, struct backend_event *e, void *cookie);
        /* Report what is complete, on this thread. A thread that calls this again and again spares the
         * backend's own threads; with `last` it says that it does so no more, until the next time.
         * Without the engine's lock, one thread at a time. NULL: no use for it. */
        enum backend_polled (*poll)(struct backend *b, bool last);
        /* Of a command that is complete, because a later one of its in-order queue is: CL_COMPLETE, or how it
         * failed. */
        cl_int (*event_status)(struct backend_event *e);
        /* Once a command of the queue has failed, do all later ones of the domain fail, too? NULL: no. */
        bool (*failure_stays)(const struct backend_queue *q);
        /* With how many commands in flight before it a marker or barrier behind all of a queue without order may be
         * submitted: with more it takes too long. NULL: any number. */
        size_t (*marker_max)(const struct backend_queue *q);
};

extern const struct backend_ops backend_native, backend_reference, backend_almaif,
        backend_composite;

/* By name ("native", "reference", "almaif"); NULL: no such backend. */
const struct backend_ops *backend_find(const char *name);

/* What to open for `ops` with accelerators (NULL: none) beside its devices. */
const struct backend_ops *backend_with(const struct backend_ops *ops, const char *accelerators);

/* For the simulator: let up to `max` pending commands of a reference backend that was opened with
 * `backend_reference_manual` set run now, on the calling thread; returns how many ran. Otherwise the
 * reference backend runs them on a thread of its own. */
extern bool backend_reference_manual;
/* Read at open: 0 runs commands in the order of submission; else one that may run is chosen by this
 * seed, so that a missing dependency shows. */
extern uint64_t backend_reference_seed;
/* Read at open: failures of a domain stay. */
extern bool backend_reference_failure_stays;
/* Read at open: marker_max. */
extern size_t backend_reference_marker_max;
/* Read at open: buffers' bytes can be had (buffer_bytes). */
extern bool backend_reference_bytes;
size_t backend_reference_step(struct backend *b, size_t max);

#endif
