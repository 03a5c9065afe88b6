#include "core/energy.h"

#include <string.h>

#include "core/link/request.h"
#include "core/link/server.h"
#include "proto/info.h"

enum {
        WHOLE_NS = 1500000000, /* for all samples */
        PAUSE_NS = 50000000,   /* between queries */
        SAMPLES = 2,           /* the one that had begun, and one more */
};

uint64_t energy_take(unsigned server, struct bytes answer, struct energy_device ret[ENERGY_DEVICES],
                     size_t *count)
{
        uint64_t oldest = UINT64_MAX;
        struct info_entry e;
        size_t kept = 0;
        for (size_t i = 0; i < *count; i++) /* an answer replaces the one before */
                if (ret[i].server != server)
                        ret[kept++] = ret[i];
        while (info_next(&answer, &e)) {
                struct bytes name = { 0 };
                if (e.key != INFO_ENERGY || info_check(e.value) < 0)
                        continue;
                uint64_t sample = info_u64(e.value, INFO_ENERGY_SAMPLE, 0);
                oldest = sample < oldest ? sample : oldest;
                if (kept == ENERGY_DEVICES)
                        continue;
                struct energy_device *d = &ret[kept++];
                uint64_t uj = info_u64(e.value, INFO_ENERGY_UJ, 0);
                *d = (struct energy_device){
                        .server = server,
                        .number = info_u64(e.value, INFO_ENERGY_DEVICE, 0),
                        .energy_uj = uj < ENERGY_MAX_UJ ? uj : ENERGY_MAX_UJ,
                };
                info_find(e.value, INFO_ENERGY_NAME, &name);
                size_t n = name.size < ENERGY_NAME ? name.size : ENERGY_NAME - 1;
                if (n)
                        memcpy(d->name, name.data, n);
                bytes_tame(d->name, sizeof(d->name));
        }
        *count = kept;
        return oldest;
}

static bool is_done(void *request)
{
        return ((struct request *)request)->done;
}

static bool never(void *unused)
{
        return false;
}

/* Ask one server. Returns the number of its sample; UINT64_MAX: it tells nothing. */
static uint64_t ask(struct server *s, uint64_t deadline_ns, struct energy_device *ret,
                    size_t *count) REQUIRES(client_held)
{
        struct client *c = s->client;
        struct session *session =
                !s->spec->in_process && s->state == SERVER_UP ? server_session(s) : NULL;
        struct request q = { 0 };
        uint64_t sample = UINT64_MAX;
        if (!session || request_begin(c, s, &q) < 0)
                return sample;
        if (session_send(session, stats_query, .request = q.id) == 0 &&
            client_wait_until(c, is_done, &q, deadline_ns) && !q.status)
                sample = energy_take(s->index, bytes_of(q.info.data, q.info.size), ret, count);
        map_del(&c->requests, q.id); /* when there was no answer */
        buf_fini(&q.info);
        return sample;
}

size_t energy_ask(struct client *c, struct energy_device ret[ENERGY_DEVICES])
{
        uint64_t wanted[CLIENT_SERVERS_MAX] = { 0 }; /* the sample to wait for; 0: not asked yet */
        uint64_t deadline = client_now_ns(c) + WHOLE_NS;
        size_t count = 0;
        bool more = true;
        while (more && client_now_ns(c) < deadline) {
                more = false;
                for (unsigned i = 0; i < c->server_count; i++) {
                        uint64_t sample;
                        if (wanted[i] == UINT64_MAX)
                                continue;
                        sample = ask(c->servers[i], deadline, ret, &count);
                        if (!wanted[i])
                                wanted[i] = sample < UINT64_MAX - SAMPLES ? sample + SAMPLES
                                                                          : UINT64_MAX;
                        if (sample >= wanted[i])
                                wanted[i] = UINT64_MAX;
                        else
                                more = true;
                }
                if (more)
                        (void)client_wait_until(c, never, NULL, client_now_ns(c) + PAUSE_NS);
        }
        return count;
}
