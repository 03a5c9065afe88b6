/* advertise-dht: publishes a server in a distributed hash table, by OpenDHT. The supervisor of spancld starts it, and
 * writes lines to its standard input (daemon/supervisor/advertising.h): first
 *   PORT BOOTSTRAP KEY
 * the node's port, nodes separated by commas or "-", and the table's key; then for each change
 *   VALUE GONE
 * the signed record and the record of the server's end (dht_record.h), in hexadecimal digits. The program has no key of
 * the server. The argument is the log level. The program ends with its standard input, and stores the record GONE. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "discover/dht_node.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/poll.h"
#include "os/signals.h"

#define LOG "advertise"
#define S   1000000000ull /* ns */

enum {
        INPUT_MAX = 4 * DHT_VALUE_MAX + 8,
        AGAIN_S = 10,   /* after a value could not be stored */
        FAREWELL_S = 2, /* for storing that the server has left */
};

static struct dht_node node;
static dht_value *value, *gone;        /* NULL: none yet */
static uint64_t again_ns = UINT64_MAX; /* when to store the value again */
static bool reported;                  /* the log says that the value is stored, or is not */

static void on_done(bool ok, void *user)
{
        dht_node_post(&node, ok ? DHT_STORED : DHT_NOT_STORED, user);
        dht_value_unref(user);
}

static void store(dht_value *v, bool lasting)
{
        dht_runner_put(node.runner, &node.key, v, on_done, dht_value_ref(v), lasting);
}

static dht_value *parse(const char *hex)
{
        uint8_t data[DHT_VALUE_MAX];
        size_t size = 0;
        for (; hex[0] && hex[1] && size < sizeof(data); hex += 2) {
                const char pair[] = { hex[0], hex[1], 0 };
                data[size++] = (uint8_t)strtoul(pair, NULL, 16);
        }
        return dht_value_new(data, size);
}

/* The library stores a lasting value again before it expires. The last value expires by itself. */
static void replace(char *line)
{
        char *rest, *now = strtok_r(line, " ", &rest), *end = strtok_r(NULL, " ", &rest);
        if (!now || !end)
                return;
        if (value)
                dht_runner_cancel_put(node.runner, &node.key, dht_value_get_id(value));
        dht_value_unref(value);
        dht_value_unref(gone);
        value = parse(now);
        gone = parse(end);
        again_ns = UINT64_MAX;
        store(value, true);
}

/* False: the program can't go on. */
static bool begin(char *line)
{
        char *key, *port = strtok_r(line, " ", &key), *bootstrap = strtok_r(NULL, " ", &key);
        if (!port || !bootstrap)
                return false;
        if (!dht_node_start(&node, (unsigned)atoi(port), strcmp(bootstrap, "-") ? bootstrap : "",
                            key))
                return false;
        in_port_t bound = dht_runner_get_bound_port(node.runner, AF_INET);
        if (node.moved)
                log_warn(LOG, "another program has port %s: the node of the hash table has port %u",
                         port, bound);
        else
                log_info(LOG, "the node of the hash table has port %u", bound);
        return true;
}

/* Take the lines that the supervisor has written. False: it has gone. */
static bool read_input(void)
{
        static char text[INPUT_MAX];
        static size_t size;
        int64_t n = file_read(FILE_STDIN, text + size, sizeof(text) - 1 - size);
        if (n < 0)
                return errno == EAGAIN || errno == EINTR;
        size += (size_t)n;
        text[size] = 0;
        for (char *end; (end = strchr(text, '\n'));) {
                *end = 0;
                if (node.runner)
                        replace(text);
                else if (!begin(text))
                        return false;
                size -= (size_t)(end + 1 - text);
                memmove(text, end + 1, size + 1);
        }
        return n > 0 && size < sizeof(text) - 1;
}

/* Returns true when the record of the server's end is stored, or is not. */
static bool take_events(void)
{
        static struct dht_event e;
        bool over = false;
        while (dht_node_take(&node, &e)) {
                if (gone && e.id == dht_value_get_id(gone)) {
                        over = true;
                        continue;
                }
                if (!value || e.id != dht_value_get_id(value))
                        continue;
                bool ok = e.kind == DHT_STORED;
                if (ok && !reported)
                        log_info(LOG, "published in the distributed hash table");
                if (!ok && (reported || again_ns == UINT64_MAX))
                        log_warn(LOG, "no node of the distributed hash table has taken the record; "
                                      "it is published as soon as one does");
                reported = ok;
                again_ns = ok ? UINT64_MAX : clock_now_ns() + AGAIN_S * S;
        }
        return over;
}

/* Store that the server has left, so that clients need not wait until its record expires. */
static void log_farewell(void)
{
        uint64_t end_ns = clock_now_ns() + FAREWELL_S * S;
        dht_runner_cancel_put(node.runner, &node.key, dht_value_get_id(value));
        store(gone, false);
        while (!take_events() && clock_now_ns() < end_ns) {
                struct pollfd p = { .fd = node.events[1], .events = POLLIN };
                (void)poll(&p, 1, clock_poll_ms(end_ns));
        }
}

int main(int argc, char **argv)
{
        int level = argc == 2 ? log_level_parse(argv[1]) : LOG_WARN;
        log_threshold = level < 0 ? LOG_WARN : (enum log_level)level;
        (void)signal(SIGTERM, SIG_IGN); /* a batch system sends it to all processes of a job */
        signals_ignore_pipe();          /* the reader of the log may end first */
        for (;;) {
                struct pollfd p[] = { { .fd = FILE_STDIN, .events = POLLIN },
                                      { .fd = node.runner ? node.events[1] : -1,
                                        .events = POLLIN } };
                if (poll(p, 2, clock_poll_ms(again_ns)) < 0)
                        continue;
                if (p[1].revents)
                        (void)take_events();
                if (p[0].revents && !read_input())
                        break;
                if (clock_now_ns() >= again_ns) {
                        again_ns = UINT64_MAX;
                        store(value, true);
                }
        }
        if (value)
                log_farewell();
        _Exit(0); /* the library's threads may use what its destructors free */
}
