/* The main loop of a RISC-V core behind AlmaIF registers: takes packets out of the ring, runs compiled kernels,
 * signals. Profile v2, completion=zero, index=set, args=natural, no bus master. Position independent
 * without relocations: no static pointers.
 *
 * Each work-item runs on a stack. One that ends without having waited leaves its stack to the next, so kernels
 * without barriers are plain calls in a row. */
#include <spancl/almaif.h>
#include <spancl/riscv.h>

#include "machine.h"

enum { CANARY = 0x5ca1ab1e, IDLE_MIN = 10, IDLE_MAX = 1000 };

struct item {
        struct riscv_item shown; /* first: what tp points to */
        uint32_t *context;
        uint32_t *stack; /* its lowest word; 0: it has not begun, or has ended */
};

_Static_assert(sizeof(struct item) <= RISCV_ITEM_SIZE, "what the host makes room for");

extern struct riscv_header header;
extern char start[];
void change(uint32_t **from, uint32_t *to);
void first(void);
void fault(void);

uint32_t *main_context;
volatile uint32_t faulted;
static struct riscv_group group;
static struct item *items, *current;
static uint32_t entry, arguments; /* of the launch that runs */
static struct machine *machine;
static uint8_t *registers;

/* Also without memcpy of a library. */
void *memset(void *to, int value, __SIZE_TYPE__ size)
{
        char *p = to;
        while (size--)
                *p++ = (char)value;
        return to;
}

void *memcpy(void *to, const void *from, __SIZE_TYPE__ size)
{
        char *p = to;
        const char *q = from;
        while (size--)
                *p++ = *q++;
        return to;
}

static void order(void)
{
        __asm__ volatile("fence rw, rw" ::: "memory");
}

static volatile uint32_t *word(uint32_t at)
{
        return (volatile uint32_t *)(registers + at);
}

static uint8_t *config(uint32_t at)
{
        return (uint8_t *)start + at;
}

/* ---- work-items ----------------------------------------------------------------------------- */

static void item_main(struct item *i)
{
        ((void (*)(const void *))entry)((const void *)arguments);
        if (*i->stack != CANARY)
                fault();
        i->stack = 0;
        change(&i->context, main_context);
}

static void barrier(void)
{
        struct item *i = current;
        if (*i->stack != CANARY)
                fault();
        if (group.items > 1)
                change(&i->context, main_context);
}

/* Until it waits or has ended. */
static void item_run(struct item *i)
{
        current = i;
        change(&main_context, i->context);
}

/* As `change` left it, with `first` to be returned to. */
static void item_begin(struct item *i, unsigned stack)
{
        i->stack = (uint32_t *)(config(header.stacks_at) + stack * RISCV_STACK_SIZE);
        *i->stack = CANARY;
        uint32_t *sp = i->stack + RISCV_STACK_SIZE / 4 - 16;
        sp[0] = (uint32_t)first;
        sp[1] = (uint32_t)i;
        sp[2] = (uint32_t)item_main;
        sp[13] = (uint32_t)i;
        i->context = sp;
}

static void set_ids(struct item *i, unsigned index)
{
        uint32_t rest = index;
        i->shown.group = (uint32_t)&group;
        i->shown.index = index;
        for (int d = 0; d < 3; d++) {
                i->shown.local_id[d] = rest % group.group_size[d];
                rest /= group.group_size[d];
                i->shown.global_id[d] = group.offset[d] + group.group[d] * group.local_size[d] +
                                        i->shown.local_id[d];
        }
}

/* False: something went wrong. */
static int run_group(void)
{
        unsigned waiting = 0;
        faulted = 0;
        for (unsigned n = 0; n < group.items && !faulted; n++) {
                struct item *i = (struct item *)((char *)items + n * RISCV_ITEM_SIZE);
                set_ids(i, n);
                item_begin(i, waiting);
                item_run(i);
                waiting += i->stack != 0;
        }
        while (waiting && !faulted) {
                for (unsigned n = 0; n < group.items && !faulted; n++) {
                        struct item *i = (struct item *)((char *)items + n * RISCV_ITEM_SIZE);
                        if (!i->stack)
                                continue;
                        item_run(i);
                        waiting -= i->stack == 0;
                }
        }
        return !faulted;
}

/* ---- launches ------------------------------------------------------------------------------- */

static void print(const char *text, uint32_t size)
{
        volatile struct riscv_header *h = &header;
        uint8_t *ring = config(h->output_at);
        for (uint32_t i = 0; i < size; i++) {
                while (h->output_end - h->output_read == RISCV_OUTPUT_SIZE)
                        machine->idle(IDLE_MIN);
                ring[h->output_end % RISCV_OUTPUT_SIZE] = (uint8_t)text[i];
                order();
                h->output_end++;
        }
}

static int launch(const struct almaif_dispatch *p)
{
        const uint32_t grid[3] = { p->grid_x, p->grid_y, p->grid_z };
        const uint16_t size[3] = { p->group_x, p->group_y, p->group_z };
        uint8_t *data = registers + *word(ALMAIF_DATA_START);
        const struct riscv_arguments *a = (void *)(data + (uint32_t)p->arguments);
        uint32_t most = 1;
        entry = (uint32_t)config((uint32_t)p->kernel);
        arguments = (uint32_t)(a + 1);
        group.dimensions = p->dimensions;
        group.local_memory = (uint32_t)config(header.local_at);
        group.data_memory = (uint32_t)data;
        group.barrier = (uint32_t)barrier;
        group.print = (uint32_t)print;
        for (int d = 0; d < 3; d++) {
                if (!size[d] || !grid[d])
                        return 0;
                group.global_size[d] = grid[d];
                group.local_size[d] = size[d];
                group.offset[d] = a->offset[d];
                group.groups[d] = (grid[d] - 1) / size[d] + 1;
                most *= size[d];
        }
        if (most > header.group_max)
                return 0;
        for (uint32_t z = 0; z < group.groups[2]; z++)
                for (uint32_t y = 0; y < group.groups[1]; y++)
                        for (uint32_t x = 0; x < group.groups[0]; x++) {
                                const uint32_t at[3] = { x, y, z };
                                group.items = 1;
                                for (int d = 0; d < 3; d++) {
                                        uint32_t left = grid[d] - at[d] * size[d];
                                        group.group[d] = at[d];
                                        group.group_size[d] = left < size[d] ? left : size[d];
                                        group.items *= group.group_size[d];
                                }
                                if (!run_group())
                                        return 0;
                        }
        return 1;
}

/* ---- the ring ------------------------------------------------------------------------------- */

/* Longer and longer. */
static uint32_t wait_more(uint32_t us)
{
        machine->idle(us);
        return us * 2 > IDLE_MAX ? IDLE_MAX : us * 2;
}

static int wait_for(const struct almaif_barrier *b)
{
        const uint8_t *data = registers + *word(ALMAIF_DATA_START);
        for (int i = 0; i < ALMAIF_BARRIER_DEPS; i++) {
                if (!b->deps[i])
                        continue;
                const volatile uint32_t *signal = (const void *)(data + (uint32_t)b->deps[i]);
                uint32_t us = IDLE_MIN;
                while (*signal == ALMAIF_SIGNAL_ZERO_PENDING)
                        us = wait_more(us);
                if (*signal)
                        return 0;
        }
        return 1;
}

static void retire(volatile uint16_t *packet, uint64_t completion, int good)
{
        volatile uint32_t *read = word(ALMAIF_READ_INDEX);
        order();
        if (completion) {
                uint8_t *data = registers + *word(ALMAIF_DATA_START);
                *(volatile uint32_t *)(data + (uint32_t)completion) =
                        good ? 0 : ALMAIF_SIGNAL_ZERO_FAILURE;
        }
        *packet = ALMAIF_PACKET_INVALID;
        order();
        if (!++read[0])
                read[1]++;
        order();
}

void firmware(uint8_t *at, struct machine *m)
{
        registers = at;
        machine = m;
        machine->fault = fault;
        header.address = (uint32_t)start;
        items = (struct item *)config(header.items_at);
        uint8_t *ring = registers + *word(ALMAIF_QUEUE_START);
        uint32_t packets = *word(ALMAIF_QUEUE_SIZE) / ALMAIF_PACKET_SIZE, us = IDLE_MIN;
        machine->ready();
        for (;;) {
                uint32_t slot = *word(ALMAIF_READ_INDEX) % packets;
                union {
                        struct almaif_dispatch dispatch;
                        struct almaif_barrier barrier;
                } *p = (void *)(ring + slot * ALMAIF_PACKET_SIZE);
                volatile uint16_t *packet = (volatile uint16_t *)p;
                unsigned type = *packet & ALMAIF_HEADER_TYPE;
                if (type == ALMAIF_PACKET_INVALID) {
                        us = wait_more(us);
                        continue;
                }
                us = IDLE_MIN;
                order();
                int good = 0;
                if (type == ALMAIF_PACKET_DISPATCH)
                        good = launch(&p->dispatch);
                else if (type == ALMAIF_PACKET_BARRIER)
                        good = wait_for(&p->barrier);
                retire(packet, p->dispatch.completion, good);
        }
}
