/* A session of the command-line tool with one server, without OpenCL. It queries the server's
 * devices and measures the link. Blocking; one thread. */
#ifndef SPANCL_CLI_REMOTE_H
#define SPANCL_CLI_REMOTE_H

#include "base/bytes.h"
#include "config/server_spec.h"

struct remote;

/* Connect. An error was printed to stderr. */
SP_NODISCARD int remote_open(const struct server_spec *spec, int timeout_ms, struct remote **ret);

/* End the session. NULL is allowed. */
struct remote *remote_close(struct remote *r);

/* Get the INFO_DEVICE records of the server (proto/info.h), borrowed until remote_close. */
SP_NODISCARD int remote_devices(struct remote *r, struct bytes *ret);

/* Measure one round trip; *ret_ns is its time. */
SP_NODISCARD int remote_ping(struct remote *r, uint64_t *ret_ns);

struct remote_speed {
        double write, read; /* bytes per second, to and from a buffer on a device */
};

/* Measure the rates of `size` bytes both ways: the best of some rounds. */
SP_NODISCARD int remote_measure(struct remote *r, unsigned device, size_t size,
                                struct remote_speed *ret);

/* Return the name of the transport in use (transport.h). */
const char *remote_transport(const struct remote *r);

/* Return the time that connecting and the hello took. */
uint64_t remote_connect_ns(const struct remote *r);

/* Print the meaning of `status` for this server to stderr. */
void remote_complain(const struct remote *r, int status);

#endif
