/* dht_node PORT KEY [HOST:PORT]...: a node of the distributed hash table, for tests, with a key of
 * Ed25519 of its own. It prints "ready FINGERPRINT", and "met" for each of the others that has
 * answered it. It takes lines from standard input, of which each stores a value under the key:
 *   meet HOST:PORT                     (no value: it joins by one more node)
 *   put HEX                            these bytes
 *   record NAME ADDRESS PORT AGE_S     a record that it signed so long ago
 *   forged NAME                        the same, altered after it was signed
 *   gone AGE_S                         the end of its server
 *   flood COUNT                        so many records of other keys
 * "stored" or "failed" follows for each value. It ends with its standard input. */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <opendht/opendht_c.h>

#include "discover/dht_record.h"
#include "os/clock.h"
#include "transport/tls.h"

static const struct crypto_ops *crypto;
static dht_runner *node;
static dht_infohash hash;

static struct {
        struct sockaddr_storage at;
        socklen_t size;
} others[32];
static size_t other_count;

static void on_answer(bool ok, void *user);

static void ask(size_t i)
{
        dht_runner_ping(node, (struct sockaddr *)&others[i].at, others[i].size, on_answer,
                        &others[i]);
}

static void on_answer(bool ok, void *user)
{
        if (!ok)
                ask((size_t)((typeof(&others[0]))user - others));
        else
                puts("met");
}

/* Join by a node "HOST:PORT". */
static void join(char *place)
{
        struct addrinfo *list;
        char *colon = strrchr(place, ':');
        if (!colon || other_count == 32)
                exit(2);
        *colon = 0;
        if (getaddrinfo(place, colon + 1, NULL, &list))
                exit(2);
        memcpy(&others[other_count].at, list->ai_addr, list->ai_addrlen);
        others[other_count].size = list->ai_addrlen;
        freeaddrinfo(list);
        ask(other_count++);
}

static void on_stored(bool ok, void *user)
{
        (void)user;
        puts(ok ? "stored" : "failed");
}

static void put(const void *data, size_t size)
{
        dht_value *v = dht_value_new(data, size);
        dht_runner_put(node, &hash, v, on_stored, NULL, true);
        dht_value_unref(v);
}

static void put_record(const char *pem, struct dht_record *r, long age_s, bool forge)
{
        uint8_t value[DHT_VALUE_MAX];
        r->at_ms = clock_wall_ns() / 1000000 - (uint64_t)(age_s * 1000);
        size_t size = dht_record_write(r, crypto, pem, value);
        value[size / 2] ^= forge; /* within the strings' port or address */
        put(value, size);
}

static void obey(const char *pem, char *line)
{
        static uint8_t bytes[1 << 17];
        long age_s;
        unsigned port, count, size = 0;
        char name[64], address[64];
        struct dht_record r = { .found = { .port = 7777, .address_count = 1 } };
        if (!strncmp(line, "meet ", 5)) {
                line[strcspn(line, "\n")] = 0;
                join(line + 5);
        } else if (!strncmp(line, "put ", 4)) {
                for (const char *p = line + 4;
                     size < sizeof(bytes) && sscanf(p, "%2hhx", &bytes[size]) == 1; p += 2)
                        size++;
                put(bytes, size);
        } else if (sscanf(line, "record %63s %63s %u %ld", name, address, &port, &age_s) == 4) {
                strcpy(r.name, name);
                strcpy(r.found.addresses[0], address);
                r.found.port = port;
                put_record(pem, &r, age_s, false);
        } else if (sscanf(line, "forged %63s", name) == 1) {
                strcpy(r.name, name);
                strcpy(r.found.addresses[0], "192.0.2.66");
                put_record(pem, &r, 0, true);
        } else if (sscanf(line, "gone %ld", &age_s) == 1) {
                r.gone = true;
                put_record(pem, &r, age_s, false);
        } else if (sscanf(line, "flood %u", &count) == 1) {
                strcpy(r.name, "forged");
                strcpy(r.found.addresses[0], "192.0.2.66");
                for (unsigned i = 0; i < count; i++) {
                        char *other = crypto->identity_new("other");
                        put_record(other, &r, 0, false);
                        free(other);
                }
        }
}

int main(int argc, char **argv)
{
        static char line[1 << 18];
        char text[KEYS_TEXT_MAX], hex[KEYS_HEX + 1];
        uint8_t fingerprint[CRYPTO_FINGERPRINT];
        crypto = tls_crypto(text);
        if (argc < 3 || !crypto)
                return 2;
        setvbuf(stdout, NULL, _IOLBF, 0);
        char *pem = crypto->identity_new("node");
        if (!pem || !crypto->identity_fingerprint(pem, fingerprint))
                return 2;
        keys_hex(fingerprint, hex);
        node = dht_runner_new();
        if (!node || dht_runner_run(node, (in_port_t)atoi(argv[1])) != 0)
                return 1;
        dht_infohash_get_from_string(&hash, argv[2]);
        printf("ready %s\n", hex);
        for (int i = 3; i < argc; i++)
                join(argv[i]);
        while (fgets(line, sizeof(line), stdin))
                obey(pem, line);
        dht_runner_delete(node);
        free(pem);
        return 0;
}
