#include "base/json_writer.h"

#include <inttypes.h>
#include <math.h>

#include "base/quote.h"

static void put_quoted(struct json_writer *w, struct bytes text)
{
        char out[QUOTE_CHARACTER];
        putc('"', w->to);
        while (text.size)
                fwrite(out, 1, quote_character(&text, out), w->to);
        putc('"', w->to);
}

static void begin(struct json_writer *w, const char *name)
{
        if (w->more)
                putc(',', w->to);
        if (name)
                fprintf(w->to, "\"%s\":", name);
        w->more = true;
}

void json_begin(struct json_writer *w, const char *name, char bracket)
{
        begin(w, name);
        putc(bracket, w->to);
        w->more = false;
}

void json_end(struct json_writer *w, char bracket)
{
        putc(bracket, w->to);
        w->more = true;
}

void json_put_bytes(struct json_writer *w, const char *name, struct bytes text)
{
        begin(w, name);
        put_quoted(w, text);
}

void json_put_text(struct json_writer *w, const char *name, const char *text)
{
        if (text)
                json_put_bytes(w, name, bytes_str(text));
        else
                json_put_null(w, name);
}

void json_put_u64(struct json_writer *w, const char *name, uint64_t value)
{
        begin(w, name);
        fprintf(w->to, "%" PRIu64, value);
}

void json_put_real(struct json_writer *w, const char *name, double value, int digits)
{
        begin(w, name);
        if (isfinite(value))
                fprintf(w->to, "%.*f", digits, value);
        else
                fputs("null", w->to);
}

void json_put_bool(struct json_writer *w, const char *name, bool value)
{
        begin(w, name);
        fputs(value ? "true" : "false", w->to);
}

void json_put_null(struct json_writer *w, const char *name)
{
        begin(w, name);
        fputs("null", w->to);
}

void json_put_named(struct json_writer *w, struct bytes name, struct bytes text)
{
        begin(w, NULL);
        put_quoted(w, name);
        putc(':', w->to);
        put_quoted(w, text);
}

void json_line(struct json_writer *w)
{
        putc('\n', w->to);
        fflush(w->to);
        w->more = false;
}
