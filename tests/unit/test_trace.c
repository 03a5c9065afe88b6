/* src/trace: rings that are read while they are written, and the timeline made of them. */
#include "os/clock.h"
#include "support/check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/timeline.h"
#include "trace/trace.h"

struct found {
        uint64_t thread;
        size_t count, threads;
        bool broken;
        struct trace_record first, last;
};

static int look(void *user, const struct trace_thread *t)
{
        struct found *f = user;
        f->threads++;
        if (t->id != f->thread)
                return 0;
        f->count = t->count;
        for (size_t i = 0; i < t->count; i++) {
                const struct trace_record *r = &t->records[i];
                f->broken |= r->probe != TRACE_submit || r->end_ns != r->begin_ns + r->value ||
                             (i && r->value != t->records[i - 1].value + 1);
        }
        if (t->count) {
                f->first = t->records[0];
                f->last = t->records[t->count - 1];
        }
        return 0;
}

static struct found find(uint64_t thread)
{
        struct found f = { .thread = thread };
        assert_int_equal(trace_read(look, &f), 0);
        return f;
}

static void *record_nothing(void *arg)
{
        TRACE(completed, 1);
        TRACE_SPAN(wait, 2);
        *(uint64_t *)arg = (uint64_t)gettid();
        return NULL;
}

TEST(nothing_is_recorded_while_it_is_off)
{
        pthread_t t;
        uint64_t id = 0;
        assert_false(trace_is_on());
        assert_int_equal(pthread_create(&t, NULL, record_nothing, &id), 0);
        pthread_join(t, NULL);
        struct found f = find(id);
        assert_int_equal(f.threads, 0);
}

static void *record_many(void *arg)
{
        trace_start();
        for (uint64_t i = 0; i < TRACE_RECORDS + 100; i++)
                trace_put(TRACE_submit, 1000, 1000 + i, i);
        trace_stop();
        *(uint64_t *)arg = (uint64_t)gettid();
        return NULL;
}

TEST(the_newest_records_stay_also_of_a_thread_that_ended)
{
        pthread_t t;
        uint64_t id = 0;
        assert_int_equal(pthread_create(&t, NULL, record_many, &id), 0);
        pthread_join(t, NULL);
        struct found f = find(id);
        assert_false(f.broken);
        assert_int_equal(f.last.value, TRACE_RECORDS + 99);
        assert_int_equal(f.first.value, 101); /* one more is left out: it could be half written */
        assert_int_equal(f.count, TRACE_RECORDS - 1);
}

struct writer {
        atomic_bool stop;
        _Atomic uint64_t thread;
};

static void *record_on_and_on(void *arg)
{
        struct writer *w = arg;
        atomic_store(&w->thread, (uint64_t)gettid());
        for (uint64_t i = 0; !atomic_load(&w->stop); i++)
                trace_put(TRACE_submit, i * 7, i * 8, i);
        return NULL;
}

TEST(a_reader_sees_whole_records_in_order_while_they_are_written)
{
        struct writer w = { 0 };
        pthread_t t;
        uint64_t last = 0;
        trace_start();
        assert_int_equal(pthread_create(&t, NULL, record_on_and_on, &w), 0);
        for (int i = 0; i < 200 || last < TRACE_RECORDS * 3; i++) {
                struct found f = find(atomic_load(&w.thread));
                assert_false(f.broken);
                if (f.count)
                        last = f.last.value;
        }
        atomic_store(&w.stop, true);
        pthread_join(t, NULL);
        trace_stop();
}

TEST(a_span_records_the_value_that_it_has_at_its_end)
{
        trace_start();
        uint64_t before = clock_now_ns();
        {
                TRACE_SPAN(submit, 5);
                span_submit.value = 6;
        }
        trace_stop();
        struct found f = find((uint64_t)gettid());
        assert_int_equal(f.count, 1);
        assert_int_equal(f.first.probe, TRACE_submit);
        assert_int_equal(f.first.value, 6);
        assert_true(f.first.begin_ns >= before && f.first.end_ns >= f.first.begin_ns);
        assert_true(f.first.end_ns <= clock_now_ns());
}

/* A timeline in memory, which the caller frees after fclose. */
static FILE *begin_in_memory(struct timeline *out, char **text, size_t *size)
{
        FILE *file = open_memstream(text, size);
        assert_non_null(file);
        timeline_begin(out, file);
        return file;
}

TEST(the_timeline_skips_probes_that_are_not_known)
{
        char *text = NULL;
        size_t size = 0;
        struct timeline out;
        FILE *file = begin_in_memory(&out, &text, &size);
        timeline_process(&out, 2, "a \"b\" \\ \n");
        timeline_thread(&out, 2, 77, "loop");
        const struct trace_record records[] = {
                { 12345678901234567, 12345678901235000, TRACE_submit, 42 },
                { 5, 6, 0, 0 },
                { 5, 6, UINT64_MAX, 0 },
                { 6, 5, TRACE_submit, 0 },
        };
        for (size_t i = 0; i < array_size(records); i++)
                timeline_record(&out, 2, 77, &records[i], NULL);
        timeline_end(&out);
        fclose(file);
        assert_string_equal(
                text,
                "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"
                "{\"ph\": \"M\", \"pid\": 2, \"name\": \"process_name\", \"args\": {\"name\": "
                "\"a \\\"b\\\" \\\\ \\u000a\"}},\n"
                "{\"ph\": \"M\", \"pid\": 2, \"tid\": 77, \"name\": \"thread_name\", \"args\": "
                "{\"name\": \"loop\"}},\n"
                "{\"ph\": \"X\", \"pid\": 2, \"tid\": 77, \"ts\": 12345678901234.567, \"dur\": 0.433, "
                "\"name\": \"submit\", \"cat\": \"server\", \"args\": {\"event\": 42}},\n"
                "{\"ph\": \"t\", \"pid\": 2, \"tid\": 77, \"ts\": 12345678901234.567, "
                "\"name\": \"command\", \"cat\": \"command\", \"bp\": \"e\", \"id\": \"2a\"}\n"
                "]}\n");
        free(text);
}

TEST(the_timeline_escapes_names_and_ends_with_its_other_data)
{
        char *text = NULL;
        size_t size = 0;
        struct timeline out;
        FILE *file = begin_in_memory(&out, &text, &size);
        timeline_slice(&out, 5, 6, 2000, 1000, "kernel", "\"\x01\xff");
        timeline_arg(&out, "bytes", UINT64_MAX);
        timeline_arg_text(&out, "command", "\\");
        timeline_slice_end(&out);
        timeline_record(&out, 1, 2, &(struct trace_record){ 7, 7, TRACE_lost, 3 }, NULL);
        timeline_other(&out);
        timeline_arg(&out, "dropped", 1);
        timeline_clocks(&out, (struct timeline_clock[]){ { "a\nb", 4 }, { "", 0 } }, 2);
        timeline_end(&out);
        fclose(file);
        assert_string_equal(
                text,
                "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n"
                "{\"ph\": \"X\", \"pid\": 5, \"tid\": 6, \"ts\": 2.000, \"dur\": 0.000, "
                "\"name\": \"\\\"\\u0001\\ufffd\", \"cat\": \"kernel\", "
                "\"args\": {\"bytes\": 18446744073709551615, \"command\": \"\\\\\"}},\n"
                "{\"ph\": \"X\", \"pid\": 1, \"tid\": 2, \"ts\": 0.007, \"dur\": 0.000, "
                "\"name\": \"lost\", \"cat\": \"client\", \"args\": {\"server\": 3}},\n"
                "{\"ph\": \"i\", \"pid\": 1, \"tid\": 2, \"ts\": 0.007, \"s\": \"g\", "
                "\"name\": \"lost\", \"cat\": \"mark\"}\n"
                "],\n\"otherData\": {\"dropped\": 1, \"clocks\": [{\"server\": \"a\\u000ab\", "
                "\"error_ns\": 4}, {\"server\": \"\", \"error_ns\": 0}]}}\n");
        free(text);
}

TEST(places_stay_in_this_process)
{
        struct trace_record r = { .probe = trace_at(TRACE_send, 7, 3) };
        assert_int_equal(trace_probe_of(&r), TRACE_send);
        assert_int_equal(trace_place_of(&r), 7);
        assert_int_equal(trace_lane_of(&r), 3);
        assert_int_equal(trace_at(TRACE_send, 0, 0), TRACE_send);
}

static void *record_more(void *arg)
{
        trace_start();
        for (uint64_t i = 0; i < 3 * TRACE_RECORDS; i++)
                trace_put(TRACE_submit, 1000, 1000 + i, i);
        trace_stop();
        *(uint64_t *)arg = (uint64_t)gettid();
        return NULL;
}

TEST(threads_have_more_records_where_there_is_room)
{
        enum { THREADS = 16 };
        pthread_t t;
        uint64_t id = 0;
        trace_extend((size_t)THREADS * 4 * TRACE_RECORDS * sizeof(struct trace_record));
        assert_int_equal(pthread_create(&t, NULL, record_more, &id), 0);
        pthread_join(t, NULL);
        struct found f = find(id);
        assert_false(f.broken);
        assert_int_equal(f.first.value, 0);
        assert_int_equal(f.count, 3 * TRACE_RECORDS);
        trace_limit(0); /* of later rings; this one stays as large */
        f = find(id);
        assert_false(f.broken);
        assert_int_equal(f.count, 3 * TRACE_RECORDS);
}

TEST(every_probe_is_found_by_its_number)
{
#define PROBE(number, id, group, value, flow, doc)          \
        assert_non_null(trace_find(number));                \
        assert_string_equal(trace_find(number)->name, #id); \
        assert_int_equal(number, TRACE_##id);
#include "trace/probes.def"
        assert_null(trace_find(0));
        assert_null(trace_find(UINT64_MAX));
}

/* The table of docs/TRACING.md has a row for each probe, and no other. */
TEST(the_documentation_has_every_probe)
{
        static char text[1 << 16];
        char path[4096], row[512];
        const char *root = getenv("SPANCL_SOURCE_DIR");
        if (!root)
                skip();
        snprintf(path, sizeof(path), "%s/docs/TRACING.md", root);
        FILE *file = fopen(path, "r");
        assert_non_null(file);
        size_t size = fread(text, 1, sizeof(text) - 1, file), rows = 0, probes = 0;
        assert_true(size > 0 && size < sizeof(text) - 1);
        fclose(file);
        const char *table = strstr(text, "| number | probe |");
        assert_non_null(table);
#define PROBE(number, id, group, value, flow, doc)                                          \
        snprintf(row, sizeof(row), "\n| %d | `%s` | %s | %s | %s |\n", number, #id, #group, \
                 #value, doc);                                                              \
        if (!strstr(table, row))                                                            \
                fail_msg("docs/TRACING.md lacks:%s", row);                                  \
        probes++;
#include "trace/probes.def"
        for (const char *p = table; (p = strstr(p, "\n| ")); p++)
                rows++;
        assert_int_equal(rows, probes);
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(nothing_is_recorded_while_it_is_off),
                cmocka_unit_test(the_newest_records_stay_also_of_a_thread_that_ended),
                cmocka_unit_test(a_reader_sees_whole_records_in_order_while_they_are_written),
                cmocka_unit_test(a_span_records_the_value_that_it_has_at_its_end),
                cmocka_unit_test(the_timeline_skips_probes_that_are_not_known),
                cmocka_unit_test(the_timeline_escapes_names_and_ends_with_its_other_data),
                cmocka_unit_test(places_stay_in_this_process),
                cmocka_unit_test(threads_have_more_records_where_there_is_room),
                cmocka_unit_test(every_probe_is_found_by_its_number),
                cmocka_unit_test(the_documentation_has_every_probe),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
