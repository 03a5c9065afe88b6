#include <errno.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "config/variables.h"
#include "core/energy.h"
#include "core/link/server.h"
#include "core/profile/ledger.h"
#include "core/profile/profile.h"

static const char *const wait_names[PROFILE_WAITS] = {
        [PROFILE_FINISH] = "finish", [PROFILE_EVENTS] = "events", [PROFILE_BLOCKING] = "blocking",
        [PROFILE_TAKEN] = "taken",   [PROFILE_ROOM] = "room",     [PROFILE_ANSWER] = "answer",
};

/* Names come from the program and the environment: they must not look like fields or lines. */
static void put_name(FILE *out, const char *name)
{
        for (; *name; name++)
                fputc((unsigned char)*name < ' ' ? '?' : *name, out);
        fputc('\n', out);
}

static void put_server(FILE *out, struct server *s) REQUIRES(client_held)
{
        struct session *session = server_session(s);
        struct session_stats none = { 0 };
        const struct session_stats *t = session ? session_get_stats(session) : &none;
        fprintf(out, "server\t%u\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t", s->index,
                s->spec->in_process ? 0 : s->clock.rtt_ns, t->messages_sent,
                t->bytes_sent + t->bulk_sent, t->bytes_received + t->bulk_received);
        put_name(out, server_name(s));
}

static void put_wait(FILE *out, unsigned server, const char *name, const struct ledger_wait *w)
{
        if (w->calls)
                fprintf(out,
                        "wait\t%u\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
                        "\t%" PRIu64 "\n",
                        server, name, w->calls, w->waits, w->ns, w->device_ns, w->link_ns,
                        w->server_ns);
}

static void put_row(FILE *out, const struct ledger_row *r)
{
        if (!r->used || !r->count)
                return;
        fprintf(out,
                "%s\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
                "\t",
                r->kernel ? "kernel" : "command", r->server, r->count, r->bytes, r->timed,
                r->device_ns, r->wait_ns);
        put_name(out, r->name);
}

static void put_energy(struct client *c, FILE *out) REQUIRES(client_held)
{
        struct energy_device devices[ENERGY_DEVICES];
        size_t count = energy_ask(c, devices);
        for (size_t i = 0; i < count; i++) {
                fprintf(out, "energy\t%u\t%" PRIu64 "\t%" PRIu64 "\t", devices[i].server,
                        devices[i].number, devices[i].energy_uj);
                put_name(out, devices[i].name);
        }
}

/* The format: lines of fields with tabs between them, the number of the format in the first one and `end` in the last.
 * src/cli/profile_ledger.c reads it. */
static void put_all(struct client *c, FILE *out) REQUIRES(client_held)
{
        const struct ledger *l = &profile_ledger;
        fprintf(out,
                "spancl-profile\t1\ntotal\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
                "\t%" PRIu64 "\n",
                client_now_ns(c) - l->begin_ns, l->calls, l->call_ns, l->waits, l->wait_ns);
        for (unsigned i = 0; i < c->server_count; i++)
                put_server(out, c->servers[i]);
        for (unsigned i = 0; i <= CLIENT_SERVERS_MAX; i++)
                for (unsigned k = 0; k < PROFILE_WAITS; k++)
                        put_wait(out, i, wait_names[k], &l->by_server[i][k]);
        for (unsigned i = 0; i < LEDGER_ROWS; i++)
                put_row(out, &l->rows[i]);
        for (unsigned i = 0; i < LEDGER_MOVES; i++) {
                const struct ledger_move *m = &l->moves[i];
                if (m->used && m->count)
                        fprintf(out,
                                "move\t%" PRIu64 "\t%" PRIu64 "\t%d\t%" PRIu32 "\t%" PRIu64
                                "\t%" PRIu64 "\n",
                                m->id, m->size, m->from, m->to, m->count, m->bytes);
        }
        put_energy(c, out);
        fputs("end\n", out);
}

void profile_write(struct client *c)
{
        const char *path = config_text(CONFIG_profile_file);
        if (!profile_on)
                return;
        profile_on = false; /* what follows is no work of the program */
        if (!*path)
                return;
        FILE *out = fopen(path, "we");
        if (!out) {
                log_error("client", "SPANCL_PROFILE_FILE: can't write %s: error %d", path, errno);
                return;
        }
        put_all(c, out);
        bool bad = ferror(out);
        if (fclose(out) != 0 || bad)
                log_error("client", "SPANCL_PROFILE_FILE: can't write %s: error %d", path, errno);
}
