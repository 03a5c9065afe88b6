/* Messages as text, samples of them, and the documentation: for tools and tests. */
#include "proto/wire.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

const char *object_type_name(enum object_type type)
{
        switch (type) {
#define OBJECT(name, value, doc) \
        case OBJECT_##name:      \
                return #name;
#include "proto/schema/types.def"
        default:
                return "?";
        }
}

/* ---- printing ----------------------------------------------------------------------------- */

struct text {
        char *p;
        size_t size, len;
};

static void print(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void print(struct text *t, const char *fmt, ...)
{
        if (t->len + 1 >= t->size)
                return;
        va_list ap;
        va_start(ap, fmt);
        int n = vsnprintf(t->p + t->len, t->size - t->len, fmt, ap);
        va_end(ap);
        if (n > 0)
                t->len += (size_t)n < t->size - t->len ? (size_t)n : t->size - t->len - 1;
}

static void print_id(struct text *t, uint64_t id)
{
        if (id)
                print(t, "%s:%" PRIu64, object_type_name(object_id_type(id)),
                      id & 0x00FFFFFFFFFFFFFFu);
        else
                print(t, "none");
}

static void print_u64s(struct text *t, struct wire_u64s v, bool ids)
{
        print(t, "[");
        for (size_t i = 0; i < v.count; i++) {
                print(t, "%s", i ? " " : "");
                if (ids)
                        print_id(t, wire_u64s_at(v, i));
                else
                        print(t, "%" PRIu64, wire_u64s_at(v, i));
        }
        print(t, "]");
}

static void print_str(struct text *t, struct bytes v)
{
        print(t, "\"");
        for (size_t i = 0; i < v.size; i++) {
                unsigned char ch = ((const unsigned char *)v.data)[i];
                print(t, ch >= ' ' && ch < 127 ? "%c" : "\\x%02x", ch);
        }
        print(t, "\"");
}

size_t wire_print(struct bytes msg, char *text, size_t size)
{
        struct text t = { text, size, 0 };
        if (size)
                text[0] = 0;
        if (msg.size < WIRE_HEADER_SIZE) {
                print(&t, "(short message)");
                return t.len;
        }
        switch (wire_message_id(msg.data)) {
#define MSG(id, name, doc)                          \
        case id: {                                  \
                struct wire_##name m;               \
                print(&t, #name);                   \
                if (wire_get_##name(msg, &m) < 0) { \
                        print(&t, " (malformed)");  \
                        break;                      \
                }
#define U64(f, lo, hi) print(&t, " " #f "=%" PRIu64, m.f);
#define S64(f)         print(&t, " " #f "=%" PRId64, m.f);
#define REF(f, type)           \
        print(&t, " " #f "="); \
        print_id(&t, m.f);
#define OPT(f, type) REF(f, type)
#define ANY(f)       REF(f, ANY)
#define U64S(f, max)           \
        print(&t, " " #f "="); \
        print_u64s(&t, m.f, false);
#define REFS(f, type, max)     \
        print(&t, " " #f "="); \
        print_u64s(&t, m.f, true);
#define BYTES(f, max) print(&t, " " #f "=(%zu bytes)", m.f.size);
#define STR(f, max)            \
        print(&t, " " #f "="); \
        print_str(&t, m.f);
#define INFO(f, max) BYTES(f, max)
#define ARGS(f, max) BYTES(f, max)
#define END(name) \
        break;    \
        }
#include "proto/schema/all.def"
        default:
                print(&t, "(unknown message 0x%04x)", wire_message_id(msg.data));
        }
        return t.len;
}

/* ---- tables: names, samples, documentation ------------------------------------------------- */

static const struct {
        unsigned id;
        const char *name;
} messages[] = {
#define MSG(id, name, doc) { id, #name },
#include "proto/schema/no_fields.def"
#define END(name)
#include "proto/schema/all.def"
};

const char *wire_name(unsigned id)
{
        for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++)
                if (messages[i].id == id)
                        return messages[i].name;
        return "?";
}

unsigned wire_id_at(size_t i)
{
        return i < sizeof(messages) / sizeof(messages[0]) ? messages[i].id : 0;
}

int wire_sample(struct buf *b, unsigned id)
{
        switch (id) {
#define MSG(id, name, doc) \
        case id: {         \
                struct wire_##name m = { 0 };
#define U64(f, lo, hi) m.f = lo;
#define S64(f)
#define REF(f, type) m.f = object_id(OBJECT_##type, 1);
#define OPT(f, type)
#define ANY(f) m.f = object_id(OBJECT_BUFFER, 1);
#define U64S(f, max)
#define REFS(f, type, max)
#define BYTES(f, max)
#define STR(f, max)
#define INFO(f, max)
#define ARGS(f, max)
#define END(name)                      \
        return wire_put_##name(b, &m); \
        }
#include "proto/schema/all.def"
        default:
                return SP_E_NOENT;
        }
}

void wire_document(void (*out)(void *user, const char *text), void *user)
{
        char line[512];
#define row(...) (snprintf(line, sizeof(line), __VA_ARGS__), out(user, line))
        out(user, "## Object types\n\n| type | value | meaning |\n|---|---|---|\n");
#define OBJECT(name, value, doc) row("| %s | %d | %s |\n", #name, value, doc);
#include "proto/schema/types.def"
        out(user, "\n## Messages\n");
#define MSG(id, name, doc)                     \
        row("\n### 0x%04x %s\n\n", id, #name); \
        out(user, doc);                        \
        out(user, "\n\n| field | slot | limits |\n|---|---|---|\n");
#define U64(f, lo, hi)     row("| %s | U64 | %s … %s |\n", #f, #lo, #hi);
#define S64(f)             row("| %s | S64 | |\n", #f);
#define REF(f, type)       row("| %s | id | %s |\n", #f, #type);
#define OPT(f, type)       row("| %s | id | %s or 0 |\n", #f, #type);
#define ANY(f)             row("| %s | id | any type |\n", #f);
#define U64S(f, max)       row("| %s | U64 array | at most %s |\n", #f, #max);
#define REFS(f, type, max) row("| %s | id array | %s, at most %s |\n", #f, #type, #max);
#define BYTES(f, max)      row("| %s | bytes | at most %s |\n", #f, #max);
#define STR(f, max)        row("| %s | text | at most %s bytes, no zero byte |\n", #f, #max);
#define INFO(f, max)       row("| %s | info block | at most %s bytes |\n", #f, #max);
#define ARGS(f, max)       row("| %s | kernel arguments | at most %s bytes |\n", #f, #max);
#define END(name)
#include "proto/schema/all.def"
#undef row
}
