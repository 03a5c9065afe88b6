/* Work-items, barriers, functions of the whole group, atomics. One core executes a launch's work-items one after
 * the other and changes from one to another at barriers only: plain loads and stores are atomic. */
#include <spancl/riscv.h>

#include "builtins.h"

static const private struct riscv_item *self(void)
{
        const private struct riscv_item *p;
        __asm__("mv %0, tp" : "=r"(p));
        return p;
}

static private struct riscv_group *ours(void)
{
        return (private struct riscv_group *)self()->group;
}

uint OV get_work_dim(void)
{
        return ours()->dimensions;
}

#define IN_DIMENSIONS(name, value, otherwise) \
        size_t OV name(uint d)                \
        {                                     \
                return d < 3 ? (value) : otherwise; \
        }
IN_DIMENSIONS(get_global_id, self()->global_id[d], 0)
IN_DIMENSIONS(get_local_id, self()->local_id[d], 0)
IN_DIMENSIONS(get_global_size, ours()->global_size[d], 1)
IN_DIMENSIONS(get_local_size, ours()->group_size[d], 1)
IN_DIMENSIONS(get_enqueued_local_size, ours()->local_size[d], 1)
IN_DIMENSIONS(get_num_groups, ours()->groups[d], 1)
IN_DIMENSIONS(get_group_id, ours()->group[d], 0)
IN_DIMENSIONS(get_global_offset, ours()->offset[d], 0)

size_t OV get_local_linear_id(void)
{
        return self()->index;
}

size_t OV get_global_linear_id(void)
{
        const private struct riscv_item *i = self();
        const private struct riscv_group *g = ours();
        return ((i->global_id[2] - g->offset[2]) * g->global_size[1] + i->global_id[1] - g->offset[1]) *
                       g->global_size[0] +
               i->global_id[0] - g->offset[0];
}

/* ---- barriers ------------------------------------------------------------------------------- */

/* A function's address is a number to the firmware. */
static void wait_for_all(void)
{
        uint to = ours()->barrier;
        __asm__ volatile("jalr %0" : : "r"(to)
                         : "memory", "ra", "t0", "t1", "t2", "t3", "t4", "t5", "t6", "a0", "a1", "a2",
                           "a3", "a4", "a5", "a6", "a7");
}

static void fence(void)
{
        __asm__ volatile("" : : : "memory");
}

void OV barrier(cl_mem_fence_flags flags)
{
        wait_for_all();
}

void OV work_group_barrier(cl_mem_fence_flags flags)
{
        wait_for_all();
}

void OV work_group_barrier(cl_mem_fence_flags flags, memory_scope scope)
{
        wait_for_all();
}

void OV mem_fence(cl_mem_fence_flags flags)
{
        fence();
}

void OV read_mem_fence(cl_mem_fence_flags flags)
{
        fence();
}

void OV write_mem_fence(cl_mem_fence_flags flags)
{
        fence();
}

void OV atomic_work_item_fence(cl_mem_fence_flags flags, memory_order order, memory_scope scope)
{
        fence();
}

/* ---- functions of the whole group ----------------------------------------------------------- */

/* Each work-item adds its value to the shared one, in the order of their numbers. A scan takes the
 * shared value just before (exclusive) or after (inclusive) that. Between barriers they run in that
 * order. */
#define SHARED(T) ((private volatile T *)ours()->shared)

#define GROUP_ONE(T, name, first, combine)                \
        T OV work_group_reduce_##name(T x)                \
        {                                                 \
                wait_for_all();                           \
                T before = self()->index ? *SHARED(T) : (T)(first); \
                *SHARED(T) = combine;                     \
                wait_for_all();                           \
                return *SHARED(T);                        \
        }                                                 \
        T OV work_group_scan_inclusive_##name(T x)        \
        {                                                 \
                wait_for_all();                           \
                T before = self()->index ? *SHARED(T) : (T)(first); \
                T r = combine;                            \
                *SHARED(T) = r;                           \
                wait_for_all();                           \
                return r;                                 \
        }                                                 \
        T OV work_group_scan_exclusive_##name(T x)        \
        {                                                 \
                wait_for_all();                           \
                T before = self()->index ? *SHARED(T) : (T)(first); \
                *SHARED(T) = combine;                     \
                wait_for_all();                           \
                return before;                            \
        }

#define GROUP(T, least, most)                                   \
        GROUP_ONE(T, add, 0, before + x)                        \
        GROUP_ONE(T, min, most, before < x ? before : x)        \
        GROUP_ONE(T, max, least, before > x ? before : x)       \
        T OV work_group_broadcast(T x, size_t a)                \
        {                                                       \
                wait_for_all();                                 \
                if (self()->local_id[0] == a)                   \
                        *SHARED(T) = x;                         \
                wait_for_all();                                 \
                return *SHARED(T);                              \
        }                                                       \
        T OV work_group_broadcast(T x, size_t a, size_t b)      \
        {                                                       \
                wait_for_all();                                 \
                if (self()->local_id[0] == a && self()->local_id[1] == b) \
                        *SHARED(T) = x;                         \
                wait_for_all();                                 \
                return *SHARED(T);                              \
        }                                                       \
        T OV work_group_broadcast(T x, size_t a, size_t b, size_t c) \
        {                                                       \
                wait_for_all();                                 \
                if (self()->local_id[0] == a && self()->local_id[1] == b && \
                    self()->local_id[2] == c)                   \
                        *SHARED(T) = x;                         \
                wait_for_all();                                 \
                return *SHARED(T);                              \
        }

GROUP(int, INT_MIN, INT_MAX)
GROUP(uint, 0, UINT_MAX)
GROUP(long, LONG_MIN, LONG_MAX)
GROUP(ulong, 0, ULONG_MAX)
GROUP(float, -INFINITY, INFINITY)

int OV work_group_all(int x)
{
        return work_group_reduce_min(x != 0 ? 1 : 0);
}

int OV work_group_any(int x)
{
        return work_group_reduce_max(x != 0 ? 1 : 0);
}

/* ---- atomics -------------------------------------------------------------------------------- */

#define ATOMIC(AS, T, name, old, arguments, value) \
        T OV name arguments                        \
        {                                          \
                T was = *p;                        \
                *p = value;                        \
                return was;                        \
        }

#define ATOMICS_OF(AS, T, prefix)                                                           \
        ATOMIC(AS, T, prefix##add, , (volatile AS T *p, T v), was + v)                      \
        ATOMIC(AS, T, prefix##sub, , (volatile AS T *p, T v), was - v)                      \
        ATOMIC(AS, T, prefix##xchg, , (volatile AS T *p, T v), v)                           \
        ATOMIC(AS, T, prefix##inc, , (volatile AS T *p), was + 1)                           \
        ATOMIC(AS, T, prefix##dec, , (volatile AS T *p), was - 1)                           \
        ATOMIC(AS, T, prefix##cmpxchg, , (volatile AS T *p, T c, T v), was == c ? v : was)  \
        ATOMIC(AS, T, prefix##min, , (volatile AS T *p, T v), was < v ? was : v)            \
        ATOMIC(AS, T, prefix##max, , (volatile AS T *p, T v), was > v ? was : v)            \
        ATOMIC(AS, T, prefix##and, , (volatile AS T *p, T v), was & v)                      \
        ATOMIC(AS, T, prefix##or, , (volatile AS T *p, T v), was | v)                       \
        ATOMIC(AS, T, prefix##xor, , (volatile AS T *p, T v), was ^ v)

#define ATOMICS(AS)                    \
        ATOMICS_OF(AS, int, atomic_)   \
        ATOMICS_OF(AS, uint, atomic_)  \
        ATOMICS_OF(AS, int, atom_)     \
        ATOMICS_OF(AS, uint, atom_)    \
        ATOMIC(AS, float, atomic_xchg, , (volatile AS float *p, float v), v)
ATOMICS(global)
ATOMICS(local)

/* OpenCL C 3.0's. */
#define WITH_ORDERS(R, name, parameters, names)                                           \
        R OV name##_explicit(UNPACK parameters, memory_order o) { return name names; }    \
        R OV name##_explicit(UNPACK parameters, memory_order o, memory_scope s) { return name names; }
#define UNPACK(...) __VA_ARGS__

#define C11_FETCH(AS, T, name, value)                                  \
        T OV atomic_fetch_##name(volatile AS atomic_##T *p, T v)       \
        {                                                              \
                volatile AS T *q = (volatile AS T *)p;                 \
                T was = *q;                                            \
                *q = value;                                            \
                return was;                                            \
        }                                                              \
        WITH_ORDERS(T, atomic_fetch_##name, (volatile AS atomic_##T *p, T v), (p, v))

#define C11_ANY(AS, T)                                                             \
        void OV atomic_init(volatile AS atomic_##T *p, T v)                        \
        {                                                                          \
                *(volatile AS T *)p = v;                                           \
        }                                                                          \
        void OV atomic_store(volatile AS atomic_##T *p, T v)                       \
        {                                                                          \
                *(volatile AS T *)p = v;                                           \
        }                                                                          \
        WITH_ORDERS(void, atomic_store, (volatile AS atomic_##T *p, T v), (p, v))  \
        T OV atomic_load(volatile AS atomic_##T *p)                                \
        {                                                                          \
                return *(volatile AS T *)p;                                        \
        }                                                                          \
        WITH_ORDERS(T, atomic_load, (volatile AS atomic_##T *p), (p))              \
        T OV atomic_exchange(volatile AS atomic_##T *p, T v)                       \
        {                                                                          \
                volatile AS T *q = (volatile AS T *)p;                             \
                T was = *q;                                                        \
                *q = v;                                                            \
                return was;                                                        \
        }                                                                          \
        WITH_ORDERS(T, atomic_exchange, (volatile AS atomic_##T *p, T v), (p, v))

#define C11_COMPARE(AS, T, AS2, name)                                              \
        bool OV name(volatile AS atomic_##T *p, AS2 T *expected, T v)              \
        {                                                                          \
                volatile AS T *q = (volatile AS T *)p;                             \
                T was = *q;                                                        \
                if (was == *expected) {                                            \
                        *q = v;                                                    \
                        return true;                                               \
                }                                                                  \
                *expected = was;                                                   \
                return false;                                                      \
        }                                                                          \
        bool OV name##_explicit(volatile AS atomic_##T *p, AS2 T *expected, T v, memory_order a, \
                                memory_order b)                                    \
        {                                                                          \
                return name(p, expected, v);                                       \
        }                                                                          \
        bool OV name##_explicit(volatile AS atomic_##T *p, AS2 T *expected, T v, memory_order a, \
                                memory_order b, memory_scope s)                    \
        {                                                                          \
                return name(p, expected, v);                                       \
        }

#define C11_COMPARES(AS, T)                                            \
        C11_COMPARE(AS, T, private, atomic_compare_exchange_strong)    \
        C11_COMPARE(AS, T, local, atomic_compare_exchange_strong)      \
        C11_COMPARE(AS, T, global, atomic_compare_exchange_strong)     \
        C11_COMPARE(AS, T, private, atomic_compare_exchange_weak)      \
        C11_COMPARE(AS, T, local, atomic_compare_exchange_weak)        \
        C11_COMPARE(AS, T, global, atomic_compare_exchange_weak)

#define C11_INT(AS, T)                                   \
        C11_ANY(AS, T)                                   \
        C11_COMPARES(AS, T)                              \
        C11_FETCH(AS, T, add, was + v)                   \
        C11_FETCH(AS, T, sub, was - v)                   \
        C11_FETCH(AS, T, or, was | v)                    \
        C11_FETCH(AS, T, xor, was ^ v)                   \
        C11_FETCH(AS, T, and, was & v)                   \
        C11_FETCH(AS, T, min, was < v ? was : v)         \
        C11_FETCH(AS, T, max, was > v ? was : v)

#define C11(AS)                  \
        C11_INT(AS, int)         \
        C11_INT(AS, uint)        \
        C11_ANY(AS, float)       \
        bool OV atomic_flag_test_and_set(volatile AS atomic_flag *p) \
        {                                                            \
                volatile AS int *q = (volatile AS int *)p;           \
                bool was = *q != 0;                                  \
                *q = 1;                                              \
                return was;                                          \
        }                                                            \
        WITH_ORDERS(bool, atomic_flag_test_and_set, (volatile AS atomic_flag *p), (p)) \
        void OV atomic_flag_clear(volatile AS atomic_flag *p)        \
        {                                                            \
                *(volatile AS int *)p = 0;                           \
        }                                                            \
        WITH_ORDERS(void, atomic_flag_clear, (volatile AS atomic_flag *p), (p))
C11(global)
C11(local)

/* One core, and memory in order: nothing to wait for. */
#define COPIES_OF(T)                                                                       \
        event_t OV async_work_group_copy(local T *to, const global T *from, size_t n, event_t e) \
        {                                                                                  \
                wait_for_all();                                                            \
                for (size_t i = 0; !self()->index && i < n; i++)                           \
                        to[i] = from[i];                                                   \
                return e;                                                                  \
        }                                                                                  \
        event_t OV async_work_group_copy(global T *to, const local T *from, size_t n, event_t e) \
        {                                                                                  \
                wait_for_all();                                                            \
                for (size_t i = 0; !self()->index && i < n; i++)                           \
                        to[i] = from[i];                                                   \
                return e;                                                                  \
        }                                                                                  \
        event_t OV async_work_group_strided_copy(local T *to, const global T *from, size_t n, \
                                                 size_t stride, event_t e)                 \
        {                                                                                  \
                wait_for_all();                                                            \
                for (size_t i = 0; !self()->index && i < n; i++)                           \
                        to[i] = from[i * stride];                                          \
                return e;                                                                  \
        }                                                                                  \
        event_t OV async_work_group_strided_copy(global T *to, const local T *from, size_t n, \
                                                 size_t stride, event_t e)                 \
        {                                                                                  \
                wait_for_all();                                                            \
                for (size_t i = 0; !self()->index && i < n; i++)                           \
                        to[i * stride] = from[i];                                          \
                return e;                                                                  \
        }                                                                                  \
        void OV prefetch(const global T *p, size_t n)                                      \
        {                                                                                  \
        }
#define COPIES(T) \
        COPIES_OF(T) COPIES_OF(T##2) COPIES_OF(T##3) COPIES_OF(T##4) COPIES_OF(T##8) COPIES_OF(T##16)
EACH_INT(COPIES)
COPIES(float)

void OV wait_group_events(int n, private event_t *e)
{
        wait_for_all();
}
