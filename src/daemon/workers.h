/* The supervisor's workers: as many as are needed are started, and what becomes of those that end. */
#ifndef SPANCL_DAEMON_WORKERS_H
#define SPANCL_DAEMON_WORKERS_H

#include "daemon/supervising.h"

/* Is a worker for one good for the other? */
bool grant_is_same(const struct gate_grant *a, const struct gate_grant *b);

size_t workers_count(const struct supervisor *s, enum worker_state state);

/* The worker that has that session; NULL: none. */
struct worker *workers_find(struct supervisor *s, uint64_t hi, uint64_t lo);

/* Why that session was ended here, as a sentence; NULL: it was not, or long ago. */
const char *workers_why_ended(const struct supervisor *s, uint64_t hi, uint64_t lo);

/* One without a session: warm or, if told, warming. */
struct worker *workers_find_free(struct supervisor *s, const struct gate_grant *grant,
                                 enum worker_state state);

/* Make as many as are needed now. */
void workers_provide(struct supervisor *s);

/* Ask for a warm one at that time, or at once when somebody waits. */
void workers_provide_at(struct supervisor *s, uint64_t ns);

/* It has written to its log. */
void worker_hear_log(struct supervisor *s, struct worker *w);

/* Hear those again that said too much, give those up that do not become ready; when the next one's time is over, UINT64_MAX:
 * nobody's. */
void workers_expire(struct supervisor *s, uint64_t now_ns);
uint64_t workers_deadline(const struct supervisor *s);

/* Start a worker that checks this device, and nothing else. SP_E_NOMEM, SP_E_LIMIT. */
SP_NODISCARD int worker_check(struct supervisor *s, unsigned device);

/* End one without a session, which is not wanted any more. */
void worker_dismiss(struct supervisor *s, struct worker *w);

/* End its session, which exceeds a limit: `why` is a sentence for the client and the log, and static. */
void worker_over(struct supervisor *s, struct worker *w, const char *why);

/* Read what a worker says. SIGCHLD tells of its death. */
void worker_hear(struct supervisor *s, struct worker *w);

/* SIGCHLD has come. True: to be called again, there may be more. */
bool workers_reap(struct supervisor *s);

/* Trim the caches of sessions that go on, from time to time. */
void workers_trim(struct supervisor *s, uint64_t now_ns);

/* Forget workers that ended before they had told their numbers. */
void workers_forget_unborn(struct supervisor *s);

/* Ask them to end, and after a while see to it. `run` handles events for at most that long. */
void workers_stop(struct supervisor *s, void (*run)(struct supervisor *s, int timeout_ms));

#endif
