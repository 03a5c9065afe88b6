#include "cli/trace/import_chrome.h"

#include <string.h>

#include "base/mem.h"
#include "cli/trace/event.h"

enum { OPEN = 1 << 16 }; /* slices that have begun and not ended */

struct open {
        uint64_t begin_ns;
        const char *at; /* the event, which has the name and the arguments */
        uint32_t below; /* the slice that began before it in its row, or a free one; 0: none */
};

struct reader {
        struct imported *to;
        const char *end;
        struct open *open; /* from number 1 on */
        uint32_t used, free;
        uint32_t top[IMPORTED_ROWS]; /* of each row: the slice that began last; 0: none */
        uint64_t last_ns;
        struct trace_event event; /* the begin of a slice, read again */
};

/* Names of arguments stand between quotes, and are anyone's. */
static void plain(char *name)
{
        for (; *name; name++)
                if (*name < ' ' || *name > '~' || *name == '"' || *name == '\\')
                        *name = '_';
}

static void put_args(struct imported *to, const struct trace_event *e, bool texts)
{
        for (size_t i = 0; i < e->arg_count; i++) {
                char name[TRACE_EVENT_NAME];
                const struct trace_arg *a = &e->args[i];
                memcpy(name, a->name, sizeof(name));
                plain(name);
                if (a->kind == TRACE_ARG_NUMBER)
                        timeline_arg(to->out, name, a->number);
                else if (a->kind == TRACE_ARG_REAL)
                        timeline_arg_real(to->out, name, a->real);
                else if (texts)
                        timeline_arg_text(to->out, name, a->text);
        }
}

static void put(struct reader *r, const struct imported_row *row, const struct trace_event *e,
                uint64_t begin, uint64_t end)
{
        if (!imported_slice(r->to, row, begin, end, e->name))
                return;
        put_args(r->to, e, true);
        timeline_slice_end(r->to->out);
}

static void open_slice(struct reader *r, const struct imported_row *row, uint64_t ns,
                       const char *at)
{
        if (!row || (!r->free && r->used == OPEN)) {
                r->to->left_out++;
                return;
        }
        uint32_t *top = &r->top[row - r->to->rows], n = r->free;
        if (n)
                r->free = r->open[n].below;
        else
                n = ++r->used;
        r->open[n] = (struct open){ ns, at, *top };
        *top = n;
}

/* End the slice that began last in a row. */
static void close_slice(struct reader *r, const struct imported_row *row, uint64_t ns)
{
        uint32_t *top = row ? &r->top[row - r->to->rows] : NULL, n = top ? *top : 0;
        if (!n)
                return; /* it began before the recording */
        struct json j = { .at = r->open[n].at, .end = r->end };
        if (trace_event_read(&j, &r->event)) /* it was read before */
                put(r, row, &r->event, r->open[n].begin_ns, ns);
        *top = r->open[n].below;
        r->open[n].below = r->free;
        r->free = n;
}

/* End the slices that last until the end. */
static void close_all(struct reader *r)
{
        for (uint32_t i = 0; i < r->to->row_count; i++)
                while (r->top[i])
                        close_slice(r, &r->to->rows[i], r->last_ns);
}

static void take_name(struct reader *r, const struct trace_event *e)
{
        const char *name = NULL;
        for (size_t i = 0; i < e->arg_count && !name; i++)
                if (e->args[i].kind == TRACE_ARG_TEXT && !strcmp(e->args[i].name, "name"))
                        name = e->args[i].text;
        if (name && !strcmp(e->name, "process_name"))
                imported_name_process(r->to, e->process, name);
        else if (name && !strcmp(e->name, "thread_name"))
                imported_name_row(r->to, imported_row(r->to, e->process, e->thread), name);
}

static void take_event(void *user, const struct trace_event *e, const char *at)
{
        struct reader *r = user;
        if (e->phase == 'M') {
                take_name(r, e);
                return;
        }
        if (e->phase == 'C') {
                if (imported_counter(r->to, e->process, e->begin_ns, e->name)) {
                        put_args(r->to, e, false);
                        timeline_slice_end(r->to->out);
                }
                return;
        }
        if (!e->phase || !strchr("XBEiI", e->phase)) {
                r->to->left_out++;
                return;
        }
        struct imported_row *row = imported_row(r->to, e->process, e->thread);
        uint64_t most = UINT64_MAX - e->begin_ns;
        uint64_t length = e->phase != 'X' ? 0 : e->duration_ns < most ? e->duration_ns : most;
        if (e->begin_ns + length > r->last_ns)
                r->last_ns = e->begin_ns + length;
        if (e->phase == 'B')
                open_slice(r, row, e->begin_ns, at);
        else if (e->phase == 'E')
                close_slice(r, row, e->begin_ns);
        else
                put(r, row, e, e->begin_ns, e->begin_ns + length);
}

static void skip_other(void *user, struct json *j)
{
        (void)user;
        json_skip(j);
}

/* Does the text end here, or behind a comma? The format (Trace Event Format, JSON array) lets the ] away for programs
 * that end in the middle. */
static bool is_cut(const struct json *j)
{
        struct json next = *j;
        if (next.at < next.end && *trace_value_at(&next) == ',')
                next.at++;
        (void)trace_value_at(&next);
        return next.at == next.end;
}

/* The events of an array. */
static int read_array(struct reader *r, const char *text, size_t size)
{
        struct json j = { .at = text, .end = text + size };
        struct trace_event *e = mem_alloc(sizeof(*e));
        bool one = true;
        int status = !e ? SP_E_NOMEM : json_open(&j, '[') ? 0 : SP_E_PROTO;
        bool any = false, cut = false;
        while (status == 0 && !(cut = any && is_cut(&j)) && json_element(&j, &one)) {
                const char *at = trace_value_at(&j);
                if (trace_event_read(&j, e))
                        take_event(r, e, at);
                else if ((cut = any && j.at == j.end))
                        break;
                else
                        status = SP_E_PROTO;
                any = true;
        }
        mem_free(e);
        if (cut) {
                r->to->left_out += j.bad;
                return 0;
        }
        return status == 0 && !json_ends(&j) ? SP_E_PROTO : status;
}

int import_chrome(struct imported *s, const char *text, size_t size)
{
        static const struct trace_reader reader = { take_event, skip_other };
        struct reader *r = mem_zalloc(sizeof(*r));
        struct json j = { .at = text, .end = text + size };
        int status = SP_E_NOMEM;
        if (r)
                r->open = mem_alloc((OPEN + 1) * sizeof(*r->open));
        if (r && r->open) {
                r->to = s;
                r->end = text + size;
                bool array = j.at < j.end && *trace_value_at(&j) == '[';
                status = array ? read_array(r, text, size) : trace_read_all(text, size, &reader, r);
                close_all(r);
        }
        if (r)
                mem_free(r->open);
        mem_free(r);
        return status;
}
