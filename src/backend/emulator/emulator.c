#include "backend/emulator/emulator.h"

#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/file_info.h"
#include "os/futex.h"
#include "os/vm.h"

enum {
        CONFIG_AT = 0x800,
        QUEUE_AT = 0x1000,
        PAGE = 4096,
        SLEEP_NS = 100000000,
        DEP_SLEEP_NS = 1000000,
        SPIN_ROUND = 64,
};

struct emulator {
        struct emulator_params p;
        int fd;
        uint8_t *bus; /* the whole file */
        uint64_t bus_size;
        uint8_t *self;                        /* bus + base */
        uint64_t queue_at, slots_at, data_at; /* from `self` */
        uint64_t *read_index, *write_index;
        uint64_t dispatches;
        bool running;
        bool hung; /* by a fault, until reset */
        bool dead;
        const atomic_bool *stop;
};

/* ---- words ---------------------------------------------------------------------------------- */

static uint32_t *word32(struct emulator *e, uint64_t at)
{
        return (uint32_t *)(void *)(e->self + at);
}

static void put32(struct emulator *e, uint64_t at, uint32_t v)
{
        __atomic_store_n(word32(e, at), bytes_le32(v), __ATOMIC_RELEASE);
}

static void put64(struct emulator *e, uint64_t at, uint64_t v)
{
        bytes_put_u64(e->self + at, v);
}

static uint64_t load64(const uint64_t *p)
{
        return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

/* Its low half is the word of a futex. */
static void *low_half(uint64_t *p)
{
        return p;
}

static void wake_host(struct emulator *e)
{
        if (__atomic_exchange_n(word32(e, ALMAIF_HOST_SLEEPS), 0, __ATOMIC_SEQ_CST))
                futex_wake(low_half(e->read_index));
}

/* ---- registers ------------------------------------------------------------------------------ */

static void describe_kernels(struct emulator *e)
{
        if (e->p.profile == 3) {
                put32(e, ALMAIF_POINTER_SIZE, e->p.pointer_size);
                return;
        }
        unsigned n = e->p.id_count;
        for (unsigned i = 0; i < n; i++)
                bytes_put_u16(e->self + ALMAIF_KERNEL_IDS + 2 * i, e->p.ids[i]);
        if (e->p.compiled && n < ALMAIF_KERNELS_MAX)
                bytes_put_u16(e->self + ALMAIF_KERNEL_IDS + 2 * n++, ALMAIF_KERNEL_COMPILED);
        bytes_put_u16(e->self + ALMAIF_KERNEL_COUNT, (uint16_t)n);
}

static void describe(struct emulator *e)
{
        uint64_t from = e->p.bus_master ? e->p.base : 0;
        memset(e->self, 0, ALMAIF_CONTROL_SIZE);
        put32(e, ALMAIF_STATUS, ALMAIF_STATUS_RESET);
        put32(e, ALMAIF_DEVICE_CLASS, 0x5350);
        put32(e, ALMAIF_DEVICE_ID, 0xE);
        put32(e, ALMAIF_INTERFACE_VERSION, e->p.profile);
        put32(e, ALMAIF_CORE_COUNT, 1);
        put32(e, ALMAIF_CONFIG_SIZE, (uint32_t)e->p.config_size);
        put64(e, ALMAIF_CONFIG_START, e->p.config_size ? from + CONFIG_AT : 0);
        put64(e, ALMAIF_QUEUE_START, from + e->queue_at);
        put64(e, ALMAIF_QUEUE_SIZE, e->slots_at - e->queue_at + e->p.packets * ALMAIF_PACKET_SIZE);
        put64(e, ALMAIF_DATA_START, from + e->data_at);
        put64(e, ALMAIF_DATA_SIZE, e->p.data_size);
        put64(e, ALMAIF_FEATURES, e->p.bus_master ? ALMAIF_FEATURE_BUS_MASTER : 0);
        describe_kernels(e);
        *e->read_index = *e->write_index = e->p.first_index;
}

void emulator_all_kernels(struct emulator_params *p)
{
        const struct registry_kernel *k;
        p->id_count = 0;
        for (size_t i = 0; (k = registry_at(i)) && p->id_count < ALMAIF_KERNELS_MAX; i++)
                if (k->run)
                        p->ids[p->id_count++] = (uint16_t)k->id;
}

static uint64_t page_up(uint64_t n)
{
        return (n + PAGE - 1) & ~(uint64_t)(PAGE - 1);
}

int emulator_new(const struct emulator_params *params, struct emulator **ret)
{
        struct emulator *e = mem_zalloc(sizeof(*e));
        if (!e)
                return SP_E_NOMEM;
        e->p = *params;
        e->queue_at = params->config_size ? page_up(CONFIG_AT + params->config_size) : QUEUE_AT;
        e->slots_at = e->queue_at + (params->profile == 3 ? ALMAIF_V3_HEADER_SIZE : 0);
        e->data_at = page_up(e->slots_at + params->packets * ALMAIF_PACKET_SIZE);
        uint64_t end = page_up(params->base + e->data_at + params->data_size);
        if (params->file_size > end)
                end = params->file_size;

        struct file_info file;
        e->fd = params->path ? file_open_both(params->path, true) : file_create_in_memory();
        if (e->fd < 0 || !file_info_of(e->fd, &file) ||
            (file.size < end && !file_resize(e->fd, end))) {
                emulator_free(e);
                return SP_E_NOENT;
        }
        e->bus_size = file.size > end ? file.size : end;
        uint64_t at;
        if (vm_map_file(e->fd, 0, (size_t)e->bus_size, &at) < 0) {
                emulator_free(e);
                return SP_E_NOMEM;
        }
        e->bus = (uint8_t *)(uintptr_t)at;
        e->self = e->bus + params->base;
        bool v3 = params->profile == 3;
        e->read_index = (uint64_t *)(void *)(e->self + (v3 ? e->queue_at + ALMAIF_V3_READ_INDEX
                                                           : ALMAIF_READ_INDEX));
        e->write_index = (uint64_t *)(void *)(e->self + (v3 ? e->queue_at + ALMAIF_V3_WRITE_INDEX
                                                            : ALMAIF_WRITE_INDEX));
        describe(e);
        *ret = e;
        return 0;
}

struct emulator *emulator_free(struct emulator *e)
{
        if (!e)
                return NULL;
        if (e->bus)
                vm_unmap((uint64_t)(uintptr_t)e->bus, (size_t)e->bus_size);
        if (e->fd >= 0)
                (void)file_close(e->fd);
        mem_free(e);
        return NULL;
}

/* ---- memory as the device sees it ----------------------------------------------------------- */

/* `size` bytes at an address of the device; NULL: they are not there. *ret_room: to the end. */
static uint8_t *at_address(struct emulator *e, uint64_t address, size_t size, size_t *ret_room)
{
        uint8_t *start = e->p.bus_master ? e->bus : e->self + e->data_at;
        uint64_t room = e->p.bus_master ? e->bus_size : e->p.data_size;
        if (address > room || size > room - address)
                return NULL;
        if (ret_room)
                *ret_room = (size_t)(room - address);
        return start + address;
}

static void signal_value(struct emulator *e, uint64_t address, uint32_t value)
{
        uint8_t *at = address ? at_address(e, address, ALMAIF_SIGNAL_SIZE, NULL) : NULL;
        if (!at)
                return;
        uint32_t *word = (uint32_t *)(void *)at, *sleepers = word + 1;
        __atomic_store_n(word, value, __ATOMIC_SEQ_CST);
        if (__atomic_exchange_n(sleepers, 0, __ATOMIC_SEQ_CST))
                futex_wake(word);
}

static void signal_result(struct emulator *e, uint64_t address, bool success)
{
        if (e->p.completion_zero)
                signal_value(e, address, success ? 0 : ALMAIF_SIGNAL_ZERO_FAILURE);
        else
                signal_value(e, address, success ? ALMAIF_SIGNAL_SUCCESS : ALMAIF_SIGNAL_FAILURE);
}

/* ---- commands ------------------------------------------------------------------------------- */

/* Execute the command in the command register, if there is one. True: it was a reset. */
static bool obey(struct emulator *e)
{
        if (e->dead || !__atomic_load_n(word32(e, ALMAIF_COMMAND), __ATOMIC_RELAXED))
                return false;
        /* In one step: the host may write the next one meanwhile. */
        uint32_t command = __atomic_exchange_n(word32(e, ALMAIF_COMMAND), 0, __ATOMIC_ACQ_REL);
        switch (command) {
        case ALMAIF_COMMAND_RESET:
                e->running = e->hung = false;
                __atomic_store_n(e->write_index, e->p.first_index, __ATOMIC_RELEASE);
                __atomic_store_n(e->read_index, e->p.first_index, __ATOMIC_RELEASE);
                put32(e, ALMAIF_STATUS, ALMAIF_STATUS_RESET);
                return true;
        case ALMAIF_COMMAND_RUN:
                e->running = true;
                put32(e, ALMAIF_STATUS, 0);
                return false;
        case ALMAIF_COMMAND_FREEZE:
                e->running = false;
                put32(e, ALMAIF_STATUS, ALMAIF_STATUS_FROZEN | ALMAIF_STATUS_STALLED);
                return false;
        }
        return false;
}

/* ---- barrier -------------------------------------------------------------------------------- */

static bool is_pending(const struct emulator *e, uint32_t v)
{
        return v == (e->p.completion_zero ? ALMAIF_SIGNAL_ZERO_PENDING : 0);
}

/* Wait for one signal. False: reset, or stop. */
static bool await(struct emulator *e, uint64_t address, bool *ret_success)
{
        uint8_t *at = at_address(e, address, ALMAIF_SIGNAL_SIZE, NULL);
        if (!at) {
                *ret_success = false;
                return true;
        }
        uint32_t *word = (uint32_t *)(void *)at, *sleepers = word + 1;
        uint64_t end = clock_now_ns() + e->p.spin_us * 1000;
        for (unsigned round = 0;; round++) {
                uint32_t v = __atomic_load_n(word, __ATOMIC_ACQUIRE);
                if (!is_pending(e, v)) {
                        *ret_success &= v == (e->p.completion_zero ? 0 : ALMAIF_SIGNAL_SUCCESS);
                        return true;
                }
                if (round % SPIN_ROUND)
                        continue;
                if (*e->stop || obey(e) || !e->running)
                        return false;
                if (clock_now_ns() < end)
                        continue;
                __atomic_store_n(sleepers, 1, __ATOMIC_SEQ_CST);
                if (is_pending(e, __atomic_load_n(word, __ATOMIC_SEQ_CST)))
                        futex_wait(word, v, DEP_SLEEP_NS);
        }
}

static bool run_barrier(struct emulator *e, const struct almaif_barrier *b)
{
        bool success = true;
        for (unsigned i = 0; i < ALMAIF_BARRIER_DEPS; i++)
                if (b->deps[i] && !await(e, b->deps[i], &success))
                        return false;
        signal_result(e, b->completion, success);
        return true;
}

/* ---- dispatch ------------------------------------------------------------------------------- */

/* Where the next argument of `size` bytes lies, from the end of the last one. */
static size_t arg_at(const struct emulator *e, unsigned index, size_t end, size_t size)
{
        switch (e->p.args) {
        case EMULATOR_ARGS_PACKED:
                return end;
        case EMULATOR_ARGS_STRIDE:
                return (size_t)index * ALMAIF_ARGUMENT_STRIDE;
        case EMULATOR_ARGS_NATURAL:
                break;
        }
        return (end + size - 1) / size * size;
}

static bool read_args(struct emulator *e, const struct registry_kernel *k,
                      const struct almaif_dispatch *d, struct registry_launch *l,
                      uint64_t values[REGISTRY_ARGS_MAX])
{
        size_t end = 0;
        for (unsigned i = 0; i < registry_arg_count(k); i++) {
                const struct registry_arg *a = &k->args[i];
                size_t size = a->buffer ? e->p.pointer_size : a->size, room = 0;
                size_t at = arg_at(e, i, end, size);
                const uint8_t *p = at_address(e, d->arguments + at, size, NULL);
                if (!p)
                        return false;
                memcpy(&values[i], p, size);
                end = at + size;
                if (!a->buffer) {
                        l->args[i] = (struct registry_value){ &values[i], 8 };
                        continue;
                }
                uint8_t *data = values[i] ? at_address(e, values[i], 1, &room) : NULL;
                l->args[i] = (struct registry_value){ data, data ? room : 0 };
        }
        return true;
}

static bool run_kernel(struct emulator *e, const struct almaif_dispatch *d)
{
        const struct registry_kernel *k = NULL;
        for (unsigned i = 0; i < e->p.id_count; i++)
                if (e->p.ids[i] == d->kernel)
                        k = registry_rows_find_id(e->p.rows, e->p.ids[i]);
        struct registry_launch l = { .dims = d->dimensions & 3,
                                     .global = { d->grid_x, d->grid_y, d->grid_z } };
        uint64_t values[REGISTRY_ARGS_MAX] = { 0 };
        size_t items;
        if (!k || !k->run || __builtin_mul_overflow(l.global[0], l.global[1], &items) ||
            __builtin_mul_overflow(items, l.global[2], &items) || !read_args(e, k, d, &l, values))
                return false;
        return k->run(&l) == CL_SUCCESS;
}

/* The fault of this dispatch; EMULATOR_FAULT_KINDS: none. */
static enum emulator_fault_kind fault_now(const struct emulator *e)
{
        for (unsigned i = 0; i < e->p.fault_count; i++)
                if (e->p.faults[i].at == e->dispatches)
                        return e->p.faults[i].kind;
        return EMULATOR_FAULT_KINDS;
}

/* False: it did not end. */
static bool run_dispatch(struct emulator *e, const struct almaif_dispatch *d)
{
        enum emulator_fault_kind fault = fault_now(e);
        e->dispatches++;
        switch (fault) {
        case EMULATOR_DEAD:
                e->dead = true;
                e->hung = true;
                return false;
        case EMULATOR_WRONG_INDEX:
                __atomic_store_n(e->read_index, *e->read_index + 1000 * e->p.packets,
                                 __ATOMIC_RELEASE);
                e->hung = true;
                wake_host(e);
                return false;
        case EMULATOR_HANG:
                e->hung = true;
                return false;
        case EMULATOR_EARLY_WAKE:
                for (int i = 0; i < 20; i++) {
                        futex_wake(low_half(e->read_index));
                        wake_host(e);
                        futex_wait(word32(e, ALMAIF_STATUS), 0, DEP_SLEEP_NS);
                }
                break;
        case EMULATOR_BAD_STATUS:
        case EMULATOR_GARBAGE:
        case EMULATOR_FAULT_KINDS:
                break;
        }
        bool success = run_kernel(e, d);
        if (fault == EMULATOR_GARBAGE)
                signal_value(e, d->completion, 0xDEAD);
        else
                signal_result(e, d->completion, success && fault != EMULATOR_BAD_STATUS);
        return true;
}

/* ---- the loop ------------------------------------------------------------------------------- */

/* Nothing to do: look for a while, then sleep. */
static void idle(struct emulator *e, uint64_t *idle_since)
{
        uint64_t now = clock_now_ns(), seen = load64(e->write_index);
        if (!*idle_since)
                *idle_since = now;
        if (now - *idle_since < e->p.spin_us * 1000) {
                for (int i = 0; i < SPIN_ROUND && load64(e->write_index) == seen; i++)
                        __asm__ volatile("" ::: "memory");
                return;
        }
        __atomic_store_n(word32(e, ALMAIF_DEVICE_SLEEPS), 1, __ATOMIC_SEQ_CST);
        if (__atomic_load_n(e->write_index, __ATOMIC_SEQ_CST) != seen ||
            (e->running && !e->hung && seen != *e->read_index) ||
            (!e->dead && __atomic_load_n(word32(e, ALMAIF_COMMAND), __ATOMIC_SEQ_CST)))
                return;
        futex_wait(low_half(e->write_index), (uint32_t)seen, SLEEP_NS);
}

/* The next packet, if there is one. */
static bool step(struct emulator *e)
{
        uint64_t read = *e->read_index;
        if (!e->running || e->hung || load64(e->write_index) == read)
                return false;
        uint8_t *slot = e->self + e->slots_at + read % e->p.packets * ALMAIF_PACKET_SIZE;
        uint16_t *header = (uint16_t *)(void *)slot;
        unsigned type = __atomic_load_n(header, __ATOMIC_ACQUIRE) & ALMAIF_HEADER_TYPE;
        if (type == ALMAIF_PACKET_INVALID)
                return false;
        uint8_t copy[ALMAIF_PACKET_SIZE];
        memcpy(copy, slot, sizeof(copy));
        bool done = true;
        if (type == ALMAIF_PACKET_DISPATCH)
                done = run_dispatch(e, (const struct almaif_dispatch *)(const void *)copy);
        else if (type == ALMAIF_PACKET_BARRIER)
                done = run_barrier(e, (const struct almaif_barrier *)(const void *)copy);
        if (!done)
                return true;
        __atomic_store_n(header, ALMAIF_PACKET_INVALID, __ATOMIC_RELEASE);
        __atomic_store_n(e->read_index, read + 1, __ATOMIC_RELEASE);
        wake_host(e);
        return true;
}

void emulator_wake(struct emulator *e)
{
        futex_wake(low_half(e->write_index));
}

int emulator_fd(const struct emulator *e)
{
        return e->fd;
}

void emulator_run(struct emulator *e, const atomic_bool *stop)
{
        uint64_t idle_since = 0;
        e->stop = stop;
        while (!*stop) {
                obey(e);
                if (step(e))
                        idle_since = 0;
                else
                        idle(e, &idle_since);
        }
}
