/* The servers that a distributed hash table lists: for each key the newest record that it has signed. They are at most
 * DHT_SERVICES_MAX, with those that have left: the record of a server's end has to be known as long as an older record
 * may come. One owner. */
#ifndef SPANCL_DISCOVER_DHT_SERVICES_H
#define SPANCL_DISCOVER_DHT_SERVICES_H

#include "discover/dht_record.h"

enum { DHT_SERVICES_MAX = 1024 };

/* The set; there is one. It writes the lines of the changes to standard output (line.h). */
void dht_services_init(const struct crypto_ops *crypto);

/* The table has this value, or has it no more. */
void dht_services_take(const void *data, size_t size, uint64_t now_ms);
void dht_services_drop(const void *data, size_t size, uint64_t now_ms);

/* End the records that are too old. Returns the time of the next call; UINT64_MAX: none. */
uint64_t dht_services_expire(uint64_t now_ms);

/* The number of servers, with those that have left. */
size_t dht_services_count(void);

#endif
