#include "discover/dht_node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/entries.h"
#include "os/file.h"
#include "os/net/socket.h"
#include "os/process/rights.h"

enum { HOSTS_MAX = 16, HOST_MAX = 255 };

static const char default_port[] = "4222";

/* "HOST", "HOST:PORT", "[ADDRESS]", "[ADDRESS]:PORT", or an address of IPv6 alone. */
static void bootstrap_from(dht_runner *runner, char *text)
{
        char *host = text, *port = strrchr(text, ':'), *bracket = strchr(text, ']');
        if (*text == '[' && bracket) {
                host++;
                *bracket = 0;
                port = bracket[1] == ':' ? bracket + 1 : NULL;
        } else if (port && strchr(text, ':') != port) {
                port = NULL;
        }
        if (port)
                *port++ = 0;
        dht_runner_bootstrap(runner, host, port && *port ? port : default_port);
}

static void bootstrap_all(dht_runner *runner, const char *list)
{
        unsigned count = 0;
        while (*list && count < HOSTS_MAX) {
                char text[HOST_MAX + 1];
                size_t n = strcspn(list, ", ");
                if (n && n <= HOST_MAX) {
                        memcpy(text, list, n);
                        text[n] = 0;
                        bootstrap_from(runner, text);
                        count++;
                }
                list += n + (list[n] != 0);
        }
}

bool dht_node_start(struct dht_node *n, unsigned port, const char *bootstrap, const char *key)
{
        rights_drop_but_threads();
        if (!socket_pair_packets(n->events) || !file_wait(n->events[0]))
                return false;
        /* The library shares a port with other programs, which then lose packets. */
        n->moved = port && !socket_port_is_free(port);
        n->runner = dht_runner_new();
        if (!n->runner || dht_runner_run(n->runner, (in_port_t)(n->moved ? 0 : port)) != 0) {
                fprintf(stderr, "no node of the distributed hash table can be made\n");
                return false;
        }
        rights_end_threads();
        bootstrap_all(n->runner, bootstrap);
        if (strlen(key) == 2 * HASH_LEN && strspn(key, "0123456789abcdefABCDEF") == 2 * HASH_LEN)
                dht_infohash_from_hex_null(&n->key, key);
        else
                dht_infohash_get_from_string(&n->key, key);
        return true;
}

void dht_node_post(struct dht_node *n, enum dht_event_kind kind, const dht_value *value)
{
        struct dht_event e = { .kind = kind };
        if (value) {
                dht_data_view view = dht_value_get_data(value);
                e.id = dht_value_get_id(value);
                e.size = view.size < sizeof(e.value) ? view.size : sizeof(e.value);
                memcpy(e.value, view.data, e.size);
        }
        (void)!file_write_all(n->events[0], &e, offsetof(struct dht_event, value) + e.size);
}

bool dht_node_take(struct dht_node *n, struct dht_event *ret)
{
        return socket_receive(n->events[1], ret, sizeof(*ret)) > 0;
}
