/* Entry points that enqueue commands. The API has checked the parameters of each function. The function
 * brings the data that the command needs to its device, sends the command, and waits if it is
 * blocking. It takes the client's lock itself and returns a cl_int. */
#ifndef SPANCL_CORE_ENQUEUE_H
#define SPANCL_CORE_ENQUEUE_H

#include "base/bytes.h"
#include "core/object.h"

struct recorder;

/* The common parameters of all clEnqueue* and clCommand* functions. */
struct enqueue {
        cl_command_queue queue;
        cl_command_type type;
        cl_uint wait_count;
        const cl_event *waits;
        cl_event *ret_event; /* NULL: not wanted */
        bool blocking;
        struct recorder
                *record; /* core/command/command_buffer.h: record it instead; NULL: enqueue it */
};

/* A box in memory or in a buffer: origin and region in bytes, rows, slices. */
struct box {
        size_t origin[3];
        size_t row_pitch, slice_pitch;
};

enum { FILL_PATTERN_MAX = 128 };

/* From the first to behind the last byte of the box. */
static inline struct range box_range(const struct box *b, const size_t region[3])
{
        size_t begin = b->origin[2] * b->slice_pitch + b->origin[1] * b->row_pitch + b->origin[0];
        size_t size = (region[2] - 1) * b->slice_pitch + (region[1] - 1) * b->row_pitch + region[0];
        return (struct range){ begin, begin + size };
}

cl_int enqueue_write(const struct enqueue *q, cl_mem m, size_t offset, size_t size,
                     const void *from);
cl_int enqueue_read(const struct enqueue *q, cl_mem m, size_t offset, size_t size, void *to);
cl_int enqueue_write_rect(const struct enqueue *q, cl_mem m, const struct box *at,
                          const struct box *host, const size_t region[3], const void *from);
cl_int enqueue_read_rect(const struct enqueue *q, cl_mem m, const struct box *at,
                         const struct box *host, const size_t region[3], void *to);
cl_int enqueue_copy(const struct enqueue *q, cl_mem src, cl_mem dst, size_t src_offset,
                    size_t dst_offset, size_t size);
cl_int enqueue_copy_rect(const struct enqueue *q, cl_mem src, cl_mem dst, const struct box *from,
                         const struct box *to, const size_t region[3]);
/* The application's pattern has at most FILL_PATTERN_MAX bytes; it may lie in unified shared memory. */
cl_int enqueue_fill(const struct enqueue *q, cl_mem m, struct bytes pattern, size_t offset,
                    size_t size);
cl_int enqueue_marker(const struct enqueue *q, bool barrier);
/* A command that does nothing after its wait list; unlike a marker without one it may run at any time. */
cl_int enqueue_nothing(const struct enqueue *q);
/* `ranges`: which bytes of each; NULL: all. */
cl_int enqueue_migrate(const struct enqueue *q, cl_uint count, const cl_mem *mems,
                       const struct range *ranges, cl_mem_migration_flags flags);

#endif
