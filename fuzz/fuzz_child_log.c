/* The log of a worker that may be compromised (daemon/supervisor/child_log.h). The input is the worker's
 * output, in portions that its first two bytes choose. Each line that the supervisor writes names
 * the worker and has a bounded size. It is text without control characters or marks that change
 * its order. Characters that are not escaped are those that the worker wrote. The result does not
 * depend on the portions. A worker that writes more than its rate allows gets no more than its
 * rate into the log. */
#include "fuzz/target.h"

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "daemon/supervisor/child_log.h"
#include "support/random.h"

enum { INPUT_MAX = 8 << 10, ROOM = 32 * INPUT_MAX };

static const char who[] = "worker 7", begin[] = "spancl[worker 7";
static const uint64_t second_ns = 1000000000;

static char written[ROOM];
static size_t written_size, lines;
static bool counts_only; /* the same lines come again and again */

void __wrap_log_put(const char *line, size_t size);

/* The next character of UTF-8; 0: there is none. */
static uint32_t next_char(const uint8_t **p, const uint8_t *end)
{
        const uint8_t *s = *p;
        unsigned more = *s < 0x80 ? 0 : *s < 0xe0 ? 1 : *s < 0xf0 ? 2 : 3;
        static const uint32_t least[] = { 1, 0x80, 0x800, 0x10000 };
        uint32_t c = more ? *s & (0x3fu >> more) : *s;
        if (*s >= 0xf8 || (*s >= 0x80 && *s < 0xc0) || end - s <= more)
                return 0;
        for (unsigned i = 1; i <= more; i++) {
                if (s[i] >> 6 != 2)
                        return 0;
                c = c << 6 | (s[i] & 0x3f);
        }
        *p += 1 + more;
        return c >= least[more] ? c : 0;
}

/* In the place of log_put: child_log.c's calls come here. */
void __wrap_log_put(const char *line, size_t size)
{
        lines++;
        if (counts_only)
                return;
        fuzz_check(size && size <= 4096 && line[size - 1] == '\n');
        fuzz_check(size > sizeof(begin) && !memcmp(line, begin, sizeof(begin) - 1));
        fuzz_check(strchr("]/", line[sizeof(begin) - 1]));
        const uint8_t *p = (const uint8_t *)line, *end = p + size - 1;
        while (p < end) {
                uint32_t c = next_char(&p, end);
                fuzz_check(c == '\t' || (c >= ' ' && c < 0x7f) || c >= 0xa0);
                fuzz_check(c < 0xd800 || (c >= 0xe000 && c <= 0x10ffff));
                fuzz_check(c != 0x61c && c != 0x200e && c != 0x200f && c != 0xfeff);
                fuzz_check((c < 0x2028 || c > 0x202e) && (c < 0x2066 || c > 0x2069));
        }
        fuzz_check(written_size + size <= ROOM);
        memcpy(written + written_size, line, size);
        written_size += size;
}

/* Pass the worker's output through the supervisor; the resulting log is in `written`. `portion`
 * 0: it comes in one piece. */
static void hear(const uint8_t *data, size_t size, uint64_t portion, unsigned repeated)
{
        struct child_log_budget all = { 0 };
        struct rng rng = { portion };
        struct child_log log;
        int end;
        written_size = lines = 0;
        fuzz_check(child_log_open(&log, &all, &end) == 0);
        for (size_t at = 0; at < size;) {
                size_t n = portion ? 1 + rng_below(&rng, 1 + rng_below(&rng, 2000)) : size;
                n = n < size - at ? n : size - at;
                fuzz_check(send(end, data + at, n, MSG_DONTWAIT) == (ssize_t)n);
                fuzz_check(child_log_read(&log, who, second_ns));
                at += n;
        }
        counts_only = repeated;
        for (unsigned i = 0; i < repeated && size; i++) {
                fuzz_check(send(end, data, size, MSG_DONTWAIT) == (ssize_t)size);
                fuzz_check(child_log_read(&log, who, second_ns));
        }
        counts_only = false;
        fuzz_check(lines <= CHILD_LOG_BURST / CHILD_LOG_LINE_COST); /* no time has passed */
        close(end);
        child_log_close(&log, who, second_ns);
        fuzz_check(log.fd < 0 && !log.size && !log.dropped);
}

/* Return true if the log keeps this line, apart from escaped characters. It does not keep a line
 * that is cut or looks like a line of a log. */
static bool is_kept(const uint8_t *line, size_t size)
{
        return size <= CHILD_LOG_LINE && (size < 7 || memcmp(line, "spancl[", 7) != 0) &&
               (!size || line[size - 1] != '\r');
}

/* Check that the log from `p` to `end`, without its escapes, is the line that the worker wrote. */
static void same(const char *p, const char *end, const uint8_t *line, size_t size)
{
        for (size_t i = 0; i < size; i++) {
                char escaped[5];
                snprintf(escaped, sizeof(escaped), "\\x%02x", line[i]);
                if (p < end && (uint8_t)*p == line[i])
                        p++;
                else if (end - p >= 4 && !memcmp(p, escaped, 4))
                        p += 4;
                else
                        fuzz_check(false);
        }
        fuzz_check(p == end);
}

static void compare(const uint8_t *data, size_t size)
{
        static const char head[] = "spancl[worker 7] stderr: ";
        const char *line = written, *end = written + written_size;
        while (size) {
                const uint8_t *newline = memchr(data, '\n', size);
                const char *here = memchr(line, '\n', (size_t)(end - line));
                size_t n = newline ? (size_t)(newline - data) : size;
                fuzz_check(here); /* a line is a line */
                if (is_kept(data, n)) {
                        fuzz_check(here - line >= (ptrdiff_t)sizeof(head) - 1);
                        fuzz_check(!memcmp(line, head, sizeof(head) - 1));
                        same(line + sizeof(head) - 1, here, data, n);
                }
                line = here + 1;
                n += newline != NULL;
                data += n;
                size -= n;
        }
        fuzz_check(line == end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static char first[ROOM];
        if (size < 2)
                return 0;
        uint64_t portion = 1 + data[0];
        bool flood = data[1] == 0xff && size > 1000; /* takes long */
        data += 2;
        size -= 2;
        size = size < INPUT_MAX ? size : INPUT_MAX;
        log_threshold = LOG_NONE; /* what was dropped */
        hear(data, size, 0, 0);
        compare(data, size);
        size_t before = written_size;
        memcpy(first, written, before);
        hear(data, size, portion, 0);
        fuzz_check(written_size == before && !memcmp(written, first, before));
        if (flood)
                hear(data, size, 0, 40);
        return 0;
}
