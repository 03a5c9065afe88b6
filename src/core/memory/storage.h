/* Buffers in place. The bytes of a large buffer lie in memory that this process shares with a
 * server of the same host (transport_shm). The server's devices that work on the host's memory use
 * the bytes there. So mapping moves nothing, and a blocking transfer is a copy by the calling
 * thread.
 *
 * One server of the client shares the memory. The client divides it into parts. A part is reused
 * when the server has said that nothing uses it any more, since a buffer may be released before the
 * commands that use it have run. Up to 64 MiB of such parts keep their pages for later buffers of
 * the same sizes; a new page costs more than to write it. */
#ifndef SPANCL_CORE_STORAGE_H
#define SPANCL_CORE_STORAGE_H

#include "core/link/request.h"

struct storage {
        uint64_t id; /* the server's name for it */
        struct server *server;
        uint64_t offset;        /* in the memory */
        size_t size;            /* a multiple of VM_GRANULE */
        void *address;          /* here; NULL: it is released, and not mapped any more */
        bool declared;          /* the server knows it */
        struct request request; /* to release it */
        struct list link;       /* client's arena.released or arena.kept */
};

/* All devices of all servers are known: find the server. */
void storage_settle(struct client *c) REQUIRES(client_held);
void storage_fini(struct client *c) REQUIRES(client_held);
/* Without buffers in place the memory may be another server's. */
void storage_server_lost(struct server *s, const struct server_loss *loss) REQUIRES(client_held);

/* Does the client share its memory with that server? */
bool storage_uses(const struct server *s) REQUIRES(client_held);

/* A part for a buffer of `size` bytes in the context; NULL: the buffer gets none. */
struct storage *storage_new(cl_context x, size_t size) REQUIRES(client_held);

/* No buffer uses it any more. NULL is allowed. */
struct storage *storage_free(struct storage *s) REQUIRES(client_held);

/* Before the buffer is declared at its server. */
SP_NODISCARD int storage_declare(struct storage *s, struct session *session) REQUIRES(client_held);

/* Does that device work on it? */
bool storage_is_here(const struct storage *s, const struct _cl_device_id *d);

#endif
