/* The upload store: chunks of writes that one client has sent before, by their names, as files in a
 * folder of that client. Each file is one chunk, and its name is the chunk's (base/blake2bp.h).
 *
 * Files appear whole (rename) and never change, so the client's sessions need no locks between them.
 * A file is not trusted: its bytes have to match its name. If the folder exceeds its limit, the store
 * removes the least recently used files. Thread-safe. */
#ifndef SPANCL_ENGINE_UPLOAD_STORE_H
#define SPANCL_ENGINE_UPLOAD_STORE_H

#include <stdbool.h>

#include "base/blake2bp.h"

struct upload_store;

struct upload_name {
        uint8_t bytes[BLAKE2B_SIZE];
};

/* Open the store in `folder`, which is made when needed. It takes `limit_bytes` at most, and at
 * most an eighth of the file system's free space. SP_E_NOMEM. */
SP_NODISCARD int upload_store_new(const char *folder, uint64_t limit_bytes,
                                  struct upload_store **ret);
struct upload_store *upload_store_free(struct upload_store *s);

/* Read the chunk of that name and size. False: it is not there. A damaged file is removed. */
bool upload_store_get(struct upload_store *s, const struct upload_name *name, void *ret,
                      size_t size);

/* Store a chunk if it has that name. If a session has stored the limit and found little, it stores no
 * more, because its data is new each time. */
void upload_store_put(struct upload_store *s, const struct upload_name *name, struct bytes chunk);

#endif
