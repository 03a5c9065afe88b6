#include "transport/tls_dial.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/installed.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/once.h"
#include "os/process/library.h"
#include "os/process/library_name.h"
#include "transport/address.h"
#include "transport/tls_conn.h"

#define MODULE LIBRARY_NAME("spancl-tls")

/* It is short, because os/linux/fault.c makes all thread-local memory of the library static. Of that glibc has 1664
 * bytes for all libraries that a program loads later. */
enum { REASON_MAX = 512 };

static _Thread_local char reason[REASON_MAX];

const char *tls_reason(void)
{
        return reason;
}

void tls_because(const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(reason, sizeof(reason), fmt, ap);
        va_end(ap);
}

/* ---- the module ----------------------------------------------------------------------------- */

static struct once once = ONCE_INIT;
static const struct crypto_ops *module;
static char module_text[KEYS_TEXT_MAX];

static struct library *open_module(void)
{
        char path[PATH_MAX];
        if (installed_find(MODULE, path)) {
                struct library *m = library_load(path, LIBRARY_FOR_EVER);
                if (!m)
                        snprintf(module_text, sizeof(module_text), "%s", library_error());
                return m;
        }
        snprintf(module_text, sizeof(module_text),
                 "encrypted links need " MODULE " (and OpenSSL 3), which is not installed");
        return NULL;
}

static void load(void)
{
        struct library *m = open_module();
        const struct crypto_ops *ops = m ? library_symbol(m, CRYPTO_SYMBOL) : NULL;
        if (ops && ops->version == CRYPTO_VERSION)
                module = ops;
        else if (m)
                snprintf(module_text, sizeof(module_text), MODULE " is of another version");
}

const struct crypto_ops *tls_crypto(char text[KEYS_TEXT_MAX])
{
        once_run(&once, load);
        if (!module)
                snprintf(text, KEYS_TEXT_MAX, "%s", module_text);
        return module;
}

/* ---- servers -------------------------------------------------------------------------------- */

struct tls_server {
        const struct crypto_ops *crypto;
        struct crypto_context *context;
        bool (*find)(void *user, struct crypto_psk *psk);
        void *user;
        uint8_t fingerprint[CRYPTO_FINGERPRINT];
};

static void wipe(char *text)
{
        if (text)
                explicit_bzero(text, strlen(text));
        mem_free(text);
}

/* A context from a folder's identity and authority. */
static int make_context(const struct crypto_ops *crypto, const char *folder, bool server,
                        struct crypto_context **ret, uint8_t fingerprint[CRYPTO_FINGERPRINT],
                        char text[KEYS_TEXT_MAX])
{
        char *identity = NULL, *authority = NULL, why[CRYPTO_TEXT_MAX] = "";
        int r = keys_identity(crypto, folder, &identity, fingerprint, text);
        if (!r)
                r = keys_read(folder, KEYS_AUTHORITY, &authority, text);
        if (r == SP_E_NOENT)
                r = 0;
        if (!r) {
                *ret = crypto->context_new(&(struct crypto_params){ .server = server,
                                                                    .identity = identity,
                                                                    .authority = authority },
                                           why);
                if (!*ret) {
                        snprintf(text, KEYS_TEXT_MAX, "the keys in %.1000s can't be used: %s",
                                 folder, why);
                        r = SP_E_INVAL;
                }
        }
        wipe(identity);
        wipe(authority);
        return r;
}

int tls_server_new(const char *folder, bool (*find)(void *user, struct crypto_psk *psk), void *user,
                   struct tls_server **ret, char text[KEYS_TEXT_MAX])
{
        const struct crypto_ops *crypto = tls_crypto(text);
        if (!crypto)
                return SP_E_UNSUPP;
        struct tls_server *s = mem_zalloc(sizeof(*s));
        if (!s) {
                snprintf(text, KEYS_TEXT_MAX, "out of memory");
                return SP_E_NOMEM;
        }
        s->crypto = crypto;
        s->find = find;
        s->user = user;
        int r = make_context(crypto, folder, true, &s->context, s->fingerprint, text);
        if (r < 0) {
                mem_free(s);
                return r;
        }
        *ret = s;
        return 0;
}

struct tls_server *tls_server_free(struct tls_server *s)
{
        if (s)
                s->crypto->context_free(s->context);
        mem_free(s);
        return NULL;
}

const uint8_t *tls_server_fingerprint(const struct tls_server *s)
{
        return s->fingerprint;
}

int tls_accept(struct tls_server *s, struct conn *plain, struct conn **ret)
{
        if (!(plain->ops->caps & TRANSPORT_TAKES_TLS)) {
                conn_close(plain);
                return SP_E_INVAL;
        }
        int fd = plain->fd;
        struct crypto_shake *shake = s->crypto->shake_new(s->context, NULL, NULL, s->find, s->user);
        if (!shake) {
                conn_close(plain);
                return SP_E_NOMEM;
        }
        mem_free(plain); /* but not its descriptor */
        return tls_conn_new(s->crypto, fd, shake, ret);
}

/* ---- connecting ----------------------------------------------------------------------------- */

struct target {
        struct address below; /* of the transport below the encryption */
        char name[ADDRESS_MAX];
        bool pinned, shows_own;
        uint8_t fingerprint[CRYPTO_FINGERPRINT];
};

/* An address of the transport below is taken, too. */
static int parse(const char *address, struct target *ret)
{
        *ret = (struct target){ 0 };
        struct address *at = &ret->below;
        int r = address_parse(address, at);
        if (r < 0)
                return r;
        address_show(address, ret->name);
        ret->pinned = *at->key;
        if (ret->pinned && !keys_unhex(at->key, ret->fingerprint))
                return SP_E_INVAL;
        ret->shows_own = at->shows_own;
        at->key[0] = 0;
        if (at->ops->below)
                at->ops = at->ops->below;
        return at->ops->caps & TRANSPORT_TAKES_TLS ? 0 : SP_E_INVAL;
}

/* The state of one connect. */
struct dial {
        const struct crypto_ops *crypto;
        struct target target;
        struct crypto_context *context;
        struct crypto_psk psk; /* offered; name "": none */
        bool psk_only;
        char folder[KEYS_PATH_MAX]; /* "": no keys of ours */
        uint8_t own[CRYPTO_FINGERPRINT];
        int64_t deadline_ms;
};

static int prepare_keys(struct dial *d, char text[KEYS_TEXT_MAX])
{
        int r = keys_folder(NULL, d->folder);
        if (r < 0) {
                snprintf(text, KEYS_TEXT_MAX, "there is no folder for keys: set SPANCL_KEYS");
                return r;
        }
        r = make_context(d->crypto, d->folder, false, &d->context, d->own, text);
        if (!r)
                r = keys_token(d->crypto, d->folder, &d->psk, text);
        return r == SP_E_NOENT ? 0 : r;
}

static int prepare(struct dial *d, const char *address, const struct crypto_psk *psk)
{
        char text[KEYS_TEXT_MAX] = "", why[CRYPTO_TEXT_MAX];
        int r = parse(address, &d->target);
        if (r < 0)
                return r;
        if (tls_for_others && !d->target.pinned) {
                tls_because("the client does not say which key the server there must have");
                return SP_E_AUTH;
        }
        d->crypto = tls_crypto(text);
        if (!d->crypto) {
                tls_because("%s", text);
                return SP_E_UNSUPP;
        }
        if (psk || (d->target.pinned && (tls_for_others || !d->target.shows_own))) {
                d->context = d->crypto->context_new(&(struct crypto_params){ 0 }, why);
                d->psk_only = psk != NULL;
                if (psk)
                        d->psk = *psk;
                return d->context ? 0 : SP_E_NOMEM;
        }
        r = prepare_keys(d, text);
        if (r < 0)
                tls_because("%s", text);
        return r < 0 && r != SP_E_NOMEM ? SP_E_AUTH : r;
}

static int shake_hands(struct dial *d, struct conn *c)
{
        for (;;) {
                int r = tls_conn_shake(c);
                if (r != SP_E_AGAIN)
                        return r;
                struct pollfd p = { .fd = c->fd, .events = POLLIN };
                int64_t left = d->deadline_ms - (int64_t)(clock_now_ns() / 1000000);
                if (left <= 0)
                        return SP_E_TIMEOUT;
                (void)poll(&p, 1, (int)left);
        }
}

/* Has the other side this key, or has it handed over to the one that it has? */
static bool has_key(const struct tls_peer *peer, const uint8_t fingerprint[CRYPTO_FINGERPRINT])
{
        bool has = peer->known && !memcmp(peer->fingerprint, fingerprint, CRYPTO_FINGERPRINT);
        for (unsigned i = 0; peer->known && i < peer->before_count && !has; i++)
                has = !memcmp(peer->before[i], fingerprint, CRYPTO_FINGERPRINT);
        return has;
}

/* Is it on the list, or was it under a key that has handed over? Then it is, under the new one, from now on. A server
 * that is known under one name is known under all names, except those of another key. */
static bool is_listed(const struct dial *d, const struct tls_peer *peer, const char *servers)
{
        char text[KEYS_TEXT_MAX];
        struct keys_entry e;
        const char *name = keys_knows(servers, d->target.name) ? d->target.name : NULL;
        if (!peer->known)
                return false;
        if (keys_find(servers, peer->fingerprint, name, &e))
                return true;
        for (unsigned i = 0; i < peer->before_count; i++) {
                if (!keys_find(servers, peer->before[i], name, &e))
                        continue;
                /* If it can't be kept, it is learned again the next time. */
                (void)!keys_replace(d->folder, KEYS_SERVERS, peer->before[i], peer->fingerprint,
                                    text);
                return true;
        }
        return false;
}

/* Does a server answer whose key this user knows? */
static int verify(struct dial *d, const struct tls_peer *peer)
{
        const struct target *t = &d->target;
        char text[KEYS_TEXT_MAX], *servers = NULL;
        if (d->psk.name[0] && !strcmp(peer->psk, d->psk.name))
                return 0;
        if (d->psk_only) {
                tls_because("the server takes no code now: `spancld pair` there shows one");
                return SP_E_AUTH;
        }
        if (t->pinned) {
                if (has_key(peer, t->fingerprint))
                        return 0;
                tls_because("the server there has another key than the one it should have");
                return SP_E_AUTH;
        }
        if (peer->vouched || has_key(peer, d->own))
                return 0;
        int r = keys_read(d->folder, KEYS_SERVERS, &servers, text);
        if (r < 0 && r != SP_E_NOENT) {
                tls_because("%s", text);
                return SP_E_AUTH;
        }
        bool ok = servers && is_listed(d, peer, servers);
        if (!ok && servers && keys_knows(servers, t->name))
                tls_because("the server's key is not the one it was paired with. If it was set up "
                            "anew, run `spancl pair %s` again; else somebody stands in its place",
                            t->name);
        else if (!ok)
                tls_because("this server is not known yet: run `spancl pair %s`", t->name);
        mem_free(servers);
        return ok ? 0 : SP_E_AUTH;
}

static int dial(struct dial *d, const char *address, const struct crypto_psk *psk, int timeout_ms,
                struct conn **ret)
{
        struct conn *plain, *c;
        d->deadline_ms = (int64_t)(clock_now_ns() / 1000000) + timeout_ms;
        int r = prepare(d, address, psk);
        if (!r)
                r = address_connect(&d->target.below, timeout_ms, &plain);
        if (r < 0)
                return r;
        int fd = plain->fd;
        struct crypto_shake *shake = d->crypto->shake_new(
                d->context, d->target.below.host, d->psk.name[0] ? &d->psk : NULL, NULL, NULL);
        if (!shake) {
                conn_close(plain);
                return SP_E_NOMEM;
        }
        mem_free(plain); /* but not its descriptor */
        r = tls_conn_new(d->crypto, fd, shake, &c);
        if (r < 0)
                return r;
        r = shake_hands(d, c);
        if (!r)
                r = verify(d, tls_peer(c));
        if (r < 0) {
                conn_close(c);
                return r;
        }
        *ret = c;
        return 0;
}

int tls_connect_psk(const char *address, const struct crypto_psk *psk, int timeout_ms,
                    struct conn **ret)
{
        struct dial d = { 0 };
        reason[0] = 0;
        int r = dial(&d, address, psk, timeout_ms, ret);
        if (d.crypto)
                d.crypto->context_free(d.context);
        explicit_bzero(&d.psk, sizeof(d.psk));
        return r;
}

int tls_connect(const char *address, int timeout_ms, struct conn **ret)
{
        return tls_connect_psk(address, NULL, timeout_ms, ret);
}

/* ---- listening: TLS alone, on a port of its own --------------------------------------------- */

struct tls_listener {
        struct listener base;
        struct listener *below;
        struct tls_server *server;
};

int tls_listen(const char *address, struct listener **ret)
{
        char folder[KEYS_PATH_MAX], text[KEYS_TEXT_MAX];
        struct target t;
        reason[0] = 0;
        int r = parse(address, &t);
        if (!r)
                r = keys_folder(NULL, folder);
        struct tls_listener *l = r < 0 ? NULL : mem_zalloc(sizeof(*l));
        if (!l)
                return r < 0 ? r : SP_E_NOMEM;
        r = tls_server_new(folder, NULL, NULL, &l->server, text);
        if (r < 0)
                tls_because("%s", text);
        if (!r)
                r = address_listen(&t.below, &l->below);
        if (r < 0) {
                tls_server_free(l->server);
                mem_free(l);
                return r;
        }
        l->base.ops = transport_of(address);
        l->base.fd = l->below->fd;
        if (!address_parse(l->below->address, &t.below)) {
                t.below.ops = l->base.ops;
                keys_hex(l->server->fingerprint, t.below.key);
                address_put(&t.below, text);
                snprintf(l->base.address, sizeof(l->base.address), "%.255s", text);
        }
        *ret = &l->base;
        return 0;
}

int tls_listener_accept(struct listener *base, struct conn **ret)
{
        struct tls_listener *l = container_of(base, struct tls_listener, base);
        struct conn *plain;
        int r = l->below->ops->accept(l->below, &plain);
        return r < 0 ? r : tls_accept(l->server, plain, ret);
}

void tls_listener_close(struct listener *base)
{
        struct tls_listener *l = container_of(base, struct tls_listener, base);
        listener_close(l->below);
        tls_server_free(l->server);
        mem_free(l);
}
