#include "discovery/discovered.h"

#include <string.h>

#include "base/loopback.h"
#include "base/mem.h"
#include "discovery/json.h"
#include "os/net/ip.h"

/* ---- values --------------------------------------------------------------------------------- */

/* A name of an interface, or its number. */
static bool is_scope(const char *text)
{
        size_t n =
                strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-");
        return n && n < 16 && !text[n];
}

/* Return true if it is the numeric address of one host. */
static bool is_address(const char *text)
{
        static const uint8_t none[IP_V6];
        char host[DISCOVERED_ADDRESS_MAX + 1];
        struct ip ip;
        size_t n = strcspn(text, "%");
        memcpy(host, text, n);
        host[n] = 0;
        if (!ip_parse(host, &ip) || !memcmp(ip.bytes, none, ip.size))
                return false;
        if (ip.size == IP_V4)
                return !text[n] && ip.bytes[0] < 224; /* no group, nor all */
        return (!text[n] || is_scope(text + n + 1)) && ip.bytes[0] != 0xff;
}

static const char *read_addresses(struct json *j, struct discovered *d)
{
        static const char wrong[] = "addresses: not 1 to 16 numeric addresses";
        bool first = true;
        if (!json_open(j, '['))
                return wrong;
        while (json_element(j, &first)) {
                if (d->address_count == DISCOVERED_ADDRESSES_MAX)
                        return wrong;
                char *to = d->addresses[d->address_count];
                if (!json_text(j, to, DISCOVERED_ADDRESS_MAX + 1) || !is_address(to))
                        return wrong;
                d->address_count++;
        }
        return d->address_count ? NULL : wrong;
}

static const char *read_types(struct json *j, struct discovered *d)
{
        static const char *const names[] = { "cpu", "gpu", "accelerator", "custom" };
        char text[64], *rest = text;
        if (!json_text(j, text, sizeof(text)))
                return "types: not a list of types of devices";
        for (char *one; (one = strsep(&rest, ",")) && *text;) {
                size_t i = 0;
                while (i < array_size(names) && strcmp(one, names[i]) != 0)
                        i++;
                if (i == array_size(names))
                        return "types: not a list of types of devices";
                d->types |= 1u << i;
        }
        return NULL;
}

static const char *read_key(struct json *j, struct discovered *d)
{
        if (!json_text(j, d->key, sizeof(d->key)) ||
            strspn(d->key, "0123456789abcdef") != DISCOVERED_KEY)
                return "key: not 64 hexadecimal digits";
        return NULL;
}

static const char *read_kind(struct json *j, struct discovered *d)
{
        char text[16];
        if (!json_text(j, text, sizeof(text)) ||
            (strcmp(text, "spancl") != 0 && strcmp(text, "pocl") != 0))
                return "kind: neither spancl nor pocl";
        d->kind = *text == 'p' ? DISCOVERED_POCL : DISCOVERED_SPANCL;
        return NULL;
}

/* ---- members -------------------------------------------------------------------------------- */

enum member {
        EVENT,
        ID,
        NAME,
        ADDRESSES,
        PORT,
        TYPES,
        KEY,
        PROTOCOL,
        LOAD,
        KIND,
        MEMBERS, /* not one of them */
};

static const char *const members[MEMBERS] = { "event", "id",  "name",     "addresses", "port",
                                              "types", "key", "protocol", "load",      "kind" };

static const char *read_event(struct json *j, enum discovered_event *ret)
{
        static const char *const names[] = { "appears", "changes", "gone", "settled" };
        char text[16];
        if (json_text(j, text, sizeof(text)))
                for (size_t i = 0; i < array_size(names); i++)
                        if (!strcmp(text, names[i])) {
                                *ret = (enum discovered_event)i;
                                return NULL;
                        }
        return "event: not appears, changes, gone or settled";
}

/* Read the value of a member. Returns NULL, or the text of the error. */
static const char *read_member(struct json *j, enum member m, enum discovered_event *event,
                               struct discovered *d)
{
        uint64_t port;
        switch (m) {
        case EVENT:
                return read_event(j, event);
        case ID:
                return json_text(j, d->id, sizeof(d->id)) && *d->id
                               ? NULL
                               : "id: not 1 to 255 bytes of text";
        case NAME:
                return json_text(j, d->name, sizeof(d->name)) && *d->name
                               ? NULL
                               : "name: not 1 to 63 bytes of text";
        case ADDRESSES:
                return read_addresses(j, d);
        case PORT:
                if (!json_number(j, &port) || !port || port > 65535)
                        return "port: not a number from 1 to 65535";
                d->port = (unsigned)port;
                return NULL;
        case TYPES:
                return read_types(j, d);
        case KEY:
                return read_key(j, d);
        case PROTOCOL:
                return json_number(j, &d->protocol) ? NULL : "protocol: not a number";
        case LOAD:
                return json_number(j, &d->load) ? NULL : "load: not a number";
        case KIND:
                return read_kind(j, d);
        case MEMBERS:
                break;
        }
        return json_skip(j) ? NULL : "not valid JSON";
}

/* Check that the record has all that the event needs. Returns NULL, or the text of the error. */
static const char *check(enum discovered_event event, unsigned seen, struct discovered *d)
{
        if (event == DISCOVERED_SETTLED)
                return NULL;
        if (!(seen & 1u << ID)) {
                if (!(seen & 1u << NAME))
                        return "neither id nor name";
                memcpy(d->id, d->name, sizeof(d->name));
        }
        if (event == DISCOVERED_GONE)
                return NULL;
        if (!d->address_count)
                return "no addresses";
        if (!d->port)
                return "no port";
        if (!(seen & 1u << NAME))
                memcpy(d->name, d->addresses[0], sizeof(d->name));
        return NULL;
}

int discovered_parse(const char *line, size_t size, enum discovered_event *ret_event,
                     struct discovered *ret, const char **ret_why)
{
        struct json j = { line, line + size, false };
        char name[16];
        unsigned seen = 0;
        bool first = true;
        *ret = (struct discovered){ 0 };
        *ret_event = DISCOVERED_APPEARS;
        *ret_why = NULL;
        if (size >= DISCOVERED_LINE_MAX)
                *ret_why = "longer than 8 KiB";
        else if (!json_open(&j, '{'))
                *ret_why = "not a JSON object";
        while (!*ret_why && json_member(&j, &first, name, sizeof(name))) {
                enum member m = 0;
                while (m < MEMBERS && strcmp(name, members[m]) != 0)
                        m++;
                /* Of two members with one name, readers may take either one, and an attacker could use that. */
                if (m < MEMBERS && seen & 1u << m)
                        *ret_why = "a member occurs twice";
                else
                        *ret_why = read_member(&j, m, ret_event, ret);
                seen |= 1u << m;
        }
        if (!*ret_why && !json_ends(&j))
                *ret_why = "not valid JSON";
        if (!*ret_why)
                *ret_why = check(*ret_event, seen, ret);
        return *ret_why ? SP_E_INVAL : 0;
}

bool discovered_is_here(const struct discovered *d)
{
        for (unsigned i = 0; i < d->address_count; i++)
                if (!loopback_host(d->addresses[i]))
                        return false;
        return d->address_count != 0;
}
