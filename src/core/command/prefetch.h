/* Small reads ahead (SPANCL_PREFETCH=1, docs/FINISH.md). A program that reads the same few bytes after each step waits
 * a round trip for them. When it has made a read behind the same commands twice, the client sends that read itself,
 * right behind the last of these commands. The bytes go to memory of the client. The program's own read takes them if
 * no command that may write them was enqueued meanwhile. A read that the program does not ask for costs its bytes only.
 * In-order queues only. */
#ifndef SPANCL_CORE_PREFETCH_H
#define SPANCL_CORE_PREFETCH_H

#include "core/command/command.h"

/* Make the record of a queue's reads, those of the program and those that were sent ahead. SP_E_NOMEM. */
SP_NODISCARD int prefetch_new(struct prefetch **ret);
/* Free the record. The caller makes sure that no transfer to its memory is under way. NULL is allowed. */
struct prefetch *prefetch_free(struct prefetch *p);

/* Send the reads that have followed commands such as m, the newest command of a queue with a prefetch. */
void prefetch_behind(const struct command *m) REQUIRES(client_held);

/* Take the bytes of a read of the application from a read ahead, in a queue with a prefetch. May wait. True: the read
 * is done, and its call returns *ret. False: the caller enqueues the read. */
bool prefetch_take(const struct enqueue *q, cl_mem mem, size_t offset, size_t size, void *to,
                   cl_int *ret) EXCLUDES(client_held);

/* Give up the reads ahead, because the application has released the queue and can't read there any more. */
void prefetch_stop(struct prefetch *p) REQUIRES(client_held);

#endif
