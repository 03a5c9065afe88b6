#include "backend/almaif/window.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "os/file.h"
#include "os/file_info.h"
#include "os/futex.h"
#include "os/poll.h"
#include "os/thread.h"
#include "os/vm.h"

enum { PAUSE_NS = 50000 };

const char *window_uio_class = "/sys/class/uio";

/* ---- words ---------------------------------------------------------------------------------- */

static void *at_map(const struct window *w, uint64_t at)
{
        return w->map + at;
}

uint32_t window_load32(struct window *w, uint64_t at)
{
        if (!w->map)
                return w->ops->load32(w, at);
        return __atomic_load_n((uint32_t *)at_map(w, at), __ATOMIC_ACQUIRE);
}

void window_store32(struct window *w, uint64_t at, uint32_t value)
{
        if (!w->map)
                w->ops->store32(w, at, value);
        else
                __atomic_store_n((uint32_t *)at_map(w, at), value, __ATOMIC_RELEASE);
}

uint64_t window_load64(struct window *w, uint64_t at)
{
        if (w->map && at % 8 == 0)
                return __atomic_load_n((uint64_t *)at_map(w, at), __ATOMIC_ACQUIRE);
        /* Read both halves; read again if the upper one has changed meanwhile. */
        uint32_t high = window_load32(w, at + 4), low, before;
        do {
                before = high;
                low = window_load32(w, at);
                high = window_load32(w, at + 4);
        } while (high != before);
        return (uint64_t)high << 32 | low;
}

void window_store64(struct window *w, uint64_t at, uint64_t value)
{
        if (w->map && at % 8 == 0) {
                __atomic_store_n((uint64_t *)at_map(w, at), value, __ATOMIC_RELEASE);
                return;
        }
        window_store32(w, at + 4, (uint32_t)(value >> 32));
        window_store32(w, at, (uint32_t)value);
}

/* Memory does not add by itself. */
void window_add64(struct window *w, uint64_t at, uint64_t value)
{
        if (w->futex)
                __atomic_fetch_add((uint64_t *)at_map(w, at), value, __ATOMIC_SEQ_CST);
        else
                window_store64(w, at, value);
}

uint32_t window_exchange32(struct window *w, uint64_t at, uint32_t value)
{
        if (!w->futex)
                return 0;
        return __atomic_exchange_n((uint32_t *)at_map(w, at), value, __ATOMIC_SEQ_CST);
}

/* ---- bytes ---------------------------------------------------------------------------------- */

/* Device memory wants aligned accesses of whole words: the ends are read, changed, and written back. */
void window_read(struct window *w, uint64_t at, void *to, size_t size)
{
        uint8_t *p = to;
        if (w->futex) {
                memcpy(to, at_map(w, at), size);
                return;
        }
        while (size) {
                unsigned skip = at % 4;
                uint32_t v = window_load32(w, at - skip);
                size_t n = size < 4 - skip ? size : 4 - skip;
                memcpy(p, (uint8_t *)&v + skip, n);
                p += n;
                at += n;
                size -= n;
        }
}

void window_write(struct window *w, uint64_t at, const void *from, size_t size)
{
        const uint8_t *p = from;
        if (w->futex) {
                memcpy(at_map(w, at), from, size);
                return;
        }
        while (size) {
                unsigned skip = at % 4;
                size_t n = size < 4 - skip ? size : 4 - skip;
                uint32_t v = n < 4 ? window_load32(w, at - skip) : 0;
                memcpy((uint8_t *)&v + skip, p, n);
                window_store32(w, at - skip, v);
                p += n;
                at += n;
                size -= n;
        }
}

/* ---- sleeping ------------------------------------------------------------------------------- */

static void wait_futex(struct window *w, uint64_t word, uint32_t seen, uint64_t timeout_ns)
{
        futex_wait(at_map(w, word), seen, timeout_ns);
}

void window_wake(struct window *w, uint64_t at)
{
        if (w->futex)
                futex_wake(at_map(w, at));
}

static void wait_pause(struct window *w, uint64_t word, uint32_t seen, uint64_t timeout_ns)
{
        (void)thread_sleep(timeout_ns < PAUSE_NS ? timeout_ns : PAUSE_NS);
}

/* Read the interrupt's count, then enable the next one by writing 1. The caller polls again, so it
 * sees an interrupt that came before the write. */
static void wait_uio(struct window *w, uint64_t word, uint32_t seen, uint64_t timeout_ns)
{
        const uint32_t on = 1;
        uint32_t count;
        if (!file_write_all(w->irq_fd, &on, sizeof(on))) {
                wait_pause(w, word, seen, timeout_ns);
                return;
        }
        if (window_load32(w, word) != seen)
                return;
        struct pollfd p = { .fd = w->irq_fd, .events = POLLIN };
        if (poll(&p, 1, (int)(timeout_ns / 1000000u)) > 0)
                (void)!file_read(w->irq_fd, &count, sizeof(count));
}

/* ---- opening -------------------------------------------------------------------------------- */

static int failed(char *error, int status, const char *what)
{
        snprintf(error, WINDOW_ERROR_SIZE, "%.200s: %s", what, strerror(errno));
        return status;
}

int window_map(struct window *w, const char *name, uint64_t at, uint64_t limit, char *error)
{
        if (limit && (at >= limit || (w->size && w->size > limit - at))) {
                snprintf(error, WINDOW_ERROR_SIZE,
                         "%.200s has %#llx bytes; %#llx from %#llx on are not among them", name,
                         (unsigned long long)limit, (unsigned long long)w->size,
                         (unsigned long long)at);
                return SP_E_INVAL;
        }
        w->limit = limit ? limit - at : 0;
        if (!w->size)
                w->size = w->limit;
        uint64_t page = vm_page_size(), skip = at % page, map;
        if (!w->size || w->size > SIZE_MAX - page || at > INT64_MAX) {
                snprintf(error, WINDOW_ERROR_SIZE, "%.200s: no size is known", name);
                return SP_E_INVAL;
        }
        w->map_size = (size_t)(w->size + skip);
        if (vm_map_file(w->fd, at - skip, w->map_size, &map) < 0)
                return failed(error, SP_E_NOMEM, name);
        w->map = (uint8_t *)(uintptr_t)map + skip;
        return 0;
}

static int open_path(struct window *w, const char *path, bool uncached, char *error)
{
        w->fd = uncached ? file_open_uncached(path) : file_open_both(path, false);
        return w->fd < 0 ? failed(error, SP_E_NOENT, path) : 0;
}

static int open_file(struct window *w, const struct place *p, char error[WINDOW_ERROR_SIZE])
{
        struct file_info file;
        int r = open_path(w, p->path, false, error);
        if (!r && !file_info_of(w->fd, &file))
                return failed(error, SP_E_NOENT, p->path);
        return r ? r : window_map(w, p->path, w->base, file.size, error);
}

static int open_shm(struct window *w, const struct place *p, char error[WINDOW_ERROR_SIZE])
{
        w->futex = true;
        return open_file(w, p, error);
}

static int open_mem(struct window *w, const struct place *p, char error[WINDOW_ERROR_SIZE])
{
        int r = open_path(w, p->path, true, error);
        return r ? r : window_map(w, p->path, w->base, p->size ? p->base + p->size : 0, error);
}

/* Read a number that the kernel reports for the device's first map. */
static bool uio_number(const char *device, const char *what, uint64_t *ret)
{
        char path[WINDOW_PATH_SIZE], text[32];
        const char *name = strrchr(device, '/');
        snprintf(path, sizeof(path), "%.200s/%.64s/maps/map0/%s", window_uio_class,
                 name ? name + 1 : device, what);
        FILE *f = fopen(path, "re");
        bool ok = f && fgets(text, sizeof(text), f);
        if (f)
                fclose(f);
        if (ok)
                *ret = strtoull(text, NULL, 0);
        return ok;
}

static int open_uio(struct window *w, const struct place *p, char error[WINDOW_ERROR_SIZE])
{
        uint64_t address, size;
        int r = open_path(w, p->path, true, error);
        if (r)
                return r;
        if (!uio_number(p->path, "addr", &address) || !uio_number(p->path, "size", &size)) {
                snprintf(error, WINDOW_ERROR_SIZE, "%.200s is not a UIO device with a map",
                         p->path);
                return SP_E_INVAL;
        }
        if (!w->base)
                w->base = address;
        w->irq_fd = file_duplicate(w->fd);
        if (w->base < address || w->irq_fd < 0)
                return failed(error, SP_E_INVAL, p->path);
        return window_map(w, p->path, w->base - address, size, error);
}

void window_unmap(struct window *w)
{
        if (w->map)
                vm_unmap((uintptr_t)w->map & ~(uintptr_t)(vm_page_size() - 1), w->map_size);
        if (w->fd >= 0)
                (void)file_close(w->fd);
        if (w->irq_fd >= 0)
                (void)file_close(w->irq_fd);
}

int window_open(const struct place *p, uint64_t base, uint64_t size, struct window **ret,
                char error[WINDOW_ERROR_SIZE])
{
        struct window *w = mem_zalloc(sizeof(*w));
        if (!w) {
                snprintf(error, WINDOW_ERROR_SIZE, "out of memory");
                return SP_E_NOMEM;
        }
        *w = (struct window){ .ops = p->ops, .base = base, .size = size, .fd = -1, .irq_fd = -1 };
        int r = p->ops->open(w, p, error);
        if (r < 0) {
                window_close(w);
                return r;
        }
        *ret = w;
        return 0;
}

struct window *window_close(struct window *w)
{
        if (w) {
                w->ops->close(w);
                mem_free(w);
        }
        return NULL;
}

int window_lock(struct window *w, uint64_t at, uint64_t size)
{
        if (w->fd < 0 || file_lock_bytes(w->fd, w->base + at, size))
                return 0;
        return errno == EAGAIN || errno == EACCES ? SP_E_BUSY : 0;
}

const struct window_ops window_shm = {
        .name = "shm", .open = open_shm, .close = window_unmap, .wait = wait_futex
};
const struct window_ops window_mem = {
        .name = "mem", .open = open_mem, .close = window_unmap, .wait = wait_pause
};
const struct window_ops window_uio = {
        .name = "uio", .open = open_uio, .close = window_unmap, .wait = wait_uio
};
const struct window_ops window_pci = {
        .name = "pci", .open = open_file, .close = window_unmap, .wait = wait_pause
};
