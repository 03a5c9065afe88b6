/* The exporter's requests and its text. */
#include "support/check.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "daemon/exporter/http.h"
#include "daemon/exporter/metrics.h"
#include "daemon/supervisor/report.h"
#include "proto/info.h"
#include "session/hello.h"

static enum http_status judge(const char *text)
{
        return http_judge(bytes_str(text), false);
}

TEST(a_whole_request_for_metrics_is_served)
{
        assert_int_equal(judge("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"), HTTP_OK);
        assert_int_equal(judge("GET /metrics HTTP/1.0\n\n"), HTTP_OK);
        assert_int_equal(judge("GET /metrics?a=b HTTP/1.1\r\n\r\n"), HTTP_OK);
        assert_int_equal(judge("GET /metrics HTTP/1.1\r\nHost: x\r\n"), HTTP_MORE);
        assert_int_equal(judge("GET /metr"), HTTP_MORE);
        assert_int_equal(judge(""), HTTP_MORE);
}

TEST(other_requests_are_refused)
{
        char large[HTTP_HEAD_MAX + 1];
        assert_int_equal(judge("GET / HTTP/1.1\r\n\r\n"), HTTP_NOT_FOUND);
        assert_int_equal(judge("GET /metrics/.. HTTP/1.1\r\n\r\n"), HTTP_NOT_FOUND);
        assert_int_equal(judge("HEAD /metrics HTTP/1.1\r\n\r\n"), HTTP_WRONG_METHOD);
        assert_int_equal(judge("GET /metrics HTTP/2\r\n"), HTTP_BAD_REQUEST);
        assert_int_equal(judge("GET  /metrics HTTP/1.1\r\n"), HTTP_BAD_REQUEST);
        assert_int_equal(judge("GET /met\trics HTTP/1.1\r\n"), HTTP_BAD_REQUEST);
        assert_int_equal(judge("\r\n"), HTTP_BAD_REQUEST);
        memset(large, 'a', HTTP_HEAD_MAX);
        large[HTTP_HEAD_MAX] = 0;
        assert_int_equal(judge(large), HTTP_HEAD_TOO_LARGE);
        memcpy(large, "GET /metrics HTTP/1.1\r\nX:", 24);
        assert_int_equal(judge(large), HTTP_HEAD_TOO_LARGE);
}

static enum http_status judge_host(const char *host)
{
        char text[256];
        snprintf(text, sizeof(text), "GET /metrics HTTP/1.1\r\nA: b\r\n%s\r\n\r\n", host);
        return judge(text);
}

TEST(names_that_a_name_server_decides_are_refused)
{
        static const char *const good[] = { "Host: localhost:9779",  "HOST:LocalHost",
                                            "Host: 127.0.0.1:9779 ", "host:\t192.0.2.1",
                                            "Host: [::1]:9779",      "Host: [2001:db8::1]" };
        static const char *const bad[] = { "Host: example.com",
                                           "Host: localhost.example.com",
                                           "host:127.0.0.1.example",
                                           "Host: [example]",
                                           "Host: [::1",
                                           "Host:",
                                           "Host: localhost\r\nHost: x" };
        for (size_t i = 0; i < array_size(good); i++)
                assert_int_equal(judge_host(good[i]), HTTP_OK);
        for (size_t i = 0; i < array_size(bad); i++)
                assert_int_equal(judge_host(bad[i]), HTTP_BAD_REQUEST);
        const char *other = "GET /metrics HTTP/1.1\r\nHost: example.com\r\n\r\n";
        assert_int_equal(http_judge(bytes_str(other), true), HTTP_OK);
        assert_int_equal(judge_host("Xhost: example.com"), HTTP_OK);
        assert_int_equal(judge_host("A: b\r\n\r\nHost: x"), HTTP_OK);
}

TEST(labels_that_a_client_chose_begin_no_line_and_end_no_label)
{
        static struct metrics m;
        auto_clean(buf_fini) struct buf records = { 0 }, text = { 0 };
        size_t mark;
        assert_int_equal(info_begin(&records, INFO_SESSION, &mark), 0);
        assert_int_equal(info_put_u64(&records, INFO_SESSION_MEMORY, 42), 0);
        info_end(&records, mark);
        const struct wire_session_stats s = {
                .process = 7,
                .name = bytes_str("a\"} 1\nspancl_up\\\x1b"),
                .links = bytes_of(records.data, records.size),
        };
        metrics_take(&m, &s);
        assert_int_equal(metrics_put(&m, &text), 0);
        assert_int_equal(buf_put(&text, "", 1), 0);
        assert_non_null(strstr((const char *)text.data,
                               "spancl_session_memory_bytes{worker=\"7\",program="
                               "\"a\\\"} 1?spancl_up\\\\?\"} 42\n"));
}

TEST(sessions_beyond_the_limit_have_no_series)
{
        static struct metrics m;
        auto_clean(buf_fini) struct buf records = { 0 };
        size_t mark;
        assert_int_equal(info_begin(&records, INFO_SESSION, &mark), 0);
        info_end(&records, mark);
        memset(&m, 0, sizeof(m));
        for (uint64_t i = 1; i <= METRICS_SESSIONS + 10; i++) {
                const struct wire_session_stats s = {
                        .process = i,
                        .name = bytes_str("x"),
                        .links = bytes_of(records.data, records.size),
                };
                metrics_take(&m, &s);
        }
        assert_int_equal(m.count, METRICS_SESSIONS);
}

TEST(a_scrape_is_complete_if_the_supervisor_says_so)
{
        static struct metrics m;
        auto_clean(buf_fini) struct buf end = { 0 };
        struct wire_session_stats s;
        memset(&m, 0, sizeof(m));
        assert_int_equal(report_put_whole(&end), 0);
        assert_int_equal(hello_get_stats(bytes_of(end.data, end.size), &s), 0);
        assert_false(report_is_of_session(s.links));
        assert_false(m.whole);
        metrics_take(&m, &s);
        assert_true(m.whole);
        assert_int_equal(m.count, 0);
}

static bool is_of_session(const enum info_key *keys, size_t count, size_t cut)
{
        auto_clean(buf_fini) struct buf records = { 0 };
        size_t mark;
        for (size_t i = 0; i < count; i++) {
                assert_int_equal(info_begin(&records, keys[i], &mark), 0);
                info_end(&records, mark);
        }
        return report_is_of_session(bytes_of(records.data, records.size - cut));
}

TEST(a_worker_reports_about_its_session_only)
{
        const enum info_key own[] = { INFO_SESSION, INFO_LINK, INFO_LINK };
        const enum info_key others[] = { INFO_SERVER, INFO_HEALTH, INFO_OUT_OF_SERVICE };
        assert_true(report_is_of_session(bytes_str("")));
        assert_true(is_of_session(own, array_size(own), 0));
        assert_false(is_of_session(own, array_size(own), 1));
        for (size_t i = 0; i < array_size(others); i++)
                assert_false(is_of_session((enum info_key[]){ INFO_SESSION, others[i] }, 2, 0));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_whole_request_for_metrics_is_served),
                cmocka_unit_test(other_requests_are_refused),
                cmocka_unit_test(names_that_a_name_server_decides_are_refused),
                cmocka_unit_test(labels_that_a_client_chose_begin_no_line_and_end_no_label),
                cmocka_unit_test(sessions_beyond_the_limit_have_no_series),
                cmocka_unit_test(a_scrape_is_complete_if_the_supervisor_says_so),
                cmocka_unit_test(a_worker_reports_about_its_session_only),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
