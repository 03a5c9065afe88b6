#include "proto/wire.h"

#include "proto/args.h"
#include "proto/info.h"

/* ---- encoding ----------------------------------------------------------------------------- */

/* A message is measured first, then written into room reserved once. If it exceeds its limits it
 * has no size, because the other side would refuse it. */
struct measure {
        size_t size;
        bool too_large;
};

static void measure_u64s(struct measure *m, size_t count, uint64_t max)
{
        m->too_large |= count > max;
        m->size += 8 + (count > max ? 0 : count * 8);
}

static void measure_blob(struct measure *m, size_t size, uint64_t max)
{
        m->too_large |= size > max;
        m->size += 8 + (size > max ? 0 : bytes_pad8(size));
}

#define MSG(id, name, doc)                                                \
        static struct measure measure_##name(const struct wire_##name *m) \
        {                                                                 \
                struct measure all = { WIRE_HEADER_SIZE, false };
#define U64(f, lo, hi)     all.size += 8;
#define S64(f)             all.size += 8;
#define REF(f, type)       all.size += 8;
#define OPT(f, type)       all.size += 8;
#define ANY(f)             all.size += 8;
#define U64S(f, max)       measure_u64s(&all, m->f.count, max);
#define REFS(f, type, max) measure_u64s(&all, m->f.count, max);
#define BYTES(f, max)      measure_blob(&all, m->f.size, max);
#define STR(f, max)        measure_blob(&all, m->f.size, max);
#define INFO(f, max)       measure_blob(&all, m->f.size, max);
#define ARGS(f, max)       measure_blob(&all, m->f.size, max);
#define END(name)   \
        return all; \
        }
#include "proto/schema/all.def"

/* Make room and write the header. SP_E_LIMIT, SP_E_NOMEM. */
static int put_header(struct buf *b, unsigned id, struct measure m, uint8_t **ret)
{
        if (m.too_large || m.size > WIRE_MESSAGE_MAX)
                return SP_E_LIMIT;
        int r = buf_reserve(b, m.size);
        if (r < 0)
                return r;
        uint8_t *p = b->data + b->size;
        bytes_put_u16(p, (uint16_t)id);
        bytes_put_u16(p + 2, 0);
        bytes_put_u32(p + 4, (uint32_t)m.size);
        b->size += m.size;
        *ret = p + WIRE_HEADER_SIZE;
        return 0;
}

static uint8_t *put_slot(uint8_t *p, uint64_t v)
{
        bytes_put_u64(p, v);
        return p + 8;
}

static uint8_t *put_u64s(uint8_t *p, struct wire_u64s v)
{
        p = put_slot(p, v.count);
        for (size_t i = 0; i < v.count; i++)
                p = put_slot(p, v.data[i]);
        return p;
}

static uint8_t *put_blob(uint8_t *p, struct bytes v)
{
        p = put_slot(p, v.size);
        size_t padded = bytes_pad8(v.size);
        if (v.size)
                memcpy(p, v.data, v.size);
        memset(p + v.size, 0, padded - v.size);
        return p + padded;
}

#define MSG(id, name, doc)                                              \
        int wire_put_##name(struct buf *b, const struct wire_##name *m) \
        {                                                               \
                uint8_t *p;                                             \
                int r = put_header(b, id, measure_##name(m), &p);       \
                if (r < 0)                                              \
                        return r;
#define U64(f, lo, hi)     p = put_slot(p, m->f);
#define S64(f)             p = put_slot(p, (uint64_t)m->f);
#define REF(f, type)       p = put_slot(p, m->f);
#define OPT(f, type)       p = put_slot(p, m->f);
#define ANY(f)             p = put_slot(p, m->f);
#define U64S(f, max)       p = put_u64s(p, m->f);
#define REFS(f, type, max) p = put_u64s(p, m->f);
#define BYTES(f, max)      p = put_blob(p, m->f);
#define STR(f, max)        p = put_blob(p, m->f);
#define INFO(f, max)       p = put_blob(p, m->f);
#define ARGS(f, max)       p = put_blob(p, m->f);
#define END(name) \
        (void)p;  \
        return 0; \
        }
#include "proto/schema/all.def"

/* ---- decoding ----------------------------------------------------------------------------- */

/* The rest of a message while it is decoded; once `bad`, it stays so. */
struct cursor {
        const uint8_t *p;
        size_t left;
        bool bad;
};

static struct cursor cursor_open(struct bytes msg, unsigned id)
{
        if (msg.size < WIRE_HEADER_SIZE || wire_message_id(msg.data) != id ||
            bytes_get_u16((const uint8_t *)msg.data + 2) || wire_message_size(msg.data) != msg.size)
                return (struct cursor){ .p = (const uint8_t *)"", .bad = true };
        return (struct cursor){ (const uint8_t *)msg.data + WIRE_HEADER_SIZE,
                                msg.size - WIRE_HEADER_SIZE, false };
}

static uint64_t get_slot(struct cursor *c)
{
        if (c->left < 8) {
                c->bad = true;
                return 0;
        }
        uint64_t v = bytes_get_u64(c->p);
        c->p += 8;
        c->left -= 8;
        return v;
}

static uint64_t get_u64(struct cursor *c, uint64_t lo, uint64_t hi)
{
        uint64_t v = get_slot(c);
        c->bad |= v < lo || v > hi;
        return v;
}

static bool id_is(uint64_t id, enum object_type type)
{
        return object_id_type(id) == type && id << 8;
}

static uint64_t get_ref(struct cursor *c, enum object_type type)
{
        uint64_t v = get_slot(c);
        c->bad |= !id_is(v, type);
        return v;
}

static uint64_t get_opt(struct cursor *c, enum object_type type)
{
        uint64_t v = get_slot(c);
        c->bad |= v && !id_is(v, type);
        return v;
}

static uint64_t get_any(struct cursor *c)
{
        uint64_t v = get_slot(c);
        c->bad |= !object_id_valid(v);
        return v;
}

static struct wire_u64s get_u64s(struct cursor *c, uint64_t max)
{
        uint64_t n = get_slot(c);
        if (n > max || n > c->left / 8) {
                c->bad = true;
                return (struct wire_u64s){ 0 };
        }
        struct wire_u64s v = { (const uint64_t *)(const void *)c->p, (size_t)n };
        c->p += n * 8;
        c->left -= n * 8;
        return v;
}

static struct wire_u64s get_refs(struct cursor *c, enum object_type type, uint64_t max)
{
        struct wire_u64s v = get_u64s(c, max);
        for (size_t i = 0; i < v.count; i++)
                c->bad |= !id_is(wire_u64s_at(v, i), type);
        return v;
}

static struct bytes get_blob(struct cursor *c, uint64_t max)
{
        uint64_t n = get_slot(c);
        if (n > max || n > c->left || bytes_pad8(n) > c->left) {
                c->bad = true;
                return (struct bytes){ 0 };
        }
        struct bytes v = { c->p, (size_t)n };
        c->p += bytes_pad8(n);
        c->left -= bytes_pad8(n);
        for (const uint8_t *pad = (const uint8_t *)v.data + v.size; pad < c->p; pad++)
                c->bad |= *pad != 0;
        return v;
}

static struct bytes get_str(struct cursor *c, uint64_t max)
{
        struct bytes v = get_blob(c, max);
        c->bad |= v.size && memchr(v.data, 0, v.size);
        return v;
}

static struct bytes get_info(struct cursor *c, uint64_t max)
{
        struct bytes v = get_blob(c, max);
        c->bad |= info_check(v) < 0;
        return v;
}

static struct bytes get_args(struct cursor *c, uint64_t max)
{
        struct bytes v = get_blob(c, max);
        c->bad |= args_check(v) < 0;
        return v;
}

#define MSG(id, name, doc)                                             \
        int wire_get_##name(struct bytes msg, struct wire_##name *ret) \
        {                                                              \
                struct cursor c = cursor_open(msg, id);
#define U64(f, lo, hi)     ret->f = get_u64(&c, lo, hi);
#define S64(f)             ret->f = (int64_t)get_slot(&c);
#define REF(f, type)       ret->f = get_ref(&c, OBJECT_##type);
#define OPT(f, type)       ret->f = get_opt(&c, OBJECT_##type);
#define ANY(f)             ret->f = get_any(&c);
#define U64S(f, max)       ret->f = get_u64s(&c, max);
#define REFS(f, type, max) ret->f = get_refs(&c, OBJECT_##type, max);
#define BYTES(f, max)      ret->f = get_blob(&c, max);
#define STR(f, max)        ret->f = get_str(&c, max);
#define INFO(f, max)       ret->f = get_info(&c, max);
#define ARGS(f, max)       ret->f = get_args(&c, max);
#define END(name)                                \
        return c.bad || c.left ? SP_E_PROTO : 0; \
        }
#include "proto/schema/all.def"

int wire_dispatch(const struct wire_handlers *h, void *user, struct bytes msg)
{
        if (msg.size < WIRE_HEADER_SIZE)
                return SP_E_PROTO;
        switch (wire_message_id(msg.data)) {
#define MSG(id, name, doc)                        \
        case id: {                                \
                struct wire_##name m;             \
                int r = wire_get_##name(msg, &m); \
                if (r < 0 || !h->name)            \
                        return SP_E_PROTO;        \
                return h->name(user, &m);         \
        }
#include "proto/schema/no_fields.def"
#define END(name)
#include "proto/schema/all.def"
        default:
                return SP_E_PROTO;
        }
}

bool wire_command_notify(uint8_t *msg, uint64_t event, uint64_t queue)
{
        uint8_t *body = msg + WIRE_HEADER_SIZE;
        if (wire_message_size(msg) < WIRE_HEADER_SIZE + 3 * 8 || bytes_get_u64(body) != event ||
            bytes_get_u64(body + 8) != queue)
                return false;
        bytes_put_u64(body + 16, bytes_get_u64(body + 16) | COMMAND_NOTIFY);
        return true;
}
