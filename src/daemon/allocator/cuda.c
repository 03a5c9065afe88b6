#include "daemon/allocator/cuda.h"

#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/process/library.h"

#define LOG "allocator"

enum {
        ALLOCATION_PINNED = 1,
        HANDLE_FD = 1,
        LOCATION_DEVICE = 1,
        DEVICES_MAX = 256,
};

/* CUmemAllocationProp. */
struct properties {
        int type, handle_types;
        struct {
                int type, id;
        } location;
        void *windows;
        struct {
                uint8_t compression, rdma;
                uint16_t usage;
                uint8_t reserved[4];
        } flags;
};

/* The functions of the library that are used. Each returns 0 if it has worked. */
struct cuda {
        int (*init)(unsigned flags);
        int (*count)(int *ret);
        int (*device)(int *ret, int ordinal);
        int (*uuid)(uint8_t ret[BACKEND_DEVICE_NAME], int device);
        int (*create)(uint64_t *ret, size_t size, const struct properties *p, uint64_t flags);
        int (*export)(void *ret, uint64_t handle, int type, uint64_t flags);
        int (*release)(uint64_t handle);
};

/* Load the library and start the driver. False: the log says why. */
static bool start(struct cuda *c)
{
        static const char name[] = "libcuda.so.1";
        struct library *library = library_load(name, LIBRARY_FOR_EVER);
        const struct {
                const char *name;
                void *to;
        } all[] = {
                { "cuInit", &c->init },          { "cuDeviceGetCount", &c->count },
                { "cuDeviceGet", &c->device },   { "cuDeviceGetUuid", &c->uuid },
                { "cuMemCreate", &c->create },   { "cuMemExportToShareableHandle", &c->export },
                { "cuMemRelease", &c->release },
        };
        if (!library) {
                log_info(LOG, "no device memory is shared: %s", library_error());
                return false;
        }
        for (size_t i = 0; i < array_size(all); i++) {
                void *found = library_symbol(library, all[i].name);
                if (!found) {
                        log_info(LOG, "no device memory is shared: %s lacks %s", name, all[i].name);
                        return false;
                }
                memcpy(all[i].to, &found, sizeof(found));
        }
        int r = c->init(0);
        if (r)
                log_warn(LOG, "no device memory is shared: cuInit gives %d", r);
        return !r;
}

/* Find CUDA's number of the device. */
static bool find(const struct cuda *c, const uint8_t device[BACKEND_DEVICE_NAME], int *ret)
{
        int count = 0;
        uint8_t own[BACKEND_DEVICE_NAME];
        if (c->count(&count))
                return false;
        for (int i = 0; i < count && i < DEVICES_MAX; i++)
                if (!c->device(ret, i) && !c->uuid(own, *ret) && !memcmp(own, device, sizeof(own)))
                        return true;
        return false;
}

int cuda_export(const uint8_t device[BACKEND_DEVICE_NAME], uint64_t size, int *ret_fd)
{
        static struct cuda c;
        static enum { NEW, STARTED, FAILED } state;
        uint64_t handle;
        int number, fd = -1;
        if (state == NEW)
                state = start(&c) ? STARTED : FAILED;
        if (state == FAILED || !find(&c, device, &number))
                return SP_E_UNSUPP;
        const struct properties p = { .type = ALLOCATION_PINNED,
                                      .handle_types = HANDLE_FD,
                                      .location = { LOCATION_DEVICE, number } };
        int r = c.create(&handle, (size_t)size, &p, 0);
        if (r) {
                log_info(LOG, "cuMemCreate gives %d", r);
                return SP_E_NOMEM;
        }
        r = c.export(&fd, handle, HANDLE_FD, 0);
        if (r)
                log_info(LOG, "cuMemExportToShareableHandle gives %d", r);
        (void)c.release(handle); /* the descriptor keeps the memory */
        if (r)
                return SP_E_NOMEM;
        *ret_fd = fd;
        return 0;
}
