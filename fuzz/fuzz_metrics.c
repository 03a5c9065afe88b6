/* Input of the exporter of metrics. The first byte chooses the kind of the rest:
 * - 0: the first bytes of an HTTP connection (daemon/exporter/http.h), which come in two parts, too;
 * - 1: a program's name of 16 bytes, and a session's records (daemon/exporter/metrics.h). */
#include "fuzz/target.h"

#include <stdbool.h>
#include <string.h>

#include "daemon/exporter/http.h"
#include "daemon/exporter/metrics.h"
#include "proto/info.h"

enum { NAME = 16, RECORDS_MAX = 4096 };

static void request(const uint8_t *data, size_t size)
{
        struct buf out = { 0 };
        size = size < HTTP_HEAD_MAX ? size : HTTP_HEAD_MAX;
        enum http_status status = http_judge(bytes_of(data, size), false);
        enum http_status before = http_judge(bytes_of(data, size / 2), false);
        fuzz_check(status != HTTP_MORE || size < HTTP_HEAD_MAX);
        fuzz_check(before == HTTP_MORE || before == status);
        if (status == HTTP_OK)
                fuzz_check(!memcmp(data, "GET /metrics", 12));
        fuzz_check(http_respond(status ? status : HTTP_OK, bytes_str("x"), &out) == 0);
        buf_fini(&out);
}

/* Each line is a comment or a sample: printable, with a number at its end. */
static void check_text(const struct buf *text)
{
        const char *p = (const char *)text->data, *end = p + text->size;
        while (p < end) {
                const char *stop = memchr(p, '\n', (size_t)(end - p));
                fuzz_check(stop && (*p == '#' || !strncmp(p, "spancl_", 7)));
                for (const char *c = p; c < stop; c++)
                        fuzz_check(*c >= ' ' && *c <= '~');
                fuzz_check(*p == '#' || (stop[-1] >= '0' && stop[-1] <= '9'));
                p = stop + 1;
        }
}

static void records(const uint8_t *data, size_t size)
{
        static _Alignas(8) uint8_t aligned[RECORDS_MAX];
        static struct metrics m;
        struct buf text = { 0 };
        size_t n = size < NAME ? size : NAME, left = size - n;
        left = left < RECORDS_MAX ? left : RECORDS_MAX;
        memcpy(aligned, data + n, left);
        const struct wire_session_stats s = {
                .process = 1,
                .name = bytes_of(data, n),
                .links = bytes_of(aligned, left),
        };
        memset(&m, 0, sizeof(m));
        metrics_take(&m, &s);
        metrics_take(&m, &s);
        fuzz_check(m.count <= 1 && m.device_count <= METRICS_DEVICES &&
                   m.client_count <= METRICS_CLIENTS);
        fuzz_check(metrics_put(&m, &text) == 0);
        check_text(&text);
        buf_fini(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (size && !data[0])
                request(data + 1, size - 1);
        else if (size && data[0] == 1)
                records(data + 1, size - 1);
        return 0;
}
