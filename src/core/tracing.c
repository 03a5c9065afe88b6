#include "core/tracing.h"

#include <errno.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/variables.h"
#include "core/client.h"
#include "core/link/request.h"
#include "core/link/server.h"
#include "proto/info.h"
#include "trace/lttng.h"
#include "trace/timeline.h"

enum {
        ANSWER_NS = 2000000000, /* how long the servers may take */
        CLIENT_PROCESS = 1,     /* of the timeline; the servers' follow */
};

void tracing_start(void)
{
        if (config_number(CONFIG_client_lttng))
                (void)lttng_start(false);
        if (*config_text(CONFIG_trace))
                trace_start();
}

void tracing_server(struct server *s)
{
        if (!trace_is_recording() || s->spec->in_process) /* which records where we do */
                return;
        if (session_send(s->session, trace_start, .request = 0) < 0)
                log_error("client", "out of memory: %s is not traced", server_name(s));
}

static int put_own(void *user, const struct trace_thread *t)
{
        struct timeline *out = user;
        timeline_thread(out, CLIENT_PROCESS, t->id, t->name);
        for (size_t i = 0; i < t->count; i++)
                timeline_record(out, CLIENT_PROCESS, t->id, &t->records[i]);
        return 0;
}

/* One INFO_TRACE_THREAD of a server, brought to the client's clock. */
static void put_remote(struct timeline *out, const struct server *s, struct bytes block)
        REQUIRES(client_held)
{
        unsigned process = CLIENT_PROCESS + 1 + s->index;
        struct bytes name = { 0 }, records = { 0 };
        char text[17];
        uint64_t thread = info_u64(block, INFO_TRACE_THREAD_ID, 0);
        info_find(block, INFO_TRACE_THREAD_NAME, &name);
        info_find(block, INFO_TRACE_RECORDS, &records);
        snprintf(text, sizeof(text), "%.*s", (int)(name.size < 16 ? name.size : 16),
                 name.size ? (const char *)name.data : "");
        timeline_thread(out, process, thread, text);
        for (const uint8_t *p = records.data; records.size >= 32; p += 32, records.size -= 32) {
                const struct trace_record r = {
                        .begin_ns = server_local_ns(s, bytes_get_u64(p)),
                        .end_ns = server_local_ns(s, bytes_get_u64(p + 8)),
                        .probe = bytes_get_u64(p + 16),
                        .value = bytes_get_u64(p + 24),
                };
                timeline_record(out, process, thread, &r);
        }
}

static void put_server(struct timeline *out, const struct server *s, const struct buf *info)
        REQUIRES(client_held)
{
        struct info_entry e;
        timeline_process(out, CLIENT_PROCESS + 1 + s->index, server_name(s));
        for (struct bytes b = bytes_of(info->data, info->size); info_next(&b, &e);)
                if (e.key == INFO_TRACE_THREAD)
                        put_remote(out, s, e.value);
}

static bool is_done(void *request)
{
        return ((struct request *)request)->done;
}

/* One server after the other: their answers are large. */
static void ask(struct timeline *out, struct server *s) REQUIRES(client_held)
{
        struct client *c = s->client;
        struct session *session = s->spec->in_process ? NULL : server_session(s);
        struct request q = { 0 };
        if (!session || request_begin(c, s, &q) < 0)
                return;
        if (session_send(session, trace_query, .request = q.id) == 0 &&
            client_wait_until(c, is_done, &q, client_now_ns(c) + ANSWER_NS) && !q.status)
                put_server(out, s, &q.info);
        else
                log_warn("client", "%s did not send its trace", server_name(s));
        map_del(&c->requests, q.id); /* when there was no answer */
        buf_fini(&q.info);
}

void tracing_write(struct client *c)
{
        const char *path = config_text(CONFIG_trace);
        bool recorded = trace_is_recording();
        trace_stop(); /* what follows is no work of the program */
        if (!recorded)
                return;
        FILE *file = fopen(path, "we");
        if (!file) {
                log_error("client", "SPANCL_TRACE: can't write %s: error %d", path, errno);
                return;
        }
        struct timeline out;
        timeline_begin(&out, file);
        timeline_process(&out, CLIENT_PROCESS, "client");
        if (trace_read(put_own, &out) < 0)
                log_error("client", "SPANCL_TRACE: out of memory");
        for (unsigned i = 0; i < c->server_count; i++)
                ask(&out, c->servers[i]);
        timeline_end(&out);
        bool bad = ferror(file);
        if (fclose(file) != 0 || bad)
                log_error("client", "SPANCL_TRACE: can't write %s: error %d", path, errno);
}
