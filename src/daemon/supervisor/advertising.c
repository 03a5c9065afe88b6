#include "daemon/supervisor/advertising.h"

#include <CL/cl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/installed.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/supervisor/workers.h"
#include "discover/dht_record.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/host.h"
#include "os/net/interface.h"
#include "os/net/socket.h"
#include "os/poll.h"
#include "os/random.h"
#include "proto/wire.h"
#include "transport/address.h"

enum {
        AGAIN_MS = 5000,   /* after the program's end */
        PUBLISH_MS = 2000, /* between changes: each is a packet to the whole network */
        STOP_MS = 3000,    /* for a program that tells others of its end */
        ADDRESSES_MAX = 1024,
        SETTINGS_MAX = 4096, /* of the options of the hash table */
};

struct place {
        unsigned port;
        char addresses[ADDRESSES_MAX]; /* separated by commas; "*": all of this host's */
};

static bool publish_mdns(struct supervisor *s, struct advertiser *a, const struct place *at);
static bool publish_dht(struct supervisor *s, struct advertiser *a, const struct place *at);
static bool begin_dht(struct supervisor *s, struct advertiser *a);
static const char *obstacle_of_dht(const struct supervisor *s);

static const struct kind {
        const char *program, *package;
        unsigned renew_s; /* between two records that are the same; 0: needless */
        bool load;        /* it hears of each change of the load */
        bool loopback;    /* it can publish a server of loopback to its own host */
        /* The reason for which it can't publish this server; NULL: there is none, as without this function. */
        const char *(*obstacle)(const struct supervisor *s);
        bool (*begin)(struct supervisor *s, struct advertiser *a); /* NULL: nothing to do */
        /* Write the whole record. False: the program does not read now, or the key can't sign. */
        bool (*publish)(struct supervisor *s, struct advertiser *a, const struct place *at);
} kinds[ADVERTISERS] = {
        [ADVERTISER_MDNS] = { .program = "advertise-mdns",
                              .package = "spancl-discovery",
                              .load = true,
                              .loopback = true,
                              .publish = publish_mdns },
        [ADVERTISER_DHT] = { .program = "advertise-dht",
                             .package = "spancl-discovery-dht",
                             .renew_s = DHT_PUBLISH_S,
                             .obstacle = obstacle_of_dht,
                             .begin = begin_dht,
                             .publish = publish_dht },
};

/* The choices of --advertise, in the order of config.def. */
static const bool chosen[][ADVERTISERS] = {
        { false, false },           [1][ADVERTISER_DHT] = true,  [2][ADVERTISER_MDNS] = true,
        [2][ADVERTISER_DHT] = true, [3][ADVERTISER_MDNS] = true,
};

static const struct kind *kind_of(const struct supervisor *s, const struct advertiser *a)
{
        return &kinds[a - s->advertisers];
}

static bool is_wanted(const struct supervisor *s, const struct advertiser *a)
{
        return !s->end.stopping && !s->end.draining &&
               chosen[config_option_number(s->options, CONFIG_advertise)][a - s->advertisers];
}

static void close_input(struct advertiser *a)
{
        if (a->process.control >= 0)
                (void)file_close(a->process.control);
        a->process.control = -1;
}

/* Return true if the listener has an address of IP, beyond loopback or not as wanted. */
static bool has_address(const struct listening *l, bool loopback, struct address *ret)
{
        return address_parse(l->listener->address, ret) == 0 && ret->ops->caps & TRANSPORT_PEERS &&
               address_is_reached(ret) != loopback;
}

/* Find the addresses with the first port that other hosts reach, or else with the first port of loopback. False:
 * there is none. */
static bool find_place(const struct supervisor *s, bool or_loopback, struct place *ret)
{
        size_t n = 0;
        *ret = (struct place){ 0 };
        for (int loopback = 0; loopback <= or_loopback && !ret->port; loopback++) {
                for (size_t i = 0; i < s->listeners.count; i++) {
                        const struct listening *l = &s->listeners.all[i];
                        struct address at;
                        if (!has_address(l, loopback, &at) || (ret->port && at.port != ret->port) ||
                            n + sizeof(at.host) + 2 > ADDRESSES_MAX)
                                continue;
                        ret->port = at.port;
                        bool both = !strcmp(at.host, "::") && socket_takes_both(l->listener->fd);
                        n += (size_t)sprintf(ret->addresses + n, "%s%s", n ? "," : "",
                                             both ? "*" : at.host);
                }
        }
        return ret->port;
}

/* Write the types of the devices as a TXT record has them; "": a worker has yet to tell them. */
static void put_types(const struct supervisor *s, char ret[TXT_TYPES_MAX + 1])
{
        static const struct {
                cl_device_type type;
                const char *name;
        } all[] = { { CL_DEVICE_TYPE_CPU, "cpu" },
                    { CL_DEVICE_TYPE_GPU, "gpu" },
                    { CL_DEVICE_TYPE_ACCELERATOR, "accelerator" },
                    { CL_DEVICE_TYPE_CUSTOM, "custom" } };
        size_t n = 0;
        *ret = 0;
        for (size_t i = 0; i < array_size(all); i++)
                if (s->descriptions.types & all[i].type)
                        n += (size_t)sprintf(ret + n, "%s%s", n ? "," : "", all[i].name);
}

/* ---- multicast DNS -------------------------------------------------------------------------- */

static bool publish_mdns(struct supervisor *s, struct advertiser *a, const struct place *at)
{
        char line[ADDRESSES_MAX + 256];
        const char *key = s->gate.identity;
        char types[TXT_TYPES_MAX + 1];
        put_types(s, types);
        int n = snprintf(line, sizeof(line), "%u %s id=%s v=%u%s%s%s%s load=%u\n", at->port,
                         at->addresses, a->id, WIRE_VERSION, *types ? " types=" : "", types,
                         *key ? " key=" : "", key, (unsigned)workers_count(s, WORKER_BUSY));
        return file_write_all(a->process.control, line, (size_t)n);
}

/* ---- a distributed hash table --------------------------------------------------------------- */

static void wipe(char *pem)
{
        explicit_bzero(pem, strlen(pem));
        mem_free(pem);
}

/* Read the server's identity. NULL: it can't sign; *ret_crypto is the module. The caller wipes it. */
static char *read_identity(const struct supervisor *s, const struct crypto_ops **ret_crypto)
{
        uint8_t public[CRYPTO_PUBLIC];
        char text[KEYS_TEXT_MAX], *pem;
        const struct crypto_ops *crypto = tls_crypto(text);
        if (!crypto || keys_read(s->gate.folder, KEYS_IDENTITY, &pem, text) < 0)
                return NULL;
        *ret_crypto = crypto;
        if (crypto->identity_public(pem, public))
                return pem;
        wipe(pem);
        return NULL;
}

static const char *obstacle_of_dht(const struct supervisor *s)
{
        const struct crypto_ops *crypto;
        const char *bootstrap = config_option_text(s->options, CONFIG_server_dht_bootstrap);
        const char *key = config_option_text(s->options, CONFIG_server_dht_key);
        if (strpbrk(bootstrap, " \t\n") || strchr(key, '\n') ||
            strlen(bootstrap) + strlen(key) > SETTINGS_MAX)
                return "--dht-bootstrap or --dht-key is too long or has a blank";
        if (!*s->gate.identity)
                return "--advertise=dht: the server has no key to sign its record with: run spancld pair";
        char *pem = read_identity(s, &crypto);
        if (!pem)
                return "--advertise=dht: the server's key can't sign records: it is not of Ed25519";
        wipe(pem);
        return NULL;
}

static bool begin_dht(struct supervisor *s, struct advertiser *a)
{
        char line[SETTINGS_MAX + 32];
        const char *bootstrap = config_option_text(s->options, CONFIG_server_dht_bootstrap);
        int n = snprintf(line, sizeof(line), "%u %s %s\n",
                         (unsigned)config_option_number(s->options, CONFIG_server_dht_port),
                         *bootstrap ? bootstrap : "-",
                         config_option_text(s->options, CONFIG_server_dht_key));
        return file_write_all(a->process.control, line, (size_t)n);
}

static void add_address(void *found, const struct ip *ip)
{
        char text[IP_TEXT_MAX];
        ip_text(ip, text);
        found_add_address(found, text);
}

static void fill_record(const struct supervisor *s, const struct place *at, struct dht_record *ret)
{
        char copy[ADDRESSES_MAX], *rest;
        *ret = (struct dht_record){
                .at_ms = clock_wall_ns() / 1000000,
                .found = { .port = at->port,
                           .txt = { .has_protocol = true,
                                    .protocol = WIRE_VERSION,
                                    .has_load = true,
                                    .load = (uint32_t)workers_count(s, WORKER_BUSY) } },
        };
        put_types(s, ret->found.txt.types);
        host_short_name(ret->name, sizeof(ret->name), "spancld");
        strcpy(copy, at->addresses);
        for (const char *host = strtok_r(copy, ",", &rest); host;
             host = strtok_r(NULL, ",", &rest)) {
                if (!strcmp(host, "*"))
                        interface_each_address(0, add_address, &ret->found);
                else if (!strcmp(host, "::"))
                        interface_each_address(IP_V6, add_address, &ret->found);
                else if (!strcmp(host, "0.0.0.0"))
                        interface_each_address(IP_V4, add_address, &ret->found);
                else
                        found_add_address(&ret->found, host);
        }
}

/* Add a signed record in hexadecimal digits to the line. False: the key can't sign it. */
static bool put_record(const struct dht_record *r, const struct crypto_ops *crypto, const char *pem,
                       char **at)
{
        uint8_t value[DHT_VALUE_MAX];
        size_t size = dht_record_write(r, crypto, pem, value);
        for (size_t i = 0; i < size; i++)
                *at += sprintf(*at, "%02x", value[i]);
        return size;
}

static bool publish_dht(struct supervisor *s, struct advertiser *a, const struct place *at)
{
        char line[4 * DHT_VALUE_MAX + 4], *end = line;
        const struct crypto_ops *crypto;
        struct dht_record r;
        char *pem = read_identity(s, &crypto);
        if (!pem)
                return false;
        fill_record(s, at, &r);
        bool good = put_record(&r, crypto, pem, &end);
        *end++ = ' ';
        r.gone = true;
        good = good && put_record(&r, crypto, pem, &end);
        *end++ = '\n';
        wipe(pem);
        return good && file_write_all(a->process.control, line, (size_t)(end - line));
}

/* ---- the programs --------------------------------------------------------------------------- */

static bool publish(struct supervisor *s, struct advertiser *a)
{
        const struct kind *k = kind_of(s, a);
        struct place at;
        uint64_t now = clock_now_ns();
        a->publish_ns = now + PUBLISH_MS * MS;
        if (!find_place(s, k->loopback, &at) || !k->publish(s, a, &at)) {
                if (!a->failing)
                        log_warn(LOG, "--advertise: %s can't be told; this is tried again",
                                 k->program);
                a->failing = true;
                a->renew_ns = a->publish_ns;
                return false;
        }
        a->failing = false;
        a->renew_ns = k->renew_s ? now + k->renew_s * 1000ull * MS : UINT64_MAX;
        a->load = (unsigned)workers_count(s, WORKER_BUSY);
        a->types = s->descriptions.types;
        strcpy(a->key, s->gate.identity);
        return true;
}

static bool is_published(const struct supervisor *s, const struct advertiser *a)
{
        return (!kind_of(s, a)->load || a->load == workers_count(s, WORKER_BUSY)) &&
               a->types == s->descriptions.types && !strcmp(a->key, s->gate.identity);
}

static uint64_t next_publication(const struct supervisor *s, const struct advertiser *a)
{
        return is_published(s, a) ? a->renew_ns : a->publish_ns;
}

static int start(struct supervisor *s, struct advertiser *a)
{
        const struct kind *k = kind_of(s, a);
        uint8_t random[16];
        char path[PATH_MAX], name[32], level[8];
        if (!installed_find(k->program, path)) {
                log_error(LOG, "--advertise: libexec/spancl/%s is not installed (package %s)",
                          k->program, k->package);
                return SP_E_NOENT;
        }
        if (!random_fill(random, sizeof(random)))
                return SP_E_LIMIT;
        for (size_t i = 0; i < sizeof(random); i++)
                sprintf(a->id + 2 * i, "%02x", random[i]);
        strcpy(name, k->program);
        strcpy(level, log_level_name(log_threshold));
        int r = helper_run(s, &a->process, path, (char *[]){ name, level, NULL });
        if (!r && ((k->begin && !k->begin(s, a)) || !publish(s, a)))
                r = SP_E_LIMIT;
        return r;
}

/* The reason for which the server can't be published in this way; NULL: none. */
static const char *obstacle(struct supervisor *s, const struct kind *k)
{
        struct place at;
        gate_keys_if_any(&s->gate);
        if (!find_place(s, k->loopback, &at))
                return "--advertise: the server listens on no address of a network";
        return k->obstacle ? k->obstacle(s) : NULL;
}

static void provide(struct supervisor *s, struct advertiser *a)
{
        const struct kind *k = kind_of(s, a);
        struct helper *h = &a->process;
        uint64_t now = clock_now_ns();
        if (!is_wanted(s, a))
                return;
        if (h->pid) {
                if (now >= next_publication(s, a))
                        (void)publish(s, a);
                return;
        }
        if (now < h->again_ns)
                return;
        const char *why = obstacle(s, k);
        if (why) {
                log_warn(LOG, "%s", why);
                h->again_ns = UINT64_MAX;
                return;
        }
        int r = start(s, a);
        if (r == 0)
                return;
        if (r != SP_E_NOENT)
                log_error(LOG, "--advertise: %s can't be started: %s", k->program, status_text(r));
        helper_gone(s, h, AGAIN_MS);
        if (r == SP_E_NOENT)
                h->again_ns = UINT64_MAX;
}

void advertiser_provide(struct supervisor *s)
{
        for (size_t i = 0; i < ADVERTISERS; i++)
                provide(s, &s->advertisers[i]);
}

uint64_t advertiser_deadline(const struct supervisor *s)
{
        uint64_t next = UINT64_MAX;
        for (size_t i = 0; i < ADVERTISERS; i++) {
                const struct advertiser *a = &s->advertisers[i];
                if (!is_wanted(s, a))
                        continue;
                uint64_t at = a->process.pid ? next_publication(s, a) : a->process.again_ns;
                next = at < next ? at : next;
        }
        return next;
}

bool advertiser_ended(struct supervisor *s, pid_t pid)
{
        for (size_t i = 0; i < ADVERTISERS; i++) {
                struct advertiser *a = &s->advertisers[i];
                if (!helper_ended(s, &a->process, pid, AGAIN_MS))
                        continue;
                if (is_wanted(s, a))
                        log_error(LOG, "%s has ended; it is started again", kinds[i].program);
                return true;
        }
        return false;
}

void advertiser_withdraw(struct supervisor *s)
{
        for (size_t i = 0; i < ADVERTISERS; i++) {
                struct advertiser *a = &s->advertisers[i];
                if (!a->process.pid)
                        continue;
                if (a->process.control >= 0)
                        log_info(LOG, "--advertise: %s withdraws the record", kinds[i].program);
                close_input(a); /* the program tells others, and ends */
        }
}

void advertiser_stop(struct supervisor *s)
{
        uint64_t deadline_ns = clock_now_ns() + STOP_MS * MS;
        for (size_t i = 0; i < ADVERTISERS; i++) {
                struct advertiser *a = &s->advertisers[i];
                struct helper *h = &a->process;
                close_input(a);
                for (bool more = h->pid && h->log.fd >= 0; more;) {
                        struct pollfd p = { .fd = h->log.fd, .events = POLLIN };
                        more = poll_until(&p, 1, deadline_ns) > 0 &&
                               child_log_read(&h->log, h->name, clock_now_ns());
                }
                helper_stop(s, h);
        }
}
