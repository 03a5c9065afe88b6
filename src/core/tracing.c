#include "core/tracing.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/variables.h"
#include "core/client.h"
#include "core/energy.h"
#include "core/link/request.h"
#include "core/link/server.h"
#include "core/profile/journal.h"
#include "core/profile/trace_links.h"
#include "core/profile/trace_server.h"
#include "core/recorder.h"
#include "os/file.h"
#include "trace/lttng.h"
#include "trace/timeline.h"

enum {
        ANSWER_NS = 2000000000, /* how long a server may take */
        SLACK_NS = 10000000, /* by which the times of servers may be worse than the clocks tell */
};

static uint64_t begin_ns; /* when recording began */

void tracing_start(void)
{
        if (config_number(CONFIG_client_lttng))
                (void)lttng_start(false);
        /* Half; the journal has the rest. */
        if (config_number(CONFIG_trace_ring))
                trace_limit((size_t)config_number(CONFIG_trace_ring) << 19);
        else if (config_number(CONFIG_trace_size))
                trace_extend((size_t)config_number(CONFIG_trace_size) << 19);
        recorder_start();
        if (*config_text(CONFIG_trace))
                trace_start(!recorder_is_on());
        begin_ns = clock_now_ns();
}

void tracing_server(struct server *s, bool knows_recorder)
{
        uint64_t flags = knows_recorder && recorder_is_on() ? TRACE_START_RECORDER : 0;
        if (!trace_is_recording() || s->spec->in_process) /* which records where we do */
                return;
        if (session_send(s->session, trace_start, .flags = flags) < 0)
                log_error("client", "out of memory: %s is not traced", server_name(s));
}

/* The state of one writing of the timeline. */
struct writing {
        struct client *client;
        struct timeline out;
        struct calls calls;
        struct journal_gaps gaps;
        uint64_t dropped; /* of the client's own records */
        struct trace_links *links;
        uint64_t begin_ns;  /* when the client began to record */
        const char *reason; /* of the flight recorder; NULL: the program ends */
};

static int put_own(void *user, const struct trace_thread *t) LOCK_UNCHECKED
{
        struct writing *w = user;
        timeline_thread(&w->out, JOURNAL_CLIENT, t->id, t->name);
        w->gaps.dropped += t->lost;
        for (size_t i = 0; i < t->count; i++) {
                const struct trace_record *r = &t->records[i];
                timeline_record(&w->out, JOURNAL_CLIENT, t->id, r, calls_put(&w->calls, r));
                trace_links_put(w->links, &w->out, r);
        }
        return 0;
}

static bool has_call(void *user, uint64_t event) LOCK_UNCHECKED
{
        const struct writing *w = user;
        return calls_have(&w->calls, event);
}

static void put_server(struct writing *w, const struct server *s, struct bytes info)
        REQUIRES(client_held)
{
        /* The session is younger than the client. */
        uint64_t error = server_clock_error_ns(s) + SLACK_NS;
        struct trace_server t = {
                .name = server_name(s),
                .index = s->index,
                .offset_ns = s->clock.offset,
                .begin_ns = w->begin_ns > error ? w->begin_ns - error : 0,
                .end_ns = client_now_ns(w->client) + error,
                .has_call = has_call,
                .user = w,
        };
        trace_server_put(&w->out, &t, info);
        w->gaps.dropped += t.gaps.dropped;
}

static bool is_done(void *request)
{
        return ((struct request *)request)->done;
}

/* One server after the other: their answers are large. */
static void ask(struct writing *w, struct server *s) REQUIRES(client_held)
{
        struct client *c = s->client;
        /* The exit can wait for a link that is made again, the flight recorder can not. */
        bool asks = !s->spec->in_process && (!w->reason || s->state == SERVER_UP);
        struct session *session = asks ? server_session(s) : NULL;
        struct request q = { 0 };
        if (!session || request_begin(c, s, &q) < 0)
                return;
        if (session_send(session, trace_query, .request = q.id) == 0 &&
            client_wait_until(c, is_done, &q, client_now_ns(c) + ANSWER_NS) && !q.status)
                put_server(w, s, bytes_of(q.info.data, q.info.size));
        else
                log_warn("client", "%s did not send its trace", server_name(s));
        map_del(&c->requests, q.id); /* when there was no answer */
        buf_fini(&q.info);
}

/* The process of a server's link, with what its connections are. */
static void put_link(struct writing *w, const struct server *s) REQUIRES(client_held)
{
        struct client *c = w->client;
        char what[100] = "in this process", name[400];
        if (!s->spec->in_process && s->link && c->io->describe)
                c->io->describe(c->io_user, s->link, what, sizeof(what));
        else if (!s->spec->in_process)
                snprintf(what, sizeof(what), "not connected");
        snprintf(name, sizeof(name), "%.250s: link (%s)", server_name(s), what);
        timeline_process(&w->out, JOURNAL_LINKS + s->index, name);
}

static void put_energy(struct writing *w) REQUIRES(client_held)
{
        struct client *c = w->client;
        struct energy_device devices[ENERGY_DEVICES];
        struct timeline_energy all[ENERGY_DEVICES];
        size_t count = energy_ask(c, devices);
        for (size_t i = 0; i < count; i++)
                all[i] = (struct timeline_energy){ server_name(c->servers[devices[i].server]),
                                                   devices[i].name, devices[i].number,
                                                   devices[i].energy_uj };
        if (count)
                timeline_energy(&w->out, all, count);
}

static void put_other(struct writing *w) REQUIRES(client_held)
{
        struct client *c = w->client;
        struct timeline_clock clocks[CLIENT_SERVERS_MAX];
        size_t known = 0;
        for (unsigned i = 0; i < c->server_count; i++) {
                const struct server *s = c->servers[i];
                if (s->spec->in_process || s->clock.at_ns)
                        clocks[known++] =
                                (struct timeline_clock){ server_name(s), server_clock_error_ns(s),
                                                         s->clock.offset };
        }
        timeline_other(&w->out);
        timeline_arg_text(&w->out, "version", SPANCL_VERSION);
        if (w->reason)
                timeline_arg_text(&w->out, "reason", w->reason);
        timeline_arg(&w->out, "dropped", w->gaps.dropped);
        timeline_arg(&w->out, "dropped_client", w->dropped);
        timeline_arg(&w->out, "untimed", w->gaps.untimed);
        timeline_clocks(&w->out, clocks, known);
        if (!w->reason) /* the flight recorder does not wait for samples */
                put_energy(w);
}

static void write_all(struct writing *w, FILE *file) REQUIRES(client_held)
{
        struct client *c = w->client;
        timeline_begin(&w->out, file);
        timeline_process(&w->out, JOURNAL_CLIENT, "client");
        bool bad = trace_links_new(c->server_count, &w->links) < 0;
        for (unsigned i = 0; i < c->server_count; i++)
                put_link(w, c->servers[i]);
        bad |= trace_read(put_own, w) < 0 || w->calls.incomplete;
        calls_sort(&w->calls);
        trace_links_end(w->links, &w->out);
        bad |= journal_write(c, &w->calls, &w->out, &w->gaps) < 0;
        w->dropped = w->gaps.dropped;
        for (unsigned i = 0; i < c->server_count; i++)
                ask(w, c->servers[i]);
        put_other(w);
        timeline_end(&w->out);
        if (bad)
                log_error("client", "SPANCL_TRACE: out of memory; the timeline is not complete");
        trace_links_free(w->links);
        calls_fini(&w->calls);
}

/* `file`: NULL: it can't be opened. */
static bool write_to(struct writing *w, FILE *file, const char *path) REQUIRES(client_held)
{
        if (file) {
                write_all(w, file);
                bool bad = ferror(file);
                if (fclose(file) == 0 && !bad)
                        return true;
        }
        log_error("client", "SPANCL_TRACE: can't write %s: error %d", path, errno);
        return false;
}

void tracing_dump(struct client *c, const char *reason, unsigned number)
{
        struct writing w = { .client = c, .begin_ns = begin_ns, .reason = reason };
        char path[PATH_MAX], part[PATH_MAX + 8];
        if (!timeline_path(config_text(CONFIG_trace), number, path, sizeof(path)))
                return;
        /* The program may end meanwhile, and no file is better than half of one. */
        snprintf(part, sizeof(part), "%s.part", path);
        if (!write_to(&w, file_create_stream(part), part))
                return;
        if (file_move(part, path, true))
                log_warn("client", "the flight recorder has written %s: %s", path, reason);
        else
                log_error("client", "SPANCL_TRACE: can't write %s: error %d", path, errno);
}

void tracing_write(struct client *c)
{
        bool recorded = trace_is_recording(), recorder = recorder_is_on();
        recorder_finish(c);
        trace_stop(); /* what follows is no work of the program */
        if (!recorded || recorder)
                return;
        struct writing w = { .client = c, .begin_ns = begin_ns };
        const char *path = config_text(CONFIG_trace);
        (void)write_to(&w, fopen(path, "we"), path); /* it may be a terminal */
}
