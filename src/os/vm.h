/* Memory of this process at addresses that it shares with other processes. The kernel fills a page
 * with zeros when it is first touched. */
#ifndef SPANCL_OS_VM_H
#define SPANCL_OS_VM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum { VM_GRANULE = 65536 }; /* addresses and sizes are multiples of it: no host has larger pages */

/* The size of a page that mappings of files are made of: a power of two. */
uint64_t vm_page_size(void);

/* Map `size` bytes at `at`; 0: at any free address. SP_E_BUSY: the place is in use, or can't be
 * used; SP_E_NOMEM. */
SP_NODISCARD int vm_map(uint64_t at, size_t size, uint64_t *ret);

/* Map `size` bytes of a file from `offset` on, a multiple of vm_page_size, at any free address.
 * Writes there go to the file. SP_E_NOMEM. */
SP_NODISCARD int vm_map_file(int fd, uint64_t offset, size_t size, uint64_t *ret);

/* Make these bytes of the file zeros that take no memory. SP_E_UNSUPP. */
SP_NODISCARD int vm_empty_file(int fd, uint64_t offset, size_t size);

/* Leave these bytes out of the children that fork() makes from now on. */
void vm_keep_from_children(uint64_t at, size_t size);

/* Have the system use large pages there, if it can. `at` is a multiple of theirs. */
void vm_prefer_large_pages(void *at, size_t size);

/* Make any access to these bytes of vm_map's memory end the process by a signal. */
void vm_close(uint64_t at, size_t size);

void vm_unmap(uint64_t at, size_t size);

#endif
