#include "config/server_spec.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/loopback.h"
#include "base/mem.h"
#include "config/entries.h"

enum { DEVICE_MAX = 4095 };

void server_spec_fini(struct server_spec *s)
{
        mem_free(s->name);
        mem_free(s->address);
        mem_free(s->backend);
        mem_free(s->devices);
        mem_free(s->device_list);
        mem_free(s->peer_host);
}

void config_servers_free(struct server_spec *servers, size_t count)
{
        for (size_t i = 0; servers && i < count; i++)
                server_spec_fini(&servers[i]);
        mem_free(servers);
}

static char *text_of(const char *p, size_t n)
{
        char *s = mem_alloc(n + 1);
        if (s) {
                memcpy(s, p, n);
                s[n] = 0;
        }
        return s;
}

/* "host", "host:port", "[v6]", "[v6]:port" of `n` bytes. False: neither. */
static bool split_host(const char *p, size_t n, char host[256], unsigned *ret_port)
{
        const char *end = p + n, *colon = NULL;
        if (n && p[0] == '[') {
                const char *close = memchr(p, ']', n);
                if (!close || close - p < 2)
                        return false;
                if (close + 1 < end && close[1] != ':')
                        return false;
                colon = close + 1 < end ? close + 1 : NULL;
        } else {
                colon = memchr(p, ':', n);
        }
        size_t len = colon ? (size_t)(colon - p) : n;
        if (!len || len >= 256)
                return false;
        for (size_t i = 0; i < len; i++)
                if (!isalnum((unsigned char)p[i]) && !strchr("-._[]:%*", p[i]))
                        return false;
        *ret_port = CONFIG_PORT;
        if (colon) {
                char digits[8];
                uint64_t port;
                size_t k = (size_t)(end - colon - 1);
                if (k >= sizeof(digits))
                        return false;
                memcpy(digits, colon + 1, k);
                digits[k] = 0;
                if (!config_parse_number(digits, &port) || port < 1 || port > 65535)
                        return false;
                *ret_port = (unsigned)port;
        }
        memcpy(host, p, len);
        host[len] = 0;
        return true;
}

/* "0,2" of `n` bytes. */
static int parse_devices(struct server_spec *s, const char *p, size_t n)
{
        s->devices = text_of(p, n);
        s->device_list = mem_alloc((n + 1) * sizeof(*s->device_list));
        if (!s->devices || !s->device_list)
                return SP_E_NOMEM;
        for (size_t i = 0; i < n;) {
                unsigned v = 0;
                size_t from = i;
                for (; i < n && isdigit((unsigned char)p[i]) && v <= DEVICE_MAX; i++)
                        v = v * 10 + (unsigned)(p[i] - '0');
                if (i == from || v > DEVICE_MAX || (i < n && p[i] != ',') || (i < n && i + 1 == n))
                        return SP_E_INVAL;
                for (size_t k = 0; k < s->device_count; k++)
                        if (s->device_list[k] == v)
                                return SP_E_INVAL;
                s->device_list[s->device_count++] = v;
                i++;
        }
        return s->device_count ? 0 : SP_E_INVAL;
}

/* `scheme`: "tcp:", "tls:" or NULL, when the host decides. */
static char *tcp_address(const char *scheme, const char *host, unsigned port)
{
        char text[300];
        if (!scheme)
                scheme = loopback_scheme(host);
        snprintf(text, sizeof(text), "%s%s:%u", scheme, host, port);
        return mem_strdup(text);
}

/* The scheme in front of a host; NULL: none. */
static const char *find_scheme(const char *p, size_t n)
{
        static const char *const all[] = { "tcp:", "tls:", "vsock:", "vsock-plain:" };
        for (size_t i = 0; i < array_size(all); i++)
                if (n > strlen(all[i]) && !memcmp(p, all[i], strlen(all[i])))
                        return all[i];
        return NULL;
}

/* A virtual machine's or its host's number: other servers reach it by another address or not at all. */
static bool is_vsock(const char *scheme)
{
        return scheme && !strncmp(scheme, "vsock", 5);
}

/* A host without the brackets of IPv6, as messages show it. */
static char *bare_host(const char *host)
{
        size_t n = strlen(host);
        return host[0] == '[' ? text_of(host + 1, n - 2) : text_of(host, n);
}

static int parse_peer(struct server_spec *s, const char *p, size_t n)
{
        char host[256];
        s->peer_given = true;
        if (n > 5 && !memcmp(p, "unix:", 5)) {
                s->peer_host = text_of(p, n);
                s->peer_port = 0;
        } else {
                if (is_vsock(find_scheme(p, n)) || !split_host(p, n, host, &s->peer_port))
                        return SP_E_INVAL;
                s->peer_host = bare_host(host);
        }
        return s->peer_host ? 0 : SP_E_NOMEM;
}

static int parse_in_process(struct server_spec *s, const char *p, size_t n)
{
        const char *backend = "native";
        size_t prefix = strlen("in-process");
        if (n > prefix) {
                backend = p + prefix + 1;
                n -= prefix + 1;
                if (!((n == 6 && !memcmp(backend, "native", 6)) ||
                      (n == 9 && !memcmp(backend, "reference", 9)) ||
                      (n == 6 && !memcmp(backend, "almaif", 6)) ||
                      (n == 5 && !memcmp(backend, "media", 5))))
                        return SP_E_INVAL;
        } else {
                n = strlen(backend);
        }
        s->in_process = true;
        s->backend = text_of(backend, n);
        return s->backend ? 0 : SP_E_NOMEM;
}

/* The server's place, without devices and peer host. */
static int parse_place(struct server_spec *s, const char *p, size_t n, unsigned *ret_port)
{
        static const char local[] = "in-process";
        size_t k = sizeof(local) - 1;
        char host[256];
        s->name = text_of(p, n);
        if (!s->name)
                return SP_E_NOMEM;
        *ret_port = 0;
        if (n >= k && !memcmp(p, local, k) && (n == k || p[k] == ':'))
                return parse_in_process(s, p, n);
        if (n > 5 && !memcmp(p, "unix:", 5)) {
                if (p[5] != '/')
                        return SP_E_INVAL;
                s->address = text_of(p, n);
                return s->address ? 0 : SP_E_NOMEM;
        }
        const char *scheme = find_scheme(p, n);
        size_t skip = scheme ? strlen(scheme) : 0;
        if (!split_host(p + skip, n - skip, host, ret_port) ||
            (is_vsock(scheme) && host[strspn(host, "0123456789")]))
                return SP_E_INVAL;
        s->address = tcp_address(scheme, host, *ret_port);
        return s->address ? 0 : SP_E_NOMEM;
}

/* Without another setting, servers reach this server where the client does. */
static int default_peer(struct server_spec *s, unsigned port)
{
        if (s->in_process || s->peer_host || is_vsock(find_scheme(s->name, strlen(s->name))))
                return 0;
        if (!port) {
                s->peer_host = mem_strdup(s->address);
        } else {
                const char *host = strchr(s->address, ':') + 1;
                char *text = text_of(host, (size_t)(strrchr(host, ':') - host));
                char *bare = text ? bare_host(text) : NULL;
                const char *scheme = find_scheme(s->name, strlen(s->name));
                if (bare && scheme) { /* the scheme holds between servers, too */
                        size_t size = strlen(scheme) + strlen(bare) + 1;
                        s->peer_host = mem_alloc(size);
                        if (s->peer_host)
                                snprintf(s->peer_host, size, "%s%s", scheme, bare);
                        mem_free(bare);
                } else {
                        s->peer_host = bare;
                }
                mem_free(text);
                s->peer_port = port;
        }
        return s->peer_host ? 0 : SP_E_NOMEM;
}

/* Find the device list. In a socket's path only a last component of digits and commas is one. */
static const char *find_devices(const char *p, size_t n)
{
        if (n < 5 || memcmp(p, "unix:", 5))
                return memchr(p, '/', n);
        const char *slash = memrchr(p, '/', n);
        if (!slash || slash == p + 5 || slash + 1 == p + n)
                return NULL;
        for (const char *c = slash + 1; c < p + n; c++)
                if (!isdigit((unsigned char)*c) && *c != ',')
                        return NULL;
        return slash;
}

static int parse_spec(struct server_spec *s, const char *p, size_t n)
{
        unsigned port;
        const char *hash = memchr(p, '#', n);
        size_t main = hash ? (size_t)(hash - p) : n;
        const char *slash = find_devices(p, main);
        int r = parse_place(s, p, slash ? (size_t)(slash - p) : main, &port);
        if (!r && slash)
                r = parse_devices(s, slash + 1, (size_t)(p + main - slash - 1));
        if (!r && hash)
                r = s->in_process ? SP_E_INVAL
                                  : parse_peer(s, hash + 1, (size_t)(p + n - hash - 1));
        return r ? r : default_peer(s, port);
}

int server_specs_add(struct server_specs *all, const char *p, size_t n, const char *origin,
                     char **ret_error)
{
        if (all->count == CONFIG_SERVERS_MAX)
                return config_fail(ret_error, "%s: more than %d servers", origin,
                                   CONFIG_SERVERS_MAX);
        struct server_spec *more = mem_realloc(all->specs, (all->count + 1) * sizeof(*all->specs));
        if (!more)
                return SP_E_NOMEM;
        all->specs = more;
        struct server_spec *s = &more[all->count];
        *s = (struct server_spec){ 0 };
        int r = parse_spec(s, p, n);
        if (!r) {
                s->accelerators = s->in_process;
                for (size_t i = 0; i < all->count; i++)
                        s->accelerators &= !all->specs[i].accelerators;
                all->count++;
                return 0;
        }
        server_spec_fini(s);
        if (r != SP_E_INVAL)
                return r;
        return config_fail(
                ret_error,
                "%s: '%.*s' is not a server: it takes host[:port][/device,...][#peer-host], "
                "unix:/path, vsock:CID[:port] or in-process, separated by blanks; tls: or tcp: in front "
                "of host says whether the link is encrypted",
                origin, (int)n, p);
}

int config_servers_parse(const char *text, const char *origin, struct server_spec **ret,
                         size_t *ret_count, char **ret_error)
{
        struct server_specs all = { 0 };
        int r = 0;
        for (const char *p = text + strspn(text, " \t\n"); *p && !r; p += strspn(p, " \t\n")) {
                size_t n = strcspn(p, " \t\n");
                r = server_specs_add(&all, p, n, origin, ret_error);
                p += n;
        }
        if (!r && !all.count)
                r = config_fail(ret_error, "%s: no server is named", origin);
        if (r < 0) {
                config_servers_free(all.specs, all.count);
                return r;
        }
        *ret = all.specs;
        *ret_count = all.count;
        return 0;
}
