#include "core/profile/trace_links.h"

#include <stdio.h>
#include <string.h>

#include "core/profile/journal.h"
#include "session/session.h"

enum {
        STEPS = 1024,          /* of a curve */
        STEP_MIN_NS = 1000000, /* their width at first; it doubles when they do not reach */
        DIRECTIONS = 2,        /* sent, received */
};

struct trace_links {
        unsigned servers;
        uint64_t begin_ns, width_ns; /* of the steps; 0: no record has come */
        uint32_t *named;             /* bits of the rows of each server that have a name */
        uint64_t *bytes;             /* [server][direction][step] */
};

int trace_links_new(unsigned servers, struct trace_links **ret)
{
        struct trace_links *l = mem_zalloc(sizeof(*l));
        if (!l)
                return SP_E_NOMEM;
        l->servers = servers;
        l->named = mem_zalloc((servers + 1) * sizeof(*l->named));
        l->bytes = mem_zalloc((size_t)(servers + 1) * DIRECTIONS * STEPS * sizeof(*l->bytes));
        if (!l->named || !l->bytes) {
                trace_links_free(l);
                return SP_E_NOMEM;
        }
        *ret = l;
        return 0;
}

void trace_links_free(struct trace_links *l)
{
        if (!l)
                return;
        mem_free(l->named);
        mem_free(l->bytes);
        mem_free(l);
}

static uint64_t *steps_of(struct trace_links *l, unsigned server, unsigned direction)
{
        return l->bytes + ((size_t)server * DIRECTIONS + direction) * STEPS;
}

/* Let the steps begin earlier: the threads' records come one thread after the other. */
static void shift(struct trace_links *l, uint64_t by)
{
        for (unsigned i = 0; i < l->servers * DIRECTIONS; i++) {
                uint64_t *s = l->bytes + (size_t)i * STEPS;
                memmove(s + by, s, (STEPS - by) * sizeof(*s));
                memset(s, 0, by * sizeof(*s));
        }
}

static void widen(struct trace_links *l)
{
        for (unsigned i = 0; i < l->servers * DIRECTIONS; i++) {
                uint64_t *s = l->bytes + (size_t)i * STEPS;
                for (unsigned k = 0; k < STEPS; k++)
                        s[k] = k < STEPS / 2 ? s[2 * k] + s[2 * k + 1] : 0;
        }
        l->width_ns *= 2;
}

/* The last step that has bytes. */
static unsigned last_step(const struct trace_links *l)
{
        unsigned last = 0;
        for (unsigned i = 0; i < l->servers * DIRECTIONS; i++)
                for (unsigned k = last; k < STEPS; k++)
                        if (l->bytes[(size_t)i * STEPS + k])
                                last = k;
        return last;
}

static void count(struct trace_links *l, unsigned server, unsigned direction,
                  const struct trace_record *r)
{
        if (!l->width_ns) {
                l->width_ns = STEP_MIN_NS;
                l->begin_ns = r->begin_ns;
        }
        while (r->begin_ns < l->begin_ns) {
                uint64_t by = (l->begin_ns - r->begin_ns + l->width_ns - 1) / l->width_ns;
                if (by + last_step(l) < STEPS) {
                        shift(l, by);
                        l->begin_ns -=
                                by < l->begin_ns / l->width_ns ? by * l->width_ns : l->begin_ns;
                } else {
                        widen(l);
                }
        }
        while ((r->begin_ns - l->begin_ns) / l->width_ns >= STEPS)
                widen(l);
        steps_of(l, server, direction)[(r->begin_ns - l->begin_ns) / l->width_ns] += r->value;
}

void trace_links_put(struct trace_links *l, struct timeline *out, const struct trace_record *r)
{
        bool sent = trace_probe_of(r) == TRACE_send;
        unsigned place = trace_place_of(r), lane = trace_lane_of(r), direction = sent ? 0 : 1;
        if (!l || !place || place > l->servers || lane >= SESSION_LANES || !r->value ||
            (!sent && trace_probe_of(r) != TRACE_receive))
                return;
        unsigned server = place - 1, process = JOURNAL_LINKS + server;
        unsigned row = lane * DIRECTIONS + direction;
        if (!(l->named[server] & 1u << row)) {
                char name[32];
                snprintf(name, sizeof(name), "lane %u, %s", lane, sent ? "sent" : "received");
                timeline_thread(out, process, row + 1, name);
                l->named[server] |= 1u << row;
        }
        uint64_t ns = r->end_ns - r->begin_ns;
        timeline_slice(out, process, row + 1, r->begin_ns, r->end_ns, "lane",
                       sent ? "sent" : "received");
        timeline_arg(out, "bytes", r->value);
        if (ns)
                timeline_arg(out, "MB_s", r->value < UINT64_MAX / 1000 ? r->value * 1000 / ns : 0);
        timeline_slice_end(out);
        count(l, server, direction, r);
}

void trace_links_end(struct trace_links *l, struct timeline *out)
{
        for (unsigned i = 0; l && i < l->servers; i++) {
                const uint64_t *sent = steps_of(l, i, 0), *received = steps_of(l, i, 1);
                bool zero = true;
                for (unsigned k = 0; k < STEPS; k++) {
                        bool now = !sent[k] && !received[k];
                        if (!now || !zero)
                                timeline_rate(out, JOURNAL_LINKS + i, l->begin_ns + k * l->width_ns,
                                              l->width_ns, sent[k], received[k]);
                        zero = now;
                }
        }
}
