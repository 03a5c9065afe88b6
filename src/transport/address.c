#include "transport/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loopback.h"
#include "base/mem.h"
#include "os/net/socket.h"
#include "transport/keys.h"

_Static_assert(sizeof(((struct address *)NULL)->key) == KEYS_HEX + 1, "a key in hex");

/* The transports that addresses name. The name of each is the scheme. */
static const struct transport_ops *const all[] = {
        &transport_tcp,      &transport_unix,  &transport_inproc,      &transport_tls,
        &transport_loopback, &transport_vsock, &transport_vsock_plain,
};

const struct transport_ops *transport_of(const char *address)
{
        for (size_t i = 0; i < array_size(all); i++) {
                size_t n = strlen(all[i]->name);
                if (!strncmp(address, all[i]->name, n) && address[n] == ':')
                        return all[i];
        }
        return NULL;
}

void address_encrypt(struct address *a)
{
        for (size_t i = 0; i < array_size(all); i++)
                if (all[i]->below == a->ops) {
                        a->ops = all[i];
                        return;
                }
}

static const char *behind_scheme(const char *text, const struct transport_ops *ops)
{
        return ops ? text + strlen(ops->name) + 1 : text;
}

/* ---- parsing -------------------------------------------------------------------------------- */

static int take_host(struct address *a, const char *host, size_t n)
{
        if (!n || n >= sizeof(a->host))
                return SP_E_INVAL;
        memcpy(a->host, host, n);
        a->host[n] = 0;
        return 0;
}

/* "#KEY", or nothing. */
static int take_key(struct address *a, const char *text)
{
        uint8_t fingerprint[CRYPTO_FINGERPRINT];
        if (!*text)
                return 0;
        size_t n = strlen(++text);
        bool shows_own = n == KEYS_HEX + 1 && text[KEYS_HEX] == '+';
        if (!(a->ops->caps & TRANSPORT_ENCRYPTED) || n - shows_own != KEYS_HEX ||
            !keys_unhex(text, fingerprint))
                return SP_E_INVAL;
        memcpy(a->key, text, KEYS_HEX);
        a->key[KEYS_HEX] = 0;
        a->shows_own = shows_own;
        return 0;
}

/* "HOST:PORT", "[V6]:PORT". `port`: if the text has none; negative: it must have one. */
static int take_host_port(struct address *a, const char *text, size_t n, int64_t port)
{
        const char *end = text + n, *host_end = end, *colon = memchr(text, ':', n);
        bool brackets = n && text[0] == '[';
        if (brackets) {
                host_end = memchr(text, ']', n);
                colon = host_end && host_end + 1 < end ? host_end + 1 : NULL;
                text++;
        } else if (colon) {
                host_end = colon;
        }
        if (!host_end || (colon ? *colon != ':' : port < 0))
                return SP_E_INVAL;
        if (colon) {
                size_t digits = strspn(colon + 1, "0123456789");
                if (!digits || digits > 10 || colon + 1 + digits != end)
                        return SP_E_INVAL;
                port = strtoll(colon + 1, NULL, 10);
        }
        a->port = (unsigned)port;
        return port > (a->ops->caps & TRANSPORT_PEERS ? UINT16_MAX : UINT32_MAX)
                       ? SP_E_INVAL
                       : take_host(a, text, (size_t)(host_end - text));
}

int address_parse(const char *text, struct address *ret)
{
        *ret = (struct address){ .ops = transport_of(text) };
        if (!ret->ops)
                return SP_E_INVAL;
        text = behind_scheme(text, ret->ops);
        if (!(ret->ops->caps & TRANSPORT_HOSTS))
                return take_host(ret, text, strlen(text));
        size_t n = strcspn(text, "#");
        int r = take_host_port(ret, text, n, -1);
        return r < 0 ? r : take_key(ret, text + n);
}

int address_of_path(const char *path, struct address *ret)
{
        *ret = (struct address){ .ops = &transport_unix };
        return take_host(ret, path, strlen(path));
}

int address_of_listen(const char *text, unsigned port, struct address *ret)
{
        const struct transport_ops *ops = transport_of(text);
        *ret = (struct address){ .ops = ops ? ops : &transport_tcp };
        if (!(ret->ops->caps & TRANSPORT_HOSTS))
                return SP_E_INVAL;
        text = behind_scheme(text, ops);
        return take_host_port(ret, text, strlen(text), port);
}

int address_of_peer(const char *host, unsigned port, struct address *ret)
{
        const struct transport_ops *ops = transport_of(host);
        if (ops && !(ops->caps & TRANSPORT_HOSTS))
                return address_parse(host, ret);
        if (ops && !(ops->caps & TRANSPORT_PEERS))
                return SP_E_INVAL;
        host = behind_scheme(host, ops);
        size_t n = strcspn(host, "#");
        *ret = (struct address){ .ops = ops, .port = port };
        int r = take_host(ret, host, n);
        if (r < 0)
                return r;
        if (!ops)
                ret->ops = transport_of(loopback_scheme(ret->host));
        r = ret->ops->caps & TRANSPORT_ENCRYPTED ? take_key(ret, host + n) : 0;
        return !r && ret->shows_own ? SP_E_INVAL : r; /* it is not this user's server */
}

/* ---- writing -------------------------------------------------------------------------------- */

void address_put_peer(const char *host, const char *key, bool plain, char *ret, size_t size)
{
        const struct transport_ops *ops = transport_of(host);
        bool keyed = (!ops || ops->caps & TRANSPORT_HOSTS) && *key;
        snprintf(ret, size, "%s%s%s%s", plain && !ops && !keyed ? "tcp:" : "", host,
                 keyed ? "#" : "", keyed ? key : "");
}

static void put_place(const struct address *a, char *ret, size_t size)
{
        if (a->ops->caps & TRANSPORT_HOSTS)
                snprintf(ret, size, strchr(a->host, ':') ? "[%s]:%u" : "%s:%u", a->host, a->port);
        else
                snprintf(ret, size, "%s", a->host);
}

void address_put(const struct address *a, char ret[ADDRESS_MAX])
{
        char place[sizeof(a->host) + 16];
        put_place(a, place, sizeof(place));
        snprintf(ret, ADDRESS_MAX, "%s:%s%s%s%s", a->ops->name, place, *a->key ? "#" : "", a->key,
                 *a->key && a->shows_own ? "+" : "");
}

/* Write an address without its key. */
static void show(const struct address *a, char ret[ADDRESS_MAX])
{
        struct address keyless = *a;
        keyless.key[0] = 0;
        if (a->ops->caps & TRANSPORT_PEERS)
                put_place(a, ret, ADDRESS_MAX);
        else
                address_put(&keyless, ret);
}

void address_show(const char *text, char ret[ADDRESS_MAX])
{
        struct address a;
        if (address_parse(text, &a) < 0)
                snprintf(ret, ADDRESS_MAX, "%s", text);
        else
                show(&a, ret);
}

/* ---- use ------------------------------------------------------------------------------------ */

bool address_is_here(const struct address *a)
{
        return a->ops->caps & TRANSPORT_SAME_HOST ||
               (a->ops->caps & TRANSPORT_PEERS && loopback_host(a->host));
}

bool address_is_reached(const struct address *a)
{
        return a->ops->caps & TRANSPORT_PEERS && !loopback_host(a->host);
}

int address_connect(const struct address *a, int timeout_ms, struct conn **ret)
{
        char text[ADDRESS_MAX];
        address_put(a, text);
        return a->ops->connect ? a->ops->connect(text, timeout_ms, ret) : SP_E_INVAL;
}

int address_listen(const struct address *a, struct listener **ret)
{
        char text[ADDRESS_MAX];
        address_put(a, text);
        return a->ops->listen ? a->ops->listen(text, ret) : SP_E_INVAL;
}

static bool is_ip(const struct socket_address *a)
{
        enum socket_family family = socket_address_family(a);
        return family == SOCKET_IP4 || family == SOCKET_IP6;
}

int conn_reached(const struct conn *c, const char *text, char ret[ADDRESS_MAX])
{
        struct socket_address other;
        struct address a = { .ops = c->ops };
        if (!socket_other_address(c->fd, &other))
                return SP_E_LINK;
        if (!is_ip(&other))
                return snprintf(ret, ADDRESS_MAX, "%s", text) < ADDRESS_MAX ? 0 : SP_E_INVAL;
        if (!socket_address_text(&other, a.host, &a.port))
                return SP_E_LINK;
        address_put(&a, ret);
        return 0;
}

void conn_from(const struct conn *c, char ret[ADDRESS_MAX])
{
        struct socket_address other;
        struct address a = { .ops = &transport_tcp };
        unsigned uid;
        if (conn_user(c, &uid)) {
                snprintf(ret, ADDRESS_MAX, "uid %u", uid);
        } else if (!socket_other_address(c->fd, &other)) {
                snprintf(ret, ADDRESS_MAX, "unknown");
        } else if (socket_address_family(&other) == SOCKET_VM) {
                uint32_t machine, port;
                socket_address_vm(&other, &machine, &port);
                a = (struct address){ .ops = &transport_vsock, .port = port };
                snprintf(a.host, sizeof(a.host), "%u", machine);
                show(&a, ret);
        } else if (socket_address_text(&other, a.host, &a.port)) {
                show(&a, ret);
        } else {
                snprintf(ret, ADDRESS_MAX, "unknown");
        }
}

bool conn_origin(const struct conn *c, uint8_t net[16])
{
        struct socket_address a;
        struct ip ip;
        memset(net, 0, 16);
        if (!socket_other_address(c->fd, &a))
                return false;
        if (socket_address_ip(&a, &ip)) {
                memcpy(net, ip.bytes, ip.size == IP_V4 ? 4 : 8);
        } else if (socket_address_family(&a) == SOCKET_VM) {
                uint32_t machine, port;
                socket_address_vm(&a, &machine, &port);
                memcpy(net + 8, &machine, 4); /* apart from addresses of IP */
        }
        return loopback_address(socket_address_raw(&a));
}
