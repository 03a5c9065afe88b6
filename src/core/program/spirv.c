#include "core/program/spirv.h"

enum {
        MAGIC = 0x07230203,
        HEADER_WORDS = 5,
        OP_TYPE_BOOL = 20,
        OP_TYPE_INT = 21,
        OP_TYPE_FLOAT = 22,
        OP_SPEC_CONSTANT_TRUE = 48,
        OP_SPEC_CONSTANT_FALSE = 49,
        OP_SPEC_CONSTANT = 50,
        OP_DECORATE = 71,
        DECORATION_SPEC_ID = 1,
};

struct module {
        const uint8_t *data;
        size_t words, at;
        bool swapped;
};

struct instruction {
        unsigned op;
        size_t at, count; /* words, the first included */
};

static uint32_t word(const struct module *m, size_t i)
{
        uint32_t v = bytes_get_u32(m->data + 4 * i);
        return m->swapped ? __builtin_bswap32(v) : v;
}

static bool module_open(struct bytes il, struct module *ret)
{
        struct module m = { .data = il.data, .words = il.size / 4, .at = HEADER_WORDS };
        if (il.size % 4 || m.words < HEADER_WORDS)
                return false;
        m.swapped = word(&m, 0) != MAGIC;
        if (word(&m, 0) != MAGIC)
                return false;
        *ret = m;
        return true;
}

/* False: the end, or malformed, when m->at is not the module's end. */
static bool module_next(struct module *m, struct instruction *ret)
{
        if (m->at >= m->words)
                return false;
        uint32_t first = word(m, m->at);
        size_t count = first >> 16;
        if (!count || count > m->words - m->at)
                return false;
        *ret = (struct instruction){ first & 0xffff, m->at, count };
        m->at += count;
        return true;
}

bool spirv_valid(struct bytes il)
{
        struct module m;
        struct instruction i;
        if (!module_open(il, &m))
                return false;
        while (module_next(&m, &i)) {
        }
        return m.at == m.words;
}

static size_t type_size(struct module m, uint32_t type)
{
        struct instruction i;
        m.at = HEADER_WORDS;
        while (module_next(&m, &i)) {
                if (i.count < 2 || word(&m, i.at + 1) != type)
                        continue;
                if (i.op == OP_TYPE_BOOL)
                        return 1;
                if ((i.op == OP_TYPE_INT || i.op == OP_TYPE_FLOAT) && i.count >= 3)
                        return word(&m, i.at + 2) / 8;
        }
        return 0;
}

static size_t constant_size(struct module m, uint32_t name)
{
        struct instruction i;
        m.at = HEADER_WORDS;
        while (module_next(&m, &i)) {
                if (i.count < 3 || word(&m, i.at + 2) != name)
                        continue;
                if (i.op == OP_SPEC_CONSTANT_TRUE || i.op == OP_SPEC_CONSTANT_FALSE)
                        return 1;
                if (i.op == OP_SPEC_CONSTANT)
                        return type_size(m, word(&m, i.at + 1));
        }
        return 0;
}

size_t spirv_constant_size(struct bytes il, uint32_t id)
{
        struct module m;
        struct instruction i;
        if (!module_open(il, &m))
                return 0;
        while (module_next(&m, &i)) {
                if (i.op == OP_DECORATE && i.count >= 4 &&
                    word(&m, i.at + 2) == DECORATION_SPEC_ID && word(&m, i.at + 3) == id)
                        return constant_size(m, word(&m, i.at + 1));
        }
        return 0;
}
