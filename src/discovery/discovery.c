#include "discovery/discovery.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/installed.h"
#include "base/log.h"
#include "base/mem.h"
#include "config/entries.h"
#include "discovery/records.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/poll.h"
#include "os/process/detached.h"
#include "os/thread.h"
#include "os/wakeup.h"

enum {
        ROUND = 1 << 20,       /* bytes of one source between two calls of `changed` */
        NOTIFY_NS = 100000000, /* at least so long between two calls */
};

struct source {
        char *name;
        bool local; /* this user's word */
        int fd;     /* -1: it has ended */
        struct records records;
};

struct discovery {
        discovery_fn changed;
        void *user;
        struct source sources[DISCOVERY_SOURCES_MAX];
        size_t source_count;
        int wake; /* os/wakeup.h */
        int keys; /* os/watch.h: the folder of the keys; -1: it can't be watched */
        atomic_bool ending;
        thread_id thread;
        bool started;
        struct trust trust;
};

/* ---- sources -------------------------------------------------------------------------------- */

/* The sources of records that come from the network. */
static const char *const programs[] = { "mdns", "dns", "dht" };

#define AUTO_PROGRAM "discover-mdns"

bool discovery_suits(void)
{
        struct trust t = { 0 };
        char path[PATH_MAX];
        trust_read(&t);
        bool paired = t.servers && *t.servers;
        trust_fini(&t);
        return paired && installed_find(AUTO_PROGRAM, path);
}

/* Find the program of a source, and its argument (NULL: none). */
static int find_program(const char *name, char path[PATH_MAX], const char **ret_argument,
                        bool *ret_local, char **ret_error)
{
        const char *colon = strchr(name, ':');
        char file[32] = "";
        *ret_argument = NULL;
        *ret_local = colon != NULL;
        for (size_t i = 0; i < array_size(programs); i++)
                if (!strcmp(name, programs[i]))
                        snprintf(file, sizeof(file), "discover-%s", name);
        if (!strcmp(name, "auto")) {
                snprintf(file, sizeof(file), "%s", AUTO_PROGRAM);
        } else if (!strncmp(name, "file:", 5) && name[5] == '/') {
                snprintf(file, sizeof(file), "discover-file");
                *ret_argument = colon + 1;
        } else if (!strncmp(name, "exec:", 5) && name[5] == '/') {
                snprintf(path, PATH_MAX, "%s", colon + 1);
                return 0;
        }
        if (!*file)
                return config_fail(
                        ret_error,
                        "SPANCL_DISCOVERY: '%s' is not a source: it takes auto, none, "
                        "mdns, dns, dht, exec:/PROGRAM and file:/PATH, separated by commas",
                        name);
        if (!installed_find(file, path))
                *path = 0;
        return 0;
}

static int add_source(struct discovery *d, const char *text, size_t size, char **ret_error)
{
        char path[PATH_MAX];
        const char *argument;
        if (d->source_count == DISCOVERY_SOURCES_MAX)
                return config_fail(ret_error, "SPANCL_DISCOVERY: more than %d sources",
                                   DISCOVERY_SOURCES_MAX);
        char *name = mem_alloc(size + 1);
        if (!name)
                return SP_E_NOMEM;
        memcpy(name, text, size);
        name[size] = 0;
        struct source *s = &d->sources[d->source_count];
        *s = (struct source){ .name = name, .fd = -1 };
        d->source_count++;
        int r = find_program(name, path, &argument, &s->local, ret_error);
        if (r < 0)
                return r;
        char *const argv[] = { path, (char *)(uintptr_t)argument, NULL };
        if (!*path) {
                log_warn("discovery", "%s: its program is not installed", name);
                return 0;
        }
        /* An application that did not ask for a source prints nothing of it. */
        r = detached_start(argv, !strcmp(name, "auto"), &s->fd);
        if (r < 0)
                log_warn("discovery", "%s: %s can't be started: %s", name, path, strerror(errno));
        return r == SP_E_NOMEM ? r : 0;
}

/* Read what has come. True: the records have changed. */
static bool read_source(struct source *s)
{
        char data[16 << 10];
        bool changed = false;
        for (size_t all = 0; all < ROUND;) {
                int64_t n = file_read(s->fd, data, sizeof(data));
                if (n < 0 && errno == EAGAIN)
                        break;
                if (n <= 0) {
                        log_info("discovery", "%s: its program has ended", s->name);
                        (void)records_feed(&s->records, s->name, "\n",
                                           1); /* its last line may lack it */
                        int fd = s->fd;
                        s->fd = -1; /* first: a child of a fork closes the others */
                        file_close(fd);
                        return true;
                }
                changed |= records_feed(&s->records, s->name, data, (size_t)n);
                all += (size_t)n;
        }
        return changed;
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* The folder of the keys may be a new one. */
static void watch_keys(struct discovery *d)
{
        int old = d->keys;
        d->keys = -1; /* first: a child of a fork closes it */
        if (old >= 0)
                file_close(old);
        d->keys = trust_watch();
}

/* Call `changed`. Returns what `changed` returns, or true if servers may be paired without the thread's notice. */
static bool notify(struct discovery *d)
{
        size_t count = 0, n = 0, strangers = 0;
        bool settled = true;
        for (size_t i = 0; i < d->source_count; i++) {
                count += d->sources[i].records.count;
                settled = settled && (d->sources[i].records.settled || d->sources[i].fd < 0);
        }
        struct discovery_item *items = mem_alloc((count + 1) * sizeof(*items));
        if (!items)
                return true;
        if (count)
                trust_read(&d->trust);
        for (size_t i = 0; i < d->source_count; i++) {
                const struct source *s = &d->sources[i];
                for (size_t k = 0; k < s->records.count; k++) {
                        const struct discovered *record = &s->records.list[k];
                        items[n++] = (struct discovery_item){
                                .record = record,
                                .source = s->name,
                                .use = trust_judge(&d->trust, record, s->local),
                        };
                        strangers += items[n - 1].use == DISCOVERED_NOT_PAIRED;
                }
        }
        bool again = d->changed(d->user, items, count, settled);
        mem_free(items);
        return again || (strangers && d->keys < 0);
}

static void *run(void *arg)
{
        struct discovery *d = arg;
        bool again = notify(d), changed = false;
        uint64_t notified_ns = clock_now_ns();
        for (;;) {
                struct pollfd p[DISCOVERY_SOURCES_MAX + 2] = {
                        { .fd = d->wake, .events = POLLIN }, { .fd = d->keys, .events = POLLIN }
                };
                for (size_t i = 0; i < d->source_count; i++)
                        p[i + 2] = (struct pollfd){ .fd = d->sources[i].fd, .events = POLLIN };
                uint64_t at = notified_ns + (changed ? NOTIFY_NS : DISCOVERY_AGAIN_MS * 1000000ull);
                int n = poll_until(p, d->source_count + 2, changed || again ? at : UINT64_MAX);
                if (n > 0 && p[0].revents) {
                        wakeup_clear(d->wake);
                        changed = true;
                }
                if (n > 0 && p[1].revents) {
                        watch_keys(d);
                        changed = true;
                }
                if (atomic_load(&d->ending))
                        return NULL;
                for (size_t i = 0; i < d->source_count && n > 0; i++)
                        if (p[i + 2].revents)
                                changed |= read_source(&d->sources[i]);
                /* Hosts of the network decide how often records change. */
                uint64_t now = clock_now_ns();
                if ((changed && now - notified_ns >= NOTIFY_NS) || (n == 0 && again)) {
                        changed = false;
                        again = notify(d);
                        notified_ns = clock_now_ns();
                }
        }
}

/* ---- life ----------------------------------------------------------------------------------- */

int discovery_new(const char *sources, discovery_fn changed, void *user, struct discovery **ret,
                  char **ret_error)
{
        static const char blanks[] = ", \t\n";
        struct discovery *d = mem_zalloc(sizeof(*d));
        if (!d)
                return SP_E_NOMEM;
        d->changed = changed;
        d->user = user;
        d->wake = wakeup_new();
        d->keys = trust_watch();
        int r = d->wake < 0 ? SP_E_LIMIT : 0;
        for (const char *p = sources + strspn(sources, blanks); *p && !r; p += strspn(p, blanks)) {
                size_t size = strcspn(p, blanks);
                r = add_source(d, p, size, ret_error);
                p += size;
        }
        if (!r)
                r = thread_start(&d->thread, false, run, d);
        if (r < 0) {
                discovery_free(d);
                return r;
        }
        d->started = true;
        *ret = d;
        return 0;
}

void discovery_poke(struct discovery *d)
{
        if (d)
                wakeup_set(d->wake);
}

void discovery_abandon(struct discovery *d)
{
        if (!d)
                return;
        for (size_t i = 0; i < d->source_count; i++)
                if (d->sources[i].fd >= 0)
                        file_close(d->sources[i].fd);
        if (d->wake >= 0)
                file_close(d->wake);
        if (d->keys >= 0)
                file_close(d->keys);
}

struct discovery *discovery_free(struct discovery *d)
{
        if (!d)
                return NULL;
        if (d->started) {
                atomic_store(&d->ending, true);
                discovery_poke(d);
                thread_join(d->thread);
        }
        discovery_abandon(d);
        for (size_t i = 0; i < d->source_count; i++) {
                records_fini(&d->sources[i].records);
                mem_free(d->sources[i].name);
        }
        trust_fini(&d->trust);
        mem_free(d);
        return NULL;
}
