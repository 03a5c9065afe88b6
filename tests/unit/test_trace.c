/* src/trace: rings that are read while they are written, and the timeline made of them. */
#include "os/clock.h"
#include "support/check.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/record_times.h"
#include "trace/timeline.h"
#include "trace/trace.h"

/* By how much a record's time may differ from the clock, beside other work. */
enum { CLOCK_SLACK_NS = 50000 };

struct found {
        uint64_t thread;
        size_t count, threads;
        uint64_t rate; /* ns of a tick, << 32 */
        uint64_t lost;
        bool broken;
        struct trace_record first, last;
};

/* The ticks of a record: others than those of the records that its slot had before, so that a mixture shows. */
static uint64_t span_length(uint64_t value)
{
        enum { STEP = 100000, STEPS = 61 };
        return (value % STEPS + 1) * STEP;
}

static void put_span(uint64_t value)
{
        uint64_t end = ticks_now();
        trace_put(TRACE_submit, end - span_length(value), end, value);
}

static int look(void *user, const struct trace_thread *t)
{
        struct found *f = user;
        f->threads++;
        if (t->id != f->thread)
                return 0;
        f->count = t->count;
        f->lost = t->lost;
        for (size_t i = 0; i < t->count; i++) {
                const struct trace_record *r = &t->records[i];
                uint64_t ns = ticks_scale(span_length(r->value), f->rate);
                uint64_t span = r->end_ns - r->begin_ns;
                f->broken |= r->probe != TRACE_submit || span < ns - ns / 16 ||
                             span > ns + ns / 16 ||
                             (i && r->value != t->records[i - 1].value + 1) ||
                             (i && r->end_ns < t->records[i - 1].end_ns);
        }
        if (t->count) {
                f->first = t->records[0];
                f->last = t->records[t->count - 1];
        }
        return 0;
}

static struct found find(uint64_t thread)
{
        static struct ticks_clock clock;
        (void)ticks_clock_ns(&clock, ticks_now());
        struct found f = { .thread = thread, .rate = clock.rate };
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
        assert_false(trace_is_on(TRACE_wait));
        assert_int_equal(pthread_create(&t, NULL, record_nothing, &id), 0);
        pthread_join(t, NULL);
        struct found f = find(id);
        assert_int_equal(f.threads, 0);
}

static void *record_many(void *arg)
{
        trace_start(true);
        for (uint64_t i = 0; i < TRACE_RECORDS + 100; i++)
                put_span(i);
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
        assert_true(f.first.value > 100); /* comparisons of the clocks take places, too */
        assert_int_equal(f.count, f.last.value - f.first.value + 1);
        assert_int_equal(f.lost, f.first.value); /* so no comparison counts as lost */
        assert_true(f.count > TRACE_RECORDS / 2);
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
                put_span(i);
        return NULL;
}

TEST(a_reader_sees_whole_records_in_order_while_they_are_written)
{
        struct writer w = { 0 };
        pthread_t t;
        uint64_t last = 0;
        trace_start(true);
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
        trace_start(true);
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
        assert_true(f.first.begin_ns + CLOCK_SLACK_NS >= before);
        assert_true(f.first.end_ns >= f.first.begin_ns);
        assert_true(f.first.end_ns <= clock_now_ns() + CLOCK_SLACK_NS);
}

/* The times of records come from the processor's counter, which each thread compares with the clock. */
/* Convert ticks for a while, and compare each time with the clock. */
static void follow_clock(struct ticks_clock *c, uint64_t ns)
{
        uint64_t last = 0, end = clock_now_ns() + ns;
        while (last < end) {
                uint64_t before = clock_now_ns();
                uint64_t now = ticks_clock_ns(c, ticks_now());
                uint64_t after = clock_now_ns();
                assert_true(now >= last);
                assert_true(now + CLOCK_SLACK_NS >= before && now <= after + CLOCK_SLACK_NS);
                last = now;
        }
}

TEST(ticks_are_converted_into_the_clock_and_do_not_go_back)
{
        struct ticks_clock c = { 0 };
        follow_clock(&c, 50000000);
}

/* As if the counter had run for an hour more than the clock, or less. */
TEST(ticks_follow_the_clock_after_one_of_both_stood_still)
{
        const uint64_t hour = (uint64_t)3600 << 32;
        for (int i = 0; i < 4; i++) {
                struct ticks_clock c = { 0 };
                uint64_t begin = ticks_now(), ns = ticks_clock_ns(&c, begin);
                c.settled = i & 1;
                c.valid = 0;
                c.since_ns = ns > 1000000000 ? ns - 1000000000 : 0;
                c.since = i < 2 ? begin - hour : begin - 1000;
                uint64_t end = ticks_now(), end_ns = ticks_clock_ns(&c, end);
                uint64_t span = ticks_clock_span(&c, begin - hour, end, end_ns);
                assert_true(span <= end_ns);
                follow_clock(&c, 5000000);
        }
}

TEST(ticks_that_go_back_give_no_span)
{
        struct ticks_clock c = { 0 };
        uint64_t now = ticks_now(), ns = ticks_clock_ns(&c, now);
        assert_int_equal(ticks_clock_span(&c, now, now - 1, ns), 0);
        assert_int_equal(ticks_clock_span(&c, now, now, ns), 0);
        assert_true(!ticks_are_of_counter() || ticks_clock_ns(&c, now - 1000000) >= ns);
}

TEST(a_span_does_not_begin_before_the_clock_did)
{
        struct ticks_clock c = { .rate = (uint64_t)1 << 32 };
        assert_int_equal(ticks_clock_span(&c, 0, 1000, 10), 10);
        assert_int_equal(ticks_clock_span(&c, 0, 1000, 5000), 1000);
}

/* The begin of a span is before the thread's last comparison of the clocks. */
TEST(a_span_that_lasts_longer_than_a_comparison_holds_has_its_length)
{
        struct ticks_clock c = { 0 };
        uint64_t before = clock_now_ns(), begin = ticks_now();
        while (clock_now_ns() < before + 20000000)
                (void)ticks_clock_ns(&c, ticks_now());
        uint64_t end = ticks_now(), after = clock_now_ns();
        uint64_t end_ns = ticks_clock_ns(&c, end);
        uint64_t span = ticks_clock_span(&c, begin, end, end_ns);
        assert_true(span >= 20000000 - (20000000 >> 10) - CLOCK_SLACK_NS);
        assert_true(span <= after - before + ((after - before) >> 10));
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
        const struct timeline_clock clocks[] = { { "a\nb", 4, INT64_MIN }, { "", 0, 7 } };
        timeline_clocks(&out, clocks, 2);
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
                "\"error_ns\": 4, \"offset_ns\": \"-9223372036854775808\"}, "
                "{\"server\": \"\", \"error_ns\": 0, \"offset_ns\": \"7\"}]}}\n");
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
        trace_start(true);
        for (uint64_t i = 0; i < 3 * TRACE_RECORDS; i++)
                put_span(i);
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

static void *record_for_recorder(void *arg)
{
        trace_start(false);
        TRACE(notify, 1);
        TRACE(complete, 2);
        trace_start(true);
        TRACE(notify, 3);
        trace_pause();
        trace_start(false);
        TRACE(notify, 4);
        trace_stop();
        TRACE(complete, 5);
        *(uint64_t *)arg = (uint64_t)gettid();
        return NULL;
}

TEST(the_flight_recorder_leaves_probes_out)
{
        pthread_t t;
        uint64_t id = 0;
        assert_int_equal(pthread_create(&t, NULL, record_for_recorder, &id), 0);
        pthread_join(t, NULL);
        struct found f = find(id);
        assert_int_equal(f.count, 2);
        assert_int_equal(f.first.value, 2);
        assert_int_equal(f.last.value, 3);
}

TEST(every_probe_is_found_by_its_number)
{
#define PROBE(number, id, group, value, flow, recorder, doc) \
        assert_non_null(trace_find(number));                 \
        assert_string_equal(trace_find(number)->name, #id);  \
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
#define PROBE(number, id, group, value, flow, recorder, doc)                                     \
        snprintf(row, sizeof(row), "\n| %d | `%s` | %s | %s | %s | %s |\n", number, #id, #group, \
                 #value, #recorder, doc);                                                        \
        if (!strstr(table, row))                                                                 \
                fail_msg("docs/TRACING.md lacks:%s", row);                                       \
        probes++;
#include "trace/probes.def"
        for (const char *p = table; (p = strstr(p, "\n| ")); p++)
                rows++;
        assert_int_equal(rows, probes);
}

/* Both clocks are exact at the comparisons, but the rates are wrong by a thousandth. */
static void a_long_span_begins_between_two_comparisons(void **state)
{
        (void)state;
        enum { AHEAD = 1000, SECOND = 1000000, END = 30 * SECOND };
        uint64_t rate = (1ull << 32) + (1ull << 22);
        struct ticks_clock first = { .base = SECOND, .base_ns = SECOND + AHEAD, .rate = rate };
        struct ticks_clock second = { .base = 2 * SECOND,
                                      .base_ns = 2 * SECOND + AHEAD,
                                      .rate = rate };
        struct ticks_clock last = { .base = END, .base_ns = END + AHEAD, .rate = rate };
        struct trace_record records[] = {
                record_times_comparison(&first),
                { SECOND + 100, SECOND + 200, TRACE_submit, 0 },
                record_times_comparison(&second),
                { SECOND + 300, 2 * SECOND + 100, TRACE_submit, 1 },
                record_times_comparison(&last),
                { END - 200, END + 50, TRACE_submit, 2 },
                { SECOND + 250, END + 100, TRACE_submit, 3 },
                { SECOND - 100, END + 100, TRACE_submit, 4 },
                { END / 2, END + 100, TRACE_submit, 5 },
        };
        const uint64_t begins[] = { SECOND + 100, SECOND + 300, END - 200,
                                    SECOND + 250, SECOND - 100, END / 2 };
        const uint64_t ends[] = { SECOND + 200, 2 * SECOND + 100, END + 50,
                                  END + 100,    END + 100,        END + 100 };
        size_t count = record_times_convert(records, array_size(records), &last);
        assert_int_equal(count, array_size(begins));
        for (size_t i = 0; i < count; i++) {
                assert_int_equal(records[i].value, i);
                assert_in_range(records[i].begin_ns, begins[i] + AHEAD - 1, begins[i] + AHEAD + 1);
                assert_in_range(records[i].end_ns, ends[i] + AHEAD - 1, ends[i] + AHEAD + 1);
        }
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_long_span_begins_between_two_comparisons),
                cmocka_unit_test(nothing_is_recorded_while_it_is_off),
                cmocka_unit_test(the_newest_records_stay_also_of_a_thread_that_ended),
                cmocka_unit_test(a_reader_sees_whole_records_in_order_while_they_are_written),
                cmocka_unit_test(a_span_records_the_value_that_it_has_at_its_end),
                cmocka_unit_test(ticks_are_converted_into_the_clock_and_do_not_go_back),
                cmocka_unit_test(ticks_follow_the_clock_after_one_of_both_stood_still),
                cmocka_unit_test(ticks_that_go_back_give_no_span),
                cmocka_unit_test(a_span_does_not_begin_before_the_clock_did),
                cmocka_unit_test(a_span_that_lasts_longer_than_a_comparison_holds_has_its_length),
                cmocka_unit_test(the_timeline_skips_probes_that_are_not_known),
                cmocka_unit_test(the_timeline_escapes_names_and_ends_with_its_other_data),
                cmocka_unit_test(places_stay_in_this_process),
                cmocka_unit_test(the_flight_recorder_leaves_probes_out),
                cmocka_unit_test(threads_have_more_records_where_there_is_room),
                cmocka_unit_test(every_probe_is_found_by_its_number),
                cmocka_unit_test(the_documentation_has_every_probe),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
