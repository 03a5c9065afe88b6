#include "daemon/supervisor/observing.h"

#include <string.h>

#include "base/log.h"

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

int observing_find(struct supervisor *s, const struct pending *v, const struct wire_hello *m,
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
        log_info("audit", "observe worker=%d by=\"%.100s\"", (int)found->pid,
                 *v->grant.client ? v->grant.client : v->grant.who);
        *ret = found;
        return 0;
}
