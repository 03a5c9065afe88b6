/* Writes: the pages that this process has written since it asked last. The kernel notes them
 * (userfaultfd with asynchronous write protection, and PAGEMAP_SCAN: Linux 6.7, used from 6.15 on). So the kernel
 * alone handles the page fault of a first write, and system calls may write there, too.
 *
 * There are no notes on older kernels, in containers whose seccomp filter refuses the system call, and in
 * emulators. Children of fork() do not inherit them. Threading: one thread at a time. */
#ifndef SPANCL_OS_WRITES_H
#define SPANCL_OS_WRITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Can the kernel note writes of this process? The first call in a process tries it. */
bool writes_can_be_noted(void);

/* Make it possible to note writes to these pages of a shared mapping of a file in memory, until they
 * are unmapped. Each page that is read there takes a fault of its own. SP_E_UNSUPP. */
SP_NODISCARD int writes_watch(uint64_t at, size_t size);

/* Note no writes to these pages any more. */
void writes_forget(uint64_t at, size_t size);

/* Note writes to these pages of watched memory from now on. SP_E_UNSUPP: some may not be noted. */
SP_NODISCARD int writes_note(uint64_t at, size_t size);

struct written {
        uint64_t begin, end;
};

/* Find pages from `at` up to `end` that were written since writes_note, or since they were found
 * last, in ascending order. Pages of which the kernel knows nothing count as written. Later writes are
 * noted again. Returns the number of parts, up to `max`, and in *ret_next where to go on; `end`: there is
 * no more. SP_E_UNSUPP: all may have been written, and later writes may not be noted. */
SP_NODISCARD int writes_take(uint64_t at, uint64_t end, struct written *ret, unsigned max,
                             uint64_t *ret_next);

#endif
