#include "daemon/supervisor/accounts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/client_limits.h"
#include "daemon/control.h"
#include "daemon/linux/time_slice.h"
#include "daemon/linux/usage.h"
#include "daemon/supervisor/workers.h"
#include "engine/account.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/shared_memory.h"
#include "os/thread.h"
#include "os/vm.h"

enum {
        CHECK_MS = 250, /* between looks at the device time */
        EXCESS_S = 10,  /* processor time beyond the limit that ends a client's sessions */
        NICE_LOW = 10,
        NICE_HIGH = -5,
};

/* A client with sessions, or with device time in its window. */
struct client_account {
        struct list link;
        char who[GATE_WHO_MAX];
        struct client_limits limits;
        size_t sessions;
        int fd;                    /* of the page; -1: there is none */
        struct account_page *page; /* NULL: memory and time have no limit, or there is no session */
        bool *taken;               /* by slot */
        uint64_t begun_ns;         /* the window; 0: no device time was used in one */
        uint64_t used_ns;          /* in the window, by pages that are gone */
        uint64_t page_ns;          /* what the page had when the window began */
        uint64_t cpu_ns;           /* processor time of ended workers in the window */
        bool paused;
};

/* Return the limits of the options and of the client's line in the list. */
static struct client_limits limits_of(const struct supervisor *s, const struct gate_grant *client)
{
        struct client_limits l = client_limits_of(s->options);
        const char *left = client->settings;
        struct keys_setting setting;
        while (keys_setting(&left, &setting))
                (void)!client_limits_set(&l, setting.key,
                                         setting.value); /* the gate has checked it */
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

/* ---- pages ---------------------------------------------------------------------------------- */

static int page_new(struct client_account *a)
{
        uint64_t address;
        a->fd = shared_memory_new(sizeof(*a->page));
        a->taken = mem_zalloc(ACCOUNT_SLOTS * sizeof(*a->taken));
        if (a->fd < 0 || !a->taken || vm_map_file(a->fd, 0, sizeof(*a->page), &address) < 0)
                return SP_E_LIMIT;
        a->page = (struct account_page *)(uintptr_t)address;
        a->page_ns = 0;
        a->paused = false;
        return 0;
}

/* Return the device time of the window. */
static uint64_t used_ns(const struct client_account *a)
{
        uint64_t now = a->page ? atomic_load(&a->page->busy_ns) : 0;
        return a->used_ns + (now > a->page_ns ? now - a->page_ns : 0);
}

static void page_free(struct client_account *a)
{
        a->used_ns = used_ns(a);
        if (a->page)
                vm_unmap((uintptr_t)a->page, sizeof(*a->page));
        if (a->fd >= 0)
                (void)file_close(a->fd);
        mem_free(a->taken);
        a->page = NULL;
        a->taken = NULL;
        a->fd = -1;
        a->page_ns = 0;
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
static void open_window(struct supervisor *s, struct client_account *a, uint64_t now_ns)
{
        a->begun_ns = now_ns;
        a->page_ns = a->page ? atomic_load(&a->page->busy_ns) : 0;
        a->used_ns = a->cpu_ns = 0;
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

/* Hand the account to the worker. */
static int give(struct client_account *a, struct worker *w)
{
        char text[64];
        if (!a->page) {
                int r = page_new(a);
                if (r < 0)
                        return r;
        }
        if (!account_open(a->page, a->taken, &w->use.slot))
                return SP_E_LIMIT;
        w->use.has_slot = true;
        snprintf(text, sizeof(text), "%u %" PRIu64 " %d", w->use.slot,
                 a->limits.memory_bytes ? a->limits.memory_bytes : UINT64_MAX,
                 a->limits.time_s != 0);
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
        a->limits = limits_of(s, client);
        a->sessions++;
        w->use.account = a;
        w->use.cpu_before_ns = cpu_now_ns(s, w); /* it has loaded the drivers */
        w->use.cpu_ns = 0;
        int r = a->limits.memory_bytes || a->limits.time_s ? give(a, w) : 0;
        if (r < 0) {
                accounts_end(s, w, 0);
                return r;
        }
        prioritize(s, w, a->limits.priority);
        if (a->limits.time_s) {
                uint64_t now = clock_now_ns();
                if (!a->begun_ns) /* even a session that ends before the next look counts */
                        open_window(s, a, now);
                s->accounts.check_ns = now;
        }
        return 0;
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
                account_close(a->page, a->taken, w->use.slot);
        w->use.has_slot = false;
        a->cpu_ns += w->use.cpu_ns;
        if (--a->sessions)
                return;
        page_free(a);
        if (!a->begun_ns || !a->limits.time_s)
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
        unsigned cores = thread_cores();
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

/* Return false if the account was freed. */
static bool inspect(struct supervisor *s, struct client_account *a, uint64_t now_ns)
{
        uint64_t limit_ns = a->limits.time_s * 1000 * MS;
        if (!a->begun_ns || now_ns - a->begun_ns >= a->limits.window_s * 1000 * MS) {
                if (!a->sessions) {
                        account_free(a);
                        return false;
                }
                open_window(s, a, now_ns);
        }
        uint64_t least = least_ns(s, a), used = used_ns(a) > least ? used_ns(a) : least;
        bool pause = used >= limit_ns;
        if (pause && !a->paused)
                log_warn(LOG,
                         "%s has used its %" PRIu64 " s of device time in %" PRIu64
                         " s (--client-time): its kernels wait",
                         a->who, a->limits.time_s, a->limits.window_s);
        a->paused = pause;
        if (a->page)
                atomic_store(&a->page->paused, pause);
        if (least > limit_ns + limit_ns / 4 + EXCESS_S * 1000 * MS)
                end_sessions(s, a);
        return true;
}

void accounts_check(struct supervisor *s, uint64_t now_ns)
{
        bool any = false;
        if (!s->accounts.check_ns || s->accounts.check_ns > now_ns)
                return;
        list_each(a, &s->accounts.all, struct client_account, link)
        {
                if (a->limits.time_s)
                        any |= inspect(s, a, now_ns);
        }
        s->accounts.check_ns = any ? now_ns + CHECK_MS * MS : 0;
}

uint64_t accounts_deadline(const struct supervisor *s)
{
        return s->accounts.check_ns ? s->accounts.check_ns : UINT64_MAX;
}

void accounts_fini(struct supervisor *s)
{
        list_each(a, &s->accounts.all, struct client_account, link)
        {
                account_free(a);
        }
}
