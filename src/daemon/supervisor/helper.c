#include "daemon/supervisor/helper.h"

#include "base/log.h"
#include "daemon/supervisor/supervising.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/net/socket.h"
#include "os/process/process.h"
#include "os/thread.h"

enum { KILL_MS = 2000 }; /* for the end of a killed helper */

struct helper helper_of(const char *name, enum source_kind kind)
{
        return (struct helper){
                .name = name,
                .source.kind = kind,
                .log_source.kind = SOURCE_HELPER_LOG,
                .log.fd = -1,
                .control = -1,
        };
}

/* Run it with the other end of `control`, which this call closes. `path`: another program; NULL: this one. */
static int run(struct supervisor *s, struct helper *h, const char *path, char *const *arguments,
               int other_end)
{
        int log = FILE_STDERR;
        int r = h->shares_log ? 0 : child_log_open(&h->log, &s->spawner.log_budget, &log);
        if (!r)
                r = path ? run_program(path, arguments, other_end, log, &h->pid)
                         : run_self(&s->spawner, arguments, (char *[]){ NULL }, 0, other_end, log,
                                    &h->pid);
        if (log != FILE_STDERR)
                (void)file_close(log);
        (void)file_close(other_end);
        bool heard = h->source.kind != SOURCE_HELPER_LOG;
        if (!r && ((heard && supervisor_watch(s, h->control, &h->source) < 0) ||
                   (!h->shares_log && supervisor_watch(s, h->log.fd, &h->log_source) < 0)))
                r = SP_E_LIMIT;
        return r;
}

int helper_start(struct supervisor *s, struct helper *h, char *const *first)
{
        int pair[2];
        if (!socket_pair_packets(pair))
                return SP_E_LIMIT;
        h->control = pair[0];
        return run(s, h, NULL, first, pair[1]);
}

int helper_run(struct supervisor *s, struct helper *h, const char *path, char *const *argv)
{
        int ends[2];
        if (!file_pipe(ends))
                return SP_E_LIMIT;
        h->control = ends[1];
        if (file_never_wait(ends[1]))
                return run(s, h, path, argv, ends[0]);
        (void)file_close(ends[0]);
        return SP_E_LIMIT;
}

int helper_run_socket(struct supervisor *s, struct helper *h, const char *path, char *const *argv)
{
        int pair[2];
        if (!socket_pair_packets(pair))
                return SP_E_LIMIT;
        h->control = pair[0];
        return run(s, h, path, argv, pair[1]);
}

void helper_gone(struct supervisor *s, struct helper *h, unsigned again_ms)
{
        if (h->pid)
                process_kill(h->pid);
        h->pid = 0;
        if (h->control >= 0) {
                supervisor_unwatch(s, h->control);
                (void)file_close(h->control);
        }
        h->control = -1;
        child_log_close(&h->log, h->name, clock_now_ns());
        h->again_ns = again_ms ? clock_now_ns() + again_ms * MS : 0;
}

bool helper_ended(struct supervisor *s, struct helper *h, pid_t pid, unsigned again_ms)
{
        if (!pid || pid != h->pid)
                return false;
        h->pid = 0;
        helper_gone(s, h, again_ms);
        return true;
}

void helper_stop(struct supervisor *s, struct helper *h)
{
        pid_t pid = h->pid;
        helper_gone(s, h, 0);
        uint64_t deadline_ns = clock_now_ns() + KILL_MS * MS;
        while (pid && !process_has_ended(pid)) {
                if (clock_now_ns() > deadline_ns) {
                        log_error(LOG, "%s can't be killed: the kernel, or a driver of it, hangs",
                                  h->name);
                        return;
                }
                (void)thread_sleep(MS);
        }
        if (pid)
                process_collect(pid, NULL, NULL);
}

uint64_t helper_deadline(const struct helper *h)
{
        return h->pid ? UINT64_MAX : h->again_ns;
}

void helper_read_log(struct supervisor *s, struct helper *h)
{
        if (!child_log_read(&h->log, h->name, clock_now_ns()))
                supervisor_unwatch(s, h->log.fd);
}
