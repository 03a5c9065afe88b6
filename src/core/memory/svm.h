/* Shared virtual memory, coarse-grained: allocations that have the same address here and at every
 * device of their context that has SVM. An allocation is a mem object without a handle
 * (mem->chunk), so it uses the placement, migration and mappings of buffers. The application's view
 * of it is memory of this process, which is current between map and unmap.
 *
 * Allocations of cl_intel_unified_shared_memory (mem->usm), and managed ones of clSVMAlloc, are
 * the same, except that nothing maps them: they have views (view.h).
 *
 * Client and servers agree on memory in chunks, of which allocations are parts: a chunk costs a
 * round trip, an allocation in it nothing. */
#ifndef SPANCL_CORE_SVM_H
#define SPANCL_CORE_SVM_H

#include "core/command/enqueue.h"

struct svm_chunk {
        struct list link; /* context's */
        bool paged;       /* for unified shared memory, and for managed allocations of clSVMAlloc */
        uint64_t
                other; /* where the client has its bytes (view.h); 0: the allocations have no views */
        int fd;        /* of `other`: the memory's file */
        bool noted;    /* the kernel can note writes to the allocations (os/writes.h) */
        bool watched; /* writes_watch covers the whole chunk; else each view asks for its blocks */
        uint64_t id, address;
        size_t size;
        struct server_set servers; /* those that have the memory */
        struct range_set free;     /* of the chunk's bytes */
        cl_mem *live;              /* allocations, by address */
        size_t live_count, live_cap;
        size_t used; /* allocations, also freed ones that something still uses */
};

/* All devices of all servers are known: decide which devices share SVM (device->svm). */
void svm_settle(struct client *c) REQUIRES(client_held);
/* The same for the devices of a server that comes later. */
void svm_server_added(struct server *s) REQUIRES(client_held);

/* The devices of `s`, a new session, take the place of the earlier sessions': it may choose the
 * addresses from now on. */
void svm_server_replaced(struct server *s) REQUIRES(client_held);

/* Does its device choose the addresses? */
bool svm_uses(const struct server *s) REQUIRES(client_held);

/* clSVMAlloc behind its checks, or an allocation of unified shared memory as `usm` describes it;
 * *ret's host_ptr is the address. The address is aligned for all data types, and to `align`, a power
 * of two, if that is not 0. The lock is released while servers are asked. SP_E_NOMEM, SP_E_BUSY (no
 * common address was found), SP_E_LIMIT (a device has no memory). */
SP_NODISCARD int svm_alloc(cl_context x, cl_mem_flags flags, size_t size, size_t align,
                           const struct usm_kind *usm, cl_mem *ret) REQUIRES(client_held);

/* Free the allocation that begins at `at` when nothing uses it any more. It must be one of unified
 * shared memory if `usm`, else one of clSVMAlloc. False: there is none. */
bool svm_free(cl_context x, const void *at, bool usm) REQUIRES(client_held);

/* The allocation with the byte at `at`; NULL: none. */
cl_mem svm_find(cl_context x, const void *at) REQUIRES(client_held);

/* The last allocation that begins at `at` or before it, in the same chunk. */
cl_mem svm_before(cl_context x, const void *at) REQUIRES(client_held);

/* svm_find, but one of unified shared memory, or with a view, or NULL; without the lock. */
cl_mem svm_find_usm(cl_context x, const void *at);

/* The offset in the allocation; the application's address of the first byte is host_ptr. */
static inline size_t svm_at(const struct _cl_mem *m, const void *at)
{
        return (size_t)((const uint8_t *)at - (const uint8_t *)m->host_ptr);
}

/* The offset of the allocation in its chunk. */
static inline size_t svm_offset(const struct _cl_mem *m)
{
        return (size_t)((uint64_t)(uintptr_t)m->host_ptr - m->chunk->address);
}

/* Does the device of that server work on the application's own view? */
bool svm_is_here(const struct _cl_mem *root, const struct server *s) REQUIRES(client_held);

/* An allocation's last hold went: the application must not touch it any more. */
void svm_leave(cl_mem m) REQUIRES(client_held);

/* No server uses it any more: the next allocation may have its addresses. */
void svm_ended(cl_mem m) REQUIRES(client_held);

/* The context ends, and with it its chunks. */
void svm_end(cl_context x) REQUIRES(client_held);

bool svm_any(const struct _cl_context *x);

/* Do all devices of the context that have SVM use one memory? */
bool svm_in_one_place(const struct _cl_context *x) REQUIRES(client_held);

/* Have all devices of the context SVM, and that in one memory? Then the allocations are nowhere
 * else, except in views. */
bool svm_only_in_one_place(const struct _cl_context *x) REQUIRES(client_held);

/* Are bytes that the application names in an allocation with a view, of any context? A thread that
 * holds the lock must not touch them. Any thread. */
bool svm_may_fault(const void *at, size_t size);

/* Bytes that the application names, where a thread that holds the lock may read them. They are a
 * copy if they lie in unified shared memory: there a fault would wait for the lock for ever. */
struct svm_borrowed {
        const void *at;
        void *copy;
};

/* svm_give_back follows, also after an error. `at` may be NULL. SP_E_NOMEM. */
SP_NODISCARD int svm_borrow(struct svm_borrowed *ret, const void *at, size_t size)
        EXCLUDES(client_held);
void svm_give_back(struct svm_borrowed *b);

/* Can the context have host and shared allocations? Not if some of its devices work on this
 * process's memory, and others do not. */
bool svm_reaches_host(cl_context x) REQUIRES(client_held);

/* Does the address lie in an allocation of another context? */
bool svm_is_foreign(cl_context x, const void *at) REQUIRES(client_held);

/* ---- commands: as those of core/command/enqueue.h --------------------------------------------------- */

/* A copy where neither side is SVM. */
cl_int enqueue_host_copy(const struct enqueue *q, void *to, const void *from, size_t size);

/* `fn` NULL: free them. */
cl_int enqueue_svm_free(const struct enqueue *q, cl_uint count, void *const *pointers,
                        void(CL_CALLBACK *fn)(cl_command_queue, cl_uint, void **, void *),
                        void *user_data);

#endif
