#include "core/stats.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/variables.h"
#include "core/client.h"
#include "core/link/request.h"
#include "core/link/server.h"
#include "proto/info.h"

enum { ANSWER_NS = 1000000000 }; /* how long the servers may take */

struct report {
        FILE *out;
        bool started;
};

/* Names come from the environment: printable, but maybe with quotes. */
static void put_name(FILE *out, const char *name)
{
        fputc('"', out);
        for (; *name; name++) {
                if (*name == '"' || *name == '\\')
                        fputc('\\', out);
                if ((unsigned char)*name >= ' ')
                        fputc(*name, out);
        }
        fputc('"', out);
}

static void put_link(struct report *r, const char *from, const char *to, uint64_t messages,
                     uint64_t bytes, uint64_t bulk)
{
        fputs(r->started ? ",\n  {\"from\": " : "\n  {\"from\": ", r->out);
        r->started = true;
        put_name(r->out, from);
        fputs(", \"to\": ", r->out);
        put_name(r->out, to);
        fprintf(r->out,
                ", \"messages\": %" PRIu64 ", \"bytes\": %" PRIu64 ", \"bulk_bytes\": %" PRIu64,
                messages, bytes, bulk);
}

static const char *peer_name(const struct client *c, uint64_t peer) REQUIRES(client_held)
{
        for (unsigned i = 0; i < c->server_count; i++)
                if (c->servers[i]->peers.id == peer)
                        return server_name(c->servers[i]);
        return "?";
}

/* The links between servers, each from its sending side. */
static void put_peers(struct report *r, const struct server *s, const struct buf *info)
        REQUIRES(client_held)
{
        struct info_entry e;
        for (struct bytes b = bytes_of(info->data, info->size); info_next(&b, &e);) {
                uint64_t peer = info_u64(e.value, INFO_LINK_PEER, 0);
                if (e.key != INFO_LINK || !peer)
                        continue;
                put_link(r, server_name(s), peer_name(s->client, peer),
                         info_u64(e.value, INFO_LINK_MESSAGES_SENT, 0),
                         info_u64(e.value, INFO_LINK_BYTES_SENT, 0),
                         info_u64(e.value, INFO_LINK_BULK_SENT, 0));
                fputs("}", r->out);
        }
}

static void put_client(struct report *r, const struct server *s, const struct session_stats *t)
{
        put_link(r, "client", server_name(s), t->messages_sent, t->bytes_sent, t->bulk_sent);
        fprintf(r->out, ", \"frames\": %" PRIu64 "}", t->frames_sent);
        put_link(r, server_name(s), "client", t->messages_received, t->bytes_received,
                 t->bulk_received);
        fprintf(r->out, ", \"frames\": %" PRIu64 "}", t->frames_received);
}

struct asked {
        struct request request;
        struct session_stats stats; /* before we asked */
        bool valid;
};

struct all_asked {
        struct asked *asked;
        unsigned count;
};

static bool all_answered(void *arg)
{
        struct all_asked *a = arg;
        for (unsigned i = 0; i < a->count; i++)
                if (a->asked[i].request.server && !a->asked[i].request.done)
                        return false;
        return true;
}

static void ask(struct server *s, struct asked *a) REQUIRES(client_held)
{
        struct session *session = server_session(s);
        if (!session)
                return;
        a->stats = *session_get_stats(session);
        a->valid = true;
        if (request_begin(s->client, s, &a->request) < 0)
                a->request.done = true;
        else if (session_send(session, stats_query, .request = a->request.id) < 0)
                request_done(s->client, a->request.id, CL_OUT_OF_HOST_MEMORY, (struct bytes){ 0 });
}

static void write_report(struct client *c, FILE *out) REQUIRES(client_held)
{
        struct report r = { .out = out };
        uint64_t waits = c->wait.count;
        struct asked *asked = mem_zalloc(c->server_count * sizeof(*asked));
        if (!asked)
                return;
        for (unsigned i = 0; i < c->server_count; i++)
                ask(c->servers[i], &asked[i]);
        struct all_asked all = { asked, c->server_count };
        client_wait_until(c, all_answered, &all, client_now_ns(c) + ANSWER_NS);
        fprintf(out, "{\"waits\": %" PRIu64 ", \"links\": [", waits);
        for (unsigned i = 0; i < c->server_count; i++) {
                struct asked *a = &asked[i];
                if (a->valid)
                        put_client(&r, c->servers[i], &a->stats);
                if (a->valid && a->request.done)
                        put_peers(&r, c->servers[i], &a->request.info);
                map_del(&c->requests, a->request.id); /* when there was no answer */
                buf_fini(&a->request.info);
        }
        fputs("\n]}\n", out);
        mem_free(asked);
}

void stats_write(struct client *c)
{
        const char *path = config_text(CONFIG_stats);
        if (!*path || !c->server_count)
                return;
        if (!strcmp(path, "-")) {
                write_report(c, stderr);
                return;
        }
        FILE *out = fopen(path, "we");
        if (!out) {
                log_error("client", "SPANCL_STATS: can't write %s: error %d", path, errno);
                return;
        }
        write_report(c, out);
        if (fclose(out) != 0)
                log_error("client", "SPANCL_STATS: can't write %s: error %d", path, errno);
}
