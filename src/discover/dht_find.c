/* discover-dht: prints the servers that a distributed hash table lists under SPANCL_DHT_KEY, by OpenDHT
 * (docs/internals/discovery-sources.md). */
#include <stdio.h>
#include <stdlib.h>

#include "config/servers.h"
#include "config/variables.h"
#include "discover/dht_node.h"
#include "discover/dht_services.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/poll.h"
#include "transport/tls.h"

static struct dht_node node;

static bool on_value(const dht_value *value, bool expired, void *user)
{
        (void)user;
        dht_node_post(&node, expired ? DHT_EXPIRED : DHT_FOUND, value);
        return true;
}

static bool on_found(const dht_value *value, void *user)
{
        return on_value(value, false, user);
}

static void on_searched(bool ok, void *user)
{
        (void)ok, (void)user;
        dht_node_post(&node, DHT_SEARCHED, NULL);
}

/* The library's threads may use what its destructors free. */
static void leave(void)
{
        _Exit(0);
}

static void take_events(void)
{
        static struct dht_event e;
        while (dht_node_take(&node, &e)) {
                uint64_t now_ms = clock_wall_ns() / 1000000;
                switch (e.kind) {
                case DHT_FOUND:
                        dht_services_take(e.value, e.size, now_ms);
                        break;
                case DHT_EXPIRED:
                        dht_services_drop(e.value, e.size, now_ms);
                        break;
                case DHT_SEARCHED:
                        line_put_settled();
                        break;
                case DHT_STORED:
                case DHT_NOT_STORED:
                        break;
                }
        }
}

int main(void)
{
        char text[KEYS_TEXT_MAX];
        uint64_t port;
        const struct crypto_ops *crypto = tls_crypto(text);
        if (!crypto) {
                fprintf(stderr, "signatures can't be verified: %s\n", text);
                return 1;
        }
        if (!config_convert(CONFIG_dht_port, config_source_setting(CONFIG_dht_port), &port))
                port = config_number(CONFIG_dht_port);
        dht_services_init(crypto);
        if (!dht_node_start(&node, (unsigned)port, config_source_setting(CONFIG_dht_bootstrap),
                            config_source_setting(CONFIG_dht_key)))
                return 1;
        atexit(leave);
        dht_runner_get(node.runner, &node.key, on_found, on_searched, NULL);
        dht_runner_listen(node.runner, &node.key, on_value, NULL, NULL);
        for (;;) {
                struct pollfd p[] = { { .fd = FILE_STDOUT },
                                      { .fd = node.events[1], .events = POLLIN } };
                uint64_t now_ms = clock_wall_ns() / 1000000;
                uint64_t next_ms = dht_services_expire(now_ms);
                uint64_t left_ms = next_ms - now_ms;
                if (poll(p, 2, next_ms == UINT64_MAX ? -1 : (int)left_ms) < 0)
                        continue;
                if (p[0].revents)
                        return 0;
                if (p[1].revents)
                        take_events();
        }
}
