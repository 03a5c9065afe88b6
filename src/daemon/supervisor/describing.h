/* Descriptions of this server's devices, for clients to which they will do instead of a session
 * (FEATURE_DESCRIPTION). They come from workers that have no client yet, so no session can falsify them. But a worker
 * may have opened a client's caches, so only that client gets its description. The supervisor passes descriptions on
 * as they are, and checks no more than that they are valid info blocks.
 *
 * A worker's device filter (health_filter) decides which devices its description has. So a client gets the
 * description of a worker with the very filter that its own worker would have. */
#ifndef SPANCL_DAEMON_DESCRIBING_H
#define SPANCL_DAEMON_DESCRIBING_H

#include <stdbool.h>
#include <stddef.h>

struct control;
struct description;
struct gate_grant;
struct pending;
struct supervisor;
struct wire_hello;
struct worker;

/* A worker that is not ready yet sends a part of its description. */
void describing_receive(struct worker *w, const struct control *c);
/* It is ready, and says that its description has so many bytes: keep the description, if it came whole. */
void describing_learn(struct supervisor *s, struct worker *w, size_t size);
/* Free the parts that a worker has sent. */
void describing_drop_parts(struct worker *w);

/* Will a description do for the connection with this hello? */
bool describing_is_wanted(const struct wire_hello *m);
/* Find the devices of a client with these rights. NULL: no such worker has described them, or others that were used
 * since have taken all the room (DESCRIPTIONS_BYTES_MAX). */
struct description *describing_find(struct supervisor *s, const struct gate_grant *grant);
/* Begin to send the description: the answer to the hello, and its parts. 1: all is sent; 0: the connection's next
 * event goes on; negative: it is lost. */
int describing_begin(struct supervisor *s, struct pending *v, struct description *d);
int describing_go_on(struct pending *v);
/* The connection is gone. */
void describing_end(struct pending *v);

void describing_fini(struct supervisor *s);

#endif
