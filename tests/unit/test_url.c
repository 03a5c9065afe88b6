/* URLs of media-io: what a stream of a source may reach. */
#include "support/check.h"

#include <string.h>

#include "av/io/url.h"
#include "base/mem.h"

static void a_stream_has_the_protocols_of_its_scheme(void **state)
{
        (void)state;
        static const struct {
                const char *url, *protocols;
        } all[] = {
                { "tcp://host:1", "tcp" },           { "udp://host:1", "udp" },
                { "srt://host:1", "srt" },           { "rtsp://host/a", "rtp,srtp,udp,tcp,tls" },
                { "rtmp://host/a", "rtmp,tcp,tls" },
        };
        char protocols[URL_PROTOCOLS_MAX];
        for (size_t i = 0; i < array_size(all); i++) {
                assert_true(url_is_network(all[i].url));
                assert_true(url_protocols(all[i].url, protocols));
                assert_string_equal(protocols, all[i].protocols);
        }
}

/* Files and graphs need no network. The last ones would have libavformat's own rules, which allow a stream all. */
static void other_urls_have_no_protocols(void **state)
{
        (void)state;
        static const char *const local[] = { "/a/b", "file:/a/b", "file:///a",
                                             "lavfi:movie=x://y" };
        static const char *const refused[] = {
                "cache:tcp://host:1",
                "async:http://host/a",
                "concat:tcp://host:1|/a",
                "zmq:tcp://host:1",
                "data:,a",
                "subfile,,start,0,end,9,,:tcp://host",
                "film.mkv",
                "tcp:/host",
                "://host",
                "file,tcp://host:1/a",
        };
        char protocols[URL_PROTOCOLS_MAX];
        for (size_t i = 0; i < array_size(local); i++)
                assert_true(!url_is_network(local[i]) && !url_protocols(local[i], protocols));
        for (size_t i = 0; i < array_size(refused); i++)
                assert_true(url_is_network(refused[i]) && !url_protocols(refused[i], protocols));
        char longest[300];
        memset(longest, 'a', sizeof(longest));
        memcpy(longest + 290, "://host", sizeof("://host"));
        assert_false(url_protocols(longest, protocols));
}

int main(void)
{
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(a_stream_has_the_protocols_of_its_scheme),
                cmocka_unit_test(other_urls_have_no_protocols),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
