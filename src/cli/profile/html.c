#include "cli/profile/html.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/markup.h"
#include "base/mem.h"
#include "cli/profile/other_links.h"
#include "cli/profile/report.h"
#include "os/clock.h"
#include "os/date.h"

enum {
        BAR = 1000,     /* the width of a bar in its own units; the browser fits it to the page */
        MOVES_TOP = 10, /* moves that are shown */
        COMMAND_MAX = 2000,
};

static const char head[] =
        "<!DOCTYPE html>\n"
        "<html lang=\"en\">\n"
        "<head>\n"
        "<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n";

static const char style[] =
        "<style>\n"
        ":root{color-scheme:light dark;--paper:#fff;--ink:#1b1f24;--dim:#59636e;--line:#d8dee4;--empty:#eef1f4;"
        "--program:#8a94a0;--client:#b07d2b;--device:#2b9466;--link:#2f6fd0;--server:#8656c4;--waiting:#d0605e}\n"
        "@media (prefers-color-scheme:dark){:root{--paper:#14181d;--ink:#e4e8ec;--dim:#9aa5b1;--line:#333b44;"
        "--empty:#222930;--program:#7f8a96;--client:#d6a24c;--device:#45b584;--link:#5b95ee;--server:#a983dd;"
        "--waiting:#e5807e}}\n"
        "*{box-sizing:border-box}\n"
        "body{margin:0 auto;padding:1.5rem 1rem 3rem;max-width:62rem;background:var(--paper);color:var(--ink);"
        "font:16px/1.5 system-ui,sans-serif}\n"
        "h1{font-size:1.7rem;line-height:1.2;margin:0 0 .3rem}\n"
        "h2{font-size:1.15rem;margin:2.2rem 0 .4rem}\n"
        "p{margin:.3rem 0}\n"
        ".dim,th,footer{color:var(--dim)}\n"
        "code{font:.88em ui-monospace,monospace;overflow-wrap:anywhere}\n"
        "svg{display:block;width:100%;border-radius:3px;background:var(--empty)}\n"
        "svg.whole{height:2.6rem;margin:.9rem 0 .6rem}\n"
        "svg.bar{height:1.1rem;min-width:5rem}\n"
        ".key svg{display:inline-block;width:.8em;height:.8em;margin-right:.35em;vertical-align:-.05em}\n"
        ".key span{white-space:nowrap;margin-right:1rem}\n"
        ".program{fill:var(--program)}.client{fill:var(--client)}.device{fill:var(--device)}"
        ".link{fill:var(--link)}.server{fill:var(--server)}.waiting{fill:var(--waiting)}\n"
        "ol{padding-left:1.3rem;margin:.3rem 0}li{margin:.5rem 0}\n"
        "table{width:100%;border-collapse:collapse}\n"
        "th{font-weight:normal;font-size:.85rem;text-align:left;white-space:nowrap}\n"
        "th,td{padding:.3rem .6rem .3rem 0;border-bottom:1px solid var(--line);vertical-align:middle}\n"
        "th.n,td.n{text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums}\n"
        "td.name{overflow-wrap:anywhere;min-width:9rem}td.b{width:28%}\n"
        "td.name small{display:block}\n"
        "footer{margin-top:2.5rem;font-size:.85rem}\n"
        "@media (max-width:46rem){thead{display:none}table,tbody{display:block}"
        "tr{display:grid;grid-template-columns:repeat(3,1fr);gap:.1rem .6rem;padding:.5rem 0;"
        "border-bottom:1px solid var(--line)}"
        "td{display:block;padding:0;border:0}td.name,td.b,td.wide{grid-column:1/-1;width:auto}"
        "td.n{text-align:left}td.none{display:none}td[title]::before{content:attr(title);display:block;font-size:.75rem;"
        "color:var(--dim)}}\n"
        "@media print{:root{--paper:#fff;--ink:#000;--dim:#444;--line:#bbb;--empty:#eee}"
        "body{max-width:none;padding:0;font-size:11pt}td.b{width:15%}tr,li,svg{break-inside:avoid}h2{break-after:avoid}"
        "*{-webkit-print-color-adjust:exact;print-color-adjust:exact}}\n"
        "</style>\n";

/* A part of a bar. */
struct part {
        const char *kind; /* its class in the style, and its name */
        uint64_t ns;
        const char *what;
};

enum { PARTS = 6 };

/* Write text in which `...` is code, as advice has it. */
static void put_advice(FILE *to, const char *text)
{
        char piece[ANSWERS_TEXT_MAX];
        bool code = false;
        for (const char *p = text; *p;) {
                size_t n = strcspn(p, "`");
                bool closed = !code || p[n];
                snprintf(piece, sizeof(piece), "%.*s", (int)n, p);
                if (code)
                        fputs(closed ? "<code>" : "`", to);
                markup_put_all(to, piece);
                if (code && closed)
                        fputs("</code>", to);
                p += n + (p[n] != 0);
                code = !code && p[-1] == '`';
        }
}

/* ---- bars ----------------------------------------------------------------------------------- */

static double scaled(uint64_t value, uint64_t whole)
{
        double share = whole ? (double)value / (double)whole : 0;
        return BAR * (share < 1 ? share : 1);
}

static void begin_bar(FILE *to, const char *class)
{
        fprintf(to,
                "<svg class=\"%s\" viewBox=\"0 0 %d 10\" preserveAspectRatio=\"none\" aria-hidden=\"true\">",
                class, BAR);
}

/* A bar of a row of a table. */
static void begin_cell(FILE *to)
{
        fputs("<td class=\"b\">", to);
        begin_bar(to, "bar");
}

static void end_cell(FILE *to)
{
        fputs("</svg></td>", to);
}

static void put_rect(FILE *to, const char *kind, double x, double width, int y, int height)
{
        if (width > 0)
                fprintf(to, "<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"/>",
                        kind, x, y, width < 2 ? 2 : width, height);
}

static void put_parts(FILE *to, const struct part *parts, size_t count, uint64_t whole)
{
        double x = 0;
        for (size_t i = 0; i < count; i++) {
                double width = scaled(parts[i].ns, whole);
                put_rect(to, parts[i].kind, x, width, 0, 10);
                x += width;
        }
}

static void put_swatch(FILE *to, const char *kind)
{
        fprintf(to,
                "<svg viewBox=\"0 0 1 1\" aria-hidden=\"true\"><rect class=\"%s\" width=\"1\" "
                "height=\"1\"/></svg>",
                kind);
}

static void put_key(FILE *to, const char *const names[][2], size_t count)
{
        fputs("<p class=\"key dim\">", to);
        for (size_t i = 0; i < count; i++) {
                fputs("<span>", to);
                put_swatch(to, names[i][0]);
                fprintf(to, "%s</span> ", names[i][1]);
        }
        fputs("</p>\n", to);
}

/* ---- tables --------------------------------------------------------------------------------- */

/* A column with the title "" has bars; the first one has names. */
static void begin_table(FILE *to, const char *const *titles, size_t count)
{
        fputs("<table>\n<thead><tr>", to);
        for (size_t i = 0; i < count; i++)
                fprintf(to, "<th%s>%s</th>", i && *titles[i] ? " class=\"n\"" : "", titles[i]);
        fputs("</tr></thead>\n<tbody>\n", to);
}

static void end_table(FILE *to)
{
        fputs("</tbody>\n</table>\n", to);
}

/* `text`: NULL: it is not known, or there is none. */
static void put_number(FILE *to, const char *title, const char *text)
{
        if (text)
                fprintf(to, "<td class=\"n\" title=\"%s\">%s</td>", title, text);
        else
                fputs("<td class=\"n none\">–</td>", to);
}

/* The name of a row, and the server below it; NULL: none. */
static void put_name(FILE *to, const char *name, const char *server)
{
        fputs("<td class=\"name\"><bdi>", to);
        markup_put_all(to, name);
        fputs("</bdi>", to);
        if (server) {
                fputs("<small class=\"dim\"><bdi>", to);
                markup_put_all(to, server);
                fputs("</bdi></small>", to);
        }
        fputs("</td>", to);
}

/* ---- sections ------------------------------------------------------------------------------- */

static void put_top(FILE *to, const struct answers *a, char *const *command)
{
        char time[ANSWERS_NUMBER_MAX];
        size_t room = COMMAND_MAX;
        fputs("<title>Profile of ", to);
        markup_put(to, *command ? *command : "a program", 100);
        fputs("</title>\n", to);
        fputs(style, to);
        fprintf(to, "</head>\n<body>\n<h1>Where %s went</h1>\n<p class=\"dim\"><code>",
                answers_time(a->wall_ns, time));
        for (size_t i = 0; command[i] && room > 1; i++) {
                size_t n = strlen(command[i]);
                fputs(i ? " " : "", to);
                markup_put(to, command[i], room);
                room -= n < room - 1 ? n : room - 1;
        }
        fprintf(to, "</code></p>\n<p>Bound by <strong>%s</strong>.</p>\n", report_bound(a->bound));
}

static void put_where(FILE *to, const struct ledger_file *l, const struct answers *a)
{
        char calls[80], n[ANSWERS_NUMBER_MAX], time[ANSWERS_NUMBER_MAX], share[32];
        uint64_t sum = 0;
        snprintf(calls, sizeof(calls), "in %s calls of clEnqueue*", answers_count(l->calls, n));
        const struct part parts[PARTS] = {
                { "program", a->program_ns, "its own code, between the calls" },
                { "client", a->client_ns, calls },
                { "device", a->device_ns, "it waits while devices compute" },
                { "link", a->link_ns, "it waits while messages and data travel" },
                { "server", a->server_ns, "it waits for builds, queries, servers" },
                { "waiting", a->waiting_ns, "it waits for something else" },
        };
        for (size_t i = 0; i < PARTS; i++)
                sum += parts[i].ns;
        begin_bar(to, "whole");
        put_parts(to, parts, PARTS, sum > a->wall_ns ? sum : a->wall_ns);
        fputs("</svg>\n<table class=\"key\"><tbody>\n", to);
        for (size_t i = 0; i < PARTS; i++) {
                snprintf(share, sizeof(share), "%.1f %%",
                         a->wall_ns ? (double)parts[i].ns * 100 / (double)a->wall_ns : 0);
                fputs("<tr><td>", to);
                put_swatch(to, parts[i].kind);
                fprintf(to,
                        "%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td>"
                        "<td class=\"dim wide\">%s</td></tr>\n",
                        parts[i].kind, answers_time(parts[i].ns, time), share, parts[i].what);
        }
        end_table(to);
        if (sum > a->wall_ns)
                fputs("<p class=\"dim\">Several threads wait at the same time, so the parts exceed the "
                      "whole.</p>\n",
                      to);
}

static void put_what_to_do(FILE *to, const struct answers *a)
{
        fputs("<h2>What to do</h2>\n", to);
        if (!a->advice_count) {
                fputs("<p>No advice: nothing that has a known remedy takes a twentieth of the time.</p>\n",
                      to);
                return;
        }
        fputs("<ol>\n", to);
        for (size_t i = 0; i < a->advice_count; i++) {
                fputs("<li>", to);
                put_advice(to, a->advice[i]);
                fputs("</li>\n", to);
        }
        fputs("</ol>\n", to);
}

static void put_servers(FILE *to, const struct ledger_file *l, const struct answers *a)
{
        static const char *const titles[] = { "Server",   "",     "computed", "of the time",
                                              "commands", "sent", "received", "round trip" };
        char n[ANSWERS_NUMBER_MAX], share[32];
        uint64_t most = 1;
        for (size_t i = 0; i < l->server_count; i++) {
                uint64_t ns = answers_busy_ns(l, l->servers[i].index);
                most = ns > most ? ns : most;
        }
        fputs("<h2>Balance of the servers</h2>\n<p class=\"dim\">How long the devices of each one "
              "computed. Equal bars are balanced work.</p>\n",
              to);
        begin_table(to, titles, array_size(titles));
        for (size_t i = 0; i < l->server_count; i++) {
                const struct ledger_file_server *s = &l->servers[i];
                uint64_t ns = answers_busy_ns(l, s->index);
                fputs("<tr>", to);
                put_name(to, s->name, NULL);
                begin_cell(to);
                put_rect(to, "device", 0, scaled(ns, most), 0, 10);
                end_cell(to);
                put_number(to, "computed", answers_time(ns, n));
                snprintf(share, sizeof(share), "%.1f %%",
                         a->wall_ns ? (double)ns * 100 / (double)a->wall_ns : 0);
                put_number(to, "of the time", share);
                put_number(to, "commands", answers_count(answers_commands(l, s->index), n));
                put_number(to, "sent", answers_size(s->sent, n));
                put_number(to, "received", answers_size(s->received, n));
                put_number(to, "round trip", answers_time(s->round_trip_ns, n));
                fputs("</tr>\n", to);
        }
        end_table(to);
}

static void put_rows(FILE *to, const struct ledger_file *l, const char *title,
                     const struct ledger_file_row *const *rows, size_t count)
{
        static const char *const titles[] = { "Name",   "",      "times", "each",
                                              "in all", "bytes", "waited" };
        static const char *const key[][2] = { { "device", "on the device, in all" },
                                              { "waiting", "calls that waited for it" } };
        char n[ANSWERS_NUMBER_MAX];
        uint64_t most = 1;
        if (!count)
                return;
        for (size_t i = 0; i < count; i++) {
                uint64_t cost = answers_cost_ns(rows[i]);
                most = cost > most ? cost : most;
                most = rows[i]->wait_ns > most ? rows[i]->wait_ns : most;
        }
        fprintf(to, "<h2>%s</h2>\n", title);
        put_key(to, key, array_size(key));
        begin_table(to, titles, array_size(titles));
        for (size_t i = 0; i < count; i++) {
                const struct ledger_file_row *r = rows[i];
                fputs("<tr>", to);
                put_name(to, r->name,
                         r->server < LEDGER_SERVERS ? ledger_server_name(l, r->server) : NULL);
                begin_cell(to);
                put_rect(to, "device", 0, scaled(answers_cost_ns(r), most), 0, 6);
                put_rect(to, "waiting", 0, scaled(r->wait_ns, most), 6, 4);
                end_cell(to);
                put_number(to, "times", answers_count(r->count, n));
                put_number(to, "each", r->timed ? answers_time(r->device_ns / r->timed, n) : NULL);
                put_number(to, "in all", r->timed ? answers_time(answers_cost_ns(r), n) : NULL);
                put_number(to, "bytes", r->bytes ? answers_size(r->bytes, n) : NULL);
                put_number(to, "waited", r->wait_ns ? answers_time(r->wait_ns, n) : NULL);
                fputs("</tr>\n", to);
        }
        end_table(to);
}

static void put_waits(FILE *to, const struct ledger_file *l)
{
        static const char *const titles[] = { "Wait", "", "times", "each", "in all" };
        static const char *const key[][2] = { { "device", "a device computes" },
                                              { "link", "messages and data travel" },
                                              { "server", "the server works" },
                                              { "waiting", "something else" } };
        char n[ANSWERS_NUMBER_MAX];
        uint64_t most = 0;
        for (size_t i = 0; i < l->wait_count; i++)
                most = l->all_waits[i].ns > most ? l->all_waits[i].ns : most;
        if (!most)
                return;
        fputs("<h2>What it waited for</h2>\n", to);
        put_key(to, key, array_size(key));
        begin_table(to, titles, array_size(titles));
        for (size_t i = 0; i < l->wait_count; i++) {
                const struct ledger_file_wait *w = &l->all_waits[i];
                uint64_t known = w->device_ns + w->link_ns + w->server_ns;
                const struct part parts[] = {
                        { "device", w->device_ns, NULL },
                        { "link", w->link_ns, NULL },
                        { "server", w->server_ns, NULL },
                        { "waiting", w->ns > known ? w->ns - known : 0, NULL },
                };
                if (!w->waits)
                        continue;
                fputs("<tr>", to);
                put_name(to, ledger_kind_name(w->kind),
                         w->server == LEDGER_SERVERS ? "several servers"
                                                     : ledger_server_name(l, w->server));
                begin_cell(to);
                put_parts(to, parts, array_size(parts), most);
                end_cell(to);
                put_number(to, "times", answers_count(w->waits, n));
                put_number(to, "each", answers_time(w->ns / w->waits, n));
                put_number(to, "in all", answers_time(w->ns, n));
                fputs("</tr>\n", to);
        }
        end_table(to);
}

static int by_bytes(const void *a, const void *b)
{
        const struct ledger_file_move *x = *(const struct ledger_file_move *const *)a;
        const struct ledger_file_move *y = *(const struct ledger_file_move *const *)b;
        return (x->bytes < y->bytes) - (x->bytes > y->bytes);
}

static void put_move(FILE *to, const struct ledger_file *l, const struct ledger_file_move *m,
                     uint64_t most)
{
        char name[80], n[ANSWERS_NUMBER_MAX], way[2 * LEDGER_NAME_MAX + 8];
        snprintf(name, sizeof(name), "buffer %zu (%s)", answers_buffer_number(l, m->id),
                 answers_size(m->size, n));
        snprintf(way, sizeof(way), "%s → %s",
                 m->from_host ? "the program" : ledger_server_name(l, m->from),
                 ledger_server_name(l, m->to));
        fputs("<tr>", to);
        put_name(to, m->id ? name : "(others)", m->id ? way : NULL);
        begin_cell(to);
        put_rect(to, "link", 0, scaled(m->bytes, most), 0, 10);
        end_cell(to);
        put_number(to, "times", answers_count(m->count, n));
        put_number(to, "bytes", answers_size(m->bytes, n));
        fputs("</tr>\n", to);
}

static void put_moves(FILE *to, const struct ledger_file *l)
{
        static const char *const titles[] = { "Memory", "", "times", "bytes" };
        const struct ledger_file_move **all = mem_alloc((l->move_count + 1) * sizeof(*all));
        if (!all || !l->move_count) {
                mem_free(all);
                return;
        }
        for (size_t i = 0; i < l->move_count; i++)
                all[i] = &l->moves[i];
        qsort(all, l->move_count, sizeof(*all), by_bytes);
        fputs("<h2>Memory that moves</h2>\n", to);
        begin_table(to, titles, array_size(titles));
        for (size_t i = 0; i < l->move_count && i < MOVES_TOP; i++)
                put_move(to, l, all[i], all[0]->bytes ? all[0]->bytes : 1);
        end_table(to);
        if (l->move_count > MOVES_TOP)
                fprintf(to, "<p class=\"dim\">And %zu others with fewer bytes.</p>\n",
                        l->move_count - MOVES_TOP);
        mem_free(all);
}

static void put_energy(FILE *to, const struct ledger_file *l)
{
        static const char *const titles[] = { "Device", "", "joules" };
        char joules[32];
        uint64_t most = 1;
        if (!l->energy_count)
                return;
        for (size_t i = 0; i < l->energy_count; i++)
                most = l->energies[i].energy_uj > most ? l->energies[i].energy_uj : most;
        fputs("<h2>Energy</h2>\n<p class=\"dim\">What the program used of devices with a counter, estimated by "
              "device time.</p>\n",
              to);
        begin_table(to, titles, array_size(titles));
        for (size_t i = 0; i < l->energy_count; i++) {
                const struct ledger_file_energy *e = &l->energies[i];
                fputs("<tr>", to);
                put_name(to, e->name, ledger_server_name(l, e->server));
                begin_cell(to);
                put_rect(to, "device", 0, scaled(e->energy_uj, most), 0, 10);
                end_cell(to);
                snprintf(joules, sizeof(joules), "%.3f", (double)e->energy_uj / 1e6);
                put_number(to, "joules", joules);
                fputs("</tr>\n", to);
        }
        end_table(to);
}

static void put_other_links(FILE *to, const struct what_if_results *r)
{
        static const char *const titles[] = { "Link", "", "predicted", "× measured",
                                              "dominated by" };
        static const char *const kinds[WHAT_IF_BOUNDS] = { [WHAT_IF_LATENCY] = "link",
                                                           [WHAT_IF_BANDWIDTH] = "link",
                                                           [WHAT_IF_DEVICE] = "device",
                                                           [WHAT_IF_PROGRAM] = "program" };
        char name[OTHER_LINKS_NAME], n[ANSWERS_NUMBER_MAX];
        uint64_t most = 1;
        if (!r)
                return;
        for (size_t i = 0; i < r->count; i++)
                most = r->all[i].ns > most ? r->all[i].ns : most;
        fputs("<h2>Other links to the servers</h2>\n<p class=\"dim\">", to);
        other_links_note(to, r);
        fputs("</p>\n", to);
        begin_table(to, titles, array_size(titles));
        for (size_t i = 0; i < r->count; i++) {
                fputs("<tr>", to);
                put_name(to, other_links_name(r, i, name), NULL);
                begin_cell(to);
                put_rect(to, kinds[r->all[i].bound], 0, scaled(r->all[i].ns, most), 0, 10);
                end_cell(to);
                put_number(to, "predicted", answers_time(r->all[i].ns, n));
                snprintf(n, sizeof(n), "%.2f",
                         r->measured_ns ? (double)r->all[i].ns / (double)r->measured_ns : 0);
                put_number(to, "× measured", n);
                put_number(to, "dominated by", what_if_bound_name(r->all[i].bound));
                fputs("</tr>\n", to);
        }
        end_table(to);
}

static void put_foot(FILE *to)
{
        struct date d = date_here(clock_wall_ns());
        fprintf(to,
                "<footer><p>Counts, bytes and waits are exact. Times on devices are those of the launches that were "
                "timed, and “in all” is their mean times the number of launches. docs/PROFILE.md of SpanCL "
                "explains all numbers.</p>\n<p>spancl %s, %d-%02u-%02u %02u:%02u</p></footer>\n</body>\n</html>\n",
                SPANCL_VERSION, d.year, d.month, d.day, d.hour, d.minute);
}

void html_write(FILE *to, const struct ledger_file *l, const struct answers *a,
                char *const *command)
{
        fputs(head, to);
        put_top(to, a, command);
        put_where(to, l, a);
        put_what_to_do(to, a);
        put_servers(to, l, a);
        put_rows(to, l, "Kernels that cost most", a->kernels, a->kernel_count);
        put_rows(to, l, "Transfers and other commands", a->transfers, a->transfer_count);
        put_waits(to, l);
        put_moves(to, l);
        put_energy(to, l);
        put_other_links(to, a->what_if);
        put_foot(to);
}
