/* Reference implementations of the registry's kernels on arrays and matrices that are more than a line. */
#include <math.h>
#include <string.h>

#include "backend/builtin/kernels.h"
#include "base/mem.h"
#include "os/lock.h"

/* A product of sizes, or more than any buffer has. */
static size_t product(const size_t *sizes, size_t count)
{
        size_t n = 1;
        for (size_t i = 0; i < count; i++)
                if (__builtin_mul_overflow(n, sizes[i], &n))
                        return SIZE_MAX;
        return n;
}

static uint32_t value_u32(const struct registry_launch *l, unsigned arg)
{
        uint32_t v;
        memcpy(&v, l->args[arg].data, sizeof(v));
        return v;
}

static float value_f32(const struct registry_launch *l, unsigned arg)
{
        float v;
        memcpy(&v, l->args[arg].data, sizeof(v));
        return v;
}

static float f32_at(const struct registry_launch *l, unsigned arg, size_t i)
{
        float v;
        memcpy(&v, (const uint8_t *)l->args[arg].data + i * 4, sizeof(v));
        return v;
}

static void put_f32(const struct registry_launch *l, unsigned arg, size_t i, float v)
{
        memcpy((uint8_t *)l->args[arg].data + i * 4, &v, sizeof(v));
}

/* ---- the world outside ---------------------------------------------------------------------- */

/* There is no LED. */
cl_int kernel_ledblink(const struct registry_launch *l)
{
        return kernel_covers(l, 0, 4, 0, 1) && kernel_covers(l, 1, 4, 0, 1) ? CL_SUCCESS
                                                                            : CL_OUT_OF_RESOURCES;
}

enum { STREAM_WORDS = 1 << 16 };

/* The stream's two ends are connected. `lock` guards all of it; a leaf. */
static struct {
        struct lock lock;
        uint32_t words[STREAM_WORDS];
        size_t first, count;
} stream = { .lock = LOCK_INIT };

cl_int kernel_streamout_i32(const struct registry_launch *l)
{
        size_t first = l->offset[0], count = kernel_items(l);
        if (!kernel_covers(l, 0, 4, first, count))
                return CL_OUT_OF_RESOURCES;
        lock_take(&stream.lock);
        bool room = count <= STREAM_WORDS - stream.count;
        for (size_t i = 0; room && i < count; i++)
                memcpy(&stream.words[(stream.first + stream.count++) % STREAM_WORDS],
                       (const uint8_t *)l->args[0].data + (first + i) * 4, 4);
        lock_release(&stream.lock);
        return room ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}

cl_int kernel_streamin_i32(const struct registry_launch *l)
{
        size_t first = l->offset[0], count = kernel_items(l);
        if (!kernel_covers(l, 0, 4, first, count))
                return CL_OUT_OF_RESOURCES;
        lock_take(&stream.lock);
        bool enough = count <= stream.count;
        for (size_t i = 0; enough && i < count; i++, stream.count--)
                memcpy((uint8_t *)l->args[0].data + (first + i) * 4,
                       &stream.words[stream.first++ % STREAM_WORDS], 4);
        stream.first %= STREAM_WORDS;
        lock_release(&stream.lock);
        return enough ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}

/* ---- matrices ------------------------------------------------------------------------------- */

static float f16_at(const struct registry_launch *l, unsigned arg, size_t i)
{
        uint16_t h;
        memcpy(&h, (const uint8_t *)l->args[arg].data + i * 2, sizeof(h));
        int exponent = h >> 10 & 31, fraction = h & 1023;
        float v = exponent == 31  ? (fraction ? NAN : INFINITY)
                  : exponent == 0 ? ldexpf((float)fraction, -24)
                                  : ldexpf((float)(fraction + 1024), exponent - 25);
        return h >> 15 ? -v : v;
}

/* All of C, whatever the launch: hardware divides it among warps as it likes. */
static cl_int sgemm_f16(const struct registry_launch *l, float alpha, float beta)
{
        size_t m = value_u32(l, 3), n = value_u32(l, 4), k = value_u32(l, 5);
        if (!kernel_covers(l, 0, 2, 0, m * k) || !kernel_covers(l, 1, 2, 0, k * n) ||
            !kernel_covers(l, 2, 4, 0, m * n))
                return CL_OUT_OF_RESOURCES;
        for (size_t j = 0; j < n; j++) {
                for (size_t i = 0; i < m; i++) {
                        float sum = 0;
                        for (size_t x = 0; x < k; x++)
                                sum += f16_at(l, 0, x * m + i) * f16_at(l, 1, j * k + x);
                        float before = beta != 0 ? beta * f32_at(l, 2, j * m + i) : 0;
                        put_f32(l, 2, j * m + i, alpha * sum + before);
                }
        }
        return CL_SUCCESS;
}

cl_int kernel_sgemm_f16_scale(const struct registry_launch *l)
{
        return sgemm_f16(l, value_f32(l, 6), value_f32(l, 7));
}

cl_int kernel_sgemm_f16(const struct registry_launch *l)
{
        return sgemm_f16(l, 1, 0);
}

/* ---- layers of networks --------------------------------------------------------------------- */

cl_int kernel_maxpool_i8(const struct registry_launch *l)
{
        size_t window_x = value_u32(l, 2), window_y = value_u32(l, 3);
        size_t stride_x = value_u32(l, 4), stride_y = value_u32(l, 5);
        size_t x1 = l->offset[0] + l->global[0], y1 = l->offset[1] + l->global[1];
        size_t planes = l->offset[2] + l->global[2];
        if (!window_x || !window_y || !kernel_items(l))
                return CL_OUT_OF_RESOURCES;
        size_t steps_x = product((size_t[]){ x1 - 1, stride_x }, 2);
        size_t steps_y = product((size_t[]){ y1 - 1, stride_y }, 2);
        size_t width = steps_x + window_x, height = steps_y + window_y;
        if (width < window_x || height < window_y ||
            !kernel_covers(l, 0, 1, 0, product((size_t[]){ width, height, planes }, 3)) ||
            !kernel_covers(l, 1, 1, 0, product((size_t[]){ x1, y1, planes }, 3)))
                return CL_OUT_OF_RESOURCES;
        const int8_t *in = l->args[0].data;
        for (size_t z = l->offset[2]; z < planes; z++) {
                for (size_t i = 0; i < l->global[0] * l->global[1]; i++) {
                        size_t x = l->offset[0] + i % l->global[0];
                        size_t y = l->offset[1] + i / l->global[0];
                        int8_t most = INT8_MIN;
                        for (size_t j = 0; j < window_x * window_y; j++) {
                                size_t at = (z * height + y * stride_y + j / window_x) * width +
                                            x * stride_x + j % window_x;
                                most = in[at] > most ? in[at] : most;
                        }
                        ((int8_t *)l->args[1].data)[(z * y1 + y) * x1 + x] = most;
                }
        }
        return CL_SUCCESS;
}

enum { VOTERS = 8, VOTERS_AT = 2 };

static const uint8_t *ballot(const struct registry_launch *l, unsigned voter, size_t element,
                             size_t i)
{
        return (const uint8_t *)l->args[VOTERS_AT + voter].data + i * element;
}

/* The element that most inputs have; among as many, that of the first of them. */
static cl_int vote(const struct registry_launch *l, size_t element)
{
        size_t first = l->offset[0], count = kernel_items(l);
        unsigned voters = value_u32(l, 1);
        bool ok = voters && voters <= VOTERS && kernel_covers(l, 0, element, first, count);
        for (unsigned v = 0; ok && v < voters; v++)
                ok = kernel_covers(l, VOTERS_AT + v, element, first, count);
        for (size_t i = first; ok && i < first + count; i++) {
                unsigned most = 0, winner = 0;
                for (unsigned v = 0; v < voters; v++) {
                        unsigned same = 0;
                        for (unsigned w = 0; w < voters; w++)
                                same += !memcmp(ballot(l, v, element, i), ballot(l, w, element, i),
                                                element);
                        winner = same > most ? v : winner;
                        most = same > most ? same : most;
                }
                memmove((uint8_t *)l->args[0].data + i * element, ballot(l, winner, element, i),
                        element);
        }
        return ok ? CL_SUCCESS : CL_OUT_OF_RESOURCES;
}

cl_int kernel_vote_u32(const struct registry_launch *l)
{
        return vote(l, 4);
}

cl_int kernel_vote_u8(const struct registry_launch *l)
{
        return vote(l, 1);
}

/* Sizes of a convolution; all of them are not negative, and products of images fit. */
struct conv {
        size_t n, c, h, w, k, fc, fh, fw, stride_h, stride_w, dilation_h, dilation_w, pad_h, pad_w,
                groups, out_h, out_w;
};

static size_t out_size(size_t in, size_t pad, size_t filter, size_t dilation, size_t stride)
{
        size_t reach = (filter - 1) * dilation + 1;
        return in + 2 * pad < reach ? 0 : (in + 2 * pad - reach) / stride + 1;
}

static bool conv_of(const struct registry_launch *l, struct conv *v)
{
        size_t *const fields[] = { &v->n,        &v->c,        &v->h,          &v->w,
                                   &v->k,        &v->fc,       &v->fh,         &v->fw,
                                   &v->stride_h, &v->stride_w, &v->dilation_h, &v->dilation_w,
                                   &v->pad_h,    &v->pad_w,    &v->groups };
        for (unsigned i = 0; i < array_size(fields); i++) {
                uint32_t value = value_u32(l, 3 + i);
                bool may_be_zero = fields[i] == &v->pad_h || fields[i] == &v->pad_w;
                if (value > INT32_MAX || (!value && !may_be_zero))
                        return false;
                *fields[i] = value;
        }
        v->out_h = out_size(v->h, v->pad_h, v->fh, v->dilation_h, v->stride_h);
        v->out_w = out_size(v->w, v->pad_w, v->fw, v->dilation_w, v->stride_w);
        return v->c == product((size_t[]){ v->fc, v->groups }, 2) && v->k % v->groups == 0 &&
               kernel_covers(l, 0, 4, 0, product((size_t[]){ v->n, v->c, v->h, v->w }, 4)) &&
               kernel_covers(l, 1, 4, 0, product((size_t[]){ v->k, v->fc, v->fh, v->fw }, 4)) &&
               kernel_covers(l, 2, 4, 0, product((size_t[]){ v->n, v->k, v->out_h, v->out_w }, 4));
}

/* One element of the output: filter k over image n, at row y and column x. */
static float conv_sum(const struct registry_launch *l, const struct conv *v, size_t n, size_t k,
                      size_t y, size_t x)
{
        size_t group = k / (v->k / v->groups);
        float sum = 0;
        for (size_t c = 0; c < v->fc; c++) {
                for (size_t i = 0; i < v->fh * v->fw; i++) {
                        size_t row = y * v->stride_h + i / v->fw * v->dilation_h - v->pad_h;
                        size_t column = x * v->stride_w + i % v->fw * v->dilation_w - v->pad_w;
                        if (row >= v->h || column >= v->w) /* below 0, too */
                                continue;
                        size_t plane = n * v->c + group * v->fc + c;
                        sum += f32_at(l, 0, (plane * v->h + row) * v->w + column) *
                               f32_at(l, 1, (k * v->fc + c) * v->fh * v->fw + i);
                }
        }
        return sum;
}

/* All of the output, whatever the launch. */
cl_int kernel_conv2d_f32(const struct registry_launch *l)
{
        struct conv v;
        if (!conv_of(l, &v))
                return CL_OUT_OF_RESOURCES;
        float alpha = value_f32(l, 18), beta = value_f32(l, 19);
        for (size_t i = 0; i < v.n * v.k * v.out_h * v.out_w; i++) {
                size_t x = i % v.out_w, y = i / v.out_w % v.out_h, plane = i / v.out_w / v.out_h;
                float before = beta != 0 ? beta * f32_at(l, 2, i) : 0;
                put_f32(l, 2, i, alpha * conv_sum(l, &v, plane / v.k, plane % v.k, y, x) + before);
        }
        return CL_SUCCESS;
}
