#include "base/config.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/loopback.h"
#include "base/mem.h"

enum { DEVICE_MAX = 4095, POCL_SERVERS_MAX = 256 };

static const struct config_entry entries[] = {
#define CONFIG(side_, id, name_, value_, kind_, fallback_, lo_, hi_, allowed_, doc_) \
        { .side = CONFIG_##side_,                                                    \
          .name = name_,                                                             \
          .value = value_,                                                           \
          .kind = CONFIG_##kind_,                                                    \
          .fallback = fallback_,                                                     \
          .lo = lo_,                                                                 \
          .hi = hi_,                                                                 \
          .allowed = allowed_,                                                       \
          .doc = doc_ },
#include "base/config.def"
};

const struct config_entry *config_entry(enum config_id id)
{
        return &entries[id];
}

/* ---- errors --------------------------------------------------------------------------------- */

/* SP_E_INVAL with a text, or SP_E_NOMEM. */
__attribute__((format(printf, 2, 3))) static int fail(char **ret_error, const char *fmt, ...)
{
        char text[1024];
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(text, sizeof(text), fmt, ap);
        va_end(ap);
        char *copy = mem_strdup(text);
        if (!copy)
                return SP_E_NOMEM;
        *ret_error = copy;
        return SP_E_INVAL;
}

/* ---- values --------------------------------------------------------------------------------- */

void config_allowed(enum config_id id, char *text, size_t size)
{
        const struct config_entry *e = &entries[id];
        switch (e->kind) {
        case CONFIG_NUMBER:
                snprintf(text, size, "a number from %llu to %llu", (unsigned long long)e->lo,
                         (unsigned long long)e->hi);
                break;
        case CONFIG_CHOICE: {
                size_t n = (size_t)snprintf(text, size, "one of ");
                for (const char *p = e->allowed; *p && n + 3 < size; p++) {
                        if (*p == '|')
                                text[n++] = ',';
                        text[n++] = *p == '|' ? ' ' : *p;
                        text[n] = 0;
                }
                break;
        }
        case CONFIG_FLAG:
                snprintf(text, size, "0 or 1");
                break;
        default:
                snprintf(text, size, "a text");
        }
}

static bool parse_number(const char *text, uint64_t *ret)
{
        size_t n = strspn(text, "0123456789");
        if (!n || text[n] || n > 18)
                return false;
        *ret = strtoull(text, NULL, 10);
        return true;
}

static bool parse_choice(const char *allowed, const char *text, uint64_t *ret)
{
        size_t len = strlen(text);
        uint64_t i = 0;
        for (const char *word = allowed; word; i++) {
                const char *end = strchr(word, '|');
                size_t n = end ? (size_t)(end - word) : strlen(word);
                if (n == len && !memcmp(word, text, n)) {
                        *ret = i;
                        return true;
                }
                word = end ? end + 1 : NULL;
        }
        return false;
}

static int parse_value(enum config_id id, const char *text, uint64_t *ret, char **ret_error)
{
        const struct config_entry *e = &entries[id];
        bool ok = true;
        *ret = 0;
        switch (e->kind) {
        case CONFIG_NUMBER:
                ok = parse_number(text, ret) && *ret >= e->lo && *ret <= e->hi;
                break;
        case CONFIG_CHOICE:
                ok = parse_choice(e->allowed, text, ret);
                break;
        case CONFIG_FLAG:
                ok = parse_choice("0|1", text, ret);
                break;
        default:
                break;
        }
        if (ok)
                return 0;
        char allowed[256];
        config_allowed(id, allowed, sizeof(allowed));
        return fail(ret_error, "%s: '%s' is not allowed: it takes %s", e->name, text, allowed);
}

int config_check(enum config_id id, const char *text, char **ret_error)
{
        uint64_t v;
        return parse_value(id, text, &v, ret_error);
}

bool config_is_set(enum config_id id)
{
        const char *v = getenv(entries[id].name);
        return v && *v;
}

const char *config_text(enum config_id id)
{
        return config_is_set(id) ? getenv(entries[id].name) : entries[id].fallback;
}

int config_number(enum config_id id, uint64_t *ret, char **ret_error)
{
        uint64_t v;
        int r = parse_value(id, config_text(id), &v, ret_error);
        if (!r)
                *ret = v;
        return r;
}

/* ---- servers -------------------------------------------------------------------------------- */

struct servers {
        struct server_spec *specs;
        size_t count;
};

static void spec_fini(struct server_spec *s)
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
                spec_fini(&servers[i]);
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
                if (!parse_number(digits, &port) || port < 1 || port > 65535)
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
                      (n == 6 && !memcmp(backend, "almaif", 6))))
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

static int add_spec(struct servers *all, const char *p, size_t n, const char *origin,
                    char **ret_error)
{
        if (all->count == CONFIG_SERVERS_MAX)
                return fail(ret_error, "%s: more than %d servers", origin, CONFIG_SERVERS_MAX);
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
        spec_fini(s);
        if (r != SP_E_INVAL)
                return r;
        return fail(ret_error,
                    "%s: '%.*s' is not a server: it takes host[:port][/device,...][#peer-host], "
                    "unix:/path, vsock:CID[:port] or in-process, separated by blanks; tls: or tcp: "
                    "in front of host says whether the link is encrypted",
                    origin, (int)n, p);
}

int config_servers_parse(const char *text, const char *origin, struct server_spec **ret,
                         size_t *ret_count, char **ret_error)
{
        struct servers all = { 0 };
        int r = 0;
        for (const char *p = text + strspn(text, " \t\n"); *p && !r; p += strspn(p, " \t\n")) {
                size_t n = strcspn(p, " \t\n");
                r = add_spec(&all, p, n, origin, ret_error);
                p += n;
        }
        if (!r && !all.count)
                r = fail(ret_error, "%s: no server is named", origin);
        if (r < 0) {
                config_servers_free(all.specs, all.count);
                return r;
        }
        *ret = all.specs;
        *ret_count = all.count;
        return 0;
}

/* ---- PoCL's variables ----------------------------------------------------------------------- */

/* Give the device of `s`, which names one, to an earlier entry for the same host. */
static int pocl_merge(struct servers *all)
{
        struct server_spec *s = &all->specs[all->count - 1];
        for (size_t i = 0; i + 1 < all->count; i++) {
                struct server_spec *to = &all->specs[i];
                if (strcmp(to->address, s->address))
                        continue;
                size_t n = strlen(to->devices) + strlen(s->devices) + 2;
                char *devices = mem_alloc(n);
                unsigned *list =
                        mem_realloc(to->device_list, (to->device_count + 1) * sizeof(*list));
                if (list)
                        to->device_list = list;
                if (!devices || !list) {
                        mem_free(devices);
                        return SP_E_NOMEM;
                }
                snprintf(devices, n, "%s,%s", to->devices, s->devices);
                mem_free(to->devices);
                to->devices = devices;
                list[to->device_count++] = s->device_list[0];
                spec_fini(s);
                all->count--;
                return 0;
        }
        return 0;
}

/* One "host[:port]/index[#peer-host]". */
static int pocl_add(struct servers *all, const char *name, const char *text, char **ret_error)
{
        int r = add_spec(all, text, strlen(text), name, ret_error);
        if (r < 0)
                return r;
        struct server_spec *s = &all->specs[all->count - 1];
        if (s->in_process || s->device_count != 1)
                return fail(ret_error,
                            "%s: '%s' is not a device: it takes host[:port]/index[#peer-host]",
                            name, text);
        return pocl_merge(all);
}

/* POCL_REMOTE0_PARAMETERS and so on up to the first that is unset; none: 0 servers. */
static int pocl_servers(struct server_spec **ret, size_t *ret_count, char **ret_error)
{
        struct servers all = { 0 };
        int r = 0;
        for (unsigned i = 0; i < POCL_SERVERS_MAX && !r; i++) {
                char name[48];
                snprintf(name, sizeof(name), "POCL_REMOTE%u_PARAMETERS", i);
                const char *text = getenv(name);
                if (!text || !*text)
                        break;
                r = pocl_add(&all, name, text, ret_error);
        }
        if (r < 0) {
                config_servers_free(all.specs, all.count);
                return r;
        }
        *ret = all.specs;
        *ret_count = all.count;
        return 0;
}

static int configured_servers(struct server_spec **ret, size_t *ret_count, char **ret_error)
{
        if (!config_is_set(CONFIG_servers)) {
                struct server_spec *specs;
                size_t count;
                int r = pocl_servers(&specs, &count, ret_error);
                if (r < 0)
                        return r;
                if (count) {
                        *ret = specs;
                        *ret_count = count;
                        return 0;
                }
        }
        int r = config_servers_parse(config_text(CONFIG_servers), entries[CONFIG_servers].name, ret,
                                     ret_count, ret_error);
        for (size_t i = 0; !r && i < *ret_count; i++)
                (*ret)[i].implied = !config_is_set(CONFIG_servers);
        return r;
}

/* Accelerators are devices of this process. Without an in-process server they get one of their own. */
int config_servers(struct server_spec **ret, size_t *ret_count, char **ret_error)
{
        static const char alone[] = "in-process:almaif";
        struct servers all;
        char *accelerators = NULL;
        bool here = false;
        int r = configured_servers(&all.specs, &all.count, ret_error);
        if (r < 0)
                return r;
        for (size_t i = 0; i < all.count; i++)
                here |= all.specs[i].in_process;
        r = config_accelerators(&accelerators, ret_error);
        if (!r && accelerators && !here)
                r = add_spec(&all, alone, sizeof(alone) - 1, "SPANCL_ALMAIF", ret_error);
        mem_free(accelerators);
        if (r < 0) {
                config_servers_free(all.specs, all.count);
                return r;
        }
        *ret = all.specs;
        *ret_count = all.count;
        return 0;
}

int config_on_loss(uint64_t *ret_ns, char **ret_error)
{
        const char *text = config_text(CONFIG_on_loss);
        uint64_t seconds;
        *ret_ns = 0;
        if (!strcmp(text, "fail"))
                return 0;
        if (!strcmp(text, "wait"))
                *ret_ns = UINT64_MAX;
        else if (!strncmp(text, "wait:", 5) && parse_number(text + 5, &seconds) && seconds <= 86400)
                *ret_ns = seconds * 1000000000;
        else
                return fail(ret_error,
                            "%s: '%s' is not allowed: it takes fail, wait or wait:SECONDS",
                            entries[CONFIG_on_loss].name, text);
        return 0;
}

/* ---- options -------------------------------------------------------------------------------- */

static int add_to_list(struct config_options *o, enum config_id id, const char *value)
{
        void *more = mem_realloc(o->list, (o->list_count + 1) * sizeof(*o->list));
        if (!more)
                return SP_E_NOMEM;
        o->list = more;
        o->list[o->list_count].id = id;
        o->list[o->list_count].value = value;
        o->list_count++;
        return 0;
}

/* The option that `arg` begins with; CONFIG_COUNT if none. *ret_value: behind '=', or NULL. */
static enum config_id find_option(const char *arg, const char **ret_value)
{
        size_t n = strcspn(arg, "=");
        *ret_value = arg[n] ? arg + n + 1 : NULL;
        for (enum config_id id = 0; id < CONFIG_COUNT; id++)
                if (entries[id].side == CONFIG_SERVER && strlen(entries[id].name) == n &&
                    !memcmp(entries[id].name, arg, n))
                        return id;
        return CONFIG_COUNT;
}

int config_options_parse(int argc, char **argv, struct config_options *ret, char **ret_error)
{
        *ret = (struct config_options){ 0 };
        for (int i = 1; i < argc; i++) {
                const char *value;
                enum config_id id = find_option(argv[i], &value);
                if (id == CONFIG_COUNT)
                        return fail(ret_error, "unknown option '%s'; --help lists all", argv[i]);
                if (entries[id].kind == CONFIG_FLAG) {
                        if (value)
                                return fail(ret_error, "%s takes no value", entries[id].name);
                        value = "1";
                } else if (!value) {
                        if (i + 1 == argc)
                                return fail(ret_error, "%s needs a value: %s", entries[id].name,
                                            entries[id].value);
                        value = argv[++i];
                }
                int r = config_check(id, value, ret_error);
                if (!r && entries[id].kind == CONFIG_LIST)
                        r = add_to_list(ret, id, value);
                if (r < 0)
                        return r;
                ret->values[id] = value;
        }
        return 0;
}

void config_options_fini(struct config_options *o)
{
        mem_free(o->list);
        *o = (struct config_options){ 0 };
}

const char *config_option_text(const struct config_options *o, enum config_id id)
{
        return o->values[id] ? o->values[id] : entries[id].fallback;
}

uint64_t config_option_number(const struct config_options *o, enum config_id id)
{
        const struct config_entry *e = &entries[id];
        const char *text = config_option_text(o, id);
        uint64_t v = 0;
        if (e->kind == CONFIG_CHOICE)
                (void)parse_choice(e->allowed, text, &v);
        else
                (void)parse_number(text, &v);
        return v;
}

bool config_option_flag(const struct config_options *o, enum config_id id)
{
        return config_option_number(o, id) != 0;
}

/* ---- both ----------------------------------------------------------------------------------- */

const char *config_cache_folder(const char *given, char *path, size_t size)
{
        const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        int n;
        if (*given)
                return given;
        if (base && *base == '/')
                n = snprintf(path, size, "%s/spancl", base);
        else if (home && *home == '/')
                n = snprintf(path, size, "%s/.cache/spancl", home);
        else
                return NULL;
        return n > 0 && (size_t)n < size ? path : NULL;
}

/* ---- documentation -------------------------------------------------------------------------- */

static void document_side(enum config_side side, void (*out)(void *user, const char *text),
                          void *user)
{
        for (enum config_id id = 0; id < CONFIG_COUNT; id++) {
                const struct config_entry *e = &entries[id];
                if (e->side != side)
                        continue;
                char line[512], allowed[256];
                bool valued = *e->value && side == CONFIG_SERVER;
                snprintf(line, sizeof(line), "\n### `%s%s%s`\n\n", e->name, valued ? " " : "",
                         valued ? e->value : "");
                out(user, line);
                out(user, e->doc);
                out(user, "\n");
                if (e->kind == CONFIG_NUMBER || e->kind == CONFIG_CHOICE) {
                        config_allowed(id, allowed, sizeof(allowed));
                        snprintf(line, sizeof(line), "\nAllowed: %s.\n", allowed);
                        out(user, line);
                }
                if (*e->fallback && e->kind != CONFIG_FLAG) {
                        snprintf(line, sizeof(line), "\nDefault: `%s`.\n", e->fallback);
                        out(user, line);
                }
        }
}

const struct config_note config_pocl[] = {
        { "POCL_REMOTE<n>_PARAMETERS",
          "PoCL's variables, for n = 0, 1, ... up to the first that is unset: "
          "`host[:port]/index[#peer-host]`. They count when SPANCL_SERVERS is unset. Entries "
          "for the same host become one server with several devices; without `:port` it is "
          "7777, not PoCL's own port." },
        { "POCL_ALMAIF<n>_PARAMETERS",
          "The same for accelerators, when SPANCL_ALMAIF is unset: `ADDRESS,FILE,KERNEL,...`, a "
          "physical address, a name whose `.img` file is loaded if there is one, and the numbers "
          "of kernels. Of PoCL's words for other kinds, `0xE,KERNEL,...` is an emulator in this "
          "process (`emu:`), and `0xA,FILE,KERNEL,...` the XRT kernel of that name in "
          "`FILE.xclbin` on the first card. 0xB (OpenASIP's simulator), 0xF (a database of "
          "bitstreams) and POCL_ALMAIF_EXTERNALREGION are refused with a sentence that says what "
          "to write instead." },
        { NULL, NULL },
};

const struct config_note config_commands[] = {
        { "pair [--keys DIR]",
          "Shows a code with which a client of another host becomes known here (spancl pair)." },
        { "pair --rotate [--keys DIR]",
          "Makes a new key for this server, which those who know the old one believe." },
        { "sandbox-test [OPTIONS]",
          "Tries to leave the sandbox that a session has on this host with these options, aiming at "
          "files and processes of its own. Exit status 1: an attempt succeeded." },
        { NULL, NULL },
};

void config_document(void (*out)(void *user, const char *text), void *user)
{
        out(user, "# Configuration\n\n"
                  "Generated by `spancl config --markdown`; the source is src/base/config.def.\n\n"
                  "## Environment variables of programs that use SpanCL\n");
        document_side(CONFIG_CLIENT, out, user);
        for (const struct config_note *n = config_pocl; n->name; n++) {
                out(user, "\n### `");
                out(user, n->name);
                out(user, "`\n\n");
                out(user, n->doc);
                out(user, "\n");
        }
        out(user, "\n## Options of spancld\n");
        document_side(CONFIG_SERVER, out, user);
}
