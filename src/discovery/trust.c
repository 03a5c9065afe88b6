#include "discovery/trust.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/loopback.h"
#include "base/mem.h"
#include "os/watch.h"
#include "proto/wire.h"
#include "transport/address.h"
#include "transport/tls.h"

/* ---- keys ----------------------------------------------------------------------------------- */

/* Hosts that share a home folder have one key. */
static void read_own(struct trust *t, const char *folder)
{
        char text[KEYS_TEXT_MAX], *pem;
        uint8_t fingerprint[CRYPTO_FINGERPRINT];
        if (keys_read(folder, KEYS_IDENTITY, &pem, text) < 0)
                return;
        const struct crypto_ops *crypto = tls_crypto(text);
        if (crypto && crypto->identity_fingerprint(pem, fingerprint))
                keys_hex(fingerprint, t->own);
        explicit_bzero(pem, strlen(pem));
        mem_free(pem);
}

void trust_read(struct trust *t)
{
        char folder[KEYS_PATH_MAX], text[KEYS_TEXT_MAX];
        mem_free(t->servers);
        t->servers = NULL;
        if (keys_folder(NULL, folder) < 0)
                return;
        int r = keys_read(folder, KEYS_SERVERS, &t->servers, text);
        if (r < 0 && r != SP_E_NOENT && !t->logged) {
                log_warn("discovery", "no server is known: %s", text);
                t->logged = true;
        }
        if (!*t->own)
                read_own(t, folder);
}

int trust_watch(void)
{
        char folder[KEYS_PATH_MAX];
        if (keys_folder(NULL, folder) < 0)
                return -1;
        int watch = watch_new(folder);
        char *name = strrchr(folder, '/');
        if (watch >= 0 || !name || name == folder)
                return watch;
        *name = 0;
        return watch_new(folder);
}

void trust_fini(struct trust *t)
{
        mem_free(t->servers);
        *t = (struct trust){ 0 };
}

static bool knows(const struct trust *t, const char *key)
{
        uint8_t fingerprint[CRYPTO_FINGERPRINT];
        struct keys_entry e;
        if (!*key || !keys_unhex(key, fingerprint))
                return false;
        return !strcmp(key, t->own) || (t->servers && keys_find(t->servers, fingerprint, NULL, &e));
}

enum discovered_use trust_judge(const struct trust *t, const struct discovered *d, bool local)
{
        if (d->kind != DISCOVERED_SPANCL)
                return DISCOVERED_FOREIGN;
        if (d->protocol && d->protocol != WIRE_VERSION)
                return DISCOVERED_OTHER;
        if (knows(t, d->key))
                return DISCOVERED_USED;
        return local && discovered_is_here(d) ? DISCOVERED_USED_HERE : DISCOVERED_NOT_PAIRED;
}

/* ---- specifications ------------------------------------------------------------------------- */

int discovered_spec(const struct discovered *d, enum discovered_use use, unsigned i,
                    struct server_spec *ret)
{
        char place[DISCOVERED_ADDRESS_MAX + 16], text[ADDRESS_MAX];
        char name[DISCOVERED_NAME_MAX + sizeof(place) + 8];
        const char *host = d->addresses[i];
        struct address a;
        snprintf(place, sizeof(place), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host, d->port);
        snprintf(name, sizeof(name), "%s (%s)", d->name, place);
        int r = address_of_listen(place, d->port, &a);
        if (r < 0)
                return r;
        if (use == DISCOVERED_USED) {
                address_encrypt(&a);
                memcpy(a.key, d->key, sizeof(a.key));
                a.shows_own = true;
        } else if (use != DISCOVERED_USED_HERE || !loopback_host(host)) {
                return SP_E_INVAL;
        }
        address_put(&a, text);
        *ret = (struct server_spec){ .name = mem_strdup(name),
                                     .address = mem_strdup(text),
                                     .peer_host = mem_strdup(host),
                                     .peer_port = d->port };
        if (ret->name && ret->address && ret->peer_host)
                return 0;
        server_spec_fini(ret);
        return SP_E_NOMEM;
}
