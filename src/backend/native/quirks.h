/* The peculiarities of native implementations: one table, quirks.c. */
#ifndef SPANCL_BACKEND_NATIVE_QUIRKS_H
#define SPANCL_BACKEND_NATIVE_QUIRKS_H

enum arg_info {
        ARG_INFO_RETRY, /* build with -cl-kernel-arg-info; if that fails, build without; never compile with it */
        ARG_INFO_ADD,  /* build with it: a failure is the program's own */
        ARG_INFO_KEEP, /* don't add it: harmful, or the information is there anyway */
};

/* How the backend notices completion; the figures are in
 * bench/results/2026-11-21-completion-callback-or-wait.md. */
enum completion {
        COMPLETION_CALLBACK, /* clSetEventCallback, reported on the thread that calls it */
        /* The polling thread polls (notify_poll). While it sleeps, each queue has a thread. It
         * waits in clWaitForEvents, or for an out-of-order queue polls now and then. NVIDIA's
         * callbacks come up to 20 ms late when nothing else is going on. */
        COMPLETION_WAIT,
};

/* How a program of source is built or compiled again. */
enum rebuild {
        REBUILD_SAME,
        REBUILD_ANEW, /* fails after some histories of the program: make a new one of its source */
};

enum sub_devices {
        SUB_DEVICES_GO,   /* they end when they are released */
        SUB_DEVICES_STAY, /* they end with the process: complete commands may still use them */
};

/* A cache on disk, shared by processes. */
enum disk_cache {
        DISK_CACHE_SAFE,
        DISK_CACHE_RACES, /* a file is removed before it is rewritten: a process that reads it meanwhile fails */
};

/* Commands on 1D images of buffers. Kernels are not concerned. */
enum buffer_images {
        BUFFER_IMAGES_WORK,
        BUFFER_IMAGES_FAIL, /* they crash, or give wrong results: use commands on the buffer */
};

/* The effect of a failed command on later ones in an in-order queue. */
enum failure {
        FAILURE_SHOWS, /* perhaps nothing: query each command */
        FAILURE_STAYS, /* all of them fail, too: the context is lost */
};

/* CL_PROGRAM_KERNEL_NAMES and clCreateKernelsInProgram. */
enum kernel_names {
        KERNEL_NAMES_TOLD,
        KERNEL_NAMES_OVERRUN, /* write beyond their memory, if a name has some hundred characters */
};

/* The cost of a program's binary. */
enum binary {
        BINARY_AT_HAND,
        /* The binary costs as much as the build, but the implementation has its own cache on disk.
         * A kernel with a required work-group size that is running meanwhile ends the process
         * (pocl_release_dlhandle_cache, until PoCL 7.0). */
        BINARY_COMPILES,
};

/* How the implementation moves data between devices of one context. */
enum contexts {
        CONTEXTS_PLATFORM, /* as fast as SpanCL would, or it is not known */
        CONTEXTS_DEVICE,   /* much more slowly: each device gets a context of its own */
};

/* A marker without wait list in an out-of-order queue. */
enum marker {
        MARKER_IS_CHEAP,
        MARKER_SEARCHES, /* the implementation searches the marker's wait list for each command that completes */
};

/* The application's memory that a mapped buffer uses (CL_MEM_USE_HOST_PTR). */
enum given_memory {
        GIVEN_MEMORY_ANY,    /* not known to be better than other memory */
        GIVEN_MEMORY_PINNED, /* the device reaches it directly */
};

/* How two processes share device memory. */
enum shared_memory {
        SHARED_MEMORY_NONE, /* not known to work */
        SHARED_MEMORY_CUDA, /* made by libcuda, imported by OpenCL (shared.h) */
};

/* The release of queues that had commands. */
enum queues {
        QUEUES_GO,
        QUEUES_STAY, /* it may hang: use the queues again */
};

/* How long clEnqueue* and clFlush take. */
enum calls {
        CALLS_RETURN, /* they only enqueue */
        CALLS_BLOCK, /* they may run kernels: a thread makes all calls (backend/threaded/threaded.h) */
};

struct quirks {
        const char *platform; /* part of CL_PLATFORM_NAME; "" matches all */
        const char *version;  /* part of CL_PLATFORM_VERSION; "" matches all */
        enum arg_info arg_info;
        enum completion completion;
        enum rebuild rebuild;
        enum sub_devices sub_devices;
        enum disk_cache disk_cache;
        enum buffer_images buffer_images;
        enum failure failure;
        enum kernel_names kernel_names;
        enum binary binary;
        enum contexts contexts;
        enum marker marker;
        enum given_memory given_memory;
        enum shared_memory shared_memory;
        enum queues queues;
        enum calls calls;
        /* DEVICE_ACCEPTS_* (proto/info.h): as seen with tests/refusals. */
        unsigned accepts;
};

/* The first row that matches; never NULL. */
const struct quirks *quirks_find(const char *platform, const char *version);

#endif
