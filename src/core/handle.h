/* Handles: the part of every object that the application and the ICD loader know. Any thread.
 *
 * Each family's header declares NAME_hold and NAME_unhold over h.holds; those of root devices do
 * nothing. The last *_unhold frees the object, and sends `release` to the servers that know it. */
#ifndef SPANCL_CORE_HANDLE_H
#define SPANCL_CORE_HANDLE_H

#include <stdbool.h>

#include "base/status.h"
#include "core/object.h"

/* The dispatch table that handle_init puts into each handle; api/dispatch.c defines it next to
 * spancl_dispatch: `const void *const handle_dispatch = &spancl_dispatch;` */
extern const void *const handle_dispatch;

/* Fill in dispatch, type, one application reference and the hold that goes with it. */
void handle_init(struct handle *h, enum handle_type type);

/* Is it a live handle of that type? NULL is not. */
static inline bool handle_is(const void *handle, enum handle_type type)
{
        const struct handle *h = handle;
        return h && h->type == type;
}

/* References of the application: clRetain* and clRelease*. An object without any may still be held
 * by others, and come back to the application through a query. handle_release returns 1 when the
 * last reference went: the caller then drops the hold with the type's own *_unhold, which frees the
 * object at zero. SP_E_INVAL: there was no reference to release. */
void handle_retain(struct handle *h);
SP_NODISCARD int handle_release(struct handle *h);

/* Free an object of `size` bytes that begins with `h`. The last few freed objects stay readable, so
 * that a call with a freed handle returns an error. */
void handle_free(struct handle *h, size_t size);

#endif
