/* discover-mdns: prints the servers that multicast DNS finds on all interfaces, by avahi-daemon
 * (docs/internals/discovery-sources.md). */
#include <avahi-client/lookup.h>
#include <avahi-common/error.h>
#include <avahi-common/malloc.h>
#include <stdio.h>
#include <string.h>

#include "base/list.h"
#include "base/mem.h"
#include "discover/avahi_link.h"
#include "discover/line.h"
#include "discover/reach.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/net/interface.h"
#include "os/process/rights.h"

#define S 1000000000ull /* ns */

enum {
        SERVICES_MAX = 1024,
        INSTANCES_MAX = 2048,
        TRIES = 3,
        AGAIN_S = 30, /* between further tries */
        /* Services stay so long without a daemon: the life of their addresses' records (RFC 6762, 10). */
        STALE_S = 120,
        /* A daemon that has just started may report services late. */
        GRACE_S = 5,
        /* A server that leaves withdraws its record within that time. Anybody can publish that a server leaves. */
        LEAVE_S = 3,
        /* When a server has left, avahi-daemon drops its records one after the other. */
        WITHDRAW_S = 1,
};

/* A service on one interface, by one protocol. */
struct instance {
        struct list link;
        struct service *service;
        AvahiIfIndex interface;
        AvahiProtocol protocol;
        AvahiServiceResolver *resolver; /* NULL: none */
        unsigned tries;
        uint64_t again_ns;  /* when to try again; 0: no try failed */
        bool awaited;       /* the first answer has not come */
        bool stale;         /* of a daemon that has gone */
        uint64_t leaves_ns; /* until then it counts as gone, because it leaves; 0: it does not */
        bool found;         /* `address`, `port` and `txt` are valid */
        char address[FOUND_ADDRESS_MAX + 1];
        unsigned port;
        struct txt txt;
};

struct service {
        struct list link;
        const struct service_type *type;
        char id[FOUND_ID_MAX + 1];
        char name[FOUND_NAME_MAX + 1];
        const char *domain; /* in `id` */
        char *body;         /* of the last line; NULL: none */
        struct list instances;
};

static struct avahi_link avahi;
static struct list services;
static unsigned service_count, instance_count;
static bool browsing, settled;
static uint64_t stale_ns = UINT64_MAX; /* when to remove stale instances */
static uint64_t again_ns = UINT64_MAX; /* when to look for instances to resolve again */
static uint64_t leave_ns = UINT64_MAX; /* when to look for instances that have not left */
static bool complete[SERVICE_TYPES];   /* the browser has reported all that it knew at its start */

/* Write a line if the service changed. */
static void announce(struct service *s)
{
        struct found f = { .id = s->id, .name = s->name, .kind = s->type->kind };
        list_each(i, &s->instances, struct instance, link)
        {
                if (!i->found || i->leaves_ns)
                        continue;
                if (!f.address_count) {
                        f.port = i->port;
                        f.txt = i->txt;
                }
                found_add_address(&f, i->address);
        }
        line_announce(&f, &s->body);
}

static void settle(void)
{
        for (size_t i = 0; i < SERVICE_TYPES; i++) {
                if (!complete[i])
                        return;
        }
        list_each(s, &services, struct service, link)
        {
                list_each(i, &s->instances, struct instance, link)
                {
                        if (i->awaited)
                                return;
                }
        }
        if (!settled)
                line_put_settled();
        settled = true;
}

static void remove_instance(struct instance *i)
{
        struct service *s = i->service;
        if (i->resolver)
                avahi_service_resolver_free(i->resolver);
        list_remove(&i->link);
        mem_free(i);
        instance_count--;
        announce(s);
        if (!list_empty(&s->instances))
                return;
        list_remove(&s->link);
        mem_free(s);
        service_count--;
}

static void remove_stale(void)
{
        list_each(s, &services, struct service, link)
        {
                struct list *end = &s->instances;
                for (struct list *p = end->next, *next; p != end; p = next) {
                        struct instance *i = list_entry(p, struct instance, link);
                        next = p->next;
                        bool last = next == end && p->prev == end;
                        if (i->stale)
                                remove_instance(i);
                        if (last)
                                break; /* the service may be gone, too */
                }
        }
}

/* Take what a resolver has found. False: the record is refused. */
static bool take(struct instance *i, const AvahiAddress *address, uint16_t port,
                 AvahiStringList *strings)
{
        uint8_t raw[TXT_MAX];
        char text[AVAHI_ADDRESS_STR_MAX], interface[INTERFACE_NAME_MAX];
        const char *name = i->service->name;
        const struct ip ip = avahi_link_ip(address);
        enum reach reach = reach_of(&ip);
        if (i->interface < 0 || !interface_name((unsigned)i->interface, interface))
                return false; /* the interface has gone */
        if (reach == REACH_NOWHERE || (reach == REACH_LOOPBACK && strcmp(interface, "lo") != 0)) {
                line_refused(name, "the address can't be another host's");
                return false;
        }
        if (!port) {
                line_refused(name, "the record has no port");
                return false;
        }
        i->txt = (struct txt){ 0 };
        if (!strcmp(i->service->type->kind, "spancl")) {
                size_t size = avahi_string_list_serialize(strings, NULL, 0);
                if (size <= sizeof(raw))
                        size = avahi_string_list_serialize(strings, raw, sizeof(raw));
                if (size > sizeof(raw) || txt_parse(raw, size, &i->txt) < 0) {
                        line_refused(name, "the TXT record is refused: a wrong value or too long");
                        return false;
                }
        }
        avahi_address_snprint(text, sizeof(text), address);
        snprintf(i->address, sizeof(i->address), "%s%s%s", text, reach == REACH_LINK ? "%" : "",
                 reach == REACH_LINK ? interface : "");
        i->port = port;
        return true;
}

static void plan(void)
{
        avahi.due_ns = stale_ns < again_ns ? stale_ns : again_ns;
        avahi.due_ns = leave_ns < avahi.due_ns ? leave_ns : avahi.due_ns;
}

static void resolve_later(struct instance *i)
{
        i->again_ns = clock_now_ns() + AGAIN_S * S;
        again_ns = i->again_ns < again_ns ? i->again_ns : again_ns;
        plan();
}

static void resolve(struct instance *i);

static void on_resolved(AvahiServiceResolver *resolver, AvahiIfIndex interface,
                        AvahiProtocol protocol, AvahiResolverEvent event, const char *name,
                        const char *type, const char *domain, const char *host,
                        const AvahiAddress *address, uint16_t port, AvahiStringList *txt,
                        AvahiLookupResultFlags flags, void *user)
{
        struct instance *i = user;
        (void)resolver, (void)interface, (void)protocol, (void)name, (void)type, (void)domain;
        (void)host, (void)flags;
        i->awaited = false;
        i->found = event == AVAHI_RESOLVER_FOUND && take(i, address, port, txt);
        if (event == AVAHI_RESOLVER_FAILURE) {
                avahi_service_resolver_free(i->resolver);
                i->resolver = NULL;
                resolve(i);
        }
        announce(i->service);
        settle();
}

static void resolve(struct instance *i)
{
        const struct service *s = i->service;
        i->again_ns = 0;
        if (i->tries >= TRIES) {
                resolve_later(i);
                return;
        }
        i->tries++;
        i->resolver = avahi_service_resolver_new(avahi.client, i->interface, i->protocol, s->name,
                                                 s->type->name, s->domain, i->protocol, 0,
                                                 on_resolved, i);
        if (i->resolver)
                return;
        line_refused(s->name, avahi_strerror(avahi_client_errno(avahi.client)));
        resolve_later(i);
}

static struct service *find_service(const struct service_type *type, const char *name,
                                    const char *domain)
{
        list_each(s, &services, struct service, link)
        {
                if (s->type == type && !strcmp(s->name, name) && !strcmp(s->domain, domain))
                        return s;
        }
        return NULL;
}

static struct instance *find_instance(struct service *s, AvahiIfIndex interface,
                                      AvahiProtocol protocol)
{
        if (!s)
                return NULL;
        list_each(i, &s->instances, struct instance, link)
        {
                if (i->interface == interface && i->protocol == protocol)
                        return i;
        }
        return NULL;
}

static struct service *add_service(const struct service_type *type, const char *name,
                                   const char *domain)
{
        struct service *s;
        if (service_count == SERVICES_MAX) {
                line_refused(name, "there are too many services");
                return NULL;
        }
        if (!line_is_utf8(name) || !line_is_utf8(domain) ||
            strlen(name) + strlen(type->name) + strlen(domain) + 2 > FOUND_ID_MAX ||
            strlen(name) > FOUND_NAME_MAX) {
                line_refused(name, "the name is not UTF-8 or too long");
                return NULL;
        }
        s = mem_zalloc(sizeof(*s));
        if (!s)
                return NULL;
        s->type = type;
        strcpy(s->name, name);
        int n = snprintf(s->id, sizeof(s->id), "%s.%s.%s", name, type->name, domain);
        s->domain = s->id + n - strlen(domain);
        list_init(&s->instances);
        list_init(&s->link);
        list_append(&services, &s->link);
        service_count++;
        return s;
}

static void add(const struct service_type *type, AvahiIfIndex interface, AvahiProtocol protocol,
                const char *name, const char *domain)
{
        struct service *s = find_service(type, name, domain);
        struct instance *i = find_instance(s, interface, protocol);
        if (!i && instance_count == INSTANCES_MAX) {
                line_refused(name, "there are too many services");
                return;
        }
        if (!i && !s)
                s = add_service(type, name, domain);
        if (!i && s) {
                i = mem_zalloc(sizeof(*i));
                if (i) {
                        i->service = s;
                        i->interface = interface;
                        i->protocol = protocol;
                        list_init(&i->link);
                        list_append(&s->instances, &i->link);
                        instance_count++;
                }
        }
        if (!i || i->resolver)
                return;
        i->stale = false;
        i->tries = 0;
        resolve(i);
        i->awaited = i->resolver != NULL;
}

static void on_browsed(AvahiServiceBrowser *browser, AvahiIfIndex interface, AvahiProtocol protocol,
                       AvahiBrowserEvent event, const char *name, const char *type_name,
                       const char *domain, AvahiLookupResultFlags flags, void *user)
{
        const struct service_type *type = user;
        struct instance *i;
        (void)browser, (void)type_name, (void)flags;
        switch (event) {
        case AVAHI_BROWSER_NEW:
                add(type, interface, protocol, name, domain);
                break;
        case AVAHI_BROWSER_REMOVE:
                i = find_instance(find_service(type, name, domain), interface, protocol);
                if (i)
                        remove_instance(i);
                settle();
                break;
        case AVAHI_BROWSER_ALL_FOR_NOW:
                complete[type - service_types] = true;
                stale_ns = clock_now_ns() + GRACE_S * S;
                plan();
                settle();
                break;
        case AVAHI_BROWSER_FAILURE:
                avahi.broken = true;
                break;
        case AVAHI_BROWSER_CACHE_EXHAUSTED:
                break;
        }
}

/* Receive the names of servers that leave (SERVICE_LEAVES). */
static void on_leaving(AvahiServiceBrowser *browser, AvahiIfIndex interface, AvahiProtocol protocol,
                       AvahiBrowserEvent event, const char *name, const char *type_name,
                       const char *domain, AvahiLookupResultFlags flags, void *user)
{
        struct instance *i = NULL;
        (void)browser, (void)type_name, (void)flags, (void)user;
        if (event == AVAHI_BROWSER_FAILURE)
                avahi.broken = true;
        if (event == AVAHI_BROWSER_NEW || event == AVAHI_BROWSER_REMOVE)
                i = find_instance(find_service(&service_types[0], name, domain), interface,
                                  protocol);
        if (!i)
                return;
        uint64_t limit_ns =
                clock_now_ns() + (event == AVAHI_BROWSER_NEW ? LEAVE_S : WITHDRAW_S) * S;
        if (event == AVAHI_BROWSER_NEW || i->leaves_ns > limit_ns)
                i->leaves_ns = limit_ns;
        leave_ns = i->leaves_ns && i->leaves_ns < leave_ns ? i->leaves_ns : leave_ns;
        plan();
        announce(i->service);
}

static void on_state(AvahiClient *client, AvahiClientState state)
{
        (void)state;
        if (browsing)
                return;
        browsing = true;
        avahi.client = client; /* this may be a callback of avahi_client_new */
        stale_ns = UINT64_MAX;
        plan();
        for (size_t i = 0; i < SERVICE_TYPES; i++) {
                if (!avahi_service_browser_new(client, AVAHI_IF_UNSPEC, AVAHI_PROTO_UNSPEC,
                                               service_types[i].name, NULL, 0, on_browsed,
                                               (void *)(uintptr_t)&service_types[i]))
                        avahi.broken = true;
        }
        if (!avahi_service_browser_new(client, AVAHI_IF_UNSPEC, AVAHI_PROTO_UNSPEC, SERVICE_LEAVES,
                                       NULL, 0, on_leaving, NULL))
                avahi.broken = true;
}

/* The services stay for a while: a daemon that is started again finds them again. */
static void on_lost(void)
{
        browsing = false;
        list_each(s, &services, struct service, link)
        {
                list_each(i, &s->instances, struct instance, link)
                {
                        if (i->resolver)
                                avahi_service_resolver_free(i->resolver);
                        i->resolver = NULL;
                        i->again_ns = 0;
                        i->awaited = false;
                        i->stale = true;
                }
        }
        if (service_count)
                stale_ns = clock_now_ns() + STALE_S * S;
        plan();
}

/* Without a daemon there is nothing to wait for. */
static void on_absent(void)
{
        if (!settled)
                line_put_settled();
        settled = true;
}

/* Try each instance once more whose time has come. */
static void resolve_again(uint64_t now)
{
        again_ns = UINT64_MAX;
        list_each(s, &services, struct service, link)
        {
                list_each(i, &s->instances, struct instance, link)
                {
                        if (i->again_ns && i->again_ns <= now) {
                                i->tries = TRIES - 1;
                                resolve(i);
                        } else if (i->again_ns && i->again_ns < again_ns) {
                                again_ns = i->again_ns;
                        }
                }
        }
}

/* Servers whose records are still there have not left. */
static void expect_back(uint64_t now)
{
        leave_ns = UINT64_MAX;
        list_each(s, &services, struct service, link)
        {
                bool back = false;
                list_each(i, &s->instances, struct instance, link)
                {
                        if (i->leaves_ns && i->leaves_ns <= now) {
                                i->leaves_ns = 0;
                                back = true;
                        } else if (i->leaves_ns && i->leaves_ns < leave_ns) {
                                leave_ns = i->leaves_ns;
                        }
                }
                if (back)
                        announce(s);
        }
}

static void on_expired(void)
{
        uint64_t now = clock_now_ns();
        if (stale_ns <= now) {
                stale_ns = UINT64_MAX;
                remove_stale();
        }
        if (again_ns <= now)
                resolve_again(now);
        if (leave_ns <= now)
                expect_back(now);
        plan();
}

int main(void)
{
        rights_drop();
        list_init(&services);
        avahi.state = on_state;
        avahi.lost = on_lost;
        avahi.absent = on_absent;
        avahi.expire = on_expired;
        if (!avahi_link_init(&avahi))
                return 1;
        avahi_link_run(&avahi, FILE_STDOUT, NULL);
        return 0;
}
