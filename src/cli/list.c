#include "cli/list.h"

#include <CL/cl.h>
#include <stdio.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/mem.h"
#include "cli/command.h"
#include "cli/list_found.h"
#include "cli/options.h"
#include "cli/remote.h"
#include "cli/stats_query.h"
#include "os/file.h"
#include "proto/info.h"

enum { PINGS_SHOWN = 5, SENT_BYTES = 16 << 20, TEXT_MAX = 256, LINKS_MAX = 256 };

/* Get the text of a query. */
static void take_text(struct bytes block, uint32_t key, char out[TEXT_MAX])
{
        struct bytes v = bytes_str("?");
        (void)info_find(block, key, &v);
        snprintf(out, TEXT_MAX, "%.*s", (int)strnlen(v.data, v.size), (const char *)v.data);
}

/* Make a text safe for a terminal. */
static const char *tame(char text[TEXT_MAX])
{
        return bytes_tame(text, TEXT_MAX);
}

static const char *type_name(uint64_t type)
{
        if (type & CL_DEVICE_TYPE_GPU)
                return "GPU";
        if (type & CL_DEVICE_TYPE_CPU)
                return "CPU";
        if (type & CL_DEVICE_TYPE_ACCELERATOR)
                return "accelerator";
        return "custom";
}

/* Get a value of 4 or 8 bytes. */
static uint64_t number_of(struct bytes block, uint32_t key)
{
        struct bytes v;
        if (!info_find(block, key, &v))
                return 0;
        return v.size == 4 ? bytes_get_u32(v.data) : v.size == 8 ? bytes_get_u64(v.data) : 0;
}

/* A device, as its server describes it. */
struct device {
        unsigned number;
        const char *type;
        uint64_t units, memory;
        char name[TEXT_MAX], version[TEXT_MAX], platform[TEXT_MAX];
};

static struct device device_of(unsigned number, struct bytes d)
{
        struct bytes platform = { 0 };
        struct device ret = { .number = number };
        (void)info_find(d, INFO_DEVICE_PLATFORM, &platform);
        ret.type = type_name(number_of(d, CL_DEVICE_TYPE));
        ret.units = number_of(d, CL_DEVICE_MAX_COMPUTE_UNITS);
        ret.memory = number_of(d, CL_DEVICE_GLOBAL_MEM_SIZE);
        take_text(d, CL_DEVICE_NAME, ret.name);
        take_text(d, CL_DEVICE_VERSION, ret.version);
        take_text(platform, CL_PLATFORM_NAME, ret.platform);
        return ret;
}

/* The links of a server to one other server, of all sessions together. */
struct peer_link {
        const char *name;
        unsigned sessions;
        uint64_t bytes[2]; /* sent, received */
};

/* All that `spancl list` finds out about a server. */
struct listing {
        const struct server_spec *spec;
        struct remote *remote;
        struct bytes devices;
        double round_trip_us;
        struct remote_speed speed;
        struct snapshot snapshot; /* zeroed: the server did not tell */
        struct peer_link links[LINKS_MAX];
        size_t link_count;
        char error[REMOTE_TEXT_MAX]; /* "": none */
};

static bool chosen(const struct server_spec *spec, unsigned number)
{
        for (size_t i = 0; i < spec->device_count; i++)
                if (spec->device_list[i] == number)
                        return true;
        return !spec->device_count ||
               spec->in_process; /* of an in-process server the engine has filtered */
}

static void add_link(struct listing *l, const struct snapshot_link *link)
{
        size_t i = 0;
        while (i < l->link_count && strcmp(l->links[i].name, link->name) != 0)
                i++;
        if (i == LINKS_MAX)
                return;
        if (i == l->link_count)
                l->links[l->link_count++] = (struct peer_link){ .name = link->name };
        l->links[i].sessions++;
        for (int way = 0; way < 2; way++)
                l->links[i].bytes[way] += link->bytes[way] + link->bulk[way];
}

/* Ask the server about its sessions: their links with other servers, and devices that sessions do not get. Only
 * the server that has made a link knows the other's name. */
static void query(struct listing *l, int timeout_ms)
{
        char text[STATS_QUERY_TEXT_MAX];
        if (l->spec->in_process || stats_query(l->spec, timeout_ms, &l->snapshot, text) < 0)
                return;
        for (size_t i = 0; i < l->snapshot.count; i++) {
                const struct snapshot_session *s = &l->snapshot.sessions[i];
                for (size_t k = 0; k < s->link_count; k++)
                        if (s->links[k].peer && *s->links[k].name)
                                add_link(l, &s->links[k]);
        }
}

static int find_out(struct listing *l, int timeout_ms, bool quick)
{
        int r = remote_try(l->spec, timeout_ms, &l->remote, l->error);
        if (r < 0)
                return r;
        r = remote_devices(l->remote, &l->devices);
        if (!r)
                r = remote_median(l->remote, &l->round_trip_us);
        if (!r && !quick && l->devices.size)
                r = remote_measure(l->remote, 0, SENT_BYTES, &l->speed);
        if (r < 0)
                snprintf(l->error, sizeof(l->error), "%s: %s", l->spec->name,
                         remote_reason(l->remote, r));
        else
                query(l, timeout_ms);
        return r;
}

/* Get the next device of those that the user wants. False: there is none. */
static bool next_device(const struct listing *l, struct bytes *left, unsigned *number,
                        struct device *ret)
{
        struct info_entry e;
        while (info_next(left, &e)) {
                if (e.key != INFO_DEVICE || info_check(e.value) < 0)
                        continue;
                *ret = device_of(*number, e.value);
                if (chosen(l->spec, (*number)++))
                        return true;
        }
        return false;
}

static void print_listing(const struct listing *l)
{
        struct device d;
        unsigned number = 0;
        printf("%s (%s): round trip %.1f us", l->spec->name, remote_transport(l->remote),
               l->round_trip_us);
        if (l->speed.write > 0)
                printf(", write %.2f GB/s, read %.2f GB/s", l->speed.write / 1e9,
                       l->speed.read / 1e9);
        printf("\n");
        for (struct bytes left = l->devices; next_device(l, &left, &number, &d);)
                printf("  %u  %s: %s, %llu compute units, %.1f GiB, %s (%s)\n", d.number,
                       tame(d.name), d.type, (unsigned long long)d.units,
                       (double)d.memory / (1 << 30), tame(d.version), tame(d.platform));
        for (size_t i = 0; i < l->snapshot.notice_count; i++)
                printf("  %s\n", bytes_tame(l->snapshot.notices[i].text, SNAPSHOT_NOTICE));
        for (size_t i = 0; i < l->link_count; i++) {
                char name[SNAPSHOT_NAME];
                snprintf(name, sizeof(name), "%s", l->links[i].name);
                printf("  link to %s: %u sessions, sent %.1f MiB, received %.1f MiB\n",
                       bytes_tame(name, sizeof(name)), l->links[i].sessions,
                       (double)l->links[i].bytes[0] / (1 << 20),
                       (double)l->links[i].bytes[1] / (1 << 20));
        }
}

static void json_device(struct json_writer *w, const struct device *d)
{
        json_begin(w, NULL, '{');
        json_put_u64(w, "number", d->number);
        json_put_text(w, "name", d->name);
        json_put_text(w, "type", d->type);
        json_put_u64(w, "compute_units", d->units);
        json_put_u64(w, "memory_bytes", d->memory);
        json_put_text(w, "version", d->version);
        json_put_text(w, "platform", d->platform);
        json_end(w, '}');
}

static void put_speed(struct json_writer *w, const char *name, double speed)
{
        if (speed > 0)
                json_put_real(w, name, speed, 0);
        else
                json_put_null(w, name);
}

static void json_listing(const struct listing *l)
{
        struct json_writer w = { .to = stdout };
        struct device d;
        unsigned number = 0;
        json_begin(&w, NULL, '{');
        json_put_text(&w, "server", l->spec->name);
        json_put_bool(&w, "reachable", !*l->error);
        json_put_text(&w, "error", *l->error ? l->error : NULL);
        if (*l->error) {
                json_end(&w, '}');
                json_line(&w);
                return;
        }
        json_put_text(&w, "transport", remote_transport(l->remote));
        json_put_real(&w, "round_trip_ns", l->round_trip_us * 1000, 0);
        put_speed(&w, "write_bytes_per_s", l->speed.write);
        put_speed(&w, "read_bytes_per_s", l->speed.read);
        json_begin(&w, "devices", '[');
        for (struct bytes left = l->devices; next_device(l, &left, &number, &d);)
                json_device(&w, &d);
        json_end(&w, ']');
        snapshot_json_notices(&w, &l->snapshot);
        json_begin(&w, "links", '[');
        for (size_t i = 0; i < l->link_count; i++) {
                json_begin(&w, NULL, '{');
                json_put_text(&w, "to", l->links[i].name);
                json_put_u64(&w, "sessions", l->links[i].sessions);
                json_put_u64(&w, "sent_bytes", l->links[i].bytes[0]);
                json_put_u64(&w, "received_bytes", l->links[i].bytes[1]);
                json_end(&w, '}');
        }
        json_end(&w, ']');
        json_end(&w, '}');
        json_line(&w);
}

static int list_server(const struct server_spec *spec, int timeout_ms, bool quick, bool json)
{
        struct listing l = { .spec = spec };
        int r = find_out(&l, timeout_ms, quick);
        if (r < 0)
                fprintf(stderr, "spancl: %s\n", l.error);
        if (json)
                json_listing(&l);
        else if (r < 0)
                printf(file_is_terminal(FILE_STDOUT) ? "\033[31m%s: NOT REACHABLE\033[0m\n"
                                                     : "%s: NOT REACHABLE\n",
                       spec->name);
        else
                print_listing(&l);
        fflush(stdout);
        snapshot_fini(&l.snapshot);
        remote_close(l.remote);
        return r;
}

int command_list(int argc, char **argv)
{
        struct queried at;
        bool flags[2] = { false };
        size_t failed = 0;
        if (argc == 1 && !strcmp(argv[0], "--discover"))
                return list_found(options_timeout());
        if (options_query("list", argc, argv, (const char *const[]){ "--quick", "--json", NULL },
                          flags, &at) < 0)
                return 2;
        for (size_t k = 0; k < at.count; k++)
                failed += list_server(&at.servers[k], at.timeout_ms, flags[0], flags[1]) < 0;
        if (failed)
                options_hint(&at);
        config_servers_free(at.servers, at.count);
        return failed ? 1 : 0;
}

/* ---- ping ----------------------------------------------------------------------------------- */

static void begin_event(struct json_writer *w, const struct server_spec *spec, const char *event)
{
        json_begin(w, NULL, '{');
        json_put_text(w, "server", spec->name);
        json_put_text(w, "event", event);
}

static void end_event(struct json_writer *w)
{
        json_end(w, '}');
        json_line(w);
}

static void print_connected(const struct server_spec *spec, struct remote *r, bool json)
{
        struct json_writer w = { .to = stdout };
        if (!json) {
                printf("%s (%s): connected in %.1f ms\n", spec->name, remote_transport(r),
                       (double)remote_connect_ns(r) / 1e6);
                return;
        }
        begin_event(&w, spec, "connected");
        json_put_text(&w, "transport", remote_transport(r));
        json_put_u64(&w, "connect_ns", remote_connect_ns(r));
        end_event(&w);
}

static void print_trip(const struct server_spec *spec, const char *event, double ns, bool json)
{
        struct json_writer w = { .to = stdout };
        if (!json && *event == 'm') {
                printf("%s: median of %d: %.1f us\n", spec->name, REMOTE_PINGS, ns / 1000);
        } else if (!json) {
                printf("%s: round trip %.1f us\n", spec->name, ns / 1000);
        } else {
                begin_event(&w, spec, event);
                json_put_real(&w, "round_trip_ns", ns, 0);
                end_event(&w);
        }
}

static int ping(const struct server_spec *spec, int timeout_ms, bool json)
{
        struct json_writer w = { .to = stdout };
        struct remote *r = NULL;
        char text[REMOTE_TEXT_MAX];
        double us = 0;
        int status = remote_try(spec, timeout_ms, &r, text);
        if (!status)
                print_connected(spec, r, json);
        for (int i = 0; i < PINGS_SHOWN && !status; i++) {
                uint64_t ns;
                status = remote_ping(r, &ns);
                if (!status)
                        print_trip(spec, "ping", (double)ns, json);
        }
        if (!status)
                status = remote_median(r, &us);
        if (!status) {
                print_trip(spec, "median", us * 1000, json);
        } else {
                if (r)
                        snprintf(text, sizeof(text), "%s: %s", spec->name,
                                 remote_reason(r, status));
                fprintf(stderr, "spancl: %s\n", text);
        }
        if (status < 0 && json) {
                begin_event(&w, spec, "error");
                json_put_text(&w, "error", text);
                end_event(&w);
        }
        remote_close(r);
        return status;
}

int command_ping(int argc, char **argv)
{
        struct server_spec *servers;
        size_t count;
        int failed = 0;
        bool json = argc == 2 && !strcmp(argv[1], "--json");
        if (argc == 2 && !strcmp(argv[0], "--json")) {
                json = true;
                argv++;
        }
        if (argc != 1 + json || !strncmp(argv[0], "--", 2))
                return command_usage("ping");
        if (options_servers(argv[0], "ping", &servers, &count) < 0)
                return 2;
        for (size_t i = 0; i < count; i++)
                failed += ping(&servers[i], options_timeout(), json) < 0;
        config_servers_free(servers, count);
        return failed ? 1 : 0;
}
