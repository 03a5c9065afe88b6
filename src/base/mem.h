/* Memory: malloc and friends behind one place, so that tests can make each allocation fail in turn.
 * Thread-safe. */
#ifndef SPANCL_BASE_MEM_H
#define SPANCL_BASE_MEM_H

#include <stddef.h>

/* They return NULL when out of memory, or when mem_fail_at says so. mem_zalloc zeroes. */
void *mem_alloc(size_t size);
void *mem_zalloc(size_t size);
void *mem_realloc(void *p, size_t size);
char *mem_strdup(const char *s);
void *mem_dup(const void *p, size_t size);
/* For large data that is copied: uses huge pages where the system has them. */
void *mem_alloc_bulk(size_t size);
void mem_free(void *p);

/* Have the system give all pages of new memory now, not when each is first written. Sets a byte of each page to 0. */
void mem_touch(void *p, size_t size);

/* Let the n-th allocation from now on fail (1 = the next); 0 = none. For tests. */
void mem_fail_at(unsigned long n);

/* The number of allocated blocks of this process; always 0 in builds without SPANCL_COUNT_BLOCKS. */
long mem_live(void);

/* Move a pointer out of a variable, leaving NULL: the end of a constructor. */
#define steal(p)                            \
        __extension__({                     \
                __typeof__(p) steal_ = (p); \
                (p) = NULL;                 \
                steal_;                     \
        })

/* Call `f(&variable)` when it goes out of scope. */
#define auto_clean(f) __attribute__((cleanup(f)))

#define container_of(p, type, member) ((type *)(void *)((char *)(p)-offsetof(type, member)))
#define array_size(a)                 (sizeof(a) / sizeof((a)[0]))

#endif
