#include "cli/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "cli/options.h"
#include "cli/stats_query.h"
#include "os/file.h"
#include "os/thread.h"
#include "proto/info.h"

enum { PERIOD_NS = 1000000000 };

/* "12.3 MiB" */
static const char *size_text(uint64_t bytes, char out[16])
{
        static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
        double value = (double)bytes;
        size_t unit = 0;
        for (; value >= 1024 && unit + 1 < array_size(units); unit++)
                value /= 1024;
        snprintf(out, 16, unit ? "%.1f %s" : "%.0f %s", value, units[unit]);
        return out;
}

/* Print the fabric's share of the bulk bytes, if there is one. */
static void print_fabric(struct bytes link)
{
        char bytes[2][16];
        uint64_t sent = info_u64(link, INFO_LINK_FABRIC_SENT, 0);
        uint64_t received = info_u64(link, INFO_LINK_FABRIC_RECEIVED, 0);
        if (sent || received)
                printf("      %-34s%10s%12s%12s%10s%12s%12s\n", "by fabric", "", "",
                       size_text(sent, bytes[0]), "", "", size_text(received, bytes[1]));
}

static void print_link(struct bytes link)
{
        char name[128] = "client", bytes[4][16];
        struct bytes where;
        uint64_t peer = info_u64(link, INFO_LINK_PEER, 0);
        if (peer && info_find(link, INFO_LINK_NAME, &where))
                snprintf(name, sizeof(name), "server %.*s", (int)where.size,
                         (const char *)where.data);
        else if (peer)
                snprintf(name, sizeof(name), "server that connected, number %" PRIu64,
                         peer & 0xffffffff);
        bytes_tame(name, sizeof(name));
        if (info_u64(link, INFO_LINK_RELAYED, 0))
                snprintf(name + strlen(name), sizeof(name) - strlen(name), ", through the client");
        printf("    %-36s%10" PRIu64 "%12s%12s%10" PRIu64 "%12s%12s\n", name,
               info_u64(link, INFO_LINK_MESSAGES_SENT, 0),
               size_text(info_u64(link, INFO_LINK_BYTES_SENT, 0), bytes[0]),
               size_text(info_u64(link, INFO_LINK_BULK_SENT, 0), bytes[1]),
               info_u64(link, INFO_LINK_MESSAGES_RECEIVED, 0),
               size_text(info_u64(link, INFO_LINK_BYTES_RECEIVED, 0), bytes[2]),
               size_text(info_u64(link, INFO_LINK_BULK_RECEIVED, 0), bytes[3]));
        print_fabric(link);
}

/* "3 h 12 min" */
static const char *age_text(uint64_t ns, char out[32])
{
        uint64_t s = ns / 1000000000;
        if (s < 60)
                snprintf(out, 32, "%" PRIu64 " s", s);
        else if (s < 3600)
                snprintf(out, 32, "%" PRIu64 " min", s / 60);
        else if (s < 86400)
                snprintf(out, 32, "%" PRIu64 " h %" PRIu64 " min", s / 3600, s / 60 % 60);
        else
                snprintf(out, 32, "%" PRIu64 " d %" PRIu64 " h", s / 86400, s / 3600 % 24);
        return out;
}

/* Print the server's own counters. */
static void print_server(struct bytes server)
{
        struct bytes left = server;
        struct info_entry e;
        uint64_t refused = 0;
        char age[32];
        while (info_next(&left, &e))
                if (e.key == INFO_SERVER_REFUSED && !info_check(e.value))
                        refused += info_u64(e.value, INFO_SERVER_COUNT, 0);
        printf("  up %s, %" PRIu64 " of %" PRIu64 " sessions; since its start %" PRIu64
               " sessions, %" PRIu64 " lost, %" PRIu64 " connections refused%s\n",
               age_text(info_u64(server, INFO_SERVER_UP_NS, 0), age),
               info_u64(server, INFO_SERVER_SESSIONS, 0),
               info_u64(server, INFO_SERVER_SESSIONS_MAX, 0),
               info_u64(server, INFO_SERVER_SESSIONS_BEGUN, 0),
               info_u64(server, INFO_SERVER_SESSIONS_LOST, 0), refused,
               info_u64(server, INFO_SERVER_DRAINING, 0) ? "; it drains" : "");
}

static void print_session(void *last, const struct wire_session_stats *m)
{
        uint64_t *process = last;
        struct bytes links = m->links;
        struct info_entry e;
        struct bytes block;
        char name[300], memory[16];
        if (stats_print_service(m))
                return;
        if (info_find(m->links, INFO_SERVER, &block) && !info_check(block))
                print_server(block);
        if (stats_is_service(m))
                return;
        snprintf(name, sizeof(name), "%.*s", (int)m->name.size, (const char *)m->name.data);
        if (m->process != *process)
                printf("  %s (worker %" PRIu64 ")", bytes_tame(name, sizeof(name)), m->process);
        if (m->process != *process && info_find(m->links, INFO_SESSION, &block) &&
            !info_check(block))
                printf(", buffers of %s",
                       size_text(info_u64(block, INFO_SESSION_MEMORY, 0), memory));
        if (m->process != *process)
                printf("\n");
        *process = m->process;
        while (info_next(&links, &e))
                if (e.key == INFO_LINK && !info_check(e.value))
                        print_link(e.value);
}

static void print_head(const struct server_spec *spec)
{
        printf("%-40s%10s%12s%12s%10s%12s%12s\n", spec->name, "sent", "messages", "bulk",
               "received", "messages", "bulk");
}

struct shown {
        const struct server_spec *spec;
        uint64_t process; /* the process that the next links belong to */
};

static void on_stats(void *user, const struct wire_session_stats *m)
{
        struct shown *s = user;
        if (m)
                print_session(&s->process, m);
        else
                print_head(s->spec);
}

static int show(const struct server_spec *spec, int timeout_ms)
{
        struct shown s = { .spec = spec };
        if (spec->in_process) {
                printf("%s: in the program itself (SPANCL_STATS)\n", spec->name);
                return 0;
        }
        return stats_query(spec, timeout_ms, false, on_stats, &s);
}

int command_top(int argc, char **argv)
{
        struct queried at;
        bool once = false;
        size_t failed;
        if (options_query("top", argc, argv, "--once", &once, &at) < 0)
                return 2;
        do {
                if (!once && file_is_terminal(FILE_STDOUT))
                        fputs("\033[H\033[2J", stdout);
                failed = 0;
                for (size_t k = 0; k < at.count; k++)
                        failed += show(&at.servers[k], at.timeout_ms) < 0;
                fflush(stdout);
        } while (!once && !failed && thread_sleep(PERIOD_NS));
        if (failed)
                options_hint(&at);
        config_servers_free(at.servers, at.count);
        return failed ? 1 : 0;
}
