#include "cli/trace/attach.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "cli/stats_query.h"
#include "core/profile/trace_server.h"
#include "os/clock.h"
#include "os/condition.h"
#include "os/file.h"
#include "os/poll.h"
#include "os/signals.h"
#include "os/thread.h"
#include "os/wakeup.h"

enum {
        EACH_NS = 500000000, /* how often a session's clock is asked for */
        SLACK_NS = 10000000, /* by which times may be worse than the clocks tell */
        CLOCK_DRIFT = 20000, /* clocks may drift by one in so many (50 ppm) */
        LABEL = SNAPSHOT_NAME + ADDRESS_MAX + 32,
};

/* A session that is recorded, by a thread of its own. */
struct watched {
        struct recording *recording;
        const struct server_spec *spec;
        const char *address; /* of the server */
        uint64_t process;
        char label[LABEL];
        thread_id thread;
        bool started, shown;

        /* The thread's, until it is done. */
        struct remote *remote;
        struct remote_clock clock; /* the one of the shortest round trip */
        uint64_t begin_ns, end_ns;
        struct bytes info;
        bool has_info, ended; /* the session has */
        int status;
        char text[REMOTE_TEXT_MAX];

        bool begun, done; /* guarded by the recording's lock */
};

struct recording {
        const struct attach *attach;
        struct lock lock;
        struct condition changed;
        bool stop; /* guarded */
        int wake;
        struct watched all[ATTACH_SESSIONS_MAX];
        size_t count;
        size_t left_out; /* sessions that found no room */
        char (*addresses)[ADDRESS_MAX];
        struct journal_gaps gaps;
        uint64_t by_server; /* commands whose times are not of their device */
};

bool attach_seconds(const char *text, uint64_t *ret)
{
        static const struct {
                const char *name;
                uint64_t seconds;
        } units[] = { { "s", 1 }, { "", 1 }, { "min", 60 }, { "h", 3600 } };
        size_t n = strspn(text, "0123456789");
        uint64_t number = n && n < 7 ? strtoull(text, NULL, 10) : 0;
        for (size_t i = 0; i < array_size(units); i++)
                if (number && !strcmp(text + n, units[i].name) &&
                    number * units[i].seconds <= ATTACH_SECONDS_MAX) {
                        *ret = number * units[i].seconds;
                        return true;
                }
        return false;
}

/* ---- sessions ------------------------------------------------------------------------------- */

static bool is_wanted(const struct attach *a, const struct snapshot_session *s)
{
        char number[32];
        snprintf(number, sizeof(number), "%" PRIu64, s->process);
        return !a->session || !strcmp(a->session, number) || !strcmp(a->session, s->program);
}

static void take_session(struct recording *r, const struct server_spec *spec, const char *address,
                         const struct snapshot_session *s)
{
        if (r->count == ATTACH_SESSIONS_MAX) {
                r->left_out++;
                return;
        }
        struct watched *w = &r->all[r->count++];
        *w = (struct watched){
                .recording = r,
                .spec = spec,
                .address = address,
                .process = s->process,
        };
        snprintf(w->label, sizeof(w->label), "%s: %s (%" PRIu64 ")", spec->name, s->program,
                 s->process);
        bytes_tame(w->label, sizeof(w->label));
}

static int ask(const struct server_spec *spec, const char *address, struct snapshot *ret,
               char text[STATS_QUERY_TEXT_MAX])
{
        struct server_spec at = *spec;
        at.address = (char *)(uintptr_t)address;
        return stats_query(&at, options_timeout(), ret, text);
}

/* Find the sessions of a server. False: it can't be asked; the reason was printed. */
static bool find(struct recording *r, const struct server_spec *spec, char address[ADDRESS_MAX])
{
        struct dial_reply reply;
        struct snapshot seen;
        char text[STATS_QUERY_TEXT_MAX];
        if (spec->in_process)
                return true;
        if (remote_own_address(spec, address, &reply) < 0) {
                fprintf(stderr, "spancl: %s\n", reply.text);
                return false;
        }
        int status = ask(spec, address, &seen, text);
        if (status < 0 && strcmp(address, spec->address) != 0) { /* that socket is for others */
                snprintf(address, ADDRESS_MAX, "%s", spec->address);
                status = ask(spec, address, &seen, text);
        }
        if (status < 0) {
                fprintf(stderr, "spancl: %s\n", text);
                return false;
        }
        for (size_t i = 0; i < seen.count; i++)
                if (seen.sessions[i].process && is_wanted(r->attach, &seen.sessions[i]))
                        take_session(r, spec, address, &seen.sessions[i]);
        snapshot_fini(&seen);
        return true;
}

/* ---- the thread of a session ---------------------------------------------------------------- */

static void take_clock(struct watched *w, const struct remote_clock *c)
{
        if (!w->clock.here_ns ||
            c->round_trip_ns <
                    w->clock.round_trip_ns + (c->here_ns - w->clock.here_ns) / CLOCK_DRIFT)
                w->clock = *c;
}

/* Say that something has changed. */
static void tell(struct watched *w, bool *what)
{
        lock_take(&w->recording->lock);
        *what = true;
        lock_release(&w->recording->lock);
        wakeup_set(w->recording->wake);
}

/* Sleep until the clock is to be asked for again. False: the recording ends. */
static bool pause_between(struct recording *r)
{
        uint64_t until = clock_now_ns() + EACH_NS;
        lock_take(&r->lock);
        while (!r->stop && condition_wait_until(&r->changed, &r->lock, until))
                ;
        bool stop = r->stop;
        lock_release(&r->lock);
        return !stop;
}

static void record(struct watched *w)
{
        struct remote_clock c;
        w->begin_ns = clock_now_ns();
        do {
                w->status = remote_clock(w->remote, &c);
                if (!w->status)
                        take_clock(w, &c);
                /* A session that ends sends what it has. */
                w->ended = w->has_info = remote_trace(w->remote, false, &w->info) == 0;
                if (!w->status && !w->begun)
                        tell(w, &w->begun);
        } while (!w->status && !w->has_info && pause_between(w->recording));
        if (!w->has_info && !w->status)
                w->status = remote_trace(w->remote, true, &w->info);
        w->has_info |= !w->status;
        w->end_ns = clock_now_ns();
        if (!w->has_info)
                snprintf(w->text, sizeof(w->text), "%s", remote_reason(w->remote, w->status));
}

static void *watch(void *arg)
{
        struct watched *w = arg;
        w->status = remote_observe(w->spec, w->address, w->process, options_timeout(), &w->remote,
                                   w->text);
        if (!w->status)
                record(w);
        tell(w, &w->done);
        return NULL;
}

/* ---- the main thread ------------------------------------------------------------------------ */

/* Say which sessions are recorded. Returns true if all threads are done. */
static bool show(struct recording *r)
{
        bool done = true;
        lock_take(&r->lock);
        for (size_t i = 0; i < r->count; i++) {
                struct watched *w = &r->all[i];
                done &= w->done || !w->started;
                if (w->begun && !w->shown)
                        fprintf(stderr, "spancl: recording %s\n", w->label);
                w->shown = w->begun;
        }
        lock_release(&r->lock);
        return done;
}

static void wait_until_end(struct recording *r, int signals)
{
        uint64_t end =
                r->attach->seconds ? clock_now_ns() + r->attach->seconds * 1000000000 : UINT64_MAX;
        struct pollfd fds[] = { { .fd = signals, .events = POLLIN },
                                { .fd = r->wake, .events = POLLIN } };
        while (!show(r) && clock_now_ns() < end) {
                if (poll(fds, array_size(fds), clock_poll_ms(end)) < 0 && errno != EINTR)
                        break;
                if (fds[0].revents && signals_next(signals))
                        break;
                if (fds[1].revents)
                        wakeup_clear(r->wake);
        }
        lock_take(&r->lock);
        r->stop = true;
        condition_broadcast(&r->changed);
        lock_release(&r->lock);
        for (size_t i = 0; i < r->count; i++)
                if (r->all[i].started)
                        thread_join(r->all[i].thread);
        (void)show(r);
}

static void start(struct recording *r)
{
        for (size_t i = 0; i < r->count; i++) {
                struct watched *w = &r->all[i];
                w->started = thread_start(&w->thread, false, watch, w) == 0;
                if (!w->started)
                        snprintf(w->text, sizeof(w->text), "%s: a thread can't be started",
                                 w->label);
        }
}

/* Print what became of the sessions. Returns the number of those that were recorded. */
static size_t report(const struct recording *r)
{
        size_t recorded = 0;
        for (size_t i = 0; i < r->count; i++) {
                const struct watched *w = &r->all[i];
                recorded += w->has_info;
                if (w->has_info && w->ended)
                        fprintf(stderr, "spancl: %s has ended meanwhile\n", w->label);
                else if (!w->has_info && !w->begun)
                        fprintf(stderr, "spancl: %s: %s\n", w->label,
                                remote_without_address(w->text, w->address));
                else if (!w->has_info)
                        fprintf(stderr, "spancl: %s is lost, with what it had recorded: %s\n",
                                w->label, w->text);
        }
        if (r->left_out)
                fprintf(stderr, "spancl: %zu more sessions are not recorded: %d is the most\n",
                        r->left_out, ATTACH_SESSIONS_MAX);
        return recorded;
}

/* ---- the file ------------------------------------------------------------------------------- */

/* Its clock is this host's if its time lies within the round trip: clocks of two hosts do not agree by chance. */
static int64_t offset_of(const struct remote_clock *c)
{
        int64_t offset = (int64_t)(c->there_ns - c->here_ns);
        uint64_t apart = offset < 0 ? -(uint64_t)offset : (uint64_t)offset;
        return apart <= c->round_trip_ns / 2 ? 0 : offset;
}

static uint64_t error_of(const struct watched *w)
{
        return offset_of(&w->clock)
                       ? w->clock.round_trip_ns / 2 + (w->end_ns - w->begin_ns) / CLOCK_DRIFT
                       : 0;
}

static void put_session(struct recording *r, struct timeline *out, unsigned index)
{
        const struct watched *w = &r->all[index];
        uint64_t error = error_of(w) + SLACK_NS;
        struct trace_server s = {
                .name = w->label,
                .index = index,
                .offset_ns = offset_of(&w->clock),
                .begin_ns = w->begin_ns > error ? w->begin_ns - error : 0,
                .end_ns = w->end_ns + error,
                .skips_older = true,
        };
        trace_server_put(out, &s, w->info);
        trace_server_put_commands(out, &s, w->info);
        r->gaps.dropped += s.gaps.dropped;
        r->gaps.untimed += s.gaps.untimed;
        r->by_server += s.by_server;
}

static void put_all(struct recording *r, FILE *file)
{
        struct timeline_clock clocks[ATTACH_SESSIONS_MAX];
        struct timeline out;
        unsigned count = 0;
        timeline_begin(&out, file);
        for (unsigned i = 0; i < r->count; i++) {
                const struct watched *w = &r->all[i];
                if (!w->has_info)
                        continue;
                out.flow_salt = (uint64_t)(i + 1) << 40; /* each session counts its events */
                put_session(r, &out, i);
                clocks[count++] =
                        (struct timeline_clock){ w->label, error_of(w), offset_of(&w->clock) };
        }
        timeline_other(&out);
        timeline_arg_text(&out, "version", SPANCL_VERSION);
        timeline_arg(&out, "attached", count);
        timeline_arg(&out, "missing", r->count + r->left_out - count);
        timeline_arg(&out, "dropped", r->gaps.dropped);
        timeline_arg(&out, "untimed", r->gaps.untimed);
        timeline_arg(&out, "by_server", r->by_server);
        timeline_clocks(&out, clocks, count);
        timeline_end(&out);
}

/* A file is complete or not there. */
static int write_file(struct recording *r)
{
        char part[PATH_MAX];
        const char *path = r->attach->file;
        int n = snprintf(part, sizeof(part), "%s.part", path);
        FILE *file = n > 0 && (size_t)n < sizeof(part) ? file_create_stream(part) : NULL;
        bool good = file != NULL;
        if (file) {
                put_all(r, file);
                good = !ferror(file);
                good &= fclose(file) == 0;
        }
        if (good && file_move(part, path, true))
                return 0;
        fprintf(stderr, "spancl: can't write %s: %s\n", path, strerror(errno));
        if (file)
                (void)file_unlink(part);
        return SP_E_UNSUPP;
}

static void free_recording(struct recording *r)
{
        for (size_t i = 0; i < r->count; i++)
                remote_close(r->all[i].remote);
        if (r->wake >= 0)
                (void)file_close(r->wake);
        condition_fini(&r->changed);
        lock_fini(&r->lock);
        mem_free(r->addresses);
        mem_free(r);
}

static int run(struct recording *r)
{
        static const int ends[] = { SIGINT, SIGTERM };
        size_t failed = 0;
        for (size_t i = 0; i < r->attach->count; i++)
                failed += !find(r, &r->attach->servers[i], r->addresses[i]);
        if (!r->count) {
                if (r->attach->session)
                        fprintf(stderr, "spancl: no session is %s: spancl top shows them all\n",
                                r->attach->session);
                else if (!failed)
                        fprintf(stderr, "spancl: there is no session to record\n");
                return SP_E_NOENT;
        }
        int signals = signals_watch(ends, array_size(ends));
        if (signals < 0 || r->wake < 0) {
                fprintf(stderr, "spancl: %s\n", strerror(errno));
                return SP_E_LIMIT;
        }
        start(r);
        wait_until_end(r, signals);
        (void)file_close(signals);
        if (!report(r))
                return SP_E_GONE;
        int status = write_file(r);
        if (!status && r->by_server)
                fprintf(stderr,
                        "spancl: %" PRIu64
                        " commands are in queues that were made before the recording: they are shown from "
                        "submission to completion, as the server saw them\n",
                        r->by_server);
        return status;
}

int attach_record(const struct attach *a)
{
        struct recording *r = mem_zalloc(sizeof(*r));
        if (r)
                r->addresses = mem_zalloc((a->count + 1) * sizeof(*r->addresses));
        if (!r || !r->addresses) {
                fprintf(stderr, "spancl: out of memory\n");
                mem_free(r);
                return SP_E_NOMEM;
        }
        r->attach = a;
        lock_init(&r->lock);
        condition_init(&r->changed);
        r->wake = wakeup_new();
        int status = run(r);
        free_recording(r);
        return status;
}
