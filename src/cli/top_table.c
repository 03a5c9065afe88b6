#include "cli/top_table.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "os/clock.h"
#include "os/date.h"
#include "proto/info.h"

enum { LINE_MAX_BYTES = 1024, WIDTH_MAX = 500 };

/* ---- texts ---------------------------------------------------------------------------------- */

/* "12.3 MiB" */
static const char *size_text(uint64_t bytes, char out[TOP_TEXT])
{
        static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
        double value = (double)bytes;
        size_t unit = 0;
        for (; value >= 1024 && unit + 1 < array_size(units); unit++)
                value /= 1024;
        snprintf(out, TOP_TEXT, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
        return out;
}

/* "3 h 12 min" */
static const char *age_text(uint64_t ns, char out[TOP_TEXT])
{
        uint64_t s = ns / 1000000000;
        if (s < 60)
                snprintf(out, TOP_TEXT, "%" PRIu64 " s", s);
        else if (s < 3600)
                snprintf(out, TOP_TEXT, "%" PRIu64 " min", s / 60);
        else if (s < 86400)
                snprintf(out, TOP_TEXT, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
        else
                snprintf(out, TOP_TEXT, "%" PRIu64 " d %" PRIu64 " h", s / 86400, s / 3600 % 24);
        return out;
}

/* The same in six letters: "3h12m" */
static const char *short_age(uint64_t ns, char out[TOP_TEXT])
{
        uint64_t s = ns / 1000000000;
        if (s < 60)
                snprintf(out, TOP_TEXT, "%" PRIu64 "s", s);
        else if (s < 3600)
                snprintf(out, TOP_TEXT, "%" PRIu64 "m", s / 60);
        else if (s < 86400)
                snprintf(out, TOP_TEXT, "%" PRIu64 "h%" PRIu64 "m", s / 3600, s / 60 % 60);
        else
                snprintf(out, TOP_TEXT, "%" PRIu64 "d", s / 86400);
        return out;
}

/* Make a text that a client or a driver has chosen printable ASCII: each byte is one column. */
static const char *ascii(const char *text, char *out, size_t size)
{
        size_t n = 0;
        for (; *text && n + 1 < size; text++)
                if (((unsigned char)*text & 0xc0) != 0x80) /* one column for each character */
                        out[n++] = *text < ' ' || *text > '~' ? '?' : *text;
        out[n] = 0;
        return out;
}

static const char *rate_text(double rate, char out[TOP_TEXT])
{
        if (rate < 0)
                return "-";
        return size_text((uint64_t)rate, out);
}

static const char *host_of(const struct snapshot_session *s, char out[TOP_TEXT])
{
        if (*s->host)
                return ascii(s->host, out, TOP_TEXT);
        if (!strncmp(s->from, "uid ", 4))
                return "-"; /* this host */
        ascii(s->from, out, TOP_TEXT);
        char *port = strrchr(out, ':');
        if (port)
                *port = 0;
        return *out ? out : "-";
}

static const char *user_of(const struct snapshot_session *s, char out[TOP_TEXT])
{
        if (*s->user)
                return ascii(s->user, out, TOP_TEXT);
        if (!strncmp(s->from, "uid ", 4))
                return ascii(s->from, out, TOP_TEXT);
        return *s->client ? ascii(s->client, out, TOP_TEXT) : "-";
}

/* The device that the session uses most. NULL: none. */
static const struct snapshot_use *main_use(const struct top_server *t,
                                           const struct snapshot_session *s, double *ret_busy)
{
        const struct snapshot_use *best = NULL;
        *ret_busy = -1;
        for (size_t i = 0; i < s->use_count; i++) {
                double busy =
                        snapshot_busy(t->old.taken_ns ? &t->old : NULL, &t->now, s, &s->uses[i]);
                if (!best || busy > *ret_busy) {
                        best = &s->uses[i];
                        *ret_busy = busy;
                }
        }
        return best;
}

static const char *device_of(const struct top_server *t, const struct snapshot_session *s,
                             char out[TOP_TEXT])
{
        char name[TOP_TEXT];
        double busy;
        const struct snapshot_use *u = main_use(t, s, &busy);
        if (!u)
                return "-";
        snprintf(out, TOP_TEXT, s->use_count > 1 ? "%" PRIu64 "+ %.48s" : "%" PRIu64 " %.48s",
                 u->number, ascii(u->name, name, sizeof(name)));
        return out;
}

static const char *trip_text(uint64_t ns, char out[TOP_TEXT])
{
        if (!ns)
                return "-";
        snprintf(out, TOP_TEXT, ns < 10000000 ? "%.0f us" : "%.1f ms",
                 (double)ns / (ns < 10000000 ? 1e3 : 1e6));
        return out;
}

/* ---- the columns ---------------------------------------------------------------------------- */

/* A session in the table, with its figures. */
struct row {
        const struct top_server *server;
        const struct snapshot_session *session;
        double busy, rates[2]; /* negative: not known */
};

/* `rank`: columns with a smaller one stay when there is not room for all. */
static const struct column {
        const char *title;
        int width, rank;
        bool right;
        char key;
} columns[TOP_COLUMNS] = {
        [TOP_PROGRAM] = { "PROGRAM", 16, 0, false, 'p' },
        [TOP_USER] = { "USER", 9, 2, false, 'u' },
        [TOP_HOST] = { "HOST", 10, 5, false, 'o' },
        [TOP_DEVICE] = { "DEVICE", 14, 6, false, 'd' },
        [TOP_BUSY] = { "BUSY", 5, 1, true, 'b' },
        [TOP_MEMORY] = { "MEMORY", 9, 3, true, 'm' },
        [TOP_QUEUE] = { "QUEUE", 6, 7, true, 'c' },
        [TOP_SENT] = { "SENT/s", 9, 8, true, 's' },
        [TOP_RECEIVED] = { "RECV/s", 9, 9, true, 'r' },
        [TOP_TRIP] = { "TRIP", 8, 10, true, 't' },
        [TOP_AGE] = { "AGE", 6, 4, true, 'a' },
        [TOP_SERVER] = { "SERVER", 16, 11, false, 'v' },
        [TOP_WORKER] = { "WORKER", 8, 12, true, 'w' },
};

enum top_column top_key(int key)
{
        enum top_column c = 0;
        while (c < TOP_COLUMNS && columns[c].key != key)
                c++;
        return c;
}

static const char *cell(const struct row *r, enum top_column c, char out[TOP_TEXT])
{
        const struct snapshot_session *s = r->session;
        switch (c) {
        case TOP_PROGRAM:
                return ascii(s->program, out, TOP_TEXT);
        case TOP_USER:
                return user_of(s, out);
        case TOP_HOST:
                return host_of(s, out);
        case TOP_DEVICE:
                return device_of(r->server, s, out);
        case TOP_BUSY:
                if (r->busy < 0)
                        return "-";
                snprintf(out, TOP_TEXT, "%.0f%%", r->busy);
                return out;
        case TOP_MEMORY:
                return size_text(s->memory, out);
        case TOP_QUEUE:
                snprintf(out, TOP_TEXT, "%" PRIu64, s->commands);
                return out;
        case TOP_SENT:
        case TOP_RECEIVED:
                return rate_text(r->rates[c == TOP_RECEIVED], out);
        case TOP_TRIP:
                return trip_text(s->round_trip_ns, out);
        case TOP_AGE:
                return short_age(s->age_ns, out);
        case TOP_SERVER:
                return ascii(r->server->spec->name, out, TOP_TEXT);
        default:
                snprintf(out, TOP_TEXT, "%" PRIu64, s->process);
                return out;
        }
}

/* Figures are sorted from large to small, texts as in a dictionary. */
static int compare_by(const struct row *a, const struct row *b, enum top_column c)
{
        char texts[2][TOP_TEXT];
        double x = 0, y = 0;
        switch (c) {
        case TOP_BUSY:
                x = a->busy;
                y = b->busy;
                break;
        case TOP_MEMORY:
                x = (double)a->session->memory;
                y = (double)b->session->memory;
                break;
        case TOP_QUEUE:
                x = (double)a->session->commands;
                y = (double)b->session->commands;
                break;
        case TOP_SENT:
        case TOP_RECEIVED:
                x = a->rates[c == TOP_RECEIVED];
                y = b->rates[c == TOP_RECEIVED];
                break;
        case TOP_TRIP:
                x = (double)a->session->round_trip_ns;
                y = (double)b->session->round_trip_ns;
                break;
        case TOP_AGE:
                x = (double)a->session->age_ns;
                y = (double)b->session->age_ns;
                break;
        case TOP_WORKER:
                x = -(double)a->session->process;
                y = -(double)b->session->process;
                break;
        default:
                return strcmp(cell(a, c, texts[0]), cell(b, c, texts[1]));
        }
        return x > y ? -1 : x < y;
}

static int compare_rows(const void *a, const void *b, void *column)
{
        int r = compare_by(a, b, *(const enum top_column *)column);
        return r ? r : compare_by(a, b, TOP_WORKER);
}

/* ---- lines ---------------------------------------------------------------------------------- */

struct lines {
        struct buf *out;
        int width, status;
        size_t number, first, end; /* only lines from `first` to `end` are kept */
        bool colours;
};

/* Append a line, cut to the width. `colour`: a code of SGR; NULL: none. */
__attribute__((format(printf, 3, 4))) static void line(struct lines *l, const char *colour,
                                                       const char *fmt, ...)
{
        char raw[LINE_MAX_BYTES], text[LINE_MAX_BYTES];
        va_list ap;
        size_t n = l->number++;
        if (n < l->first || n >= l->end || l->status)
                return;
        va_start(ap, fmt);
        vsnprintf(raw, sizeof(raw), fmt, ap);
        va_end(ap);
        ascii(raw, text, sizeof(text));
        if (colour && l->colours)
                l->status = buf_put(l->out, colour, strlen(colour));
        if (!l->status)
                l->status = buf_put(l->out, text, strnlen(text, (size_t)l->width));
        if (!l->status && colour && l->colours)
                l->status = buf_put(l->out, "\033[0m", 4);
        if (!l->status)
                l->status = buf_put(l->out, "\n", 1);
}

static const char *device_text(const struct snapshot_device *d, char out[LINE_MAX_BYTES])
{
        static const char *const states[] = { "in service", "kept out", "OUT OF SERVICE" };
        char name[TOP_TEXT], size[2][TOP_TEXT], busy[TOP_TEXT] = "-", heat[TOP_TEXT] = "-",
                                                power[TOP_TEXT] = "-";
        bool memory = d->memory_used != SNAPSHOT_UNKNOWN && d->memory_total != SNAPSHOT_UNKNOWN;
        if (d->busy_percent != SNAPSHOT_UNKNOWN)
                snprintf(busy, sizeof(busy), "%" PRIu64 "%%", d->busy_percent);
        if (d->temperature_c != SNAPSHOT_UNKNOWN)
                snprintf(heat, sizeof(heat), "%" PRIu64 " C", d->temperature_c);
        if (d->power_mw != SNAPSHOT_UNKNOWN)
                snprintf(power, sizeof(power), "%" PRIu64 " W", d->power_mw / 1000);
        snprintf(out, LINE_MAX_BYTES, "  %" PRIu64 " %-20.20s %4s %10s%s%s %5s %6s %s", d->number,
                 ascii(d->name, name, sizeof(name)), busy,
                 memory ? size_text(d->memory_used, size[0]) : "-", memory ? "/" : "",
                 memory ? size_text(d->memory_total, size[1]) : "", heat, power,
                 d->state < array_size(states) ? states[d->state] : "unknown");
        return out;
}

/* Write "1.0 MiB of 64.0 MiB" and "3 s of 60 s in 1 h", as far as there are limits. */
static const char *share_text(const struct snapshot_client *c, const struct snapshot_share *s,
                              char out[LINE_MAX_BYTES])
{
        char name[TOP_TEXT], device[TOP_TEXT] = "all devices", sizes[2][TOP_TEXT],
                             ages[2][TOP_TEXT];
        char memory[3 * TOP_TEXT] = "", time[4 * TOP_TEXT] = "";
        if (s->number != SNAPSHOT_UNKNOWN)
                snprintf(device, sizeof(device), "device %" PRIu64, s->number);
        if (s->memory_max != SNAPSHOT_UNKNOWN)
                snprintf(memory, sizeof(memory), "%s of %s",
                         s->memory == SNAPSHOT_UNKNOWN ? "?" : size_text(s->memory, sizes[0]),
                         size_text(s->memory_max, sizes[1]));
        if (s->time_max_ns != SNAPSHOT_UNKNOWN)
                snprintf(time, sizeof(time), "%s%.1f s of %s in %s%s", *memory ? ", " : "",
                         (double)(s->time_ns == SNAPSHOT_UNKNOWN ? 0 : s->time_ns) / 1e9,
                         age_text(s->time_max_ns, ages[0]), age_text(s->window_ns, ages[1]),
                         s->paused ? ", WAITS" : "");
        snprintf(out, LINE_MAX_BYTES, "  %-20.20s %-11s %s%s", ascii(c->name, name, sizeof(name)),
                 device, memory, time);
        return out;
}

/* Count the lines about limits of clients. */
static size_t count_limits(const struct snapshot *s)
{
        size_t n = 0;
        for (size_t i = 0; i < s->client_count; i++)
                for (size_t k = 0; k < s->clients[i].share_count; k++)
                        n += snapshot_is_limited(&s->clients[i].shares[k]);
        return n;
}

static void put_limits(struct lines *l, const struct snapshot *now)
{
        char text[LINE_MAX_BYTES];
        for (size_t i = 0; i < now->client_count; i++)
                for (size_t k = 0; k < now->clients[i].share_count; k++) {
                        const struct snapshot_share *s = &now->clients[i].shares[k];
                        if (snapshot_is_limited(s))
                                line(l, s->paused ? "\033[31m" : NULL, "%s",
                                     share_text(&now->clients[i], s, text));
                }
}

static void put_server(struct lines *l, const struct top_server *t)
{
        char text[LINE_MAX_BYTES], age[TOP_TEXT];
        if (t->spec->in_process) {
                line(l, NULL, "%s  in the program itself (SPANCL_STATS)", t->spec->name);
                return;
        }
        if (!t->asked) {
                line(l, NULL, "%s  asking ...", t->spec->name);
                return;
        }
        if (!t->reachable) {
                line(l, "\033[31m", "%s  NOT REACHABLE: %s", t->spec->name, t->text);
                return;
        }
        line(l, "\033[1m", "%s  up %s, %zu of %" PRIu64 " sessions, %" PRIu64 " lost%s",
             t->spec->name, age_text(t->now.up_ns, age), t->now.count, t->now.sessions_max,
             t->now.lost, t->now.draining ? ", drains" : "");
        for (size_t i = 0; i < t->now.device_count; i++)
                line(l, t->now.devices[i].state ? "\033[31m" : NULL, "%s",
                     device_text(&t->now.devices[i], text));
        for (size_t i = 0; i < t->now.notice_count; i++)
                line(l, "\033[31m", "  %s", t->now.notices[i].text);
        put_limits(l, &t->now);
}

/* Give the rest of the width to the program and the device. */
static void widen(int widths[TOP_COLUMNS], int more)
{
        int device = widths[TOP_DEVICE] ? more / 2 : 0;
        if (more <= 0 || !widths[TOP_PROGRAM])
                return;
        widths[TOP_DEVICE] += device;
        widths[TOP_PROGRAM] += more - device;
}

/* Choose the columns that fit, and give the rest of the width to the program. */
static void choose(int width, int ret_widths[TOP_COLUMNS])
{
        int used = -1;
        memset(ret_widths, 0, TOP_COLUMNS * sizeof(*ret_widths));
        for (int rank = 0; rank < TOP_COLUMNS; rank++)
                for (size_t c = 0; c < TOP_COLUMNS; c++) {
                        if (columns[c].rank != rank)
                                continue;
                        if (used + 1 + columns[c].width > width)
                                goto full;
                        ret_widths[c] = columns[c].width;
                        used += 1 + columns[c].width;
                }
full:
        widen(ret_widths, width - used);
}

static void put_cell(char *text, size_t *n, int width, bool right, const char *value)
{
        if (width > 0 && *n + (size_t)width + 2 < LINE_MAX_BYTES)
                *n += (size_t)snprintf(text + *n, LINE_MAX_BYTES - *n,
                                       right ? "%s%*.*s" : "%s%-*.*s", *n ? " " : "", width, width,
                                       value);
}

static void put_sessions(struct lines *l, const struct top_view *v, struct row *rows, size_t count)
{
        int widths[TOP_COLUMNS];
        char text[LINE_MAX_BYTES], value[TOP_TEXT];
        size_t n = 0;
        text[0] = 0; /* a narrow screen may have no column */
        choose(v->width < WIDTH_MAX ? v->width : WIDTH_MAX, widths);
        for (size_t c = 0; c < TOP_COLUMNS; c++) {
                snprintf(value, sizeof(value), "%s%s", columns[c].title, c == v->sort ? "*" : "");
                put_cell(text, &n, widths[c], columns[c].right, value);
        }
        line(l, "\033[7m", "%-*s", v->width < WIDTH_MAX ? v->width : WIDTH_MAX, text);
        for (size_t i = 0; i < count; i++) {
                n = 0;
                text[0] = 0;
                for (enum top_column c = 0; c < TOP_COLUMNS; c++)
                        put_cell(text, &n, widths[c], columns[c].right, cell(&rows[i], c, value));
                line(l, NULL, "%s", text);
        }
}

/* Put the help or a summary. */
static void put_foot(struct lines *l, const struct top_view *v, size_t sessions)
{
        char now[40], keys[LINE_MAX_BYTES] = "";
        const struct date t = date_here(clock_wall_ns());
        size_t n = 0;
        snprintf(now, sizeof(now), "%02u:%02u:%02u", t.hour, t.minute, t.second);
        for (size_t c = 0; v->help && c < TOP_COLUMNS; c++)
                n += (size_t)snprintf(keys + n, sizeof(keys) - n, " %c %s", columns[c].key,
                                      columns[c].title);
        if (v->help)
                line(l, "\033[7m", "sort:%s", keys);
        else
                line(l, "\033[7m", "%s  %zu sessions  q quit  h sort keys  arrows scroll, sort",
                     now, sessions);
}

static size_t collect(const struct top_server *servers, size_t count, struct row *rows)
{
        size_t n = 0;
        for (size_t i = 0; i < count; i++) {
                const struct top_server *t = &servers[i];
                const struct snapshot *old = t->old.taken_ns ? &t->old : NULL;
                for (size_t k = 0; t->reachable && k < t->now.count; k++) {
                        struct row *r = &rows[n++];
                        *r = (struct row){ .server = t, .session = &t->now.sessions[k] };
                        (void)main_use(t, r->session, &r->busy);
                        for (int way = 0; way < 2; way++)
                                r->rates[way] = snapshot_rate(old, &t->now, r->session, way);
                }
        }
        return n;
}

int top_lines(const struct top_server *servers, size_t count, struct top_view *v, struct buf *out)
{
        size_t sessions = 0, total = 2, room = v->height > 1 ? (size_t)v->height - 1 : 1;
        for (size_t i = 0; i < count; i++) {
                bool shown = servers[i].reachable;
                sessions += shown ? servers[i].now.count : 0;
                total += 1;
                if (shown)
                        total += servers[i].now.device_count + servers[i].now.notice_count +
                                 count_limits(&servers[i].now);
        }
        struct row *rows = mem_alloc((sessions + 1) * sizeof(*rows));
        if (!rows)
                return SP_E_NOMEM;
        total += sessions;
        if (v->first + room > total)
                v->first = total > room ? total - room : 0;
        struct lines l = { .out = out,
                           .width = v->width,
                           .first = v->first,
                           .end = v->first + room,
                           .colours = v->colours };
        size_t n = collect(servers, count, rows);
        qsort_r(rows, n, sizeof(*rows), compare_rows, &v->sort);
        for (size_t i = 0; i < count; i++)
                put_server(&l, &servers[i]);
        line(&l, NULL, "%s", "");
        put_sessions(&l, v, rows, n);
        while (l.number < l.end)
                line(&l, NULL, "%s", "");
        l.number = l.first; /* the foot is always shown */
        put_foot(&l, v, n);
        mem_free(rows);
        return l.status;
}

/* ---- one plain table ------------------------------------------------------------------------ */

static void print_link(const struct snapshot_link *l)
{
        char name[SNAPSHOT_NAME + 64] = "client", tamed[SNAPSHOT_NAME], bytes[4][TOP_TEXT];
        if (l->peer && *l->name)
                snprintf(name, sizeof(name), "server %s", ascii(l->name, tamed, sizeof(tamed)));
        else if (l->peer)
                snprintf(name, sizeof(name), "server that connected, number %" PRIu64,
                         l->peer & 0xffffffff);
        printf("    %-36s%10" PRIu64 "%12s%12s%10" PRIu64 "%12s%12s%s\n", name, l->messages[0],
               size_text(l->bytes[0], bytes[0]), size_text(l->bulk[0], bytes[1]), l->messages[1],
               size_text(l->bytes[1], bytes[2]), size_text(l->bulk[1], bytes[3]),
               l->relayed ? "  through the client" : "");
        if (l->fabric[0] || l->fabric[1])
                printf("      %-34s%10s%12s%12s%10s%12s%12s\n", "by fabric", "", "",
                       size_text(l->fabric[0], bytes[0]), "", "",
                       size_text(l->fabric[1], bytes[1]));
}

static void print_session(const struct top_server *t, const struct snapshot_session *s)
{
        char texts[6][TOP_TEXT], program[SNAPSHOT_NAME];
        double busy;
        (void)main_use(t, s, &busy);
        printf("  %s (worker %" PRIu64 "), %s at %s, ", ascii(s->program, program, sizeof(program)),
               s->process, user_of(s, texts[0]), host_of(s, texts[1]));
        printf("device %s", device_of(t, s, texts[2]));
        if (busy >= 0)
                printf(" busy %.0f%%", busy);
        printf(", buffers of %s, %" PRIu64 " commands, round trip %s, for %s\n",
               size_text(s->memory, texts[3]), s->commands, trip_text(s->round_trip_ns, texts[4]),
               age_text(s->age_ns, texts[5]));
        for (size_t i = 0; i < s->link_count; i++)
                print_link(&s->links[i]);
}

void top_print(const struct top_server *t)
{
        char text[LINE_MAX_BYTES], age[TOP_TEXT];
        if (t->spec->in_process || !t->reachable) {
                printf(t->spec->in_process ? "%s: in the program itself (SPANCL_STATS)\n"
                                           : "%s: not reachable\n",
                       t->spec->name);
                return;
        }
        printf("%-40s%10s%12s%12s%10s%12s%12s\n", t->spec->name, "sent", "messages", "bulk",
               "received", "messages", "bulk");
        printf("  up %s, %zu of %" PRIu64 " sessions; since its start %" PRIu64
               " sessions, %" PRIu64 " lost, %" PRIu64 " connections refused%s\n",
               age_text(t->now.up_ns, age), t->now.count, t->now.sessions_max, t->now.begun,
               t->now.lost, t->now.refused, t->now.draining ? "; it drains" : "");
        for (size_t i = 0; i < t->now.device_count; i++)
                printf("%s\n", device_text(&t->now.devices[i], text));
        for (size_t i = 0; i < t->now.notice_count; i++)
                printf("  %s\n", ascii(t->now.notices[i].text, text, sizeof(text)));
        for (size_t i = 0; i < t->now.client_count; i++)
                for (size_t k = 0; k < t->now.clients[i].share_count; k++)
                        if (snapshot_is_limited(&t->now.clients[i].shares[k]))
                                printf("%s\n", share_text(&t->now.clients[i],
                                                          &t->now.clients[i].shares[k], text));
        for (size_t i = 0; i < t->now.count; i++)
                print_session(t, &t->now.sessions[i]);
}
