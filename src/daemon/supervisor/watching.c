#include "daemon/supervisor/watching.h"

#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/supervisor/workers.h"

enum { CHANGES = IN_MOVED_TO | IN_CLOSE_WRITE | IN_ONLYDIR };

void clients_watch(struct supervisor *s)
{
        if (s->clients.watched || !*s->gate.folder || s->stopping)
                return;
        if (s->clients.inotify < 0) {
                s->clients.source.kind = SOURCE_CLIENTS;
                s->clients.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
                if (s->clients.inotify < 0 ||
                    supervisor_watch(s, s->clients.inotify, &s->clients.source) < 0) {
                        log_warn(LOG,
                                 "a removed client's sessions will go on: there is no inotify");
                        s->clients.watched = true;
                        return;
                }
        }
        s->clients.watched = inotify_add_watch(s->clients.inotify, s->gate.folder, CHANGES) >= 0;
        if (s->clients.watched)
                clients_changed(s); /* before this watch */
}

void clients_unwatch(struct supervisor *s)
{
        if (s->clients.inotify >= 0)
                close(s->clients.inotify);
        s->clients.inotify = -1;
}

/* Read all events. The folder itself is watched anew after it was removed. */
static void drain(struct supervisor *s)
{
        _Alignas(struct inotify_event) char events[4096];
        ssize_t n;
        while ((n = read(s->clients.inotify, events, sizeof(events))) > 0)
                for (ssize_t at = 0; at < n;) {
                        struct inotify_event e;
                        memcpy(&e, events + at, sizeof(e));
                        if (e.mask & IN_IGNORED)
                                s->clients.watched = false;
                        at += (ssize_t)(sizeof(e) + e.len);
                }
}

void clients_changed(struct supervisor *s)
{
        drain(s);
        char *list = gate_clients(&s->gate);
        if (!list)
                return;
        list_each(w, &s->workers, struct worker, link)
        {
                uint8_t key[CRYPTO_FINGERPRINT];
                struct keys_entry e;
                if (w->state == WORKER_BUSY && !w->gone && keys_unhex(w->grant.key, key) &&
                    !keys_find(list, key, NULL, &e))
                        worker_over(s, w,
                                    "its client was removed from this server's list of clients");
        }
        mem_free(list);
}

void clients_rekeyed(struct supervisor *s, const struct gate_grant *grant)
{
        list_each(w, &s->workers, struct worker, link)
        {
                if (!strcmp(w->grant.key, grant->was))
                        strcpy(w->grant.key, grant->key);
        }
}
