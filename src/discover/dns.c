/* discover-dns: prints the servers that unicast DNS lists in the domains of SPANCL_SEARCH_DOMAINS (RFC 6763), by
 * c-ares (docs/internals/discovery-sources.md).
 *
 * The source works in rounds: it asks for everything, compares, and writes the changes. The lives of the records
 * decide when the next round begins. */
#include <ares.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "config/servers.h"
#include "config/variables.h"
#include "discover/dns_message.h"
#include "discover/line.h"
#include "discover/reach.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/poll.h"
#include "os/process/rights.h"

#define S 1000000000ull /* ns */

enum {
        DOMAINS_MAX = 16,
        SERVICES_MAX = 1024,
        TARGETS_MAX = 4, /* SRV records of a service that are tried */
        ACTIVE_MAX = 16, /* services that are asked for at a time */
        /* Time between rounds, in seconds. */
        ROUND_MIN_S = 1,
        ROUND_MAX_S = 600,
        NEGATIVE_S = 60, /* if no record has a life */
        FAILED_S = 5,    /* if a server did not answer */
        /* A service stays so long while its domain's server does not answer. */
        STALE_S = 120,
        TIMEOUT_MS = 2000,
        TRIES = 3,
};

struct target {
        unsigned priority, weight, port;
        char host[DNS_NAME_MAX + 1];
};

struct service {
        const struct service_type *type;
        char id[FOUND_ID_MAX + 1]; /* the name in DNS */
        char name[FOUND_NAME_MAX + 1];
        char *body; /* of the last line; NULL: none */
        uint64_t good_ns;
        /* This round's. */
        bool listed;  /* a domain lists it */
        bool failed;  /* a server did not answer */
        bool refused; /* a record is wrong */
        unsigned pending, target;
        struct target targets[TARGETS_MAX]; /* the best first */
        unsigned target_count;
        struct found found;
};

/* A query, and its owner. */
struct query {
        const struct service_type *type;
        struct service *service; /* NULL: for the services of a type in a domain */
        unsigned record;
};

static ares_channel channel;
static struct service *services[SERVICES_MAX];
static size_t service_count;
static struct {
        unsigned lists; /* queries for services that run */
        bool list_failed;
        size_t next; /* the next service to ask for */
        unsigned active;
        uint32_t life_s; /* the shortest of a record */
        bool failed;
} pass;
static bool settled;

static void on_answer(void *user, int status, int timeouts, unsigned char *data, int size);

/* Out of memory counts as a server that did not answer. */
static void ask(const char *name, unsigned record, const struct service_type *type,
                struct service *s)
{
        struct query *q = mem_zalloc(sizeof(*q));
        if (!q) {
                pass.failed = true;
                if (s)
                        s->failed = true;
                return;
        }
        *q = (struct query){ type, s, record };
        if (s)
                s->pending++;
        else
                pass.lists++;
        ares_query(channel, name, 1, (int)record, on_answer, q);
}

static void add_service(const struct service_type *type, const char *name)
{
        char label[DNS_NAME_MAX + 1];
        for (size_t i = 0; i < service_count; i++) {
                if (services[i]->type == type && !strcmp(services[i]->id, name)) {
                        services[i]->listed = true;
                        return;
                }
        }
        dns_label(name, label);
        if (!*label || !line_is_utf8(name) || strlen(name) > FOUND_ID_MAX ||
            strlen(label) > FOUND_NAME_MAX) {
                line_refused(label, "the name is not UTF-8 or too long");
                return;
        }
        if (service_count == SERVICES_MAX) {
                line_refused(label, "there are too many services");
                return;
        }
        struct service *s = mem_zalloc(sizeof(*s));
        if (!s)
                return;
        s->type = type;
        strcpy(s->id, name);
        strcpy(s->name, label);
        s->listed = true;
        services[service_count++] = s;
}

static void add_target(struct service *s, const struct dns_message *m, const struct dns_record *r)
{
        const uint8_t *p = m->data + r->at;
        struct target t;
        size_t end;
        if (r->size < 7 || !dns_name(m, r->at + 6, t.host, &end) || end > r->at + r->size)
                return;
        t.priority = (unsigned)p[0] << 8 | p[1];
        t.weight = (unsigned)p[2] << 8 | p[3];
        t.port = (unsigned)p[4] << 8 | p[5];
        if (!*t.host || !t.port) /* "no such service" */
                return;
        unsigned at = 0;
        while (at < s->target_count &&
               (s->targets[at].priority < t.priority ||
                (s->targets[at].priority == t.priority && s->targets[at].weight >= t.weight)))
                at++;
        if (at == TARGETS_MAX)
                return;
        s->target_count += s->target_count < TARGETS_MAX;
        memmove(&s->targets[at + 1], &s->targets[at],
                (s->target_count - 1 - at) * sizeof(*s->targets));
        s->targets[at] = t;
}

static void add_address(struct service *s, const struct dns_message *m, const struct dns_record *r)
{
        char text[IP_TEXT_MAX];
        struct ip ip = { .size = r->type == DNS_A ? IP_V4 : IP_V6 };
        if (r->size != ip.size)
                return;
        memcpy(ip.bytes, m->data + r->at, ip.size);
        if (reach_of(&ip) != REACH_HOST) {
                line_refused(s->name, "the address can't be another host's");
                return;
        }
        ip_text(&ip, text);
        found_add_address(&s->found, text);
}

static void take(const struct query *q, const uint8_t *data, size_t size)
{
        struct dns_message m;
        struct dns_record r;
        struct service *s = q->service;
        char name[DNS_NAME_MAX + 1];
        size_t end;
        if (!dns_begin(&m, data, size))
                return;
        while (dns_next(&m, &r)) {
                pass.life_s = r.ttl_s < pass.life_s ? r.ttl_s : pass.life_s;
                if (r.type != q->record)
                        continue;
                switch (r.type) {
                case DNS_PTR:
                        if (dns_name(&m, r.at, name, &end))
                                add_service(q->type, name);
                        break;
                case DNS_SRV:
                        add_target(s, &m, &r);
                        break;
                case DNS_TXT:
                        if (strcmp(s->type->kind, "spancl") != 0 ||
                            txt_parse(data + r.at, r.size, &s->found.txt) == 0)
                                break;
                        s->refused = true;
                        line_refused(s->name,
                                     "the TXT record is refused: a wrong value or too long");
                        break;
                case DNS_A:
                case DNS_AAAA:
                        add_address(s, &m, &r);
                        break;
                }
        }
}

/* One query of the service is over. If it was the last one, ask for the addresses of the next target, until a target
 * has some. */
static void finish(struct service *s)
{
        if (--s->pending)
                return;
        while (!s->refused && !s->found.address_count && s->target < s->target_count) {
                const struct target *t = &s->targets[s->target++];
                s->found.port = t->port;
                s->pending++; /* until both are asked for: an error may come at once */
                ask(t->host, DNS_A, s->type, s);
                ask(t->host, DNS_AAAA, s->type, s);
                if (--s->pending)
                        return;
        }
        pass.active--;
}

static void start_service(struct service *s)
{
        s->found = (struct found){ .id = s->id, .name = s->name, .kind = s->type->kind };
        s->refused = s->failed = false;
        s->target = s->target_count = 0;
        pass.active++;
        s->pending++;
        ask(s->id, DNS_SRV, s->type, s);
        ask(s->id, DNS_TXT, s->type, s);
        finish(s);
}

static void go_on(void)
{
        while (!pass.lists && pass.active < ACTIVE_MAX && pass.next < service_count) {
                struct service *s = services[pass.next++];
                if (s->listed)
                        start_service(s);
        }
}

static void on_answer(void *user, int status, int timeouts, unsigned char *data, int size)
{
        struct query *q = user;
        struct service *s = q->service;
        (void)timeouts;
        if (status == ARES_SUCCESS)
                take(q, data, (size_t)size);
        else if (status != ARES_ENODATA && status != ARES_ENOTFOUND) {
                pass.failed = true;
                pass.list_failed |= !s;
                if (s)
                        s->failed = true;
        }
        if (!s)
                pass.lists--;
        else
                finish(s);
        mem_free(q);
}

static void begin_round(const char *domains)
{
        char name[DNS_NAME_MAX + 1];
        unsigned count = 0;
        memset(&pass, 0, sizeof(pass));
        pass.life_s = UINT32_MAX;
        for (size_t i = 0; i < service_count; i++)
                services[i]->listed = false;
        while (*domains && count < DOMAINS_MAX) {
                size_t n = strcspn(domains, ", ");
                for (size_t i = 0; n && n < 256 && i < SERVICE_TYPES; i++) {
                        snprintf(name, sizeof(name), "%s.%.*s", service_types[i].name, (int)n,
                                 domains);
                        ask(name, DNS_PTR, &service_types[i], NULL);
                }
                count += n != 0;
                domains += n + (domains[n] != 0);
        }
}

/* Write the changes of one service. False: it is gone. */
static bool report(struct service *s, uint64_t now)
{
        bool good = s->listed && !s->refused && s->found.address_count && !(s->failed && s->body);
        bool unknown = s->listed ? s->failed : pass.list_failed;
        if (good)
                s->good_ns = now;
        else if (unknown && s->body && now < s->good_ns + STALE_S * S)
                return true;
        else
                s->found.address_count = 0;
        line_announce(&s->found, &s->body);
        return good;
}

/* Returns the time of the next round. */
static uint64_t end_round(void)
{
        uint64_t now = clock_now_ns();
        size_t kept = 0;
        for (size_t i = 0; i < service_count; i++) {
                struct service *s = services[i];
                if (report(s, now)) {
                        services[kept++] = s;
                } else {
                        mem_free(s);
                }
        }
        service_count = kept;
        if (!settled)
                line_put_settled();
        settled = true;
        uint32_t wait_s = pass.failed                 ? FAILED_S
                          : pass.life_s == UINT32_MAX ? NEGATIVE_S
                          : pass.life_s < ROUND_MIN_S ? ROUND_MIN_S
                          : pass.life_s > ROUND_MAX_S ? ROUND_MAX_S
                                                      : pass.life_s;
        return now + wait_s * S;
}

/* Wait for answers, or until then. False: the reader has gone. */
static bool wait_until(uint64_t deadline_ns)
{
        ares_socket_t sockets[ARES_GETSOCK_MAXNUM];
        struct pollfd fds[ARES_GETSOCK_MAXNUM + 1] = { { .fd = FILE_STDOUT } };
        nfds_t count = 1;
        unsigned bits = (unsigned)ares_getsock(channel, sockets, ARES_GETSOCK_MAXNUM);
        for (unsigned i = 0; i < ARES_GETSOCK_MAXNUM; i++) {
                /* ARES_GETSOCK_WRITABLE shifts an int too far. */
                short events = (short)((bits >> i & 1 ? POLLIN : 0) |
                                       (bits >> (ARES_GETSOCK_MAXNUM + i) & 1 ? POLLOUT : 0));
                if (events)
                        fds[count++] = (struct pollfd){ .fd = sockets[i], .events = events };
        }
        int ms = clock_poll_ms(deadline_ns);
        struct timeval room, *left = ares_timeout(channel, NULL, &room);
        if (left) {
                int64_t due = (int64_t)left->tv_sec * 1000 + left->tv_usec / 1000 + 1;
                ms = ms < 0 || due < ms ? (int)due : ms;
        }
        if (poll(fds, count, ms) < 0)
                return errno == EINTR;
        if (fds[0].revents)
                return false;
        for (nfds_t i = 1; i < count; i++) {
                bool in = fds[i].revents & ~POLLOUT, out = fds[i].revents & POLLOUT;
                if (in || out)
                        ares_process_fd(channel, in ? fds[i].fd : ARES_SOCKET_BAD,
                                        out ? fds[i].fd : ARES_SOCKET_BAD);
        }
        ares_process_fd(channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
        return true;
}

int main(void)
{
        const char *domains = config_source_setting(CONFIG_search_domains);
        const char *servers = config_text(CONFIG_dns_servers);
        struct ares_options options = { .timeout = TIMEOUT_MS, .tries = TRIES };
        int r = ares_library_init(ARES_LIB_INIT_ALL);
        if (r == ARES_SUCCESS)
                r = ares_init_options(&channel, &options, ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES);
        if (r == ARES_SUCCESS && *servers)
                r = ares_set_servers_ports_csv(channel, servers);
        if (r != ARES_SUCCESS) {
                fprintf(stderr, "the servers of DNS are not usable: %s\n", ares_strerror(r));
                return 1;
        }
        rights_drop();
        uint64_t next_ns = 0;
        for (bool busy = false;;) {
                if (!busy && clock_now_ns() >= next_ns) {
                        begin_round(domains);
                        busy = true;
                }
                if (busy)
                        go_on();
                if (busy && !pass.lists && !pass.active && pass.next == service_count) {
                        next_ns = end_round();
                        busy = false;
                }
                if (!wait_until(busy ? UINT64_MAX : next_ns))
                        return 0;
        }
}
