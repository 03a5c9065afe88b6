#include "daemon/exporter/metrics.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "proto/info.h"

/* ---- answers ------------------------------------------------------------------------------------ */

/* Copy a text, without characters that are not printable ASCII. */
static void copy(char out[METRICS_NAME], struct bytes text)
{
        size_t n = text.size < METRICS_NAME - 1 ? text.size : METRICS_NAME - 1;
        for (size_t i = 0; i < n; i++) {
                char c = ((const char *)text.data)[i];
                out[i] = c;
                if (c < ' ' || c > '~')
                        out[i] = '?';
        }
        out[n] = 0;
}

static void take_refusals(struct metrics *m, struct bytes server)
{
        struct info_entry e;
        m->refused_count = 0;
        while (info_next(&server, &e) && m->refused_count < METRICS_REASONS) {
                struct bytes reason;
                if (e.key != INFO_SERVER_REFUSED || info_check(e.value) < 0 ||
                    !info_find(e.value, INFO_SERVER_REASON, &reason))
                        continue;
                struct metrics_refusals *r = &m->refused[m->refused_count++];
                copy(r->reason, reason);
                r->count = info_u64(e.value, INFO_SERVER_COUNT, 0);
        }
}

static void take_device(struct metrics *m, struct bytes device)
{
        struct bytes name = { 0 };
        if (m->device_count == METRICS_DEVICES)
                return;
        struct metrics_device *d = &m->devices[m->device_count++];
        d->number = info_u64(device, INFO_HEALTH_DEVICE, 0);
        d->state = info_u64(device, INFO_HEALTH_STATE, 0);
        d->failures = info_u64(device, INFO_HEALTH_FAILURES, 0);
        d->energy_uj = info_u64(device, INFO_SENSOR_ENERGY, UINT64_MAX);
        (void)info_find(device, INFO_HEALTH_NAME, &name);
        copy(d->name, name);
}

static void take_share(struct metrics_client *c, struct bytes share)
{
        static const enum info_key keys[METRICS_FIGURES] = {
                [METRICS_MEMORY] = INFO_SHARE_MEMORY,
                [METRICS_MEMORY_MAX] = INFO_SHARE_MEMORY_MAX,
                [METRICS_TIME] = INFO_SHARE_TIME_NS,
                [METRICS_TIME_MAX] = INFO_SHARE_TIME_MAX_NS,
                [METRICS_WINDOW] = INFO_SHARE_WINDOW_NS,
                [METRICS_PAUSED] = INFO_SHARE_PAUSED,
        };
        if (c->share_count == METRICS_SHARES)
                return;
        struct metrics_share *s = &c->shares[c->share_count++];
        s->device = info_u64(share, INFO_SHARE_DEVICE, UINT64_MAX);
        for (size_t i = 0; i < METRICS_FIGURES; i++)
                s->figures[i] = info_u64(share, keys[i], UINT64_MAX);
}

static void take_client(struct metrics *m, struct bytes account)
{
        struct bytes name = { 0 };
        struct info_entry e;
        if (m->client_count == METRICS_CLIENTS)
                return;
        struct metrics_client *c = &m->clients[m->client_count++];
        (void)info_find(account, INFO_ACCOUNT_CLIENT, &name);
        copy(c->name, name);
        c->sessions = info_u64(account, INFO_ACCOUNT_SESSIONS, 0);
        c->sessions_max = info_u64(account, INFO_ACCOUNT_SESSIONS_MAX, UINT64_MAX);
        c->share_count = 0;
        while (info_next(&account, &e))
                if (e.key == INFO_ACCOUNT_SHARE && !info_check(e.value))
                        take_share(c, e.value);
}

/* Find the session of this worker, or add it. NULL: there are too many. */
static struct metrics_session *session_of(struct metrics *m, const struct wire_session_stats *s)
{
        for (size_t i = 0; i < m->count; i++)
                if (m->all[i].process == s->process)
                        return &m->all[i];
        if (m->count == METRICS_SESSIONS)
                return NULL;
        struct metrics_session *new = &m->all[m->count++];
        *new = (struct metrics_session){ .process = s->process };
        copy(new->program, s->name);
        return new;
}

static void take_link(struct metrics_session *s, struct bytes link)
{
        s->told = true;
        int end = info_u64(link, INFO_LINK_PEER, 0) ? METRICS_SERVER : METRICS_CLIENT;
        s->messages[end][METRICS_SENT] += info_u64(link, INFO_LINK_MESSAGES_SENT, 0);
        s->messages[end][METRICS_RECEIVED] += info_u64(link, INFO_LINK_MESSAGES_RECEIVED, 0);
        s->bytes[end][METRICS_SENT] +=
                info_u64(link, INFO_LINK_BYTES_SENT, 0) + info_u64(link, INFO_LINK_BULK_SENT, 0);
        s->bytes[end][METRICS_RECEIVED] += info_u64(link, INFO_LINK_BYTES_RECEIVED, 0) +
                                           info_u64(link, INFO_LINK_BULK_RECEIVED, 0);
}

static void take_origin(struct metrics_session *s, struct bytes origin)
{
        struct info_entry e;
        s->use_count = 0;
        while (info_next(&origin, &e) && s->use_count < METRICS_USES) {
                if (e.key != INFO_ENERGY || info_check(e.value) < 0)
                        continue;
                s->uses[s->use_count].device = info_u64(e.value, INFO_ENERGY_DEVICE, 0);
                s->uses[s->use_count++].energy_uj = info_u64(e.value, INFO_ENERGY_UJ, 0);
        }
}

void metrics_take(struct metrics *m, const struct wire_session_stats *answer)
{
        struct bytes left = answer->links;
        struct info_entry e;
        while (info_next(&left, &e)) {
                struct metrics_session *s;
                struct bytes energy;
                if (info_check(e.value) < 0)
                        continue;
                switch (e.key) {
                case INFO_SERVER:
                        m->up_ns = info_u64(e.value, INFO_SERVER_UP_NS, 0);
                        m->sessions = info_u64(e.value, INFO_SERVER_SESSIONS, 0);
                        m->sessions_max = info_u64(e.value, INFO_SERVER_SESSIONS_MAX, 0);
                        m->begun = info_u64(e.value, INFO_SERVER_SESSIONS_BEGUN, 0);
                        m->lost = info_u64(e.value, INFO_SERVER_SESSIONS_LOST, 0);
                        m->draining = info_u64(e.value, INFO_SERVER_DRAINING, 0) != 0;
                        take_refusals(m, e.value);
                        break;
                case INFO_HEALTH:
                        take_device(m, e.value);
                        break;
                case INFO_ACCOUNT:
                        take_client(m, e.value);
                        break;
                case INFO_SESSION:
                        s = session_of(m, answer);
                        if (!s)
                                break;
                        s->told = true;
                        s->memory = info_u64(e.value, INFO_SESSION_MEMORY, 0);
                        s->programs = info_u64(e.value, INFO_SESSION_PROGRAMS, 0);
                        break;
                case INFO_ORIGIN:
                        s = info_find(e.value, INFO_ENERGY, &energy) ? session_of(m, answer) : NULL;
                        if (s)
                                take_origin(s, e.value);
                        break;
                case INFO_LINK:
                        s = session_of(m, answer);
                        if (s)
                                take_link(s, e.value);
                        break;
                case INFO_WHOLE:
                        m->whole = true;
                        break;
                default:
                        break;
                }
        }
}

/* ---- text --------------------------------------------------------------------------------------- */

struct writer {
        struct buf *out;
        int status; /* the first error */
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *w, const char *fmt, ...)
{
        char text[640];
        va_list ap;
        va_start(ap, fmt);
        int n = vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        if (!w->status)
                w->status = buf_put(w->out, text, (size_t)n < sizeof(text) ? (size_t)n : 0);
}

static void head(struct writer *w, const char *name, const char *type, const char *help)
{
        put(w, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void one(struct writer *w, const char *name, const char *type, const char *help,
                uint64_t value)
{
        head(w, name, type, help);
        put(w, "%s %" PRIu64 "\n", name, value);
}

/* Escape a label's value. */
static const char *label(const char *text, char out[2 * METRICS_NAME])
{
        char *p = out;
        for (; *text; text++) {
                if (*text == '"' || *text == '\\')
                        *p++ = '\\';
                *p++ = *text;
        }
        *p = 0;
        return out;
}

static void put_server(struct writer *w, const struct metrics *m)
{
        char text[2 * METRICS_NAME];
        head(w, "spancl_build_info", "gauge", "The version of spancld.");
        put(w, "spancl_build_info{version=\"%s\"} 1\n", SPANCL_VERSION);
        one(w, "spancl_uptime_seconds", "gauge", "Time since spancld has started.",
            m->up_ns / 1000000000);
        one(w, "spancl_scrape_complete", "gauge",
            "1 if all sessions have reported their counters in time.", m->whole);
        one(w, "spancl_sessions", "gauge", "Sessions now.", m->sessions);
        one(w, "spancl_sessions_limit", "gauge", "The limit of sessions (--sessions).",
            m->sessions_max);
        one(w, "spancl_draining", "gauge",
            "1 if spancld takes no new sessions and ends with the last one.", m->draining);
        one(w, "spancl_sessions_total", "counter", "Sessions that have begun.", m->begun);
        one(w, "spancl_sessions_lost_total", "counter",
            "Sessions that ended by a crash or because they exceeded a limit.", m->lost);
        head(w, "spancl_connections_refused_total", "counter",
             "Connections that spancld has refused or dropped before they had a session.");
        for (size_t i = 0; i < m->refused_count; i++)
                put(w, "spancl_connections_refused_total{reason=\"%s\"} %" PRIu64 "\n",
                    label(m->refused[i].reason, text), m->refused[i].count);
}

static void put_devices(struct writer *w, const struct metrics *m)
{
        static const char *const states[] = {
                [INFO_HEALTH_IN_SERVICE] = "in_service",
                [INFO_HEALTH_KEPT_OUT] = "kept_out",
                [INFO_HEALTH_OUT_OF_SERVICE] = "out_of_service",
        };
        char text[2 * METRICS_NAME];
        head(w, "spancl_device_state", "gauge",
             "1 for the state of the device: in_service, kept_out until a check passes, or "
             "out_of_service after several failed checks.");
        for (size_t i = 0; i < m->device_count; i++)
                for (uint64_t k = 0; k < array_size(states); k++)
                        put(w,
                            "spancl_device_state{device=\"%" PRIu64
                            "\",name=\"%s\",state=\"%s\"} %d\n",
                            m->devices[i].number, label(m->devices[i].name, text), states[k],
                            m->devices[i].state == k);
        head(w, "spancl_device_failures", "gauge", "Failed checks of the device in a row.");
        for (size_t i = 0; i < m->device_count; i++)
                put(w, "spancl_device_failures{device=\"%" PRIu64 "\",name=\"%s\"} %" PRIu64 "\n",
                    m->devices[i].number, label(m->devices[i].name, text), m->devices[i].failures);
}

/* One metric of what clients use. `ns`: in seconds. */
static void put_share_figure(struct writer *w, const struct metrics *m, const char *name,
                             const char *help, enum metrics_share_figure f, bool of_devices)
{
        bool ns = f == METRICS_TIME || f == METRICS_TIME_MAX || f == METRICS_WINDOW;
        char text[2 * METRICS_NAME], device[48] = "";
        head(w, name, "gauge", help);
        for (size_t i = 0; i < m->client_count; i++) {
                const struct metrics_client *c = &m->clients[i];
                for (size_t k = 0; k < c->share_count; k++) {
                        const struct metrics_share *s = &c->shares[k];
                        uint64_t value = s->figures[f];
                        if ((s->device != UINT64_MAX) != of_devices || value == UINT64_MAX)
                                continue;
                        if (of_devices)
                                snprintf(device, sizeof(device), ",device=\"%" PRIu64 "\"",
                                         s->device);
                        put(w, "%s{client=\"%s\"%s} ", name, label(c->name, text), device);
                        if (ns)
                                put(w, "%.3f\n", (double)value / 1e9);
                        else
                                put(w, "%" PRIu64 "\n", value);
                }
        }
}

static void put_clients(struct writer *w, const struct metrics *m)
{
        static const struct {
                const char *name, *help;
        } figures[METRICS_FIGURES] = {
                [METRICS_MEMORY] = { "memory_bytes",
                                     "Buffers and images of the client's sessions" },
                [METRICS_MEMORY_MAX] = { "memory_limit_bytes",
                                         "The limit of them (--client-memory)" },
                [METRICS_TIME] = { "time_seconds",
                                   "Device time that the client has used in the window" },
                [METRICS_TIME_MAX] = { "time_limit_seconds", "The limit of it (--client-time)" },
                [METRICS_WINDOW] = { "time_window_seconds", "The length of the window" },
                [METRICS_PAUSED] = { "time_exceeded",
                                     "1 if the client's kernels wait for the next window" },
        };
        char text[2 * METRICS_NAME], name[64], help[160];
        head(w, "spancl_client_sessions", "gauge", "Sessions of the client now.");
        for (size_t i = 0; i < m->client_count; i++)
                put(w, "spancl_client_sessions{client=\"%s\"} %" PRIu64 "\n",
                    label(m->clients[i].name, text), m->clients[i].sessions);
        head(w, "spancl_client_sessions_limit", "gauge", "The limit of them (--client-sessions).");
        for (size_t i = 0; i < m->client_count; i++)
                if (m->clients[i].sessions_max != UINT64_MAX)
                        put(w, "spancl_client_sessions_limit{client=\"%s\"} %" PRIu64 "\n",
                            label(m->clients[i].name, text), m->clients[i].sessions_max);
        for (int devices = 0; devices < 2; devices++)
                for (int f = 0; f < METRICS_FIGURES; f++) {
                        snprintf(name, sizeof(name), "spancl_client_%s%s", devices ? "device_" : "",
                                 figures[f].name);
                        snprintf(help, sizeof(help), "%s, %s.", figures[f].help,
                                 devices ? "of a device with a limit of its own"
                                         : "of all devices together");
                        put_share_figure(w, m, name, help, f, devices);
                }
}

/* The energy of the devices that have a counter, and of sessions. */
static void put_energy(struct writer *w, const struct metrics *m)
{
        char text[2 * METRICS_NAME];
        head(w, "spancl_device_energy_joules_total", "counter",
             "Energy that the device has used since spancld first read its counter, also in idle times.");
        for (size_t i = 0; i < m->device_count; i++)
                if (m->devices[i].energy_uj != UINT64_MAX)
                        put(w,
                            "spancl_device_energy_joules_total{device=\"%" PRIu64
                            "\",name=\"%s\"} %.3f\n",
                            m->devices[i].number, label(m->devices[i].name, text),
                            (double)m->devices[i].energy_uj / 1e6);
        head(w, "spancl_session_energy_joules_total", "counter",
             "The part of the device's energy that the session has used, an estimate by device time.");
        for (size_t i = 0; i < m->count; i++)
                for (size_t k = 0; k < m->all[i].use_count; k++)
                        put(w,
                            "spancl_session_energy_joules_total{worker=\"%" PRIu64
                            "\",program=\"%s\",device=\"%" PRIu64 "\"} %.3f\n",
                            m->all[i].process, label(m->all[i].program, text),
                            m->all[i].uses[k].device, (double)m->all[i].uses[k].energy_uj / 1e6);
}

/* One metric of all sessions. */
static void put_usage(struct writer *w, const struct metrics *m, const char *name, const char *help,
                      size_t offset)
{
        char text[2 * METRICS_NAME];
        head(w, name, "gauge", help);
        for (size_t i = 0; i < m->count; i++) {
                if (!m->all[i].told)
                        continue;
                put(w, "%s{worker=\"%" PRIu64 "\",program=\"%s\"} %" PRIu64 "\n", name,
                    m->all[i].process, label(m->all[i].program, text),
                    *(const uint64_t *)(const void *)((const char *)&m->all[i] + offset));
        }
}

static void put_traffic(struct writer *w, const struct metrics *m, const char *name,
                        const char *help, size_t offset)
{
        static const char *const ends[] = { "client", "server" }, *const ways[] = { "sent",
                                                                                    "received" };
        char text[2 * METRICS_NAME];
        head(w, name, "counter", help);
        for (size_t i = 0; i < m->count; i++) {
                if (!m->all[i].told)
                        continue;
                const uint64_t(*of)[METRICS_WAYS] =
                        (const void *)((const char *)&m->all[i] + offset);
                for (int k = 0; k < METRICS_ENDS; k++)
                        for (int j = 0; j < METRICS_WAYS; j++)
                                put(w,
                                    "%s{worker=\"%" PRIu64
                                    "\",program=\"%s\",peer=\"%s\",direction=\"%s\"} %" PRIu64 "\n",
                                    name, m->all[i].process, label(m->all[i].program, text),
                                    ends[k], ways[j], of[k][j]);
        }
}

int metrics_put(const struct metrics *m, struct buf *out)
{
        struct writer w = { .out = out };
        put_server(&w, m);
        put_devices(&w, m);
        put_clients(&w, m);
        put_energy(&w, m);
        put_usage(&w, m, "spancl_session_memory_bytes",
                  "Buffers, images and shared virtual memory of the session.",
                  offsetof(struct metrics_session, memory));
        put_usage(&w, m, "spancl_session_programs", "Programs of the session.",
                  offsetof(struct metrics_session, programs));
        put_traffic(&w, m, "spancl_session_bytes_total",
                    "Bytes of the session's messages and data, with its client and with other "
                    "servers.",
                    offsetof(struct metrics_session, bytes));
        put_traffic(&w, m, "spancl_session_messages_total",
                    "Messages of the session. A client sends one for each command.",
                    offsetof(struct metrics_session, messages));
        return w.status;
}
