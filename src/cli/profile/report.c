#include "cli/profile/report.h"

#include <inttypes.h>

#include "base/json_writer.h"
#include "base/mem.h"
#include "cli/profile/energy.h"
#include "cli/profile/other_links.h"

/* ---- text ----------------------------------------------------------------------------------- */

static void put_part(FILE *to, const struct answers *a, const char *name, uint64_t ns,
                     const char *what)
{
        char time[ANSWERS_NUMBER_MAX];
        double share = a->wall_ns ? (double)ns * 100 / (double)a->wall_ns : 0;
        fprintf(to, "  %-8s %10s %5.1f %%  %s\n", name, answers_time(ns, time), share, what);
}

const char *report_bound(enum answers_bound b)
{
        static const char *const texts[] = {
                [BOUND_PROGRAM] = "the program's own code",
                [BOUND_CLIENT] = "the calls of clEnqueue* themselves",
                [BOUND_DEVICE] = "the devices",
                [BOUND_LATENCY] = "the latency of the links",
                [BOUND_SYNCHRONISATION] =
                        "the program's own synchronisation: it waits after nearly each command",
                [BOUND_BANDWIDTH] = "the bandwidth of the links",
                [BOUND_SERVER] = "the servers: builds, queries, and their own work",
                [BOUND_WAITING] = "waits for something else",
                [BOUND_NOTHING] = "nothing: the program made no OpenCL calls",
        };
        return texts[b];
}

static void put_where(FILE *to, const struct ledger_file *l, const struct answers *a)
{
        char text[128], n[ANSWERS_NUMBER_MAX], time[ANSWERS_NUMBER_MAX];
        fprintf(to, "Where %s went:\n\n", answers_time(a->wall_ns, time));
        put_part(to, a, "program", a->program_ns, "its own code, between the calls");
        snprintf(text, sizeof(text), "in %s calls of clEnqueue*", answers_count(l->calls, n));
        put_part(to, a, "client", a->client_ns, text);
        put_part(to, a, "device", a->device_ns, "it waits while devices compute");
        put_part(to, a, "link", a->link_ns, "it waits while messages and data travel");
        put_part(to, a, "server", a->server_ns, "it waits for builds, queries, servers");
        put_part(to, a, "waiting", a->waiting_ns, "it waits for something else");
        fprintf(to, "\nBound by %s.\n", report_bound(a->bound));
}

static void put_servers(FILE *to, const struct ledger_file *l, const struct answers *a)
{
        char busy[ANSWERS_NUMBER_MAX], n[ANSWERS_NUMBER_MAX], sent[ANSWERS_NUMBER_MAX],
                received[ANSWERS_NUMBER_MAX], trip[ANSWERS_NUMBER_MAX];
        fprintf(to, "\n%-24s %10s %7s %12s %10s %10s %10s\n", "Server", "computed", "of it",
                "commands", "sent", "received", "round trip");
        for (size_t i = 0; i < l->server_count; i++) {
                const struct ledger_file_server *s = &l->servers[i];
                uint64_t ns = answers_busy_ns(l, s->index);
                fprintf(to, "%-24s %10s %5.1f %% %12s %10s %10s %10s\n", s->name,
                        answers_time(ns, busy),
                        a->wall_ns ? (double)ns * 100 / (double)a->wall_ns : 0,
                        answers_count(answers_commands(l, s->index), n),
                        answers_size(s->sent, sent), answers_size(s->received, received),
                        answers_time(s->round_trip_ns, trip));
        }
}

static void put_waits(FILE *to, const struct ledger_file *l)
{
        char n[ANSWERS_NUMBER_MAX], all[ANSWERS_NUMBER_MAX], each[ANSWERS_NUMBER_MAX],
                device[ANSWERS_NUMBER_MAX], link[ANSWERS_NUMBER_MAX];
        if (l->wait_count)
                fprintf(to, "\n%-10s %-24s %12s %10s %10s %10s %10s\n", "Wait", "for", "times",
                        "each", "in all", "device", "link");
        for (size_t i = 0; i < l->wait_count; i++) {
                const struct ledger_file_wait *w = &l->all_waits[i];
                if (w->waits)
                        fprintf(to, "%-10s %-24s %12s %10s %10s %10s %10s\n",
                                ledger_kind_name(w->kind),
                                w->server == LEDGER_SERVERS ? "several"
                                                            : ledger_server_name(l, w->server),
                                answers_count(w->waits, n), answers_time(w->ns / w->waits, each),
                                answers_time(w->ns, all), answers_time(w->device_ns, device),
                                answers_time(w->link_ns, link));
        }
}

static void put_rows(FILE *to, const struct ledger_file *l, const char *title,
                     const struct ledger_file_row *const *rows, size_t count)
{
        char n[ANSWERS_NUMBER_MAX], each[ANSWERS_NUMBER_MAX], all[ANSWERS_NUMBER_MAX],
                bytes[ANSWERS_NUMBER_MAX], waited[ANSWERS_NUMBER_MAX];
        if (count)
                fprintf(to, "\n%-24s %-24s %10s %10s %10s %10s %10s\n", title, "on", "times",
                        "each", "in all", "bytes", "waited");
        for (size_t i = 0; i < count; i++) {
                const struct ledger_file_row *r = rows[i];
                bool timed = r->timed != 0;
                fprintf(to, "%-24s %-24s %10s %10s %10s %10s %10s\n", r->name,
                        ledger_server_name(l, r->server), answers_count(r->count, n),
                        timed ? answers_time(r->device_ns / r->timed, each) : "-",
                        timed ? answers_time(answers_cost_ns(r), all) : "-",
                        r->bytes ? answers_size(r->bytes, bytes) : "-",
                        r->wait_ns ? answers_time(r->wait_ns, waited) : "-");
        }
}

void report_text(FILE *to, const struct ledger_file *l, const struct answers *a)
{
        put_where(to, l, a);
        put_servers(to, l, a);
        put_waits(to, l);
        put_rows(to, l, "Kernel", a->kernels, a->kernel_count);
        put_rows(to, l, "Command", a->transfers, a->transfer_count);
        energy_text(to, l);
        other_links_text(to, a->what_if);
        if (a->advice_count)
                fputs("\nAdvice:\n", to);
        for (size_t i = 0; i < a->advice_count; i++)
                fprintf(to, "- %s\n", a->advice[i]);
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void json_rows(struct json_writer *w, const struct ledger_file *l, const char *name,
                      const struct ledger_file_row *const *rows, size_t count)
{
        json_begin(w, name, '[');
        for (size_t i = 0; i < count; i++) {
                const struct ledger_file_row *r = rows[i];
                json_begin(w, NULL, '{');
                json_put_text(w, "name", r->name);
                json_put_text(w, "server", ledger_server_name(l, r->server));
                json_put_u64(w, "count", r->count);
                json_put_u64(w, "bytes", r->bytes);
                json_put_u64(w, "timed", r->timed);
                if (r->timed)
                        json_put_u64(w, "device_ns", answers_cost_ns(r));
                else
                        json_put_null(w, "device_ns");
                json_put_u64(w, "wait_ns", r->wait_ns);
                json_end(w, '}');
        }
        json_end(w, ']');
}

static void json_servers(struct json_writer *w, const struct ledger_file *l)
{
        json_begin(w, "servers", '[');
        for (size_t i = 0; i < l->server_count; i++) {
                const struct ledger_file_server *s = &l->servers[i];
                json_begin(w, NULL, '{');
                json_put_text(w, "name", s->name);
                json_put_u64(w, "commands", answers_commands(l, s->index));
                json_put_u64(w, "device_ns", answers_busy_ns(l, s->index));
                json_put_u64(w, "messages", s->messages);
                json_put_u64(w, "sent_bytes", s->sent);
                json_put_u64(w, "received_bytes", s->received);
                json_put_u64(w, "round_trip_ns", s->round_trip_ns);
                json_end(w, '}');
        }
        json_end(w, ']');
}

static void json_waits(struct json_writer *w, const struct ledger_file *l)
{
        json_begin(w, "waits", '[');
        for (size_t i = 0; i < l->wait_count; i++) {
                const struct ledger_file_wait *x = &l->all_waits[i];
                json_begin(w, NULL, '{');
                json_put_text(w, "kind", ledger_kind_name(x->kind));
                json_put_text(w, "server",
                              x->server == LEDGER_SERVERS ? NULL
                                                          : ledger_server_name(l, x->server));
                json_put_u64(w, "calls", x->calls);
                json_put_u64(w, "waits", x->waits);
                json_put_u64(w, "wait_ns", x->ns);
                json_put_u64(w, "device_ns", x->device_ns);
                json_put_u64(w, "link_ns", x->link_ns);
                json_put_u64(w, "server_ns", x->server_ns);
                json_end(w, '}');
        }
        json_end(w, ']');
}

static void json_moves(struct json_writer *w, const struct ledger_file *l)
{
        json_begin(w, "moves", '[');
        for (size_t i = 0; i < l->move_count; i++) {
                const struct ledger_file_move *m = &l->moves[i];
                json_begin(w, NULL, '{');
                if (m->id) {
                        json_put_u64(w, "buffer", answers_buffer_number(l, m->id));
                        json_put_u64(w, "size_bytes", m->size);
                        json_put_text(w, "from",
                                      m->from_host ? NULL : ledger_server_name(l, m->from));
                        json_put_text(w, "to", ledger_server_name(l, m->to));
                }
                json_put_u64(w, "count", m->count);
                json_put_u64(w, "bytes", m->bytes);
                json_end(w, '}');
        }
        json_end(w, ']');
}

void report_json(FILE *to, const struct ledger_file *l, const struct answers *a)
{
        struct json_writer w = { .to = to };
        json_begin(&w, NULL, '{');
        json_put_u64(&w, "wall_ns", a->wall_ns);
        json_put_u64(&w, "program_ns", a->program_ns);
        json_put_u64(&w, "client_ns", a->client_ns);
        json_put_u64(&w, "device_ns", a->device_ns);
        json_put_u64(&w, "link_ns", a->link_ns);
        json_put_u64(&w, "server_ns", a->server_ns);
        json_put_u64(&w, "waiting_ns", a->waiting_ns);
        json_put_text(&w, "bound", answers_bound_name(a->bound));
        json_put_u64(&w, "calls", l->calls);
        json_servers(&w, l);
        json_waits(&w, l);
        json_rows(&w, l, "kernels", a->kernels, a->kernel_count);
        json_rows(&w, l, "commands", a->transfers, a->transfer_count);
        json_moves(&w, l);
        energy_json(&w, l);
        other_links_json(&w, a->what_if);
        json_begin(&w, "advice", '[');
        for (size_t i = 0; i < a->advice_count; i++)
                json_put_text(&w, NULL, a->advice[i]);
        json_end(&w, ']');
        json_end(&w, '}');
        json_line(&w);
}
