#include "daemon/supervisor/health.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/control.h"
#include "daemon/supervisor/pending.h"
#include "daemon/supervisor/workers.h"
#include "os/clock.h"
#include "os/process/process.h"
#include "proto/info.h"
#include "session/hello.h"

enum {
        FAILURES = 3,        /* failures in a row that put a device out of service */
        CHECKS_MAX = 4,      /* checks at a time */
        CHECK_MS = 10000,    /* for the commands of one check */
        HOLD_MS = 5000,      /* new sessions wait so long for a check */
        AGAIN_MS = 1000,     /* between checks for a new reason, and after the first failures */
        PAUSE_MS = 60000,    /* between checks of a device out of service; it doubles */
        PAUSE_DOUBLINGS = 5, /* number of doublings */
        /* If so many guessed devices all fail, the driver does not work at all. */
        GUESSES = 4,
        /* The same pause after a session ended that may have caused the failure. */
        HAD_SESSIONS_MS = PAUSE_MS
};

static bool is_out(const struct health_device *d)
{
        return d->failures >= FAILURES;
}

static struct health_device *find(struct supervisor *s, unsigned number)
{
        for (size_t i = 0; i < s->health.count; i++)
                if (s->health.devices[i].number == number)
                        return &s->health.devices[i];
        return NULL;
}

const char *health_name(const struct supervisor *s, unsigned number)
{
        for (size_t i = 0; i < s->health.count; i++)
                if (s->health.devices[i].number == number)
                        return s->health.devices[i].name;
        return "name not known";
}

/* Add a device. NULL: there are too many. */
static struct health_device *add(struct health *h, unsigned number, const char *name)
{
        if (h->count == HEALTH_DEVICES)
                return NULL;
        struct health_device *d = &h->devices[h->count++];
        *d = (struct health_device){ .number = number, .due_ns = UINT64_MAX };
        snprintf(d->name, sizeof(d->name), "%s", name);
        return d;
}

static void drop(struct health *h, struct health_device *d)
{
        size_t behind = (size_t)(&h->devices[h->count] - (d + 1));
        memmove(d, d + 1, behind * sizeof(*d));
        h->count--;
}

void health_learn(struct supervisor *s, const char *text)
{
        struct health *h = &s->health;
        h->searching = h->searched = false;
        for (const char *line = strchr(text, '\n'); line; line = strchr(line + 1, '\n')) {
                char *end, name[sizeof(h->devices[0].name)];
                unsigned long number = strtoul(line + 1, &end, 10);
                if (number > UINT32_MAX || end == line + 1 || *end != ' ' ||
                    strspn(end + 1, "c-") != 1 || end[2] != ' ')
                        continue;
                bool is_cpu = end[1] == 'c';
                end += 3;
                snprintf(name, sizeof(name), "%.*s", (int)strcspn(end, "\n"), end);
                bytes_tame(name, sizeof(name));
                struct health_device *d = find(s, (unsigned)number);
                if (d) {
                        strcpy(d->name, name);
                        d->guessed = false;
                } else
                        d = add(h, (unsigned)number, name);
                if (d)
                        d->is_cpu = is_cpu;
        }
}

/* Search for working devices by their numbers, one after the other. This is needed if a device
 * hangs or crashes its driver at once: then no worker comes up to report the devices. */
static void search(struct supervisor *s)
{
        struct health *h = &s->health;
        const struct health_device *last = h->count ? &h->devices[h->count - 1] : NULL;
        size_t kept_out = 0;
        for (size_t i = 0; i < h->count; i++)
                kept_out += h->devices[i].guessed && h->devices[i].kept_out;
        if (h->searching && kept_out >= GUESSES && kept_out == h->count) {
                h->count = 0; /* no single device is at fault */
                h->searching = false;
                h->searched = true;
        }
        if (!h->searching ||
            (last && !last->kept_out && (last->begun_ns || last->due_ns != UINT64_MAX)))
                return;
        struct health_device *d = add(h, last ? last->number + 1 : 0, "name not known");
        if (d) {
                d->guessed = true;
                d->due_ns = clock_now_ns();
        } else {
                h->searching = false;
        }
}

/* ---- consequences --------------------------------------------------------------------------- */

static bool wants_hold(const struct supervisor *s)
{
        uint64_t now = clock_now_ns();
        for (size_t i = 0; i < s->health.count; i++) {
                const struct health_device *d = &s->health.devices[i];
                if (!d->kept_out && (d->begun_ns || d->due_ns <= now))
                        return true;
        }
        return false;
}

/* Apply changes of the record: update the devices that new sessions do not get, and serve waiting
 * connections. */
static void settle(struct supervisor *s)
{
        uint64_t now = clock_now_ns();
        bool changed = false;
        for (size_t i = 0; i < s->health.count; i++) {
                struct health_device *d = &s->health.devices[i];
                bool out = d->failures ||
                           (d->begun_ns && (d->kept_out || now - d->begun_ns >= HOLD_MS * MS));
                changed |= out != d->kept_out;
                d->kept_out = out;
        }
        if (changed)
                workers_retire(s);
        search(s);
        bool held = s->health.held;
        s->health.held = wants_hold(s);
        if (held && !s->health.held) {
                pending_serve_waiting(s);
                if (s->arrivals.waiting.count)
                        s->starts.next_ns = 0;
        }
}

bool health_holds(const struct supervisor *s)
{
        return s->health.held;
}

/* Append a term to the filter. False: it is full. */
static bool add_term(char ret[HEALTH_FILTER_MAX], const char *term)
{
        size_t n = strlen(ret);
        if (n + strlen(term) + 2 > HEALTH_FILTER_MAX)
                return false;
        snprintf(ret + n, HEALTH_FILTER_MAX - n, "%s%s", n ? "," : "", term);
        return true;
}

void health_filter(const struct supervisor *s, const struct gate_grant *grant,
                   char ret[HEALTH_FILTER_MAX])
{
        const char *filter =
                *grant->devices ? grant->devices : config_option_text(s->options, CONFIG_devices);
        char term[16];
        bool all = true;
        *ret = 0;
        if (*grant->reserved)
                all = add_term(ret, grant->reserved);
        for (size_t i = 0; i < s->health.count; i++) {
                if (!s->health.devices[i].kept_out)
                        continue;
                snprintf(term, sizeof(term), "!%u", s->health.devices[i].number);
                all &= add_term(ret, term);
        }
        if (!*ret)
                filter = grant->devices; /* the worker knows --devices */
        if (*filter)
                all &= add_term(ret, filter);
        if (all)
                return;
        log_error(LOG, "--devices is too long to keep devices out: sessions get none");
        strcpy(ret, "!all");
}

const char *health_excuse(const struct supervisor *s)
{
        static char text[HEALTH_TEXT_MAX + 200];
        for (size_t i = 0; i < s->health.count; i++) {
                const struct health_device *d = &s->health.devices[i];
                if (!d->kept_out)
                        continue;
                snprintf(text, sizeof(text),
                         "this server has no device for this session: device %u (%s) is out of "
                         "service: %s",
                         d->number, d->name, *d->why ? d->why : "it does not answer");
                return text;
        }
        return NULL;
}

/* ---- verdicts ----------------------------------------------------------------------------------- */

static uint64_t pause_of(const struct health_device *d)
{
        unsigned doublings = d->failures - FAILURES;
        return (PAUSE_MS * MS) << (doublings < PAUSE_DOUBLINGS ? doublings : PAUSE_DOUBLINGS);
}

static void passed(struct supervisor *s, struct health_device *d)
{
        if (is_out(d))
                log_warn(LOG, "device %u (%s) is in service again: it has passed a check",
                         d->number, d->name);
        else if (d->failures)
                log_warn(LOG, "device %u (%s) has passed a check: new sessions get it again",
                         d->number, d->name);
        else
                log_info(LOG, "device %u (%s) has passed a check", d->number, d->name);
        d->failures = 0;
        d->guessed = false;
        d->begun_ns = 0;
        *d->why = 0;
        d->checked_ns = clock_now_ns();
        settle(s);
}

static void failed(struct supervisor *s, struct health_device *d, const char *why)
{
        snprintf(d->why, sizeof(d->why), "%s", why);
        bytes_tame(d->why, sizeof(d->why));
        d->failures++;
        d->begun_ns = 0;
        d->checked_ns = clock_now_ns();
        d->had_sessions = workers_count(s, WORKER_BUSY) > 0;
        d->due_ns = d->checked_ns + (is_out(d) ? pause_of(d) : AGAIN_MS * MS);
        if (d->failures < FAILURES)
                log_warn(LOG, "device %u (%s) has failed a check: %s", d->number, d->name, d->why);
        else if (d->failures == FAILURES)
                log_error(
                        LOG,
                        "device %u (%s) is out of service after %d failed checks: %s. New sessions "
                        "do not get it. See the kernel's log (dmesg) for what its driver says, and "
                        "reset the device, or restart the host. spancld checks it again after 1, 2, "
                        "4 ... 32 minutes, and takes it back when it passes",
                        d->number, d->name, FAILURES, d->why);
        else
                log_info(LOG, "device %u (%s) is still out of service: %s", d->number, d->name,
                         d->why);
        settle(s);
}

/* Repeat a check later that had no result. */
static void postpone(struct supervisor *s, struct health_device *d)
{
        d->begun_ns = 0;
        d->checked_ns = clock_now_ns();
        d->due_ns = d->checked_ns + (is_out(d) ? pause_of(d) : PAUSE_MS * MS);
        settle(s);
}

/* Find the device that the worker checks, and end its check. NULL: the check already has a
 * result. */
static struct health_device *take(struct supervisor *s, struct worker *w)
{
        struct health_device *d = w->reported ? NULL : find(s, w->devices.checks);
        w->reported = true;
        return d;
}

void health_receive(struct supervisor *s, struct worker *w, const struct control *c)
{
        struct health_device *d;
        switch (c->kind) {
        case CONTROL_READY:
                w->ready_by_ns = clock_now_ns() + CHECK_MS * MS;
                break;
        case CONTROL_HEALTH:
                d = take(s, w);
                if (d && c->size)
                        failed(s, d, (const char *)c->data);
                else if (d)
                        passed(s, d);
                break;
        case CONTROL_FAILED:
                d = take(s, w);
                if (d && d->guessed) {
                        drop(&s->health, d);
                        s->health.searching = false; /* the search is complete */
                        settle(s);
                } else if (d) {
                        failed(s, d, (const char *)c->data);
                }
                break;
        default:
                break;
        }
}

void health_give_up(struct supervisor *s, struct worker *w)
{
        bool born = w->pid;
        struct health_device *d = take(s, w);
        if (!born)
                spawner_give_up(&s->spawner);
        worker_dismiss(s, w);
        if (d && born)
                failed(s, d, "it does not answer");
        else if (d)
                postpone(s, d);
}

void health_ended(struct supervisor *s, struct worker *w, const char *how)
{
        char text[HEALTH_TEXT_MAX];
        struct health_device *d = take(s, w);
        if (!d || s->end.stopping)
                return;
        snprintf(text, sizeof(text), "a process that checks it ends %s", how);
        failed(s, d, text);
}

/* ---- reasons, and time -------------------------------------------------------------------------- */

void health_doubt(struct supervisor *s)
{
        uint64_t now = clock_now_ns();
        s->health.searching |= !s->health.count && !s->health.searched;
        for (size_t i = 0; i < s->health.count; i++) {
                struct health_device *d = &s->health.devices[i];
                uint64_t due = d->checked_ns + AGAIN_MS * MS;
                due = due > now ? due : now;
                if (!d->failures && due < d->due_ns)
                        d->due_ns = due;
        }
        settle(s);
}

void health_session_ended(struct supervisor *s)
{
        uint64_t now = clock_now_ns();
        for (size_t i = 0; i < s->health.count; i++) {
                struct health_device *d = &s->health.devices[i];
                uint64_t due = d->checked_ns + HAD_SESSIONS_MS * MS;
                due = due > now ? due : now;
                if (is_out(d) && d->had_sessions && due < d->due_ns)
                        d->due_ns = due;
        }
}

/* Find an earlier check whose process still exists; NULL: none. */
static struct worker *find_check(struct supervisor *s, const struct health_device *d)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->state == WORKER_CHECKING && w->devices.checks == d->number)
                        return w;
        }
        return NULL;
}

/* Start a check of the device. If no signal ends the process of the last check, start none: each
 * check could leave another such process. */
static void begin(struct supervisor *s, struct health_device *d)
{
        uint64_t now = clock_now_ns();
        const struct worker *earlier = find_check(s, d);
        d->due_ns = UINT64_MAX;
        if (earlier && earlier->gone && now - d->checked_ns >= CHECK_MS * MS) {
                failed(s, d, "its driver keeps a process that can't be ended");
                return;
        }
        if (earlier) {
                d->due_ns = now + AGAIN_MS * MS;
                return;
        }
        d->begun_ns = now;
        if (worker_check(s, d->number) < 0)
                postpone(s, d);
}

void health_provide(struct supervisor *s)
{
        uint64_t now = clock_now_ns();
        if (!s->health.count || s->end.stopping || s->spawner.loading)
                return;
        for (size_t i = 0; i < s->health.count; i++) {
                struct health_device *d = &s->health.devices[i];
                if (d->due_ns <= now && !d->begun_ns &&
                    workers_count(s, WORKER_CHECKING) < CHECKS_MAX)
                        begin(s, d);
        }
        settle(s);
}

uint64_t health_deadline(const struct supervisor *s)
{
        uint64_t d = UINT64_MAX;
        for (size_t i = 0; i < s->health.count; i++) {
                const struct health_device *x = &s->health.devices[i];
                uint64_t hold = x->begun_ns + HOLD_MS * MS;
                if (!x->begun_ns && x->due_ns < d && workers_count(s, WORKER_CHECKING) < CHECKS_MAX)
                        d = x->due_ns;
                if (x->begun_ns && !x->kept_out && hold < d)
                        d = hold;
        }
        return d;
}

/* ---- reports -------------------------------------------------------------------------------- */

enum info_health_state health_state(const struct health_device *d)
{
        if (!d->kept_out)
                return INFO_HEALTH_IN_SERVICE;
        return is_out(d) ? INFO_HEALTH_OUT_OF_SERVICE : INFO_HEALTH_KEPT_OUT;
}

int health_report(const struct supervisor *s, struct buf *out)
{
        int r = 0;
        for (size_t i = 0; i < s->health.count && !r; i++) {
                const struct health_device *d = &s->health.devices[i];
                auto_clean(buf_fini) struct buf mark = { 0 };
                char text[256];
                if (!d->kept_out)
                        continue;
                snprintf(text, sizeof(text), "device %u (%s): %s: %.100s", d->number, d->name,
                         is_out(d) ? "out of service" : "kept out until a check passes",
                         *d->why ? d->why : "it does not answer");
                r = info_put_u64(&mark, INFO_OUT_OF_SERVICE, d->number);
                const struct wire_session_stats m = {
                        .process = (uint64_t)process_self(),
                        .name = bytes_str(text),
                        .links = bytes_of(mark.data, mark.size),
                };
                if (!r)
                        r = hello_put_stats(out, &m);
        }
        return r;
}
