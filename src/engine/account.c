#include "engine/account.h"

#include "base/relax.h"

uint64_t account_sum(const struct account_page *page)
{
        uint64_t sum = 0, used = atomic_load(&page->used);
        for (uint64_t i = 0; i < used && i < ACCOUNT_SLOTS; i++) {
                uint64_t held = atomic_load(&page->held[i]);
                if (held > UINT64_MAX - sum)
                        return UINT64_MAX;
                sum += held;
        }
        return sum;
}

static void set(struct account *a, uint64_t held)
{
        a->held = held;
        atomic_store(&a->page->held[a->slot], held);
}

bool account_take(struct account *a, uint64_t size)
{
        /* Two sessions that count at the same time may both find too much. They try again after
         * times that differ. */
        enum { TRIES = 4, PAUSES = 64 };
        if (!a->page)
                return true;
        if (size > a->max || a->held > a->max - size)
                return false;
        for (unsigned i = 0; i < TRIES; i++) {
                set(a, a->held + size);
                if (account_sum(a->page) <= a->max)
                        return true;
                set(a, a->held - size);
                for (unsigned k = 0; k < PAUSES * i * (a->slot % 16 + 1); k++)
                        cpu_relax();
        }
        return false;
}

void account_give(struct account *a, uint64_t size)
{
        if (a->page)
                set(a, a->held - size);
}

bool account_open(struct account_page *page, bool taken[ACCOUNT_SLOTS], unsigned *ret_slot)
{
        unsigned slot = 0;
        while (slot < ACCOUNT_SLOTS && taken[slot])
                slot++;
        if (slot == ACCOUNT_SLOTS)
                return false;
        taken[slot] = true;
        atomic_store(&page->held[slot], 0);
        if (atomic_load(&page->used) <= slot)
                atomic_store(&page->used, slot + 1);
        *ret_slot = slot;
        return true;
}

void account_close(struct account_page *page, bool taken[ACCOUNT_SLOTS], unsigned slot)
{
        unsigned used = ACCOUNT_SLOTS;
        taken[slot] = false;
        atomic_store(&page->held[slot], 0);
        while (used && !taken[used - 1])
                used--;
        atomic_store(&page->used, used);
}
