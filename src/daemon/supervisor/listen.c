#include "daemon/supervisor/listen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "config/server_spec.h"
#include "daemon/dialler/local_path.h"
#include "daemon/system/tree.h"
#include "os/file.h"
#include "os/file_info.h"
#include "os/process/environment.h"
#include "os/process/process.h"
#include "transport/address.h"

#define LOG "listen"

enum { PORT_ATTEMPTS = 8 };

static int add(struct listeners *l, struct listener *one, bool tls_only)
{
        struct listening *more = mem_realloc(l->all, (l->count + 1) * sizeof(*l->all));
        if (!more) {
                listener_close(one);
                return SP_E_NOMEM;
        }
        l->all = more;
        l->all[l->count++] = (struct listening){ one, tls_only };
        return 0;
}

/* Make sure that connections to this address can authenticate. SP_E_AUTH: none could. */
static int require_keys(struct gate *gate, const char *where)
{
        if (config_option_flag(gate->options, CONFIG_insecure)) {
                log_warn(
                        LOG,
                        "%s is open to everybody (--insecure): whoever reaches it can run programs as "
                        "this user, and nothing is encrypted",
                        where);
                gate_keys_if_any(gate);
                return 0;
        }
        if (gate_has_friends(gate))
                return gate_keys(gate) < 0 ? SP_E_AUTH : 0;
        log_error(
                LOG,
                "clients of %s must be known, and there is none in the folder of keys (%s). "
                "Run `spancld pair` first, then spancld, then `spancl pair HOST` at the client; "
                "docs/SECURITY.md has other ways. To serve whoever reaches the port, add --insecure",
                where, *gate->folder ? gate->folder : "--keys");
        return SP_E_AUTH;
}

/* Add a listener of a network, whose addresses are those of `ops`. The gate makes the encryption. */
static int add_host(struct listeners *l, const struct transport_ops *ops, struct listener *one,
                    unsigned *ret_port)
{
        bool tls_only = ops->caps & TRANSPORT_ENCRYPTED;
        struct address got;
        char text[ADDRESS_MAX], where[ADDRESS_MAX];
        int r = address_parse(one->address, &got);
        if (!r) {
                got.ops = ops;
                address_put(&got, text);
                address_show(text, where);
                *ret_port = got.port;
                if (tls_only || !address_is_here(&got))
                        r = require_keys(l->gate, where);
        }
        if (r < 0) {
                listener_close(one);
                return r;
        }
        log_info(LOG, "listening on %s", where);
        if (!l->port)
                l->port = *ret_port;
        return add(l, one, tls_only);
}

static int open_host(struct listeners *l, const struct address *at, unsigned *ret_port)
{
        struct address plain = *at;
        struct listener *one;
        if (plain.ops->below)
                plain.ops = plain.ops->below;
        int r = address_listen(&plain, &one);
        return r < 0 ? r : add_host(l, at->ops, one, ret_port);
}

/* Listen on "localhost": IPv4 and IPv6 with one port. A host may lack one of them. */
static int open_localhost(struct listeners *l, const struct address *at)
{
        struct address v4 = *at, v6 = *at;
        int r = 0;
        strcpy(v4.host, "127.0.0.1");
        strcpy(v6.host, "::1");
        for (int i = 0; i < PORT_ATTEMPTS; i++) {
                unsigned got6;
                r = open_host(l, &v4, &v6.port);
                if (r == SP_E_HOST) {
                        v6.port = at->port;
                        return open_host(l, &v6, &got6);
                }
                if (r < 0)
                        return r;
                r = open_host(l, &v6, &got6);
                if (r != SP_E_BUSY || at->port)
                        break;
                /* The port that the kernel chose for one is in use on the other: let it choose
                 * again. */
                l->port = 0;
                listener_close(l->all[--l->count].listener);
        }
        return r == SP_E_HOST ? 0 : r;
}

static int open_listen(struct listeners *l, const char *text)
{
        struct address at;
        unsigned got;
        int r = address_of_listen(text, CONFIG_PORT, &at);
        if (!r)
                r = strcmp(at.host, "localhost") ? open_host(l, &at, &got) : open_localhost(l, &at);
        switch (r) {
        case 0:
        case SP_E_AUTH:
                break;
        case SP_E_BUSY:
                log_error(LOG, "--listen %s: the address is in use; is a spancld running already?",
                          text);
                break;
        case SP_E_HOST:
                log_error(LOG, "--listen %s: not an address of this host", text);
                break;
        case SP_E_INVAL:
                log_error(LOG,
                          "--listen %s: it takes HOST:PORT, an address that this user may "
                          "listen on",
                          text);
                break;
        default:
                log_error(LOG, "--listen %s: %s", text, status_text(r));
        }
        return r;
}

/* Warn of the first folder on the way to `path` that only this user can enter. */
static void check_folders(const char *path)
{
        char folder[300];
        struct file_info f;
        for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
                int n = slash == path ? 1 : (int)(slash - path);
                snprintf(folder, sizeof(folder), "%.*s", n, path);
                if (!file_info(folder, true, &f) || (f.mode & 011) ||
                    (f.owner && f.owner != process_user()))
                        continue;
                log_warn(LOG, "--socket-users: no other user can enter %s", folder);
                return;
        }
}

static int open_socket(struct listeners *l, const char *path)
{
        struct address at;
        struct listener *one;
        bool shared = *config_option_text(l->gate->options, CONFIG_socket_users);
        int r = address_of_path(path, &at);
        /* The file gets its final mode at once. So it never has another one, and no chmod can hit
         * a file that has taken its name. The gate decides which other users may connect. */
        unsigned before = process_file_mask(shared ? 0111 : 0177);
        if (!r)
                r = address_listen(&at, &one);
        (void)process_file_mask(before);
        if (!r && shared)
                check_folders(path);
        if (!r) {
                log_info(LOG, "listening on %s", one->address);
                return add(l, one, false);
        }
        if (r == SP_E_BUSY)
                log_error(LOG, "--socket %s: it is in use, or another file has that name", path);
        else if (r == SP_E_INVAL)
                log_error(LOG, "--socket %s: the socket can't be made there", path);
        else
                log_error(LOG, "--socket %s: %s", path, status_text(r));
        return r;
}

/* Make the socket for sessions with other servers of the same user and host. Without it they
 * connect as servers of other hosts do. */
static int open_local_path(struct listeners *l)
{
        char path[sizeof(l->local_path)];
        struct address at;
        struct listener *one;
        int r = scratch_make(l->local_path_folder, &l->local_path_lock);
        if (r < 0)
                return 0;
        int n = snprintf(path, sizeof(path), "%s/" LOCAL_PATH_NAME, l->local_path_folder);
        if (n >= (int)sizeof(path) || address_of_path(path, &at) < 0 ||
            address_listen(&at, &one) < 0)
                return 0;
        strcpy(l->local_path, path);
        log_debug(LOG, "listening on %s for servers of this host", l->local_path);
        return add(l, one, false);
}

/* Return true if this server wants that socket. Not with --fabric: its user wants the fabric
 * between servers of one host, too. */
static bool wants_local_path(const struct config_options *o)
{
        const char *fabric = config_option_text(o, CONFIG_fabric);
        return config_option_number(o, CONFIG_share) == 1 &&
               (!strcmp(fabric, "auto") || !strcmp(fabric, "off"));
}

/* Listen on the sockets that the service manager has made (sd_listen_fds(3)): LISTEN_FDS of them, from descriptor
 * 3 on, if LISTEN_PID is this process. */
static int adopt(struct listeners *l, bool *ret_hosts)
{
        enum { FIRST = 3, MOST = 64 };
        const char *pid = environment_get("LISTEN_PID"), *count = environment_get("LISTEN_FDS");
        long fds = pid && count && strtol(pid, NULL, 10) == (long)process_self()
                           ? strtol(count, NULL, 10)
                           : 0;
        int r = 0;
        for (int fd = FIRST; fd < FIRST + fds && fd < FIRST + MOST && !r; fd++) {
                struct listener *one;
                unsigned port;
                r = listener_adopt(fd, &one);
                if (r < 0) {
                        log_error(
                                LOG,
                                "descriptor %d of the service manager: no listening Unix or TCP socket",
                                fd);
                } else if (one->ops->caps & TRANSPORT_HOSTS) {
                        *ret_hosts = true;
                        r = add_host(l, one->ops, one, &port);
                } else {
                        log_info(LOG, "listening on %s, a socket of the service manager",
                                 one->address);
                        r = add(l, one, false);
                }
        }
        environment_unset("LISTEN_PID");
        environment_unset("LISTEN_FDS");
        environment_unset("LISTEN_FDNAMES");
        return r;
}

/* Return true if the service manager has made that Unix socket. */
static bool is_adopted(const struct listeners *l, const char *path)
{
        struct address at;
        char text[ADDRESS_MAX];
        if (address_of_path(path, &at) < 0)
                return false;
        address_put(&at, text);
        for (size_t i = 0; i < l->count; i++)
                if (!strcmp(l->all[i].listener->address, text))
                        return true;
        return false;
}

int listeners_open(const struct config_options *o, struct gate *gate, struct listeners *ret)
{
        bool hosts = false;
        *ret = (struct listeners){ .gate = gate, .local_path_lock = -1 };
        int adopted = adopt(ret, &hosts);
        if (adopted < 0)
                return adopted;
        for (size_t i = 0; i < o->list_count; i++) {
                if (!config_is_address(o->list[i].id))
                        continue;
                if (o->list[i].id == CONFIG_socket ? is_adopted(ret, o->list[i].value) : hosts)
                        continue;
                int r = o->list[i].id == CONFIG_socket ? open_socket(ret, o->list[i].value)
                                                       : open_listen(ret, o->list[i].value);
                if (r < 0)
                        return r;
        }
        int r = config_options_have_address(o) || ret->count
                        ? 0
                        : open_listen(ret, config_entry(CONFIG_listen)->fallback);
        for (size_t i = 0; i < ret->count; i++)
                ret->local |= (ret->all[i].listener->ops->caps & TRANSPORT_PASSES_FDS) != 0;
        return !r && wants_local_path(o) ? open_local_path(ret) : r;
}

void listeners_close(struct listeners *l)
{
        for (size_t i = 0; i < l->count; i++)
                listener_close(l->all[i].listener);
        mem_free(l->all);
        tree_remove(l->local_path_folder);
        if (l->local_path_lock > 0)
                (void)file_close(l->local_path_lock);
        *l = (struct listeners){ 0 };
}
