/* Memory that two processes of one host share: a descriptor that one passes to the other (os/passing.h), and that both
 * map (os/vm.h). Its size can't change, so neither side can take pages away from the other. */
#ifndef SPANCL_OS_SHARED_MEMORY_H
#define SPANCL_OS_SHARED_MEMORY_H

#include <stdint.h>

#include "base/status.h"

/* Make some, filled with zeros. Pages are allocated when they are touched. Returns its descriptor, for the caller to
 * file_close(). SP_E_LIMIT, SP_E_NOMEM. */
SP_NODISCARD int shared_memory_new(uint64_t size);

/* Get the size of memory that another process has passed. SP_E_INVAL: it is not of the kind that shared_memory_new
 * makes: its size may change, or touching it may fail. */
SP_NODISCARD int shared_memory_size(int fd, uint64_t *ret);

#endif
