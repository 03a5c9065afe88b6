/* A card of Xilinx XRT that is a file: the "xclbin" is the file of an emulated accelerator, whose bytes are the
 * registers of every kernel on it. Only kernels whose names begin with "acc" are there. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>

struct card {
        uint8_t *bytes;
        size_t size;
};

xrtDeviceHandle xrtDeviceOpen(unsigned int index)
{
        return index ? NULL : calloc(1, sizeof(struct card));
}

int xrtDeviceClose(xrtDeviceHandle device)
{
        struct card *c = device;
        if (c->bytes)
                munmap(c->bytes, c->size);
        free(c);
        return 0;
}

int xrtDeviceLoadXclbinFile(xrtDeviceHandle device, const char *path)
{
        struct card *c = device;
        struct stat st;
        int fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -1;
        c->size = (size_t)st.st_size;
        void *p = mmap(NULL, c->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        close(fd);
        c->bytes = p == MAP_FAILED ? NULL : p;
        return c->bytes ? 0 : -1;
}

int xrtDeviceGetXclbinUUID(xrtDeviceHandle device, xuid_t ret)
{
        memset(ret, 7, sizeof(xuid_t));
        return ((struct card *)device)->bytes ? 0 : -1;
}

xrtKernelHandle xrtPLKernelOpenExclusive(xrtDeviceHandle device, const xuid_t id, const char *name)
{
        return id[0] == 7 && !strncmp(name, "acc", 3) ? device : NULL;
}

int xrtKernelClose(xrtKernelHandle kernel)
{
        return kernel ? 0 : -1;
}

static uint32_t *word(struct card *c, uint32_t offset)
{
        return offset % 4 || c->size < 4 || offset > c->size - 4
                       ? NULL
                       : (uint32_t *)(void *)(c->bytes + offset);
}

int xrtKernelReadRegister(xrtKernelHandle kernel, uint32_t offset, uint32_t *ret)
{
        uint32_t *p = word(kernel, offset);
        if (p)
                *ret = __atomic_load_n(p, __ATOMIC_RELAXED);
        return p ? 0 : -1;
}

int xrtKernelWriteRegister(xrtKernelHandle kernel, uint32_t offset, uint32_t value)
{
        uint32_t *p = word(kernel, offset);
        if (p)
                __atomic_store_n(p, value, __ATOMIC_RELAXED);
        return p ? 0 : -1;
}
