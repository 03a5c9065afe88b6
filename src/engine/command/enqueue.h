/* The messages that enqueue a command: a kernel launch, a transfer of one of the kinds, a marker. Each
 * handler makes the command, fills in its operation and enqueues it. `user` is the client's struct
 * peer. SP_E_PROTO, SP_E_NOMEM, SP_E_LIMIT end the session. */
#ifndef SPANCL_ENGINE_ENQUEUE_H
#define SPANCL_ENGINE_ENQUEUE_H

#include "engine/lock.h"
#include "proto/wire.h"

int engine_handle_content_size(void *user, const struct wire_content_size *m) REQUIRES(engine_held);
int engine_handle_kernel_launch(void *user, const struct wire_kernel_launch *m)
        REQUIRES(engine_held);
int engine_handle_buffer_write(void *user, const struct wire_buffer_write *m) REQUIRES(engine_held);
int engine_handle_buffer_read(void *user, const struct wire_buffer_read *m) REQUIRES(engine_held);
int engine_handle_buffer_write_rect(void *user, const struct wire_buffer_write_rect *m)
        REQUIRES(engine_held);
int engine_handle_buffer_read_rect(void *user, const struct wire_buffer_read_rect *m)
        REQUIRES(engine_held);
int engine_handle_buffer_copy(void *user, const struct wire_buffer_copy *m) REQUIRES(engine_held);
int engine_handle_buffer_copy_rect(void *user, const struct wire_buffer_copy_rect *m)
        REQUIRES(engine_held);
int engine_handle_buffer_fill(void *user, const struct wire_buffer_fill *m) REQUIRES(engine_held);
int engine_handle_image_write(void *user, const struct wire_image_write *m) REQUIRES(engine_held);
int engine_handle_image_read(void *user, const struct wire_image_read *m) REQUIRES(engine_held);
int engine_handle_image_copy(void *user, const struct wire_image_copy *m) REQUIRES(engine_held);
int engine_handle_image_to_buffer(void *user, const struct wire_image_to_buffer *m)
        REQUIRES(engine_held);
int engine_handle_buffer_to_image(void *user, const struct wire_buffer_to_image *m)
        REQUIRES(engine_held);
int engine_handle_image_fill(void *user, const struct wire_image_fill *m) REQUIRES(engine_held);
int engine_handle_marker(void *user, const struct wire_marker *m) REQUIRES(engine_held);
int engine_handle_queue_flush(void *user, const struct wire_queue_flush *m) REQUIRES(engine_held);

#endif
