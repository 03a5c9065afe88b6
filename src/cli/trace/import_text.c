#include "cli/trace/import_text.h"

#include <string.h>

#include "base/mem.h"

enum {
        PROCESSORS = 1 << 10,
        INTERRUPTS = 8, /* within each other */
        LOOK = 64 << 10,
};

#define PROCESSOR_ROW \
        ((uint64_t)1 << 23) /* and its number: behind the threads, whose numbers are less */

/* Bytes of the text. */
struct part {
        const char *at, *end;
};

struct event {
        uint64_t ns, processor, thread;
        bool has_thread, in_kernel;
        struct part comm, name, fields;
};

struct interrupt {
        uint64_t ns;
        char name[IMPORTED_TEXT];
};

struct processor {
        bool seen, runs;
        uint64_t since_ns, thread; /* since when it runs the thread */
        char comm[IMPORTED_TEXT];
        struct interrupt interrupts[INTERRUPTS];
        unsigned depth; /* more than INTERRUPTS: the rest is not known */
};

struct reader {
        struct imported *to;
        uint64_t last_ns;
        struct processor processors[PROCESSORS];
};

/* ---- texts ---------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
        return c >= '0' && c <= '9';
}

/* Take a number. False: there is none, or it is too large. */
static bool take_number(struct part *p, uint64_t *ret)
{
        uint64_t v = 0;
        const char *begin = p->at;
        for (; p->at < p->end && is_digit(*p->at); p->at++) {
                if (v > (UINT64_MAX - 9) / 10)
                        return false;
                v = v * 10 + (uint64_t)(*p->at - '0');
        }
        *ret = v;
        return p->at > begin;
}

static bool take_char(struct part *p, char c)
{
        if (p->at == p->end || *p->at != c)
                return false;
        p->at++;
        return true;
}

static void skip_blanks(struct part *p)
{
        while (p->at < p->end && (*p->at == ' ' || *p->at == '\t'))
                p->at++;
}

static void trim(struct part *p)
{
        skip_blanks(p);
        while (p->end > p->at && (p->end[-1] == ' ' || p->end[-1] == '\t' || p->end[-1] == '\r'))
                p->end--;
}

static bool begins(struct part p, const char *with)
{
        size_t n = strlen(with);
        return (size_t)(p.end - p.at) >= n && !memcmp(p.at, with, n);
}

static bool equals(struct part p, const char *text)
{
        return (size_t)(p.end - p.at) == strlen(text) && begins(p, text);
}

static void copy(char ret[IMPORTED_TEXT], const char *before, struct part p)
{
        snprintf(ret, IMPORTED_TEXT, "%s%.*s", before,
                 (int)(p.end - p.at < IMPORTED_TEXT ? p.end - p.at : IMPORTED_TEXT), p.at);
}

/* Find a text. Returns its place, or the end. */
static const char *find(struct part p, const char *text)
{
        const char *at = memmem(p.at, (size_t)(p.end - p.at), text, strlen(text));
        return at ? at : p.end;
}

/* ---- fields --------------------------------------------------------------------------------- */

/* Pass over a text in quotes. */
static void skip_quoted(struct part *p)
{
        for (p->at++; p->at < p->end && *p->at != '"'; p->at++)
                if (*p->at == '\\' && p->at + 1 < p->end)
                        p->at++;
        if (p->at < p->end)
                p->at++;
}

/* The value of babeltrace2's `name = value`: a text without its quotes, or a number. */
static bool lttng_field(struct part fields, const char *name, struct part *ret)
{
        size_t n = strlen(name);
        for (struct part p = fields; p.at < p.end;) {
                if (*p.at == '"') {
                        skip_quoted(&p);
                        continue;
                }
                bool starts = p.at == fields.at || p.at[-1] == ' ';
                if (!starts || !begins(p, name) ||
                    !begins((struct part){ p.at + n, p.end }, " = ")) {
                        p.at++;
                        continue;
                }
                p.at += n + 3;
                ret->at = p.at;
                if (p.at < p.end && *p.at == '"') {
                        skip_quoted(&p);
                        *ret = (struct part){ ret->at + 1, p.at - (p.at > ret->at + 1) };
                } else {
                        while (p.at < p.end && *p.at != ',' && *p.at != ' ')
                                p.at++;
                        ret->end = p.at;
                }
                return true;
        }
        return false;
}

/* The value of a tracepoint's `name=value`, as perf prints it. It ends before `next` (NULL: a blank). */
static bool perf_field(struct part fields, const char *name, const char *next, struct part *ret)
{
        size_t n = strlen(name);
        for (struct part p = fields; p.at < p.end; p.at++) {
                if ((p.at > fields.at && p.at[-1] != ' ') || !begins(p, name))
                        continue;
                ret->at = p.at + n;
                ret->end = find((struct part){ ret->at, p.end }, next ? next : " ");
                return true;
        }
        return false;
}

static bool number_of(struct part p, uint64_t *ret)
{
        return take_number(&p, ret);
}

/* ---- lines ---------------------------------------------------------------------------------- */

/* [CYCLES] HOST NAME: { cpu_id = 1 }, { FIELDS } */
static bool read_lttng(struct part line, struct event *ret)
{
        struct part value;
        *ret = (struct event){ .in_kernel = true };
        if (!take_char(&line, '[') || !take_number(&line, &ret->ns) || !take_char(&line, ']') ||
            !take_char(&line, ' '))
                return false;
        const char *colon = find(line, ": {");
        if (colon == line.end)
                return false;
        ret->name = (struct part){ line.at, colon };
        for (const char *p = line.at; p < colon; p++) {
                if (*p == ' ')
                        ret->name.at = p + 1;
                if (*p == ':') /* PROVIDER:EVENT */
                        ret->in_kernel = false;
        }
        ret->fields = (struct part){ colon + 2, line.end };
        if (lttng_field(ret->fields, "cpu_id", &value))
                (void)number_of(value, &ret->processor);
        ret->has_thread = (lttng_field(ret->fields, "vtid", &value) ||
                           lttng_field(ret->fields, "tid", &value)) &&
                          number_of(value, &ret->thread);
        if (!lttng_field(ret->fields, "procname", &ret->comm))
                ret->comm = (struct part){ line.at, line.at };
        return true;
}

/* PID/TID [CPU] SECONDS.NANOSECONDS: from the place of '[' on, and back from it */
static bool read_place(struct part line, const char *bracket, struct event *ret)
{
        struct part p = { bracket + 1, line.end };
        uint64_t seconds, fraction;
        if (!take_number(&p, &ret->processor) || !take_char(&p, ']'))
                return false;
        skip_blanks(&p);
        if (!take_number(&p, &seconds) || !take_char(&p, '.'))
                return false;
        const char *digits = p.at;
        if (!take_number(&p, &fraction) || p.at - digits > 9 || seconds > UINT64_MAX / 2000000000)
                return false;
        for (size_t n = (size_t)(p.at - digits); n < 9; n++)
                fraction *= 10;
        ret->ns = seconds * 1000000000 + fraction;
        if (!take_char(&p, ':'))
                return false;
        skip_blanks(&p);
        ret->fields = p;
        const char *at = bracket, *number;
        while (at > line.at && at[-1] == ' ')
                at--;
        for (number = at; number > line.at && is_digit(number[-1]);)
                number--;
        struct part thread = { number, at };
        if (number == line.at || number[-1] != '/' || !take_number(&thread, &ret->thread))
                return false;
        for (at = number - 1; at > line.at && is_digit(at[-1]);)
                at--;
        ret->comm = (struct part){ line.at, at };
        trim(&ret->comm);
        return ret->has_thread = true;
}

/* COMM PID/TID [CPU] SECONDS.NANOSECONDS: NAME: FIELDS */
static bool read_perf(struct part line, struct event *ret)
{
        const char *bracket = line.at;
        *ret = (struct event){ .in_kernel = true };
        do {
                bracket = memchr(bracket, '[', (size_t)(line.end - bracket));
        } while (bracket && !read_place(line, bracket, ret) && ++bracket < line.end);
        if (!bracket || bracket == line.end)
                return false;
        ret->name = (struct part){ ret->fields.at, find(ret->fields, ": ") };
        if (ret->name.end == ret->fields.end && ret->name.end > ret->name.at &&
            ret->name.end[-1] == ':')
                ret->name.end--; /* it has no fields */
        ret->fields.at = ret->name.end < ret->fields.end ? ret->name.end + 1 : ret->fields.end;
        trim(&ret->fields);
        return ret->name.at < ret->name.end;
}

static bool read_line(enum import_format format, struct part line, struct event *ret)
{
        return format == IMPORT_LTTNG ? read_lttng(line, ret) : read_perf(line, ret);
}

/* The next line, without its end. False: there is none. */
static bool next_line(struct part *text, struct part *ret)
{
        if (text->at == text->end)
                return false;
        const char *end = memchr(text->at, '\n', (size_t)(text->end - text->at));
        *ret = (struct part){ text->at, end ? end : text->end };
        text->at = end ? end + 1 : text->end;
        trim(ret);
        return true;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static struct imported_row *processor_row(struct reader *r, uint64_t processor)
{
        char name[IMPORTED_TEXT];
        struct imported_row *row = imported_row(r->to, 0, PROCESSOR_ROW + processor);
        snprintf(name, sizeof(name), "CPU %u", (unsigned)processor);
        imported_name_row(r->to, row, name);
        return row;
}

static struct imported_row *thread_row(struct reader *r, uint64_t thread, struct part comm)
{
        char name[IMPORTED_TEXT], text[IMPORTED_TEXT];
        struct imported_row *row = thread < PROCESSOR_ROW ? imported_row(r->to, 0, thread) : NULL;
        if (!row || row->named)
                return row;
        copy(text, "", comm);
        snprintf(name, sizeof(name), "%.100s%s%llu", text, *text ? " " : "thread ",
                 (unsigned long long)thread);
        imported_name_row(r->to, row, name);
        return row;
}

static void put(struct reader *r, const struct imported_row *row, uint64_t begin, uint64_t end,
                const char *name)
{
        if (imported_slice(r->to, row, begin, end, name))
                timeline_slice_end(r->to->out);
}

/* ---- what the kernel does ------------------------------------------------------------------- */

static void stop_running(struct reader *r, uint64_t processor, uint64_t ns)
{
        struct processor *p = &r->processors[processor];
        char name[IMPORTED_TEXT + 16];
        snprintf(name, sizeof(name), "running: %s", p->comm);
        if (p->runs && p->thread &&
            imported_slice(r->to, processor_row(r, processor), p->since_ns, ns, name)) {
                timeline_arg(r->to->out, "thread", p->thread);
                timeline_slice_end(r->to->out);
        }
        p->runs = false;
}

/* COMM:THREAD [PRIORITY], and more, as perf prints one side of a switch with libtraceevent's plugin. */
static bool side_of_switch(struct part side, struct part *ret_comm, struct part *ret_thread)
{
        const char *end = side.at, *at;
        while ((at = find((struct part){ end, side.end }, " [")) != side.end)
                end = at + 1;
        if (end == side.at)
                return false;
        for (at = --end; at > side.at && *at != ':'; at--)
                ;
        *ret_comm = (struct part){ side.at, at };
        *ret_thread = (struct part){ at + 1, end };
        return *at == ':';
}

struct change {
        struct part from, from_thread, to, to_thread;
};

static bool read_switch(enum import_format format, struct part fields, struct change *ret)
{
        if (format == IMPORT_LTTNG)
                return lttng_field(fields, "prev_comm", &ret->from) &&
                       lttng_field(fields, "prev_tid", &ret->from_thread) &&
                       lttng_field(fields, "next_comm", &ret->to) &&
                       lttng_field(fields, "next_tid", &ret->to_thread);
        if (perf_field(fields, "prev_comm=", " prev_pid=", &ret->from))
                return perf_field(fields, "prev_pid=", NULL, &ret->from_thread) &&
                       perf_field(fields, "next_comm=", " next_pid=", &ret->to) &&
                       perf_field(fields, "next_pid=", NULL, &ret->to_thread);
        static const char between[] = " ==> ";
        const char *at = find(fields, between);
        return at != fields.end &&
               side_of_switch((struct part){ fields.at, at }, &ret->from, &ret->from_thread) &&
               side_of_switch((struct part){ at + strlen(between), fields.end }, &ret->to,
                              &ret->to_thread);
}

static bool take_switch(struct reader *r, enum import_format format, const struct event *e)
{
        struct processor *p = &r->processors[e->processor];
        struct change c;
        if (!read_switch(format, e->fields, &c))
                return false;
        if (!p->runs) { /* the recording began meanwhile */
                copy(p->comm, "", c.from);
                p->runs = number_of(c.from_thread, &p->thread);
        }
        stop_running(r, e->processor, e->ns);
        copy(p->comm, "", c.to);
        p->runs = number_of(c.to_thread, &p->thread);
        p->since_ns = e->ns;
        return true;
}

static void enter(struct processor *p, const struct event *e, const char *kind, struct part what)
{
        if (p->depth < INTERRUPTS) {
                p->interrupts[p->depth].ns = e->ns;
                copy(p->interrupts[p->depth].name, kind, what);
        }
        p->depth += p->depth < 2 * INTERRUPTS;
}

static void leave(struct reader *r, const struct event *e)
{
        struct processor *p = &r->processors[e->processor];
        if (!p->depth)
                return; /* it was entered before the recording began */
        if (--p->depth < INTERRUPTS)
                put(r, processor_row(r, e->processor), p->interrupts[p->depth].ns, e->ns,
                    p->interrupts[p->depth].name);
}

static bool take_interrupt(struct reader *r, enum import_format format, const struct event *e,
                           struct part name)
{
        struct processor *p = &r->processors[e->processor];
        struct part what = { name.at, name.at };
        bool soft = begins(name, "irq_softirq_") || begins(name, "softirq_");
        if (!soft && !begins(name, "irq_handler_"))
                return false;
        if (equals((struct part){ name.end - 5, name.end }, "_exit")) {
                leave(r, e);
                return true;
        }
        if (!equals((struct part){ name.end - 6, name.end }, "_entry"))
                return false; /* softirq_raise */
        if (format == IMPORT_LTTNG)
                (void)lttng_field(e->fields, soft ? "vec" : "name", &what);
        else if (soft)
                (void)perf_field(e->fields, "[action=", "]", &what);
        else
                (void)perf_field(e->fields, "name=", "\n", &what);
        enter(p, e, soft ? "softirq " : "irq ", what);
        return true;
}

static bool take_call(struct reader *r, const struct event *e, struct part name)
{
        static const char *const entries[] = { "syscall_entry_", "sys_enter_" };
        static const char *const exits[] = { "syscall_exit_", "sys_exit_" };
        struct part number, what = { name.at, name.at };
        bool enters = equals(name, "sys_enter"), leaves = equals(name, "sys_exit");
        const char *kind = "syscall ";
        for (size_t i = 0; i < 2; i++) {
                if (begins(name, entries[i])) {
                        enters = true;
                        kind = "";
                        what = (struct part){ name.at + strlen(entries[i]), name.end };
                }
                leaves |= begins(name, exits[i]);
        }
        if (!enters && !leaves)
                return false;
        const struct processor *p = &r->processors[e->processor];
        uint64_t thread = e->has_thread ? e->thread : p->runs ? p->thread : 0;
        struct part comm = { p->comm, p->comm + (e->has_thread ? 0 : strlen(p->comm)) };
        struct imported_row *row =
                thread ? thread_row(r, thread, e->comm.at < e->comm.end ? e->comm : comm) : NULL;
        if (!row) {
                r->to->left_out++;
        } else if (leaves) {
                if (row->open)
                        put(r, row, row->open_ns, e->ns, row->open_name);
                row->open = false;
        } else {
                if (!*kind || !row->open) { /* of two events of the same call, one has the name */
                        if (perf_field(e->fields, "NR ", NULL, &number) && *kind)
                                what = number;
                        copy(row->open_name, kind, what);
                }
                if (!row->open)
                        row->open_ns = e->ns;
                row->open = true;
        }
        return true;
}

/* ---- events --------------------------------------------------------------------------------- */

static void take_other(struct reader *r, enum import_format format, const struct event *e)
{
        char name[IMPORTED_TEXT], text[IMPORTED_TEXT];
        struct part begin, length;
        uint64_t begin_ns = e->ns, length_ns = 0;
        bool of_thread = !e->in_kernel && e->has_thread;
        struct imported_row *row =
                of_thread ? thread_row(r, e->thread, e->comm) : processor_row(r, e->processor);
        /* On a processor, those of several threads would not nest. */
        bool is_span =
                of_thread && format == IMPORT_LTTNG && lttng_field(e->fields, "begin_ns", &begin) &&
                lttng_field(e->fields, "duration_ns", &length) && number_of(begin, &begin_ns) &&
                number_of(length, &length_ns) && length_ns <= UINT64_MAX - begin_ns;
        if (!is_span) {
                begin_ns = e->ns;
                length_ns = 0;
        }
        copy(name, "", e->name);
        copy(text, "", e->fields);
        if (!imported_slice(r->to, row, begin_ns, begin_ns + length_ns, name))
                return;
        if (*text)
                timeline_arg_text(r->to->out, "fields", text);
        timeline_slice_end(r->to->out);
}

static void take_event(struct reader *r, enum import_format format, const struct event *e)
{
        struct part name = e->name;
        const char *colon = memchr(name.at, ':', (size_t)(name.end - name.at));
        if (e->processor >= PROCESSORS) {
                r->to->left_out++;
                return;
        }
        struct processor *p = &r->processors[e->processor];
        if (!p->seen) {
                p->seen = true;
                p->since_ns = e->ns;
        }
        r->last_ns = e->ns > r->last_ns ? e->ns : r->last_ns;
        if (format == IMPORT_PERF && colon) /* GROUP:EVENT */
                name.at = colon + 1;
        bool taken = e->in_kernel && ((equals(name, "sched_switch") && take_switch(r, format, e)) ||
                                      take_interrupt(r, format, e, name) || take_call(r, e, name));
        if (!taken)
                take_other(r, format, e);
}

/* End the slices that last beyond the recording. */
static void close_all(struct reader *r)
{
        static const struct part none = { "", "" };
        for (uint64_t i = 0; i < PROCESSORS; i++) {
                struct event end = { .ns = r->last_ns, .processor = i, .comm = none };
                while (r->processors[i].depth)
                        leave(r, &end);
                stop_running(r, i, r->last_ns);
        }
        for (uint32_t i = 0; i < r->to->row_count; i++) {
                struct imported_row *row = &r->to->rows[i];
                if (row->open)
                        put(r, row, row->open_ns, r->last_ns, row->open_name);
                row->open = false;
        }
}

int import_text(struct imported *s, enum import_format format, const char *text, size_t size)
{
        struct part all = { text, text + size }, line;
        struct event e;
        struct reader *r = mem_zalloc(sizeof(*r));
        if (!r)
                return SP_E_NOMEM;
        r->to = s;
        imported_name_process(s, 0, "");
        while (next_line(&all, &line))
                if (read_line(format, line, &e))
                        take_event(r, format, &e);
        close_all(r);
        mem_free(r);
        return 0;
}

enum import_format import_format_of(const char *text, size_t size)
{
        struct part all = { text, text + (size < LOOK ? size : LOOK) }, line;
        struct event e;
        while (next_line(&all, &line)) {
                if (line.at == line.end)
                        continue;
                if (read_line(IMPORT_LTTNG, line, &e))
                        return IMPORT_LTTNG;
                if (*line.at == '{' || *line.at == '[')
                        return IMPORT_CHROME;
                if (read_line(IMPORT_PERF, line, &e))
                        return IMPORT_PERF;
        }
        return IMPORT_UNKNOWN;
}
