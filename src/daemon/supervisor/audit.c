#include "daemon/supervisor/audit.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/pace.h"
#include "daemon/supervisor/energy.h"
#include "daemon/supervisor/report.h"
#include "os/clock.h"

enum { REFUSED_EACH_MS = 1000, REFUSED_BURST = 10 };

void audit_refused(struct supervisor *s, const struct pending *v, int status, const char *why)
{
        char from[ADDRESS_MAX] = "an unknown address";
        uint64_t now = clock_now_ns();
        uint64_t due = pace_after(s->counts.warn_due_ns, REFUSED_EACH_MS * MS, now);
        report_refused(s, status);
        if (due > now + REFUSED_BURST * REFUSED_EACH_MS * MS) {
                s->counts.unwarned++;
                return;
        }
        s->counts.warn_due_ns = due;
        if (v->conn)
                conn_from(v->conn, from);
        if (s->counts.unwarned)
                log_warn(LOG, "%" PRIu64 " more connections were refused", s->counts.unwarned);
        s->counts.unwarned = 0;
        log_warn(LOG, "a connection from %s was refused: %s", from, why);
}

void audit_begin(struct worker *w, const struct pending *v)
{
        w->audit = (struct audit){ .begun_ns = clock_now_ns() };
        snprintf(w->audit.client, sizeof(w->audit.client), "%s", v->grant.client);
        conn_from(v->conn, w->audit.from);
        snprintf(w->audit.about, sizeof(w->audit.about), "%s%s%s", w->audit.client,
                 *w->audit.client ? " " : "", w->audit.from);
        bytes_tame(w->audit.about, sizeof(w->audit.about));
        w->log.about = w->audit.about;
}

void audit_receive(struct worker *w, const struct control *c)
{
        struct audit *a = &w->audit;
        if (a->reported || c->size < sizeof(a->totals))
                return;
        a->reported = true;
        for (int i = 0; i < AUDIT_TOTALS; i++)
                a->totals[i] = bytes_get_u64(c->data + i * sizeof(uint64_t));
        snprintf(a->why, sizeof(a->why), "%s", (const char *)c->data + sizeof(a->totals));
}

/* Make a text fit between quotes. */
static const char *quotable(char *text, size_t size)
{
        bytes_tame(text, size);
        for (char *p = text; *p; p++)
                if (*p == '"' || *p == '\\')
                        *p = '\'';
        return text;
}

void audit_end(struct supervisor *s, struct worker *w, const struct process_usage *used,
               const char *why, const char *how)
{
        struct audit a = w->audit;
        char name[sizeof(w->name)], totals[192] = "", end[sizeof(a.why) + 64],
                                    head[1024 + ADDRESS_MAX], tail[sizeof(end) + 16];
        strcpy(name, w->name);
        snprintf(end, sizeof(end), "%s%s",
                 why      ? why
                 : *a.why ? a.why
                          : "its process ended ",
                 why || *a.why ? "" : how);
        if (a.reported)
                snprintf(totals, sizeof(totals),
                         " device_seconds=%.6f sent_bytes=%" PRIu64 " received_bytes=%" PRIu64
                         " buffers_peak_bytes=%" PRIu64,
                         (double)a.totals[AUDIT_DEVICE_NS] / 1e9, a.totals[AUDIT_SENT],
                         a.totals[AUDIT_RECEIVED], a.totals[AUDIT_BUFFERS_PEAK]);
        snprintf(head, sizeof(head),
                 "session worker=%d program=\"%s\" client=\"%s\" from=\"%s\" seconds=%.3f "
                 "cpu_seconds=%.2f memory_peak_bytes=%" PRIu64 "%s",
                 (int)w->pid, quotable(name, sizeof(name)), quotable(a.client, sizeof(a.client)),
                 quotable(a.from, sizeof(a.from)), (double)(clock_now_ns() - a.begun_ns) / 1e9,
                 used->cpu_s, used->memory_peak_bytes, totals);
        snprintf(tail, sizeof(tail), " end=\"%s\"", quotable(end, sizeof(end)));
        energy_end(s, w, head, tail);
}
