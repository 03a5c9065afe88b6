#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "os/vm.h"

static atomic_ulong fail_countdown;

/* Builds for tests count blocks. In other builds an atomic addition for each would cost too much. */
#ifdef SPANCL_COUNT_BLOCKS
static atomic_long live;

static void *counted(void *p)
{
        if (p)
                atomic_fetch_add_explicit(&live, 1, memory_order_relaxed);
        return p;
}

static void uncounted(const void *p)
{
        if (p)
                atomic_fetch_sub_explicit(&live, 1, memory_order_relaxed);
}

long mem_live(void)
{
        return atomic_load(&live);
}
#else
static void *counted(void *p)
{
        return p;
}

static void uncounted(const void *p)
{
        (void)p;
}

long mem_live(void)
{
        return 0;
}
#endif

void mem_fail_at(unsigned long n)
{
        atomic_store(&fail_countdown, n);
}

static int must_fail(void)
{
        unsigned long n = atomic_load_explicit(&fail_countdown, memory_order_relaxed);
        return __builtin_expect(n != 0, 0) && atomic_fetch_sub(&fail_countdown, 1) == 1;
}

void *mem_alloc(size_t size)
{
        return must_fail() ? NULL : counted(malloc(size ? size : 1));
}

void *mem_zalloc(size_t size)
{
        /* glibc's calloc does not use the thread's cache. That makes small blocks expensive, and
         * freeing them, too. Large blocks may be zero already. */
        enum { SMALL = 1024 };
        if (size > SMALL)
                return must_fail() ? NULL : counted(calloc(1, size));
        void *p = mem_alloc(size);
        if (p)
                memset(p, 0, size);
        return p;
}

void *mem_realloc(void *p, size_t size)
{
        if (must_fail())
                return NULL;
        void *q = realloc(p, size ? size : 1);
        return p ? q : counted(q);
}

void *mem_dup(const void *p, size_t size)
{
        void *q = mem_alloc(size);
        if (q && size)
                memcpy(q, p, size);
        return q;
}

char *mem_strdup(const char *s)
{
        return mem_dup(s, strlen(s) + 1);
}

void *mem_alloc_bulk(size_t size)
{
        enum { HUGE_PAGE = 2 << 20 };
        void *p = NULL;
        if (size < HUGE_PAGE)
                return mem_alloc(size);
        if (must_fail() || posix_memalign(&p, HUGE_PAGE, size))
                return NULL;
        vm_prefer_large_pages(p, size);
        return counted(p);
}

void mem_free(void *p)
{
        uncounted(p);
        free(p);
}

void mem_touch(void *p, size_t size)
{
        enum { PAGE = 4096 }; /* pages of other systems are larger */
        volatile unsigned char *bytes = p;
        for (size_t at = 0; at < size; at += PAGE)
                bytes[at] = 0;
}
