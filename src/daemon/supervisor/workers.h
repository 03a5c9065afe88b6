/* The supervisor's workers: it starts as many as are needed, and handles their ends. */
#ifndef SPANCL_DAEMON_WORKERS_H
#define SPANCL_DAEMON_WORKERS_H

#include "daemon/supervisor/supervising.h"

/* Return true if both grants are the same, so that a worker for one can serve the other. */
bool grant_is_same(const struct gate_grant *a, const struct gate_grant *b);

size_t workers_count(const struct supervisor *s, enum worker_state state);

/* Find the worker that has that session; NULL: none. */
struct worker *workers_find(struct supervisor *s, uint64_t hi, uint64_t lo);

/* Return a sentence on why the supervisor ended that session; NULL: it did not, or long ago. */
const char *workers_why_ended(const struct supervisor *s, uint64_t hi, uint64_t lo);

/* Find a worker with these rights in this state; NULL: none. */
struct worker *workers_find_free(struct supervisor *s, const struct gate_grant *grant,
                                 enum worker_state state);

/* Start as many workers as are needed now. */
void workers_provide(struct supervisor *s);

/* Request a warm worker for that time, or at once when a connection waits for one. */
void workers_provide_at(struct supervisor *s, uint64_t ns);

/* Have every session's client notified that spancld drains. */
void workers_announce_drain(struct supervisor *s);

/* Read a worker's log output. */
void worker_read_log(struct supervisor *s, struct worker *w);

/* Receive again from workers that sent too much, and end workers that take too long to become
 * ready. Returns the next such time; UINT64_MAX: none. */
void workers_expire(struct supervisor *s, uint64_t now_ns);
uint64_t workers_deadline(const struct supervisor *s);

/* Start a worker that checks this device, and nothing else. SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int worker_check(struct supervisor *s, unsigned device);

/* End a worker that is not wanted any more. */
void worker_dismiss(struct supervisor *s, struct worker *w);

/* End a worker's session, which exceeds a limit: `why` is a static sentence for the client and
 * the log. */
void worker_over(struct supervisor *s, struct worker *w, const char *why);

/* Receive a worker's messages. SIGCHLD announces its death. */
void worker_read(struct supervisor *s, struct worker *w);

/* Collect ended processes after SIGCHLD. True: the caller calls again, because there may be more. */
bool workers_reap(struct supervisor *s);

/* Trim the caches of running sessions, from time to time. */
void workers_trim(struct supervisor *s, uint64_t now_ns);

/* Forget workers that ended before they had sent their numbers. */
void workers_forget_unborn(struct supervisor *s);

/* Ask all workers to end, and kill the rest after a while. `run` handles events for at most that
 * long. */
void workers_stop(struct supervisor *s, void (*run)(struct supervisor *s, int timeout_ms));

#endif
