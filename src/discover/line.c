#include "discover/line.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/quote.h"
#include "os/clock.h"
#include "os/file.h"

enum { REFUSED_NS = 1000000000 };

const struct service_type service_types[SERVICE_TYPES] = { { "_spancl._tcp", "spancl" },
                                                           { "_pocl._tcp", "pocl" } };

bool line_is_utf8(const char *text)
{
        uint32_t c;
        for (struct bytes left = bytes_str(text); left.size;) {
                size_t n = bytes_utf8(left, &c);
                if (!n)
                        return false;
                left = bytes_of((const char *)left.data + n, left.size - n);
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
        char *at = w->text + w->size, *end = w->text + LINE_MAX_SIZE - 1;
        if (end - at < 2)
                return;
        at = quote_text(at, end, bytes_str(text));
        *at = 0;
        w->size = (size_t)(at - w->text);
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

void line_put(const char *text, size_t size)
{
        if (!file_write_all(FILE_STDOUT, text, size))
                exit(0); /* the reader is gone */
}

void line_announce(const struct found *f, char **body)
{
        char now[LINE_MAX_SIZE], text[LINE_MAX_SIZE], *last = *body;
        struct writer w = { text, 0 };
        if (f->address_count) {
                line_body(f, now);
                if (last && !strcmp(last, now))
                        return;
                put(&w, "{\"event\":\"%s\",%s}\n", last ? "changes" : "appears", now);
                line_put(w.text, w.size);
                *body = mem_strdup(now);
        } else {
                if (last)
                        line_put_gone(f->id);
                *body = NULL;
        }
        mem_free(last);
}

void line_put_gone(const char *id)
{
        char text[LINE_MAX_SIZE];
        struct writer w = { text, 0 };
        put(&w, "{\"event\":\"gone\",\"id\":");
        put_string(&w, id);
        put(&w, "}\n");
        line_put(w.text, w.size);
}

void line_put_settled(void)
{
        static const char text[] = "{\"event\":\"settled\"}\n";
        line_put(text, sizeof(text) - 1);
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
