#include "cli/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/options.h"
#include "cli/screen.h"
#include "cli/top_table.h"
#include "os/clock.h"
#include "os/condition.h"
#include "os/file.h"
#include "os/process/environment.h"
#include "os/process/process.h"
#include "os/signals.h"
#include "os/terminal.h"
#include "os/thread.h"
#include "os/wakeup.h"

enum { EACH_NS = 1000000000 };

/* A thread asks each server, so that one that is not reachable keeps nobody waiting. */
struct sampler {
        struct top *top;
        struct top_server server; /* guarded by the lock of `top` */
        thread_id thread;
        bool started;
};

struct top {
        struct lock lock;
        struct sampler *samplers;
        size_t count;
        int timeout_ms, wake;
        bool again; /* the threads go on */
};

static void ask(struct sampler *s)
{
        struct top *t = s->top;
        struct top_server *v = &s->server;
        struct snapshot new;
        char text[STATS_QUERY_TEXT_MAX] = "";
        int r = stats_query(v->spec, t->timeout_ms, &new, text);
        lock_take(&t->lock);
        snapshot_fini(&v->old);
        v->old = v->now;
        v->now = (struct snapshot){ 0 };
        v->asked = true;
        v->reachable = !r;
        if (!r)
                v->now = new;
        strcpy(v->text, text);
        lock_release(&t->lock);
        wakeup_set(t->wake);
}

/* Sleep until the next time to ask. Times that have passed are left out. */
static void sleep_until_next(uint64_t *next_ns)
{
        uint64_t now = clock_now_ns();
        *next_ns += EACH_NS;
        *next_ns = *next_ns > now ? *next_ns : now + EACH_NS;
        (void)thread_sleep(*next_ns - now);
}

static void *run(void *arg)
{
        struct sampler *s = arg;
        uint64_t next_ns = clock_now_ns();
        do {
                ask(s);
                if (s->top->again)
                        sleep_until_next(&next_ns);
        } while (s->top->again);
        return NULL;
}

static int start(struct top *t)
{
        for (size_t i = 0; i < t->count; i++) {
                struct sampler *s = &t->samplers[i];
                if (s->server.spec->in_process)
                        continue;
                if (thread_start(&s->thread, false, run, s) < 0)
                        return SP_E_LIMIT;
                s->started = true;
        }
        return 0;
}

/* Wait for threads that ask once. */
static void join(struct top *t)
{
        for (size_t i = 0; i < t->count; i++)
                if (t->samplers[i].started)
                        thread_join(t->samplers[i].thread);
}

/* ---- output for programs and pipes ---------------------------------------------------------- */

static void print_json(const struct top_server *t)
{
        struct json_writer w = { .to = stdout };
        json_begin(&w, NULL, '{');
        json_put_text(&w, "server", t->spec->name);
        json_put_bool(&w, "reachable", t->reachable);
        json_put_text(&w, "error", t->reachable ? NULL : t->text);
        if (t->reachable)
                snapshot_json(&w, t->old.taken_ns ? &t->old : NULL, &t->now);
        json_end(&w, '}');
        json_line(&w);
}

/* Ask all servers once, and print the answers. Returns how many did not answer. */
static size_t print_all(struct top *t, bool json)
{
        size_t failed = 0;
        if (start(t) < 0)
                fprintf(stderr, "spancl: a thread can't be started\n");
        join(t);
        for (size_t i = 0; i < t->count; i++) {
                struct sampler *s = &t->samplers[i];
                bool ok = s->server.reachable || s->server.spec->in_process;
                failed += !ok;
                if (!ok)
                        fprintf(stderr, "spancl: %s\n", s->server.text);
                if (json && !s->server.spec->in_process)
                        print_json(&s->server);
                else if (!json)
                        top_print(&s->server);
                s->started = false;
        }
        fflush(stdout);
        return failed;
}

static size_t print(struct top *t, bool json, bool once)
{
        size_t failed;
        uint64_t next_ns = clock_now_ns();
        do {
                failed = print_all(t, json);
                if (!once)
                        sleep_until_next(&next_ns);
        } while (!once && !ferror(stdout));
        return failed;
}

/* ---- the screen ----------------------------------------------------------------------------- */

static void draw(struct top *t, struct top_view *v)
{
        auto_clean(buf_fini) struct buf out = { 0 };
        struct top_server *all = mem_alloc(t->count * sizeof(*all));
        terminal_size(&v->width, &v->height);
        if (!all)
                return;
        lock_take(&t->lock);
        for (size_t i = 0; i < t->count; i++)
                all[i] = t->samplers[i].server; /* its memory stays until the lock is released */
        int r = top_lines(all, t->count, v, &out);
        lock_release(&t->lock);
        mem_free(all);
        if (!r)
                screen_show(bytes_of(out.data, out.size ? out.size - 1 : 0));
}

/* Handle a key or another event. False: the program ends. */
static bool handle(struct top_view *v, int event)
{
        enum top_column c = top_key(event);
        size_t page = v->height > 4 ? (size_t)v->height - 4 : 1;
        switch (event) {
        case 'q':
        case 'Q':
        case SCREEN_GONE:
                return false;
        case 'h':
        case '?':
                v->help = !v->help;
                break;
        case SCREEN_UP:
                v->first -= v->first > 0;
                break;
        case SCREEN_DOWN:
                v->first++;
                break;
        case SCREEN_PAGE_UP:
                v->first -= v->first < page ? v->first : page;
                break;
        case SCREEN_PAGE_DOWN:
                v->first += page;
                break;
        case SCREEN_HOME:
                v->first = 0;
                break;
        case SCREEN_END_KEY:
                v->first = SIZE_MAX / 2;
                break;
        case SCREEN_LEFT:
                v->sort = (v->sort + TOP_COLUMNS - 1) % TOP_COLUMNS;
                break;
        case SCREEN_RIGHT:
                v->sort = (v->sort + 1) % TOP_COLUMNS;
                break;
        default:
                if (c < TOP_COLUMNS)
                        v->sort = c;
        }
        return true;
}

/* Returns the exit status. Does not wait for the threads, which may wait for servers: the process ends. */
static int show(struct top *t)
{
        struct top_view v = { .sort = TOP_BUSY, .colours = !environment_get("NO_COLOR") };
        int event = SCREEN_SIZE;
        if (screen_open() < 0)
                return 1;
        t->again = true;
        if (start(t) < 0) {
                screen_close();
                fprintf(stderr, "spancl: a thread can't be started\n");
                process_exit(1);
        }
        while (event < SCREEN_SIGNAL && handle(&v, event)) {
                draw(t, &v);
                event = screen_wait(t->wake, (int)(EACH_NS / 1000000));
                if (event == SCREEN_WAKE)
                        wakeup_clear(t->wake);
        }
        screen_close();
        if (event >= SCREEN_SIGNAL)
                signals_die(event - SCREEN_SIGNAL);
        process_exit(0);
}

int command_top(int argc, char **argv)
{
        struct queried at;
        bool flags[2] = { false };
        if (options_query("top", argc, argv, (const char *const[]){ "--once", "--json", NULL },
                          flags, &at) < 0)
                return 2;
        struct top t = { .lock = LOCK_INIT, .count = at.count, .timeout_ms = at.timeout_ms };
        size_t failed = at.count;
        t.wake = wakeup_new();
        t.samplers = mem_zalloc((at.count + 1) * sizeof(*t.samplers));
        for (size_t i = 0; t.samplers && i < at.count; i++)
                t.samplers[i] = (struct sampler){ .top = &t, .server.spec = &at.servers[i] };
        if (!t.samplers || t.wake < 0)
                fprintf(stderr, "spancl: out of memory\n");
        else if (!flags[0] && !flags[1] && screen_is_possible())
                return show(&t);
        else
                failed = print(&t, flags[1], flags[0] || !flags[1]);
        if (failed)
                options_hint(&at);
        for (size_t i = 0; t.samplers && i < at.count; i++) {
                snapshot_fini(&t.samplers[i].server.old);
                snapshot_fini(&t.samplers[i].server.now);
        }
        mem_free(t.samplers);
        if (t.wake >= 0)
                (void)file_close(t.wake);
        config_servers_free(at.servers, at.count);
        return failed ? 1 : 0;
}
