#include "base/mem.h"
#include "state.h"

static struct {
        uint8_t *begin, *at, *end;
} arena;

void nano_memory_open(void *memory, size_t size)
{
        arena.begin = arena.at = memory;
        arena.end = arena.begin + (size & ~(size_t)7);
}

size_t nano_memory_left(void)
{
        return (size_t)(arena.end - arena.at);
}

size_t nano_memory_used(void)
{
        return (size_t)(arena.at - arena.begin);
}

void nano_memory_close(void)
{
        arena.end = arena.at;
}

void *mem_alloc(size_t size)
{
        const size_t left = (size_t)(arena.end - arena.at);
        if (size > left || bytes_pad8(size) > left)
                return NULL;
        void *p = arena.at;
        arena.at += bytes_pad8(size);
        return p;
}

void *mem_zalloc(size_t size)
{
        void *p = mem_alloc(size);
        return p ? memset(p, 0, size) : NULL;
}

/* No block grows: buffers have the size that they need. */
void *mem_realloc(void *p, size_t size)
{
        return p ? NULL : mem_alloc(size);
}

void mem_free(void *p)
{
        (void)p; /* the arena goes as a whole */
}
