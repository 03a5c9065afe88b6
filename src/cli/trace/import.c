#include "cli/trace/import.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_writer.h"
#include "base/mem.h"
#include "cli/trace/event.h"
#include "cli/trace/file.h"
#include "cli/trace/import_chrome.h"

/* How long before and behind the timeline events are taken. */
#define AROUND_NS UINT64_C(1000000000)

const char *import_format_name(enum import_format format)
{
        static const char *const names[] = { [IMPORT_UNKNOWN] = "unknown",
                                             [IMPORT_LTTNG] = "babeltrace2",
                                             [IMPORT_PERF] = "perf script",
                                             [IMPORT_CHROME] = "Chrome JSON" };
        return names[format];
}

bool import_parse(const char *text, struct import_source *ret)
{
        const char *equals = strchr(text, '=');
        *ret = (struct import_source){ .path = equals ? equals + 1 : text };
        if (!*ret->path)
                return false;
        if (!equals)
                return true;
        const char *end = equals;
        while (end > text && *end != '@')
                end--;
        if (*end == '@') {
                const char *digits = end + 1 + (end[1] == '-' || end[1] == '+');
                if (digits == equals || digits + strspn(digits, "0123456789") != equals)
                        return false;
                errno = 0;
                ret->offset_ns = strtoll(end + 1, NULL, 10);
                if (errno)
                        return false;
        } else {
                end = equals;
        }
        if ((size_t)(end - text) >= sizeof(ret->server))
                return false;
        memcpy(ret->server, text, (size_t)(end - text));
        return true;
}

/* ---- the timeline --------------------------------------------------------------------------- */

/* Places in the timeline's text. */
struct places {
        const char *last;  /* its last event */
        const char *other; /* the first member of otherData */
        bool other_empty;
        const char
                *list; /* the first element of otherData's member `imported`; NULL: it has none */
        uint64_t begin_ns, end_ns, events;
        uint32_t processes;
        bool disordered; /* otherData stands before an event */
};

static void see_event(void *user, const struct trace_event *e, const char *at)
{
        struct places *p = user;
        p->last = at;
        p->disordered |= p->other != NULL;
        p->events++;
        if (e->process >= p->processes)
                p->processes = e->process < UINT32_MAX ? e->process + 1 : e->process;
        if (e->phase == 'M')
                return;
        uint64_t most = UINT64_MAX - e->begin_ns;
        uint64_t end = e->begin_ns + (e->duration_ns < most ? e->duration_ns : most);
        p->begin_ns = e->begin_ns < p->begin_ns ? e->begin_ns : p->begin_ns;
        p->end_ns = end > p->end_ns ? end : p->end_ns;
}

static void see_other(void *user, struct json *j)
{
        struct places *p = user;
        bool first = true, one = true;
        char member[32];
        if (!trace_value_opens(j))
                return;
        p->disordered |= p->other != NULL;
        p->other = j->at;
        p->other_empty = true;
        while (json_member(j, &first, member, sizeof(member))) {
                p->other_empty = false;
                if (!p->list && !strcmp(member, "imported") && json_open(j, '[')) {
                        const char *list = j->at;
                        while (json_element(j, &one)) {
                                p->list = list; /* it is not empty */
                                json_skip(j);
                        }
                } else {
                        json_skip(j);
                }
        }
}

/* Find the places. SP_E_PROTO: it is no timeline of SpanCL; SP_E_NOENT: it is empty. */
static int find_places(struct bytes timeline, struct places *ret)
{
        static const struct trace_reader reader = { see_event, see_other };
        *ret = (struct places){ .begin_ns = UINT64_MAX };
        int r = trace_read_all((const char *)timeline.data, timeline.size, &reader, ret);
        if (r < 0)
                return r;
        if (ret->begin_ns == UINT64_MAX)
                return SP_E_NOENT;
        /* The numbers behind those of its processes are free. */
        bool room = ret->processes < UINT32_MAX - IMPORT_SOURCES * IMPORTED_PROCESSES;
        return ret->other && room && !ret->disordered ? 0 : SP_E_PROTO;
}

/* ---- sources -------------------------------------------------------------------------------- */

/* Find the clock of a source. Each session of a server has one, and the last one counts. False: the timeline does not
 * have that server's. */
static bool find_clock(const struct trace_file *f, struct import_source *s)
{
        int64_t ahead = 0;
        size_t i = *s->server ? f->clock_count : 0;
        while (i && strcmp(trace_file_text(f, f->clocks[i - 1].server), s->server) != 0)
                i--;
        if (*s->server && (!i || !f->clocks[i - 1].has_offset))
                return false;
        if (i) {
                ahead = f->clocks[i - 1].offset_ns;
                s->error_ns = f->clocks[i - 1].error_ns;
        }
        return !__builtin_sub_overflow(s->offset_ns, ahead, &s->shift_ns);
}

static int add(struct timeline *out, const struct places *p, const struct trace_file *f,
               struct import_source *s, struct bytes text, size_t index)
{
        const char *slash = strrchr(s->path, '/'), *at = (const char *)text.data;
        char name[2 * IMPORTED_TEXT];
        struct imported *to = mem_zalloc(sizeof(*to));
        int r = SP_E_NOMEM;
        if (!to)
                return r;
        bool known = find_clock(f, s);
        s->format = import_format_of(at, text.size);
        snprintf(name, sizeof(name), "%s%s%s", s->server, *s->server ? ": " : "",
                 slash ? slash + 1 : s->path);
        *to = (struct imported){
                .out = out,
                .name = name,
                .first = p->processes + (uint32_t)index * IMPORTED_PROCESSES,
                .begin_ns = p->begin_ns > AROUND_NS ? p->begin_ns - AROUND_NS : 0,
                .end_ns = p->end_ns < UINT64_MAX - AROUND_NS ? p->end_ns + AROUND_NS : UINT64_MAX,
                .room = p->events < TRACE_FILE_EVENTS_MAX ? TRACE_FILE_EVENTS_MAX - p->events : 0,
                .shift_ns = s->shift_ns,
        };
        if (!known)
                r = SP_E_NOENT;
        else if (s->format == IMPORT_UNKNOWN)
                r = SP_E_PROTO;
        else
                r = s->format == IMPORT_CHROME ? import_chrome(to, at, text.size)
                                               : import_text(to, s->format, at, text.size);
        imported_end(to);
        s->events = to->events;
        s->outside = to->outside;
        s->left_out = to->left_out;
        mem_free(to);
        return r;
}

/* Describe a source in the file. The shift may need more bits than readers keep of a number. */
static void put_about(struct json_writer *w, const struct import_source *s)
{
        char shift[24];
        snprintf(shift, sizeof(shift), "%" PRId64, s->shift_ns);
        json_begin(w, NULL, '{');
        json_put_text(w, "file", s->path);
        json_put_text(w, "format", import_format_name(s->format));
        if (*s->server)
                json_put_text(w, "server", s->server);
        json_put_text(w, "shift_ns", shift);
        json_put_u64(w, "error_ns", s->error_ns);
        json_put_u64(w, "events", s->events);
        json_put_u64(w, "outside", s->outside);
        json_put_u64(w, "left_out", s->left_out);
        json_end(w, '}');
}

static void put_other(FILE *to, const struct places *p, const struct import_source *sources,
                      size_t count, const char *from, const char *end)
{
        const char *place = p->list ? p->list : p->other;
        struct json_writer w = { .to = to };
        fwrite(from, 1, (size_t)(place - from), to);
        if (!p->list)
                fputs("\"imported\": [", to);
        for (size_t i = 0; i < count; i++)
                put_about(&w, &sources[i]);
        fputs(!p->list ? (p->other_empty ? "]" : "], ") : count ? ", " : "", to);
        fwrite(place, 1, (size_t)(end - place), to);
}

int import_write(FILE *to, struct bytes timeline, struct import_source *sources,
                 const struct bytes *texts, size_t count, size_t *ret_bad)
{
        const char *text = (const char *)timeline.data, *end = text + timeline.size;
        struct timeline out = { .out = to, .started = true };
        struct trace_event *last = mem_alloc(sizeof(*last));
        struct trace_file f = { 0 };
        struct places p;
        *ret_bad = count;
        int r = last ? find_places(timeline, &p) : SP_E_NOMEM;
        if (r == 0)
                r = trace_file_parse(text, timeline.size, &f);
        if (r == 0) {
                struct json j = { .at = p.last, .end = end };
                (void)trace_event_read(&j, last); /* it was read before */
                fwrite(text, 1, (size_t)(j.at - text), to);
                for (size_t i = 0; i < count && r == 0; i++) {
                        *ret_bad = i;
                        r = add(&out, &p, &f, &sources[i], texts[i], i);
                        p.events += sources[i].events;
                }
                if (r == 0)
                        put_other(to, &p, sources, count, j.at, end);
        }
        trace_file_fini(&f);
        mem_free(last);
        return r;
}
