#include "daemon/supervisor/accounts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/client_limits.h"
#include "daemon/control.h"
#include "daemon/supervisor/health.h"
#include "daemon/supervisor/workers.h"
#include "daemon/system/time_slice.h"
#include "daemon/system/usage.h"
#include "engine/account.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/process/process.h"
#include "os/shared_memory.h"
#include "os/thread.h"
#include "os/vm.h"
#include "proto/info.h"
#include "session/hello.h"

enum {
        CHECK_MS = 250,        /* between looks at the device time */
        REPORT_MAX = 16 << 10, /* bytes: an answer to a query is sent at once */
        REPORT_SHARES = 16,    /* devices of a client: they fit into a message (FRAME_HELLO_MAX) */
        EXCESS_S = 10,         /* processor time beyond the limit that ends a client's sessions */
        NICE_LOW = 10,
        NICE_HIGH = -5,
};

/* A window of device time. */
struct window {
        uint64_t begun_ns; /* 0: no device time was used in one */
        uint64_t used_ns;  /* in the window, by pages that are gone */
        uint64_t page_ns;  /* what the page had when the window began */
        bool paused;
};

enum { WINDOW_ALL = ACCOUNT_DEVICES, WINDOWS }; /* of each column; of all devices together */

/* A client with sessions, or with device time in a window. */
struct client_account {
        struct list link;
        char who[GATE_WHO_MAX];
        char name[KEYS_NAME_MAX + 1]; /* for reports */
        struct client_limits limits;
        size_t sessions;
        int fd;                    /* of the page; -1: there is none */
        struct account_page *page; /* NULL: no worker has to know a limit, or there is no session */
        bool *taken;               /* by slot */
        /* The numbers of the devices that have the page's columns. */
        unsigned columns[ACCOUNT_DEVICES], column_count;
        struct window windows[WINDOWS];
        uint64_t cpu_ns; /* processor time of ended workers in the window of all devices */
};

/* Return the limits of the options and of the client's line in the list. */
static struct client_limits limits_of(const struct supervisor *s, const struct gate_grant *client)
{
        struct client_limits l = client_limits_of(s->options);
        client_limits_apply(&l, client->settings); /* the gate has checked them */
        return l;
}

static struct client_account *find(const struct supervisor *s, const char *who)
{
        list_each(a, &s->accounts.all, struct client_account, link)
        {
                if (!strcmp(a->who, who))
                        return a;
        }
        return NULL;
}

const char *accounts_refuse(const struct supervisor *s, const struct gate_grant *client)
{
        const struct client_account *a = find(s, client->who);
        uint64_t max = limits_of(s, client).sessions;
        return max && a && a->sessions >= max
                       ? "this client has as many sessions here as it may have (--client-sessions)"
                       : NULL;
}

/* ---- columns and windows -------------------------------------------------------------------- */

/* Return the column of a device; ACCOUNT_DEVICES: it has none. */
static unsigned column_of(const struct client_account *a, unsigned number)
{
        unsigned i = 0;
        while (i < a->column_count && a->columns[i] != number)
                i++;
        return i < a->column_count ? i : ACCOUNT_DEVICES;
}

static bool has_device(const struct supervisor *s, unsigned number)
{
        for (size_t i = 0; i < s->health.count; i++)
                if (s->health.devices[i].number == number)
                        return true;
        return false;
}

/* Give each device of the limits a column. SP_E_LIMIT: sessions still use columns of too many other devices. */
static int take_columns(const struct supervisor *s, struct client_account *a)
{
        if (!a->page) { /* no session knows a column */
                unsigned kept = 0;
                for (unsigned i = 0; i < a->column_count; i++) {
                        bool limited = false;
                        for (size_t k = 0; k < a->limits.device_count; k++)
                                limited |= a->limits.devices[k].number == a->columns[i];
                        if (!limited)
                                continue;
                        a->columns[kept] = a->columns[i];
                        a->windows[kept++] = a->windows[i];
                }
                for (unsigned i = kept; i < a->column_count; i++)
                        a->windows[i] = (struct window){ 0 };
                a->column_count = kept;
        }
        for (size_t k = 0; k < a->limits.device_count; k++) {
                unsigned number = a->limits.devices[k].number;
                if (column_of(a, number) < ACCOUNT_DEVICES)
                        continue;
                if (a->column_count == ACCOUNT_DEVICES)
                        return SP_E_LIMIT;
                a->columns[a->column_count++] = number;
                if (!has_device(s, number))
                        log_warn(LOG,
                                 "%s has a limit of device %u, which this server does not have",
                                 a->who, number);
        }
        return 0;
}

/* Return the limit of a window; time_s is 0 if there is none. */
static struct client_time limit_of(const struct client_account *a, unsigned window)
{
        if (window == WINDOW_ALL)
                return a->limits.time;
        for (size_t k = 0; window < a->column_count && k < a->limits.device_count; k++)
                if (a->limits.devices[k].number == a->columns[window])
                        return a->limits.devices[k].time;
        return (struct client_time){ 0 };
}

static bool is_timed(const struct client_limits *l)
{
        bool timed = l->time.time_s != 0;
        for (size_t i = 0; i < l->device_count; i++)
                timed |= l->devices[i].time.time_s != 0;
        return timed;
}

/* Return true if device time is counted in a window that has a limit. */
static bool in_window(const struct client_account *a)
{
        bool any = false;
        for (unsigned i = 0; i < WINDOWS; i++)
                any |= a->windows[i].begun_ns && limit_of(a, i).time_s;
        return any;
}

static struct account_time *page_time(const struct client_account *a, unsigned window)
{
        return window == WINDOW_ALL ? &a->page->time : &a->page->device_time[window];
}

/* Return the time that the page has counted. */
static uint64_t page_ns(const struct client_account *a, unsigned window)
{
        return a->page ? atomic_load(&page_time(a, window)->busy_ns) : 0;
}

/* Return the device time of the window. */
static uint64_t used_ns(const struct client_account *a, unsigned window)
{
        const struct window *w = &a->windows[window];
        uint64_t now = page_ns(a, window);
        return w->used_ns + (now > w->page_ns ? now - w->page_ns : 0);
}

/* Let kernels wait, or go on. Return true if they did not wait before. */
static bool set_paused(struct client_account *a, unsigned window, bool paused)
{
        bool was = a->windows[window].paused;
        a->windows[window].paused = paused;
        if (a->page)
                atomic_store(&page_time(a, window)->paused, paused);
        return paused && !was;
}

/* ---- pages ---------------------------------------------------------------------------------- */

static int page_new(struct client_account *a)
{
        uint64_t address;
        a->fd = shared_memory_new(sizeof(*a->page));
        a->taken = mem_zalloc(ACCOUNT_SLOTS * sizeof(*a->taken));
        if (a->fd < 0 || !a->taken || vm_map_file(a->fd, 0, sizeof(*a->page), &address) < 0)
                return SP_E_LIMIT;
        a->page = (struct account_page *)(uintptr_t)address;
        for (unsigned i = 0; i < WINDOWS; i++) {
                a->windows[i].page_ns = 0;
                a->windows[i].paused = false;
        }
        return 0;
}

static void page_free(struct client_account *a)
{
        for (unsigned i = 0; i < WINDOWS; i++) {
                a->windows[i].used_ns = used_ns(a, i);
                a->windows[i].page_ns = 0;
        }
        if (a->page)
                vm_unmap((uintptr_t)a->page, sizeof(*a->page));
        if (a->fd >= 0)
                (void)file_close(a->fd);
        mem_free(a->taken);
        a->page = NULL;
        a->taken = NULL;
        a->fd = -1;
}

static void account_free(struct client_account *a)
{
        page_free(a);
        list_remove(&a->link);
        mem_free(a);
}

/* ---- processor time ------------------------------------------------------------------------- */

/* Return the processor time of the worker's processes. */
static uint64_t cpu_now_ns(const struct supervisor *s, const struct worker *w)
{
        uint64_t ns = cgroup_cpu_ns(&s->cgroups, w->group);
        return ns ? ns : usage_cpu_ns(w->pid);
}

/* Charge the worker's session. Processes that end uncollected take their time with them, but they buy none. */
static void charge(struct client_use *use, uint64_t cpu_now_ns)
{
        if (cpu_now_ns < use->cpu_before_ns)
                use->cpu_before_ns = cpu_now_ns;
        uint64_t ns = cpu_now_ns - use->cpu_before_ns;
        use->cpu_ns = ns > use->cpu_ns ? ns : use->cpu_ns;
}

/* Begin a window. Time of the processors before it does not count. */
static void open_window(struct supervisor *s, struct client_account *a, unsigned window,
                        uint64_t now_ns)
{
        a->windows[window].begun_ns = now_ns;
        a->windows[window].page_ns = page_ns(a, window);
        a->windows[window].used_ns = 0;
        if (window != WINDOW_ALL)
                return;
        a->cpu_ns = 0;
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->use.account != a)
                        continue;
                w->use.cpu_before_ns = cpu_now_ns(s, w);
                w->use.cpu_ns = 0;
        }
}

/* ---- sessions ------------------------------------------------------------------------------- */

static void prioritize(struct supervisor *s, const struct worker *w, enum client_priority p)
{
        static const struct {
                unsigned weight;
                int nice;
        } classes[] = { [PRIORITY_LOW] = { 20, NICE_LOW }, [PRIORITY_HIGH] = { 500, NICE_HIGH } };
        if (p == PRIORITY_NORMAL)
                return;
        if (!cgroup_weigh(&s->cgroups, w->group, classes[p].weight))
                time_slices_prioritize(w, classes[p].nice);
}

/* Return true if the worker has to know a limit. */
static bool needs_page(const struct client_limits *l)
{
        return l->memory_bytes || l->time.time_s || l->builds || l->cache_bytes || l->device_count;
}

static uint64_t bytes_or_none(uint64_t limit)
{
        return limit ? limit : UINT64_MAX;
}

/* Hand the account to the worker. */
static int give(struct client_account *a, struct worker *w)
{
        enum { WORDS = 128, DEVICE_WORDS = 64 };
        char text[WORDS + ACCOUNT_DEVICES * DEVICE_WORDS];
        if (!a->page) {
                int r = page_new(a);
                if (r < 0)
                        return r;
        }
        if (!account_open(a->page, a->taken, a->column_count, &w->use.slot))
                return SP_E_LIMIT;
        w->use.has_slot = true;
        size_t n = (size_t)snprintf(text, sizeof(text), "%u %" PRIu64 " %d %" PRIu64 " %" PRIu64,
                                    w->use.slot, bytes_or_none(a->limits.memory_bytes),
                                    a->limits.time.time_s != 0, a->limits.builds,
                                    *w->grant.owner ? a->limits.cache_bytes : 0);
        for (size_t i = 0; i < a->limits.device_count; i++) {
                const struct client_device *d = &a->limits.devices[i];
                n += (size_t)snprintf(text + n, sizeof(text) - n, " %u %u %" PRIu64 " %d",
                                      d->number, column_of(a, d->number),
                                      bytes_or_none(d->memory_bytes), d->time.time_s != 0);
        }
        return control_send(w->control, CONTROL_ACCOUNT, bytes_str(text), a->fd);
}

int accounts_begin(struct supervisor *s, struct worker *w, const struct gate_grant *client)
{
        struct client_account *a = find(s, client->who);
        if (!a) {
                a = mem_zalloc(sizeof(*a));
                if (!a)
                        return SP_E_NOMEM;
                snprintf(a->who, sizeof(a->who), "%s", client->who);
                a->fd = -1;
                list_append(&s->accounts.all, &a->link);
        }
        snprintf(a->name, sizeof(a->name), "%s", *client->client ? client->client : client->who);
        a->limits = limits_of(s, client);
        a->sessions++;
        w->use.account = a;
        w->use.cpu_before_ns = cpu_now_ns(s, w); /* it has loaded the drivers */
        w->use.cpu_ns = 0;
        int r = take_columns(s, a);
        if (r < 0)
                log_error(LOG, "sessions of %s have limits of too many devices", a->who);
        if (!r && needs_page(&a->limits))
                r = give(a, w);
        if (r < 0) {
                accounts_end(s, w, 0);
                return r;
        }
        prioritize(s, w, a->limits.priority);
        uint64_t now = clock_now_ns(); /* even a session that ends before the next look counts */
        for (unsigned i = 0; i < WINDOWS; i++) {
                if (!limit_of(a, i).time_s) /* sessions of before may have had one */
                        (void)set_paused(a, i, false);
                else if (!a->windows[i].begun_ns)
                        open_window(s, a, i, now);
        }
        if (is_timed(&a->limits))
                s->accounts.check_ns = now;
        return 0;
}

bool accounts_limit_memory(const struct supervisor *s, const struct worker *w)
{
        const struct client_account *a = w->use.account;
        return config_option_number(s->options, CONFIG_session_buffers) ||
               (a && (a->limits.memory_bytes || a->limits.device_count));
}

void accounts_rekeyed(struct supervisor *s, const struct gate_grant *client)
{
        char was[GATE_WHO_MAX];
        snprintf(was, sizeof(was), "key %s", client->was);
        struct client_account *a = find(s, was);
        if (a && !find(s, client->who))
                strcpy(a->who, client->who);
}

void accounts_end(struct supervisor *s, struct worker *w, uint64_t cpu_ns)
{
        struct client_account *a = w->use.account;
        if (!a)
                return;
        uint64_t in_group_ns = cgroup_cpu_ns(&s->cgroups, w->group);
        charge(&w->use, in_group_ns ? in_group_ns : cpu_ns);
        w->use.account = NULL;
        if (w->use.has_slot)
                account_close(a->page, a->taken, a->column_count, w->use.slot);
        w->use.has_slot = false;
        a->cpu_ns += w->use.cpu_ns;
        if (--a->sessions)
                return;
        page_free(a);
        if (!in_window(a))
                account_free(a);
}

/* ---- device time ---------------------------------------------------------------------------- */

/* Return the device time that the client's workers have used at least, by their processor time. */
static uint64_t least_ns(struct supervisor *s, const struct client_account *a)
{
        uint64_t sum = a->cpu_ns;
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->use.account != a)
                        continue;
                charge(&w->use, cpu_now_ns(s, w));
                sum += w->use.cpu_ns;
        }
        /* Also with a quota of CPU time, which a program may use up on all cores in a part of its period. */
        unsigned cores = thread_cores_at_once();
        return sum / (cores ? cores : 1);
}

static void end_sessions(struct supervisor *s, const struct client_account *a)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->use.account == a && !w->gone)
                        worker_over(s, w,
                                    "its client has used far more device time than it may "
                                    "(--client-time), and it was ended");
        }
}

/* Say that the client has used up the time of a window. */
static void report(const struct supervisor *s, const struct client_account *a, unsigned window,
                   const struct client_time *limit)
{
        if (window == WINDOW_ALL)
                log_warn(LOG,
                         "%s has used its %" PRIu64 " s of device time in %" PRIu64
                         " s (--client-time): its kernels wait",
                         a->who, limit->time_s, limit->window_s);
        else
                log_warn(LOG,
                         "%s has used its %" PRIu64 " s of device %u (%s) in %" PRIu64
                         " s (--client-time): its kernels wait there",
                         a->who, limit->time_s, a->columns[window],
                         health_name(s, a->columns[window]), limit->window_s);
}

static void inspect_window(struct supervisor *s, struct client_account *a, unsigned window,
                           uint64_t now_ns)
{
        struct window *w = &a->windows[window];
        struct client_time limit = limit_of(a, window);
        uint64_t limit_ns = limit.time_s * 1000 * MS, used, least = 0;
        if (!limit.time_s)
                return;
        if (!w->begun_ns || now_ns - w->begun_ns >= limit.window_s * 1000 * MS) {
                if (!a->sessions) {
                        *w = (struct window){ 0 };
                        return;
                }
                open_window(s, a, window, now_ns);
        }
        used = used_ns(a, window);
        if (window == WINDOW_ALL)
                least = least_ns(s, a);
        if (set_paused(a, window, used >= limit_ns || least >= limit_ns))
                report(s, a, window, &limit);
        if (least > limit_ns + limit_ns / 4 + EXCESS_S * 1000 * MS)
                end_sessions(s, a);
}

/* Return false if the account was freed. */
static bool inspect(struct supervisor *s, struct client_account *a, uint64_t now_ns)
{
        for (unsigned i = 0; i < WINDOWS; i++)
                inspect_window(s, a, i, now_ns);
        if (a->sessions || in_window(a))
                return true;
        account_free(a);
        return false;
}

void accounts_check(struct supervisor *s, uint64_t now_ns)
{
        bool any = false;
        if (!s->accounts.check_ns || s->accounts.check_ns > now_ns)
                return;
        list_each(a, &s->accounts.all, struct client_account, link)
        {
                if (is_timed(&a->limits))
                        any |= inspect(s, a, now_ns);
        }
        s->accounts.check_ns = any ? now_ns + CHECK_MS * MS : 0;
}

/* ---- reports -------------------------------------------------------------------------------- */

/* Append the time that a client has used in a window, if it is limited. */
static int put_time(const struct client_account *a, unsigned window, struct buf *b)
{
        const struct window *w = &a->windows[window];
        const struct client_time limit = limit_of(a, window);
        uint64_t now = clock_now_ns(), length_ns = limit.window_s * 1000 * MS;
        uint64_t gone_ns = w->begun_ns && now > w->begun_ns ? now - w->begun_ns : 0;
        const struct {
                enum info_key key;
                uint64_t value;
        } all[] = {
                { INFO_SHARE_TIME_NS, used_ns(a, window) },
                { INFO_SHARE_TIME_MAX_NS, limit.time_s * 1000 * MS },
                { INFO_SHARE_WINDOW_NS, length_ns },
                { INFO_SHARE_WINDOW_LEFT_NS, gone_ns < length_ns ? length_ns - gone_ns : 0 },
                { INFO_SHARE_PAUSED, w->paused },
        };
        int r = 0;
        for (size_t i = 0; limit.time_s && i < array_size(all) && !r; i++)
                r = info_put_u64(b, all[i].key, all[i].value);
        return r;
}

/* Append what a client uses of one device, or with WINDOW_ALL of all devices. */
static int put_share(const struct supervisor *s, const struct client_account *a, unsigned window,
                     uint64_t memory_max, struct buf *b)
{
        bool all = window == WINDOW_ALL;
        const char *name = all ? "" : health_name(s, a->columns[window]);
        size_t mark;
        int r = info_begin(b, INFO_ACCOUNT_SHARE, &mark);
        if (!r && !all)
                r = info_put_u64(b, INFO_SHARE_DEVICE, a->columns[window]);
        if (!r && !all)
                r = info_put(b, INFO_SHARE_NAME, name, strlen(name));
        if (!r && (a->page || !a->sessions))
                r = info_put_u64(b, INFO_SHARE_MEMORY,
                                 !a->page ? 0
                                 : all    ? account_sum(a->page)
                                          : account_device_sum(a->page, window));
        if (!r && memory_max)
                r = info_put_u64(b, INFO_SHARE_MEMORY_MAX, memory_max);
        if (!r)
                r = put_time(a, window, b);
        if (!r)
                info_end(b, mark);
        return r;
}

static int put_account(const struct supervisor *s, const struct client_account *a, struct buf *b)
{
        const struct client_limits *l = &a->limits;
        size_t mark;
        int r = info_begin(b, INFO_ACCOUNT, &mark);
        if (!r)
                r = info_put(b, INFO_ACCOUNT_CLIENT, a->name, strlen(a->name));
        if (!r)
                r = info_put_u64(b, INFO_ACCOUNT_SESSIONS, a->sessions);
        if (!r && l->sessions)
                r = info_put_u64(b, INFO_ACCOUNT_SESSIONS_MAX, l->sessions);
        if (!r)
                r = put_share(s, a, WINDOW_ALL, l->memory_bytes, b);
        for (size_t i = 0; i < l->device_count && i < REPORT_SHARES && !r; i++) {
                unsigned column = column_of(a, l->devices[i].number);
                if (column < ACCOUNT_DEVICES)
                        r = put_share(s, a, column, l->devices[i].memory_bytes, b);
        }
        if (!r)
                info_end(b, mark);
        return r;
}

int accounts_report(const struct supervisor *s, struct buf *out)
{
        const size_t before = out->size;
        int r = 0;
        list_each(a, &s->accounts.all, struct client_account, link)
        {
                auto_clean(buf_fini) struct buf block = { 0 };
                if (r < 0 || out->size - before > REPORT_MAX)
                        break;
                r = put_account(s, a, &block);
                const struct wire_session_stats m = {
                        .process = (uint64_t)process_self(),
                        .name = bytes_str(""),
                        .links = bytes_of(block.data, block.size),
                };
                if (!r)
                        r = hello_put_stats(out, &m);
        }
        return r;
}

uint64_t accounts_deadline(const struct supervisor *s)
{
        return s->accounts.check_ns ? s->accounts.check_ns : UINT64_MAX;
}

uint64_t accounts_cache_bytes(const struct supervisor *s, const struct gate_grant *client)
{
        uint64_t own = limits_of(s, client).cache_bytes;
        return own && *client->owner ? own
                                     : config_option_number(s->options, CONFIG_cache_size) << 20;
}

void accounts_fini(struct supervisor *s)
{
        list_each(a, &s->accounts.all, struct client_account, link)
        {
                account_free(a);
        }
}
