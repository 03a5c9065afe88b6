#include "daemon/supervisor/report.h"

#include <string.h>

#include "daemon/supervisor/energy.h"
#include "daemon/supervisor/sensing.h"
#include "daemon/supervisor/workers.h"
#include "os/clock.h"
#include "os/process/process.h"
#include "proto/info.h"
#include "session/hello.h"

enum { TEXT_MAX = 128 };

/* The reasons of refusals, as they are counted. */
static const struct {
        int status;
        const char *name;
} reasons[] = {
        { SP_E_AUTH, "unknown_client" }, /* it may not enter */
        { SP_E_LIMIT, "full" },          /* --sessions, or too many at once */
        { SP_E_NODEV, "no_device" },     /* for the session */
        { SP_E_VERSION, "version" },     /* no common version of the protocol */
        { SP_E_PROTO, "protocol" },      /* bytes that are no hello, or altered ones */
        { SP_E_GONE, "session_ended" },  /* the session is over, or spancld ends */
        { SP_E_TIMEOUT, "too_slow" },    /* the drivers, or the hello did not come in time */
        { SP_E_BUSY, "rate" },           /* --connection-rate, or too many without a hello */
        { 0, "other" },
};
_Static_assert(array_size(reasons) == REFUSED_COUNT, "each has a counter");

void report_refused(struct supervisor *s, int status)
{
        size_t i = 0;
        if (status == SP_E_LINK) /* the connection ended within its hello */
                status = SP_E_PROTO;
        while (reasons[i].status && reasons[i].status != status)
                i++;
        s->counts.refused[i]++;
}

static int put_refused(struct buf *b, const char *reason, uint64_t count)
{
        size_t mark;
        int r = info_begin(b, INFO_SERVER_REFUSED, &mark);
        if (!r)
                r = info_put(b, INFO_SERVER_REASON, reason, strlen(reason));
        if (!r)
                r = info_put_u64(b, INFO_SERVER_COUNT, count);
        if (!r)
                info_end(b, mark);
        return r;
}

static enum info_sandbox sandbox_of(const struct supervisor *s)
{
        if (!config_option_flag(s->options, CONFIG_sandbox))
                return INFO_SANDBOX_OFF;
        bool shared = !config_option_flag(s->options, CONFIG_namespaces) || s->namespaces_reported;
        return shared ? INFO_SANDBOX_SHARED : INFO_SANDBOX_WHOLE;
}

static int put_server(const struct supervisor *s, struct buf *b)
{
        const struct {
                enum info_key key;
                uint64_t value;
        } all[] = {
                { INFO_SERVER_UP_NS, clock_now_ns() - s->counts.since_ns },
                { INFO_SERVER_SESSIONS, workers_count(s, WORKER_BUSY) },
                { INFO_SERVER_SESSIONS_MAX, config_option_number(s->options, CONFIG_sessions) },
                { INFO_SERVER_SESSIONS_BEGUN, s->counts.begun },
                { INFO_SERVER_SESSIONS_LOST, s->counts.lost },
                { INFO_SERVER_DRAINING, s->end.draining },
                { INFO_SERVER_SANDBOX, sandbox_of(s) },
        };
        size_t mark;
        int r = info_begin(b, INFO_SERVER, &mark);
        for (size_t i = 0; i < array_size(all) && !r; i++)
                r = info_put_u64(b, all[i].key, all[i].value);
        for (size_t i = 0; i < array_size(reasons) && !r; i++)
                r = put_refused(b, reasons[i].name, s->counts.refused[i]);
        if (!r)
                info_end(b, mark);
        return r;
}

static int put_device(const struct supervisor *s, const struct health_device *d, struct buf *b)
{
        size_t mark;
        int r = info_begin(b, INFO_HEALTH, &mark);
        if (!r)
                r = info_put_u64(b, INFO_HEALTH_DEVICE, d->number);
        if (!r)
                r = info_put(b, INFO_HEALTH_NAME, d->name, strlen(d->name));
        if (!r)
                r = info_put_u64(b, INFO_HEALTH_STATE, health_state(d));
        if (!r)
                r = info_put_u64(b, INFO_HEALTH_FAILURES, d->failures);
        if (!r)
                r = sensors_put(s, d, b);
        if (!r)
                r = energy_put_device(s, d, b);
        if (!r)
                info_end(b, mark);
        return r;
}

/* Append one exchange with these records, and empty them. */
static int put_exchange(struct buf *records, struct buf *out)
{
        const struct wire_session_stats m = {
                .process = (uint64_t)process_self(),
                .name = bytes_str(""),
                .links = bytes_of(records->data, records->size),
        };
        int r = hello_put_stats(out, &m);
        records->size = 0;
        return r;
}

int report_put(const struct supervisor *s, struct buf *out)
{
        auto_clean(buf_fini) struct buf records = { 0 };
        int r = put_server(s, &records);
        if (!r)
                r = put_exchange(&records, out);
        for (size_t i = 0; i < s->health.count && !r; i++) {
                if (s->health.devices[i].guessed)
                        continue;
                r = put_device(s, &s->health.devices[i], &records);
                if (!r)
                        r = put_exchange(&records, out);
        }
        return r;
}

static int put_text(struct buf *b, enum info_key key, const char *text)
{
        return info_put(b, key, text, strnlen(text, TEXT_MAX));
}

int report_put_origin(const struct supervisor *s, const struct worker *w, struct buf *out)
{
        auto_clean(buf_fini) struct buf records = { 0 };
        const struct gate_grant *g = &w->grant;
        size_t mark;
        int r = info_begin(&records, INFO_ORIGIN, &mark);
        if (!r)
                r = put_text(&records, INFO_ORIGIN_CLIENT, g->client);
        if (!r)
                r = put_text(&records, INFO_ORIGIN_USER, g->user);
        if (!r)
                r = put_text(&records, INFO_ORIGIN_HOST, g->host);
        if (!r)
                r = put_text(&records, INFO_ORIGIN_FROM, w->audit.from);
        if (!r)
                r = info_put_u64(&records, INFO_ORIGIN_AGE_NS, clock_now_ns() - w->audit.begun_ns);
        if (!r)
                r = energy_put_session(s, w, &records);
        if (r < 0)
                return r;
        info_end(&records, mark);
        const struct wire_session_stats m = {
                .process = (uint64_t)w->pid,
                .name = bytes_str(w->name),
                .links = bytes_of(records.data, records.size),
        };
        return hello_put_stats(out, &m);
}

int report_put_whole(struct buf *out)
{
        auto_clean(buf_fini) struct buf records = { 0 };
        int r = info_put_u64(&records, INFO_WHOLE, 1);
        return r < 0 ? r : put_exchange(&records, out);
}

bool report_is_of_session(struct bytes records)
{
        struct info_entry e;
        if (info_check(records) < 0)
                return false;
        while (info_next(&records, &e))
                if (e.key != INFO_SESSION && e.key != INFO_LINK)
                        return false;
        return true;
}
