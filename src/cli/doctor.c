#include "cli/doctor.h"

#include <CL/cl.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/compute.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "cli/stats_query.h"
#include "config/faults.h"
#include "config/servers.h"
#include "config/variables.h"
#include "loop/dial.h"
#include "os/clock.h"
#include "os/date.h"
#include "os/file.h"
#include "os/folder.h"
#include "os/icd.h"
#include "os/net/socket.h"
#include "os/process/library.h"
#include "os/process/library_name.h"
#include "proto/info.h"
#include "transport/address.h"
#include "transport/keys.h"
#include "transport/tls.h"

enum {
        TEXT_MAX = 1600,
        RATE_SIZE = 16 << 20, /* as spancl list */
        DISCARD = 9,          /* the port of the service that takes anything */
        CLOCK_PERCENT = 1,    /* by which clocks may differ in speed */
};

#define DAY_NS 86400000000000ull

/* ---- findings ------------------------------------------------------------------------------- */

enum state {
        OK,
        WARNING,
        FAULT,
};

struct doctor {
        bool json;
        const char *server; /* that the checks are about; NULL: this host */
        unsigned warnings, faults;
        unsigned out_of_service; /* devices of `server` */
        bool sandbox;            /* `server` has reported its sandbox */
        int timeout_ms;
        char library[PATH_MAX]; /* the registered one; "": none */
};

struct text {
        char text[TEXT_MAX];
};

__attribute__((format(printf, 1, 0))) static struct text text_va(const char *fmt, va_list ap)
{
        struct text t;
        vsnprintf(t.text, sizeof(t.text), fmt, ap);
        bytes_tame(t.text, sizeof(t.text));
        return t;
}

__attribute__((format(printf, 1, 2))) static struct text text_of(const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        struct text t = text_va(fmt, ap);
        va_end(ap);
        return t;
}

static const char *const state_names[] = { [OK] = "ok", [WARNING] = "warning", [FAULT] = "fault" };

static void put_json(const struct doctor *d, enum state s, const char *check, const char *text,
                     const char *remedy)
{
        struct json_writer w = { .to = stdout };
        json_begin(&w, NULL, '{');
        if (d->server)
                json_put_text(&w, "server", d->server);
        json_put_text(&w, "check", check);
        json_put_text(&w, "state", state_names[s]);
        json_put_text(&w, "text", text);
        json_put_text(&w, "remedy", remedy);
        json_end(&w, '}');
        json_line(&w);
}

/* Print a line about a check. `remedy`: the next step, as a command or clause; "" if there is none. */
__attribute__((format(printf, 5, 6))) static void report(struct doctor *d, enum state s,
                                                         const char *check, const char *remedy,
                                                         const char *fmt, ...)
{
        va_list ap;
        va_start(ap, fmt);
        struct text t = text_va(fmt, ap);
        va_end(ap);
        d->warnings += s == WARNING;
        d->faults += s == FAULT;
        if (d->json)
                put_json(d, s, check, t.text, remedy);
        else
                printf("  %-8s %-13s %s%s%s\n", state_names[s], check, t.text,
                       *remedy ? " -> " : "", remedy);
        fflush(stdout);
}

static void begin(struct doctor *d, const char *server)
{
        d->server = server;
        d->out_of_service = 0;
        d->sandbox = false;
        if (!d->json)
                printf("%s\n", server ? server : "this host");
}

/* ---- this host ------------------------------------------------------------------------------ */

static void check_loader(struct doctor *d)
{
        struct library *loader = library_load(LIBRARY_LOADER, LIBRARY_LAZY);
        if (!loader) {
                report(d, FAULT, "loader", "install one (Debian: ocl-icd-libopencl1)",
                       "programs find no OpenCL loader: " LIBRARY_LOADER " is missing");
                return;
        }
        const char *path = library_path(loader);
        report(d, OK, "loader", "", "%s", path ? path : LIBRARY_LOADER);
        library_unload(loader);
}

#define VENDORS "/etc/OpenCL/vendors"

static bool ends_with(const char *text, const char *end)
{
        size_t n = strlen(text), m = strlen(end);
        return n >= m && !strcmp(text + n - m, end);
}

/* Remember a library, if it is SpanCL's and the first one. */
static void find_in_name(struct doctor *d, const char *library)
{
        const char *slash = strrchr(library, '/');
        if (!*d->library &&
            !strncmp(slash ? slash + 1 : library, LIBRARY_CLIENT_ANY, strlen(LIBRARY_CLIENT_ANY)))
                snprintf(d->library, sizeof(d->library), "%s", library);
}

static void find_in_list(void *user, const char *library)
{
        find_in_name(user, library);
}

static void find_in_file(struct doctor *d, const char *path)
{
        char line[PATH_MAX];
        FILE *f = fopen(path, "re");
        if (f && fgets(line, sizeof(line), f)) {
                line[strcspn(line, " \t\r\n")] = 0;
                find_in_name(d, line);
        }
        if (f)
                fclose(f);
}

struct vendors {
        struct doctor *doctor;
        const char *folder;
};

static void find_in_entry(void *user, const char *name)
{
        const struct vendors *v = user;
        char path[PATH_MAX];
        if (ends_with(name, ".icd") &&
            snprintf(path, sizeof(path), "%s/%s", v->folder, name) < PATH_MAX)
                find_in_file(v->doctor, path);
}

/* Search where the loader of programs does, ocl-icd or Khronos': OCL_ICD_VENDORS (ocl-icd also takes
 * OPENCL_VENDOR_PATH) is a folder, a file .icd or a library, in place of the usual folder.
 * OCL_ICD_FILENAMES has further libraries. The native backend is a loader itself, and searches more folders
 * (backend/native/icd.c): SpanCL in one of those is no use to programs. */
static void find_registration(struct doctor *d, const char *vendors)
{
        const char *more = getenv("OCL_ICD_FILENAMES");
        char path[PATH_MAX];
        struct vendors v = { d, vendors };
        icd_each(find_in_list, d);
        if (folder_exists(vendors)) {
                (void)folder_names(vendors, find_in_entry, &v);
        } else if (ends_with(vendors, ".icd")) {
                int n = snprintf(path, sizeof(path), "%s%s",
                                 strchr(vendors, '/') ? "" : VENDORS "/", vendors);
                if (n > 0 && (size_t)n < sizeof(path))
                        find_in_file(d, path);
        } else {
                find_in_name(d, vendors);
        }
        while (more && *more) {
                size_t n = strcspn(more, LIBRARY_SEPARATOR);
                snprintf(path, sizeof(path), "%.*s", (int)n, more);
                find_in_name(d, path);
                more += n + (more[n] != 0);
        }
}

static void check_icd(struct doctor *d)
{
        const char *name = "OCL_ICD_VENDORS", *set = getenv(name);
        if (!set || !*set)
                set = getenv(name = "OPENCL_VENDOR_PATH");
        const bool is_set = set && *set;
        const char *vendors = is_set ? set : VENDORS;
        find_registration(d, vendors);
        if (!*d->library) {
                struct text remedy = text_of(
                        "`spancl run PROGRAM` needs no entry; for other programs %s%s%s",
                        is_set ? "unset " : "install SpanCL", is_set ? name : "",
                        is_set ? " if SpanCL is installed, or set it to the path of " LIBRARY_CLIENT
                               : ", or set OCL_ICD_VENDORS to the path of " LIBRARY_CLIENT);
                report(d, FAULT, "icd", remedy.text,
                       "the loader does not find SpanCL: no file in %s names " LIBRARY_CLIENT
                       "%s%s%s",
                       vendors, is_set ? " (" : "", is_set ? name : "", is_set ? ")" : "");
                return;
        }
        struct library *library = library_load(d->library, LIBRARY_LAZY);
        if (library) {
                report(d, OK, "icd", "", "%s", d->library);
                library_unload(library);
                return;
        }
        report(d, FAULT, "icd", "install SpanCL again, or correct the file that names it",
               "%s is registered, but can't be loaded: %s", d->library, library_error());
        d->library[0] = 0;
}

static void count_fault(void *user, const char *text)
{
        report(user, WARNING, "configuration",
               "correct it: `spancl config` shows values and their places", "%s", text);
}

static void check_configuration(struct doctor *d)
{
        char place[PATH_MAX];
        unsigned before = d->warnings;
        config_faults(count_fault, d);
        if (d->warnings > before)
                return;
        config_place(CONFIG_servers, place, sizeof(place));
        if (config_is_set(CONFIG_servers))
                report(d, OK, "configuration", "", "servers: %s (%s)", config_text(CONFIG_servers),
                       place);
        else
                report(d, OK, "configuration", "", "it chooses no servers");
}

/* Check one file of keys. Returns false after a fault. `ret_found`: there is such a file. */
static bool check_key_file(struct doctor *d, const char *folder, const char *file, bool *ret_found)
{
        char text[KEYS_TEXT_MAX], *content = NULL;
        int r = keys_read(folder, file, &content, text);
        *ret_found = !r;
        if (!r && !strcmp(file, KEYS_SERVERS)) {
                const char *left = content;
                struct keys_entry e;
                unsigned bad = 0;
                while (keys_next(&left, &e, &bad))
                        ;
                if (bad)
                        report(d, WARNING, "keys", "remove them, and pair again",
                               "%s/%s has lines that are not keys: %u", folder, file, bad);
        }
        if (!r) {
                explicit_bzero(content, strlen(content));
                mem_free(content);
        }
        if (!r || r == SP_E_NOENT)
                return true;
        struct text remedy =
                r == SP_E_AUTH ? text_of("`chmod 700 %s && chmod 600 %s/*`, as their owner", folder,
                                         folder)
                               : text_of("correct or remove %s/%s, and pair again", folder, file);
        report(d, FAULT, "keys", remedy.text, "%s", text);
        return false;
}

static void check_keys(struct doctor *d)
{
        static const char *const files[] = { KEYS_IDENTITY, KEYS_SERVERS, KEYS_AUTHORITY,
                                             KEYS_TOKEN };
        char folder[KEYS_PATH_MAX];
        bool found, has_identity = false;
        if (keys_folder(NULL, folder) < 0) {
                report(d, WARNING, "keys", "set SPANCL_KEYS, or HOME",
                       "this user has no folder for keys");
                return;
        }
        for (size_t i = 0; i < array_size(files); i++) {
                if (!check_key_file(d, folder, files[i], &found))
                        return;
                has_identity |= found && !strcmp(files[i], KEYS_IDENTITY);
        }
        report(d, OK, "keys", "", "%s: %s", folder,
               has_identity ? "private" : "no key of this user yet; `spancl pair` makes it");
}

/* The protocol has no time of day, so this is about this host's alone. */
static void check_date(struct doctor *d)
{
        int year;
        unsigned month, day;
        const uint64_t now = clock_wall_ns();
        const struct date t = date_of(now);
        struct text shown =
                text_of("%d-%02u-%02u %02u:%02u UTC", t.year, t.month, t.day, t.hour, t.minute);
        bool behind = sscanf(SPANCL_DATE, "%d-%u-%u", &year, &month, &day) == 3 &&
                      now + DAY_NS < date_begin_ns(year, month, day);
        report(d, behind ? WARNING : OK, "date",
               behind ? "set the clock: keys of an authority and codes of pairing have an end" : "",
               "%s%s", shown.text, behind ? ", before this version was made" : "");
}

/* ---- the way to a server -------------------------------------------------------------------- */

/* "192.0.2.1, 2001:db8::1", as far as there is room. */
static void list_addresses(const struct socket_address *all, size_t count, char *ret, size_t size)
{
        char host[SOCKET_HOST_MAX];
        unsigned port;
        size_t n = 0;
        ret[0] = 0;
        for (size_t i = 0; i < count; i++)
                if (socket_address_text(&all[i], host, &port) && n + strlen(host) + 3 <= size)
                        n += (size_t)snprintf(ret + n, size - n, "%s%s", n ? ", " : "", host);
}

/* Find the address of this host from which the system would send there. A socket of datagrams sends nothing when it
 * is connected. Returns 0, or the errno: there is no route. */
static int find_route(const struct socket_address *to, char ret[SOCKET_HOST_MAX])
{
        struct socket_address own;
        unsigned port;
        int fd = socket_new_datagrams(to);
        if (fd < 0)
                return errno;
        int error = socket_connect(fd, to) && socket_own_address(fd, &own) ? 0 : errno;
        (void)file_close(fd);
        if (!error && !socket_address_text(&own, ret, &port))
                strcpy(ret, "?");
        return error;
}

/* Check the name, and the route to one of its addresses. */
static bool check_network(struct doctor *d, const struct address *at)
{
        struct socket_address *all;
        size_t count;
        char list[TEXT_MAX], own[SOCKET_HOST_MAX];
        const char *why;
        if (socket_address_resolve(at->host, DISCARD, false, &all, &count, &why) < 0) {
                report(d, FAULT, "name",
                       "correct the name, add it to DNS or /etc/hosts, or use the address",
                       "%s does not resolve: %s", at->host, why);
                return false;
        }
        list_addresses(all, count, list, sizeof(list));
        report(d, OK, "name", "", "%s is %s", at->host,
               strcmp(list, at->host) != 0 ? list : "an address");
        int r = ENETUNREACH;
        for (size_t i = 0; i < count && r; i++)
                r = find_route(&all[i], own);
        free(all);
        if (r)
                report(d, FAULT, "route",
                       "connect this host to that network (`ip route get ADDRESS`)",
                       "no route to %s: %s", list, strerror(r));
        else
                report(d, OK, "route", "", "from %s", own);
        return !r;
}

/* Write what to do if no connection to the port could be made. */
static struct text port_remedy(const struct address *at, int status)
{
        bool host = at->ops->caps & TRANSPORT_HOSTS;
        switch (status) {
        case SP_E_REFUSED:
                return host ? text_of("start `spancld --listen '*'` there, or name the port that it "
                                      "listens on: %s:PORT",
                                      at->host)
                            : text_of("start `spancld --socket %s`", at->host);
        case SP_E_AUTH:
                return text_of(
                        "let this user in: make it a member of the socket's group (usermod --append "
                        "--groups), or use --socket-users");
        case SP_E_TIMEOUT:
                return text_of("let port %u through the firewalls, and see that the host is up; "
                               "SPANCL_CONNECT_TIMEOUT sets the time",
                               at->port);
        default:
                return text_of("see that the host is up, and that firewalls let port %u through",
                               at->port);
        }
}

static const char *port_state(int status)
{
        switch (status) {
        case 0:
                return "is open";
        case SP_E_REFUSED:
                return "refuses: no process listens there";
        case SP_E_TIMEOUT:
                return "does not answer";
        case SP_E_LINK:
        case SP_E_UNREACH:
                return "can't be reached";
        case SP_E_AUTH:
                return "is not for this user";
        default:
                return status_text(status);
        }
}

/* Check that a process listens there. */
static bool check_port(struct doctor *d, const struct address *at)
{
        struct address plain = *at;
        struct conn *conn;
        bool host = at->ops->caps & TRANSPORT_HOSTS;
        if (at->ops->below) {
                plain.ops = at->ops->below;
                plain.key[0] = 0;
        }
        int r = address_connect(&plain, d->timeout_ms, &conn);
        struct text remedy = r < 0 ? port_remedy(at, r) : text_of("%s", "");
        struct text place = host ? text_of("%u", at->port) : text_of("%s", at->host);
        report(d, r < 0 ? FAULT : OK, host ? "port" : "socket", remedy.text, "%s %s", place.text,
               port_state(r));
        if (!r)
                conn_close(conn);
        return !r;
}

/* Find a key among those of the servers that this user knows. */
static bool find_key(const uint8_t fingerprint[CRYPTO_FINGERPRINT], struct keys_entry *ret)
{
        char folder[KEYS_PATH_MAX], text[KEYS_TEXT_MAX], *list;
        if (keys_folder(NULL, folder) < 0 || keys_read(folder, KEYS_SERVERS, &list, text) < 0)
                return false;
        bool found = keys_find(list, fingerprint, NULL, ret);
        mem_free(list);
        return found;
}

/* Report whether the link is encrypted, and why this user trusts the server. */
static void report_pairing(struct doctor *d, const struct address *at, const struct conn *conn)
{
        const struct tls_peer *peer = tls_peer(conn);
        struct keys_entry known;
        char hex[KEYS_HEX + 1] = "none";
        if (!peer && address_is_here(at)) {
                report(d, OK, "pairing", "", "not needed: the server is on this host");
                return;
        }
        if (!peer) {
                report(d, WARNING, "pairing",
                       "let the server use keys, pair with it, and name it without a scheme",
                       "the link is not encrypted, and the server is not known by a key");
                return;
        }
        if (peer->known)
                keys_hex(peer->fingerprint, hex);
        if (*peer->psk)
                report(d, OK, "pairing", "", "both sides have the same token");
        else if (*at->key)
                report(d, OK, "pairing", "", "key %.16s, as the address has it", hex);
        else if (peer->known && find_key(peer->fingerprint, &known))
                report(d, OK, "pairing", "", "key %.16s, known as %s", hex,
                       strcmp(known.name, "*") != 0 ? known.name : "a server at any address (*)");
        else
                report(d, OK, "pairing", "", "key %.16s, %s", hex,
                       peer->vouched ? "which this user's authority has signed"
                                     : "this user's own");
}

/* Write what to do if the sides do not trust each other. */
static struct text pairing_remedy(const struct server_spec *spec, const struct address *at)
{
        if (*at->key)
                return text_of("correct the key in the server's address");
        return text_of("`spancld pair` on that host shows a code, and `spancl pair %s` takes it",
                       spec->name);
}

static const char repair[] = "the server's log says why; start spancld again after repairs";

/* Report how sessions are kept apart on the server; nothing if its state is not known here. */
static void report_sandbox(struct doctor *d, uint64_t state)
{
        static const char remedy[] = "docs/SECURITY.md says what namespaces need";
        if (state == INFO_SANDBOX_OFF)
                report(d, WARNING, "sandbox", "start spancld without `--sandbox 0`",
                       "the server isolates no session");
        else if (state == INFO_SANDBOX_SHARED)
                report(d, WARNING, "sandbox", remedy,
                       "sessions see the server's processes and network interfaces");
        else if (state == INFO_SANDBOX_WHOLE)
                report(d, OK, "sandbox", "", "sessions are isolated");
}

/* The server's report about itself. A session gets no device that is out of service. */
static void on_stats(void *user, const struct wire_session_stats *m)
{
        struct doctor *d = user;
        struct bytes number, server, sandbox;
        if (!d->sandbox && info_find(m->links, INFO_SERVER, &server) &&
            info_find(server, INFO_SERVER_SANDBOX, &sandbox)) {
                d->sandbox = true;
                report_sandbox(d, info_u64(server, INFO_SERVER_SANDBOX, UINT64_MAX));
        }
        if (!info_find(m->links, INFO_OUT_OF_SERVICE, &number))
                return;
        d->out_of_service++;
        report(d, WARNING, "driver", repair, "%.*s", (int)m->name.size, (const char *)m->name.data);
}

/* Exchange hellos, and ask for devices out of service. */
static bool check_hello(struct doctor *d, const struct server_spec *spec, const struct address *at)
{
        struct dial_reply reply;
        struct conn *conn;
        const struct dial_params p = {
                .address = spec->address,
                .timeout_ms = d->timeout_ms,
                .role = DIAL_LOOK,
                .name = "spancl",
        };
        int r = loop_connect(&p, &conn, &reply);
        if (!r) {
                report_pairing(d, at, conn);
                report(d, OK, "protocol", "", "version %" PRIu64, reply.version);
                (void)!stats_query_receive(conn, d->timeout_ms, on_stats, d);
                conn_close(conn);
                return true;
        }
        const char *why = remote_without_address(reply.text, spec->address);
        if (r == SP_E_AUTH)
                report(d, FAULT, "pairing", pairing_remedy(spec, at).text, "%s", why);
        else if (r == SP_E_UNSUPP)
                report(d, FAULT, "pairing",
                       "install SpanCL's TLS module (" LIBRARY_NAME("spancl-tls") ", libssl)", "%s",
                       why);
        else if (r == SP_E_VERSION)
                report(d, FAULT, "protocol", "install the same version of SpanCL on both hosts",
                       "%s", why);
        else
                report(d, FAULT, "protocol",
                       "see that the port is spancld's, and that both sides encrypt; its log says more",
                       "%s", why);
        return false;
}

/* ---- the server ----------------------------------------------------------------------------- */

struct platforms {
        char list[TEXT_MAX];
        unsigned devices;
};

static int size_of(struct bytes text)
{
        return text.size ? (int)strnlen(text.data, text.size) : 0;
}

/* Return true if the list, which has commas between its parts, has this one. */
static bool has_part(const char *list, const char *one)
{
        size_t n = strlen(one);
        for (const char *p = list; (p = strstr(p, one)); p++)
                if ((p == list || (p - list >= 2 && p[-2] == ',')) && (!p[n] || p[n] == ','))
                        return true;
        return false;
}

/* Add the device's driver to the list, if it is not there yet. */
static void add_platform(struct platforms *p, struct bytes device)
{
        struct bytes block = { 0 }, name = { 0 }, version = { 0 };
        char one[256];
        if (info_find(device, INFO_DEVICE_PLATFORM, &block) && !info_check(block))
                (void)info_find(block, CL_PLATFORM_NAME, &name);
        (void)info_find(device, CL_DRIVER_VERSION, &version);
        snprintf(one, sizeof(one), "%.*s %.*s", size_of(name), (const char *)name.data,
                 size_of(version), (const char *)version.data);
        size_t n = strlen(p->list);
        if (!has_part(p->list, one))
                snprintf(p->list + n, sizeof(p->list) - n, "%s%s", n ? ", " : "", one);
        p->devices++;
}

static bool check_driver(struct doctor *d, struct remote *r, const struct server_spec *spec)
{
        const char *remedy =
                d->out_of_service ? repair
                                  : "install an OpenCL driver there, see that `clinfo` lists its "
                                    "devices, and start spancld again";
        struct platforms p = { 0 };
        struct bytes devices;
        struct info_entry e;
        int status = remote_devices(r, &devices);
        if (status < 0) {
                report(d, FAULT, "driver", remedy, "%s", remote_reason(r, status));
                return false;
        }
        while (info_next(&devices, &e))
                if (e.key == INFO_DEVICE && !info_check(e.value))
                        add_platform(&p, e.value);
        if (!p.devices) {
                report(d, FAULT, "driver", remedy, "the server has no device");
                return false;
        }
        report(d, OK, "driver", "", "%u %s of %s", p.devices, p.devices == 1 ? "device" : "devices",
               p.list);
        for (size_t i = 0; i < spec->device_count && !spec->in_process; i++)
                if (spec->device_list[i] >= p.devices)
                        report(d, WARNING, "driver", "correct the list behind the server's name",
                               "the server has no device %u", spec->device_list[i]);
        return true;
}

/* Report whether both monotonic clocks run at one speed. Profiling times are converted between them. */
static void report_clocks(struct doctor *d, const struct remote_clock *first,
                          const struct remote_clock *last)
{
        double here = (double)(last->here_ns - first->here_ns);
        double there = (double)(last->there_ns - first->there_ns);
        double unsure = (double)(first->round_trip_ns + last->round_trip_ns) / 2;
        double off = there > here ? there - here : here - there;
        bool wrong = off > unsure + here * CLOCK_PERCENT / 100;
        report(d, wrong ? WARNING : OK, "clocks",
               wrong ? "mend that host's clock source; until then do not trust profiling times"
                     : "",
               wrong ? "the server's clock differs in speed by %.1f%%"
                     : "no difference in speed, within %.2g%%",
               (wrong ? off : unsure) * 100 / (here > 0 ? here : 1));
}

/* Measure the link, and compare the clocks before and after that. */
static bool check_speed(struct doctor *d, struct remote *r)
{
        struct remote_clock first, last;
        struct remote_speed speed = { 0 };
        double us = 0;
        int status = remote_clock(r, &first);
        if (!status)
                status = remote_median(r, &us);
        if (!status)
                status = remote_measure(r, 0, RATE_SIZE, &speed);
        if (!status)
                status = remote_clock(r, &last);
        if (status < 0) {
                report(d, FAULT, "link", "the server's log says why it broke", "%s",
                       remote_reason(r, status));
                return false;
        }
        report_clocks(d, &first, &last);
        report(d, OK, "link", "", "%s, round trip %.1f us, write %.2f GB/s, read %.2f GB/s",
               remote_transport(r), us, speed.write / 1e9, speed.read / 1e9);
        return true;
}

static bool check_session(struct doctor *d, const struct server_spec *spec)
{
        struct remote *r;
        char text[REMOTE_TEXT_MAX];
        int status = remote_try(spec, d->timeout_ms, &r, text);
        if (status < 0) {
                report(d, FAULT, "session",
                       status == SP_E_LIMIT
                               ? "wait until a session ends, or raise the server's limits"
                       : status == SP_E_NODEV && d->out_of_service ? repair
                       : status == SP_E_NODEV
                               ? "install an OpenCL driver there, and see its --devices"
                               : "the server's log says why",
                       "%s", text);
                return false;
        }
        bool good = check_driver(d, r, spec) && check_speed(d, r);
        remote_close(r);
        return good;
}

/* ---- the command ---------------------------------------------------------------------------- */

static void check_kernel(struct doctor *d, const struct server_spec *spec)
{
        static const enum state states[] = {
                [COMPUTE_RIGHT] = OK, [COMPUTE_NOT] = WARNING, [COMPUTE_WRONG] = FAULT
        };
        static const char *const remedies[] = {
                [COMPUTE_RIGHT] = "",
                [COMPUTE_NOT] = "use programs that have binaries or built-in kernels for them",
                [COMPUTE_WRONG] =
                        "see the server's log, and run an OpenCL program there without SpanCL",
        };
        char said[COMPUTE_TEXT_MAX];
        int c = compute_apart(d->library, spec, said);
        report(d, states[c], "kernel", remedies[c], "%s",
               *said ? said : "the process that should compute did not run");
}

static void check_server(struct doctor *d, const struct server_spec *spec)
{
        struct address at;
        begin(d, spec->name);
        if (spec->implied)
                report(d, WARNING, "choice", "`spancl use HOST` names servers for all programs",
                       "no server is configured, so %s is tried", spec->name);
        if (!spec->in_process) {
                if (address_parse(spec->address, &at) < 0) {
                        report(d, FAULT, "name", "correct it: HOST[:PORT]", "not an address: %s",
                               spec->address);
                        return;
                }
                if (at.ops->caps & TRANSPORT_PEERS && at.ops->caps & TRANSPORT_HOSTS &&
                    !check_network(d, &at))
                        return;
                if (!check_port(d, &at) || !check_hello(d, spec, &at))
                        return;
        }
        if (check_session(d, spec))
                check_kernel(d, spec);
}

static void check_host(struct doctor *d)
{
        begin(d, NULL);
        check_loader(d);
        check_icd(d);
        check_configuration(d);
        check_keys(d);
        check_date(d);
}

/* Find the servers: those of the arguments, else the configured ones. */
static int find_servers(int argc, char **argv, struct server_specs *ret, char **ret_error)
{
        int r = 0;
        for (int i = 0; i < argc && !r; i++)
                r = server_specs_add(ret, argv[i], strlen(argv[i]), "HOST", ret_error);
        return argc ? r : config_servers(&ret->specs, &ret->count, ret_error);
}

int command_doctor(int argc, char **argv)
{
        struct doctor d = { .timeout_ms = options_timeout() };
        struct server_specs all = { 0 };
        char *error = NULL;
        int names = 0;
        for (int i = 0; i < argc; i++) {
                if (!strcmp(argv[i], "--json"))
                        d.json = true;
                else if (argv[i][0] == '-')
                        return command_usage("doctor");
                else
                        argv[names++] = argv[i];
        }
        check_host(&d);
        if (find_servers(names, argv, &all, &error) < 0)
                report(&d, FAULT, "servers", "correct it: `spancl --help` has the grammar", "%s",
                       error ? error : "out of memory");
        mem_free(error);
        for (size_t i = 0; i < all.count; i++)
                check_server(&d, &all.specs[i]);
        config_servers_free(all.specs, all.count);
        if (!d.json)
                printf("%u %s, %u %s\n", d.faults, d.faults == 1 ? "fault" : "faults", d.warnings,
                       d.warnings == 1 ? "warning" : "warnings");
        return d.faults ? 1 : 0;
}
