#include "daemon/supervisor/gate.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/client_limits.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/file_info.h"
#include "os/host_user.h"
#include "os/net/socket.h"
#include "os/process/process.h"
#include "os/random.h"
#include "transport/address.h"
#include "transport/nano_key.h"

#define LOG "gate"

enum { TLS_HANDSHAKE = 0x16 }; /* the first byte of every TLS connection; SpanCL's is 'S' */

/* ---- keys ----------------------------------------------------------------------------------- */

int gate_folder(const struct config_options *o, char ret[KEYS_PATH_MAX])
{
        const char *given = config_option_text(o, CONFIG_server_keys);
        if (!*given)
                given = getenv("STATE_DIRECTORY");
        return keys_folder(given, ret);
}

/* Resolve the names of --socket-users at the start, not for each connection, because that may
 * take a network request. */
static void find_socket_users(struct gate *g)
{
        const char *p = config_option_text(g->options, CONFIG_socket_users);
        struct host_user user;
        g->socket_any = !strcmp(p, "any");
        while (*p && !g->socket_any) {
                char name[64];
                size_t n = strcspn(p, ",");
                snprintf(name, sizeof(name), "%.*s", (int)n, p);
                bool found = host_user_find(name, &user);
                unsigned *more = found ? mem_realloc(g->socket_users,
                                                     (g->socket_user_count + 1) * sizeof(*more))
                                       : NULL;
                if (more) {
                        g->socket_users = more;
                        more[g->socket_user_count++] = user.user;
                } else {
                        log_warn(LOG, "--socket-users: there is no user %s", name);
                }
                p += n + (p[n] == ',');
        }
}

void gate_init(struct gate *g, const struct config_options *o)
{
        *g = (struct gate){ .options = o };
        find_socket_users(g);
        if (gate_folder(o, g->folder) < 0)
                g->folder[0] = 0;
}

void gate_fini(struct gate *g)
{
        g->tls = tls_server_free(g->tls);
        mem_free(g->socket_users);
        g->socket_users = NULL;
}

/* Read a file of the folder. SP_E_NOENT: it is missing. Other errors are logged. */
static int read_file(const struct gate *g, const char *file, char **ret)
{
        char text[KEYS_TEXT_MAX];
        int r = *g->folder ? keys_read(g->folder, file, ret, text) : SP_E_NOENT;
        if (r < 0 && r != SP_E_NOENT)
                log_error(LOG, "%s", text);
        return r;
}

/* The same. NULL: it is missing or unusable. */
static char *read_keys(const struct gate *g, const char *file)
{
        char *data;
        return read_file(g, file, &data) < 0 ? NULL : data;
}

static bool drop(char *data)
{
        if (!data)
                return false;
        explicit_bzero(data, strlen(data));
        mem_free(data);
        return true;
}

static uint64_t now_s(void)
{
        return clock_wall_ns() / 1000000000;
}

/* Find the code on show. Each call counts as a try. */
static bool find_code(const struct gate *g, uint8_t secret[CRYPTO_SECRET])
{
        char text[KEYS_TEXT_MAX], *data = read_keys(g, KEYS_PAIRING);
        struct keys_pairing p;
        bool valid = data && keys_pairing_parse(data, &p);
        if (!drop(data))
                return false;
        valid = valid && p.tries && now_s() < p.until_s;
        if (valid && --p.tries)
                valid = keys_pairing_write(g->folder, &p, text) == 0;
        else
                /* Used up: this was the last try, or the code is too old. */
                keys_remove(g->folder, KEYS_PAIRING);
        if (valid)
                memcpy(secret, p.secret, CRYPTO_SECRET);
        explicit_bzero(&p, sizeof(p));
        return valid;
}

static bool find_secret(void *user, struct crypto_psk *psk)
{
        struct gate *g = user;
        char text[KEYS_TEXT_MAX];
        if (!strcmp(psk->name, KEYS_PSK_PAIR))
                return find_code(g, psk->secret);
        int r = !strcmp(psk->name, KEYS_PSK_TOKEN)
                        ? keys_token(tls_crypto(text), g->folder, psk, text)
                        : nano_key_find(g->folder, psk, text);
        if (r < 0 && r != SP_E_NOENT)
                log_error(LOG, "%s", text);
        return !r;
}

/* Return true if the key file was replaced. */
static bool is_old(const struct gate *g)
{
        char path[KEYS_PATH_MAX + 32];
        struct file_info f;
        snprintf(path, sizeof(path), "%s/%s", g->folder, KEYS_IDENTITY);
        return file_info(path, true, &f) && !file_is_unchanged(&f, &g->file);
}

int gate_keys(struct gate *g)
{
        char text[KEYS_TEXT_MAX] = "there is no folder for keys: use --keys",
             path[KEYS_PATH_MAX + 32];
        struct tls_server *tls;
        if (g->tls && !is_old(g))
                return 0;
        int r = *g->folder ? tls_server_new(g->folder, find_secret, g, &tls, text) : SP_E_NOENT;
        if (r < 0) {
                log_error(LOG, "%s", text);
                return g->tls ? 0 : r; /* the loaded key stays valid */
        }
        snprintf(path, sizeof(path), "%s/%s", g->folder, KEYS_IDENTITY);
        (void)!file_info(path, true, &g->file);
        tls_server_free(g->tls);
        g->tls = tls;
        keys_hex(tls_server_fingerprint(g->tls), g->identity);
        return 0;
}

void gate_keys_if_any(struct gate *g)
{
        char path[KEYS_PATH_MAX + 32];
        snprintf(path, sizeof(path), "%s/%s", g->folder, KEYS_IDENTITY);
        if (*g->folder && file_exists(path))
                (void)!gate_keys(g);
}

bool gate_has_friends(const struct gate *g)
{
        static const char *const files[] = { KEYS_CLIENTS, KEYS_TOKEN, KEYS_AUTHORITY,
                                             KEYS_PAIRING };
        bool any = false;
        for (size_t i = 0; i < array_size(files); i++)
                any |= drop(read_keys(g, files[i]));
        return any;
}

/* ---- connections ---------------------------------------------------------------------------- */

/* Return true if this user is one of --socket-users. */
static bool may_use_socket(const struct gate *g, unsigned uid)
{
        bool may = uid == process_user() || !uid || g->socket_any;
        for (size_t i = 0; i < g->socket_user_count && !may; i++)
                may = g->socket_users[i] == uid;
        return may;
}

struct gate_origin gate_origin_of(const struct gate *g, const struct conn *c, bool tls_only)
{
        struct gate_origin from = { .local = true, .user = UINT_MAX };
        if (c->ops->caps & TRANSPORT_KNOWS_USER) {
                unsigned uid = UINT_MAX;
                from.stranger = !conn_user(c, &uid) || !may_use_socket(g, uid);
                from.uid = from.stranger ? uid : 0;
                from.user = uid;
                return from;
        }
        from.local = conn_origin(c, from.net) && !tls_only;
        if (from.local)
                memset(from.net, 0, sizeof(from.net));
        return from;
}

int gate_listen(struct gate *g, struct conn **c)
{
        uint8_t first;
        if (!((*c)->ops->caps & TRANSPORT_TAKES_TLS))
                return 0;
        ssize_t n = socket_peek((*c)->fd, &first, 1);
        if (n <= 0)
                return n < 0 && errno == EAGAIN ? SP_E_AGAIN : SP_E_LINK;
        if (first != TLS_HANDSHAKE)
                return 0;
        if (gate_keys(g) < 0)
                return SP_E_LINK;
        struct conn *plain = *c, *secure;
        int r = tls_accept(g->tls, plain, &secure);
        *c = r < 0 ? NULL : secure;
        if (*c)
                tls_be_careful(*c);
        return r < 0 ? r : 1;
}

/* ---- decisions ------------------------------------------------------------------------------ */

int gate_clients(const struct gate *g, char **ret)
{
        return read_file(g, KEYS_CLIENTS, ret);
}

static int replace_key(const struct gate *g, const uint8_t old[CRYPTO_FINGERPRINT],
                       const struct tls_peer *peer, char text[KEYS_TEXT_MAX])
{
        int lock = keys_lock(g->folder, text);
        if (lock < 0)
                return lock;
        int r = keys_replace(g->folder, KEYS_CLIENTS, old, peer->fingerprint, text);
        (void)file_close(lock);
        return r;
}

/* Return true if the client's new key follows a known one. From then on the list of clients has
 * only the new key; until that is written, the old one stands for it. */
static bool follows_known_key(const struct gate *g, const struct tls_peer *peer,
                              const char *clients, struct keys_entry *ret, struct gate_grant *grant)
{
        char text[KEYS_TEXT_MAX];
        for (unsigned i = 0; i < peer->before_count; i++) {
                if (!keys_find(clients, peer->before[i], NULL, ret))
                        continue;
                if (replace_key(g, peer->before[i], peer, text) < 0) {
                        log_error(LOG, "%s's new key can't be kept: %s", ret->name, text);
                        return true;
                }
                log_warn(LOG, "%s has a new key; the server no longer accepts the old one",
                         ret->name);
                keys_hex(ret->fingerprint, grant->was);
                keys_unsee(g->folder, grant->was);
                memcpy(ret->fingerprint, peer->fingerprint, CRYPTO_FINGERPRINT);
                return true;
        }
        return false;
}

/* Return true if the server knows all settings of a client. A limit that is misspelt must not mean that there is no
 * limit. */
static bool has_known_settings(const struct keys_entry *e)
{
        const char *left = e->settings;
        struct keys_setting s;
        struct client_limits limits = { 0 };
        while (keys_setting(&left, &s))
                if (!client_limits_set(&limits, s.key, s.value)) {
                        log_warn(
                                LOG,
                                "%s may not connect: clients has '%.*s=' in its line, which is no setting, "
                                "or has no such value",
                                e->name, (int)s.key.size, (const char *)s.key.data);
                        return false;
                }
        return true;
}

static bool is_own(const struct gate *g, const struct tls_peer *peer)
{
        char hex[KEYS_HEX + 1];
        keys_hex(peer->fingerprint, hex);
        bool own = !strcmp(hex, g->identity);
        for (unsigned i = 0; i < peer->before_count && !own; i++) {
                keys_hex(peer->before[i], hex);
                own = !strcmp(hex, g->identity);
        }
        return own;
}

static void name_key(const char hex[KEYS_HEX + 1], char ret[GATE_WHO_MAX])
{
        snprintf(ret, GATE_WHO_MAX, "key %s", hex);
}

/* Return true if the client has proved that it is known, and fill in its rights. */
static bool is_friend(const struct gate *g, const struct tls_peer *peer, struct gate_grant *ret)
{
        char hex[KEYS_HEX + 1];
        struct keys_entry e;
        if (!strcmp(peer->psk, KEYS_PSK_TOKEN)) {
                strcpy(ret->owner, KEYS_PSK_TOKEN);
                strcpy(ret->client, KEYS_PSK_TOKEN);
                return true;
        }
        if (!peer->known)
                return false;
        keys_hex(peer->fingerprint, hex);
        char *clients = read_keys(g, KEYS_CLIENTS);
        bool found = clients && (keys_find(clients, peer->fingerprint, NULL, &e) ||
                                 follows_known_key(g, peer, clients, &e, ret));
        drop(clients);
        if (found && !has_known_settings(&e))
                return false;
        bool own = is_own(g, peer) || (found && e.own);
        if (found) {
                /* The listed key, so that keys that can't be written into the list are no new clients. */
                keys_hex(e.fingerprint, hex);
                name_key(hex, ret->who);
                strcpy(ret->devices, e.devices);
                strcpy(ret->client, e.name);
                strcpy(ret->settings, e.settings);
                strcpy(ret->user, e.user);
                strcpy(ret->host, e.host);
                if (!peer->vouched && !is_own(g, peer))
                        strcpy(ret->key, hex);
                keys_saw(g->folder, hex);
        } else
                log_info(LOG, "a client that is not known has the key %s", hex);
        ret->own = own;
        if (!own)
                strcpy(ret->owner, hex);
        return found || peer->vouched || own;
}

/* Name the client by what it has shown. */
static void name_client(const struct gate_origin *from, const struct tls_peer *peer,
                        char ret[GATE_WHO_MAX])
{
        static const uint8_t none[sizeof(from->net)];
        char hex[KEYS_HEX + 1];
        size_t n = 0;
        if (peer && !strcmp(peer->psk, KEYS_PSK_TOKEN)) {
                strcpy(ret, KEYS_PSK_TOKEN);
        } else if (peer && peer->known) {
                keys_hex(peer->fingerprint, hex);
                name_key(hex, ret);
        } else if (from->user != UINT_MAX) {
                snprintf(ret, GATE_WHO_MAX, "user %u", from->user);
        } else if (memcmp(from->net, none, sizeof(none)) != 0) {
                n = (size_t)snprintf(ret, GATE_WHO_MAX, "address ");
                for (size_t i = 0; i < sizeof(from->net); i++)
                        n += (size_t)snprintf(ret + n, GATE_WHO_MAX - n, "%02x", from->net[i]);
        } else {
                strcpy(ret, "local");
        }
}

int gate_admit(const struct gate *g, const struct gate_origin *from, const struct conn *c,
               const struct wire_hello *m, struct gate_grant *ret, const char **ret_text)
{
        const struct tls_peer *peer = tls_peer(c);
        *ret = (struct gate_grant){ 0 };
        name_client(from, peer, ret->who);
        if (from->stranger) {
                log_warn(LOG, "user %u may not use this socket (--socket-users)", from->uid);
                *ret_text = "this socket is for other users: the server's --socket-users says whom";
                return SP_E_AUTH;
        }
        if (config_option_flag(g->options, CONFIG_insecure)) {
                name_client(from, NULL, ret->who); /* any key is admitted, so keys name nobody */
                return 0;
        }
        if (!peer) {
                *ret_text =
                        "this server takes encrypted connections only: say tls: in front of its name";
                return from->local ? 0 : SP_E_AUTH;
        }
        /* A peer proves itself to the worker, by the token that the client gave both servers. */
        if (m->role == 1 || is_friend(g, peer, ret))
                return 0;
        *ret_text =
                "this server does not know this client: run `spancld pair` there, and `spancl pair "
                "HOST` here";
        return SP_E_AUTH;
}

/* Append a number to the name of a new client if another client has this name. Names tell clients apart in the log
 * and in `spancld clients`. SP_E_LIMIT: the name has no room for it. */
static int make_unique(const char *clients, struct keys_entry *e)
{
        char name[KEYS_NAME_MAX + 1];
        strcpy(name, e->name);
        for (unsigned i = 2; keys_knows(clients, e->name); i++)
                if ((size_t)snprintf(e->name, sizeof(e->name), "%s-%u", name, i) >= sizeof(e->name))
                        return SP_E_LIMIT;
        return 0;
}

/* Put a client into the list, whose lock the caller holds. A client that pairs again keeps its name and settings. */
static int enlist(const struct gate *g, struct keys_entry *e, char text[KEYS_TEXT_MAX])
{
        struct keys_entry have;
        char *clients;
        const char *at = strrchr(e->name, '@');
        snprintf(e->host, sizeof(e->host), "%s", at ? at + 1 : e->name);
        if (at)
                snprintf(e->user, sizeof(e->user), "%.*s", (int)(at - e->name), e->name);
        int r = keys_read(g->folder, KEYS_CLIENTS, &clients, text);
        if (r == SP_E_NOENT)
                return keys_put(g->folder, KEYS_CLIENTS, e, false, text);
        if (r < 0)
                return r;
        if (keys_find(clients, e->fingerprint, NULL, &have)) {
                strcpy(have.user, e->user);
                strcpy(have.host, e->host);
                *e = have;
        } else {
                r = make_unique(clients, e);
        }
        mem_free(clients);
        if (r < 0)
                snprintf(text, KEYS_TEXT_MAX, "the name of the client is too long");
        return r < 0 ? r : keys_put(g->folder, KEYS_CLIENTS, e, false, text);
}

bool gate_is_owner(const struct gate_origin *from, const struct conn *c,
                   const struct gate_grant *grant)
{
        return !from->stranger && (conn_is_own_user(c) || (tls_peer(c) && grant->own));
}

int gate_pair(struct gate *g, const struct conn *c, const struct wire_hello *m,
              const char **ret_text)
{
        const struct tls_peer *peer = tls_peer(c);
        char line[512], text[KEYS_TEXT_MAX];
        const char *p = line;
        struct keys_entry e;
        unsigned bad = 0;
        if (!peer || strcmp(peer->psk, KEYS_PSK_PAIR) != 0) {
                *ret_text = "to be known here takes the code that `spancld pair` shows";
                return SP_E_AUTH;
        }
        keys_remove(g->folder, KEYS_PAIRING); /* a code is used once */
        snprintf(line, sizeof(line), "%.*s", (int)m->name.size, (const char *)m->name.data);
        if (!keys_next(&p, &e, &bad) || *e.devices || *e.user || *e.host || *e.settings || e.own ||
            !keys_is_name(e.name)) {
                *ret_text = "this is not the name and key of a client";
                return SP_E_PROTO;
        }
        int lock = keys_lock(g->folder, text), r = lock < 0 ? lock : enlist(g, &e, text);
        if (lock >= 0)
                (void)file_close(lock);
        if (r < 0) {
                log_error(LOG, "%s", text);
                *ret_text = "this server can't write its list of clients; see its log";
                return r;
        }
        log_warn(LOG, "%s is a client now", e.name);
        return 0;
}

/* ---- spancld pair --------------------------------------------------------------------------- */

int gate_show_code(const struct config_options *o)
{
        char folder[KEYS_PATH_MAX], text[KEYS_TEXT_MAX], code[KEYS_CODE_MAX], bare[KEYS_CODE_MAX];
        uint8_t random[KEYS_CODE_LETTERS];
        struct keys_pairing p = { .tries = KEYS_PAIRING_TRIES };
        const struct crypto_ops *crypto = tls_crypto(text);
        int r = crypto ? gate_folder(o, folder) : SP_E_UNSUPP;
        if (r == SP_E_NOENT)
                snprintf(text, sizeof(text), "there is no folder for keys: use --keys");
        if (!r && !random_fill(random, sizeof(random)))
                r = SP_E_LIMIT;
        if (!r) {
                keys_code_new(random, code);
                (void)keys_code_parse(code, bare);
                p.until_s = now_s() + KEYS_PAIRING_S;
                r = crypto->stretch(bare, "spancl pair", KEYS_STRETCH, p.secret) ? 0 : SP_E_NOMEM;
        }
        if (!r)
                r = keys_pairing_write(folder, &p, text);
        explicit_bzero(&p, sizeof(p));
        if (r < 0) {
                fprintf(stderr, "spancld: %s\n", text);
                return 1;
        }
        printf("At the client, within %d minutes and while spancld runs here:\n\n"
               "    spancl pair HOST[:PORT] %s\n\n"
               "The code serves one client. It is kept in %s.\n",
               KEYS_PAIRING_S / 60, code, folder);
        return 0;
}

/* Put a new device and its key into the lists of the folder. */
static int add_nano(const struct gate *g, struct keys_entry *e, const uint8_t key[CRYPTO_SECRET],
                    char text[KEYS_TEXT_MAX])
{
        /* keys_lock wants the folder, which may not be there yet. */
        int r = keys_write(g->folder, NANO_KEYS, "", true, text);
        int lock = !r || r == SP_E_BUSY ? keys_lock(g->folder, text) : r;
        if (lock < 0)
                return lock;
        r = nano_key_put(g->folder, key, e->fingerprint, text);
        if (!r)
                r = enlist(g, e, text);
        if (r < 0) {
                char ignored[KEYS_TEXT_MAX];
                (void)!keys_drop(g->folder, NANO_KEYS, e->fingerprint, ignored);
        }
        (void)file_close(lock);
        return r;
}

/* Print the key of a new client. False: standard output does not take it. */
static bool print_key(const uint8_t key[CRYPTO_SECRET])
{
        char hex[KEYS_HEX + 1];
        keys_hex(key, hex);
        bool ok = printf("%s\n", hex) > 0 && !fflush(stdout);
        explicit_bzero(hex, sizeof(hex));
        return ok;
}

int gate_nano(const struct config_options *o, const char *name)
{
        struct gate g = { .options = o };
        char text[KEYS_TEXT_MAX] = "there is no folder for keys: use --keys";
        uint8_t key[CRYPTO_SECRET] = { 0 };
        struct keys_entry e = { 0 };
        if (!keys_is_name(name)) {
                fprintf(stderr, "spancld: %s\n",
                        *name ? "this is not a name for a device: it has a blank, or is too long"
                              : "--nano needs a name for the device");
                return 2;
        }
        snprintf(e.name, sizeof(e.name), "%s", name);
        const struct crypto_ops *crypto = tls_crypto(text);
        int r = crypto ? gate_folder(o, g.folder) : SP_E_UNSUPP;
        if (!r && (r = nano_key_new(crypto, key, e.fingerprint)) < 0)
                snprintf(text, sizeof(text), "no key can be made: %s", status_text(r));
        if (!r)
                r = add_nano(&g, &e, key, text);
        bool shown = !r && print_key(key);
        explicit_bzero(key, sizeof(key));
        if (r < 0)
                fprintf(stderr, "spancld: %s\n", text);
        else if (!shown)
                fprintf(stderr,
                        "spancld: the key can't be printed; remove the device: spancld clients remove %s\n",
                        e.name);
        else
                fprintf(stderr,
                        "This is the key of %s, which is a client of this server now (spancl_nano_tls).\n"
                        "Nothing shows it again. It is kept in %s.\n",
                        e.name, g.folder);
        return !shown;
}

int gate_rotate(const struct config_options *o)
{
        char folder[KEYS_PATH_MAX], text[KEYS_TEXT_MAX] = "there is no folder for keys: use --keys";
        const struct crypto_ops *crypto = tls_crypto(text);
        int r = crypto ? gate_folder(o, folder) : SP_E_UNSUPP;
        if (!r)
                r = keys_rotate(crypto, folder, text);
        if (r < 0) {
                fprintf(stderr, "spancld: %s\n", text);
                return 1;
        }
        printf("This server has a new key from the next connection on. Clients that know the old one learn it\n"
               "then; they believe the old one until they have seen the new one.\n");
        return 0;
}
