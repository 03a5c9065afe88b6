#include "discover/line.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "os/clock.h"

enum { REFUSED_NS = 1000000000 };

/* Decode one character. Return its length, or 0 if it is not UTF-8. */
static size_t decode(const uint8_t *p, uint32_t *ret)
{
        size_t n = *p < 0x80                 ? 1
                   : *p >= 0xc2 && *p < 0xe0 ? 2
                   : (*p & 0xf0) == 0xe0     ? 3
                   : *p >= 0xf0 && *p < 0xf5 ? 4
                                             : 0;
        if (!n)
                return 0;
        *ret = n == 1 ? *p : *p & (0xffu >> (n + 1));
        for (size_t i = 1; i < n; i++) {
                if ((p[i] & 0xc0) != 0x80)
                        return 0;
                *ret = *ret << 6 | (p[i] & 0x3f);
        }
        bool shorter = (n == 3 && *ret < 0x800) || (n == 4 && *ret < 0x10000);
        bool surrogate = *ret >= 0xd800 && *ret < 0xe000;
        return shorter || surrogate || *ret > 0x10ffff ? 0 : n;
}

bool line_is_utf8(const char *text)
{
        uint32_t c;
        for (size_t n; *text; text += n) {
                n = decode((const uint8_t *)text, &c);
                if (!n)
                        return false;
        }
        return true;
}

/* A text that grows up to LINE_MAX_SIZE. The largest service has room. */
struct writer {
        char *text;
        size_t size;
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *w, const char *fmt, ...)
{
        va_list args;
        va_start(args, fmt);
        int n = vsnprintf(w->text + w->size, LINE_MAX_SIZE - w->size, fmt, args);
        va_end(args);
        size_t room = LINE_MAX_SIZE - 1 - w->size;
        w->size += n < 0 ? 0 : (size_t)n < room ? (size_t)n : room;
}

static void put_string(struct writer *w, const char *text)
{
        uint32_t c;
        put(w, "\"");
        for (size_t n; *text; text += n) {
                n = decode((const uint8_t *)text, &c);
                if (!n) {
                        put(w, "\\ufffd");
                        n = 1;
                } else if (c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x2028 || c == 0x2029) {
                        put(w, "\\u%04x", (unsigned)c);
                } else {
                        put(w, "%s%.*s", c == '"' || c == '\\' ? "\\" : "", (int)n, text);
                }
        }
        put(w, "\"");
}

void line_body(const struct found *f, char ret[LINE_MAX_SIZE])
{
        struct writer w = { ret, 0 };
        put(&w, "\"id\":");
        put_string(&w, f->id);
        put(&w, ",\"name\":");
        put_string(&w, f->name);
        put(&w, ",\"kind\":\"%s\",\"addresses\":[", f->kind);
        for (unsigned i = 0; i < f->address_count; i++) {
                put(&w, "%s", i ? "," : "");
                put_string(&w, f->addresses[i]);
        }
        put(&w, "],\"port\":%u", f->port);
        if (*f->txt.types)
                put(&w, ",\"types\":\"%s\"", f->txt.types);
        if (*f->txt.key)
                put(&w, ",\"key\":\"%s\"", f->txt.key);
        if (f->txt.has_protocol)
                put(&w, ",\"protocol\":%u", (unsigned)f->txt.protocol);
        if (f->txt.has_load)
                put(&w, ",\"load\":%u", (unsigned)f->txt.load);
}

static void put_line(const struct writer *w)
{
        for (size_t done = 0; done < w->size;) {
                ssize_t n = write(STDOUT_FILENO, w->text + done, w->size - done);
                if (n < 0 && errno != EINTR)
                        exit(0); /* nobody reads */
                done += n > 0 ? (size_t)n : 0;
        }
}

void line_put_found(const char *event, const char *body)
{
        char text[LINE_MAX_SIZE];
        struct writer w = { text, 0 };
        put(&w, "{\"event\":\"%s\",%s}\n", event, body);
        put_line(&w);
}

void line_put_gone(const char *id)
{
        char text[LINE_MAX_SIZE];
        struct writer w = { text, 0 };
        put(&w, "{\"event\":\"gone\",\"id\":");
        put_string(&w, id);
        put(&w, "}\n");
        put_line(&w);
}

void line_put_settled(void)
{
        char text[LINE_MAX_SIZE];
        struct writer w = { text, 0 };
        put(&w, "{\"event\":\"settled\"}\n");
        put_line(&w);
}

void found_add_address(struct found *f, const char *address)
{
        if (f->address_count == FOUND_ADDRESSES || strlen(address) > FOUND_ADDRESS_MAX)
                return;
        for (unsigned i = 0; i < f->address_count; i++) {
                if (!strcmp(f->addresses[i], address))
                        return;
        }
        strcpy(f->addresses[f->address_count++], address);
}

void line_refused(const char *name, const char *why)
{
        static uint64_t next_ns;
        static unsigned long long others;
        uint64_t now = clock_now_ns();
        if (now < next_ns) {
                others++;
                return;
        }
        char text[LINE_MAX_SIZE];
        struct writer w = { text, 0 };
        put_string(&w, name);
        if (others)
                fprintf(stderr, "%s: %s (and %llu others before)\n", text, why, others);
        else
                fprintf(stderr, "%s: %s\n", text, why);
        others = 0;
        next_ns = now + REFUSED_NS;
}
