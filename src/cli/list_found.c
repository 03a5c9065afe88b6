#include "cli/list_found.h"

#include <CL/cl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/discover.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "config/device_filter.h"
#include "config/servers.h"
#include "config/variables.h"
#include "proto/info.h"

enum { TEXT_MAX = 256 };

struct server {
        char title[TEXT_MAX];        /* name, address, source */
        char state[REMOTE_TEXT_MAX]; /* round trip and load, or why it is not used */
        double round_trip_us;
        uint64_t load;
};

struct device {
        size_t server;
        char name[TEXT_MAX];
        uint64_t memory;
        const char *why; /* the term that refuses it; NULL: none */
        bool taken;
};

struct listing {
        struct server *servers;
        struct device *devices;
        size_t server_count, device_count;
        struct device_filter filter;
};

/* Get a text, made safe for a terminal. */
static void get_text(struct bytes block, uint32_t key, char ret[TEXT_MAX])
{
        struct bytes v;
        snprintf(ret, TEXT_MAX, "?");
        if (info_find(block, key, &v))
                snprintf(ret, TEXT_MAX, "%.*s", (int)strnlen(v.data, v.size), (const char *)v.data);
        bytes_tame(ret, TEXT_MAX);
}

static int add_device(struct listing *l, struct bytes info)
{
        struct device *more = mem_realloc(l->devices, (l->device_count + 1) * sizeof(*more));
        char vendor[TEXT_MAX];
        if (!more)
                return SP_E_NOMEM;
        l->devices = more;
        struct device *d = &more[l->device_count++];
        *d = (struct device){ .server = l->server_count - 1 };
        get_text(info, CL_DEVICE_NAME, d->name);
        get_text(info, CL_DEVICE_VENDOR, vendor);
        d->memory = info_u64(info, CL_DEVICE_GLOBAL_MEM_SIZE, 0);
        cl_device_type type = info_u64(info, CL_DEVICE_TYPE, 0);
        d->why = device_filter_refuses(&l->filter, &(struct device_traits){ .type = type,
                                                                            .vendor = vendor,
                                                                            .name = d->name,
                                                                            .memory = d->memory });
        return 0;
}

static struct server *add_server(struct listing *l)
{
        struct server *more = mem_realloc(l->servers, (l->server_count + 1) * sizeof(*more));
        if (!more)
                return NULL;
        l->servers = more;
        more[l->server_count] = (struct server){ 0 };
        return &more[l->server_count++];
}

/* Ask the server for its devices. SP_E_*: the reason is in `s->state`. */
static int ask(struct listing *l, struct server *s, const struct server_spec *spec, int timeout_ms)
{
        struct remote *r;
        struct bytes devices;
        struct info_entry e;
        int status = remote_try(spec, timeout_ms, &r, s->state);
        if (status < 0)
                return status;
        status = remote_devices(r, &devices);
        if (!status)
                status = remote_median(r, &s->round_trip_us);
        for (; !status && info_next(&devices, &e);) {
                if (e.key == INFO_SERVER)
                        s->load = info_u64(e.value, INFO_SERVER_SESSIONS, 0);
                else if (e.key == INFO_DEVICE && !info_check(e.value))
                        status = add_device(l, e.value);
        }
        if (status < 0)
                snprintf(s->state, sizeof(s->state), "%s", remote_reason(r, status));
        else
                snprintf(s->state, sizeof(s->state), "round trip %.1f us, load %" PRIu64,
                         s->round_trip_us, s->load);
        remote_close(r);
        return status;
}

static int add_configured(struct listing *l, int timeout_ms)
{
        struct server_spec *specs;
        size_t count;
        int r = options_servers(NULL, NULL, &specs, &count);
        if (r < 0)
                return r;
        for (size_t i = 0; i < count; i++) {
                if (specs[i].implied)
                        continue; /* nobody has named it */
                struct server *s = add_server(l);
                if (!s) {
                        r = SP_E_NOMEM;
                        break;
                }
                snprintf(s->title, sizeof(s->title), "%s, configured", specs[i].name);
                (void)!ask(l, s, &specs[i], timeout_ms);
        }
        config_servers_free(specs, count);
        return r;
}

static int add_found(struct listing *l, const struct discover_item *item, int timeout_ms)
{
        struct server *s = add_server(l);
        char place[DISCOVER_PLACE_MAX], state[DISCOVER_TEXT_MAX];
        if (!s)
                return SP_E_NOMEM;
        snprintf(s->title, sizeof(s->title), "%s (%s), by %.60s", item->record.name,
                 discover_place(&item->record, place), item->source);
        snprintf(s->state, sizeof(s->state), "%s, load %" PRIu64, discover_state(item, state),
                 item->record.load);
        if (item->use != DISCOVERED_USED && item->use != DISCOVERED_USED_HERE)
                return 0;
        int r = SP_E_LINK;
        for (unsigned i = 0; r < 0 && i < item->record.address_count; i++) {
                struct server_spec spec;
                if (discovered_spec(&item->record, item->use, i, &spec) < 0)
                        continue;
                r = ask(l, s, &spec, timeout_ms);
                server_spec_fini(&spec);
        }
        return 0; /* a server that does not answer says so in the list */
}

/* Does `a` stand in front of `b`, which came before it? */
static bool is_better(const struct listing *l, const struct device *a, const struct device *b)
{
        const struct server *x = &l->servers[a->server], *y = &l->servers[b->server];
        switch (l->filter.order) {
        case DEVICE_ORDER_LATENCY:
                return x->round_trip_us < y->round_trip_us;
        case DEVICE_ORDER_LOAD:
                return x->load < y->load;
        case DEVICE_ORDER_MEMORY:
                return a->memory > b->memory;
        case DEVICE_ORDER_FOUND:
                break;
        }
        return false;
}

/* Take as many as the filter allows, the best ones. */
static void choose(struct listing *l)
{
        for (cl_uint n = 0; n < l->filter.count_max; n++) {
                struct device *best = NULL;
                for (size_t i = 0; i < l->device_count; i++) {
                        struct device *d = &l->devices[i];
                        if (!d->why && !d->taken && (!best || is_better(l, d, best)))
                                best = d;
                }
                if (!best)
                        return;
                best->taken = true;
        }
}

static void print(const struct listing *l)
{
        for (size_t i = 0; i < l->server_count; i++) {
                printf("%s: %s\n", l->servers[i].title, l->servers[i].state);
                for (size_t k = 0; k < l->device_count; k++) {
                        const struct device *d = &l->devices[k];
                        if (d->server != i)
                                continue;
                        if (d->taken)
                                printf("  taken: %s\n", d->name);
                        else
                                printf("  not taken, by %s in SPANCL_DEVICES: %s\n",
                                       d->why ? d->why : "count", d->name);
                }
        }
}

int list_found(int timeout_ms)
{
        struct listing l = { 0 };
        struct discovery *discovery;
        struct discover_item *items;
        size_t count;
        char *error = NULL;
        if (device_filter_parse(config_text(CONFIG_client_devices), "SPANCL_DEVICES", &l.filter,
                                &error) < 0) {
                fprintf(stderr, "spancl: %s\n", error ? error : "SPANCL_DEVICES");
                mem_free(error);
                return 2;
        }
        if (discover_once(&items, &count, &discovery) < 0)
                return 2;
        int r = add_configured(&l, timeout_ms);
        for (size_t i = 0; r == 0 && i < count; i++)
                r = add_found(&l, &items[i], timeout_ms);
        if (r == SP_E_NOMEM)
                fprintf(stderr, "spancl: out of memory\n");
        if (r == 0) {
                choose(&l);
                print(&l);
        }
        discovery_free(discovery);
        mem_free(items);
        mem_free(l.servers);
        mem_free(l.devices);
        return r < 0 ? 2 : 0;
}
