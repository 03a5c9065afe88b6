/* Answers of a hostile server to `spancl top` (cli/snapshot.h), and the tables made of it. The first two bytes are the
 * width and the column to sort by. Then come messages: a process, the size of the records (two bytes), a program's name
 * of 8 bytes, the records. */
#include "fuzz/target.h"

#include <stdio.h>
#include <string.h>

#include "cli/top_table.h"
#include "config/server_spec.h"
#include "proto/info.h"

enum { HEAD = 11, NAME = 8, RECORDS_MAX = 4096 };

static void take(struct snapshot *s, const uint8_t *data, size_t size)
{
        static _Alignas(8) uint8_t records[RECORDS_MAX];
        while (size >= HEAD) {
                size_t n = (size_t)(data[1] | data[2] << 8) % (RECORDS_MAX + 1);
                n = n < size - HEAD ? n : size - HEAD;
                memcpy(records, data + HEAD, n);
                const struct wire_session_stats m = {
                        .process = data[0],
                        .name = bytes_of(data + 3, NAME),
                        .links = bytes_of(records, n),
                };
                if (!info_check(m.links))
                        snapshot_take(s, &m);
                data += HEAD + n;
                size -= HEAD + n;
        }
        s->taken_ns = 1000000000;
}

static void check(const struct buf *lines, int width)
{
        const char *p = (const char *)lines->data, *end = p + lines->size;
        int column = 0;
        for (; p < end; p++) {
                column = *p == '\n' ? 0 : column + 1;
                fuzz_check(*p == '\n' || (*p >= ' ' && *p <= '~'));
                fuzz_check(column <= width);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static char name[] = "server";
        const struct server_spec spec = { .name = name };
        struct top_server t = { .spec = &spec, .asked = true, .reachable = true };
        struct buf lines = { 0 };
        if (size < 2)
                return 0;
        struct top_view v = { .width = data[0], .height = 50, .sort = data[1] % TOP_COLUMNS };
        take(&t.now, data + 2, size - 2);
        take(&t.old, data + 2, (size - 2) / 2);
        fuzz_check(!top_lines(&t, 1, &v, &lines));
        check(&lines, v.width);
        FILE *null = fopen("/dev/null", "we");
        struct json_writer w = { .to = null };
        json_begin(&w, NULL, '{');
        snapshot_json(&w, &t.old, &t.now);
        json_end(&w, '}');
        json_line(&w);
        fclose(null);
        snapshot_fini(&t.now);
        snapshot_fini(&t.old);
        buf_fini(&lines);
        return 0;
}
