#include "daemon/print_records.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/server_spec.h"
#include "daemon/supervisor/gate.h"
#include "os/host.h"
#include "os/net/interface.h"
#include "os/net/socket_address.h"
#include "proto/wire.h"
#include "transport/address.h"

enum { LIFE_S = 120, HOST_MAX = 63, DOMAIN_MAX = 180 };

/* Return true if a text is a domain: letters, digits, '-' and '_', in labels of 1 to 63 bytes. */
static bool is_domain(const char *text)
{
        if (!*text || strlen(text) > DOMAIN_MAX)
                return false;
        for (size_t n; *text; text += n + (text[n] == '.')) {
                n = strspn(text,
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_");
                if (!n || n > HOST_MAX || (text[n] && (text[n] != '.' || !text[n + 1])))
                        return false;
        }
        return true;
}

/* Find the first --listen that other hosts reach. */
static bool find_listen(const struct config_options *o, struct address *ret)
{
        for (size_t i = 0; i < o->list_count; i++) {
                if (o->list[i].id == CONFIG_listen &&
                    address_of_listen(o->list[i].value, CONFIG_PORT, ret) == 0 &&
                    address_is_reached(ret))
                        return true;
        }
        return false;
}

/* A server with clients makes its key when it starts, if it has none. False: it can't, as the log says. */
static bool open_gate(struct gate *g, const struct config_options *o)
{
        gate_init(g, o);
        if (!gate_has_friends(g)) {
                gate_keys_if_any(g);
                return true;
        }
        if (gate_keys(g) == 0)
                return true;
        gate_fini(g);
        return false;
}

int print_avahi(const struct config_options *o)
{
        struct address at;
        struct gate gate;
        bool v4, all;
        if (!find_listen(o, &at)) {
                fprintf(stderr, "spancld: --print-avahi needs --listen '*'\n");
                return 2;
        }
        v4 = !strcmp(at.host, "0.0.0.0");
        all = v4 || !strcmp(at.host, "*") || !strcmp(at.host, "::");
        if (!all) {
                fprintf(stderr,
                        "spancld: --print-avahi: avahi-daemon would publish all addresses of this host, and "
                        "the server listens on one. It needs --listen '*'\n");
                return 2;
        }
        if (!open_gate(&gate, o))
                return 1;
        printf("<?xml version=\"1.0\" standalone=\"no\"?>\n"
               "<!DOCTYPE service-group SYSTEM \"avahi-service.dtd\">\n"
               "<service-group>\n"
               "  <name replace-wildcards=\"yes\">%%h</name>\n"
               "  <service%s>\n"
               "    <type>_spancl._tcp</type>\n"
               "    <port>%u</port>\n"
               "    <txt-record>v=%u</txt-record>\n",
               v4 ? " protocol=\"ipv4\"" : "", at.port, (unsigned)WIRE_VERSION);
        if (*gate.identity)
                printf("    <txt-record>key=%s</txt-record>\n", gate.identity);
        printf("  </service>\n"
               "</service-group>\n");
        gate_fini(&gate);
        return 0;
}

/* The addresses that are printed for a host. */
struct names {
        const char *host, *domain;
        unsigned count;
};

static void print_address(void *user, const struct ip *ip)
{
        struct names *n = user;
        char text[IP_TEXT_MAX];
        ip_text(ip, text);
        printf("%s.%s. %d IN %s %s\n", n->host, n->domain, LIFE_S, ip->size == IP_V4 ? "A" : "AAAA",
               text);
        n->count++;
}

static void print_named(struct names *n, const char *name)
{
        struct socket_address *all;
        size_t count;
        struct ip ip;
        if (socket_address_resolve(name, 0, false, &all, &count, NULL) < 0)
                return;
        for (size_t i = 0; i < count; i++)
                if (socket_address_ip(&all[i], &ip))
                        print_address(n, &ip);
        free(all);
}

int print_dns(const struct config_options *o)
{
        char domain[DOMAIN_MAX + 3];
        struct address at;
        struct gate gate;
        char host[HOST_MAX + 1];
        size_t n = (size_t)snprintf(domain, sizeof(domain), "%s",
                                    config_option_text(o, CONFIG_print_dns));
        if (n > 1 && n < sizeof(domain) && domain[n - 1] == '.')
                domain[n - 1] = 0; /* the root's dot, which each line has */
        if (!is_domain(domain)) {
                fprintf(stderr, "spancld: --print-dns %s: not a domain\n", domain);
                return 2;
        }
        if (!find_listen(o, &at)) {
                fprintf(stderr, "spancld: --print-dns needs --listen with an address that other "
                                "hosts reach\n");
                return 2;
        }
        host_short_name(host, sizeof(host), "spancld");
        for (char *c = host; *c; c++)
                *c = isalnum((unsigned char)*c) ? *c : '-';
        if (!open_gate(&gate, o))
                return 1;
        printf("_spancl._tcp.%s. %d IN PTR %s._spancl._tcp.%s.\n", domain, LIFE_S, host, domain);
        printf("%s._spancl._tcp.%s. %d IN SRV 0 0 %u %s.%s.\n", host, domain, LIFE_S, at.port, host,
               domain);
        printf("%s._spancl._tcp.%s. %d IN TXT \"v=%u\"", host, domain, LIFE_S,
               (unsigned)WIRE_VERSION);
        if (*gate.identity)
                printf(" \"key=%s\"", gate.identity);
        printf("\n");
        gate_fini(&gate);
        struct names names = { host, domain, 0 };
        if (!strcmp(at.host, "0.0.0.0"))
                interface_each_address(IP_V4, print_address, &names);
        else if (!strcmp(at.host, "*") || !strcmp(at.host, "::"))
                interface_each_address(0, print_address, &names);
        else
                print_named(&names, at.host);
        if (!names.count)
                fprintf(stderr, "spancld: --print-dns: no address was found for %s\n", at.host);
        return names.count ? 0 : 1;
}
