#include "daemon/supervisor/watching.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/supervisor/workers.h"
#include "os/file.h"
#include "os/watch.h"

static void forget(struct supervisor *s)
{
        supervisor_unwatch(s, s->clients.watch);
        clients_unwatch(s);
}

void clients_watch(struct supervisor *s)
{
        if (s->clients.watched || !*s->gate.folder || s->stopping)
                return;
        s->clients.source.kind = SOURCE_CLIENTS;
        s->clients.watch = watch_new(s->gate.folder);
        if (s->clients.watch < 0)
                return; /* the folder does not exist yet */
        s->clients.watched = true;
        if (supervisor_watch(s, s->clients.watch, &s->clients.source) < 0) {
                log_warn(LOG, "a removed client's sessions will go on: the keys can't be watched");
                clients_unwatch(s);
                return;
        }
        clients_changed(s); /* before this watch */
}

void clients_unwatch(struct supervisor *s)
{
        if (s->clients.watch >= 0)
                (void)file_close(s->clients.watch);
        s->clients.watch = -1;
}

void clients_changed(struct supervisor *s)
{
        if (!watch_clear(s->clients.watch)) {
                forget(s); /* the folder was removed: the next one is watched anew */
                s->clients.watched = false;
        }
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
