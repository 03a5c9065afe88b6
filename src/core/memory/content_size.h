/* cl_pocl_content_size 1.0.0: a buffer that holds how many bytes of another buffer mean something.
 * It is a hint: the server that has the bytes reads the number when the bytes are read, and leaves
 * out the others. */
#ifndef SPANCL_CORE_CONTENT_SIZE_H
#define SPANCL_CORE_CONTENT_SIZE_H

#include "core/command/command.h"

struct replica;

#define CONTENT_SIZE_VERSION CL_MAKE_VERSION(1, 0, 0)

CL_API_ENTRY cl_int CL_API_CALL clSetContentSizeBufferPoCL(cl_mem buffer,
                                                           cl_mem content_size_buffer);

void content_size_set(cl_mem buffer, cl_mem size) REQUIRES(client_held);

/* The command reads `size` bytes of mem: bring the number, if there is one, to the command's
 * device, too. SP_E_*. */
SP_NODISCARD int content_size_use(struct command *m, cl_mem mem, size_t size) REQUIRES(client_held);

/* Between command_ready and the command's own message. */
SP_NODISCARD int content_size_send(struct command *m, cl_mem mem, size_t size);

/* For a migration of that range of `root`: the replica of the number at a location. NULL: the
 * number is not there, or does not matter. */
const struct replica *content_size_at(cl_mem root, struct range part, uint32_t server,
                                      uint32_t domain);

/* Its bytes in its root. */
struct range content_size_range(const struct _cl_mem *root);

/* Announce the number to the server for the read of `root` that comes next. */
SP_NODISCARD int content_size_request(struct session *session, const struct _cl_mem *root,
                                      uint64_t event);

#endif
