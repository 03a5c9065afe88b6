#include "engine/program/content.h"

#include "base/mem.h"

void content_store_init(struct content_store *s)
{
        list_init(&s->contents);
}

struct content *content_ref(struct content *c)
{
        atomic_fetch_add(&c->refs, 1);
        return c;
}

void content_unref(struct content *c)
{
        if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
                return;
        buf_fini(&c->data);
        mem_free(c);
}

static void store_drop(struct content_store *s, struct content *c)
{
        list_remove(&c->link);
        s->count--;
        s->bytes -= c->data.size;
        content_unref(c);
}

void content_store_fini(struct content_store *s)
{
        while (s->count)
                store_drop(s, list_entry(s->contents.next, struct content, link));
}

struct content *content_get(struct content_store *s, const uint8_t digest[BLAKE2B_SIZE])
{
        list_each(c, &s->contents, struct content, link)
        {
                if (memcmp(c->digest, digest, BLAKE2B_SIZE) != 0)
                        continue;
                list_remove(&c->link);
                list_append(s->contents.next, &c->link);
                return content_ref(c);
        }
        return NULL;
}

int content_put(struct content_store *s, struct bytes data, struct content **ret)
{
        uint8_t digest[BLAKE2B_SIZE];
        blake2b_of(data, digest);
        struct content *c = content_get(s, digest);
        if (!c) {
                c = mem_zalloc(sizeof(*c));
                if (!c || buf_put(&c->data, data.data, data.size) < 0) {
                        mem_free(c);
                        return SP_E_NOMEM;
                }
                memcpy(c->digest, digest, sizeof(digest));
                atomic_init(&c->refs, 2);
                list_init(&c->link);
                list_append(s->contents.next, &c->link);
                s->count++;
                s->bytes += data.size;
                while (s->bytes > CONTENT_STORE_MAX && s->count > CONTENT_KEEP)
                        store_drop(s, list_entry(s->contents.prev, struct content, link));
        }
        *ret = c;
        return 0;
}
