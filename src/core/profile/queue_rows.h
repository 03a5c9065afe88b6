/* The rows of the timeline that show the queues of devices: their commands at the devices' own times. They know no
 * client, so that the command-line tool can write them, too. No state. */
#ifndef SPANCL_CORE_PROFILE_QUEUE_ROWS_H
#define SPANCL_CORE_PROFILE_QUEUE_ROWS_H

#include "core/profile/journal.h"

enum { QUEUE_ROWS_LAYERS = 16 }; /* commands of a queue that overlap stand in rows of their own */

/* Give the first row of `layers` that is free at a time; QUEUE_ROWS_LAYERS if none is. It is taken until `end_ns`. */
unsigned queue_rows_free_layer(uint64_t layers[QUEUE_ROWS_LAYERS], uint64_t begin_ns,
                               uint64_t end_ns);

/* Put the number of bytes, and their rate, as arguments of a slice. */
void queue_rows_put_rate(struct timeline *out, uint64_t bytes, uint64_t ns);

/* The names of a server and of its device, by their numbers in commands. NULL: there is no such server. */
struct queue_rows_names {
        const char *(*server)(void *user, uint32_t server);
        const char *(*device)(void *user, uint32_t server, uint32_t device);
        void *user;
};

/* Put commands, which are sorted for that, into the timeline: a row for each queue, in the process of its server's
 * devices. Adds to the gaps. */
void queue_rows_put(struct timeline *out, struct journal_gaps *gaps,
                    const struct journal_command **all, size_t count,
                    const struct queue_rows_names *names);

#endif
