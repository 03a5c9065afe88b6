/* Memory uses of the commands of a command buffer: the sum of all of them, for the command that
 * runs the buffer, and the migrations within the recording, where domains differ. */
#ifndef SPANCL_CORE_RECORDED_MEMORY_H
#define SPANCL_CORE_RECORDED_MEMORY_H

#include "core/command/command_buffer.h"

/* command_use and command_wrote while a command is recorded. */
SP_NODISCARD int record_use(struct command *m, cl_mem mem, struct range r, bool bring)
        REQUIRES(client_held);
SP_NODISCARD int record_wrote(struct command *m, cl_mem mem, struct range r) REQUIRES(client_held);

void memory_uses_fini(struct memory_uses *u) REQUIRES(client_held);

/* Apply the memory uses of all commands of b to the command m that runs them: the bytes that they
 * need, and those that they have written. SP_E_*. */
SP_NODISCARD int recorded_use_all(struct command *m, cl_command_buffer_khr b) REQUIRES(client_held);
SP_NODISCARD int recorded_wrote_all(struct command *m, cl_command_buffer_khr b)
        REQUIRES(client_held);

/* Called when the buffer is finalized, and when it is freed. */
void recorded_placements_free(cl_command_buffer_khr b) REQUIRES(client_held);
void recorded_memory_free(cl_command_buffer_khr b) REQUIRES(client_held);

#endif
