/* The rows of the timeline that show the links: one for each lane and direction, and a curve of each link's rate. They
 * are made of the client's own records of `send` and `receive`, which have the place of their session. One owner. */
#ifndef SPANCL_CORE_PROFILE_TRACE_LINKS_H
#define SPANCL_CORE_PROFILE_TRACE_LINKS_H

#include "trace/timeline.h"

struct trace_links;

/* SP_E_NOMEM: the timeline then has no such rows. */
SP_NODISCARD int trace_links_new(unsigned servers, struct trace_links **ret);
void trace_links_free(struct trace_links *l);

/* Take one of the client's records. `l` may be NULL, also below. */
void trace_links_put(struct trace_links *l, struct timeline *out, const struct trace_record *r);

/* All records were taken: write the curves. */
void trace_links_end(struct trace_links *l, struct timeline *out);

#endif
