#include "engine/transfer/staging.h"

#include "base/mem.h"

static bool is_backends(const struct staging *s, const void *chunk)
{
        for (size_t i = 0; i < s->slab_count; i++)
                if ((uintptr_t)chunk - (uintptr_t)s->slabs[i] < STAGING_SLAB)
                        return true;
        return false;
}

/* Take a slab of the bounce buffer, if the backend can use it. */
static void *bounce_slab(struct staging *s)
{
        void *slab = s->bounce_get ? s->bounce_get(s->user) : NULL;
        if (!slab || !s->be)
                return slab;
        void *at;
        if (s->be->host_memory(s->backend, s->domain, STAGING_SLAB, slab, &at) == CL_SUCCESS)
                return at;
        s->bounce_put(s->user, slab);
        s->bounce_get = NULL;
        return NULL;
}

/* Add a slab. If the backend gives none, it is never asked again. */
static void add_slab(struct staging *s)
{
        if (s->slab_count == STAGING_SLABS)
                return;
        void *slab = bounce_slab(s);
        if (!slab && s->be &&
            s->be->host_memory(s->backend, s->domain, STAGING_SLAB, NULL, &slab) < 0)
                s->be = NULL;
        if (!slab)
                return;
        s->slabs[s->slab_count++] = slab;
        for (size_t at = STAGING_SLAB; at; at -= STAGING_CHUNK)
                s->kept[s->count++] = (uint8_t *)slab + at - STAGING_CHUNK;
}

void *staging_get(struct staging *s, size_t size)
{
        if (size > STAGING_CHUNK || size <= (s->be ? STAGING_TINY : STAGING_SMALL))
                return mem_alloc_bulk(size);
        if (!s->count)
                add_slab(s);
        if (s->count)
                return s->kept[--s->count];
        return mem_alloc_bulk(size <= STAGING_SMALL ? size : STAGING_CHUNK);
}

void staging_put(struct staging *s, void *chunk, size_t size)
{
        /* If there is memory of the backend, other memory is not worth keeping. */
        bool keep = size > STAGING_SMALL && size <= STAGING_CHUNK && !s->slab_count &&
                    s->count < STAGING_KEPT;
        if (chunk && (keep || is_backends(s, chunk)))
                s->kept[s->count++] = chunk;
        else
                mem_free(chunk);
}

void staging_fini(struct staging *s)
{
        while (s->count) {
                void *chunk = s->kept[--s->count];
                if (!is_backends(s, chunk))
                        mem_free(chunk);
        }
}
