#include "backend/almaif/accel.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/thread.h"

#define LOG "almaif"

enum { RESET_TRIES = 20000, RESET_PAUSE_NS = 500000, CORES_MAX = 65536, DATA_MIN = 1024 };

static int refuse(const struct accel *a, char error[SPEC_ERROR_SIZE], const char *fmt, ...)
        __attribute__((format(printf, 3, 4)));
static int refuse(const struct accel *a, char error[SPEC_ERROR_SIZE], const char *fmt, ...)
{
        va_list args;
        size_t n = (size_t)snprintf(error, SPEC_ERROR_SIZE, "%s: ", a->spec->text);
        va_start(args, fmt);
        vsnprintf(error + n, SPEC_ERROR_SIZE - n, fmt, args);
        va_end(args);
        return SP_E_INVAL;
}

static uint32_t get32(const struct accel *a, uint64_t at)
{
        return window_load32(a->window, at);
}

static uint64_t get64(const struct accel *a, uint64_t at)
{
        return window_load64(a->window, at);
}

/* 16-bit registers are read as halves of 32. */
static uint16_t get16(const struct accel *a, uint64_t at)
{
        return (uint16_t)(get32(a, at & ~(uint64_t)3) >> (at & 2 ? 16 : 0));
}

/* ---- what it is ----------------------------------------------------------------------------- */

#define BAD(a, error, name, value, wanted)                               \
        refuse(a, error, #name " (0x%03x) is 0x%llx: %s", ALMAIF_##name, \
               (unsigned long long)(value), wanted)

static int read_identity(struct accel *a, char error[SPEC_ERROR_SIZE])
{
        uint32_t status = get32(a, ALMAIF_STATUS), version = get32(a, ALMAIF_INTERFACE_VERSION);
        if (status > (ALMAIF_STATUS_STALLED | ALMAIF_STATUS_FROZEN | ALMAIF_STATUS_RESET))
                return BAD(a, error, STATUS, status, "it has three bits");
        if (version != a->spec->profile)
                return BAD(a, error, INTERFACE_VERSION, version,
                           a->spec->profile == 2 ? "profile=v2 wants 2" : "profile=v3 wants 3");
        a->vendor = get32(a, ALMAIF_DEVICE_CLASS);
        a->id = get32(a, ALMAIF_DEVICE_ID);
        a->cores = get32(a, ALMAIF_CORE_COUNT);
        if (!a->cores || a->cores > CORES_MAX)
                return BAD(a, error, CORE_COUNT, a->cores, "1 to 65536 are possible");
        a->bus_master = get64(a, ALMAIF_FEATURES) & ALMAIF_FEATURE_BUS_MASTER;
        a->pointer_size = 8;
        if (a->spec->profile == 3) {
                a->pointer_size = get32(a, ALMAIF_POINTER_SIZE);
                if (a->pointer_size != 4 && a->pointer_size != 8)
                        return BAD(a, error, POINTER_SIZE, a->pointer_size, "4 or 8 are possible");
        }
        return 0;
}

struct region_name {
        const char *name;
        unsigned start, size;
};

/* Where a memory lies in the window. */
static int read_region(struct accel *a, struct region *r, const struct region_name *n,
                       uint64_t size, char error[SPEC_ERROR_SIZE])
{
        uint64_t start = get64(a, n->start), base = a->bus_master ? a->window->base : 0;
        uint64_t limit = a->window->limit ? a->window->limit : UINT64_MAX / 2;
        if (a->spec->place.size && a->spec->place.size < limit)
                limit = a->spec->place.size;
        if (start < base || start - base < ALMAIF_CONTROL_SIZE)
                return refuse(a, error,
                              "%s_START (0x%03x) is 0x%llx: that is not behind the control "
                              "registers at 0x%llx",
                              n->name, n->start, (unsigned long long)start,
                              (unsigned long long)base);
        if (start % 8)
                return refuse(a, error, "%s_START (0x%03x) is 0x%llx: not a multiple of 8", n->name,
                              n->start, (unsigned long long)start);
        if (start - base > limit || size > limit - (start - base))
                return refuse(a, error,
                              "%s_SIZE (0x%03x) is 0x%llx: from 0x%llx on that is beyond the "
                              "0x%llx bytes of the accelerator",
                              n->name, n->size, (unsigned long long)size, (unsigned long long)start,
                              (unsigned long long)limit);
        *r = (struct region){ .at = start - base, .size = size };
        r->address = a->bus_master ? start : 0;
        return 0;
}

static int read_queue(struct accel *a, char error[SPEC_ERROR_SIZE])
{
        uint64_t size = a->queue.size, header = a->spec->profile == 3 ? ALMAIF_V3_HEADER_SIZE : 0;
        a->packets = size < header ? 0 : (size - header) / ALMAIF_PACKET_SIZE;
        /* v3's indices begin at 0 and do not wrap in practice: devices in the field have any number. */
        if (a->packets < 2 || (!header && (a->packets & (a->packets - 1))) ||
            header + a->packets * ALMAIF_PACKET_SIZE != size)
                return BAD(a, error, QUEUE_SIZE, size,
                           header ? "wanted are 64 bytes and 2 or more packets of 64"
                                  : "wanted is a power of two, 2 or more, of packets of 64 bytes");
        a->slots_at = a->queue.at + header;
        a->read_at = header ? a->queue.at + ALMAIF_V3_READ_INDEX : ALMAIF_READ_INDEX;
        a->write_at = header ? a->queue.at + ALMAIF_V3_WRITE_INDEX : ALMAIF_WRITE_INDEX;
        return 0;
}

static int read_kernels(struct accel *a, char error[SPEC_ERROR_SIZE])
{
        uint16_t ids[SPEC_IDS_MAX];
        unsigned count = a->spec->id_count;
        memcpy(ids, a->spec->ids, sizeof(ids));
        if (!count && a->spec->profile == 2) {
                count = get16(a, ALMAIF_KERNEL_COUNT);
                if (count > ALMAIF_KERNELS_MAX)
                        return BAD(a, error, KERNEL_COUNT, count, "at most 64 are possible");
                for (unsigned i = 0; i < count; i++)
                        ids[i] = get16(a, ALMAIF_KERNEL_IDS + 2 * i);
        }
        if (!count)
                return a->spec->profile == 2
                               ? BAD(a, error, KERNEL_COUNT, 0, "it can do nothing")
                               : refuse(a, error,
                                        "profile=v3 does not list kernels: ids= is wanted");
        for (unsigned i = 0; i < count; i++) {
                if (ids[i] == ALMAIF_KERNEL_COMPILED)
                        a->compiled = true;
                else
                        a->ids[a->id_count++] = ids[i];
        }
        return 0;
}

static int read_memories(struct accel *a, char error[SPEC_ERROR_SIZE])
{
        static const struct region_name config = { "CONFIG", ALMAIF_CONFIG_START,
                                                   ALMAIF_CONFIG_SIZE },
                                        queue = { "QUEUE", ALMAIF_QUEUE_START, ALMAIF_QUEUE_SIZE },
                                        data = { "DATA", ALMAIF_DATA_START, ALMAIF_DATA_SIZE };
        uint32_t config_size = get32(a, ALMAIF_CONFIG_SIZE);
        uint64_t data_size = get64(a, ALMAIF_DATA_SIZE);
        int r = config_size ? read_region(a, &a->config, &config, config_size, error) : 0;
        if (!r)
                r = read_region(a, &a->queue, &queue, get64(a, ALMAIF_QUEUE_SIZE), error);
        if (!r)
                r = read_queue(a, error);
        if (!r)
                r = read_region(a, &a->data, &data, data_size, error);
        if (!r && data_size < DATA_MIN)
                r = BAD(a, error, DATA_SIZE, data_size, "at least 1024 bytes are wanted");
        return r;
}

static uint64_t region_end(const struct region *r)
{
        return r->size ? r->at + r->size : 0;
}

static int open_window(struct accel *a, uint64_t size, char error[SPEC_ERROR_SIZE])
{
        char why[WINDOW_ERROR_SIZE];
        struct window *w;
        int r = window_open(&a->spec->place, a->spec->place.base, size, &w, why);
        if (r < 0) {
                refuse(a, error, "%s", why);
                return r;
        }
        window_close(a->window);
        a->window = w;
        return 0;
}

int accel_open(const struct almaif_spec *spec, struct accel *ret, char error[SPEC_ERROR_SIZE])
{
        struct accel a = { .spec = spec };
        int r = open_window(&a, ALMAIF_CONTROL_SIZE, error);
        if (!r)
                r = read_identity(&a, error);
        if (!r)
                r = read_memories(&a, error);
        if (!r)
                r = read_kernels(&a, error);
        if (!r && spec->shared_size && !a.bus_master)
                r = BAD(&a, error, FEATURES, 0, "shared= wants a bus master (bit 0)");
        uint64_t end = region_end(&a.config);
        if (region_end(&a.queue) > end)
                end = region_end(&a.queue);
        if (region_end(&a.data) > end)
                end = region_end(&a.data);
        if (!r)
                r = open_window(&a, end, error);
        if (r < 0) {
                a.window = window_close(a.window);
                return r;
        }
        *ret = a;
        return 0;
}

void accel_close(struct accel *a)
{
        if (a->started)
                window_store32(a->window, ALMAIF_COMMAND, ALMAIF_COMMAND_RESET);
        a->window = window_close(a->window);
        a->started = false;
}

/* ---- starting ------------------------------------------------------------------------------- */

/* A device of shared memory may be asleep. */
static void wake_device(struct accel *a)
{
        if (window_exchange32(a->window, ALMAIF_DEVICE_SLEEPS, 0))
                window_wake(a->window, a->write_at);
}

static void command(struct accel *a, uint32_t what)
{
        window_store32(a->window, ALMAIF_COMMAND, what);
        wake_device(a);
}

static int load_image(struct accel *a, char error[SPEC_ERROR_SIZE])
{
        if (a->image.size) {
                window_write(a->window, a->config.at, a->image.data, a->image.size);
                return 0;
        }
        if (!*a->spec->image)
                return 0;
        FILE *f = fopen(a->spec->image, "re");
        if (!f)
                return refuse(a, error, "%.200s: %s", a->spec->image, strerror(errno));
        uint8_t part[4096];
        uint64_t at = 0;
        size_t n;
        while ((n = fread(part, 1, sizeof(part), f)) && n <= a->config.size - at) {
                window_write(a->window, a->config.at + at, part, n);
                at += n;
        }
        fclose(f);
        return n ? refuse(a, error, "%.200s does not fit: CONFIG_SIZE (0x%03x) is 0x%llx",
                          a->spec->image, ALMAIF_CONFIG_SIZE, (unsigned long long)a->config.size)
                 : 0;
}

static int clear_ring(struct accel *a, char error[SPEC_ERROR_SIZE])
{
        for (uint64_t i = 0; i < a->packets; i++)
                window_store32(a->window, a->slots_at + i * ALMAIF_PACKET_SIZE,
                               ALMAIF_PACKET_INVALID);
        a->read = get64(a, a->read_at);
        a->write = get64(a, a->write_at);
        if (a->write == a->read)
                return 0;
        if (!a->spec->index_adds) {
                a->write = a->read;
                window_store64(a->window, a->write_at, a->write);
                return 0;
        }
        return refuse(a, error, "in reset WRITE_INDEX is 0x%llx and READ_INDEX 0x%llx",
                      (unsigned long long)a->write, (unsigned long long)a->read);
}

static bool wait_status(struct accel *a, uint32_t mask, uint32_t value)
{
        for (int i = 0; i < RESET_TRIES; i++) {
                if ((get32(a, ALMAIF_STATUS) & mask) == value)
                        return true;
                wake_device(a); /* it may have fallen asleep just when the command came */
                (void)thread_sleep(RESET_PAUSE_NS);
        }
        return false;
}

int accel_start(struct accel *a, char error[SPEC_ERROR_SIZE])
{
        int r = a->started ? 0 : window_lock(a->window, 0, ALMAIF_CONTROL_SIZE);
        if (r < 0) {
                refuse(a, error, "another process uses it");
                return r;
        }
        command(a, ALMAIF_COMMAND_RESET);
        if (!wait_status(a, ALMAIF_STATUS_RESET, ALMAIF_STATUS_RESET)) {
                BAD(a, error, STATUS, get32(a, ALMAIF_STATUS), "it does not go into reset");
                return SP_E_TIMEOUT;
        }
        a->started = true;
        r = load_image(a, error);
        if (!r)
                r = clear_ring(a, error);
        if (r < 0)
                return r;
        command(a, ALMAIF_COMMAND_RUN);
        if (!wait_status(a, ALMAIF_STATUS_RESET | ALMAIF_STATUS_FROZEN, 0)) {
                BAD(a, error, STATUS, get32(a, ALMAIF_STATUS), "it does not come out of reset");
                return SP_E_TIMEOUT;
        }
        return 0;
}

/* ---- ring ----------------------------------------------------------------------------------- */

int accel_room(struct accel *a, uint64_t *ret)
{
        a->read = get64(a, a->read_at);
        if (a->write - a->read > a->packets)
                return SP_E_PROTO;
        *ret = a->packets - (a->write - a->read);
        return 0;
}

void accel_push(struct accel *a, const void *packet)
{
        uint64_t at = a->slots_at + a->write % a->packets * ALMAIF_PACKET_SIZE;
        const uint8_t *p = packet;
        window_write(a->window, at + 4, p + 4, ALMAIF_PACKET_SIZE - 4);
        window_store32(a->window, at, bytes_get_u32(p));
        a->write++;
        if (a->spec->index_adds)
                window_add64(a->window, a->write_at, 1);
        else
                window_store64(a->window, a->write_at, a->write);
}

void accel_kick(struct accel *a)
{
        wake_device(a);
}

/* ---- signals -------------------------------------------------------------------------------- */

/* Store word by word: a thread that polled the slot's earlier signal may still be reading it,
 * without a lock. */
void signal_arm(struct window *w, uint64_t at, bool zero)
{
        for (unsigned i = 4; i < ALMAIF_SIGNAL_SIZE; i += 4)
                window_store32(w, at + i, 0);
        window_store32(w, at, zero ? ALMAIF_SIGNAL_ZERO_PENDING : 0);
}

enum signal_state signal_state(struct window *w, uint64_t at, bool zero)
{
        uint32_t v = window_load32(w, at);
        if (v == (zero ? ALMAIF_SIGNAL_ZERO_PENDING : 0))
                return SIGNAL_PENDING;
        return v == (zero ? 0 : ALMAIF_SIGNAL_SUCCESS) ? SIGNAL_SUCCESS : SIGNAL_FAILURE;
}

void signal_set(struct window *w, uint64_t at, bool zero, bool success)
{
        if (zero)
                window_store32(w, at, success ? 0 : ALMAIF_SIGNAL_ZERO_FAILURE);
        else
                window_store32(w, at, success ? ALMAIF_SIGNAL_SUCCESS : ALMAIF_SIGNAL_FAILURE);
        if (window_exchange32(w, at + ALMAIF_SIGNAL_SLEEPERS, 0))
                window_wake(w, at);
}
