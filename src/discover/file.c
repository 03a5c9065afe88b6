/* discover-file PATH: the servers that a file names, for SPANCL_DISCOVERY=file:PATH. Each line of the
 * file is one server in the format of docs/internals/discovery.md; lines that are empty or begin with #
 * are comments. The program watches the file, and reports what changes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "discover/line.h"
#include "discovery/records.h"
#include "os/file.h"
#include "os/poll.h"
#include "os/thread.h"
#include "os/watch.h"

enum { FILE_MAX = 8 << 20, SETTLE_NS = 20000000 };

static bool has(const struct records *r, const char *id)
{
        for (size_t i = 0; i < r->count; i++)
                if (!strcmp(r->list[i].id, id))
                        return true;
        return false;
}

/* Read the file; a missing one is empty. False: it can't be read, which is reported once. */
static bool read_file(const char *path, struct buf *ret)
{
        static int reported;
        uint64_t unused;
        int fd = file_open(path, true, &unused);
        int error = fd < 0 ? errno : 0;
        int64_t n = 1;
        while (fd >= 0 && n > 0 && ret->size < FILE_MAX && buf_reserve(ret, 64 << 10) == 0) {
                n = file_read(fd, ret->data + ret->size, 64 << 10);
                error = n < 0 ? errno : 0;
                ret->size += n > 0 ? (size_t)n : 0;
        }
        if (fd >= 0)
                file_close(fd);
        if (error == ENOENT)
                error = 0;
        if (error && error != reported)
                fprintf(stderr, "discover-file: %s can't be read: %s\n", path, strerror(error));
        reported = error;
        return !error;
}

/* Report the file's servers, and those of `known` that it does not have any more. */
static void report(const char *path, struct records *known)
{
        static struct records now; /* static, because it is too large for a stack */
        struct buf text = { 0 };
        if (!read_file(path, &text)) {
                buf_fini(&text);
                return; /* the servers that were known stay */
        }
        now.logged_bad = known->logged_bad;
        now.logged_full = known->logged_full;
        char *end = (char *)text.data + text.size;
        for (char *line = (char *)text.data, *next; line < end; line = next) {
                char *newline = memchr(line, '\n', (size_t)(end - line));
                next = newline ? newline + 1 : end;
                if (*line == '#' || line == newline)
                        continue;
                if (!records_feed(&now, path, line, (size_t)(next - line)) && newline)
                        continue; /* a wrong line, which records_feed has logged, or a comment */
                if (!newline)
                        records_feed(&now, path, "\n", 1);
                line_put(line, (size_t)(next - line));
                if (!newline)
                        line_put("\n", 1);
        }
        for (size_t i = 0; i < known->count; i++)
                if (!has(&now, known->list[i].id))
                        line_put_gone(known->list[i].id);
        records_fini(known);
        memcpy(known, &now, sizeof(now));
        memset(&now, 0, sizeof(now));
        buf_fini(&text);
}

/* Wait until something in the file's folder changes. */
static void wait_for_change(int watch)
{
        struct pollfd p[] = { { .fd = watch, .events = POLLIN }, { .fd = FILE_STDOUT } };
        while (poll_until(p, 2, UINT64_MAX) < 0 && errno == EINTR)
                ;
        if (p[1].revents)
                exit(0);
        /* Wait for a program that writes its file line by line. */
        (void)thread_sleep(SETTLE_NS);
        if (watch_clear(watch))
                return;
        fprintf(stderr, "discover-file: its folder is gone\n");
        exit(1);
}

int main(int argc, char **argv)
{
        static struct records known;
        if (argc != 2 || argv[1][0] != '/') {
                fprintf(stderr, "Usage: discover-file /PATH\n");
                return 2;
        }
        char *folder = strdup(argv[1]);
        if (!folder)
                return 1;
        strrchr(folder, '/')[strrchr(folder, '/') == folder] = 0;
        int watch = watch_new(folder);
        if (watch < 0) {
                fprintf(stderr, "discover-file: %s can't be watched: %s\n", folder,
                        strerror(errno));
                return 1;
        }
        free(folder);
        report(argv[1], &known);
        line_put_settled();
        for (;;) {
                wait_for_change(watch);
                report(argv[1], &known);
        }
}
