#include "backend/builtin/registry.h"

#include <math.h>
#include <string.h>

#include "backend/builtin/kernels.h"

static uint32_t value_u32(const struct registry_launch *l, unsigned i)
{
        uint32_t v;
        memcpy(&v, l->args[i].data, sizeof(v));
        return v;
}

/* Buffers are as aligned as sub-buffers are, but elements are copied all the same: cheap, and no
 * offset can go wrong. Arithmetic is unsigned: signed overflow would be undefined. */
#define BINARY(function, type, op)                                            \
        static cl_int function(const struct registry_launch *l)               \
        {                                                                     \
                size_t first = l->offset[0], count = kernel_items(l);         \
                for (unsigned i = 0; i < 3; i++)                              \
                        if (!kernel_covers(l, i, sizeof(type), first, count)) \
                                return CL_OUT_OF_RESOURCES;                   \
                const uint8_t *a = l->args[0].data, *b = l->args[1].data;     \
                uint8_t *c = l->args[2].data;                                 \
                for (size_t i = first; i < first + count; i++) {              \
                        type x, y;                                            \
                        memcpy(&x, a + i * sizeof(type), sizeof(type));       \
                        memcpy(&y, b + i * sizeof(type), sizeof(type));       \
                        x = (type)((uint32_t)x op(uint32_t) y);               \
                        memcpy(c + i * sizeof(type), &x, sizeof(type));       \
                }                                                             \
                return CL_SUCCESS;                                            \
        }

BINARY(add_i8, uint8_t, +)
BINARY(mul_i8, uint8_t, *)
BINARY(add_i16, uint16_t, +)
BINARY(mul_i16, uint16_t, *)
BINARY(add_i32, uint32_t, +)
BINARY(mul_i32, uint32_t, *)

static cl_int copy_i8(const struct registry_launch *l)
{
        size_t first = l->offset[0], count = kernel_items(l);
        if (!kernel_covers(l, 0, 1, first, count) || !kernel_covers(l, 1, 1, first, count))
                return CL_OUT_OF_RESOURCES;
        if (count)
                memmove((uint8_t *)l->args[1].data + first,
                        (const uint8_t *)l->args[0].data + first, count);
        return CL_SUCCESS;
}

static cl_int countred(const struct registry_launch *l)
{
        size_t first = l->offset[0], count = kernel_items(l);
        if (!kernel_covers(l, 0, 4, first, count) || !kernel_covers(l, 1, 4, 0, 1))
                return CL_OUT_OF_RESOURCES;
        uint32_t sum = 0;
        const uint8_t *pixels = l->args[0].data;
        for (size_t i = first; i < first + count; i++) {
                uint32_t pixel;
                memcpy(&pixel, pixels + i * 4, sizeof(pixel));
                sum += (pixel & 0xFF) > 100;
        }
        memcpy(l->args[1].data, &sum, sizeof(sum));
        return CL_SUCCESS;
}

static cl_int abs_f32(const struct registry_launch *l)
{
        size_t first = l->offset[0], count = kernel_items(l);
        if (!kernel_covers(l, 0, 4, first, count) || !kernel_covers(l, 1, 4, first, count))
                return CL_OUT_OF_RESOURCES;
        const uint8_t *in = l->args[0].data;
        uint8_t *out = l->args[1].data;
        for (size_t i = first; i < first + count; i++) {
                float x;
                memcpy(&x, in + i * 4, sizeof(x));
                x = fabsf(x);
                memcpy(out + i * 4, &x, sizeof(x));
        }
        return CL_SUCCESS;
}

static float element_f32(const void *matrix, size_t i)
{
        float x;
        memcpy(&x, (const uint8_t *)matrix + i * 4, sizeof(x));
        return x;
}

static cl_int sgemm_f32(const struct registry_launch *l)
{
        size_t m = value_u32(l, 3), n = value_u32(l, 4), k = value_u32(l, 5);
        if (!kernel_covers(l, 0, 4, 0, m * k) || !kernel_covers(l, 1, 4, 0, k * n) ||
            !kernel_covers(l, 2, 4, 0, m * n))
                return CL_OUT_OF_RESOURCES;
        size_t row_end = l->offset[0] + l->global[0], column_end = l->offset[1] + l->global[1];
        row_end = row_end < m ? row_end : m;
        column_end = column_end < n ? column_end : n;
        for (size_t i = l->offset[0]; i < row_end; i++) {
                for (size_t j = l->offset[1]; j < column_end; j++) {
                        float sum = 0;
                        for (size_t x = 0; x < k; x++)
                                sum += element_f32(l->args[0].data, i * k + x) *
                                       element_f32(l->args[1].data, x * n + j);
                        memcpy((uint8_t *)l->args[2].data + (i * n + j) * 4, &sum, sizeof(sum));
                }
        }
        return CL_SUCCESS;
}

static cl_int noop(const struct registry_launch *l)
{
        return CL_SUCCESS;
}

static cl_int inc_i32(const struct registry_launch *l)
{
        size_t first = l->offset[0], count = kernel_items(l);
        if (!kernel_covers(l, 0, 4, first, count))
                return CL_OUT_OF_RESOURCES;
        uint8_t *data = l->args[0].data;
        uint32_t by = value_u32(l, 1);
        for (size_t i = first; i < first + count; i++) {
                uint32_t x;
                memcpy(&x, data + i * 4, sizeof(x));
                x += by;
                memcpy(data + i * 4, &x, sizeof(x));
        }
        return CL_SUCCESS;
}

/* clang-format off */
static const struct registry_kernel kernels[] = {
#define KERNEL(number, kernel_name, function, text) \
        { .id = (number), .name = (kernel_name), .doc = (text), .run = (function), .args = {
#define IN(n, t)    { #n, #t "*", sizeof(cl_##t), true, REGISTRY_IN },
#define OUT(n, t)   { #n, #t "*", sizeof(cl_##t), true, REGISTRY_OUT },
#define INOUT(n, t) { #n, #t "*", sizeof(cl_##t), true, REGISTRY_INOUT },
#define VALUE(n, t) { #n, #t, sizeof(cl_##t), false, REGISTRY_IN },
#define END(function) { NULL } } },
#include "backend/builtin/registry.def"
};
/* clang-format on */

unsigned registry_arg_count(const struct registry_kernel *k)
{
        unsigned n = 0;
        while (k->args[n].name)
                n++;
        return n;
}

const struct registry_kernel *registry_find(const char *name, size_t size)
{
        for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
                if (strlen(kernels[i].name) == size && !memcmp(kernels[i].name, name, size))
                        return &kernels[i];
        return NULL;
}

const struct registry_kernel *registry_find_id(unsigned id)
{
        for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
                if (kernels[i].id == id)
                        return &kernels[i];
        return NULL;
}

const struct registry_kernel *registry_at(size_t i)
{
        return i < sizeof(kernels) / sizeof(kernels[0]) ? &kernels[i] : NULL;
}
