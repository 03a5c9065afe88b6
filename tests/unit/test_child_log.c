/* The log of a process that is not trusted: how the supervisor changes its output. */
#include "support/check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/journal.h"
#include "base/log.h"
#include "base/mem.h"
#include "daemon/supervisor/child_log.h"

static const uint64_t second = 1000000000;
static const char who[] = "worker 7";

struct place {
        struct child_log_budget all;
        struct child_log log;
        int end;
        FILE *out; /* our own standard error, meanwhile */
        int before;
        char text[8 << 20];
};

static struct place *open_place(void)
{
        static struct place p; /* large */
        p.all = (struct child_log_budget){ 0 };
        p.before = dup(STDERR_FILENO);
        p.out = tmpfile();
        assert_non_null(p.out);
        dup2(fileno(p.out), STDERR_FILENO);
        assert_int_equal(child_log_open(&p.log, &p.all, &p.end), 0);
        return &p;
}

/* The text that stands in the log now. */
static const char *log_of(struct place *p)
{
        ssize_t n = pread(fileno(p->out), p->text, sizeof(p->text) - 1, 0);
        p->text[n < 0 ? 0 : n] = 0;
        return p->text;
}

static const char *close_place(struct place *p, uint64_t now_ns)
{
        close(p->end);
        child_log_close(&p->log, who, now_ns);
        dup2(p->before, STDERR_FILENO);
        close(p->before);
        log_of(p);
        fclose(p->out);
        return p->text;
}

static const char *log_after(const char *said, size_t size)
{
        struct place *p = open_place();
        assert_int_equal(write(p->end, said, size), size);
        return close_place(p, second);
}

static size_t count(const char *text, const char *what)
{
        size_t n = 0;
        for (; (text = strstr(text, what)); text++)
                n++;
        return n;
}

TEST(a_line_in_json_is_one_object_with_nothing_forged)
{
        static const char said[] = "spancl[engine] warn: a\"},{\"level\":\"error\\\x1b\xff\tz\n";
        log_format = LOG_JSON;
        const char *text = log_after(said, sizeof(said) - 1);
        log_format = LOG_PLAIN;
        assert_memory_equal(text, "{\"time\":\"20", 11);
        assert_non_null(strstr(text,
                               "Z\",\"level\":\"warn\",\"component\":\"worker 7/engine\",\"text\":"
                               "\"a\\\"},{\\\"level\\\":\\\"error\\\\\\u001b\\ufffd\\u0009z\"}\n"));
}

TEST(a_long_line_in_json_is_cut_inside_its_text)
{
        static char said[960 * 4];
        memset(said, '\\', sizeof(said));
        memset(said, 0xff, 960);
        said[sizeof(said) - 1] = '\n';
        log_format = LOG_JSON;
        const char *text = log_after(said, sizeof(said));
        log_format = LOG_PLAIN;
        size_t size = strlen(text);
        assert_true(size > 3000 && size <= LOG_LINE_MAX);
        assert_string_equal(text + size - 3, "\"}\n");
}

/* The next entry at a journal's socket. */
static const char *entry_of(int journal)
{
        static char entry[LOG_LINE_MAX + 1];
        ssize_t n = recv(journal, entry, sizeof(entry) - 1, MSG_DONTWAIT);
        assert_true(n > 0);
        entry[n] = 0;
        return entry;
}

TEST(lines_are_entries_of_the_journal_with_fields_that_no_text_can_forge)
{
        static const char said[] = "spancl[engine] error: a\rMESSAGE=b\x1b[1m\nPRIORITY=0\n";
        static char longest[8000];
        char folder[] = "/tmp/journal.XXXXXX";
        struct sockaddr_un at = { .sun_family = AF_UNIX };
        assert_non_null(mkdtemp(folder));
        snprintf(at.sun_path, sizeof(at.sun_path), "%s/socket", folder);
        assert_false(journal_open(at.sun_path));
        memset(longest, 'x', sizeof(longest) - 1);
        assert_false(journal_open(longest));
        for (int again = 0; again < 2; again++) { /* the journal starts again */
                int journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
                assert_int_equal(bind(journal, (struct sockaddr *)&at, sizeof(at)), 0);
                if (!again)
                        assert_true(journal_open(at.sun_path));
                log_format = LOG_NATIVE;
                assert_string_equal(log_after(said, sizeof(said) - 1), "");
                if (again)
                        assert_non_null(strstr(entry_of(journal), "MESSAGE=1 lines were lost"));
                assert_string_equal(entry_of(journal), "PRIORITY=3\nSYSLOG_IDENTIFIER=spancld\n"
                                                       "SPANCL_COMPONENT=worker 7/engine\n"
                                                       "MESSAGE=a\\x0dMESSAGE=b\\x1b[1m\n");
                assert_string_equal(entry_of(journal),
                                    "PRIORITY=6\nSYSLOG_IDENTIFIER=spancld\n"
                                    "SPANCL_COMPONENT=worker 7\nMESSAGE=PRIORITY=0\n");
                char out[LOG_LINE_MAX];
                const struct log_line line = { .level = "warn",
                                               .component = "c\nX=1",
                                               .about = "alice\nY=2",
                                               .text = bytes_str(longest) };
                size_t size = journal_compose(&line, out);
                assert_int_equal(size, LOG_LINE_MAX);
                static const char begins[] =
                        "PRIORITY=4\nSYSLOG_IDENTIFIER=spancld\nSPANCL_COMPONENT=c\n"
                        "SPANCL_CLIENT=alice\nMESSAGE=xxx";
                assert_memory_equal(out, begins, sizeof(begins) - 1);
                assert_int_equal(out[size - 1], '\n');
                close(journal);
                assert_int_equal(unlink(at.sun_path), 0);
                log_put(out, size); /* nobody is there */
        }
        log_format = LOG_PLAIN;
        assert_int_equal(rmdir(folder), 0);
}

TEST(an_honest_line_keeps_its_component_and_level)
{
        static const char said[] = "spancl[engine] warn: a limit is met\n";
        assert_string_equal(log_after(said, strlen(said)),
                            "spancl[worker 7/engine] warn: a limit is met\n");
}

TEST(other_lines_are_told_as_what_they_are)
{
        static const char said[] = "==7==ERROR: AddressSanitizer\r\n\nthe end";
        assert_string_equal(log_after(said, strlen(said)),
                            "spancl[worker 7] stderr: ==7==ERROR: AddressSanitizer\n"
                            "spancl[worker 7] stderr: \n"
                            "spancl[worker 7] stderr: the end\n");
}

TEST(no_line_begins_as_those_of_the_supervisor_do)
{
        static const char *const forged[] = {
                "spancl[supervisor] warn: a\n",
                "spancl[worker 8] error: a\n",
                "spancl[x] warn: y] error: a\n",
                "\rspancl[supervisor] warn: a\n",
                "\nspancl[supervisor] warn: a\n",
                "\xe2\x80\xa8spancl[supervisor] warn: a\n", /* LINE SEPARATOR */
                "\xc2\x85spancl[supervisor] warn: a\n",     /* NEXT LINE */
                "\x1b[2K\x1b[Gspancl[supervisor] warn: a\n",
                "spancl[supervisor] warn: \x0bspancl[supervisor] warn: a\n",
        };
        for (size_t i = 0; i < array_size(forged); i++) {
                const char *log = log_after(forged[i], strlen(forged[i]));
                for (const char *line = log; *line; line = strchr(line, '\n') + 1)
                        assert_memory_equal(line, "spancl[worker 7", 15);
                assert_null(strpbrk(log, "\r\x1b\x0b"));
                assert_null(strstr(log, "\xe2\x80\xa8"));
                assert_null(strstr(log, "\xc2\x85"));
        }
}

TEST(control_characters_are_escaped)
{
        static const char said[] =
                "a\0b\x7f \xff\xfe \xc3\xa4 \xc0\x80 \xed\xa0\x80 \xe2\x80\xae \xf0\x9f\x98\x80 \xe2\x82";
        assert_string_equal(log_after(said, sizeof(said) - 1),
                            "spancl[worker 7] stderr: a\\x00b\\x7f \\xff\\xfe \xc3\xa4 \\xc0\\x80 "
                            "\\xed\\xa0\\x80 \\xe2\\x80\\xae \xf0\x9f\x98\x80 \\xe2\\x82\n");
}

TEST(a_long_line_is_cut)
{
        static char said[100000];
        memset(said, 1, sizeof(said));
        said[sizeof(said) - 3] = '\n';
        said[sizeof(said) - 2] = 'b';
        const char *log = log_after(said, sizeof(said) - 1);
        assert_true(strlen(log) < 4096 + 64);
        assert_non_null(strstr(log, "\\x01 (...)\nspancl[worker 7] stderr: b\n"));
}

/* Write lines and have them read, until so many are written. */
static void write_lines(struct place *p, unsigned lines, uint64_t now_ns)
{
        char line[65];
        memset(line, 'x', 64);
        line[64] = '\n';
        for (unsigned i = 0; i < lines; i++) {
                assert_int_equal(write(p->end, line, sizeof(line)), sizeof(line));
                assert_true(child_log_read(&p->log, who, now_ns));
        }
}

TEST(a_report_of_a_sanitizer_is_whole_and_a_flood_is_not)
{
        struct place *p = open_place();
        write_lines(p, 4096, second);
        assert_int_equal(p->log.resume_ns, 0);
        assert_int_equal(count(log_of(p), "xxx\n"), 4096);
        write_lines(p, 100000, second);
        assert_true(p->log.resume_ns > second);
        size_t some = count(log_of(p), "xxx\n");
        assert_true(some >= 4096 && some * 128 <= CHILD_LOG_BURST);
        write_lines(p, 100, 61 * second); /* a minute's worth, and what was dropped */
        assert_int_equal(count(log_of(p), "xxx\n"), some + 100);
        char told[64];
        snprintf(told, sizeof(told), "worker 7: %zu lines of its log were dropped", 104096 - some);
        assert_non_null(strstr(p->text, told));
        close_place(p, 61 * second);
}

TEST(all_together_have_a_rate)
{
        struct place *p = open_place();
        size_t size = 0;
        for (int i = 0; i < 20; i++) { /* sessions that begin one after the other */
                p->log.own = (struct child_log_budget){ 0 };
                write_lines(p, 10000, second);
        }
        size = strlen(log_of(p));
        assert_true(size < CHILD_LOG_BURST_ALL);
        assert_true(size > CHILD_LOG_BURST);
        assert_non_null(strstr(close_place(p, second), "were dropped"));
}

TEST(a_process_does_not_wait_long_for_its_log)
{
        static const char line[4096];
        struct place *p = open_place();
        ssize_t n;
        while ((n = write(p->end, line, sizeof(line))) == sizeof(line))
                ;
        assert_true(n >= 0 || errno == EAGAIN);
        /* Nor can it do to the log what it could do to a file. */
        assert_int_equal(ftruncate(p->end, 0), -1);
        assert_int_equal(lseek(p->end, 0, SEEK_SET), -1);
        char byte;
        assert_int_equal(read(p->end, &byte, 1), 0);
        close_place(p, second);
}

TEST(nobody_waits_for_the_reader_of_the_log)
{
        int fds[2], before = dup(STDERR_FILENO);
        char text[256] = "";
        assert_int_equal(pipe(fds), 0);
        dup2(fds[1], STDERR_FILENO);
        log_never_waits = true;
        for (int i = 0; i < 10000; i++)
                log_error("test",
                          "a line that nobody reads, and more of them than a pipe has room for");
        size_t got = 0;
        ssize_t n;
        static char all[1 << 20];
        while (got < 60000 && (n = read(fds[0], all + got, 4096)) > 0)
                got += (size_t)n;
        log_error("test", "the last one");
        log_never_waits = false;
        dup2(before, STDERR_FILENO);
        close(before);
        close(fds[1]);
        while ((n = read(fds[0], all + got, sizeof(all) - 1 - got)) > 0)
                got += (size_t)n;
        close(fds[0]);
        snprintf(text, sizeof(text), "lines were lost");
        assert_non_null(strstr(all, text));
        assert_non_null(strstr(all, "the last one"));
}

int main(void)
{
        signal(SIGPIPE, SIG_IGN);
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_line_in_json_is_one_object_with_nothing_forged),
                cmocka_unit_test(a_long_line_in_json_is_cut_inside_its_text),
                cmocka_unit_test(
                        lines_are_entries_of_the_journal_with_fields_that_no_text_can_forge),
                cmocka_unit_test(an_honest_line_keeps_its_component_and_level),
                cmocka_unit_test(other_lines_are_told_as_what_they_are),
                cmocka_unit_test(no_line_begins_as_those_of_the_supervisor_do),
                cmocka_unit_test(control_characters_are_escaped),
                cmocka_unit_test(a_long_line_is_cut),
                cmocka_unit_test(a_report_of_a_sanitizer_is_whole_and_a_flood_is_not),
                cmocka_unit_test(all_together_have_a_rate),
                cmocka_unit_test(a_process_does_not_wait_long_for_its_log),
                cmocka_unit_test(nobody_waits_for_the_reader_of_the_log),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
