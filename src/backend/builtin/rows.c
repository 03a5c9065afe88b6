#include "backend/builtin/registry.h"

#include <CL/cl.h>
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { ROW_MAX = 2048, FILE_MAX = 1 << 20, ROWS_MAX = 4096, ID_MAX = 0xFFFE };

struct row {
        struct registry_kernel kernel;
        char text[ROW_MAX]; /* storage of the names */
        size_t used;
};

struct registry_rows {
        struct row **rows;
        size_t count;
};

static const struct {
        const char *name;
        size_t size;
} types[] = {
        { "char", 1 }, { "uchar", 1 }, { "short", 2 },  { "ushort", 2 },
        { "half", 2 }, { "int", 4 },   { "uint", 4 },   { "float", 4 },
        { "long", 8 }, { "ulong", 8 }, { "double", 8 },
};

/* A place in one line. */
struct cursor {
        const char *at, *end;
};

static void skip_blanks(struct cursor *c)
{
        while (c->at < c->end && isspace((unsigned char)*c->at))
                c->at++;
}

static bool take(struct cursor *c, char what)
{
        skip_blanks(c);
        if (c->at == c->end || *c->at != what)
                return false;
        c->at++;
        return true;
}

/* A word of letters, digits, `_` and `.`; empty: there is none. */
static struct cursor take_word(struct cursor *c)
{
        skip_blanks(c);
        struct cursor w = { c->at, c->at };
        while (c->at < c->end && (isalnum((unsigned char)*c->at) || *c->at == '_' || *c->at == '.'))
                c->at++;
        w.end = c->at;
        return w;
}

static bool word_is(struct cursor w, const char *text)
{
        size_t n = (size_t)(w.end - w.at);
        return strlen(text) == n && !memcmp(w.at, text, n);
}

/* A copy of the word that lives as long as the row. There is room: words are parts of one line. */
static char *keep(struct row *r, struct cursor w, const char *suffix)
{
        size_t n = (size_t)(w.end - w.at);
        char *to = r->text + r->used;
        memcpy(to, w.at, n);
        strcpy(to + n, suffix);
        r->used += n + strlen(suffix) + 1;
        return to;
}

static const char *parse_arg(struct row *r, struct registry_arg *a, struct cursor *c)
{
        struct cursor w = take_word(c);
        bool constant = word_is(w, "const");
        if (constant)
                w = take_word(c);
        for (size_t i = 0; i < array_size(types); i++)
                if (word_is(w, types[i].name))
                        a->size = types[i].size;
        if (!a->size)
                return "a type is missing: char, uchar, short, ushort, half, int, uint, float, long, "
                       "ulong, double";
        a->buffer = take(c, '*');
        a->type = keep(r, w, a->buffer ? "*" : "");
        w = take_word(c);
        if (w.at == w.end)
                return "the name of an argument is missing";
        a->name = keep(r, w, "");
        a->access = constant || !a->buffer ? REGISTRY_IN : REGISTRY_INOUT;
        return NULL;
}

static const char *parse_args(struct row *r, struct cursor *c)
{
        if (take(c, ')'))
                return NULL;
        for (unsigned n = 0; n < REGISTRY_ARGS_MAX; n++) {
                const char *error = parse_arg(r, &r->kernel.args[n], c);
                if (error)
                        return error;
                if (take(c, ')'))
                        return NULL;
                if (!take(c, ','))
                        return "after an argument comes `,` or `)`";
        }
        return "a kernel has at most 20 arguments";
}

static const char *parse_row(struct row *r, struct cursor *c)
{
        struct cursor number = take_word(c);
        char digits[24] = "", *rest;
        if (number.end - number.at < (ptrdiff_t)sizeof(digits))
                memcpy(digits, number.at, (size_t)(number.end - number.at));
        unsigned long id = strtoul(digits, &rest, 0);
        if (!*digits || *rest || id > ID_MAX)
                return "a row begins with the kernel's number, 0 to 0xFFFE";
        struct cursor name = take_word(c);
        if (name.at == name.end)
                return "the kernel's name is missing";
        if (take(c, '=')) {
                struct cursor other = take_word(c);
                const struct registry_kernel *k =
                        registry_find(other.at, (size_t)(other.end - other.at));
                if (!k)
                        return "after `=` comes the name of a kernel of the table";
                r->kernel = *k;
        } else if (take(c, '(')) {
                const char *error = parse_args(r, c);
                if (error)
                        return error;
                r->kernel.doc = "";
        } else {
                return "after the name comes `(` or `=`";
        }
        skip_blanks(c);
        if (c->at < c->end)
                return "the row does not end here";
        r->kernel.id = (unsigned)id;
        r->kernel.name = keep(r, name, "");
        return NULL;
}

static int add_row(struct registry_rows *rows, struct cursor line, const char **ret_error)
{
        if (rows->count == ROWS_MAX || line.end - line.at > ROW_MAX / 2) {
                *ret_error = "too many rows, or too long a row";
                return SP_E_INVAL;
        }
        struct row *r = mem_zalloc(sizeof(*r));
        struct row **more = mem_realloc(rows->rows, (rows->count + 1) * sizeof(*more));
        if (more)
                rows->rows = more;
        if (!r || !more) {
                mem_free(r);
                return SP_E_NOMEM;
        }
        rows->rows[rows->count++] = r;
        *ret_error = parse_row(r, &line);
        return *ret_error ? SP_E_INVAL : 0;
}

int registry_rows_parse(const char *text, struct registry_rows **ret,
                        char error[REGISTRY_ERROR_SIZE])
{
        struct registry_rows *rows = mem_zalloc(sizeof(*rows));
        int r = rows ? 0 : SP_E_NOMEM;
        unsigned number = 0;
        for (const char *line = text; !r && *line;) {
                const char *end = strchrnul(line, '\n'), *why = NULL;
                const char *comment = memchr(line, '#', (size_t)(end - line));
                struct cursor c = { line, comment ? comment : end };
                number++;
                skip_blanks(&c);
                if (c.at < c.end)
                        r = add_row(rows, c, &why);
                if (r == SP_E_INVAL)
                        snprintf(error, REGISTRY_ERROR_SIZE, "line %u: %s", number, why);
                line = *end ? end + 1 : end;
        }
        if (r < 0) {
                registry_rows_free(rows);
                return r;
        }
        *ret = rows;
        return 0;
}

int registry_rows_load(const char *path, struct registry_rows **ret,
                       char error[REGISTRY_ERROR_SIZE])
{
        FILE *f = fopen(path, "re");
        if (!f) {
                snprintf(error, REGISTRY_ERROR_SIZE, "%.100s: %s", path, strerror(errno));
                return SP_E_NOENT;
        }
        char *text = mem_alloc(FILE_MAX + 1);
        size_t n = text ? fread(text, 1, FILE_MAX, f) : 0;
        fclose(f);
        if (!text)
                return SP_E_NOMEM;
        text[n] = 0;
        int r = registry_rows_parse(text, ret, error);
        mem_free(text);
        return r;
}

struct registry_rows *registry_rows_free(struct registry_rows *rows)
{
        for (size_t i = 0; rows && i < rows->count; i++)
                mem_free(rows->rows[i]);
        if (rows)
                mem_free(rows->rows);
        mem_free(rows);
        return NULL;
}

const struct registry_kernel *registry_rows_find_id(const struct registry_rows *rows, unsigned id)
{
        for (size_t i = rows ? rows->count : 0; i--;)
                if (rows->rows[i]->kernel.id == id)
                        return &rows->rows[i]->kernel;
        return registry_find_id(id);
}
