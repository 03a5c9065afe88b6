/* A node of the distributed hash table, by OpenDHT's C interface. The library has threads of its own, which call its
 * callbacks: these post events, and the main thread takes them. So only the main thread has state. */
#ifndef SPANCL_DISCOVER_DHT_NODE_H
#define SPANCL_DISCOVER_DHT_NODE_H

#include <opendht/opendht_c.h>
#include <stdbool.h>

#include "discover/dht_record.h"

enum dht_event_kind {
        DHT_FOUND,    /* the table has a value */
        DHT_EXPIRED,  /* it has the value no more */
        DHT_SEARCHED, /* the first search is over */
        DHT_STORED,   /* a value is stored, or was not: `id` */
        DHT_NOT_STORED,
};

struct dht_event {
        enum dht_event_kind kind;
        dht_value_id id;
        size_t size;
        uint8_t value[DHT_VALUE_MAX + 1]; /* a longer value is cut, and so refused */
};

struct dht_node {
        dht_runner *runner;
        dht_infohash key;
        int events[2]; /* posted, and taken */
        bool moved;    /* another program has the port, so the node has any other one */
};

/* Make the node, give up the rights that the program does not need (rights.h), and join the table. `key` is 40
 * hexadecimal digits, or a text that is hashed. `bootstrap` lists nodes as HOST[:PORT], separated by commas. False:
 * it can't be made; standard error says why. */
bool dht_node_start(struct dht_node *n, unsigned port, const char *bootstrap, const char *key);

/* Post an event. If the main thread is slow, the library's thread waits. `value` may be NULL. */
void dht_node_post(struct dht_node *n, enum dht_event_kind kind, const dht_value *value);

/* Take the next event without waiting; events[1] can be polled. False: there is none. */
bool dht_node_take(struct dht_node *n, struct dht_event *ret);

#endif
