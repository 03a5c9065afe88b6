#include "cli/plot.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum {
        ROWS_MAX = 128,
        TEXT_MAX = 64,
        DEPTH_MAX = 16,
        LEFT = 220, /* of the bars; layout is in the SVG's own units */
        BARS = 560,
        WIDTH = 900,
        ROW = 40,
        BAR = 10,
        TITLE = 46,
        TOP = 56,
        SCALE = 40,
};

enum side { FLOOR, NATIVE, SPANCL, SIDES };

static const struct {
        const char *name, *label, *colour;
} sides[SIDES] = {
        { "floor", "the link alone", "#c8b273" },
        { "native", "native", "#8a8f98" },
        { "spancl", "SpanCL", "#1f6fb2" },
};

static const struct {
        const char *unit, *title;
} panels[] = {
        { "us", "microseconds (less is better)" },
        { "ms", "milliseconds (less is better)" },
        { "GB/s", "gigabytes per second (more is better)" },
        { "MLUPs", "million cells a second (more is better)" },
};

struct row {
        char name[TEXT_MAX], unit[TEXT_MAX];
        double value[SIDES]; /* 0: none */
};

struct plot {
        struct row rows[ROWS_MAX];
        size_t count;
};

/* ---- reading --------------------------------------------------------------------------------- */

struct scan {
        const char *at, *end;
        char path[DEPTH_MAX][TEXT_MAX];
        struct plot *plot;
};

static char next_char(struct scan *s)
{
        while (s->at < s->end && strchr(" \t\r\n", *s->at))
                s->at++;
        return s->at < s->end ? *s->at : '\0';
}

static bool take_char(struct scan *s, char c)
{
        if (next_char(s) != c)
                return false;
        s->at++;
        return true;
}

/* Take a text. Long texts are cut, but no name that matters is long. Escapes stay as written. */
static bool take_text(struct scan *s, char ret[TEXT_MAX])
{
        size_t n = 0;
        if (!take_char(s, '"'))
                return false;
        for (; s->at < s->end && *s->at != '"'; s->at++) {
                if (*s->at == '\\' && s->end - s->at > 1)
                        s->at++;
                if (n + 1 < TEXT_MAX)
                        ret[n++] = *s->at;
        }
        ret[n] = '\0';
        return take_char(s, '"');
}

/* Find or add the row of a name. NULL: there are too many. */
static struct row *row_of(struct plot *p, const char *name)
{
        for (size_t i = 0; i < p->count; i++)
                if (!strcmp(p->rows[i].name, name))
                        return &p->rows[i];
        if (p->count == ROWS_MAX)
                return NULL;
        snprintf(p->rows[p->count].name, TEXT_MAX, "%s", name);
        return &p->rows[p->count++];
}

/* Take a value at side / measurement / field. */
static void take_value(struct scan *s, int depth, const char *text)
{
        if (depth != 3)
                return;
        for (int i = 0; i < SIDES; i++) {
                if (strcmp(s->path[0], sides[i].name) != 0)
                        continue;
                struct row *row = row_of(s->plot, s->path[1]);
                if (row && !strcmp(s->path[2], "unit"))
                        snprintf(row->unit, TEXT_MAX, "%s", text);
                else if (row && !strcmp(s->path[2], "median"))
                        row->value[i] = strtod(text, NULL);
        }
}

static bool scan_value(struct scan *s, int depth)
{
        char text[TEXT_MAX] = "", c = next_char(s);
        if (depth == DEPTH_MAX)
                return false;
        if (c == '{' || c == '[') {
                char end = c == '{' ? '}' : ']';
                s->at++;
                if (take_char(s, end))
                        return true;
                do {
                        s->path[depth][0] = '\0';
                        if (c == '{' && (!take_text(s, s->path[depth]) || !take_char(s, ':')))
                                return false;
                        if (!scan_value(s, depth + 1))
                                return false;
                } while (take_char(s, ','));
                return take_char(s, end);
        }
        if (c == '"') {
                if (!take_text(s, text))
                        return false;
        } else {
                size_t n = 0;
                while (s->at < s->end && *s->at && !strchr(",]} \t\r\n", *s->at)) {
                        if (n + 1 < TEXT_MAX)
                                text[n++] = *s->at;
                        s->at++;
                }
                if (!n)
                        return false;
        }
        take_value(s, depth, text);
        return true;
}

/* ---- drawing --------------------------------------------------------------------------------- */

/* Return the link's own value for a row's measurement. */
static double floor_of(struct plot *p, const struct row *row)
{
        static const char *const waits[] = { "empty_kernel_finish", "write_4b", "read_4b" };
        const char *name = strcmp(row->unit, "GB/s") ? NULL : "tcp_stream_16m";
        for (size_t i = 0; i < array_size(waits); i++)
                if (!strcmp(row->name, waits[i]))
                        name = "tcp_round_trip";
        const struct row *link = name ? row_of(p, name) : NULL;
        return link ? link->value[FLOOR] : 0;
}

static void put_text(FILE *out, const char *text)
{
        for (; *text; text++) {
                if (*text == '<' || *text == '&')
                        fputs(*text == '<' ? "&lt;" : "&amp;", out);
                else
                        fputc(*text == '_' ? ' ' : *text, out);
        }
}

static double place(double value, double low, double high)
{
        return BARS * (log10(value) - low) / (high - low);
}

static void draw_scale(FILE *out, int top, int bottom, int low, int high)
{
        for (int i = low; i <= high; i++) {
                double x = LEFT + (double)BARS * (i - low) / (high - low);
                fprintf(out,
                        "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#ddd\"/>"
                        "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\" fill=\"#666\">%g</text>\n",
                        x, top, x, bottom, x, bottom + 14, pow(10, i));
        }
}

static void draw_row(FILE *out, const struct row *row, int y, int low, int high)
{
        fprintf(out, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">", LEFT - 8, y + 20);
        put_text(out, row->name);
        fputs("</text>\n", out);
        for (int i = 0; i < SIDES; i++, y += BAR + 1) {
                if (!(row->value[i] > 0))
                        continue;
                double width = place(row->value[i], low, high);
                fprintf(out,
                        "<rect x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"/>"
                        "<text x=\"%.1f\" y=\"%d\" font-size=\"10\">%.3g</text>\n",
                        LEFT, y, width, BAR, sides[i].colour, LEFT + width + 4, y + BAR - 1,
                        row->value[i]);
        }
}

static bool belongs(const struct row *row, const char *unit)
{
        return row->value[SPANCL] > 0 && !strcmp(row->unit, unit);
}

static int draw_panel(FILE *out, const struct plot *p, size_t panel, int y)
{
        const char *unit = panels[panel].unit;
        double least = INFINITY, most = 0;
        int count = 0;
        for (size_t i = 0; i < p->count; i++) {
                const struct row *row = &p->rows[i];
                for (int k = 0; k < SIDES && belongs(row, unit); k++) {
                        count += k == 0;
                        if (row->value[k] > 0) {
                                least = fmin(least, row->value[k]);
                                most = fmax(most, row->value[k]);
                        }
                }
        }
        if (!count)
                return y;
        int low = (int)floor(log10(least)) - (fmod(log10(least), 1) == 0);
        int high = (int)ceil(log10(most));
        fprintf(out, "<text x=\"%d\" y=\"%d\" font-weight=\"bold\">%s</text>\n", LEFT, y + 30,
                panels[panel].title);
        y += TITLE;
        draw_scale(out, y, y + count * ROW, low, high > low ? high : low + 1);
        for (size_t i = 0; i < p->count; i++) {
                if (!belongs(&p->rows[i], unit))
                        continue;
                draw_row(out, &p->rows[i], y, low, high > low ? high : low + 1);
                y += ROW;
        }
        return y + SCALE;
}

static int panels_height(const struct plot *p)
{
        int height = TOP;
        for (size_t i = 0; i < array_size(panels); i++) {
                int count = 0;
                for (size_t k = 0; k < p->count; k++)
                        count += belongs(&p->rows[k], panels[i].unit);
                height += count ? TITLE + SCALE + count * ROW : 0;
        }
        return height;
}

static void draw(FILE *out, const struct plot *p)
{
        int height = panels_height(p), y = TOP;
        fprintf(out,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"13\">\n"
                "<rect width=\"%d\" height=\"%d\" fill=\"white\"/>\n",
                WIDTH, height, WIDTH, height, WIDTH, height);
        for (int i = 0; i < SIDES; i++)
                fprintf(out,
                        "<rect x=\"%d\" y=\"20\" width=\"14\" height=\"14\" fill=\"%s\"/>"
                        "<text x=\"%d\" y=\"32\">%s</text>\n",
                        LEFT + i * 150, sides[i].colour, LEFT + 20 + i * 150, sides[i].label);
        for (size_t i = 0; i < array_size(panels); i++)
                y = draw_panel(out, p, i, y);
        fputs("</svg>\n", out);
}

int plot_write(FILE *out, struct bytes results)
{
        struct plot *p = mem_zalloc(sizeof(*p));
        if (!p)
                return SP_E_NOMEM;
        struct scan s = {
                .at = (const char *)results.data,
                .end = (const char *)results.data + results.size,
                .plot = p,
        };
        bool good = scan_value(&s, 0) && next_char(&s) == '\0', any = false;
        for (size_t i = 0; i < p->count && good; i++) {
                struct row *row = &p->rows[i];
                any |= row->value[SPANCL] > 0;
                if (row->value[SPANCL] > 0)
                        row->value[FLOOR] = floor_of(p, row);
        }
        if (any)
                draw(out, p);
        mem_free(p);
        return any ? 0 : SP_E_INVAL;
}
