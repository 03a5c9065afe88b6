/* A backend executes commands in domains. A domain is one native context on this host, where one
 * replica of a buffer can live; devices of one domain share its buffers.
 *
 * Threads: the engine calls most operations under its lock, one at a time. It calls program.build,
 * program.compile, program.link and program.binary on threads of their own. Those run at the same
 * time as other operations, but never two of one program. The backend reports completions by
 * `complete` from any thread, never from inside an operation.
 *
 * Objects are opaque structs of the backend. The engine owns each object and releases it exactly
 * once; the backend keeps alive the objects that commands in flight use. Errors are OpenCL's
 * (cl_int, negative), unlike everywhere else, because they travel to the application as they
 * are. */
#ifndef SPANCL_BACKEND_BACKEND_H
#define SPANCL_BACKEND_BACKEND_H

#include <CL/cl.h>
#include <stdbool.h>

#include "base/bytes.h"
#include "config/options.h"
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

/* The times of a command; CLOCK_MONOTONIC ns of this host, all zero if not known. */
struct backend_times {
        uint64_t submit_ns, start_ns, end_ns;
};

/* Which new memory is cleared, so that it holds no data of another process. In the order of
 * --clear-memory. */
enum backend_clear {
        BACKEND_CLEAR_APART, /* that of devices that have their own; the host's is the system's business */
        BACKEND_CLEAR_ALL,
        BACKEND_CLEAR_OFF,
};

/* Which devices of one native platform share a context, and so a domain. In the order of --contexts. */
enum backend_contexts {
        BACKEND_CONTEXTS_AUTO,     /* the way that moves data between them fastest */
        BACKEND_CONTEXTS_PLATFORM, /* all, if the implementation can */
        BACKEND_CONTEXTS_DEVICE,   /* none */
};

/* Which implementations the native backend opens; its numbers of devices count all. */
enum backend_calls {
        BACKEND_CALLS_ANY,
        BACKEND_CALLS_RETURN, /* those whose calls return soon */
        BACKEND_CALLS_BLOCK,  /* those whose calls may block for as long as kernels run */
};

/* --driver-calls, in the order of its values. */
enum backend_driver_calls { DRIVER_CALLS_AUTO, DRIVER_CALLS_DIRECT, DRIVER_CALLS_THREAD };

struct backend_params {
        /* Options that a backend reads when it is opened: --devices, --almaif, --media, --clear-memory,
         * --contexts, --driver-calls. NULL: the defaults. */
        const struct config_options *options;
        unsigned first_number;                  /* number of its first device, for the filter */
        const struct backend_ops *const *parts; /* composite: its backends, up to a NULL */
        enum backend_calls calls;
        const char *scratch_dir; /* an existing private folder for temporary files */
        bool in_process;         /* this is the client's own process */
        /* Command `cookie` is complete; status 0 or negative. Any thread, outside any operation. */
        void (*complete)(void *user, void *cookie, cl_int status, const struct backend_times *t);
        /* The driver's context is lost, and with it all objects of the engine. Nothing will work
         * any more, and commands in flight may never be reported. `text` says why. Called once, on
         * any thread, also inside an operation, where the engine's lock is held. May be NULL. */
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
        /* KERNEL: arguments were set by kernel.set_arg before */
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
        /* In an in-order queue, without cookie: most likely nobody will ever ask for its
         * completion. There is no event (*ret is NULL) on an implementation where a failure
         * stays. */
        bool untracked;
        /* A READ that should rather complete before `submit` returns than be reported. Either
         * nothing is in flight, or the read is small, or the buffer's bytes can be had. If it does,
         * there is no event (*ret is NULL) and no report. */
        bool now;
        /* A KERNEL, and no other command is in flight in any queue. */
        bool alone;
        /* Kernels may print. Some implementations print only when their event is queried, so
         * completion must be found by a query. */
        bool prints;
};

enum {
        BACKEND_DEVICE_NAME = 16,      /* bytes */
        BACKEND_SHARED_UNIT = 2 << 20, /* bytes */
};

enum backend_polled {
        BACKEND_IDLE,     /* nothing is in flight that this thread would report */
        BACKEND_WAITING,  /* commands are in flight, none is complete */
        BACKEND_REPORTED, /* commands were complete and were reported */
};

struct backend_ops {
        const char *name;

        /* Load drivers, without opening anything, so that processes forked from this one share
         * them. Only drivers with such file names are loaded (icd_preload). Returns their number.
         * NULL: nothing to load. */
        size_t (*preload)(const char *patterns);

        /* Load drivers and find devices. SP_E_NODEV: none (after the filter), SP_E_NOMEM. */
        int (*open)(const struct backend_params *params, struct backend **ret);

        /* Close the backend; all objects have been released. Waits for commands in flight. */
        void (*close)(struct backend *b);

        unsigned (*domain_count)(struct backend *b);

        /* True if there are implementations that `backend_params.calls` left out. NULL: no. */
        bool (*leaves_out)(const struct backend *b);

        /* Devices, by their numbers from 0 on, and sub-devices. */
        struct {
                unsigned (*count)(struct backend *b);
                unsigned (*domain)(struct backend *b, unsigned device);
                /* Get the number and name by which the filter knows the device: its number among
                 * all devices that were found, and its name (cut at `size`). False: only one
                 * process at a time can use the device, so other processes can't tell if it works.
                 * NULL: that is so for all devices. */
                bool (*label)(struct backend *b, unsigned device, unsigned *ret_number,
                              char *ret_name, size_t size);
                /* Append all contents of the INFO_DEVICE block of device `device`. */
                int (*info)(struct backend *b, unsigned device, struct buf *out);
                /* clCreateSubDevices: the new devices have the numbers from *ret_first on and a
                 * domain of their own. NULL: no device can be divided. */
                cl_int (*partition)(struct backend *b, unsigned device,
                                    const cl_device_partition_property *properties,
                                    unsigned *ret_first, unsigned *ret_count);
                /* Release a sub-device. No queue of it is left, and no new object of it is
                 * created. */
                void (*release)(struct backend *b, unsigned device);
        } device;

        /* Buffers, images and pipes, each a struct backend_buffer. */
        struct {
                cl_int (*create)(struct backend *b, unsigned domain, cl_mem_flags flags,
                                 size_t size, struct backend_buffer **ret);
                cl_int (*create_sub)(struct backend *b, struct backend_buffer *parent,
                                     cl_mem_flags flags, size_t origin, size_t size,
                                     struct backend_buffer **ret);
                /* Create an image. `d` is valid (proto/image.h). parent: the buffer or image whose
                 * bytes the image uses, which are enough, or NULL. It is released by `release`.
                 * CL_INVALID_OPERATION: no images. */
                cl_int (*create_image)(struct backend *b, unsigned domain, cl_mem_flags flags,
                                       const struct image_desc *d, struct backend_buffer *parent,
                                       struct backend_buffer **ret);
                /* Create a pipe, which is released by `release`. NULL: no device has pipes. */
                cl_int (*create_pipe)(struct backend *b, unsigned domain, cl_uint packet_size,
                                      cl_uint packets, struct backend_buffer **ret);
                void (*release)(struct backend_buffer *buffer);
                /* Get the buffer's bytes, if its devices work on the host's memory itself. The
                 * caller may write there while no command uses them, and later commands see the
                 * writes. NULL, or returns NULL: they can't be had. */
                void *(*bytes)(struct backend_buffer *buffer);
        } buffer;

        /* Device memory that two processes of this host use, for example as staging memory between them. NULL: no
         * device has such memory. */
        struct {
                /* Get the name of the device that has the memory, which is the same in all processes of the host.
                 * CL_INVALID_OPERATION: the domain has no such memory. */
                cl_int (*device)(struct backend *b, unsigned domain,
                                 uint8_t ret[BACKEND_DEVICE_NAME]);
                /* Create a buffer over new memory, and get a descriptor of the memory for the other process, which the
                 * caller closes. `size` is a multiple of BACKEND_SHARED_UNIT. The memory is cleared if new memory is.
                 * Blocks for about a millisecond, and for up to a second while the driver starts. */
                cl_int (*create)(struct backend *b, unsigned domain, size_t size,
                                 struct backend_buffer **ret, int *ret_fd);
                /* Create a buffer over the memory of a descriptor that another process has passed. The descriptor stays
                 * the caller's. The other process may write to the memory at any time. An error if the descriptor is
                 * not of such memory, or the memory has less than `size` bytes. */
                cl_int (*import)(struct backend *b, unsigned domain, int fd, size_t size,
                                 struct backend_buffer **ret);
        } shared;

        /* Get `size` bytes of the host's memory that the domain's devices transfer fastest from and
         * to. `given`: use these whole pages, which stay mapped until close, and which others may
         * have mapped, too; NULL: allocate. Stays until close. CL_INVALID_OPERATION: any memory is
         * as good, or `given` can't be made fast. */
        cl_int (*host_memory)(struct backend *b, unsigned domain, size_t size, void *given,
                              void **ret);

        /* Shared virtual memory. */
        struct {
                /* Create shared virtual memory for a device that has it (INFO_DEVICE_SVM): `size`
                 * bytes at `address`, or if that is 0 at an address of the device's choice.
                 * `mapped`: the memory is mapped already; it is taken over and ends with vm_unmap.
                 * CL_INVALID_HOST_PTR: it can't be at this address. */
                cl_int (*create)(struct backend *b, unsigned device, uint64_t address, size_t size,
                                 bool mapped, struct backend_svm **ret, uint64_t *ret_address);
                /* Create a buffer over `size` bytes of `svm` from `offset` on. If the domain does
                 * not have that memory, it is an ordinary buffer. Released before `svm` is. */
                cl_int (*create_buffer)(struct backend *b, unsigned domain, struct backend_svm *svm,
                                        cl_mem_flags flags, size_t offset, size_t size,
                                        struct backend_buffer **ret);
                void (*release)(struct backend_svm *svm);
        } svm;

        /* Samplers of images. */
        struct {
                /* CL_INVALID_OPERATION: no images. */
                cl_int (*create)(struct backend *b, unsigned domain, const struct sampler_desc *d,
                                 struct backend_sampler **ret);
                void (*release)(struct backend_sampler *s);
        } sampler;

        /* Queues of this host. */
        struct {
                cl_int (*create)(struct backend *b, unsigned device,
                                 cl_command_queue_properties props, struct backend_queue **ret);
                void (*release)(struct backend_queue *q);
                /* Make sure that submitted commands start (clFlush). */
                void (*flush)(struct backend_queue *q);
                /* True if all later commands of the domain fail once a command of the queue has
                 * failed. NULL: no. */
                bool (*failure_stays)(const struct backend_queue *q);
                /* The largest number of commands in flight at which a marker or barrier without
                 * wait list may be submitted to an out-of-order queue. With more it takes too long.
                 * NULL: any number. */
                size_t (*marker_max)(const struct backend_queue *q);
        } queue;

        /* Queues that kernels enqueue to. NULL, as kernel.set_queue: no device has such queues. */
        struct {
                /* Create a queue of `size` bytes on the device. */
                cl_int (*create)(struct backend *b, unsigned device,
                                 cl_command_queue_properties props, cl_uint size,
                                 struct backend_queue **ret);
                cl_int (*set_default)(struct backend_queue *q);
        } device_queue;

        /* Programs; some operations run on threads of their own (above). */
        struct {
                /* Create a program. `devices` (all of one domain) are the devices that it may be
                 * built for. kind and parts are those of the message program_create. A program of
                 * several domains is several backend programs. */
                cl_int (*create)(struct backend *b, unsigned domain, unsigned kind,
                                 const unsigned *devices, size_t device_count, struct bytes parts,
                                 struct backend_program **ret);
                /* Build. Blocking, on any thread. Appends INFO_BUILD and, if built, INFO_KERNEL
                 * records to `info` (NULL: they are known). The folders of -I in `options` already
                 * name server folders. Returns clBuildProgram's result. */
                cl_int (*build)(struct backend_program *p, const unsigned *devices,
                                size_t device_count, const char *options, struct buf *info);
                /* The same for clCompileProgram; there are no INFO_KERNEL records. */
                cl_int (*compile)(struct backend_program *p, const unsigned *devices,
                                  size_t device_count, const char *options, struct buf *info);
                /* clLinkProgram. CL_SUCCESS: *ret is the new program. Else there is none, but
                 * `info` may say why. */
                cl_int (*link)(struct backend *b, unsigned domain, const unsigned *devices,
                               size_t device_count, struct backend_program *const *inputs,
                               size_t input_count, const char *options, struct buf *info,
                               struct backend_program **ret);
                /* clSetProgramSpecializationConstant, before the build that is to use it. */
                cl_int (*constant)(struct backend_program *p, cl_uint id, struct bytes value);
                /* True if a binary costs as much time as a build, while the implementation caches
                 * compiled programs itself. A launch of a kernel with a required work-group size
                 * may then end the process meanwhile. NULL: no. */
                bool (*binary_is_dear)(struct backend *b, unsigned domain);
                /* CL_PROGRAM_BINARY_TYPE, also of a program made of binaries that is not built yet.
                 * NULL: all are executables. */
                cl_program_binary_type (*type)(struct backend_program *p, unsigned device);
                /* Append one INFO_PART with the binary for `device`. It is empty if there is none,
                 * as after a build that failed. */
                cl_int (*binary)(struct backend_program *p, unsigned device, struct buf *out);
                void (*release)(struct backend_program *p);
        } program;

        /* Kernels, and their arguments for the next launch. */
        struct {
                cl_int (*create)(struct backend_program *p, const char *name,
                                 struct backend_kernel **ret);
                /* Set an argument. `a->object` is resolved to the backend's `sampler` or
                 * `buffer`, which may be an image; NULL for a null buffer. ARG_SVM: the object
                 * is an address. */
                cl_int (*set_arg)(struct backend_kernel *k, const struct arg *a,
                                  struct backend_buffer *buffer, struct backend_sampler *sampler);
                cl_int (*set_queue)(struct backend_kernel *k, unsigned index,
                                    struct backend_queue *q);
                /* Answer the query `name`, as in kernel_query, for `input`: `size` bytes of value.
                 * The kernel's arguments are set. */
                cl_int (*query)(struct backend_kernel *k, unsigned device, uint32_t name,
                                const size_t *input, size_t input_count, size_t size, void *ret);
                void (*release)(struct backend_kernel *k);
        } kernel;

        /* Start a command. *ret is an event for the deps of later commands of the domain; the
         * engine releases it. An error: the command was not started, and `complete` will not be
         * called for it. */
        cl_int (*submit)(struct backend_queue *q, const struct backend_command *c,
                         struct backend_event **ret);

        /* Report complete commands on this thread. A thread that polls in a loop spares the
         * backend's own threads; with `last` it announces that it stops polling, until the next
         * call. Called without the engine's lock, by one thread at a time. NULL: polling is of no
         * use. */
        enum backend_polled (*poll)(struct backend *b, bool last);

        /* Events of commands that were started. */
        struct {
                void (*release)(struct backend_event *e);
                /* Report a command of `q` after all, once, though it was submitted without a
                 * cookie. An error: it will not be reported. NULL: every command is submitted with
                 * a cookie. */
                cl_int (*report)(struct backend_queue *q, struct backend_event *e, void *cookie);
                /* The status of a command that is complete because a later one of its in-order
                 * queue is. CL_COMPLETE, or the error of the command. */
                cl_int (*status)(struct backend_event *e);
        } event;
};

extern const struct backend_ops backend_native, backend_reference, backend_almaif, backend_media,
        backend_composite;

/* Find a backend by name ("native", "reference", "almaif", "media"); NULL: no such backend. */
const struct backend_ops *backend_find(const char *name);

enum { BACKEND_PARTS_MAX = 5 }; /* with a NULL behind them */

/* Open the devices of `ops` and the accelerators of the options together, and native
 * implementations whose calls block behind a thread. `calls` and `parts` of `params` are not read.
 * *ret_ops: what they are opened with. Errors as of backend_ops.open. */
SP_NODISCARD int backend_open(const struct backend_ops *ops, const struct backend_params *params,
                              const struct backend_ops **ret_ops, struct backend **ret);

#endif
