/* Views: the application's side of unified shared memory (usm.h). The view of an allocation is a
 * replica, PLACEMENT_HOST of its placement. Its stale pages are closed: the first access stops in
 * the handler of SIGSEGV (os/fault.h), and the fault thread brings the bytes and opens the pages.
 * Pages that the application has not written since a device read them are read-only, so that a
 * first write is known in the same way; or the kernel notes writes to them (os/writes.h).
 *
 * The client itself reads and writes the bytes at another address (view.other), where they are
 * always open. A thread that holds the client's lock must not touch the view. */
#ifndef SPANCL_CORE_VIEW_H
#define SPANCL_CORE_VIEW_H

#include "core/client.h"
#include "core/command/command.h"
#include "core/memory/svm.h"

/* Accesses in ascending order. */
struct view_run {
        uint64_t next; /* where the last block ends */
        size_t size;   /* of the last block; 0: there was none */
};

/* Offsets are those in the allocation; ranges of pages may exceed it by less than a page. */
struct view {
        cl_mem mem;
        struct list touched; /* context's, while it may have current bytes, also in closed pages */
        struct list hot;     /* context's, while `lost` is to be brought at the next wait */
        uint8_t *other;      /* the bytes, for the client */
        size_t size;         /* whole pages */
        /* No device has used it. All pages are open, and those that take memory are written. */
        bool fresh;
        /* Pages; `written` is a part of `open`: the application may write there, and may have. */
        struct range_set open, written;
        struct range_set noted; /* the part of `written` of which the kernel notes writes */
        uint64_t noted_size;    /* bytes in `noted` */
        struct view_run reads, writes;
        struct list ahead; /* bytes that are on their way, or came, without an access */
        struct range lost; /* pages that were open last, if they are few */
        bool was_written;  /* some of `open`, since it was brought for a wait */
        bool guessed;      /* `open` was brought without an access */
        bool bringing;  /* a thread receives bytes into `other`: no other one may, nor open pages */
        uint64_t moved; /* new whenever access to a page changes; never the same in two views */
        uint64_t changes;  /* counts commands that made it stale */
        uint64_t launches; /* context's when it was made */
};

/* Give an allocation its view. `fresh`: the application may use it at once. SP_E_NOMEM. */
SP_NODISCARD int view_new(cl_mem m, bool fresh) REQUIRES(client_held);
/* NULL is allowed. */
void view_free(struct view *v) REQUIRES(client_held);

/* A command is about to read these bytes: the placement learns what the application has written. */
SP_NODISCARD int view_take(struct view *v, struct range r) REQUIRES(client_held);

/* A command is about to write there: the application's bytes become stale. */
SP_NODISCARD int view_lose(struct view *v, struct range r) REQUIRES(client_held);

/* The placement has changed: does the view have current bytes? */
void view_changed(struct view *v) REQUIRES(client_held);

/* Bring the bytes, and get the address where the client may read them, as long as it does not
 * release the lock. Releases the lock while it waits. SP_E_NOMEM, SP_E_GONE. */
SP_NODISCARD int view_read(struct view *v, struct range r, const uint8_t **ret)
        REQUIRES(client_held);

/* Start the fault thread, unless this process has one. SP_E_LIMIT. */
SP_NODISCARD int views_serve(void);

/* A kernel in the context may have written all allocations; they have one memory, that of m. */
void views_reached(struct command *m) REQUIRES(client_held);

/* The application has waited for commands in the context: bring small allocations that it has used
 * lately, for system calls, which do not fault. Releases the lock while it waits. */
void views_bring_hot(cl_context x) REQUIRES(client_held);

static inline void views_waited(cl_context x) REQUIRES(client_held)
{
        if (!list_empty(&x->views.hot))
                views_bring_hot(x);
}

#endif
