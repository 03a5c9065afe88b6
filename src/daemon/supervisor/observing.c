#include "daemon/supervisor/observing.h"

#include <string.h>

#include "base/log.h"
#include "daemon/supervisor/pending.h"

/* Does this name stand for one client? Tokens and addresses are shared. */
static bool is_of_one(const char *who)
{
        return !strncmp(who, "key ", 4) || !strncmp(who, "user ", 5);
}

static bool may_observe(const struct pending *v, const struct worker *w)
{
        return gate_is_owner(&v->from, v->conn, &v->grant) ||
               (is_of_one(v->grant.who) && !strcmp(v->grant.who, w->grant.who));
}

static int find(struct supervisor *s, const struct pending *v, const struct wire_hello *m,
                struct worker **ret, const char **ret_text)
{
        struct worker *found = NULL;
        list_each(w, &s->workers, struct worker, link)
        {
                if (w->state == WORKER_BUSY && !w->gone && w->pid > 0 &&
                    (uint64_t)w->pid == m->session_lo)
                        found = w;
        }
        /* A client that may not observe all sessions does not learn which numbers there are. */
        if (found ? !may_observe(v, found) : !gate_is_owner(&v->from, v->conn, &v->grant)) {
                *ret_text =
                        "only the user who runs spancld may observe the sessions of others: on its host, or with a "
                        "key that counts as its own";
                return SP_E_AUTH;
        }
        if (!found) {
                *ret_text = "this server has no such session (any more)";
                return SP_E_GONE;
        }
        *ret = found;
        return 0;
}

static bool drop(struct worker *w, unsigned i)
{
        uint8_t number[8];
        bytes_put_u64(number, w->viewers.observers[i].number);
        if (w->viewers.observers[i].number &&
            control_send(w->control, CONTROL_UNOBSERVE, bytes_of(number, 8), -1) < 0) {
                log_warn(LOG, "worker %d can't be told to drop observers", (int)w->pid);
                return false;
        }
        w->viewers.observers[i].number = 0;
        return true;
}

/* The observers of one key have one number. */
static uint64_t number_of(struct supervisor *s, const struct worker *w, const char *key)
{
        for (unsigned i = 0; *key && i < WORKER_OBSERVERS; i++)
                if (w->viewers.observers[i].number && !strcmp(w->viewers.observers[i].key, key))
                        return w->viewers.observers[i].number;
        return ++s->arrivals.observers;
}

/* The worker has got the observer's connection. */
static void begun(struct worker *w, const struct pending *v, uint64_t number)
{
        log_info("audit", "observe worker=%d by=\"%.100s\"", (int)w->pid,
                 *v->grant.client ? v->grant.client : v->grant.who);
        unsigned oldest = 0;
        for (unsigned i = 0; i < WORKER_OBSERVERS; i++) {
                if (w->viewers.observers[i].number == number)
                        return;
                if (w->viewers.observers[i].number < w->viewers.observers[oldest].number)
                        oldest = i;
        }
        if (!*v->grant.key)
                return;
        (void)drop(w, oldest);
        w->viewers.observers[oldest].number = number;
        strcpy(w->viewers.observers[oldest].key, v->grant.key);
}

static int send_to(struct worker *w, struct pending *v, uint64_t number)
{
        uint8_t data[8];
        v->state.size = 0;
        int r = conn_export(v->conn, &v->state);
        bytes_put_u64(data, number);
        return r < 0 ? r : pending_send(v, w, CONTROL_OBSERVER, bytes_of(data, sizeof(data)));
}

int observing_admit(struct supervisor *s, struct pending *v, const struct wire_hello *m,
                    const char **ret_text)
{
        struct worker *w;
        int r = find(s, v, m, &w, ret_text);
        if (r < 0)
                return r;
        uint64_t number = number_of(s, w, v->grant.key);
        r = send_to(w, v, number);
        switch (r) {
        case 0:
                begun(w, v, number);
                return 0;
        case SP_E_LINK:
                *ret_text = "the session has ended";
                return SP_E_GONE;
        case SP_E_BUSY:
                *ret_text = "more was said before the hello was answered";
                return SP_E_PROTO;
        case SP_E_AGAIN:
                *ret_text = "the session takes no observer now: its worker does not keep up";
                return SP_E_LIMIT;
        default:
                *ret_text = "this server can't hand the observer to the session";
                return r;
        }
}

void observing_expire(struct worker *w, const char *list)
{
        for (unsigned i = 0; i < WORKER_OBSERVERS; i++) {
                uint8_t key[CRYPTO_FINGERPRINT];
                struct keys_entry e;
                if (!w->viewers.observers[i].number ||
                    !keys_unhex(w->viewers.observers[i].key, key) ||
                    (list && keys_find(list, key, NULL, &e)))
                        continue;
                if (drop(w, i))
                        log_info(LOG, "worker %d drops observers: their key was removed",
                                 (int)w->pid);
        }
}

void observing_rekeyed(struct worker *w, const struct gate_grant *grant)
{
        for (unsigned i = 0; i < WORKER_OBSERVERS; i++)
                if (!strcmp(w->viewers.observers[i].key, grant->was))
                        strcpy(w->viewers.observers[i].key, grant->key);
}
