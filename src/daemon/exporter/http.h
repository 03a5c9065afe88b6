/* The server's side of HTTP/1.1, as much as a scrape of metrics needs: GET of one resource, one
 * request for each connection, no body. No I/O, no state. */
#ifndef SPANCL_DAEMON_HTTP_H
#define SPANCL_DAEMON_HTTP_H

#include <stdbool.h>

#include "base/bytes.h"

enum { HTTP_HEAD_MAX = 4096 }; /* bytes of a request's head */

enum http_status {
        HTTP_MORE = 0, /* the head is not complete */
        HTTP_OK = 200,
        HTTP_BAD_REQUEST = 400,
        HTTP_NOT_FOUND = 404,
        HTTP_WRONG_METHOD = 405,
        HTTP_HEAD_TOO_LARGE = 431,
        HTTP_UNAVAILABLE = 503,
};

/* Judge the first `head.size` bytes of a connection, at most HTTP_HEAD_MAX. HTTP_OK: they are a
 * whole head that asks for /metrics. Unless `any_host`, a Host must be a numeric address or
 * localhost: a web page could otherwise read the answer under a name of its own, which its name
 * server changes to this address (DNS rebinding). */
enum http_status http_judge(struct bytes head, bool any_host);

/* Append a response with this body. The client learns that the connection ends behind it.
 * SP_E_NOMEM. */
SP_NODISCARD int http_respond(enum http_status status, struct bytes body, struct buf *out);

#endif
