/* The clients that have sessions here, and what each of them uses on this server: sessions, device memory, device
 * time. A client is a key, all that have the token, a user of this host on the Unix socket, or an address.
 *
 * The supervisor counts sessions itself. For memory and device time it makes a page for each client
 * (engine/account.h), which the workers of that client write. It checks the device time against the processor time
 * of these workers, which they cannot falsify. Part of the supervisor; its thread. */
#ifndef SPANCL_DAEMON_ACCOUNTS_H
#define SPANCL_DAEMON_ACCOUNTS_H

#include "daemon/supervisor/supervising.h"

/* Return a sentence on why that client may not begin another session; NULL: it may. */
const char *accounts_refuse(const struct supervisor *s, const struct gate_grant *client);

/* The worker gets a session of that client: count it, and send the worker its account before the connection.
 * SP_E_NOMEM, SP_E_LIMIT, SP_E_LINK. */
SP_NODISCARD int accounts_begin(struct supervisor *s, struct worker *w,
                                const struct gate_grant *client);

/* The client has a new key (`was` of the grant): its account goes on. */
void accounts_rekeyed(struct supervisor *s, const struct gate_grant *client);

/* The worker has ended, or its session never began. `cpu_ns`: the processor time of the worker and of its children
 * that it has waited for; 0: not known. Without a session it does nothing. */
void accounts_end(struct supervisor *s, struct worker *w, uint64_t cpu_ns);

/* Return true if device memory of the worker's session, or of its client, is limited. */
bool accounts_limit_memory(const struct supervisor *s, const struct worker *w);

/* Look at the device time of all clients, and let kernels of clients wait or go on. */
void accounts_check(struct supervisor *s, uint64_t now_ns);
/* The next such time; UINT64_MAX: none. */
uint64_t accounts_deadline(const struct supervisor *s);

/* Append an exchange for each client, as far as there is room: what it uses, and its limits (INFO_ACCOUNT).
 * SP_E_NOMEM. */
SP_NODISCARD int accounts_report(const struct supervisor *s, struct buf *out);

/* Return the disk space in bytes that the caches of a client with these rights may take. */
uint64_t accounts_cache_bytes(const struct supervisor *s, const struct gate_grant *client);

void accounts_fini(struct supervisor *s);

#endif
