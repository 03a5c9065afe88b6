#include "daemon/supervisor/introduce.h"

#include <limits.h>

#include "backend/media/source_names.h"
#include "base/installed.h"
#include "base/log.h"
#include "daemon/control.h"
#include "daemon/supervisor/accounts.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/net/socket.h"
#include "os/passing.h"

enum {
        AGAIN_MS = 1000, /* after a failure */
        AGAIN_MAX_MS = 60000,
        STEADY_S = 60, /* what lived so long did not fail because of its start */
        ANEW_MS = 100, /* after the helper ended on purpose (files_outdated) */
};

/* Give a worker a socket with the helper. */
static void join(struct worker *w, const struct helper *h, enum control_kind kind)
{
        const struct bytes nothing = { 0 };
        int pair[2];
        if (!h->pid || w->gone)
                return;
        if (!socket_pair_packets(pair)) {
                log_warn(LOG, "out of descriptors: a session gets no socket with the %s", h->name);
                return;
        }
        /* Neither the helper nor the supervisor takes descriptors from a worker. The helper gets its end last: on
         * Windows a process can send descriptors only to one that had the other end before. */
        passing_refuse(pair[0]);
        if (control_send(w->control, kind, nothing, pair[1]) < 0 ||
            control_send(h->control, kind, nothing, pair[0]) < 0)
                log_warn(LOG, "a session gets no socket with the %s", h->name);
        (void)file_close(pair[0]);
        (void)file_close(pair[1]);
}

/* After how many ms a helper starts again: soon, but less often while it does not live long. */
static unsigned pause_of(struct helper *h)
{
        bool lived = clock_now_ns() - h->begun_ns > STEADY_S * 1000000000ull;
        h->pause_ms = lived || !h->pause_ms ? AGAIN_MS : 2 * h->pause_ms;
        h->pause_ms = h->pause_ms < AGAIN_MAX_MS ? h->pause_ms : AGAIN_MAX_MS;
        return h->pause_ms;
}

/* ---- the dialler ---------------------------------------------------------------------------- */

void dialler_provide(struct supervisor *s)
{
        static char word[] = "--dialler", local[] = "1", remote[] = "0";
        if (s->dialler.pid || s->end.stopping || clock_now_ns() < s->dialler.again_ns)
                return;
        int r = helper_start(s, &s->dialler,
                             (char *[]){ word, s->listeners.local ? local : remote, NULL });
        if (r < 0) {
                log_error(LOG, "the dialler can't be started: %s", status_text(r));
                helper_gone(s, &s->dialler, AGAIN_MS);
                return;
        }
        list_each(w, &s->workers, struct worker, link) join(w, &s->dialler, CONTROL_DIALLER);
}

bool dialler_ended(struct supervisor *s, pid_t pid, int status)
{
        bool meant = WIFEXITED(status) && !WEXITSTATUS(status);
        if (!helper_ended(s, &s->dialler, pid, meant ? ANEW_MS : AGAIN_MS))
                return false;
        if (!meant && !s->end.stopping)
                log_error(LOG, "the dialler has ended; it is started again");
        return true;
}

void introduce(struct supervisor *s, struct worker *w)
{
        join(w, &s->dialler, CONTROL_DIALLER);
        join(w, &s->streams, CONTROL_STREAMS);
}

/* ---- media-io ------------------------------------------------------------------------------- */

bool streams_wanted(const struct supervisor *s)
{
        for (size_t i = 0; i < s->options->list_count; i++)
                if (s->options->list[i].id == CONFIG_media_source ||
                    s->options->list[i].id == CONFIG_media_sink)
                        return *config_option_text(s->options, CONFIG_media) != 0;
        return false;
}

static void add_values(const struct config_options *o, enum config_id id, char **argv, size_t *n)
{
        for (size_t i = 0; i < o->list_count; i++)
                if (o->list[i].id == id)
                        argv[(*n)++] = (char *)(uintptr_t)o->list[i].value;
}

static int streams_start(struct supervisor *s)
{
        static char name[] = "media-io";
        const struct config_options *o = s->options;
        static char sinks[] = "--sinks";
        char path[PATH_MAX], *argv[2 * MEDIA_SOURCES_MAX + 3] = { name };
        size_t n = 1;
        if (!installed_find(name, path)) {
                log_error(LOG, "--media-source, --media-sink: libexec/spancl/media-io is not "
                               "installed (package spancl-media-av)");
                return SP_E_NOENT;
        }
        /* main.c has checked that there are not too many of either. */
        add_values(o, CONFIG_media_source, argv, &n);
        argv[n++] = sinks;
        add_values(o, CONFIG_media_sink, argv, &n);
        s->streams.begun_ns = clock_now_ns();
        return helper_run_socket(s, &s->streams, path, argv);
}

void streams_provide(struct supervisor *s)
{
        struct helper *h = &s->streams;
        if (h->pid || s->end.stopping || clock_now_ns() < h->again_ns)
                return;
        int r = streams_start(s);
        if (r < 0) {
                if (r != SP_E_NOENT)
                        log_error(LOG, "media-io can't be started: %s", status_text(r));
                helper_gone(s, h, pause_of(h));
                if (r == SP_E_NOENT)
                        h->again_ns = UINT64_MAX;
                return;
        }
        list_each(w, &s->workers, struct worker, link) join(w, h, CONTROL_STREAMS);
}

bool streams_ended(struct supervisor *s, pid_t pid, int status)
{
        if (!pid || pid != s->streams.pid)
                return false;
        bool meant = WIFEXITED(status) && !WEXITSTATUS(status);
        unsigned pause_ms = meant ? ANEW_MS : pause_of(&s->streams);
        (void)helper_ended(s, &s->streams, pid, pause_ms);
        if (!meant && !s->end.stopping)
                log_error(LOG, "media-io has ended (%s %d); it is started again in %u s",
                          WIFSIGNALED(status) ? "signal" : "status",
                          WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
                          pause_ms / 1000);
        return true;
}

/* ---- the allocator -------------------------------------------------------------------------- */

bool allocator_wanted(void)
{
        return file_exists("/dev/nvidiactl");
}

void allocator_provide(struct supervisor *s)
{
        static char word[] = "--allocator";
        struct helper *h = &s->allocator;
        if (h->pid || s->end.stopping || clock_now_ns() < h->again_ns)
                return;
        h->begun_ns = clock_now_ns();
        int r = helper_start(s, h, (char *[]){ word, NULL });
        if (r < 0) {
                log_error(LOG, "the allocator can't be started: %s", status_text(r));
                helper_gone(s, h, pause_of(h));
                return;
        }
        list_each(w, &s->workers, struct worker, link) introduce_session(s, w);
}

bool allocator_ended(struct supervisor *s, pid_t pid)
{
        if (!pid || pid != s->allocator.pid)
                return false;
        (void)helper_ended(s, &s->allocator, pid, pause_of(&s->allocator));
        if (!s->end.stopping)
                log_error(LOG, "the allocator has ended; it is started again in %u s",
                          s->allocator.pause_ms / 1000);
        return true;
}

void introduce_session(struct supervisor *s, struct worker *w)
{
        bool some = w->grant.devices[0] || w->grant.reserved[0];
        if (w->use.account && !some && !accounts_limit_memory(s, w))
                join(w, &s->allocator, CONTROL_ALLOCATOR);
}
