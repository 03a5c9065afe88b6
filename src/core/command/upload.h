/* An upload: an outgoing transfer whose chunks the client names first (upload_offer), so that the server
 * can answer which it has from an earlier write. Threads of the client hash the chunks; they hold the
 * client's lock only to send the names. docs/internals/upload_cache.md */
#ifndef SPANCL_CORE_UPLOAD_H
#define SPANCL_CORE_UPLOAD_H

#include "core/link/server.h"

struct upload;

enum upload_mode {
        UPLOAD_OFF,
        UPLOAD_AUTO,
        UPLOAD_ON
}; /* in the order of SPANCL_UPLOAD_CACHE's values */

/* Return true if the client should name the chunks of a write of `size` bytes. */
bool upload_pays(struct server *s, uint64_t size) REQUIRES(client_held);

/* Make the upload of `b`, whose bytes may be read without the lock until upload_free. NULL: send all. */
struct upload *upload_new(struct server *s, struct session_bulk *b) REQUIRES(client_held);

/* Begin to name its chunks. The transfer is given to the session now, with no byte ready. */
void upload_start(struct upload *u) REQUIRES(client_held);

/* For session_bulk.lacks. */
uint64_t upload_lacks(const struct upload *u, uint64_t offset, uint64_t *ret_end);

/* When this returns, no thread reads the transfer's bytes. Waits for at most the time of hashing a
 * chunk. NULL is allowed. */
struct upload *upload_free(struct upload *u) REQUIRES(client_held);

/* The bytes are about to move: when this returns, no thread reads them before upload_go_on. NULL is allowed. */
void upload_pause(struct upload *u) REQUIRES(client_held);
void upload_go_on(struct upload *u) REQUIRES(client_held);

int upload_answered(void *user, const struct wire_upload_answer *m) REQUIRES(client_held);

/* End the threads. Releases the lock meanwhile. */
void uploads_stop(struct client *c) REQUIRES(client_held);
/* The child of a fork has none of these threads: nothing waits for them. */
void uploads_forget(struct client *c) REQUIRES(client_held);

#endif
