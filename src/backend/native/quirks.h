/* The peculiarities of native implementations: one table, quirks.c. */
#ifndef SPANCL_BACKEND_NATIVE_QUIRKS_H
#define SPANCL_BACKEND_NATIVE_QUIRKS_H

enum arg_info {
        ARG_INFO_RETRY, /* build with -cl-kernel-arg-info; if that fails, build without; never compile with it */
        ARG_INFO_ADD,  /* build with it: a failure is the program's own */
        ARG_INFO_KEEP, /* don't add it: harmful, or the information is there anyway */
};

/* How the completion of a command is noticed.
 * Figures: bench/results/2026-11-21-completion-callback-or-wait.md. */
enum completion {
        COMPLETION_CALLBACK, /* clSetEventCallback, reported on the thread that calls it */
        /* The polling thread looks (notify_poll); when it sleeps, a thread for each queue: in clWaitForEvents,
         * or for a queue without order, looking now and then. Callbacks of NVIDIA's come up to 20 ms
         * late when nothing else is going on. */
        COMPLETION_WAIT,
};

/* How a program of source is built or compiled again. */
enum rebuild {
        REBUILD_SAME,
        REBUILD_ANEW, /* fails after some histories of the program: a new one is made of its source */
};

enum sub_devices {
        SUB_DEVICES_GO,   /* when they are released */
        SUB_DEVICES_STAY, /* with the process: commands that are complete may still use them */
};

/* A cache on disk, shared by processes. */
enum disk_cache {
        DISK_CACHE_SAFE,
        DISK_CACHE_RACES, /* a file is removed before it is written anew: who needs it meanwhile fails */
};

/* Commands on 1D images of buffers; kernels are another thing. */
enum buffer_images {
        BUFFER_IMAGES_WORK,
        BUFFER_IMAGES_FAIL, /* they crash, or go wrong: done as commands on the buffer */
};

/* The effect of a command that fails on those behind it in an in-order queue. */
enum failure {
        FAILURE_SHOWS, /* perhaps nothing: each is asked */
        FAILURE_STAYS, /* all of them fail, too: the context is lost */
};

/* CL_PROGRAM_KERNEL_NAMES and clCreateKernelsInProgram. */
enum kernel_names {
        KERNEL_NAMES_TOLD,
        KERNEL_NAMES_OVERRUN, /* write beyond their memory, if one has some hundred characters */
};

/* The cost of a program's binary. */
enum binary {
        BINARY_AT_HAND,
        /* As long as the build, again; but it has a cache of its own on disk. A kernel with a required work-group size that
         * is running meanwhile ends the process (pocl_release_dlhandle_cache, until PoCL 7.0). */
        BINARY_COMPILES,
};

/* How the implementation moves data between devices of one context. */
enum contexts {
        CONTEXTS_PLATFORM, /* as fast as we would, or it is not known */
        CONTEXTS_DEVICE,   /* much more slowly: each device gets a context of its own */
};

/* A marker without wait list in a queue without order. */
enum marker {
        MARKER_IS_CHEAP,
        MARKER_SEARCHES, /* each command that ends is looked for among all that it waits for */
};

/* The application's memory that a buffer uses (CL_MEM_USE_HOST_PTR), while it is mapped. */
enum given_memory {
        GIVEN_MEMORY_ANY,    /* is not known to be better than other memory */
        GIVEN_MEMORY_PINNED, /* the device reaches it by itself */
};

/* Queues that had commands, when they are released. */
enum queues {
        QUEUES_GO,
        QUEUES_STAY, /* the implementation may wait for ever: they are used again */
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
        enum queues queues;
        /* DEVICE_ACCEPTS_* (proto/info.h): as seen with tests/refusals. */
        unsigned accepts;
};

/* The first row that matches; never NULL. */
const struct quirks *quirks_find(const char *platform, const char *version);

#endif
