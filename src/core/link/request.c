#include "core/link/request.h"

#include "base/mem.h"
#include "core/client.h"
#include "core/link/disconnected.h"
#include "core/link/listeners.h"
#include "core/link/server.h"
#include "core/profile/profile.h"
#include "core/progress.h"

int request_begin(struct client *c, struct server *s, struct request *r)
{
        r->id = ++c->next_id;
        r->done = false;
        r->status = CL_SUCCESS;
        r->info = (struct buf){ 0 };
        r->server = s;
        if (r->notify ? server_refuses(s) : server_fails(s))
                return SP_E_GONE;
        int e = map_put(&c->requests, r->id, r);
        if (e < 0)
                return e;
        if (r->notify) {
                c->progress.interests++;
                progress_wake(c);
        }
        return 0;
}

static void finish(struct client *c, struct request *r, cl_int status) REQUIRES(client_held)
{
        map_del(&c->requests, r->id);
        r->status = status;
        r->done = true;
        if (r->notify) {
                c->progress.interests--;
                r->notify(r);
        }
        client_changed(c);
}

void request_done(struct client *c, uint64_t id, cl_int status, struct bytes info)
{
        struct request *r = map_get(&c->requests, id);
        if (!r)
                return;
        if (buf_put(&r->info, info.data, info.size) < 0)
                status = CL_OUT_OF_HOST_MEMORY;
        finish(c, r, status);
}

void request_answered(struct server *s, uint64_t id, cl_int status, struct bytes info)
{
        const struct request *r = map_get(&s->client->requests, id);
        if (r && r->server == s)
                request_done(s->client, id, status, info);
}

void requests_fail(struct server *s)
{
        struct client *c = s->client;
        struct map_walk walk = { 0 };
        struct request *r;
        while ((r = map_walk_next(&c->requests, &walk))) {
                if (r->server != s)
                        continue;
                finish(c, r, CL_DEVICE_NOT_AVAILABLE);
                map_walk_changed(&walk);
        }
}

void requests_server_lost(struct server *s, const struct server_loss *loss)
{
        requests_fail(s);
}

static bool is_done(void *r)
{
        return ((struct request *)r)->done;
}

void request_wait(struct client *c, struct request *r)
{
        client_wait(c, is_done, r);
        if (profile_is_on())
                profile_wait_was(PROFILE_ANSWER, r->server, NULL, 0);
}
