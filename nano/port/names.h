/* Names of base/mem.h that no other library has: lwIP has a mem_free. The compiler includes this file first. */
#ifndef SPANCL_NANO_NAMES_H
#define SPANCL_NANO_NAMES_H

#define mem_alloc   nano_mem_alloc
#define mem_zalloc  nano_mem_zalloc
#define mem_realloc nano_mem_realloc
#define mem_free    nano_mem_free

#endif
