#include "daemon/supervisor/child_log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/pace.h"
#include "os/file.h"
#include "os/net/socket.h"
#include "os/passing.h"

enum {
        READ_SIZE = 32 << 10, /* bytes of one read; then other sources get a turn */
        LAST_READS = 64,      /* reads after a process's death; its children may still write */
        WRITE_MAX_MS = 100,
        PAUSE_NS = 10000000, /* between reads from a process that writes too much */
};
static const uint64_t tell_each_ns = 10000000000ull, second_ns = 1000000000ull;

int child_log_open(struct child_log *l, struct child_log_budget *all, int *ret_end)
{
        int pair[2];
        if (!socket_pair_streams(pair))
                return SP_E_LIMIT;
        if (!file_never_wait(pair[0])) { /* the supervisor must not wait for the process's end */
                (void)file_close(pair[0]);
                (void)file_close(pair[1]);
                return SP_E_LIMIT;
        }
        *l = (struct child_log){ .fd = pair[0], .all = all };
        socket_end_sending(pair[0]);
        passing_refuse(pair[0]);
        socket_limit_sending(pair[1], WRITE_MAX_MS);
        *ret_end = pair[1];
        return 0;
}

/* ---- lines -------------------------------------------------------------------------------------- */

/* Escape `text` into `out`, which has four times its size. As JSON, log_compose escapes it. */
static size_t escape(struct bytes text, char *out)
{
        static const char digits[] = "0123456789abcdef";
        const char *p = text.data, *end = p + text.size;
        size_t n = 0;
        if (log_format == LOG_JSON) {
                memcpy(out, p, text.size);
                return text.size;
        }
        while (p < end) {
                uint32_t c;
                size_t k = bytes_utf8(bytes_of(p, (size_t)(end - p)), &c);
                if (k && (bytes_printable(c) || c == '\t')) {
                        memcpy(out + n, p, k);
                        n += k;
                        p += k;
                        continue;
                }
                c = (uint8_t)*p++;
                memcpy(out + n, (char[]){ '\\', 'x', digits[c >> 4], digits[c & 15] }, 4);
                n += 4;
        }
        return n;
}

/* Return true if so many more bytes may be written at `rate` per second. Counts them if `take`. */
static bool may_spend(struct child_log_budget *b, uint64_t bytes, uint64_t rate, uint64_t burst,
                      uint64_t now_ns, bool take)
{
        uint64_t due = pace_after(b->due_ns, bytes * second_ns / rate, now_ns);
        if (due > now_ns + burst * second_ns / rate)
                return false;
        if (take)
                b->due_ns = due;
        return true;
}

static void report_dropped(struct child_log *l, const char *who, uint64_t now_ns)
{
        if (!l->dropped)
                return;
        log_warn("supervisor", "%s: %llu lines of its log were dropped, it writes too much", who,
                 (unsigned long long)l->dropped);
        l->dropped = 0;
        l->reported_ns = now_ns;
}

static void put_line(struct child_log *l, const char *who, uint64_t now_ns)
{
        char out[LOG_LINE_MAX], text[4 * CHILD_LOG_LINE + 8], component[64];
        struct log_head head;
        size_t size = l->size, len;
        if (size && l->line[size - 1] == '\r')
                size--;
        uint64_t cost = size + CHILD_LOG_LINE_COST;
        bool cut = l->cut;
        l->size = 0;
        l->cut = false;
        if (!may_spend(&l->own, cost, CHILD_LOG_RATE, CHILD_LOG_BURST, now_ns, false) ||
            !may_spend(l->all, cost, CHILD_LOG_RATE_ALL, CHILD_LOG_BURST_ALL, now_ns, true)) {
                l->dropped++;
                l->resume_ns = now_ns + PAUSE_NS;
                return;
        }
        (void)may_spend(&l->own, cost, CHILD_LOG_RATE, CHILD_LOG_BURST, now_ns, true);
        if (l->dropped && now_ns - l->reported_ns >= tell_each_ns)
                report_dropped(l, who, now_ns);
        size_t skip = log_head_parse(l->line, size, &head);
        struct log_line line = { .level = skip ? head.level : "stderr", .about = l->about };
        snprintf(component, sizeof(component), "%s%s%s", who, skip ? "/" : "",
                 skip ? head.component : "");
        line.component = component;
        len = escape(bytes_of(l->line + skip, size - skip), text);
        if (cut)
                len += (size_t)(stpcpy(text + len, " (...)") - (text + len));
        line.text = bytes_of(text, len);
        len = log_compose(&line, out);
        log_put(out, len);
}

static void take(struct child_log *l, const char *who, const char *data, size_t size,
                 uint64_t now_ns)
{
        while (size) {
                const char *end = memchr(data, '\n', size);
                size_t n = end ? (size_t)(end - data) : size, room = sizeof(l->line) - l->size;
                size_t fits = n < room ? n : room;
                memcpy(l->line + l->size, data, fits);
                l->size += fits;
                l->cut |= fits < n;
                n += end != NULL;
                data += n;
                size -= n;
                if (end)
                        put_line(l, who, now_ns);
        }
}

/* Read once. 1: there may be more; 0: nothing now; negative: nothing more will come. */
static int read_some(struct child_log *l, const char *who, uint64_t now_ns)
{
        char data[READ_SIZE];
        l->resume_ns = 0;
        ssize_t n = socket_receive(l->fd, data, sizeof(data));
        if (n <= 0)
                return n < 0 && errno == EAGAIN ? 0 : -1;
        take(l, who, data, (size_t)n, now_ns);
        return 1;
}

bool child_log_read(struct child_log *l, const char *who, uint64_t now_ns)
{
        return read_some(l, who, now_ns) >= 0;
}

void child_log_close(struct child_log *l, const char *who, uint64_t now_ns)
{
        if (l->fd < 0)
                return;
        for (int i = 0; i < LAST_READS && read_some(l, who, now_ns) > 0; i++)
                ;
        if (l->size)
                put_line(l, who, now_ns);
        report_dropped(l, who, now_ns);
        (void)file_close(l->fd);
        l->fd = -1;
}
