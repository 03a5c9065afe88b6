#include "base/lz4.h"

#ifdef SPANCL_HAVE_LZ4

#include <dlfcn.h>
#include <lz4.h>
#include <pthread.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static __typeof__(&LZ4_compress_default) pack;
static __typeof__(&LZ4_decompress_safe) unpack;

static void load(void)
{
        void *lib = dlopen("liblz4.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!lib)
                return;
        pack = (__typeof__(pack))dlsym(lib, "LZ4_compress_default");
        unpack = (__typeof__(unpack))dlsym(lib, "LZ4_decompress_safe");
}

bool lz4_is_here(void)
{
        pthread_once(&once, load);
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
