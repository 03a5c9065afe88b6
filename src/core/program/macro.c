#include "core/program/macro.h"

#include <ctype.h>
#include <stdbool.h>

#include "base/mem.h"
#include "core/hash.h"

struct macro {
        struct macro *older; /* of the same hash, so mostly of the same name */
        size_t name_size;
        bool function;
        char *text; /* "NAME" "body" or "NAME" "x, y) body": the rest starts at name_size */
        size_t text_size;
};

static bool is_name_start(int c)
{
        return isalpha(c) || c == '_' || c == '$' || c >= 0x80;
}

static bool is_name(int c)
{
        return is_name_start(c) || isdigit(c);
}

/* ---- definitions ---------------------------------------------------------------------------- */

static bool same_name(const struct macro *m, const char *name, size_t size)
{
        return m->name_size == size && !memcmp(m->text, name, size);
}

/* `rest` is what follows the name: the body, or "x, y) body". */
static int define(struct macro_table *t, const char *name, size_t name_size, bool function,
                  const char *rest, size_t rest_size)
{
        uint64_t key = hash_bytes(name, name_size);
        struct macro *newest = map_get(&t->by_name, key);
        if (newest && same_name(newest, name, name_size) && newest->function == function &&
            newest->text_size == name_size + rest_size &&
            !memcmp(newest->text + name_size, rest, rest_size))
                return 0;
        struct macro *m = mem_zalloc(sizeof(*m));
        if (!m)
                return SP_E_NOMEM;
        m->text = mem_alloc(name_size + rest_size);
        if (!m->text) {
                mem_free(m);
                return SP_E_NOMEM;
        }
        memcpy(m->text, name, name_size);
        if (rest_size)
                memcpy(m->text + name_size, rest, rest_size);
        m->name_size = name_size;
        m->text_size = name_size + rest_size;
        m->function = function;
        m->older = newest;
        int r = map_put(&t->by_name, key, m);
        if (r < 0) {
                mem_free(m->text);
                mem_free(m);
        }
        return r;
}

int macro_define(struct macro_table *t, struct bytes text)
{
        const char *p = text.size ? text.data : "", *end = p + text.size;
        while (p < end && isspace((unsigned char)*p))
                p++;
        const char *name = p;
        if (p == end || !is_name_start((unsigned char)*p))
                return 0;
        while (p < end && is_name((unsigned char)*p))
                p++;
        size_t size = (size_t)(p - name);
        bool function = p < end && *p == '(';
        if (function)
                p++;
        return define(t, name, size, function, p, (size_t)(end - p));
}

int macro_define_option(struct macro_table *t, const char *text)
{
        size_t size = 0;
        while (is_name((unsigned char)text[size]))
                size++;
        if (!size || !is_name_start((unsigned char)text[0]))
                return 0;
        const char *p = text + size;
        if (*p == '(') {
                /* NAME(x)=body reads as NAME(x) body. */
                const char *close = strchr(p, ')');
                if (!close)
                        return 0;
                struct buf rest = { 0 };
                const char *body = close[1] == '=' ? close + 2 : close + 1;
                int r = buf_put(&rest, p + 1, (size_t)(close - p));
                if (!r)
                        r = buf_put(&rest, body, strlen(body));
                if (!r)
                        r = define(t, text, size, true, (char *)rest.data, rest.size);
                buf_fini(&rest);
                return r;
        }
        const char *body = *p == '=' ? p + 1 : "1";
        return define(t, text, size, false, body, strlen(body));
}

void macro_fini(struct macro_table *t)
{
        struct macro *m;
        for (size_t pos = 0; (m = map_next(&t->by_name, &pos));) {
                while (m) {
                        struct macro *older = m->older;
                        mem_free(m->text);
                        mem_free(m);
                        m = older;
                }
        }
        map_fini(&t->by_name);
}

/* ---- tokens --------------------------------------------------------------------------------- */

enum token_kind { TOKEN_NAME, TOKEN_NUMBER, TOKEN_STRING, TOKEN_OTHER };

/* Names that were expanded to make a token: they are not expanded in it again. */
struct hidden {
        struct hidden *next;
        const struct macro *macro;
};

struct token {
        struct token *next;
        enum token_kind kind;
        bool space; /* white space before it */
        const char *text;
        size_t size;
        struct hidden *hidden;
};

struct block {
        struct block *next;
        max_align_t data[];
};

/* One expansion; its memory is freed as a whole. */
struct expansion {
        const struct macro_table *table;
        unsigned pick, picks;
        unsigned tokens, depth;
        int error;
        struct block *blocks;
};

static void *allocate(struct expansion *x, size_t size)
{
        struct block *b = x->error ? NULL : mem_zalloc(sizeof(*b) + size);
        if (!b) {
                if (!x->error)
                        x->error = SP_E_NOMEM;
                return NULL;
        }
        b->next = x->blocks;
        x->blocks = b;
        return b->data;
}

static struct token *token_new(struct expansion *x, enum token_kind kind, bool space,
                               const char *text, size_t size, struct hidden *hidden)
{
        if (++x->tokens > MACRO_TOKENS_MAX && !x->error)
                x->error = SP_E_LIMIT;
        struct token *t = allocate(x, sizeof(*t));
        if (t)
                *t = (struct token){
                        .kind = kind,
                        .space = space,
                        .text = text,
                        .size = size,
                        .hidden = hidden,
                };
        return t;
}

static bool is_punctuation(const struct token *t, char c)
{
        return t && t->kind == TOKEN_OTHER && t->size == 1 && t->text[0] == c;
}

/* The token at p; its text borrows. */
static struct token *token_scan(struct expansion *x, const char **p, const char *end)
{
        const char *s = *p;
        bool space = false;
        while (s < end && isspace((unsigned char)*s)) {
                s++;
                space = true;
        }
        if (s == end) {
                *p = s;
                return NULL;
        }
        const char *begin = s;
        int c = (unsigned char)*s++;
        enum token_kind kind = TOKEN_OTHER;
        if (is_name_start(c)) {
                kind = TOKEN_NAME;
                while (s < end && is_name((unsigned char)*s))
                        s++;
        } else if (isdigit(c) || (c == '.' && s < end && isdigit((unsigned char)*s))) {
                kind = TOKEN_NUMBER;
                while (s < end && (is_name((unsigned char)*s) || *s == '.' ||
                                   ((*s == '+' || *s == '-') && strchr("eEpP", s[-1]))))
                        s++;
        } else if (c == '"' || c == '\'') {
                kind = TOKEN_STRING;
                while (s < end && (unsigned char)*s != c)
                        s += *s == '\\' && s + 1 < end ? 2 : 1;
                if (s < end)
                        s++;
        } else if (c == '#' && s < end && *s == '#') {
                s++;
        }
        *p = s;
        return token_new(x, kind, space, begin, (size_t)(s - begin), NULL);
}

static struct token *token_list(struct expansion *x, const char *text, size_t size)
{
        const char *end = text + size;
        struct token *first = NULL, **tail = &first;
        while ((*tail = token_scan(x, &text, end)))
                tail = &(*tail)->next;
        return first;
}

static bool hidden_has(const struct hidden *h, const struct macro *m)
{
        for (; h; h = h->next) {
                if (same_name(h->macro, m->text, m->name_size))
                        return true;
        }
        return false;
}

static struct hidden *hidden_add(struct expansion *x, struct hidden *h, const struct macro *m)
{
        struct hidden *n = allocate(x, sizeof(*n));
        if (n)
                *n = (struct hidden){ h, m };
        return n;
}

static struct hidden *hidden_both(struct expansion *x, const struct hidden *a,
                                  const struct hidden *b)
{
        struct hidden *r = NULL;
        for (; a && !x->error; a = a->next) {
                if (hidden_has(b, a->macro))
                        r = hidden_add(x, r, a->macro);
        }
        return r;
}

static struct hidden *hidden_union(struct expansion *x, struct hidden *a, const struct hidden *b)
{
        for (; b && !x->error; b = b->next) {
                if (!hidden_has(a, b->macro))
                        a = hidden_add(x, a, b->macro);
        }
        return a;
}

/* ---- expansion ------------------------------------------------------------------------------ */

static const struct macro *macro_find(struct expansion *x, const struct token *t)
{
        const struct macro *found = NULL;
        unsigned n = 0;
        for (const struct macro *m = map_get(&x->table->by_name, hash_bytes(t->text, t->size)); m;
             m = m->older) {
                if (!same_name(m, t->text, t->size) || n == MACRO_ALTERNATIVES_MAX)
                        continue;
                if (n++ <= x->pick)
                        found = m;
        }
        if (n > x->picks)
                x->picks = n;
        return found;
}

struct parameter {
        struct parameter *next;
        const char *name;
        size_t size;
        bool rest;              /* ... */
        struct token *actual;   /* as it stands */
        struct token *expanded; /* NULL also while not expanded */
        bool is_expanded;
};

/* The macro's parameters and its body. NULL parameters: none, or *ret_bad. */
static struct parameter *parameters(struct expansion *x, const struct macro *m,
                                    struct token **ret_body, bool *ret_bad)
{
        struct token *t = token_list(x, m->text + m->name_size, m->text_size - m->name_size);
        struct parameter *first = NULL, **tail = &first;
        *ret_bad = true;
        while (t && !is_punctuation(t, ')')) {
                struct parameter *p = allocate(x, sizeof(*p));
                if (!p)
                        return NULL;
                if (t->kind == TOKEN_NAME) {
                        p->name = t->text;
                        p->size = t->size;
                        t = t->next;
                } else {
                        p->name = "__VA_ARGS__";
                        p->size = strlen(p->name);
                }
                while (is_punctuation(t, '.')) {
                        p->rest = true;
                        t = t->next;
                }
                *tail = p;
                tail = &p->next;
                if (is_punctuation(t, ','))
                        t = t->next;
                else if (!is_punctuation(t, ')'))
                        return NULL;
        }
        if (!t)
                return NULL;
        *ret_body = t->next;
        *ret_bad = false;
        return first;
}

static struct token *copy(struct expansion *x, const struct token *t)
{
        return token_new(x, t->kind, t->space, t->text, t->size, t->hidden);
}

/* Take the arguments from behind "(": *list is left at the token after ")". False: there is no end. */
static bool arguments(struct expansion *x, struct token **list, struct parameter *p,
                      struct hidden **ret_hidden)
{
        unsigned level = 0;
        struct token **tail = p ? &p->actual : NULL;
        for (struct token *t = *list; t && !x->error; t = t->next) {
                if (!level && is_punctuation(t, ')')) {
                        *list = t->next;
                        *ret_hidden = t->hidden;
                        return true;
                }
                if (!level && is_punctuation(t, ',') && p && !p->rest && p->next) {
                        p = p->next;
                        tail = &p->actual;
                        continue;
                }
                if (is_punctuation(t, '('))
                        level++;
                if (is_punctuation(t, ')'))
                        level--;
                if (tail) {
                        *tail = copy(x, t);
                        if (*tail)
                                tail = &(*tail)->next;
                }
        }
        return false;
}

static struct parameter *parameter_find(struct parameter *p, const struct token *t)
{
        if (!t || t->kind != TOKEN_NAME)
                return NULL;
        while (p && !(p->size == t->size && !memcmp(p->name, t->text, t->size)))
                p = p->next;
        return p;
}

static void spell(const struct token *t, struct buf *out, int *error)
{
        for (const struct token *first = t; t && !*error; t = t->next) {
                if (t->space && t != first)
                        *error = buf_put(out, " ", 1);
                if (!*error)
                        *error = buf_put(out, t->text, t->size);
        }
}

/* A token's text that the expansion owns. */
static const char *keep(struct expansion *x, const void *data, size_t size)
{
        char *s = allocate(x, size);
        if (s && size)
                memcpy(s, data, size);
        return s;
}

static struct token *stringify(struct expansion *x, const struct token *actual, bool space)
{
        struct buf b = { 0 };
        int r = buf_put(&b, "\"", 1);
        for (const struct token *t = actual; t && !r; t = t->next) {
                if (t->space && t != actual)
                        r = buf_put(&b, " ", 1);
                for (size_t i = 0; i < t->size && !r; i++) {
                        if (t->kind == TOKEN_STRING && (t->text[i] == '"' || t->text[i] == '\\'))
                                r = buf_put(&b, "\\", 1);
                        if (!r)
                                r = buf_put(&b, &t->text[i], 1);
                }
        }
        if (!r)
                r = buf_put(&b, "\"", 1);
        if (r < 0 && !x->error)
                x->error = r;
        const char *text = keep(x, b.data, b.size);
        struct token *t = text ? token_new(x, TOKEN_STRING, space, text, b.size, NULL) : NULL;
        buf_fini(&b);
        return t;
}

static struct token *paste(struct expansion *x, const struct token *a, const struct token *b)
{
        size_t size = a->size + b->size;
        char *text = allocate(x, size ? size : 1);
        if (!text)
                return NULL;
        memcpy(text, a->text, a->size);
        memcpy(text + a->size, b->text, b->size);
        /* Text that is not one token stays as it is written. */
        const char *p = text;
        struct token *t = token_scan(x, &p, text + size);
        if (!t)
                return token_new(x, TOKEN_OTHER, a->space, text, size, NULL);
        t->space = a->space;
        t->size = size;
        t->hidden = hidden_both(x, a->hidden, b->hidden);
        return t;
}

static struct token *expand(struct expansion *x, struct token *list);

static struct token *expanded(struct expansion *x, struct parameter *p)
{
        if (!p->is_expanded) {
                struct token *list = NULL, **tail = &list;
                for (const struct token *t = p->actual; t && !x->error; t = t->next) {
                        *tail = copy(x, t);
                        if (*tail)
                                tail = &(*tail)->next;
                }
                if (++x->depth > MACRO_DEPTH_MAX && !x->error)
                        x->error = SP_E_LIMIT;
                p->expanded = expand(x, list);
                x->depth--;
                p->is_expanded = true;
        }
        return p->expanded;
}

/* Append copies of `list` at *tail; the first takes over `space`. Returns the new tail. */
static struct token **append(struct expansion *x, struct token **tail, const struct token *list,
                             bool space)
{
        for (const struct token *t = list; t && !x->error; t = t->next) {
                *tail = copy(x, t);
                if (!*tail)
                        break;
                if (t == list)
                        (*tail)->space = space;
                tail = &(*tail)->next;
        }
        return tail;
}

static bool is_operator(const struct token *t, const char *op)
{
        return t && t->kind == TOKEN_OTHER && t->size == strlen(op) &&
               !memcmp(t->text, op, t->size);
}

/* The body with its parameters replaced (6.10.3.1 to 6.10.3.3). */
static struct token *substitute(struct expansion *x, const struct token *body,
                                struct parameter *params, bool function)
{
        struct token *first = NULL, **tail = &first, **last = NULL;
        for (const struct token *t = body; t && !x->error; t = t->next) {
                struct token **before = tail;
                struct parameter *p;
                if (function && is_operator(t, "#") && (p = parameter_find(params, t->next))) {
                        *tail = stringify(x, p->actual, t->space);
                        if (*tail)
                                tail = &(*tail)->next;
                        t = t->next;
                } else if (is_operator(t, "##") && t != body && t->next) {
                        t = t->next;
                        p = parameter_find(params, t);
                        const struct token *right = p ? p->actual : t;
                        if (!right)
                                continue;
                        /* An empty argument on the left: the right side stays as it is. */
                        struct token *glued = last ? paste(x, *last, right) : copy(x, right);
                        if (!glued)
                                break;
                        before = last ? last : tail;
                        *before = glued;
                        tail = append(x, &glued->next, p ? right->next : NULL, false);
                        if (p && right->next && glued->next)
                                glued->next->space = right->next->space;
                } else if ((p = parameter_find(params, t))) {
                        bool raw = is_operator(t->next, "##");
                        tail = append(x, tail, raw ? p->actual : expanded(x, p), t->space);
                } else {
                        *tail = copy(x, t);
                        if (*tail)
                                tail = &(*tail)->next;
                }
                /* The place of the last token, for a ## behind it; an empty argument leaves none. */
                last = NULL;
                for (struct token **s = before; *s; s = &(*s)->next)
                        last = s;
        }
        return first;
}

static struct token *expand(struct expansion *x, struct token *list)
{
        struct token *first = NULL, **tail = &first;
        while (list && !x->error) {
                struct token *t = list;
                list = t->next;
                const struct macro *m = t->kind == TOKEN_NAME ? macro_find(x, t) : NULL;
                if (!m || hidden_has(t->hidden, m) || (m->function && !is_punctuation(list, '('))) {
                        t->next = NULL;
                        *tail = t;
                        tail = &t->next;
                        continue;
                }
                struct token *body = NULL;
                struct parameter *params = NULL;
                struct hidden *hidden = t->hidden;
                if (m->function) {
                        bool bad;
                        struct hidden *close;
                        struct token *after = list->next;
                        params = parameters(x, m, &body, &bad);
                        if (bad || !arguments(x, &after, params, &close)) {
                                t->next = NULL;
                                *tail = t;
                                tail = &t->next;
                                continue;
                        }
                        list = after;
                        hidden = hidden_both(x, hidden, close);
                } else {
                        body = token_list(x, m->text + m->name_size, m->text_size - m->name_size);
                }
                hidden = hidden_add(x, hidden, m);
                struct token *result = substitute(x, body, params, m->function), **end = &result;
                if (result)
                        result->space = t->space;
                for (; *end; end = &(*end)->next)
                        (*end)->hidden = hidden_union(x, (*end)->hidden, hidden);
                *end = list;
                list = result;
        }
        return first;
}

int macro_expand(const struct macro_table *t, struct bytes text, unsigned pick, struct buf *out,
                 unsigned *ret_picks)
{
        struct expansion x = { .table = t, .pick = pick, .picks = 1 };
        struct token *result = expand(&x, token_list(&x, text.data, text.size));
        if (!x.error)
                spell(result, out, &x.error);
        while (x.blocks) {
                struct block *b = x.blocks;
                x.blocks = b->next;
                mem_free(b);
        }
        *ret_picks = x.picks;
        return x.error;
}
