#include "cli/trace/picture.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/markup.h"
#include "base/mem.h"
#include "cli/profile/answers.h"

/* In pixels. */
enum {
        LEFT = 270,
        WIDTH = 900, /* of the bars */
        ROW = 18,
        TITLE = 24, /* a process's name */
        TOP = 28,
        DEPTH_MAX = 3, /* of bars within bars */
        LETTER = 6,    /* about the width of one */
};

struct row {
        uint32_t process;
        uint64_t thread;
        int y;
};

struct picture {
        FILE *to;
        const struct trace_file *f;
        const struct trace_file_event **slices; /* by row, time and length */
        size_t count;
        struct row rows[PICTURE_ROWS_MAX];
        size_t row_count, rows_left_out, bars;
        uint64_t begin_ns, end_ns;
};

static int by_row(const void *a, const void *b)
{
        const struct trace_file_event *x = *(const struct trace_file_event *const *)a;
        const struct trace_file_event *y = *(const struct trace_file_event *const *)b;
        if (x->process != y->process)
                return x->process < y->process ? -1 : 1;
        if (x->thread != y->thread)
                return x->thread < y->thread ? -1 : 1;
        if (x->begin_ns != y->begin_ns)
                return x->begin_ns < y->begin_ns ? -1 : 1;
        return (x->duration_ns < y->duration_ns) - (x->duration_ns > y->duration_ns);
}

static uint64_t end_of(const struct trace_file_event *e)
{
        return e->duration_ns < UINT64_MAX - e->begin_ns ? e->begin_ns + e->duration_ns
                                                         : UINT64_MAX;
}

static double place(const struct picture *p, uint64_t ns)
{
        if (ns <= p->begin_ns)
                return LEFT;
        if (ns >= p->end_ns)
                return LEFT + WIDTH;
        return LEFT + (double)(ns - p->begin_ns) / (double)(p->end_ns - p->begin_ns) * WIDTH;
}

static const char *colour_of(const char *category, const char *name)
{
        static const char *const all[][2] = {
                { "kernel", "#55b887" },    { "transfer", "#e0a030" }, { "other", "#8a8f98" },
                { "migration", "#c2528b" }, { "source", "#dfa6c3" },   { "lane", "#3d7edb" },
                { "waited", "#e58a7b" },    { "client", "#b9c4d6" },   { "server", "#9db4c0" },
                { "link", "#cfd8e6" },
        };
        if (!strcmp(name, "compile") || !strcmp(name, "build"))
                return "#7a5bc2";
        if (!strcmp(name, "poll") || !strcmp(name, "sleep") || !strcmp(name, "wait"))
                return "#e2e6ec"; /* nothing happens */
        for (size_t i = 0; i < array_size(all); i++)
                if (!strcmp(category, all[i][0]))
                        return all[i][1];
        return "#b0b0b0";
}

/* ---- what is shown -------------------------------------------------------------------------- */

/* Find the slices and the time to show. */
static int collect(struct picture *p)
{
        const struct trace_file *f = p->f;
        uint64_t begin = UINT64_MAX, end = 0, all_begin = UINT64_MAX, all_end = 0;
        p->slices = mem_alloc((f->event_count + 1) * sizeof(*p->slices));
        if (!p->slices)
                return SP_E_NOMEM;
        for (size_t i = 0; i < f->event_count; i++) {
                const struct trace_file_event *e = &f->events[i];
                if (e->phase != 'X')
                        continue;
                p->slices[p->count++] = e;
                all_begin = e->begin_ns < all_begin ? e->begin_ns : all_begin;
                all_end = end_of(e) > all_end ? end_of(e) : all_end;
                if (strcmp(trace_file_text(f, e->category), "kernel") != 0)
                        continue;
                begin = e->begin_ns < begin ? e->begin_ns : begin;
                end = end_of(e) > end ? end_of(e) : end;
        }
        if (!p->count)
                return SP_E_NOENT;
        if (end <= begin) {
                begin = all_begin;
                end = all_end;
        }
        uint64_t margin = (end - begin) / 25 + 1;
        p->begin_ns = begin > margin ? begin - margin : 0;
        p->end_ns = end < UINT64_MAX - margin ? end + margin : end;
        qsort(p->slices, p->count, sizeof(*p->slices), by_row);
        return 0;
}

static bool is_shown(const struct picture *p, const struct trace_file_event *e)
{
        return e->begin_ns < p->end_ns && end_of(e) >= p->begin_ns;
}

/* Give each row with slices its place. Returns the height. */
static int arrange(struct picture *p)
{
        const struct row *last = NULL;
        int y = TOP;
        for (size_t i = 0; i < p->count; i++) {
                const struct trace_file_event *e = p->slices[i];
                bool same = last && last->process == e->process;
                if (!is_shown(p, e) || (same && last->thread == e->thread))
                        continue;
                if (p->row_count == PICTURE_ROWS_MAX) {
                        p->rows_left_out++;
                        continue;
                }
                y += same ? 0 : TITLE;
                last = &p->rows[p->row_count];
                p->rows[p->row_count++] = (struct row){ e->process, e->thread, y };
                y += ROW;
        }
        return y + TITLE;
}

static const struct row *row_of(const struct picture *p, uint32_t process, uint64_t thread)
{
        for (size_t i = 0; i < p->row_count; i++)
                if (p->rows[i].process == process && p->rows[i].thread == thread)
                        return &p->rows[i];
        return NULL;
}

/* ---- drawing -------------------------------------------------------------------------------- */

static void put_bar(struct picture *p, const struct trace_file_event *e, int y, int depth)
{
        char t[ANSWERS_NUMBER_MAX];
        const char *name = trace_file_text(p->f, e->name);
        double x = place(p, e->begin_ns), w = place(p, end_of(e)) - x;
        int inset = depth * 3;
        fprintf(p->to, "<rect x='%.1f' y='%d' width='%.1f' height='%d' fill='%s'>", x, y + inset,
                w < 0.5 ? 0.5 : w, ROW - 3 - inset,
                colour_of(trace_file_text(p->f, e->category), name));
        if (w >= 1) { /* a narrower one can't be pointed at */
                fputs("<title>", p->to);
                markup_put(p->to, name, TRACE_FILE_NAME_MAX);
                fprintf(p->to, " %s</title>", answers_time(e->duration_ns, t));
        }
        fputs("</rect>\n", p->to);
        if (w < 5 * LETTER || depth)
                return;
        fprintf(p->to, "<text x='%.1f' y='%d' class='b'>", x + 3, y + 12);
        markup_put(p->to, e->command ? trace_file_text(p->f, e->command) : name,
                   (size_t)(w / LETTER));
        fputs("</text>\n", p->to);
}

/* Draw all bars. A bar is left out if it ends within half a pixel of the last one of its depth. */
static void put_bars(struct picture *p)
{
        uint64_t ends[DEPTH_MAX] = { 0 };
        double shown[DEPTH_MAX] = { 0 };
        const struct row *row = NULL;
        int depth = 0;
        for (size_t i = 0; i < p->count; i++) {
                const struct trace_file_event *e = p->slices[i];
                if (!is_shown(p, e))
                        continue;
                if (!row || row->process != e->process || row->thread != e->thread) {
                        row = row_of(p, e->process, e->thread);
                        if (!row)
                                return; /* left out, as all after it */
                        depth = 0;
                        memset(shown, 0, sizeof(shown));
                }
                while (depth && ends[depth - 1] <= e->begin_ns)
                        depth--;
                if (depth == DEPTH_MAX)
                        continue;
                double right = place(p, end_of(e));
                if (right - shown[depth] >= 0.5 && p->bars < PICTURE_BARS_MAX) {
                        put_bar(p, e, row->y, depth);
                        p->bars++;
                        shown[depth] = right;
                }
                ends[depth++] = end_of(e);
        }
}

static void put_rows(struct picture *p)
{
        for (size_t i = 0; i < p->row_count; i++) {
                const struct row *r = &p->rows[i];
                if (!i || p->rows[i - 1].process != r->process) {
                        fprintf(p->to, "<text x='8' y='%d' class='p'>", r->y - 6);
                        markup_put(p->to, trace_file_row_name(p->f, r->process, 0), 140);
                        fputs("</text>\n", p->to);
                }
                fprintf(p->to, "<rect x='%d' y='%d' width='%d' height='%d' fill='#f4f5f7'/>\n",
                        LEFT, r->y, WIDTH, ROW - 3);
                fprintf(p->to, "<text x='18' y='%d'>", r->y + 12);
                markup_put(p->to, trace_file_row_name(p->f, r->process, r->thread), 40);
                fputs("</text>\n", p->to);
        }
}

static void put_scale(struct picture *p, int height)
{
        char t[ANSWERS_NUMBER_MAX];
        for (int i = 0; i <= 6; i++) {
                uint64_t ns = (p->end_ns - p->begin_ns) / 6 * (uint64_t)i;
                int x = LEFT + WIDTH / 6 * i;
                fprintf(p->to,
                        "<path d='M%d %dV%d' stroke='#d5d9e0'/><text x='%d' y='16' "
                        "text-anchor='middle'>%s</text>\n",
                        x, TOP - 6, height - TITLE, x, i ? answers_time(ns, t) : "0");
        }
}

/* Migrations: from the slice where the arrow begins to that where it ends. */
static void put_arrows(struct picture *p)
{
        const struct trace_file_event *from = NULL;
        for (size_t i = 0; i < p->f->event_count && p->bars < PICTURE_BARS_MAX; i++) {
                const struct trace_file_event *e = &p->f->events[i];
                if (strcmp(trace_file_text(p->f, e->category), "migration") != 0 ||
                    (e->phase != 's' && e->phase != 'f'))
                        continue;
                if (e->phase == 's') {
                        from = e; /* its end is the next one in the files of SpanCL */
                        continue;
                }
                const struct row *a = from ? row_of(p, from->process, from->thread) : NULL;
                const struct row *b = row_of(p, e->process, e->thread);
                if (a && b && from->begin_ns >= p->begin_ns && e->begin_ns <= p->end_ns) {
                        fprintf(p->to,
                                "<path d='M%.1f %dL%.1f %d' stroke='#8b1e54' stroke-opacity='.6' "
                                "marker-end='url(#a)'/>\n",
                                place(p, from->begin_ns), a->y + ROW / 2, place(p, e->begin_ns),
                                b->y + ROW / 2);
                        p->bars++;
                }
                from = NULL;
        }
}

static void put_marks(struct picture *p, int height)
{
        for (size_t i = 0; i < p->f->event_count && p->bars < PICTURE_BARS_MAX; i++) {
                const struct trace_file_event *e = &p->f->events[i];
                if (e->phase != 'i' || e->begin_ns < p->begin_ns || e->begin_ns > p->end_ns)
                        continue;
                double x = place(p, e->begin_ns);
                fprintf(p->to,
                        "<path d='M%.1f %dV%d' stroke='#d02020' stroke-dasharray='4 3'/><text x='%.1f' "
                        "y='%d' fill='#d02020'>",
                        x, TOP, height - TITLE, x + 3, TOP + 8);
                markup_put(p->to, trace_file_text(p->f, e->name), 40);
                fputs("</text>\n", p->to);
                p->bars++;
        }
}

int picture_draw(FILE *to, const struct trace_file *f)
{
        struct picture p = { .to = to, .f = f };
        int r = collect(&p);
        if (r < 0) {
                mem_free(p.slices);
                return r;
        }
        int height = arrange(&p);
        fprintf(to,
                "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='%d' font-family='sans-serif' "
                "font-size='10'>\n"
                "<style>.p{font-weight:bold;font-size:11px}.b{fill:#101418}</style>\n"
                "<defs><marker id='a' viewBox='0 0 6 6' refX='6' refY='3' markerWidth='6' "
                "markerHeight='6' orient='auto'><path d='M0 0L6 3L0 6z' fill='#8b1e54'/></marker></defs>\n"
                "<rect width='100%%' height='100%%' fill='#fff'/>\n",
                LEFT + WIDTH + 36, height);
        put_rows(&p);
        put_scale(&p, height);
        put_bars(&p);
        put_arrows(&p);
        put_marks(&p, height);
        if (p.rows_left_out || p.bars == PICTURE_BARS_MAX)
                fprintf(to, "<text x='8' y='%d'>The picture does not show all.</text>\n",
                        height - 6);
        fputs("</svg>\n", to);
        mem_free(p.slices);
        return 0;
}
