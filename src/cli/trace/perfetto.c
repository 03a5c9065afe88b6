#include "cli/trace/perfetto.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/trace/file.h"
#include "cli/trace/packets.h"

enum {
        ROWS_MAX = TRACE_FILE_ROWS_MAX,
        SLOTS = 4 * ROWS_MAX,
        COUNTERS_MAX = 1024,
        COUNTERS_EACH = 16, /* of a process */
        DEPTH_MAX = 512,    /* of slices within slices */
};

#define NO_ROW   UINT32_MAX
#define NO_FLOW  UINT32_MAX
#define NO_ITEM  SIZE_MAX
#define ALL_ROWS UINT64_MAX /* the thread that stands for the process itself */

/* A process (ALL_ROWS) or one of its threads. Its track is its index and 1. */
struct row {
        uint32_t process;
        uint64_t thread;
        char *name;  /* NULL: none is known */
        size_t last; /* slice in the file so far */
};

/* A slice, a mark or a count. */
struct item {
        uint64_t begin_ns, end_ns;
        uint64_t place; /* in the text */
        uint32_t row, flow;
        char phase;
};

struct flow {
        uint64_t id;
        uint32_t next;
        bool ends;
};

struct counter {
        uint32_t row; /* its process */
        char *name;
};

struct conversion {
        const char *text, *end;
        struct packets *out;
        struct row rows[ROWS_MAX];
        uint32_t row_count;
        uint32_t slots[SLOTS]; /* a row and 1; 0: free */
        struct item *items;
        struct flow *flows;
        size_t item_count, flow_count;
        struct counter counters[COUNTERS_MAX];
        size_t counter_count;
        uint64_t left_out;
        size_t other; /* the place of otherData; 0: none */
        struct trace_event event;
};

/* ---- rows ----------------------------------------------------------------------------------- */

static uint32_t row_of(struct conversion *c, uint32_t process, uint64_t thread)
{
        uint64_t h =
                (process * UINT64_C(0x9e3779b97f4a7c15) ^ thread) * UINT64_C(0x9e3779b97f4a7c15);
        for (h = (h >> 32) % SLOTS; c->slots[h]; h = (h + 1) % SLOTS) {
                const struct row *r = &c->rows[c->slots[h] - 1];
                if (r->process == process && r->thread == thread)
                        return c->slots[h] - 1;
        }
        if (c->row_count == ROWS_MAX)
                return NO_ROW;
        c->rows[c->row_count] =
                (struct row){ .process = process, .thread = thread, .last = NO_ITEM };
        c->slots[h] = ++c->row_count;
        return c->row_count - 1;
}

static void take_name(struct conversion *c, const struct trace_event *e)
{
        bool process = !strcmp(e->name, "process_name");
        uint32_t row = NO_ROW;
        if (process || !strcmp(e->name, "thread_name"))
                row = row_of(c, e->process, process ? ALL_ROWS : e->thread);
        if (row == NO_ROW || c->rows[row].name || !e->arg_count ||
            e->args[0].kind != TRACE_ARG_TEXT)
                return;
        c->rows[row].name = mem_strdup(e->args[0].text);
}

static void put_tracks(struct conversion *c)
{
        char unnamed[40];
        /* Processes first: they are the parents of the others. */
        for (int children = 0; children < 2; children++) {
                for (uint32_t i = 0; i < c->row_count; i++) {
                        const struct row *r = &c->rows[i];
                        if ((r->thread != ALL_ROWS) != children)
                                continue;
                        snprintf(unnamed, sizeof(unnamed), "%llu",
                                 (unsigned long long)(children ? r->thread : r->process));
                        const char *name = r->name ? r->name : unnamed;
                        uint32_t parent = children ? row_of(c, r->process, ALL_ROWS) : NO_ROW;
                        if (!children)
                                packets_process(c->out, i + 1, r->process, name);
                        else
                                packets_track(c->out, i + 1, parent == NO_ROW ? 0 : parent + 1,
                                              name);
                }
        }
}

/* The tracks behind those of the rows. */
enum { TRACK_MARKS = ROWS_MAX + 1, TRACK_COUNTERS };

/* ---- the index ------------------------------------------------------------------------------ */

static void *room(void *all, size_t count, size_t size)
{
        return trace_file_room(all, count, size, TRACE_FILE_EVENTS_MAX);
}

static void take_item(struct conversion *c, const struct trace_event *e, const char *at)
{
        uint32_t row = row_of(c, e->process, ALL_ROWS); /* its parent */
        if (e->phase != 'C')
                row = row_of(c, e->process, e->thread);
        struct item *items =
                row == NO_ROW ? NULL : room(c->items, c->item_count, sizeof(*c->items));
        if (!items) {
                c->left_out++;
                return;
        }
        c->items = items;
        if (e->phase == 'X')
                c->rows[row].last = c->item_count;
        uint64_t length = e->phase == 'X' ? e->duration_ns : 0;
        items[c->item_count++] = (struct item){
                .begin_ns = e->begin_ns,
                .end_ns = length < UINT64_MAX - e->begin_ns ? e->begin_ns + length : UINT64_MAX,
                .place = (uint64_t)(at - c->text),
                .row = row,
                .flow = NO_FLOW,
                .phase = e->phase,
        };
}

static uint64_t flow_id(const struct trace_event *e)
{
        uint64_t h = UINT64_C(14695981039346656037);
        for (const char *p = e->category; *p; p++)
                h = (h ^ (unsigned char)*p) * UINT64_C(1099511628211);
        h = (h ^ 0xff) * UINT64_C(1099511628211);
        for (const char *p = e->id; *p; p++)
                h = (h ^ (unsigned char)*p) * UINT64_C(1099511628211);
        return h ? h : 1;
}

/* A point of an arrow belongs to the slice of its row that the file has before it. */
static void take_flow(struct conversion *c, const struct trace_event *e)
{
        uint32_t row = row_of(c, e->process, e->thread);
        size_t last = row == NO_ROW ? NO_ITEM : c->rows[row].last;
        struct item *i = last == NO_ITEM ? NULL : &c->items[last];
        struct flow *flows = i && i->begin_ns <= e->begin_ns && e->begin_ns <= i->end_ns
                                     ? room(c->flows, c->flow_count, sizeof(*c->flows))
                                     : NULL;
        if (!flows) {
                c->left_out++;
                return;
        }
        c->flows = flows;
        flows[c->flow_count] = (struct flow){ flow_id(e), i->flow, e->phase == 'f' };
        i->flow = (uint32_t)c->flow_count++;
}

static void take_event(void *user, const struct trace_event *e, const char *at)
{
        struct conversion *c = user;
        char phase = e->phase;
        if (phase == 'M')
                take_name(c, e);
        else if (phase == 'X' || phase == 'i' || phase == 'C')
                take_item(c, e, at);
        else if (phase == 's' || phase == 't' || phase == 'f')
                take_flow(c, e);
        else
                c->left_out++;
}

static void take_other(void *user, struct json *j)
{
        struct conversion *c = user;
        c->other = (size_t)(trace_value_at(j) - c->text);
        json_skip(j);
}

static int read_all(struct conversion *c)
{
        static const struct trace_reader reader = { take_event, take_other };
        return trace_read_all(c->text, (size_t)(c->end - c->text), &reader, c);
}

static int by_row(const void *a, const void *b)
{
        const struct item *x = a, *y = b;
        if (x->row != y->row)
                return x->row < y->row ? -1 : 1;
        if (x->begin_ns != y->begin_ns)
                return x->begin_ns < y->begin_ns ? -1 : 1;
        if (x->end_ns != y->end_ns)
                return x->end_ns > y->end_ns ? -1 : 1;
        return x->place < y->place ? -1 : x->place > y->place;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void put_slice(struct conversion *c, const struct item *i, uint64_t end_ns)
{
        struct packets_flow flows[PACKETS_FLOWS];
        size_t count = 0;
        for (uint32_t f = i->flow; f != NO_FLOW; f = c->flows[f].next) {
                if (count == PACKETS_FLOWS)
                        c->left_out++;
                else
                        flows[count++] = (struct packets_flow){ c->flows[f].id, c->flows[f].ends };
        }
        /* A slice without a length is a moment. */
        packets_event(c->out, end_ns > i->begin_ns ? PACKETS_BEGIN : PACKETS_INSTANT, i->row + 1,
                      i->begin_ns, &c->event, flows, count);
}

static void put_counts(struct conversion *c, const struct item *i)
{
        for (size_t a = 0; a < c->event.arg_count; a++) {
                const struct trace_arg *arg = &c->event.args[a];
                char name[TRACE_EVENT_TEXT + TRACE_EVENT_NAME + 2];
                size_t n = c->counter_count, tried = 0;
                if (arg->kind == TRACE_ARG_TEXT)
                        continue;
                snprintf(name, sizeof(name), "%s %s", c->event.name, arg->name);
                /* The counts of a process come one after the other. */
                while (n && c->counters[n - 1].row == i->row &&
                       strcmp(c->counters[n - 1].name, name) != 0 && tried < COUNTERS_EACH) {
                        n--;
                        tried++;
                }
                bool known = n && c->counters[n - 1].row == i->row && tried < COUNTERS_EACH;
                n = known ? n - 1 : c->counter_count;
                if (n == c->counter_count) {
                        char *copy =
                                n < COUNTERS_MAX && tried < COUNTERS_EACH ? mem_strdup(name) : NULL;
                        if (!copy) {
                                c->left_out++;
                                continue;
                        }
                        c->counters[c->counter_count++] = (struct counter){ i->row, copy };
                        packets_counter_track(c->out, TRACK_COUNTERS + n, i->row + 1, name);
                }
                packets_count(c->out, TRACK_COUNTERS + n, i->begin_ns, arg->real);
        }
}

/* The slices that are open at a time, in each other. */
struct open {
        uint64_t ends[DEPTH_MAX];
        size_t depth;
};

static void close_until(struct conversion *c, struct open *o, uint32_t row, uint64_t ns)
{
        for (; o->depth && o->ends[o->depth - 1] <= ns; o->depth--)
                packets_event(c->out, PACKETS_END, row + 1, o->ends[o->depth - 1], NULL, NULL, 0);
}

/* Each row's slices in the order of time: viewers sort packets by time only, and keep the order of those with the same
 * one. */
static void put_items(struct conversion *c)
{
        struct open o = { .depth = 0 };
        for (size_t n = 0; n < c->item_count; n++) {
                const struct item *i = &c->items[n];
                struct json j = { .at = c->text + i->place, .end = c->end };
                if (n && i->row != i[-1].row)
                        close_until(c, &o, i[-1].row, UINT64_MAX);
                (void)trace_event_read(&j, &c->event); /* it was read before */
                if (i->phase == 'C') {
                        put_counts(c, i);
                        continue;
                }
                if (i->phase == 'i') {
                        packets_event(c->out, PACKETS_INSTANT, TRACK_MARKS, i->begin_ns, &c->event,
                                      NULL, 0);
                        continue;
                }
                close_until(c, &o, i->row, i->begin_ns);
                uint64_t end = i->end_ns;
                if (o.depth && end > o.ends[o.depth - 1])
                        end = o.ends[o.depth - 1];
                if (o.depth == DEPTH_MAX) {
                        c->left_out++;
                        continue;
                }
                put_slice(c, i, end);
                if (end > i->begin_ns)
                        o.ends[o.depth++] = end;
        }
        if (c->item_count)
                close_until(c, &o, c->items[c->item_count - 1].row, UINT64_MAX);
}

/* ---- other data ----------------------------------------------------------------------------- */

static struct trace_arg *next_arg(struct trace_event *e)
{
        return e->arg_count < TRACE_EVENT_ARGS ? &e->args[e->arg_count] : NULL;
}

/* An element of an array, as an event of its own: there may be hundreds. */
static void put_element(struct conversion *c, struct json *j, const char *name, uint64_t ns)
{
        struct trace_event *e = &c->event;
        bool first = true;
        char member[TRACE_EVENT_NAME];
        snprintf(e->name, sizeof(e->name), "%s", name);
        e->arg_count = 0;
        if (!trace_value_opens(j))
                return;
        while (json_member(j, &first, member, sizeof(member))) {
                struct trace_arg *a = next_arg(e);
                if (a && trace_value_arg(j, a)) {
                        memcpy(a->name, member, sizeof(a->name));
                        e->arg_count++;
                } else if (!a) {
                        json_skip(j);
                }
        }
        packets_event(c->out, PACKETS_INSTANT, TRACK_MARKS, ns, e, NULL, 0);
}

/* Put the file's statements about itself at its begin, as a mark. */
static void put_other(struct conversion *c)
{
        struct json j = { .at = c->text + c->other, .end = c->end };
        struct trace_event about = { .name = "timeline", .category = "mark" };
        bool first = true, one = true;
        char member[TRACE_EVENT_NAME];
        uint64_t ns = UINT64_MAX;
        for (size_t i = 0; i < c->item_count; i++)
                ns = c->items[i].begin_ns < ns ? c->items[i].begin_ns : ns;
        ns = c->item_count ? ns : 0;
        snprintf(c->event.category, sizeof(c->event.category), "mark");
        if (!c->other || !trace_value_opens(&j))
                return;
        while (json_member(&j, &first, member, sizeof(member))) {
                struct trace_arg *a = next_arg(&about);
                const char *element = !strcmp(member, "clocks")     ? "clock"
                                      : !strcmp(member, "energy")   ? "energy"
                                      : !strcmp(member, "imported") ? "imported"
                                                                    : NULL;
                if (element && json_open(&j, '[')) {
                        for (one = true; json_element(&j, &one);)
                                put_element(c, &j, element, ns);
                } else if (a && trace_value_arg(&j, a)) {
                        memcpy(a->name, member, sizeof(a->name));
                        about.arg_count++;
                } else if (!a) {
                        json_skip(&j);
                }
        }
        packets_event(c->out, PACKETS_INSTANT, TRACK_MARKS, ns, &about, NULL, 0);
}

/* --------------------------------------------------------------------------------------------- */

static void conversion_free(struct conversion *c)
{
        for (uint32_t i = 0; i < c->row_count; i++)
                mem_free(c->rows[i].name);
        for (size_t i = 0; i < c->counter_count; i++)
                mem_free(c->counters[i].name);
        mem_free(c->items);
        mem_free(c->flows);
        packets_free(c->out);
        mem_free(c);
}

int perfetto_write(FILE *to, const char *text, size_t size, uint64_t *ret_left_out)
{
        struct conversion *c = mem_zalloc(sizeof(*c));
        if (!c)
                return SP_E_NOMEM;
        c->text = text;
        c->end = text + size;
        int r = packets_new(to, &c->out);
        if (!r)
                r = read_all(c);
        if (!r) {
                if (c->item_count)
                        qsort(c->items, c->item_count, sizeof(*c->items), by_row);
                put_tracks(c);
                packets_track(c->out, TRACK_MARKS, 0, "marks");
                put_items(c);
                put_other(c);
                *ret_left_out = c->left_out;
        }
        conversion_free(c);
        return r;
}

bool perfetto_is_name(const char *path)
{
        static const char *const endings[] = { ".pftrace", ".perfetto-trace" };
        size_t n = strlen(path);
        for (size_t i = 0; i < array_size(endings); i++) {
                size_t length = strlen(endings[i]);
                if (n > length && !strcmp(path + n - length, endings[i]))
                        return true;
        }
        return false;
}
