/* top: what has crossed the links of all sessions on servers. */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/command.h"
#include "loop/dial.h"
#include "proto/info.h"
#include "session/hello.h"

enum { SECONDS = 1 };

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

/* Of the bulk bytes, if there are such. */
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

static int print_session(struct bytes exchange, uint64_t *last)
{
        struct wire_session_stats m;
        struct info_entry e;
        int r = hello_get_stats(exchange, &m);
        if (!r)
                r = info_check(m.links);
        if (r < 0)
                return r;
        char name[300];
        snprintf(name, sizeof(name), "%.*s", (int)m.name.size, (const char *)m.name.data);
        if (m.process != *last)
                printf("  %s (worker %" PRIu64 ")\n", bytes_tame(name, sizeof(name)), m.process);
        *last = m.process;
        while (info_next(&m.links, &e))
                if (e.key == INFO_LINK && !info_check(e.value))
                        print_link(e.value);
        return 0;
}

/* The next exchange into `b`. 1: it is there, 0: the server has closed. */
static int receive(struct conn *c, struct buf *b, uint64_t deadline_ns)
{
        b->size = 0;
        for (;;) {
                int whole = hello_size(bytes_of(b->data, b->size));
                if (whole < 0 || b->size == (size_t)whole)
                        return whole < 0 ? whole : 1;
                size_t left = (size_t)whole - b->size;
                int r = buf_reserve(b, left);
                if (r < 0)
                        return r;
                struct iovec iov = { b->data + b->size, left };
                ssize_t n = c->ops->recvv(c, &iov, 1);
                if (n > 0) {
                        b->size += (size_t)n;
                        continue;
                }
                if (n != SP_E_AGAIN)
                        return b->size ? SP_E_LINK : 0;
                struct pollfd p = { .fd = c->fd, .events = POLLIN };
                if (clock_now_ns() >= deadline_ns)
                        return SP_E_TIMEOUT;
                if (poll(&p, 1, clock_poll_ms(deadline_ns)) < 0 && errno != EINTR)
                        return SP_E_LINK;
        }
}

static int show(const struct server_spec *spec, int timeout_ms)
{
        struct dial_reply reply;
        struct conn *conn;
        struct buf b = { 0 };
        uint64_t last = 0;
        if (spec->in_process) {
                printf("%s: in the program itself (SPANCL_STATS)\n", spec->name);
                return 0;
        }
        const struct dial_params p = {
                .address = spec->address,
                .timeout_ms = timeout_ms,
                .role = DIAL_LOOK,
                .name = "spancl top",
        };
        int r = loop_connect(&p, &conn, &reply);
        if (r < 0) {
                fprintf(stderr, "spancl: %s\n", reply.text);
                return r;
        }
        printf("%-40s%10s%12s%12s%10s%12s%12s\n", spec->name, "sent", "messages", "bulk",
               "received", "messages", "bulk");
        uint64_t deadline = clock_now_ns() + (uint64_t)timeout_ms * 1000000;
        while ((r = receive(conn, &b, deadline)) > 0 &&
               (r = print_session(bytes_of(b.data, b.size), &last)) == 0)
                ;
        if (r < 0)
                fprintf(stderr, "spancl: %s: %s\n", spec->name, status_text(r));
        buf_fini(&b);
        conn_close(conn);
        return r;
}

int command_top(int argc, char **argv)
{
        struct looked_at at;
        bool once = false;
        size_t failed;
        if (command_look("top", argc, argv, "--once", &once, &at) < 0)
                return 2;
        do {
                if (!once && isatty(STDOUT_FILENO))
                        fputs("\033[H\033[2J", stdout);
                failed = 0;
                for (size_t k = 0; k < at.count; k++)
                        failed += show(&at.servers[k], at.timeout_ms) < 0;
                fflush(stdout);
        } while (!once && !failed && !sleep(SECONDS));
        if (failed)
                command_hint(&at);
        config_servers_free(at.servers, at.count);
        return failed ? 1 : 0;
}
