/* base/mem.h under names that no other library has: lwIP has a mem_free. */
#ifndef SPANCL_NANO_PORT_MEM_H
#define SPANCL_NANO_PORT_MEM_H

#define mem_alloc   nano_mem_alloc
#define mem_zalloc  nano_mem_zalloc
#define mem_realloc nano_mem_realloc
#define mem_free    nano_mem_free

#include_next "base/mem.h"

#endif
