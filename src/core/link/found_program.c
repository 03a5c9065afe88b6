#include "core/link/found_program.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/client.h"
#include "core/link/found.h"

static int parse(const char *servers, struct server_specs *ret)
{
        char *error = NULL;
        *ret = (struct server_specs){ 0 };
        int r = config_servers_parse(servers, "the program's servers", &ret->specs, &ret->count,
                                     &error);
        if (r < 0 && error)
                log_error("client", "%s", error);
        mem_free(error);
        for (size_t i = 0; r == 0 && i < ret->count; i++)
                if (ret->specs[i].in_process)
                        r = SP_E_INVAL;
        if (r < 0)
                config_servers_free(ret->specs, ret->count);
        return r;
}

int found_add(struct client *c, const char *servers)
{
        struct server_specs all;
        int r = parse(servers, &all);
        if (r < 0)
                return r;
        for (size_t i = 0; i < all.count; i++) {
                struct found *f = r == 0 ? found_find_or_make(c, all.specs[i].name) : NULL;
                if (!f) {
                        r = r ? r : SP_E_LIMIT;
                        server_spec_fini(&all.specs[i]);
                        continue;
                }
                f->by_program = true;
                found_add_target(c, f, &all.specs[i]);
                found_step(c, f);
                if (!f->first && !f->twin)
                        r = SP_E_LIMIT;
        }
        mem_free(all.specs);
        client_changed(c);
        return r;
}

int found_remove(struct client *c, const char *servers)
{
        struct server_specs all;
        int r = parse(servers, &all);
        if (r < 0)
                return r;
        for (size_t i = 0; i < all.count; i++) {
                struct found *f = found_find(c, all.specs[i].name);
                if (!f || !f->present)
                        r = SP_E_NOENT;
        }
        for (size_t i = 0; r == 0 && i < all.count; i++) {
                struct found *f = found_find(c, all.specs[i].name);
                list_each(t, &f->targets, struct target, link) t->current = false;
        }
        found_step_all(c);
        config_servers_free(all.specs, all.count);
        client_changed(c);
        return r;
}

int found_list(struct client *c, struct buf *out)
{
        static const char *const states[] = { "connecting", "connected", "disconnected", "idle",
                                              "lost" };
        int r = 0;
        for (unsigned i = 0; i < c->server_count && r == 0; i++) {
                const struct server *s = c->servers[i], *first = s->sessions.first;
                char line[512];
                if (first->sessions.last != s || (found_is_gone(s) && !found_is_used(s)))
                        continue;
                snprintf(line, sizeof(line), "%.400s\t%s\t%u\n", server_name(s),
                         found_is_gone(s) ? "gone" : states[s->state],
                         (unsigned)first->device_count);
                r = buf_put(out, line, strlen(line));
        }
        return r;
}
