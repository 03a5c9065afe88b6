/* Contexts: a set of devices, of any servers. A context is the client's alone; servers have one native
 * context per native platform, or device, and know nothing of it. */
#ifndef SPANCL_CORE_CONTEXT_H
#define SPANCL_CORE_CONTEXT_H

#include "core/client.h"
#include "core/handle.h"
#include "core/link/listeners.h"

struct context_params {
        const cl_device_id *devices; /* without duplicates; the context uses those present now */
        cl_uint device_count;
        const cl_context_properties *properties; /* copied; NULL: none */
        size_t property_count;                   /* with the final 0 */
        bool finish_ahead;                       /* waits may return early (core/command/ahead.h) */
        void(CL_CALLBACK *notify)(const char *, const void *, size_t, void *);
        void *notify_data;
};

/* SP_E_NOMEM. */
SP_NODISCARD int context_new(struct client *c, const struct context_params *params, cl_context *ret)
        REQUIRES(client_held);

/* Call fn(context, user_data) when the context is destroyed, the last registered first. SP_E_NOMEM. */
SP_NODISCARD int context_on_destroy(cl_context x, void(CL_CALLBACK *fn)(cl_context, void *),
                                    void *user_data) REQUIRES(client_held);

/* The context's own object for a device (struct _cl_device_id); NULL: it has none. */
cl_device_id context_device(cl_context x, const struct _cl_device_id *d);
bool context_has_device(cl_context x, const struct _cl_device_id *d);

void context_hold(cl_context x) REQUIRES(client_held);
void context_unhold(cl_context x) REQUIRES(client_held);

/* Notify the application of an error that concerns the whole context. The progress thread calls the
 * context's callback. */
void context_notify(cl_context x, const char *text) REQUIRES(client_held);

/* The same for every context that has a device of the server. */
void contexts_notify(const struct server *s, const char *text) REQUIRES(client_held);
void contexts_server_lost(struct server *s, const struct server_loss *loss) REQUIRES(client_held);

/* Does any context have a device there? */
bool contexts_use(const struct server *s) REQUIRES(client_held);

#endif
