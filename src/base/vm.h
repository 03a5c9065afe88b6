/* Memory of this process at addresses that it shares with other processes: pages that fill themselves
 * with zeros when they are first touched. */
#ifndef SPANCL_BASE_VM_H
#define SPANCL_BASE_VM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { VM_GRANULE = 65536 }; /* addresses and sizes are multiples of it: no host has larger pages */

/* `size` bytes at `at`, 0: where there is room. SP_E_BUSY: something else is there, or nothing can be;
 * SP_E_NOMEM. */
SP_NODISCARD int vm_map(uint64_t at, size_t size, uint64_t *ret);

/* `size` bytes of a file from `offset` on, where there is room: what is written there is written to the
 * file. SP_E_NOMEM. */
SP_NODISCARD int vm_map_file(int fd, uint64_t offset, size_t size, uint64_t *ret);

/* These bytes of the file are zeros again and take no memory. SP_E_UNSUPP. */
SP_NODISCARD int vm_empty_file(int fd, uint64_t offset, size_t size);

/* From now on who touches these bytes of vm_map's ends by a signal. */
void vm_close(uint64_t at, size_t size);

void vm_unmap(uint64_t at, size_t size);

#endif
