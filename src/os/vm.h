/* Memory of this process at addresses that it shares with other processes. The kernel fills a page
 * with zeros when it is first touched. */
#ifndef SPANCL_OS_VM_H
#define SPANCL_OS_VM_H

#include <stdbool.h>
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

/* Map the pages of a file that take memory before they are read, without a fault for each. */
void vm_populate(uint64_t at, size_t size);

/* Return true if this system can map memory twice (vm_map_twice), and lets the program serve faults there (os/fault.h).
 * A call may still fail. */
bool vm_can_map_twice(void);

/* Memory of its own file that this process sees twice: at vm_map's address `at`, and at any other
 * (`ret_other`), where it may always be read and written. Children of fork() have neither. The
 * caller closes *ret_fd. Errors as vm_map's; SP_E_LIMIT: there are no descriptors. */
SP_NODISCARD int vm_map_twice(uint64_t at, size_t size, uint64_t *ret, uint64_t *ret_other,
                              int *ret_fd);

/* Find the first bytes of the file from `from` on that take memory, up to `end`. False: none do. */
bool vm_next_data(int fd, uint64_t from, uint64_t end, uint64_t *ret_begin, uint64_t *ret_end);

/* Has this process used any of these pages since vm_untouch? True if that is not known. */
bool vm_touched(uint64_t at, size_t size);
/* Nothing changes, except that vm_touched begins anew. The memory must be vm_map_twice's. */
void vm_untouch(uint64_t at, size_t size);

enum vm_access {
        VM_NONE, /* an access ends in a signal */
        VM_READ,
        VM_WRITE,
};

/* Change what may be done at these addresses: whole pages. SP_E_NOMEM: the process has as many
 * mappings as it may have, and nothing has changed, or only the beginning has. */
SP_NODISCARD int vm_allow(uint64_t at, size_t size, enum vm_access access);

void vm_unmap(uint64_t at, size_t size);

#endif
