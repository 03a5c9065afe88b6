#include "engine/account.h"

#include "base/relax.h"

/* Return the sum of the slots, of each the bits of `mask`; UINT64_MAX if it is larger. */
static uint64_t sum_of(const struct account_page *page, const _Atomic uint64_t *slots,
                       uint64_t mask)
{
        uint64_t sum = 0, used = atomic_load(&page->used);
        for (uint64_t i = 0; i < used && i < ACCOUNT_SLOTS; i++) {
                uint64_t held = atomic_load(&slots[i]) & mask;
                if (held > UINT64_MAX - sum)
                        return UINT64_MAX;
                sum += held;
        }
        return sum;
}

uint64_t account_sum(const struct account_page *page)
{
        return sum_of(page, page->held, UINT64_MAX);
}

uint64_t account_device_sum(const struct account_page *page, unsigned column)
{
        return sum_of(page, page->device_held[column], UINT64_MAX);
}

/* Raise the own slot from `has` by `more`, if the sum then is at most `max`. Else set it to `failed`. */
static bool take(const struct account *a, _Atomic uint64_t *slots, uint64_t mask, uint64_t max,
                 uint64_t has, uint64_t more, uint64_t failed)
{
        /* Two sessions that count at the same time may both find too much. They try again after
         * times that differ. */
        enum { TRIES = 4, PAUSES = 64 };
        if (more > max || has > max - more)
                return false;
        for (unsigned i = 0; i < TRIES; i++) {
                atomic_store(&slots[a->slot], has + more);
                if (sum_of(a->page, slots, mask) <= max)
                        return true;
                atomic_store(&slots[a->slot], failed);
                for (unsigned k = 0; k < PAUSES * i * (a->slot % 16 + 1); k++)
                        cpu_relax();
        }
        return false;
}

bool account_take(struct account *a, uint64_t size)
{
        if (!a->page)
                return true;
        if (!take(a, a->page->held, UINT64_MAX, a->max, a->held, size, a->held))
                return false;
        a->held += size;
        return true;
}

void account_give(struct account *a, uint64_t size)
{
        if (!a->page)
                return;
        a->held -= size;
        atomic_store(&a->page->held[a->slot], a->held);
}

bool account_device_take(struct account *a, unsigned i, uint64_t size)
{
        struct account_device *d = &a->devices[i];
        if (!take(a, a->page->device_held[d->column], UINT64_MAX, d->max, d->held, size, d->held))
                return false;
        d->held += size;
        return true;
}

void account_device_give(struct account *a, unsigned i, uint64_t size)
{
        struct account_device *d = &a->devices[i];
        d->held -= size;
        atomic_store(&a->page->device_held[d->column][a->slot], d->held);
}

bool account_build_take(struct account *a)
{
        if (!a->page || !a->builds_max)
                return true;
        if (!take(a, a->page->builds, ACCOUNT_BUILD_WAITS - 1, a->builds_max, a->builds, 1,
                  a->builds | ACCOUNT_BUILD_WAITS))
                return false;
        a->builds++;
        return true;
}

bool account_build_give(struct account *a)
{
        uint64_t used = a->page ? atomic_load(&a->page->used) : 0;
        bool waits = false;
        if (!a->page || !a->builds_max)
                return false;
        atomic_store(&a->page->builds[a->slot], --a->builds);
        for (uint64_t i = 0; i < used && i < ACCOUNT_SLOTS && !waits; i++)
                waits = i != a->slot && atomic_load(&a->page->builds[i]) & ACCOUNT_BUILD_WAITS;
        return waits;
}

static void clear(struct account_page *page, unsigned columns, unsigned slot)
{
        atomic_store(&page->held[slot], 0);
        atomic_store(&page->builds[slot], 0);
        for (unsigned i = 0; i < columns; i++)
                atomic_store(&page->device_held[i][slot], 0);
}

bool account_open(struct account_page *page, bool taken[ACCOUNT_SLOTS], unsigned columns,
                  unsigned *ret_slot)
{
        unsigned slot = 0;
        while (slot < ACCOUNT_SLOTS && taken[slot])
                slot++;
        if (slot == ACCOUNT_SLOTS)
                return false;
        taken[slot] = true;
        clear(page, columns, slot);
        if (atomic_load(&page->used) <= slot)
                atomic_store(&page->used, slot + 1);
        *ret_slot = slot;
        return true;
}

void account_close(struct account_page *page, bool taken[ACCOUNT_SLOTS], unsigned columns,
                   unsigned slot)
{
        unsigned used = ACCOUNT_SLOTS;
        taken[slot] = false;
        clear(page, columns, slot);
        while (used && !taken[used - 1])
                used--;
        atomic_store(&page->used, used);
}
