#include "engine/staging.h"

#include "base/mem.h"

void *staging_get(struct staging *s)
{
        return s->count ? s->kept[--s->count] : mem_alloc_bulk(STAGING_CHUNK);
}

void staging_put(struct staging *s, void *chunk)
{
        if (chunk && s->count < STAGING_KEPT)
                s->kept[s->count++] = chunk;
        else
                mem_free(chunk);
}

void staging_fini(struct staging *s)
{
        while (s->count)
                mem_free(s->kept[--s->count]);
}
