/* Requests: messages to a server that it answers. */
#ifndef SPANCL_CORE_REQUEST_H
#define SPANCL_CORE_REQUEST_H

#include "core/client.h"
#include "core/link/listeners.h"

/* A request to one server and its answer. */
struct request {
        uint64_t id; /* field `request` of the message */
        bool done;
        cl_int status;   /* the answer's; CL_DEVICE_NOT_AVAILABLE when the server is gone */
        struct buf info; /* the answer's block; the requester's to free (buf_fini) */
        struct server *server;
        /* Optional: called with the lock held when done, for requests that no thread waits for. */
        void (*notify)(struct request *r);
        void *user;
};

/* Register `r` with a fresh id, before its message is sent. SP_E_NOMEM. */
SP_NODISCARD int request_begin(struct client *c, struct server *s, struct request *r)
        REQUIRES(client_held);

/* Wait for the answer; afterwards `r` is no longer registered. */
void request_wait(struct client *c, struct request *r) REQUIRES(client_held);

void request_done(struct client *c, uint64_t id, cl_int status, struct bytes info)
        REQUIRES(client_held);
/* An answer of that server: completes the request if this server was asked. */
void request_answered(struct server *s, uint64_t id, cl_int status, struct bytes info)
        REQUIRES(client_held);
/* The server does not answer: all requests to it complete with CL_DEVICE_NOT_AVAILABLE. */
void requests_fail(struct server *s) REQUIRES(client_held);
void requests_server_lost(struct server *s, const struct server_loss *loss) REQUIRES(client_held);

#endif
