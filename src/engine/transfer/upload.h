/* Uploads: chunks of the client's writes that the server has from an earlier write. The client names
 * the chunks (upload_offer). The server takes the chunks that it has from the upload store, puts them in
 * their place in the transfer, and answers (upload_answer). It stores the chunks that the client sends.
 *
 * Threads of the uploads read, hash and write the files, without the engine's lock. A chunk counts as
 * held only when its bytes are in place, so nothing can fail after the answer. Single-threaded
 * engines do all of it within the message's handler. docs/internals/upload_cache.md */
#ifndef SPANCL_ENGINE_UPLOAD_H
#define SPANCL_ENGINE_UPLOAD_H

#include "engine/transfer/transfer.h"

/* Open the store, if the engine's parameters name a folder. SP_E_NOMEM. */
SP_NODISCARD int engine_uploads_init(struct engine *e);
/* End the threads; the transfers are still there. */
void engine_uploads_stop(struct engine *e) EXCLUDES(engine_held);
void engine_uploads_fini(struct engine *e);

/* Bytes of the transfer have arrived from the client: store the chunks that are complete now. */
void engine_upload_arrived(struct transfer *t, uint64_t offset, uint64_t len) REQUIRES(engine_held);

/* Look up waiting chunks, because there may be room for them now. */
void engine_uploads_go_on(struct engine *e) REQUIRES(engine_held);

/* The connections were lost, and the transfer has forgotten the bytes behind the first gap. Add the
 * chunks from the store again, because they are still in their place. SP_E_NOMEM. */
SP_NODISCARD int engine_upload_restart(struct transfer *t) REQUIRES(engine_held);

/* The transfer is freed. */
void engine_upload_free(struct transfer *t) REQUIRES(engine_held);

int engine_handle_upload_offer(void *user, const struct wire_upload_offer *m) REQUIRES(engine_held);

#endif
