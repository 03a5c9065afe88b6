#include "cli/trace/file.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "discovery/json.h"
#include "os/file.h"

enum { SLOTS = 2 * TRACE_FILE_NAMES_MAX, OTHERS = 1 };

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

/* ---- values --------------------------------------------------------------------------------- */

/* The place of the next value: its readers pass over blanks also when they find another value. */
static const char *value_at(struct json *j)
{
        while (j->at < j->end && *j->at && strchr(" \t\r\n", *j->at))
                j->at++;
        return j->at;
}

/* A text, as far as it is printable. */
static void take_name(struct json *j, char ret[TRACE_FILE_NAME_MAX])
{
        const char *at = value_at(j);
        *ret = 0;
        if (!json_text(j, ret, TRACE_FILE_NAME_MAX) && j->at == at)
                json_skip(j);
}

static uint64_t take_number(struct json *j)
{
        const char *at = value_at(j);
        uint64_t v = 0;
        if (!json_number(j, &v) && j->at == at)
                json_skip(j);
        return v;
}

/* Microseconds with up to three digits behind the point, in ns; 0: it is another value. */
static uint64_t take_us(struct json *j)
{
        const char *p = value_at(j);
        if (!json_skip(j))
                return 0;
        uint64_t v = 0;
        int digits = -1; /* behind the point */
        for (; p < j->at && digits < 3; p++) {
                if (*p == '.' && digits < 0) {
                        digits = 0;
                        continue;
                }
                if (*p < '0' || *p > '9' || v > UINT64_MAX / 10000)
                        return 0;
                v = v * 10 + (uint64_t)(*p - '0');
                digits += digits >= 0;
        }
        for (int i = digits < 0 ? 0 : digits; i < 3; i++)
                v *= 10;
        return v;
}

/* ---- events --------------------------------------------------------------------------------- */

struct parsed {
        struct trace_file_event event;
        char name[TRACE_FILE_NAME_MAX]; /* of a process or thread, in its metadata */
        char metadata[32];
};

/* Begin an object. Another value is left out. */
static bool opens(struct json *j)
{
        if (json_open(j, '{'))
                return true;
        json_skip(j);
        return false;
}

static void take_args(struct json *j, struct trace_file *f, struct parsed *e)
{
        bool first = true;
        char member[32], text[TRACE_FILE_NAME_MAX];
        if (!opens(j))
                return;
        while (json_member(j, &first, member, sizeof(member))) {
                if (!strcmp(member, "bytes"))
                        e->event.bytes = take_number(j);
                else if (!strcmp(member, "name"))
                        take_name(j, e->name);
                else if (!strcmp(member, "command") || !strcmp(member, "server")) {
                        bool command = *member == 'c';
                        take_name(j, text);
                        *(command ? &e->event.command : &e->event.server) = text_number(f, text);
                } else
                        json_skip(j);
        }
}

static bool take_event(struct json *j, struct trace_file *f, struct parsed *e)
{
        bool first = true;
        char member[32], text[TRACE_FILE_NAME_MAX];
        *e = (struct parsed){ 0 };
        if (!json_open(j, '{'))
                return false;
        while (json_member(j, &first, member, sizeof(member))) {
                if (!strcmp(member, "ph")) {
                        take_name(j, text);
                        e->event.phase = text[1] ? '?' : text[0];
                } else if (!strcmp(member, "pid")) {
                        e->event.process = (uint32_t)take_number(j);
                } else if (!strcmp(member, "tid")) {
                        e->event.thread = take_number(j);
                } else if (!strcmp(member, "ts")) {
                        e->event.begin_ns = take_us(j);
                } else if (!strcmp(member, "dur")) {
                        e->event.duration_ns = take_us(j);
                } else if (!strcmp(member, "name")) {
                        take_name(j, text);
                        snprintf(e->metadata, sizeof(e->metadata), "%.31s", text);
                        e->event.name = text_number(f, text);
                } else if (!strcmp(member, "cat")) {
                        take_name(j, text);
                        e->event.category = text_number(f, text);
                } else if (!strcmp(member, "args")) {
                        take_args(j, f, e);
                } else {
                        json_skip(j);
                }
        }
        return !j->bad;
}

/* Make room for another element. NULL: out of memory, or the limit is reached. */
static void *room(void *all, size_t count, size_t size, size_t max)
{
        if (count >= max)
                return NULL;
        if (count & (count - 1)) /* there is room up to the next power of two */
                return all;
        return mem_realloc(all, (count ? 2 * count : 1) * size);
}

static void put_event(struct trace_file *f, const struct parsed *e)
{
        if (e->event.phase == 'M') {
                bool process = !strcmp(e->metadata, "process_name");
                if (!process && strcmp(e->metadata, "thread_name") != 0)
                        return;
                void *rows = room(f->rows, f->row_count, sizeof(*f->rows), TRACE_FILE_ROWS_MAX);
                if (!rows)
                        return;
                f->rows = rows;
                f->rows[f->row_count++] = (struct trace_file_row){
                        .thread = process ? 0 : e->event.thread,
                        .process = e->event.process,
                        .name = text_number(f, e->name),
                };
                return;
        }
        void *events = room(f->events, f->event_count, sizeof(*f->events), TRACE_FILE_EVENTS_MAX);
        if (!events) {
                f->left_out++;
                return;
        }
        f->events = events;
        f->events[f->event_count++] = e->event;
}

/* {"server": NAME, "error_ns": N} */
static void take_clock(struct json *j, struct trace_file *f)
{
        bool first = true;
        char member[32], name[TRACE_FILE_NAME_MAX] = "";
        struct trace_file_clock c = { 0 };
        if (!opens(j))
                return;
        while (json_member(j, &first, member, sizeof(member))) {
                if (!strcmp(member, "server"))
                        take_name(j, name);
                else if (!strcmp(member, "error_ns"))
                        c.error_ns = take_number(j);
                else
                        json_skip(j);
        }
        c.server = text_number(f, name);
        void *clocks = room(f->clocks, f->clock_count, sizeof(*f->clocks), TRACE_FILE_SERVERS_MAX);
        if (!clocks)
                return;
        f->clocks = clocks;
        f->clocks[f->clock_count++] = c;
}

static void take_other(struct json *j, struct trace_file *f)
{
        bool first = true;
        char member[32], text[TRACE_FILE_NAME_MAX];
        if (!opens(j))
                return;
        while (json_member(j, &first, member, sizeof(member))) {
                bool one = true;
                if (!strcmp(member, "dropped"))
                        f->dropped = take_number(j);
                else if (!strcmp(member, "untimed"))
                        f->untimed = take_number(j);
                else if (!strcmp(member, "reason")) {
                        take_name(j, text);
                        f->reason = text_number(f, text);
                } else if (!strcmp(member, "clocks") && json_open(j, '['))
                        while (json_element(j, &one))
                                take_clock(j, f);
                else
                        json_skip(j);
        }
}

static int parse(struct json *j, struct trace_file *f)
{
        bool first = true, one = true, found = false;
        char member[32];
        struct parsed e;
        if (!json_open(j, '{'))
                return SP_E_PROTO;
        while (json_member(j, &first, member, sizeof(member))) {
                if (!strcmp(member, "traceEvents") && !found && json_open(j, '[')) {
                        found = true;
                        while (json_element(j, &one)) {
                                if (!take_event(j, f, &e))
                                        return SP_E_PROTO;
                                put_event(f, &e);
                        }
                } else if (!strcmp(member, "otherData")) {
                        take_other(j, f);
                } else {
                        json_skip(j);
                }
        }
        return found && json_ends(j) ? 0 : SP_E_PROTO;
}

int trace_file_parse(const char *text, size_t size, struct trace_file *ret)
{
        struct json j = { .at = text, .end = text + size };
        struct trace_file f = { .texts = mem_zalloc(sizeof(*f.texts)) };
        if (!f.texts)
                return SP_E_NOMEM;
        f.texts->all[0] = mem_strdup("");
        f.texts->all[OTHERS] = mem_strdup("(others)");
        f.texts->count = 2;
        int r = f.texts->all[0] && f.texts->all[OTHERS] ? parse(&j, &f) : SP_E_NOMEM;
        if (r < 0)
                trace_file_fini(&f);
        else
                *ret = f;
        return r;
}

int trace_file_read(const char *path, struct trace_file *ret)
{
        uint64_t size = 0;
        int fd = file_open(path, true, &size);
        if (fd < 0)
                return SP_E_NOENT;
        char *text = size <= TRACE_FILE_SIZE_MAX ? mem_alloc(size + 1) : NULL;
        int r = size > TRACE_FILE_SIZE_MAX              ? SP_E_LIMIT
                : !text                                 ? SP_E_NOMEM
                : file_read_all(fd, text, (size_t)size) ? trace_file_parse(text, (size_t)size, ret)
                                                        : SP_E_NOENT;
        mem_free(text);
        (void)file_close(fd);
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
        *f = (struct trace_file){ 0 };
}
