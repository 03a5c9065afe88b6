#include "discover/dht_services.h"

#include <string.h>

#include "base/mem.h"

struct service {
        char key[TXT_KEY + 1];
        uint64_t at_ms; /* of its newest record */
        bool gone;
        char *body; /* of the last line; NULL: none */
};

static const struct crypto_ops *crypto;
static struct service *services[DHT_SERVICES_MAX];
static size_t count;

void dht_services_init(const struct crypto_ops *ops)
{
        crypto = ops;
}

size_t dht_services_count(void)
{
        return count;
}

static struct service *find(const char *key)
{
        for (size_t i = 0; i < count; i++) {
                if (!strcmp(services[i]->key, key))
                        return services[i];
        }
        return NULL;
}

static struct service *add(const struct dht_record *r)
{
        struct service *s = count < DHT_SERVICES_MAX ? mem_zalloc(sizeof(*s)) : NULL;
        if (!s) {
                line_refused(r->name, "there are too many services");
                return NULL;
        }
        strcpy(s->key, r->found.txt.key);
        services[count++] = s;
        return s;
}

static void announce_gone(struct service *s)
{
        const struct found f = { .id = s->key };
        line_announce(&f, &s->body);
}

void dht_services_take(const void *data, size_t size, uint64_t now_ms)
{
        struct dht_record r;
        const char *why = dht_record_read(data, size, crypto, now_ms, &r);
        if (why) {
                line_refused("a value of the hash table", why);
                return;
        }
        struct service *s = find(r.found.txt.key);
        if (!s)
                s = add(&r);
        /* A server's end was signed together with its last record. */
        if (!s || r.at_ms < s->at_ms || (r.at_ms == s->at_ms && s->gone))
                return;
        s->at_ms = r.at_ms;
        s->gone = r.gone;
        if (r.gone) {
                announce_gone(s);
                return;
        }
        r.found.id = s->key;
        r.found.name = r.name;
        line_announce(&r.found, &s->body);
}

void dht_services_drop(const void *data, size_t size, uint64_t now_ms)
{
        struct dht_record r;
        if (dht_record_read(data, size, crypto, now_ms, &r) || r.gone)
                return;
        struct service *s = find(r.found.txt.key);
        if (s && s->at_ms == r.at_ms)
                announce_gone(s);
}

uint64_t dht_services_expire(uint64_t now_ms)
{
        uint64_t next = UINT64_MAX;
        size_t kept = 0;
        for (size_t i = 0; i < count; i++) {
                struct service *s = services[i];
                uint64_t end = s->at_ms + DHT_LIFE_S * 1000ull;
                if (end > now_ms) {
                        next = end < next ? end : next;
                        services[kept++] = s;
                        continue;
                }
                announce_gone(s);
                mem_free(s);
        }
        count = kept;
        return next;
}
