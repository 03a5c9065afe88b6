#include "core/program/include.h"

#include <ctype.h>
#include <errno.h>

#include "base/log.h"
#include "base/mem.h"
#include "core/hash.h"
#include "core/program/macro.h"
#include "os/absolute.h"
#include "os/file.h"
#include "proto/info.h"
#include "proto/option.h"

/* The folder on the other side where embedded headers are. */
#define EMBEDDED "/.spancl-embedded"

/* A file with computed #include lines may be read again with other macros, this often. */
enum { VISITS_MAX = 16 };

/* A -I folder. */
struct folder {
        char *open;   /* as the client's file system takes it */
        char *normal; /* as it is sent */
};

struct file {
        struct file *next;      /* in the order in which they were found */
        struct file *same_hash; /* in `by_path` */
        char *path;             /* absolute, normalised */
        struct buf text;
        struct buf changed; /* with absolute names made relative; empty: text is right */
        unsigned visits;
        bool computed;
};

struct collection {
        const struct include_params *params;
        struct macro_table macros;
        struct folder *folders;
        size_t folder_count;
        struct file *first, **last;
        struct map by_path;
        size_t total;
        unsigned count, depth, missing;
        bool used_current;  /* something was found in the current folder without -I */
        bool used_absolute; /* something was named by its absolute path */
};

/* ---- paths ---------------------------------------------------------------------------------- */

static char *join(const char *folder, const char *name, size_t name_size)
{
        size_t n = strlen(folder);
        char *s = mem_alloc(n + 1 + name_size + 1);
        if (!s)
                return NULL;
        memcpy(s, folder, n);
        s[n] = '/';
        memcpy(s + n + 1, name, name_size);
        s[n + 1 + name_size] = 0;
        return s;
}

/* "//", "." and ".." taken away by their names alone, in place. The path is absolute. */
static void normalise(char *path)
{
        char *out = path;
        for (const char *p = path; *p;) {
                while (*p == '/')
                        p++;
                size_t n = strcspn(p, "/");
                if (n == 2 && p[0] == '.' && p[1] == '.') {
                        while (out > path && *--out != '/') {
                        }
                } else if (n && !(n == 1 && p[0] == '.')) {
                        *out++ = '/';
                        memmove(out, p, n);
                        out += n;
                }
                p += n;
        }
        if (out == path)
                *out++ = '/';
        *out = 0;
}

static int folder_add(struct collection *c, const char *path)
{
        struct folder *all = mem_realloc(c->folders, (c->folder_count + 1) * sizeof(*c->folders));
        if (!all)
                return SP_E_NOMEM;
        c->folders = all;
        struct folder *f = &all[c->folder_count];
        char room[PATH_MAX];
        const char *absolute = absolute_path(path, room);
        f->open = absolute ? mem_strdup(absolute) : join(c->params->folder, path, strlen(path));
        f->normal = f->open ? mem_strdup(f->open) : NULL;
        if (!f->normal) {
                mem_free(f->open);
                return SP_E_NOMEM;
        }
        normalise(f->normal);
        c->folder_count++;
        return 0;
}

/* ---- files ---------------------------------------------------------------------------------- */

static struct file *file_find(struct collection *c, const char *path)
{
        struct file *f = map_get(&c->by_path, hash_bytes(path, strlen(path)));
        while (f && strcmp(f->path, path))
                f = f->same_hash;
        return f;
}

/* `path` and `text` are taken over, also on failure. */
static int file_add(struct collection *c, char *path, struct buf *text, struct file **ret)
{
        struct file *f = mem_zalloc(sizeof(*f));
        uint64_t key = hash_bytes(path, strlen(path));
        if (f)
                f->same_hash = map_get(&c->by_path, key);
        if (!f || map_put(&c->by_path, key, f) < 0) {
                mem_free(f);
                mem_free(path);
                buf_fini(text);
                return SP_E_NOMEM;
        }
        f->path = path;
        f->text = *text;
        *text = (struct buf){ 0 };
        *c->last = f;
        c->last = &f->next;
        c->count++;
        *ret = f;
        return 0;
}

/* 1: read, 0: no such file that could be read. */
static int file_load(struct collection *c, const char *path, struct buf *ret)
{
        uint64_t size;
        int fd = file_open(path, true, &size);
        if (fd < 0)
                return 0;
        int r = 0;
        for (;;) {
                if (ret->size > INCLUDE_TOTAL_MAX - c->total) {
                        log_error("include",
                                  "the include files of a program are more than %d MiB "
                                  "(%s)",
                                  INCLUDE_TOTAL_MAX >> 20, path);
                        r = SP_E_LIMIT;
                        break;
                }
                r = buf_reserve(ret, 16384);
                if (r < 0)
                        break;
                int64_t n = file_read(fd, ret->data + ret->size, 16384);
                if (n < 0) {
                        log_warn("include", "%s: %s", path, strerror(errno));
                        break;
                }
                if (!n) {
                        r = 1;
                        break;
                }
                ret->size += (size_t)n;
        }
        file_close(fd);
        if (r > 0)
                c->total += ret->size;
        else
                buf_fini(ret);
        return r;
}

/* An empty file, so that the folder exists on the other side. */
static int folder_keep(struct collection *c, const char *folder)
{
        char *path = join(folder, ".spancl", 7);
        if (!path)
                return SP_E_NOMEM;
        normalise(path);
        struct file *f = file_find(c, path);
        if (f) {
                mem_free(path);
                return 0;
        }
        return file_add(c, path, &(struct buf){ 0 }, &f);
}

/* "x/../y": the way to y leads through x, where there may be nothing that is included. */
static int folders_keep(struct collection *c, const char *folder, const char *name)
{
        bool named = false;
        for (const char *p = name; *p;) {
                size_t n = strcspn(p, "/");
                bool up = n == 2 && p[0] == '.' && p[1] == '.';
                if (up && named) {
                        char *before = join(folder, name, (size_t)(p - name));
                        int r = before ? folder_keep(c, before) : SP_E_NOMEM;
                        mem_free(before);
                        if (r < 0)
                                return r;
                }
                named |= n && !up && !(n == 1 && p[0] == '.');
                p += n + (p[n] == '/');
        }
        return 0;
}

static int scan(struct collection *c, struct bytes text, const char *folder, struct buf *changed,
                bool *ret_computed);

/* Scan a file's text; `opened` is the name under which it was opened. */
static int file_scan(struct collection *c, struct file *f, const char *opened)
{
        if (f->visits && (!f->computed || f->visits >= VISITS_MAX))
                return 0;
        if (c->depth >= INCLUDE_DEPTH_MAX) {
                log_error("include", "include files are nested deeper than %d (%s)",
                          INCLUDE_DEPTH_MAX, f->path);
                return SP_E_LIMIT;
        }
        char *folder = mem_dup(opened, strlen(opened) + 1);
        if (!folder)
                return SP_E_NOMEM;
        *strrchr(folder, '/') = 0;
        struct buf changed = { 0 };
        f->visits++;
        c->depth++;
        int r = scan(c, bytes_of(f->text.data, f->text.size), folder, &changed, &f->computed);
        c->depth--;
        mem_free(folder);
        if (!r && changed.size && !f->changed.size)
                f->changed = changed;
        else
                buf_fini(&changed);
        return r;
}

/* Try folder/name. 1: found; it is added, together with the files that it includes. */
static int resolve_in(struct collection *c, const char *folder, const char *name)
{
        char *opened = join(folder, name, strlen(name));
        char *path = opened ? mem_strdup(opened) : NULL;
        if (!path) {
                mem_free(opened);
                return SP_E_NOMEM;
        }
        normalise(path);
        struct file *f = file_find(c, path);
        int r = 1;
        if (f) {
                mem_free(path);
        } else {
                struct buf text = { 0 };
                r = file_load(c, opened, &text);
                if (r > 0 && c->count >= INCLUDE_FILES_MAX) {
                        log_error("include", "a program has more than %d include files",
                                  INCLUDE_FILES_MAX);
                        r = SP_E_LIMIT;
                }
                if (r > 0) {
                        int e = file_add(c, path, &text, &f);
                        r = e < 0 ? e : 1;
                } else {
                        buf_fini(&text);
                        mem_free(path);
                }
        }
        if (r > 0) {
                int e = folders_keep(c, folder, name);
                if (!e)
                        e = file_scan(c, f, opened);
                r = e < 0 ? e : 1;
        }
        mem_free(opened);
        return r;
}

/* `folder` is the including file's; NULL: it is the program's source. 1: found; 0: not. */
static int resolve(struct collection *c, const char *name, bool quotes, const char *folder)
{
        if (name[0] == '/')
                return resolve_in(c, "", name + 1);
        int r = 0;
        bool embedded = c->params->embedded_count;
        /* The compiler looks beside an including file first, whatever we say. */
        if (embedded && !(quotes && folder))
                r = resolve_in(c, EMBEDDED, name);
        if (quotes && !r) {
                r = resolve_in(c, folder ? folder : c->params->folder, name);
                if (r > 0 && !folder)
                        c->used_current = true;
        }
        if (embedded && !r && quotes && folder)
                r = resolve_in(c, EMBEDDED, name);
        for (size_t i = 0; i < c->folder_count && !r; i++)
                r = resolve_in(c, c->folders[i].open, name);
        return r;
}

/* ---- scanning ------------------------------------------------------------------------------- */

/* Reads characters as after translation phase 2: continued lines are one. */
struct reader {
        const char *p, *end;
};

static void skip_splices(struct reader *r)
{
        for (;;) {
                size_t left = (size_t)(r->end - r->p);
                if (left >= 2 && r->p[0] == '\\' && r->p[1] == '\n')
                        r->p += 2;
                else if (left >= 3 && r->p[0] == '\\' && r->p[1] == '\r' && r->p[2] == '\n')
                        r->p += 3;
                else
                        return;
        }
}

/* -1: the end. */
static int peek(struct reader *r)
{
        skip_splices(r);
        return r->p < r->end ? (unsigned char)*r->p : -1;
}

static int next(struct reader *r)
{
        int ch = peek(r);
        if (ch >= 0)
                r->p++;
        return ch;
}

static int peek_second(struct reader r)
{
        next(&r);
        return peek(&r);
}

/* At a comment? Then skip it. */
static bool skip_comment(struct reader *r)
{
        if (peek(r) != '/')
                return false;
        int second = peek_second(*r), ch;
        if (second == '/') {
                while ((ch = peek(r)) >= 0 && ch != '\n')
                        next(r);
                return true;
        }
        if (second != '*')
                return false;
        next(r);
        next(r);
        for (;;) {
                const char *star = memchr(r->p, '*', (size_t)(r->end - r->p));
                r->p = star ? star + 1 : r->end;
                if (!star || peek(r) == '/')
                        break;
        }
        next(r);
        return true;
}

/* Skip a string or character constant, or the rest of the line. The text goes to `out`, if given. */
static int skip_string(struct reader *r, struct buf *out)
{
        int quote = -1, ch, e = 0;
        while ((ch = peek(r)) >= 0 && ch != '\n' && !e) {
                char c = (char)next(r);
                if (out)
                        e = buf_put(out, &c, 1);
                if (quote < 0) {
                        quote = ch;
                } else if (ch == quote) {
                        break;
                } else if (ch == '\\' && peek(r) >= 0 && peek(r) != '\n') {
                        c = (char)next(r);
                        if (out && !e)
                                e = buf_put(out, &c, 1);
                }
        }
        return e;
}

/* Is the line, so far, "include"? Then a '<' begins a name. */
static bool before_header(const struct buf *line)
{
        const char *p = line->size ? (const char *)line->data : "", *end = p + line->size;
        while (p < end && isspace((unsigned char)*p))
                p++;
        if (end - p < 7 || memcmp(p, "include", 7))
                return false;
        for (p += 7; p < end; p++) {
                if (!isspace((unsigned char)*p))
                        return false;
        }
        return true;
}

/* A directive, from behind its '#' to the end of the line, comments as spaces. */
static int read_directive(struct reader *r, struct buf *line)
{
        int ch, e = 0;
        line->size = 0;
        while (!e && (ch = peek(r)) >= 0 && ch != '\n') {
                if (skip_comment(r)) {
                        e = buf_put(line, " ", 1);
                } else if (ch == '"' || ch == '\'') {
                        e = skip_string(r, line);
                } else if (ch == '<' && before_header(line)) {
                        while (!e && (ch = peek(r)) >= 0 && ch != '\n') {
                                char c = (char)next(r);
                                e = buf_put(line, &c, 1);
                                if (ch == '>')
                                        break;
                        }
                } else {
                        char c = (char)next(r);
                        if (c != '\r')
                                e = buf_put(line, &c, 1);
                }
        }
        return e;
}

/* "name" or <name>; 0: neither. The name is cut out of `text`. */
static int header_name(struct bytes text, struct buf *ret_name, bool *ret_quotes)
{
        const char *p = text.size ? text.data : "", *end = p + text.size;
        while (p < end && isspace((unsigned char)*p))
                p++;
        if (p == end || (*p != '"' && *p != '<'))
                return 0;
        const char *close = memchr(p + 1, *p == '"' ? '"' : '>', (size_t)(end - p - 1));
        if (!close || close == p + 1 || memchr(p, 0, (size_t)(close - p)))
                return 0;
        *ret_quotes = *p == '"';
        ret_name->size = 0;
        int r = buf_put(ret_name, p + 1, (size_t)(close - p - 1));
        if (!r)
                r = buf_put(ret_name, "", 1);
        return r < 0 ? r : 1;
}

/* Find the file that an #include line names. 1: found, its name is in *name; 0: not found. */
static int include_line(struct collection *c, struct bytes rest, const char *folder,
                        struct buf *name, bool *ret_computed)
{
        bool quotes;
        int r = header_name(rest, name, &quotes);
        if (r)
                return r < 0 ? r : resolve(c, (const char *)name->data, quotes, folder);

        /* A computed include. All definitions of its macros are tried, the newest last, whose name
         * is kept. A line that is too large to expand is left for the compiler to refuse. */
        *ret_computed = true;
        struct buf expanded = { 0 }, found = { 0 };
        unsigned picks = 1, unused;
        int result = 0;
        r = macro_expand(&c->macros, rest, 0, &expanded, &picks);
        for (unsigned pick = picks; pick-- > 0 && !r;) {
                expanded.size = 0;
                r = macro_expand(&c->macros, rest, pick, &expanded, &unused);
                if (r < 0)
                        break;
                r = header_name(bytes_of(expanded.data, expanded.size), &found, &quotes);
                if (r <= 0)
                        continue;
                r = resolve(c, (const char *)found.data, quotes, folder);
                if (r < 0) {
                        result = r;
                        break;
                }
                if (r > 0) {
                        name->size = 0;
                        r = buf_put(name, found.data, found.size);
                        result = 1;
                }
        }
        buf_fini(&expanded);
        buf_fini(&found);
        return r == SP_E_NOMEM ? r : result;
}

/* Replace the directive at [begin, end) of `text`, which names a file by its absolute path, by one that
 * names it below the root folder. *done: up to there the text was copied. */
static int change_line(struct collection *c, const char *text, size_t *done, size_t begin,
                       size_t end, const char *path, struct buf *changed)
{
        char *normal = mem_strdup(path);
        if (!normal)
                return SP_E_NOMEM;
        normalise(normal);
        int r = 0;
        /* A name that can't stand between < and > stays; the compiler will miss it. */
        if (!strpbrk(normal, "<>\"\n")) {
                c->used_absolute = true;
                r = buf_put(changed, text + *done, begin - *done);
                if (!r)
                        r = buf_put(changed, "#include <", 10);
                if (!r)
                        r = buf_put(changed, normal + 1, strlen(normal + 1));
                if (!r)
                        r = buf_put(changed, ">", 1);
                /* Lines keep their numbers. */
                for (size_t i = begin; i < end && !r; i++) {
                        if (text[i] == '\n')
                                r = buf_put(changed, "\n", 1);
                }
                *done = end;
        }
        mem_free(normal);
        return r;
}

/* May the character begin a line end, directive, constant, comment or continued line? */
static bool is_special(char c)
{
        return c == '\n' || c == '#' || c == '"' || c == '\'' || c == '/' || c == '\\';
}

/* Find the files that `text` includes. `folder` as in resolve. If lines have to be changed, the
 * whole text is put into *changed. */
static int scan(struct collection *c, struct bytes text, const char *folder, struct buf *changed,
                bool *ret_computed)
{
        struct reader r = { text.data, (const char *)text.data + text.size };
        struct buf line = { 0 }, name = { 0 };
        bool line_start = true;
        size_t done = 0;
        int e = 0, ch;
        while (!e) {
                /* Most characters mean nothing. */
                while (r.p < r.end && !is_special(*r.p)) {
                        line_start = line_start && isspace((unsigned char)*r.p);
                        r.p++;
                }
                ch = peek(&r);
                if (ch < 0)
                        break;
                const char *begin = r.p;
                if (skip_comment(&r))
                        continue;
                if (ch == '"' || ch == '\'') {
                        e = skip_string(&r, NULL);
                        line_start = false;
                        continue;
                }
                next(&r);
                if (ch == '\n') {
                        line_start = true;
                        continue;
                }
                if (ch != '#' || !line_start) {
                        line_start = line_start && isspace(ch);
                        continue;
                }
                e = read_directive(&r, &line);
                if (e)
                        break;
                const char *p = line.size ? (const char *)line.data : "", *end = p + line.size;
                while (p < end && isspace((unsigned char)*p))
                        p++;
                const char *word = p;
                while (p < end && (isalnum((unsigned char)*p) || *p == '_'))
                        p++;
                size_t size = (size_t)(p - word);
                struct bytes rest = bytes_of(p, (size_t)(end - p));
                if (size == 6 && !memcmp(word, "define", 6)) {
                        e = macro_define(&c->macros, rest);
                } else if ((size == 7 && !memcmp(word, "include", 7)) ||
                           (size == 6 && !memcmp(word, "import", 6))) {
                        e = include_line(c, rest, folder, &name, ret_computed);
                        c->missing += e == 0;
                        if (e > 0) {
                                e = name.data[0] == '/'
                                            ? change_line(c, text.data, &done,
                                                          (size_t)(begin - (const char *)text.data),
                                                          (size_t)(r.p - (const char *)text.data),
                                                          (const char *)name.data, changed)
                                            : 0;
                        }
                }
        }
        if (!e && done)
                e = buf_put(changed, (const char *)text.data + done, text.size - done);
        buf_fini(&line);
        buf_fini(&name);
        return e;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int put_folder(struct buf *out, const char *path)
{
        bool plain = !strpbrk(path, OPTION_SPACES "\"'\\");
        int r = out->size ? buf_put(out, " ", 1) : 0;
        if (!r)
                r = buf_put(out, plain ? "-I" : "-I\"", plain ? 2 : 3);
        for (const char *p = path; *p && !r; p++) {
                if (strchr("\"\\", *p))
                        r = buf_put(out, "\\", 1);
                if (!r)
                        r = buf_put(out, p, 1);
        }
        if (!r && !plain)
                r = buf_put(out, "\"", 1);
        return r;
}

/* Take in -I and -D; the other options go to `others` as they are. */
static int read_options(struct collection *c, struct buf *others)
{
        const char *options = c->params->options ? c->params->options : "";
        struct buf word = { 0 };
        const char *begin, *end;
        int r;
        while ((r = option_next(&options, &word, &begin, &end)) > 0) {
                char kind = option_with_argument(&word);
                if (kind) {
                        const char *argument = option_argument(&options, &word, &end, &r);
                        if (!argument) {
                                r = r < 0 ? r : SP_E_INVAL;
                                break;
                        }
                        if (kind == 'I')
                                r = folder_add(c, argument);
                        if (kind == 'D')
                                r = macro_define_option(&c->macros, argument);
                        if (r < 0)
                                break;
                }
                if (kind == 'I')
                        continue;
                /* A backslash at a word's end stands before another space than ' ', which it would take in. */
                bool open = others->size && others->data[others->size - 1] == '\\';
                r = others->size ? buf_put(others, open ? "\t" : " ", 1) : 0;
                if (!r)
                        r = buf_put(others, begin, (size_t)(end - begin));
                if (r < 0)
                        break;
        }
        buf_fini(&word);
        return r;
}

static int write_options(struct collection *c, const struct buf *others, struct buf *out)
{
        /* The current folder is looked into first, and only for names in quotes; but on the other side
         * there are in it only files that were found through it. */
        int r = c->params->embedded_count ? put_folder(out, EMBEDDED) : 0;
        if (!r && c->used_current)
                r = put_folder(out, c->params->folder);
        for (size_t i = 0; i < c->folder_count && !r; i++)
                r = put_folder(out, c->folders[i].normal);
        if (!r && c->used_absolute)
                r = put_folder(out, "/");
        if (!r && others->size && out->size)
                r = buf_put(out, " ", 1);
        if (!r)
                r = buf_put(out, others->data, others->size);
        return r < 0 ? r : buf_put(out, "", 1);
}

static int write_headers(struct collection *c, struct include_result *ret)
{
        for (struct file *f = c->first; f; f = f->next) {
                const struct buf *text = f->changed.size ? &f->changed : &f->text;
                size_t mark;
                int r = info_begin(&ret->headers, INFO_HEADER, &mark);
                if (!r)
                        r = info_put(&ret->headers, INFO_HEADER_PATH, f->path, strlen(f->path));
                if (!r)
                        r = info_put(&ret->headers, INFO_HEADER_TEXT, text->data, text->size);
                if (r < 0)
                        return r;
                info_end(&ret->headers, mark);
                ret->files++;
        }
        return 0;
}

static int take_embedded(struct collection *c)
{
        for (size_t i = 0; i < c->params->embedded_count; i++) {
                const struct include_embedded *e = &c->params->embedded[i];
                char *path = join(e->name[0] == '/' ? "" : EMBEDDED, e->name, strlen(e->name));
                if (!path)
                        return SP_E_NOMEM;
                normalise(path);
                struct buf text = { 0 };
                struct file *f;
                int r = 0;
                if (file_find(c, path))
                        mem_free(path);
                else if ((r = buf_put(&text, e->text.data, e->text.size)) < 0)
                        mem_free(path);
                else
                        r = file_add(c, path, &text, &f);
                if (r < 0)
                        return r;
        }
        return 0;
}

int include_collect(const struct include_params *params, struct include_result *ret)
{
        struct collection c = { .params = params };
        c.last = &c.first;
        struct include_result result = { 0 };
        struct buf others = { 0 };
        bool computed = false;
        int r = read_options(&c, &others);
        if (!r)
                r = take_embedded(&c);
        if (!r)
                r = scan(&c, params->source, NULL, &result.source, &computed);
        if (!r)
                r = write_options(&c, &others, &result.options);
        if (!r)
                r = write_headers(&c, &result);

        buf_fini(&others);
        macro_fini(&c.macros);
        for (size_t i = 0; i < c.folder_count; i++) {
                mem_free(c.folders[i].open);
                mem_free(c.folders[i].normal);
        }
        mem_free(c.folders);
        while (c.first) {
                struct file *f = c.first;
                c.first = f->next;
                mem_free(f->path);
                buf_fini(&f->text);
                buf_fini(&f->changed);
                mem_free(f);
        }
        map_fini(&c.by_path);
        result.missing = c.missing;
        if (r < 0) {
                include_fini(&result);
                return r;
        }
        *ret = result;
        return 0;
}

void include_fini(struct include_result *r)
{
        buf_fini(&r->headers);
        buf_fini(&r->options);
        buf_fini(&r->source);
        r->files = 0;
}
