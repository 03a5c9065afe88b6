/* Timelines. The first byte chooses. A file as `spancl trace` reads it (cli/trace/file.h): its summaries, its picture,
 * Perfetto's format, and a replay. Or the text of another program ('I') that is added to a timeline. Or a server's
 * answer to trace_query, which the client or ('O') an observer puts into a timeline: that has to be one that can be
 * read. */
#include "fuzz/target.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/replay/fit.h"
#include "cli/replay/what_if.h"
#include "cli/trace/import.h"
#include "cli/trace/perfetto.h"
#include "cli/trace/picture.h"
#include "cli/trace/summary.h"
#include "core/profile/trace_server.h"
#include "trace/timeline.h"

/* A replay of whatever the file has ends, and its time is bounded. */
static void replay_file(const char *text, size_t size)
{
        static struct ledger_file_server servers[2] = {
                { .index = 0, .round_trip_ns = 1000000, .name = "gpu1" },
                { .index = 1, .round_trip_ns = 2000000, .name = "gpu2" }
        };
        const struct ledger_file ledger = { .wall_ns = 1u << 30,
                                            .servers = servers,
                                            .server_count = 2 };
        const struct what_if link = { "", true, true, 5000000, 125000000 };
        struct what_if_results results;
        struct recording recording;
        struct fit f;
        if (recording_read(text, size, &ledger, &recording) < 0)
                return;
        int r = fit_make(&recording, &ledger, &f);
        recording_fini(&recording);
        if (r < 0)
                return;
        if (what_if_run(&f, ledger.wall_ns, &link, 1, &results) == 0)
                fuzz_check(results.count == 2 && results.all[1].ns <= REPLAY_TIME_MAX);
        fit_fini(&f);
}

static int read_file(const char *text, size_t size)
{
        struct trace_file f;
        struct summary s;
        uint64_t left_out = 0;
        int r = trace_file_parse(text, size, &f);
        if (r < 0)
                return r;
        summary_make(&f, &s);
        for (int k = 0; k < SUMMARY_KINDS; k++)
                fuzz_check(s.kinds[k].shown <= SUMMARY_TOP);
        FILE *null = fopen("/dev/null", "we");
        if (null) {
                summary_text(null, &f, &s, "file");
                summary_json(null, &f, &s, "file");
                (void)!picture_draw(null, &f);
                fuzz_check(perfetto_write(null, text, size, &left_out) == 0);
                fclose(null);
        }
        trace_file_fini(&f);
        replay_file(text, size);
        return 0;
}

/* A timeline with events added is a timeline, to which they can be added again. */
static void import(struct bytes events)
{
        static const char empty[] =
                "{\"traceEvents\": [{\"ph\": \"X\", \"pid\": 1, \"tid\": 1, \"ts\": 1, \"dur\": 9000000, "
                "\"name\": \"n\"}], \"otherData\": {\"clocks\": [{\"server\": \"gpu1\", \"error_ns\": 5, "
                "\"offset_ns\": \"-9000\"}]}}";
        struct import_source s;
        struct bytes timeline = bytes_str(empty);
        char *texts[2] = { NULL, NULL };
        for (int i = 0; i < 2; i++) {
                size_t size = 0, bad;
                FILE *file = open_memstream(&texts[i], &size);
                fuzz_check(import_parse(i ? "gpu1=f" : "f", &s));
                int r = file ? import_write(file, timeline, &s, &events, 1, &bad) : SP_E_NOMEM;
                if (file)
                        fclose(file);
                if (r < 0)
                        break;
                timeline = bytes_of(texts[i], size);
                fuzz_check(s.error_ns == (i ? 5 : 0) && read_file(texts[i], size) == 0);
        }
        free(texts[0]);
        free(texts[1]);
}

static void write_answer(struct bytes info, bool observer)
{
        struct trace_server s = {
                .name = "a \"server\"",
                .offset_ns = 1000,
                .begin_ns = 1000,
                .end_ns = 1u << 30,
                .skips_older = observer,
        };
        struct timeline out;
        char *text = NULL;
        size_t size = 0;
        FILE *file = open_memstream(&text, &size);
        if (!file)
                return;
        timeline_begin(&out, file);
        trace_server_put(&out, &s, info);
        if (observer)
                trace_server_put_commands(&out, &s, info);
        timeline_other(&out);
        timeline_arg(&out, "dropped", s.gaps.dropped);
        timeline_arg(&out, "untimed", s.gaps.untimed);
        timeline_end(&out);
        fclose(file);
        fuzz_check(read_file(text, size) == 0);
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (!size)
                return 0;
        if (*data == 'F')
                (void)read_file((const char *)data + 1, size - 1);
        else if (*data == 'I')
                import(bytes_of(data + 1, size - 1));
        else
                write_answer(bytes_of(data + 1, size - 1), *data == 'O');
        return 0;
}
