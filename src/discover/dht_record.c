#include "discover/dht_record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "discover/reach.h"
#include "transport/keys.h"

enum { STRING_MAX = 255 };

/* ---- writing -------------------------------------------------------------------------------- */

/* A value that grows. */
struct writer {
        uint8_t *data;
        size_t size;
        bool full;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *w, const char *fmt, ...)
{
        char text[STRING_MAX + 1];
        va_list args;
        va_start(args, fmt);
        int n = vsnprintf(text, sizeof(text), fmt, args);
        va_end(args);
        if (n < 0 || n > STRING_MAX || w->size + 1 + (size_t)n + CRYPTO_SIGNATURE > DHT_VALUE_MAX) {
                w->full = true;
                return;
        }
        w->data[w->size++] = (uint8_t)n;
        memcpy(w->data + w->size, text, (size_t)n);
        w->size += (size_t)n;
}

size_t dht_record_write(const struct dht_record *r, const struct crypto_ops *crypto,
                        const char *pem, uint8_t ret[DHT_VALUE_MAX])
{
        const struct found *f = &r->found;
        struct writer w = { ret, DHT_MAGIC_SIZE + CRYPTO_PUBLIC, false };
        memcpy(ret, DHT_MAGIC, DHT_MAGIC_SIZE);
        if (!crypto->identity_public(pem, ret + DHT_MAGIC_SIZE))
                return 0;
        put(&w, "at=%" PRIu64, r->at_ms);
        if (r->gone) {
                put(&w, "gone=1");
        } else {
                put(&w, "name=%s", r->name);
                put(&w, "port=%u", f->port);
                for (unsigned i = 0; i < f->address_count; i++)
                        put(&w, "a=%s", f->addresses[i]);
                if (*f->txt.types)
                        put(&w, "types=%s", f->txt.types);
                if (f->txt.has_protocol)
                        put(&w, "v=%u", (unsigned)f->txt.protocol);
                if (f->txt.has_load)
                        put(&w, "load=%u", (unsigned)f->txt.load);
        }
        if (w.full || !crypto->identity_sign(pem, ret, w.size, ret + w.size))
                return 0;
        return w.size + CRYPTO_SIGNATURE;
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool number(const char *text, uint64_t max, uint64_t *ret)
{
        uint64_t n = 0;
        if (!*text || strlen(text) > 15)
                return false;
        for (; *text; text++) {
                if (*text < '0' || *text > '9')
                        return false;
                n = n * 10 + (uint64_t)(*text - '0');
        }
        *ret = n;
        return n <= max;
}

/* Add an address in its usual form, if another host can have it. False: it is none. */
static bool take_address(struct found *f, const char *text)
{
        char clean[IP_TEXT_MAX];
        struct ip ip;
        if (!ip_parse(text, &ip))
                return false;
        ip_text(&ip, clean);
        if (reach_of(&ip) == REACH_HOST)
                found_add_address(f, clean);
        return true;
}

/* Take one string. False: a known name has a wrong value. */
static bool take(struct dht_record *r, const uint8_t *data, size_t size)
{
        char text[STRING_MAX + 1];
        uint64_t n;
        memcpy(text, data, size);
        text[size] = 0;
        char *value = strchr(text, '=');
        if (strlen(text) != size)
                return false;
        if (!value)
                return true;
        *value++ = 0;
        if (!strcmp(text, "at"))
                return number(value, UINT64_MAX, &r->at_ms);
        if (!strcmp(text, "gone")) {
                r->gone = true;
                return true;
        }
        if (!strcmp(text, "name")) {
                if (!*value || strlen(value) > FOUND_NAME_MAX || !line_is_utf8(value))
                        return false;
                strcpy(r->name, value);
                return true;
        }
        if (!strcmp(text, "port")) {
                if (!number(value, UINT16_MAX, &n) || !n)
                        return false;
                r->found.port = (unsigned)n;
                return true;
        }
        if (!strcmp(text, "a"))
                return take_address(&r->found, value);
        return txt_take(&r->found.txt, data, size) == 0;
}

const char *dht_record_read(const void *data, size_t size, const struct crypto_ops *crypto,
                            uint64_t now_ms, struct dht_record *ret)
{
        const uint8_t *all = data, *p = all + DHT_MAGIC_SIZE + CRYPTO_PUBLIC;
        uint8_t fingerprint[CRYPTO_FINGERPRINT];
        struct dht_record r = { .found.kind = "spancl" };
        if (size < DHT_VALUE_MIN || size > DHT_VALUE_MAX || memcmp(all, DHT_MAGIC, DHT_MAGIC_SIZE))
                return "the value is not a record of SpanCL";
        const uint8_t *end = all + size - CRYPTO_SIGNATURE;
        while (p < end) {
                size_t n = *p++;
                if (n > (size_t)(end - p) || !take(&r, p, n))
                        return "the record has a wrong string";
                p += n;
        }
        if (r.at_ms > now_ms + DHT_SKEW_S * 1000ull)
                return "the record is from the future: compare the clocks of the hosts";
        if (r.at_ms + DHT_LIFE_S * 1000ull <= now_ms)
                return "the record is too old: compare the clocks of the hosts";
        if (!r.gone && (!*r.name || !r.found.port))
                return "the record has no name or port";
        if (!r.gone && !r.found.address_count)
                return "no address of the record can be another host's";
        if (!crypto->verify(all + DHT_MAGIC_SIZE, all, (size_t)(end - all), end, fingerprint))
                return "the signature is not genuine";
        keys_hex(fingerprint, r.found.txt.key);
        *ret = r;
        return NULL;
}
