#include "backend/almaif/transfer.h"

#include "backend/bounds.h"

enum { BLOCK = 16384 };

static void read_bytes(const struct backend_buffer *m, size_t offset, void *to, size_t size)
{
        window_read(m->memory->window, m->memory->at + m->at + offset, to, size);
}

static void write_bytes(const struct backend_buffer *m, size_t offset, const void *from,
                        size_t size)
{
        window_write(m->memory->window, m->memory->at + m->at + offset, from, size);
}

static void copy_bytes(const struct backend_buffer *to, size_t to_at,
                       const struct backend_buffer *from, size_t from_at, size_t size)
{
        uint8_t block[BLOCK];
        while (size) {
                size_t n = size < BLOCK ? size : BLOCK;
                read_bytes(from, from_at, block, n);
                write_bytes(to, to_at, block, n);
                from_at += n;
                to_at += n;
                size -= n;
        }
}

static void fill_bytes(const struct command *k)
{
        uint8_t block[BLOCK];
        size_t pattern = k->c.pattern_size, most = BLOCK / pattern * pattern, n;
        for (size_t i = 0; i < most; i += pattern)
                memcpy(block + i, k->pattern, pattern);
        for (size_t done = 0; done < k->c.size; done += n) {
                n = k->c.size - done < most ? k->c.size - done : most;
                write_bytes(k->c.buffer, k->c.offset_bytes + done, block, n);
        }
}

static size_t row_at(const struct backend_box *x, size_t y, size_t z)
{
        return (x->origin[2] + z) * x->slice_pitch + (x->origin[1] + y) * x->row_pitch +
               x->origin[0];
}

static void run_rows(const struct backend_command *c)
{
        for (size_t z = 0; z < c->region[2]; z++) {
                for (size_t y = 0; y < c->region[1]; y++) {
                        size_t at = row_at(&c->box, y, z), n = c->region[0];
                        uint8_t *host = (uint8_t *)c->host + (z * c->region[1] + y) * n;
                        if (c->op == BACKEND_WRITE_RECT)
                                write_bytes(c->buffer, at, host, n);
                        else if (c->op == BACKEND_READ_RECT)
                                read_bytes(c->buffer, at, host, n);
                        else
                                copy_bytes(c->buffer, at, c->source, row_at(&c->source_box, y, z),
                                           n);
                }
        }
}

void transfer_run(struct command *k)
{
        const struct backend_command *c = &k->c;
        switch (c->op) {
        case BACKEND_WRITE:
                write_bytes(c->buffer, c->offset_bytes, c->host, c->size);
                break;
        case BACKEND_READ:
                read_bytes(c->buffer, c->offset_bytes, c->host, c->size);
                break;
        case BACKEND_WRITE_RECT:
        case BACKEND_READ_RECT:
        case BACKEND_COPY_RECT:
                run_rows(c);
                break;
        case BACKEND_COPY:
                copy_bytes(c->buffer, c->offset_bytes, c->source, c->source_offset, c->size);
                break;
        case BACKEND_FILL:
                fill_bytes(k);
                break;
        default: /* kernels of no work-item, markers, barriers */
                break;
        }
}

/* ---- checks --------------------------------------------------------------------------------- */

/* Where a transfer begins and ends in its memory. */
struct span {
        uint64_t begin, end;
};

static struct span span_of(const struct backend_command *c, const struct backend_buffer *m,
                           const struct backend_box *x, size_t offset)
{
        if (c->op != BACKEND_COPY_RECT)
                return (struct span){ m->at + offset, m->at + offset + c->size };
        return (struct span){ m->at + row_at(x, 0, 0),
                              m->at + row_at(x, c->region[1] - 1, c->region[2] - 1) +
                                      c->region[0] };
}

/* Copies whose spans meet are refused, also where rows would interleave, as in the reference backend. */
static bool spans_meet(const struct backend_command *c)
{
        struct span to = span_of(c, c->buffer, &c->box, c->offset_bytes);
        struct span from = span_of(c, c->source, &c->source_box, c->source_offset);
        return c->buffer->memory == c->source->memory && to.begin < from.end && from.begin < to.end;
}

cl_int transfer_check(const struct domain *d, const struct backend_command *c)
{
        bool copy = c->op == BACKEND_COPY || c->op == BACKEND_COPY_RECT;
        if (bounds_is_image_op(c->op))
                return CL_INVALID_OPERATION;
        if (!c->buffer || (copy && !c->source))
                return CL_INVALID_MEM_OBJECT;
        if (c->buffer->domain != d || (copy && c->source->domain != d))
                return CL_INVALID_CONTEXT;
        cl_int r = bounds_check(c, c->buffer->size, copy ? c->source->size : 0);
        if (r != CL_SUCCESS || !copy)
                return r;
        return spans_meet(c) ? CL_MEM_COPY_OVERLAP : CL_SUCCESS;
}
