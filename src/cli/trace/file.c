#include "cli/trace/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/trace/event.h"
#include "os/file.h"

enum { SLOTS = 2 * TRACE_FILE_NAMES_MAX, OTHERS = 1 };

#define NUMBER_MAX (UINT64_C(1) << 53) /* sums of them stay below 64 bits */

/* Number 0 is "", number 1 is "(others)". */
struct trace_file_texts {
        char *all[TRACE_FILE_NAMES_MAX];
        uint32_t count;
        uint32_t slots[SLOTS]; /* a number; 0: free */
};

static uint32_t text_number(struct trace_file *f, const char *text)
{
        struct trace_file_texts *t = f->texts;
        uint32_t h = 2166136261u;
        if (!*text)
                return 0;
        for (const char *p = text; *p; p++)
                h = (h ^ (unsigned char)*p) * 16777619u;
        for (h %= SLOTS; t->slots[h]; h = (h + 1) % SLOTS)
                if (!strcmp(t->all[t->slots[h]], text))
                        return t->slots[h];
        char *copy = t->count < TRACE_FILE_NAMES_MAX ? mem_strdup(text) : NULL;
        if (!copy)
                return OTHERS;
        t->all[t->count] = copy;
        return t->slots[h] = t->count++;
}

const char *trace_file_text(const struct trace_file *f, uint32_t number)
{
        return number < f->texts->count ? f->texts->all[number] : "";
}

const char *trace_file_row_name(const struct trace_file *f, uint32_t process, uint64_t thread)
{
        for (size_t i = 0; i < f->row_count; i++)
                if (f->rows[i].process == process && f->rows[i].thread == thread)
                        return trace_file_text(f, f->rows[i].name);
        return "?";
}

/* ---- events --------------------------------------------------------------------------------- */

/* Find an argument of this kind. NULL: the event has none. */
static const struct trace_arg *arg_of(const struct trace_event *e, const char *name,
                                      enum trace_arg_kind kind)
{
        for (size_t i = e->arg_count; i--;)
                if (e->args[i].kind == kind && !strcmp(e->args[i].name, name))
                        return &e->args[i];
        return NULL;
}

static uint32_t arg_text(struct trace_file *f, const struct trace_event *e, const char *name)
{
        const struct trace_arg *a = arg_of(e, name, TRACE_ARG_TEXT);
        return a ? text_number(f, a->text) : 0;
}

void *trace_file_room(void *all, size_t count, size_t size, size_t max)
{
        if (count >= max)
                return NULL;
        if (count & (count - 1)) /* there is room up to the next power of two */
                return all;
        return mem_realloc(all, (count ? 2 * count : 1) * size);
}

static void put_event(void *user, const struct trace_event *e, const char *at)
{
        struct trace_file *f = user;
        (void)at;
        if (e->phase == 'M') {
                bool process = !strcmp(e->name, "process_name");
                if (!process && strcmp(e->name, "thread_name") != 0)
                        return;
                void *rows = trace_file_room(f->rows, f->row_count, sizeof(*f->rows),
                                             TRACE_FILE_ROWS_MAX);
                if (!rows)
                        return;
                f->rows = rows;
                f->rows[f->row_count++] = (struct trace_file_row){
                        .thread = process ? 0 : e->thread,
                        .process = e->process,
                        .name = arg_text(f, e, "name"),
                };
                return;
        }
        void *events = trace_file_room(f->events, f->event_count, sizeof(*f->events),
                                       TRACE_FILE_EVENTS_MAX);
        if (!events) {
                f->left_out++;
                return;
        }
        f->events = events;
        const struct trace_arg *bytes = arg_of(e, "bytes", TRACE_ARG_NUMBER);
        f->events[f->event_count++] = (struct trace_file_event){
                .begin_ns = e->begin_ns,
                .duration_ns = e->duration_ns,
                .thread = e->thread,
                .bytes = bytes && bytes->number <= NUMBER_MAX ? bytes->number : 0,
                .process = e->process,
                .name = text_number(f, e->name),
                .category = text_number(f, e->category),
                .command = arg_text(f, e, "command"),
                .server = arg_text(f, e, "server"),
                .phase = e->phase,
        };
}

/* {"server": NAME, "error_ns": N, "offset_ns": "N"} */
static void take_clock(struct json *j, struct trace_file *f)
{
        bool first = true;
        char member[32], name[TRACE_FILE_NAME_MAX] = "", offset[24];
        struct trace_file_clock c = { 0 };
        if (!trace_value_opens(j))
                return;
        while (json_member(j, &first, member, sizeof(member))) {
                if (!strcmp(member, "server"))
                        trace_value_text(j, name, sizeof(name));
                else if (!strcmp(member, "error_ns"))
                        c.error_ns = trace_value_number(j);
                else if (!strcmp(member, "offset_ns")) {
                        trace_value_text(j, offset, sizeof(offset));
                        char *end;
                        errno = 0;
                        c.offset_ns = strtoll(offset, &end, 10);
                        c.has_offset = *offset && !*end && !errno;
                } else
                        json_skip(j);
        }
        c.server = text_number(f, name);
        void *clocks = trace_file_room(f->clocks, f->clock_count, sizeof(*f->clocks),
                                       TRACE_FILE_SERVERS_MAX);
        if (!clocks)
                return;
        f->clocks = clocks;
        f->clocks[f->clock_count++] = c;
}

static void take_energy(struct json *j, struct trace_file *f)
{
        struct trace_file_energy e = { 0 };
        char member[32], text[TRACE_FILE_NAME_MAX];
        bool first = true;
        if (!trace_value_opens(j))
                return;
        while (json_member(j, &first, member, sizeof(member))) {
                if (!strcmp(member, "server") || !strcmp(member, "name")) {
                        trace_value_text(j, text, sizeof(text));
                        *(*member == 's' ? &e.server : &e.name) = text_number(f, text);
                } else if (!strcmp(member, "device")) {
                        e.device = trace_value_number(j);
                } else if (!strcmp(member, "energy_uj")) {
                        e.energy_uj = trace_value_number(j);
                } else {
                        json_skip(j);
                }
        }
        void *energies = trace_file_room(f->energies, f->energy_count, sizeof(*f->energies),
                                         TRACE_FILE_SERVERS_MAX);
        if (!energies)
                return;
        f->energies = energies;
        f->energies[f->energy_count++] = e;
}

static void take_other(void *user, struct json *j)
{
        struct trace_file *f = user;
        bool first = true;
        char member[32], text[TRACE_FILE_NAME_MAX];
        if (!trace_value_opens(j))
                return;
        while (json_member(j, &first, member, sizeof(member))) {
                bool one = true;
                if (!strcmp(member, "dropped"))
                        f->dropped = trace_value_number(j);
                else if (!strcmp(member, "untimed"))
                        f->untimed = trace_value_number(j);
                else if (!strcmp(member, "reason")) {
                        trace_value_text(j, text, sizeof(text));
                        f->reason = text_number(f, text);
                } else if (!strcmp(member, "clocks") && json_open(j, '['))
                        while (json_element(j, &one))
                                take_clock(j, f);
                else if (!strcmp(member, "energy") && json_open(j, '['))
                        while (json_element(j, &one))
                                take_energy(j, f);
                else
                        json_skip(j);
        }
}

int trace_file_parse(const char *text, size_t size, struct trace_file *ret)
{
        static const struct trace_reader reader = { put_event, take_other };
        struct trace_file f = { .texts = mem_zalloc(sizeof(*f.texts)) };
        if (!f.texts)
                return SP_E_NOMEM;
        f.texts->all[0] = mem_strdup("");
        f.texts->all[OTHERS] = mem_strdup("(others)");
        f.texts->count = 2;
        int r = f.texts->all[0] && f.texts->all[OTHERS] ? trace_read_all(text, size, &reader, &f)
                                                        : SP_E_NOMEM;
        if (r < 0)
                trace_file_fini(&f);
        else
                *ret = f;
        return r;
}

int trace_file_load(const char *path, char **ret_text, size_t *ret_size)
{
        uint64_t size = 0;
        int fd = file_open(path, true, &size);
        if (fd < 0)
                return SP_E_NOENT;
        char *text = size <= TRACE_FILE_SIZE_MAX ? mem_alloc(size + 1) : NULL;
        int r = size > TRACE_FILE_SIZE_MAX              ? SP_E_LIMIT
                : !text                                 ? SP_E_NOMEM
                : file_read_all(fd, text, (size_t)size) ? 0
                                                        : SP_E_NOENT;
        (void)file_close(fd);
        if (r < 0) {
                mem_free(text);
                return r;
        }
        *ret_text = text;
        *ret_size = (size_t)size;
        return 0;
}

int trace_file_read(const char *path, struct trace_file *ret)
{
        char *text;
        size_t size;
        int r = trace_file_load(path, &text, &size);
        if (r < 0)
                return r;
        r = trace_file_parse(text, size, ret);
        mem_free(text);
        return r;
}

void trace_file_fini(struct trace_file *f)
{
        for (uint32_t i = 0; f->texts && i < f->texts->count; i++)
                mem_free(f->texts->all[i]);
        mem_free(f->texts);
        mem_free(f->events);
        mem_free(f->rows);
        mem_free(f->clocks);
        mem_free(f->energies);
        *f = (struct trace_file){ 0 };
}
