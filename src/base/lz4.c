#include "base/lz4.h"

#ifdef SPANCL_HAVE_LZ4

#include <lz4.h>
#include <stddef.h>

#include "os/once.h"
#include "os/process/library.h"

static struct once once = ONCE_INIT;
static __typeof__(&LZ4_compress_default) pack;
static __typeof__(&LZ4_decompress_safe) unpack;

static void load(void)
{
        struct library *lib = library_load("liblz4.so.1", LIBRARY_FOR_EVER);
        if (!lib)
                return;
        pack = (__typeof__(pack))library_symbol(lib, "LZ4_compress_default");
        unpack = (__typeof__(unpack))library_symbol(lib, "LZ4_decompress_safe");
}

bool lz4_is_here(void)
{
        once_run(&once, load);
        return pack && unpack;
}

size_t lz4_pack(const void *plain, size_t size, void *ret, size_t room)
{
        int n = pack(plain, ret, (int)size, (int)room);
        return n > 0 ? (size_t)n : 0;
}

bool lz4_unpack(const void *packed, size_t packed_size, void *ret, size_t size)
{
        return unpack(packed, ret, (int)packed_size, (int)size) == (int)size;
}

#else

bool lz4_is_here(void)
{
        return false;
}

size_t lz4_pack(const void *plain, size_t size, void *ret, size_t room)
{
        return 0;
}

bool lz4_unpack(const void *packed, size_t packed_size, void *ret, size_t size)
{
        return false;
}

#endif
