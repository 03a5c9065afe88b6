#include "daemon/exporter/http.h"

#include <stdio.h>
#include <string.h>

#include "os/net/ip.h"

static const char resource[] = "/metrics";

/* Find the end of the head: an empty line. Lines end with CR LF or, as RFC 9112 permits a
 * recipient, with LF alone. */
static bool is_whole(const char *p, size_t size)
{
        return memmem(p, size, "\r\n\r\n", 4) || memmem(p, size, "\n\n", 2) ||
               memmem(p, size, "\n\r\n", 3);
}

/* Return the length of the word at `p` that a space ends; 0: there is none. */
static size_t word(const char *p, size_t size)
{
        size_t n = 0;
        while (n < size && p[n] > ' ' && p[n] < 0x7f)
                n++;
        return n < size && p[n] == ' ' ? n : 0;
}

/* Judge "METHOD TARGET HTTP/1.x". */
static enum http_status judge_line(const char *p, size_t size)
{
        size_t method = word(p, size);
        size_t target = method ? word(p + method + 1, size - method - 1) : 0;
        if (!target)
                return HTTP_BAD_REQUEST;
        const char *path = p + method + 1, *version = path + target + 1;
        size_t left = size - (size_t)(version - p);
        if (left && version[left - 1] == '\r')
                left--;
        if (left != 8 || memcmp(version, "HTTP/1.", 7) != 0 || (version[7] & 0xfe) != '0')
                return HTTP_BAD_REQUEST;
        if (method != 3 || memcmp(p, "GET", 3) != 0)
                return HTTP_WRONG_METHOD;
        const char *query = memchr(path, '?', target);
        size_t length = query ? (size_t)(query - path) : target;
        bool found = length == sizeof(resource) - 1 && !memcmp(path, resource, length);
        return found ? HTTP_OK : HTTP_NOT_FOUND;
}

/* Return true if no name server decides where this value of Host, with a port perhaps, leads. */
static bool is_fixed(const char *p, size_t size)
{
        char host[64];
        struct ip ip;
        const char *end = size && *p == '[' ? memchr(p, ']', size) : memchr(p, ':', size);
        size_t n = end ? (size_t)(end - p) : size;
        bool v6 = size && *p == '[';
        if (n >= sizeof(host) || (v6 && !end))
                return false;
        memcpy(host, p + v6, n - v6);
        host[n - v6] = 0;
        return (!v6 && !strcasecmp(host, "localhost")) ||
               (ip_parse(host, &ip) && ip.size == (v6 ? IP_V6 : IP_V4));
}

/* Return true if all Host fields of a whole head are fixed. */
static bool has_fixed_host(const char *p, size_t size)
{
        static const char field[] = "host:";
        const char *end = p + size, *next;
        for (; p < end; p = next) {
                const char *line_end = memchr(p, '\n', (size_t)(end - p));
                next = line_end ? line_end + 1 : end;
                size_t n = (size_t)((line_end ? line_end : end) - p);
                if (!n || (n == 1 && *p == '\r')) /* the head's end */
                        break;
                if (n < sizeof(field) - 1 || strncasecmp(p, field, sizeof(field) - 1) != 0)
                        continue;
                const char *value = p + sizeof(field) - 1, *stop = p + n;
                while (value < stop && (*value == ' ' || *value == '\t'))
                        value++;
                while (stop > value && (stop[-1] == ' ' || stop[-1] == '\t' || stop[-1] == '\r'))
                        stop--;
                if (!is_fixed(value, (size_t)(stop - value)))
                        return false;
        }
        return true;
}

enum http_status http_judge(struct bytes head, bool any_host)
{
        const char *p = head.data;
        const char *end = head.size ? memchr(p, '\n', head.size) : NULL;
        if (end) {
                enum http_status status = judge_line(p, (size_t)(end - p));
                bool whole = is_whole(p, head.size);
                if (whole && !any_host && !has_fixed_host(p, head.size))
                        return HTTP_BAD_REQUEST;
                if (status == HTTP_BAD_REQUEST || whole)
                        return status;
        }
        return head.size >= HTTP_HEAD_MAX ? HTTP_HEAD_TOO_LARGE : HTTP_MORE;
}

static const char *reason(enum http_status status)
{
        switch (status) {
        case HTTP_OK:
                return "OK";
        case HTTP_NOT_FOUND:
                return "Not Found";
        case HTTP_WRONG_METHOD:
                return "Method Not Allowed";
        case HTTP_HEAD_TOO_LARGE:
                return "Request Header Fields Too Large";
        case HTTP_UNAVAILABLE:
                return "Service Unavailable";
        default:
                return "Bad Request";
        }
}

int http_respond(enum http_status status, struct bytes body, struct buf *out)
{
        char head[320];
        bool ok = status == HTTP_OK;
        const char *text = reason(status);
        size_t size = ok ? body.size : strlen(text) + 1;
        int n = snprintf(head, sizeof(head),
                         "HTTP/1.1 %d %s\r\n"
                         "Content-Type: text/plain; %scharset=utf-8\r\n"
                         "Content-Length: %zu\r\n%s"
                         "Connection: close\r\n\r\n",
                         (int)status, text, ok ? "version=0.0.4; " : "", size,
                         status == HTTP_WRONG_METHOD ? "Allow: GET\r\n" : "");
        int r = buf_put(out, head, (size_t)n);
        if (!r && ok)
                return buf_put(out, body.data, body.size);
        if (!r)
                r = buf_put(out, text, size - 1);
        return r ? r : buf_put(out, "\n", 1);
}
