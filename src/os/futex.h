/* Sleeping on a word of memory that threads or processes share (futex(2)). No state. */
#ifndef SPANCL_OS_FUTEX_H
#define SPANCL_OS_FUTEX_H

#include <stdint.h>

/* Sleep while the word has the value `seen`, until futex_wake, at most so long. Returns at times without a reason. */
void futex_wait(void *word, uint32_t seen, uint64_t timeout_ns);

/* Wake all that sleep on the word, in all processes. */
void futex_wake(void *word);

#endif
