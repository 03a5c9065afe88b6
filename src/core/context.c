#include "core/context.h"

#include <stdio.h>

#include "base/mem.h"
#include "core/client.h"
#include "core/device.h"
#include "core/handle.h"
#include "core/link/idle.h"
#include "core/link/listeners.h"
#include "core/link/server.h"
#include "core/memory/svm.h"
#include "core/progress.h"

static void destroy(cl_context x)
{
        while (x->destructors) {
                struct destructor *d = x->destructors;
                x->destructors = d->next;
                mem_free(d);
        }
        mem_free(x->properties);
        mem_free(x->devices);
        handle_free(&x->h, sizeof(*x));
}

/* On the progress thread, without the lock. Nobody else has the context any more. */
static void call_destructors(struct deferred *end)
{
        cl_context x = container_of(end, struct _cl_context, end);
        for (struct destructor *d = x->destructors; d; d = d->next)
                d->fn(x, d->user_data);
        destroy(x);
}

int context_new(struct client *c, const struct context_params *params, cl_context *ret)
{
        cl_context x = mem_zalloc(sizeof(*x));
        if (!x)
                return SP_E_NOMEM;
        x->devices = mem_dup(params->devices, params->device_count * sizeof(*params->devices));
        if (params->properties)
                x->properties = mem_dup(params->properties,
                                        params->property_count * sizeof(*params->properties));
        if (!x->devices || (params->properties && !x->properties)) {
                destroy(x);
                return SP_E_NOMEM;
        }
        for (cl_uint i = 0; i < params->device_count; i++)
                x->devices[i] = device_present(x->devices[i]);
        handle_init(&x->h, HANDLE_CONTEXT);
        x->client = c;
        x->device_count = params->device_count;
        x->property_count = params->properties ? params->property_count : 0;
        x->notify = params->notify;
        x->notify_data = params->notify_data;
        for (cl_uint i = 0; i < x->device_count; i++) {
                device_hold(x->devices[i]);
                x->devices[i]->server->used++;
        }
        list_init(&x->domain_queues);
        list_init(&x->svm_chunks);
        list_init(&x->views.touched);
        list_init(&x->views.hot);
        list_init(&x->ahead.events);
        x->ahead.allowed = params->finish_ahead;
        list_append(client_contexts(c), &x->link);
        if (x->notify)
                progress_watch(c);
        *ret = x;
        return 0;
}

int context_on_destroy(cl_context x, void(CL_CALLBACK *fn)(cl_context, void *), void *user_data)
{
        struct destructor *d = mem_alloc(sizeof(*d));
        if (!d)
                return SP_E_NOMEM;
        *d = (struct destructor){
                .next = x->destructors,
                .fn = (void(CL_CALLBACK *)(void *, void *))(void *)fn,
                .user_data = user_data,
        };
        x->destructors = d;
        return 0;
}

cl_device_id context_device(cl_context x, const struct _cl_device_id *d)
{
        for (cl_uint i = 0; i < x->device_count; i++)
                if (x->devices[i]->shown == d->shown)
                        return x->devices[i];
        return NULL;
}

bool context_has_device(cl_context x, const struct _cl_device_id *d)
{
        return context_device(x, d) != NULL;
}

void context_hold(cl_context x)
{
        atomic_fetch_add(&x->h.holds, 1);
}

void context_unhold(cl_context x)
{
        if (atomic_fetch_sub(&x->h.holds, 1) != 1)
                return;
        list_remove(&x->link);
        if (x->notify)
                progress_unwatch(x->client);
        svm_end(x);
        list_each(q, &x->domain_queues, struct domain_queue, link)
        {
                struct session *s = server_session(q->server);
                /* Without memory the server keeps the queue until the session ends. */
                if (s && session_send(s, release, .object = q->queue_id) == 0)
                        server_kick(q->server);
                list_remove(&q->link);
                mem_free(q);
        }
        for (cl_uint i = 0; i < x->device_count; i++) {
                x->devices[i]->server->used--;
                device_polled(x->devices[i]); /* its session stays a while */
                device_unhold(x->devices[i]);
        }
        servers_unused(x->client);
        x->h.type = 0; /* "this context is no longer valid" in its callbacks */
        if (!x->destructors) {
                destroy(x);
                return;
        }
        client_defer(x->client, &x->end, call_destructors);
}

/* ---- errors of a context -------------------------------------------------------------------- */

struct notice {
        struct deferred call;
        cl_context context;
        char text[256];
};

static void notice_run(struct deferred *d)
{
        struct notice *n = container_of(d, struct notice, call);
        cl_context x = n->context;
        struct client *c = x->client;
        x->notify(n->text, NULL, 0, x->notify_data);
        client_lock(c);
        context_unhold(x);
        client_unlock(c);
        mem_free(n);
}

void context_notify(cl_context x, const char *text)
{
        if (!x->notify)
                return;
        struct notice *n = mem_zalloc(sizeof(*n));
        if (!n)
                return;
        size_t len = strnlen(text, sizeof(n->text) - 1);
        memcpy(n->text, text, len);
        n->context = x;
        context_hold(x);
        client_defer(x->client, &n->call, notice_run);
}

/* Does the context have a device there? */
static bool uses(const struct _cl_context *x, const struct server *s)
{
        for (cl_uint i = 0; i < x->device_count; i++)
                if (x->devices[i]->server == s)
                        return true;
        return false;
}

bool contexts_use(const struct server *s)
{
        list_each(x, &s->client->contexts, struct _cl_context, link)
        {
                if (uses(x, s))
                        return true;
        }
        return false;
}

void contexts_notify(const struct server *s, const char *text)
{
        list_each(x, &s->client->contexts, struct _cl_context, link)
        {
                if (uses(x, s))
                        context_notify(x, text);
        }
}

void contexts_server_lost(struct server *s, const struct server_loss *loss)
{
        char line[256];
        snprintf(line, sizeof(line), "SpanCL: the server %s is lost: %s", server_name(s),
                 loss->text);
        contexts_notify(s, line);
}
