/* Small reads ahead (SPANCL_PREFETCH=1, docs/FINISH.md). A program that reads the same few bytes after each step waits
 * a round trip for them. Once it has done so behind the same commands some times, the client sends such a read itself,
 * right behind the last of these commands. The bytes go to memory of the client. The program's own read takes them if
 * no command that may write them was enqueued meanwhile. A read that the program does not ask for costs its bytes only.
 * In-order queues only. */
#ifndef SPANCL_CORE_PREFETCH_H
#define SPANCL_CORE_PREFETCH_H

#include "core/command/command.h"

/* Make the record of a queue's reads, those of the program and those that were sent ahead. SP_E_NOMEM. */
SP_NODISCARD int prefetch_new(struct prefetch **ret);
/* No transfer is under way to its memory. NULL is allowed. */
struct prefetch *prefetch_free(struct prefetch *p);

/* Command m is sent, the newest of its queue, which has a prefetch: send the reads that mostly follow. */
void prefetch_behind(const struct command *m) REQUIRES(client_held);

/* The application reads bytes of a buffer, in a queue that has a prefetch. True: they are there, and the call returns
 * *ret. False: the read is to be enqueued. May wait. */
bool prefetch_take(const struct enqueue *q, cl_mem mem, size_t offset, size_t size, void *to,
                   cl_int *ret) EXCLUDES(client_held);

/* The application has released the queue: it asks for nothing any more. */
void prefetch_stop(struct prefetch *p) REQUIRES(client_held);

#endif
