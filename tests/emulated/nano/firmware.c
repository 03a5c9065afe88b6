#include "firmware.h"

#include <stdbool.h>
#include <string.h>

#include "board.h"
#include "lwip/etharp.h"
#include "lwip/init.h"
#include "lwip/netif.h"
#include "lwip/transport.h"
#include "netif/ethernet.h"
#ifdef HAVE_NANO_TLS
#include "tls/tls.h"

static struct spancl_nano_tls tls;
static uint8_t tls_key[SPANCL_NANO_TLS_KEY];
#endif

static uint64_t arena[SPANCL_NANO_ARENA / 8];
static uint32_t seed;

uint32_t firmware_random(void)
{
        seed = seed * 1664525 + 1013904223;
        return seed >> 8 ^ seed << 16;
}

void firmware_must(cl_int status, const char *what)
{
        if (!status)
                return;
        board_print(what);
        board_print(" failed: ");
        board_print_number((uint32_t)-status);
        board_print(" ");
        board_print(spancl_nano_error());
        board_print("\n");
        board_exit(1);
}

uint32_t firmware_number(const char **p)
{
        uint32_t n = 0;
        while (**p && (**p < '0' || **p > '9'))
                ++*p;
        for (; **p >= '0' && **p <= '9'; ++*p)
                n = n * 10 + (uint32_t)(**p - '0');
        return n;
}

#ifdef HAVE_NANO_TLS
/* The key, if there is one. */
static bool take_key(const char *p)
{
        for (unsigned i = 0; i < 2 * sizeof(tls_key); i++, p++) {
                const unsigned digit = *p <= '9' ? (unsigned)*p - '0' : (unsigned)*p - 'a' + 10;
                if (digit > 15)
                        return false;
                tls_key[i / 2] = (uint8_t)(tls_key[i / 2] << 4 | digit);
        }
        return true;
}
#endif

static err_t network_begin(struct netif *n)
{
        board_network(n);
        return ERR_OK;
}

const char *firmware_begin(void)
{
        static struct netif network;
        static struct lwip_transport connections = { .poll = board_poll, .sleep = board_sleep };
        static struct spancl_nano_transport used;
        static uint32_t random[8];
        static char text[160];
        const char *p = text;
        ip4_addr_t own, mask, gateway;
        board_arguments(text, sizeof(text));
        const uint32_t port = firmware_number(&p);
        seed = firmware_number(&p);
        for (unsigned i = 0; i < 8; i++)
                random[i] = firmware_random();
        IP4_ADDR(&own, 10, 0, 2, 15);
        IP4_ADDR(&mask, 255, 255, 255, 0);
        IP4_ADDR(&gateway, 10, 0, 2, 2);
        lwip_init();
        netif_add(&network, &own, &mask, &gateway, NULL, network_begin, ethernet_input);
        netif_set_default(&network);
        netif_set_up(&network);
        connections.host = gateway;
        connections.port = (uint16_t)port;
        used = lwip_transport(&connections);
        while (*p == ' ')
                p++;
#ifdef HAVE_NANO_TLS
        static struct spancl_nano_transport plain;
        uint32_t tls_random[8];
        for (unsigned i = 0; i < 8; i++)
                tls_random[i] = firmware_random();
        plain = used;
        if (take_key(p))
                used = spancl_nano_tls(&tls, &plain, tls_key, (const uint8_t *)tls_random);
#endif
        p = strchr(p, ' ');
        const struct spancl_nano_config config = { .transport = &used,
                                                   .arena = arena,
                                                   .arena_size = sizeof(arena),
                                                   .random = (const uint8_t *)random };
        firmware_must(spancl_nano_start(&config), "spancl_nano_start");
        return p ? p : "";
}
