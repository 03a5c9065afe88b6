#include "backend/almaif/window.h"

#include <stdio.h>

#if __has_include(<xrt/xrt_device.h>) && __has_include(<xrt/xrt_kernel.h>)
#include <xrt/xrt_device.h>
#include <xrt/xrt_kernel.h>

/* All of the accelerator is seen through the registers of an XRT kernel, 32 bits at a time. */
static int open_xrt(struct window *w, const struct place *p, char error[WINDOW_ERROR_SIZE])
{
        xuid_t id;
        w->handle[0] = xrtDeviceOpen(p->card);
        if (!w->handle[0] || xrtDeviceLoadXclbinFile(w->handle[0], p->path)) {
                snprintf(error, WINDOW_ERROR_SIZE, "XRT card %u does not take %.200s", p->card,
                         p->path);
                return SP_E_NOENT;
        }
        if (!xrtDeviceGetXclbinUUID(w->handle[0], id))
                w->handle[1] = xrtPLKernelOpenExclusive(w->handle[0], id, p->kernel);
        if (!w->handle[1]) {
                snprintf(error, WINDOW_ERROR_SIZE,
                         "XRT card %u has no kernel %.120s, or it is in use", p->card, p->kernel);
                return SP_E_INVAL;
        }
        w->limit = p->size;
        return 0;
}

static void close_xrt(struct window *w)
{
        if (w->handle[1])
                xrtKernelClose(w->handle[1]);
        if (w->handle[0])
                xrtDeviceClose(w->handle[0]);
}

/* The fences are for the device, of which the thread sanitizer knows nothing. */
#ifdef __SANITIZE_THREAD__
#pragma GCC diagnostic ignored "-Wtsan"
#endif

static uint32_t load_xrt(struct window *w, uint64_t at)
{
        uint32_t v = 0;
        xrtKernelReadRegister(w->handle[1], (uint32_t)at, &v);
        __atomic_thread_fence(__ATOMIC_ACQUIRE);
        return v;
}

static void store_xrt(struct window *w, uint64_t at, uint32_t value)
{
        __atomic_thread_fence(__ATOMIC_RELEASE);
        xrtKernelWriteRegister(w->handle[1], (uint32_t)at, value);
}

static void wait_xrt(struct window *w, uint64_t word, uint32_t seen, uint64_t timeout_ns)
{
        window_mem.wait(w, word, seen, timeout_ns);
}

const struct window_ops window_xrt = { .name = "xrt",
                                       .open = open_xrt,
                                       .close = close_xrt,
                                       .load32 = load_xrt,
                                       .store32 = store_xrt,
                                       .wait = wait_xrt };
#else

static int open_xrt(struct window *w, const struct place *p, char error[WINDOW_ERROR_SIZE])
{
        snprintf(error, WINDOW_ERROR_SIZE, "this build has no XRT: its headers were not there");
        return SP_E_UNSUPP;
}

static void close_xrt(struct window *w)
{
}

const struct window_ops window_xrt = { .name = "xrt", .open = open_xrt, .close = close_xrt };
#endif
