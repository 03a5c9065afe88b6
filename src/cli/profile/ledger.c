#include "cli/profile/ledger.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"

enum { FIELDS_MAX = 12 };

#define LARGEST (UINT64_C(1) << 50)

static const char *const kinds[LEDGER_KINDS] = {
        [LEDGER_FINISH] = "finish", [LEDGER_EVENTS] = "events", [LEDGER_BLOCKING] = "blocking",
        [LEDGER_TAKEN] = "taken",   [LEDGER_ROOM] = "room",     [LEDGER_ANSWER] = "answer",
        [LEDGER_OTHER] = "other",
};

const char *ledger_kind_name(enum ledger_kind kind)
{
        return kinds[kind];
}

const char *ledger_server_name(const struct ledger_file *l, uint64_t index)
{
        for (size_t i = 0; i < l->server_count; i++)
                if (l->servers[i].index == index)
                        return l->servers[i].name;
        return "?";
}

/* The fields of a line. */
struct line {
        char *fields[FIELDS_MAX];
        size_t count;
        bool bad; /* a field that is no number was taken as one */
};

/* Split a line at its tabs, in place. False: it has too many fields. */
static bool split(char *text, struct line *ret)
{
        ret->count = 0;
        ret->bad = false;
        for (char *next = text; next; text = next + 1) {
                if (ret->count == FIELDS_MAX)
                        return false;
                next = strchr(text, '\t');
                if (next)
                        *next = 0;
                ret->fields[ret->count++] = text;
                if (!next)
                        break;
        }
        return true;
}

static uint64_t number(struct line *l, size_t i)
{
        char *end = NULL;
        const char *text = i < l->count ? l->fields[i] : "";
        errno = 0;
        uint64_t n = *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
        if (!end || *end || errno)
                l->bad = true;
        /* Sums of such numbers stay below 64 bits. Threads that wait for days may have more. */
        return n < LARGEST ? n : LARGEST;
}

static void take_name(struct line *l, size_t i, char ret[LEDGER_NAME_MAX])
{
        size_t n = 0;
        const char *text = i < l->count ? l->fields[i] : "";
        l->bad |= i >= l->count;
        for (; text[n] && n < LEDGER_NAME_MAX - 1; n++)
                ret[n] = text[n];
        ret[n] = 0;
        bytes_tame(ret, LEDGER_NAME_MAX);
}

/* Make room for one more element. */
static int grow(void *array, size_t *count, size_t size)
{
        void *at;
        memcpy(&at, array, sizeof(at));
        if (*count == LEDGER_ENTRIES_MAX)
                return SP_E_LIMIT;
        void *more = mem_realloc(at, (*count + 1) * size);
        if (!more)
                return SP_E_NOMEM;
        memset((char *)more + *count * size, 0, size);
        memcpy(array, &more, sizeof(more));
        ++*count;
        return 0;
}

static int take_server(struct ledger_file *f, struct line *l)
{
        int r = grow(&f->servers, &f->server_count, sizeof(*f->servers));
        if (r < 0)
                return r;
        struct ledger_file_server *s = &f->servers[f->server_count - 1];
        s->index = number(l, 1);
        s->round_trip_ns = number(l, 2);
        s->messages = number(l, 3);
        s->sent = number(l, 4);
        s->received = number(l, 5);
        take_name(l, 6, s->name);
        return 0;
}

static int take_wait(struct ledger_file *f, struct line *l)
{
        int r = grow(&f->all_waits, &f->wait_count, sizeof(*f->all_waits));
        if (r < 0)
                return r;
        struct ledger_file_wait *w = &f->all_waits[f->wait_count - 1];
        w->server = number(l, 1);
        w->kind = LEDGER_OTHER;
        for (unsigned k = 0; l->count > 2 && k < LEDGER_KINDS; k++)
                if (!strcmp(l->fields[2], kinds[k]))
                        w->kind = (enum ledger_kind)k;
        w->calls = number(l, 3);
        w->waits = number(l, 4);
        w->ns = number(l, 5);
        w->device_ns = number(l, 6);
        w->link_ns = number(l, 7);
        w->server_ns = number(l, 8);
        return 0;
}

static int take_row(struct ledger_file *f, struct line *l, bool kernel)
{
        int r = grow(&f->rows, &f->row_count, sizeof(*f->rows));
        if (r < 0)
                return r;
        struct ledger_file_row *row = &f->rows[f->row_count - 1];
        row->kernel = kernel;
        row->server = number(l, 1);
        row->count = number(l, 2);
        row->bytes = number(l, 3);
        row->timed = number(l, 4);
        row->device_ns = number(l, 5);
        row->wait_ns = number(l, 6);
        take_name(l, 7, row->name);
        l->bad |= row->timed > row->count;
        return 0;
}

static int take_move(struct ledger_file *f, struct line *l)
{
        int r = grow(&f->moves, &f->move_count, sizeof(*f->moves));
        if (r < 0)
                return r;
        struct ledger_file_move *m = &f->moves[f->move_count - 1];
        m->id = l->count > 1 ? strtoull(l->fields[1], NULL, 10) : 0; /* any 64 bits */
        m->size = number(l, 2);
        m->from_host = l->count > 3 && !strcmp(l->fields[3], "-1");
        m->from = m->from_host ? 0 : number(l, 3);
        m->to = number(l, 4);
        m->count = number(l, 5);
        m->bytes = number(l, 6);
        return 0;
}

static int take_energy(struct ledger_file *f, struct line *l)
{
        int r = grow(&f->energies, &f->energy_count, sizeof(*f->energies));
        if (r < 0)
                return r;
        struct ledger_file_energy *e = &f->energies[f->energy_count - 1];
        e->server = number(l, 1);
        e->device = number(l, 2);
        e->energy_uj = number(l, 3);
        take_name(l, 4, e->name);
        return 0;
}

static int take_line(struct ledger_file *f, struct line *l)
{
        const char *what = l->fields[0];
        int r = 0;
        if (!strcmp(what, "total")) {
                f->wall_ns = number(l, 1);
                f->calls = number(l, 2);
                f->call_ns = number(l, 3);
                f->waits = number(l, 4);
                f->wait_ns = number(l, 5);
        } else if (!strcmp(what, "server")) {
                r = take_server(f, l);
        } else if (!strcmp(what, "wait")) {
                r = take_wait(f, l);
        } else if (!strcmp(what, "kernel") || !strcmp(what, "command")) {
                r = take_row(f, l, *what == 'k');
        } else if (!strcmp(what, "move")) {
                r = take_move(f, l);
        } else if (!strcmp(what, "energy")) {
                r = take_energy(f, l);
        } else {
                return SP_E_PROTO;
        }
        return r < 0 ? r : l->bad ? SP_E_PROTO : 0;
}

int ledger_read(FILE *from, struct ledger_file *ret)
{
        char text[LEDGER_LINE_MAX];
        struct line l;
        struct ledger_file f = { 0 };
        int r = 0;
        bool ended = false;
        for (size_t i = 0; !r && !ended && fgets(text, sizeof(text), from); i++) {
                char *end = strchr(text, '\n');
                if (!end || !split(text, &l)) {
                        r = SP_E_PROTO;
                        break;
                }
                *end = 0;
                if (!i)
                        r = strcmp(l.fields[0], "spancl-profile") || number(&l, 1) != 1 ? SP_E_PROTO
                                                                                        : 0;
                else if (!strcmp(l.fields[0], "end"))
                        ended = true;
                else
                        r = take_line(&f, &l);
        }
        if (r < 0 || !ended) {
                ledger_fini(&f);
                return r < 0 ? r : SP_E_PROTO;
        }
        *ret = f;
        return 0;
}

void ledger_fini(struct ledger_file *l)
{
        mem_free(l->servers);
        mem_free(l->all_waits);
        mem_free(l->rows);
        mem_free(l->moves);
        mem_free(l->energies);
        *l = (struct ledger_file){ 0 };
}
