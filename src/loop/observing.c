/* The loop's part for observers of a session. The worker has their connections. */
#include "loop/serving.h"

int server_loop_observe(struct server_loop *l, bool on)
{
        serving_lock(l);
        int r = engine_observe(l->engine, on);
        serving_unlock(l);
        return r;
}

int server_loop_get_observed(struct server_loop *l, struct buf *ret)
{
        int r = engine_get_threads(ret);
        if (r < 0)
                return r;
        serving_lock(l);
        r = engine_get_observed(l->engine, ret);
        serving_unlock(l);
        return r;
}
