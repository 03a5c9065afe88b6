#include "av/io/url.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

/* Return the rest of the URL behind the prefix; NULL: it begins otherwise. */
static const char *behind(const char *url, const char *prefix)
{
        size_t n = strlen(prefix);
        return strncmp(url, prefix, n) != 0 ? NULL : url + n;
}

const char *url_file(const char *url)
{
        return *url == '/' ? url : behind(url, "file:");
}

const char *url_graph(const char *url)
{
        return behind(url, "lavfi:");
}

bool url_is_network(const char *url)
{
        return !url_file(url) && !url_graph(url);
}

bool url_protocols(const char *url, char ret[URL_PROTOCOLS_MAX])
{
        /* A scheme that is not here uses its own protocol, over TCP or TLS. */
        static const struct {
                const char *scheme, *protocols;
        } known[] = {
                { "http", "http,https,httpproxy,tcp,tls,crypto,data" },
                { "https", "http,https,httpproxy,tcp,tls,crypto,data" },
                { "rtsp", "rtp,srtp,udp,tcp,tls" },
                { "rtsps", "rtp,srtp,udp,tcp,tls" },
                { "sap", "rtp,srtp,udp" },
                { "rtp", "rtp,srtp,udp" },
                { "srtp", "rtp,srtp,udp" },
                { "udp", "udp" },
                { "tcp", "tcp" },
                { "srt", "srt" },
                { "rtmpe", "rtmpe,ffrtmpcrypt,tcp" },
                { "rtmpt", "rtmpt,ffrtmphttp,http,httpproxy,tcp" },
                { "rtmpte", "rtmpte,ffrtmpcrypt,ffrtmphttp,http,httpproxy,tcp" },
                { "rtmpts", "rtmpts,ffrtmphttp,https,httpproxy,tcp,tls" },
                { "mmsh", "mmsh,http,httpproxy,tcp" },
        };
        /* As in libavformat. `+` and a comma would name further protocols. */
        size_t n = strspn(url, "abcdefghijklmnopqrstuvwxyz0123456789");
        if (!n || !url_is_network(url) || !behind(url + n, "://"))
                return false;
        for (size_t i = 0; i < array_size(known); i++)
                if (strlen(known[i].scheme) == n && !strncmp(known[i].scheme, url, n)) {
                        (void)snprintf(ret, URL_PROTOCOLS_MAX, "%s", known[i].protocols);
                        return true;
                }
        int length = snprintf(ret, URL_PROTOCOLS_MAX, "%.*s,tcp,tls", (int)n, url);
        return length < URL_PROTOCOLS_MAX;
}
