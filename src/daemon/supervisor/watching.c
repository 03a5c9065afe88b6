#include "daemon/supervisor/watching.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/supervisor/observing.h"
#include "daemon/supervisor/reserving.h"
#include "daemon/supervisor/workers.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/watch.h"

enum {
        /* The time without changes after which the list is read: programs that write it in place take several steps. */
        QUIET_MS = 200,
        LONGEST_MS =
                2000, /* from the first change: a client can change the list again and again, by new keys */
};

void clients_watch(struct supervisor *s)
{
        if (s->clients.watch >= 0 || s->clients.impossible || s->end.stopping ||
            !folder_exists(s->gate.folder))
                return;
        s->clients.source.kind = SOURCE_CLIENTS;
        s->clients.watch = watch_new(s->gate.folder);
        if (s->clients.watch >= 0 &&
            supervisor_watch(s, s->clients.watch, &s->clients.source) == 0) {
                clients_changed(s); /* before this watch */
                return;
        }
        clients_unwatch(s);
        s->clients.impossible = true;
        log_warn(LOG, "sessions of removed clients will go on: their list can't be watched");
}

void clients_unwatch(struct supervisor *s)
{
        if (s->clients.watch >= 0)
                (void)file_close(s->clients.watch);
        s->clients.watch = -1;
}

void clients_changed(struct supervisor *s)
{
        uint64_t now = clock_now_ns(), quiet_ns = now + QUIET_MS * MS;
        if (!s->clients.due_ns)
                s->clients.latest_ns = now + LONGEST_MS * MS;
        s->clients.due_ns = quiet_ns < s->clients.latest_ns ? quiet_ns : s->clients.latest_ns;
        if (!watch_clear(s->clients.watch)) {
                supervisor_unwatch(s, s->clients.watch);
                clients_unwatch(s); /* a folder in its place is watched anew */
        }
}

void clients_expire(struct supervisor *s, uint64_t now_ns)
{
        if (!s->clients.due_ns || now_ns < s->clients.due_ns)
                return;
        s->clients.due_ns = 0;
        reserving_refresh(s);
        char *list;
        int r = gate_clients(&s->gate, &list);
        if (r < 0 && r != SP_E_NOENT) {
                log_error(LOG, "sessions of removed clients go on until their list can be read");
                return;
        }
        list_each(w, &s->workers, struct worker, link)
        {
                uint8_t key[CRYPTO_FINGERPRINT];
                struct keys_entry e;
                if (w->state == WORKER_BUSY && !w->gone)
                        observing_expire(w, r < 0 ? NULL : list);
                if (w->state == WORKER_BUSY && !w->gone && keys_unhex(w->grant.key, key) &&
                    (r < 0 || !keys_find(list, key, NULL, &e)))
                        worker_over(s, w,
                                    "its client was removed from this server's list of clients");
        }
        if (!r)
                mem_free(list);
}

void clients_rekeyed(struct supervisor *s, const struct gate_grant *grant)
{
        char was[GATE_WHO_MAX];
        snprintf(was, sizeof(was), "key %s", grant->was);
        list_each(w, &s->workers, struct worker, link)
        {
                if (!strcmp(w->grant.key, grant->was))
                        strcpy(w->grant.key, grant->key);
                if (!strcmp(w->grant.who, was))
                        strcpy(w->grant.who, grant->who);
                observing_rekeyed(w, grant);
        }
}
