/* A session of the command-line tool with one server, without OpenCL. It queries the server's
 * devices and measures the link. Blocking; one thread. */
#ifndef SPANCL_CLI_REMOTE_H
#define SPANCL_CLI_REMOTE_H

#include "base/bytes.h"
#include "config/server_spec.h"
#include "loop/dial.h"
#include "transport/address.h"

struct remote;

/* Connect. An error was printed to stderr. */
SP_NODISCARD int remote_open(const struct server_spec *spec, int timeout_ms, struct remote **ret);

/* The same, but an error is written into `text`, as a sentence that names the server. */
enum { REMOTE_TEXT_MAX = 1200 };
SP_NODISCARD int remote_try(const struct server_spec *spec, int timeout_ms, struct remote **ret,
                            char text[REMOTE_TEXT_MAX]);

/* Connect as an observer to the session that this process of the server runs, and have it recorded
 * (docs/TRACING.md). Of the functions below, it can use the clock's and remote_trace. Errors as remote_try. */
SP_NODISCARD int remote_observe(const struct server_spec *spec, const char *address,
                                uint64_t process, int timeout_ms, struct remote **ret,
                                char text[REMOTE_TEXT_MAX]);

/* Get what was recorded: INFO_TRACE_* records, borrowed until remote_close. It comes once. SP_E_AGAIN: `ask` is false,
 * and the session has not ended. */
SP_NODISCARD int remote_trace(struct remote *r, bool ask, struct bytes *ret);

/* Say hello with this role. The answer, or the reason why there is none, is in *reply. */
SP_NODISCARD int remote_greet(const char *address, enum dial_role role, struct dial_reply *reply);

/* Find the address at which the server can tell who asks: of this host its Unix socket, else its own address. Errors as
 * remote_greet. */
SP_NODISCARD int remote_own_address(const struct server_spec *spec, char ret[ADDRESS_MAX],
                                    struct dial_reply *reply);

/* End the session. NULL is allowed. */
struct remote *remote_close(struct remote *r);

/* Get the INFO_DEVICE records of the server (proto/info.h), borrowed until remote_close. */
SP_NODISCARD int remote_devices(struct remote *r, struct bytes *ret);

/* Measure one round trip; *ret_ns is its time. */
SP_NODISCARD int remote_ping(struct remote *r, uint64_t *ret_ns);

/* Measure the median of many round trips, in microseconds. */
enum { REMOTE_PINGS = 64 };
SP_NODISCARD int remote_median(struct remote *r, double *ret_us);

/* Read the server's monotonic clock and, at the middle of the round trip, this side's. */
struct remote_clock {
        uint64_t here_ns, there_ns, round_trip_ns;
};
SP_NODISCARD int remote_clock(struct remote *r, struct remote_clock *ret);

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

/* Skip the server's address at the begin of a message about a connection. `address`: NULL for none. */
const char *remote_without_address(const char *text, const char *address);

/* Explain `status` of a function above, by the reason that the server or the connection gave if one did.
 * Borrowed until remote_close. */
const char *remote_reason(const struct remote *r, int status);

/* Print the same to stderr, with the server's name. */
void remote_complain(const struct remote *r, int status);

#endif
