#include "sort.h"

#include <stdio.h>
#include <stdlib.h>

#include "shared.h"

void sort_open(struct sort *s, struct machine *m, struct device *d, size_t capacity)
{
        *s = (struct sort){ .device = d };
        scan_open(&s->scan, m, d);
        s->keys = new_kernel(d, "keys");
        s->count = new_kernel(d, "sort_count");
        s->move = new_kernel(d, "sort_move");
        s->last = new_kernel(d, "sort_last");
        s->arrange = new_kernel(d, "arrange");
        for (int i = 0; i < 2; i++)
                s->pairs[i] = new_buffer(m, capacity * 8, NULL);
        s->histogram = new_buffer(m, DIGITS * d->chunks * 4, NULL);
        s->index = new_buffer(m, capacity * 4, NULL);
        s->index_bytes = new_buffer(m, sizeof(cl_ulong), NULL);
        s->arranged = new_buffer(m, capacity * 8, NULL);
        s->arranged_bytes = new_buffer(m, sizeof(cl_ulong), NULL);
}

void sort_close(struct sort *s)
{
        cl_kernel kernels[] = { s->keys, s->count, s->move, s->last, s->arrange };
        cl_mem buffers[] = { s->pairs[0],    s->pairs[1], s->histogram,     s->index,
                             s->index_bytes, s->arranged, s->arranged_bytes };
        scan_close(&s->scan);
        for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
                clReleaseKernel(kernels[i]);
        for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
                clReleaseMemObject(buffers[i]);
}

/* Sort the pairs in pairs[0] into the index list. */
static void sort_pairs(struct sort *s)
{
        for (int shift = 0, from = 0; shift < KEY_BITS; shift += DIGIT, from = !from) {
                bool last = shift + DIGIT >= KEY_BITS;
                cl_kernel move = last ? s->last : s->move, both[] = { s->count, move };
                for (int i = 0; i < 2; i++) {
                        set_buffers(both[i], 0, (cl_mem[]){ s->pairs[from], s->index_bytes }, 2);
                        set_int(both[i], 2, shift);
                        set_buffers(both[i], 3, &s->histogram, 1);
                }
                set_buffers(move, 4, last ? &s->index : &s->pairs[!from], 1);
                launch_chunks(s->device, s->count);
                scan_run(&s->scan, s->histogram, DIGITS * s->device->chunks);
                launch_chunks(s->device, move);
        }
}

void sort_run(struct sort *s, cl_mem points, cl_mem bytes, cl_mem pose)
{
        set_buffers(s->keys, 0, (cl_mem[]){ points, bytes, pose, s->pairs[0], s->index_bytes }, 5);
        launch_chunks(s->device, s->keys);
        sort_pairs(s);
}

void sort_arrange(struct sort *s, cl_mem points)
{
        set_buffers(s->arrange, 0,
                    (cl_mem[]){ points, s->index, s->index_bytes, s->arranged, s->arranged_bytes },
                    5);
        launch_chunks(s->device, s->arrange);
}

/* ---- against the host ------------------------------------------------------------------------ */

/* Compare by key, and equal keys by index, as a stable sort leaves them. */
static int compare_pairs(const void *a, const void *b)
{
        const uint32_t *p = a, *q = b;
        if (p[0] != q[0])
                return p[0] < q[0] ? -1 : 1;
        return p[1] < q[1] ? -1 : p[1] > q[1];
}

enum kind { RANDOM, FEW, SORTED, REVERSED, EQUAL, KINDS };

static uint32_t key_of(enum kind kind, uint32_t i, uint32_t *random)
{
        *random = *random * 1664525u + 1013904223u;
        uint32_t all = (1u << KEY_BITS) - 1;
        switch (kind) {
        case RANDOM:
                return *random >> (32 - KEY_BITS);
        case FEW:
                return (*random >> 24) % 7 * 0x10101u;
        case SORTED:
                return i & all;
        case REVERSED:
                return all - (i & all);
        default:
                return 0x123456u & all;
        }
}

void sort_verify(struct machine *m, struct device *d, size_t count)
{
        struct sort s;
        uint32_t random = 7, (*pairs)[2] = allocate(count, sizeof(*pairs));
        uint32_t *index = allocate(count, sizeof(*index));
        cl_ulong bytes = count * 4;
        sort_open(&s, m, d, count ? count : 1);
        for (int kind = 0; kind < KINDS; kind++) {
                for (size_t i = 0; i < count; i++) {
                        pairs[i][0] = key_of((enum kind)kind, (uint32_t)i, &random);
                        pairs[i][1] = (uint32_t)i;
                }
                if (count)
                        write_buffer(d, s.pairs[0], count * 8, pairs);
                write_buffer(d, s.index_bytes, sizeof(bytes), &bytes);
                sort_pairs(&s);
                if (count)
                        read_buffer(d, s.index, count * 4, index);
                qsort(pairs, count, sizeof(*pairs), compare_pairs);
                for (size_t i = 0; i < count; i++)
                        if (index[i] != pairs[i][1])
                                die("keys of kind %d: index %zu of %zu is %u, not %u", kind, i,
                                    count, index[i], pairs[i][1]);
        }
        sort_close(&s);
        free(pairs);
        free(index);
        printf("sorted %zu keys of %d kinds like the host on %s\n", count, KINDS, d->name);
}
