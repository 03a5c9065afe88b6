#include "daemon/print_dns.h"

#include <ctype.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "config/server_spec.h"
#include "daemon/own_addresses.h"
#include "daemon/supervisor/gate.h"
#include "proto/wire.h"
#include "transport/address.h"

enum { LIFE_S = 120, HOST_MAX = 63, DOMAIN_MAX = 180, ADDRESSES_MAX = 64 };

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

static void print_address(const char *host, const char *domain, const char *text)
{
        printf("%s.%s. %d IN %s %s\n", host, domain, LIFE_S, strchr(text, ':') ? "AAAA" : "A",
               text);
}

/* Print all addresses of this host. `family` AF_UNSPEC: of both. */
static size_t print_own(const char *host, const char *domain, int family)
{
        own_address all[ADDRESSES_MAX];
        size_t count = own_addresses(family, all, ADDRESSES_MAX);
        for (size_t i = 0; i < count; i++)
                print_address(host, domain, all[i]);
        return count;
}

static size_t print_named(const char *host, const char *domain, const char *name)
{
        const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
        struct addrinfo *all;
        char text[INET6_ADDRSTRLEN];
        size_t count = 0;
        if (getaddrinfo(name, NULL, &hints, &all))
                return 0;
        for (const struct addrinfo *a = all; a; a = a->ai_next) {
                if (getnameinfo(a->ai_addr, a->ai_addrlen, text, sizeof(text), NULL, 0,
                                NI_NUMERICHOST))
                        continue;
                print_address(host, domain, text);
                count++;
        }
        freeaddrinfo(all);
        return count;
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
        if (gethostname(host, sizeof(host)) < 0)
                strcpy(host, "spancld");
        host[sizeof(host) - 1] = 0;
        host[strcspn(host, ".")] = 0;
        for (char *c = host; *c; c++)
                *c = isalnum((unsigned char)*c) ? *c : '-';
        gate_init(&gate, o);
        gate_keys_if_any(&gate);
        printf("_spancl._tcp.%s. %d IN PTR %s._spancl._tcp.%s.\n", domain, LIFE_S, host, domain);
        printf("%s._spancl._tcp.%s. %d IN SRV 0 0 %u %s.%s.\n", host, domain, LIFE_S, at.port, host,
               domain);
        printf("%s._spancl._tcp.%s. %d IN TXT \"v=%u\"", host, domain, LIFE_S,
               (unsigned)WIRE_VERSION);
        if (*gate.identity)
                printf(" \"key=%s\"", gate.identity);
        printf("\n");
        gate_fini(&gate);
        size_t count;
        if (!strcmp(at.host, "*") || !strcmp(at.host, "::"))
                count = print_own(host, domain, AF_UNSPEC);
        else if (!strcmp(at.host, "0.0.0.0"))
                count = print_own(host, domain, AF_INET);
        else
                count = print_named(host, domain, at.host);
        if (!count)
                fprintf(stderr, "spancld: --print-dns: no address was found for %s\n", at.host);
        return count ? 0 : 1;
}
