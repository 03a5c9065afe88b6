#include "backend/almaif/memory.h"

#include "backend/bounds.h"
#include "base/mem.h"

/* Null pointers of relative addressing name the first byte: nobody gets that. */
enum { RESERVED = BUFFER_ALIGN, SIGNALS_PER_PACKET = 4 };

/* ---- layout --------------------------------------------------------------------------------- */

/* A small part of the memory each, and no more than can be in use. */
static unsigned wanted_signals(const struct domain *d)
{
        uint64_t most = d->memories[0].heap.size / 8 / ALMAIF_SIGNAL_SIZE, n = 0;
        for (unsigned i = 0; i < d->unit_count; i++)
                n += d->units[i]->accel.packets * SIGNALS_PER_PACKET;
        return (unsigned)(n < most ? n : most);
}

static uint64_t wanted_args(const struct domain *d, const struct unit *u)
{
        uint64_t most = d->memories[0].heap.size / 8 / d->unit_count / u->args.size;
        uint64_t n = u->accel.packets < most ? u->accel.packets : most;
        return n ? n : 1;
}

static uint64_t overhead(const struct domain *d)
{
        uint64_t n = RESERVED + (uint64_t)wanted_signals(d) * ALMAIF_SIGNAL_SIZE + BUFFER_ALIGN;
        for (unsigned i = 0; i < d->unit_count; i++)
                n += wanted_args(d, d->units[i]) * d->units[i]->args.size + BUFFER_ALIGN;
        return n < d->memories[0].heap.size ? n : d->memories[0].heap.size;
}

uint64_t domain_memory_size(const struct domain *d)
{
        uint64_t n = 0;
        for (unsigned i = 0; i < d->memory_count; i++)
                n += d->memories[i].heap.size;
        return n - overhead(d);
}

uint64_t domain_buffer_max(const struct domain *d)
{
        uint64_t max = d->memories[0].heap.size - overhead(d);
        for (unsigned i = 1; i < d->memory_count; i++)
                if (d->memories[i].heap.size > max)
                        max = d->memories[i].heap.size;
        return max;
}

int domain_memory_init(struct domain *d)
{
        struct heap *h = &d->memories[0].heap;
        uint64_t reserved;
        int r = heap_take(h, RESERVED, BUFFER_ALIGN, &reserved);
        d->signal_count = wanted_signals(d);
        d->signal_refs = mem_zalloc(d->signal_count * sizeof(*d->signal_refs) + 1);
        if (!d->signal_refs)
                return SP_E_NOMEM;
        if (!r)
                r = heap_take(h, (uint64_t)d->signal_count * ALMAIF_SIGNAL_SIZE, BUFFER_ALIGN,
                              &d->signals_at);
        for (unsigned i = 0; !r && i < d->unit_count; i++) {
                struct unit *u = d->units[i];
                u->args.count = wanted_args(d, u);
                r = heap_take(h, u->args.count * u->args.size, BUFFER_ALIGN, &u->args.at);
        }
        return r;
}

void domain_memory_fini(struct domain *d)
{
        for (unsigned i = 0; i < d->memory_count; i++) {
                uint64_t size = d->memories[i].heap.size;
                heap_fini(&d->memories[i].heap);
                heap_init(&d->memories[i].heap, size);
        }
        mem_free(d->signal_refs);
        d->signal_refs = NULL;
}

/* ---- signals -------------------------------------------------------------------------------- */

uint64_t signal_at(const struct domain *d, int signal)
{
        return d->memories[0].at + d->signals_at + (uint64_t)signal * ALMAIF_SIGNAL_SIZE;
}

uint64_t signal_address(const struct domain *d, int signal)
{
        return d->memories[0].address + d->signals_at + (uint64_t)signal * ALMAIF_SIGNAL_SIZE;
}

int signal_take(struct domain *d)
{
        for (unsigned i = 0; i < d->signal_count; i++) {
                unsigned n = (d->signal_next + i) % d->signal_count;
                if (d->signal_refs[n])
                        continue;
                d->signal_refs[n] = 1;
                d->signal_next = n + 1;
                signal_arm(d->memories[0].window, signal_at(d, (int)n), d->zero);
                return (int)n;
        }
        return -1;
}

void signal_ref(struct domain *d, int signal)
{
        d->signal_refs[signal]++;
}

void signal_unref(struct domain *d, int signal)
{
        d->signal_refs[signal]--;
}

/* ---- buffers -------------------------------------------------------------------------------- */

struct backend_buffer *buffer_ref(struct backend_buffer *m)
{
        if (m)
                atomic_fetch_add(&m->refs, 1);
        return m;
}

void buffer_unref(struct backend_buffer *m)
{
        if (!m || atomic_fetch_sub(&m->refs, 1) != 1)
                return;
        if (m->parent) {
                buffer_unref(m->parent);
        } else {
                almaif_lock(m->domain->backend);
                heap_give(&m->memory->heap, m->at);
                almaif_unlock(m->domain->backend);
        }
        mem_free(m);
}

/* Nobody has it yet. */
static void clear(const struct backend_buffer *m)
{
        static const uint8_t zeros[4096];
        for (size_t done = 0, n; done < m->size; done += n) {
                n = m->size - done < sizeof(zeros) ? m->size - done : sizeof(zeros);
                window_write(m->memory->window, m->memory->at + m->at + done, zeros, n);
        }
}

/* The first memory that has room; of one unit alone that is its own. */
cl_int buffer_new(struct domain *d, size_t size, struct backend_buffer **ret)
{
        struct backend_buffer *m = mem_zalloc(sizeof(*m));
        if (!m)
                return CL_OUT_OF_HOST_MEMORY;
        *m = (struct backend_buffer){ .refs = 1, .domain = d, .size = size };
        int r = SP_E_LIMIT;
        almaif_lock(d->backend);
        for (unsigned i = 0; r == SP_E_LIMIT && i < d->memory_count; i++) {
                m->memory = &d->memories[i];
                r = heap_take(&m->memory->heap, size, BUFFER_ALIGN, &m->at);
        }
        almaif_unlock(d->backend);
        if (r < 0) {
                mem_free(m);
                return r == SP_E_LIMIT ? CL_MEM_OBJECT_ALLOCATION_FAILURE : CL_OUT_OF_HOST_MEMORY;
        }
        if (d->backend->clear)
                clear(m);
        *ret = m;
        return CL_SUCCESS;
}

cl_int buffer_part(struct backend_buffer *whole, size_t origin, size_t size,
                   struct backend_buffer **ret)
{
        if (whole->parent)
                return CL_INVALID_MEM_OBJECT;
        if (!size)
                return CL_INVALID_BUFFER_SIZE;
        if (!bounds_range(whole->size, origin, size))
                return CL_INVALID_VALUE;
        if (origin % BUFFER_ALIGN)
                return CL_MISALIGNED_SUB_BUFFER_OFFSET;
        struct backend_buffer *m = mem_zalloc(sizeof(*m));
        if (!m)
                return CL_OUT_OF_HOST_MEMORY;
        *m = (struct backend_buffer){ .refs = 1,
                                      .parent = buffer_ref(whole),
                                      .domain = whole->domain,
                                      .memory = whole->memory,
                                      .at = whole->at + origin,
                                      .size = size };
        *ret = m;
        return CL_SUCCESS;
}
