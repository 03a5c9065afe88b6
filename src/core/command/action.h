/* Actions: commands that read or write bytes of memory objects. They differ in their message, and in the
 * bytes; action_enqueue makes all of them. A new one is a value of enum action_kind, its message and
 * its row in action.c, and an entry point that fills in a struct action. */
#ifndef SPANCL_CORE_ACTION_H
#define SPANCL_CORE_ACTION_H

#include "core/command/command.h"
#include "core/command/transfer.h"
#include "core/memory/mem.h"

/* Named like their messages. */
enum action_kind {
        ACTION_BUFFER_WRITE,
        ACTION_BUFFER_READ,
        ACTION_BUFFER_WRITE_RECT,
        ACTION_BUFFER_READ_RECT,
        ACTION_BUFFER_COPY,
        ACTION_BUFFER_COPY_RECT,
        ACTION_BUFFER_FILL,
        ACTION_IMAGE_WRITE,
        ACTION_IMAGE_READ,
        ACTION_IMAGE_COPY,
        ACTION_IMAGE_FILL,
        ACTION_IMAGE_TO_BUFFER,
        ACTION_BUFFER_TO_IMAGE,
};

/* Bytes of a memory object. */
struct operand {
        cl_mem mem;                    /* NULL: there is no such operand */
        cl_mem named;                  /* by the message: `mem`, or its root */
        struct range bytes;            /* that the command uses, in the root */
        const size_t *origin;          /* of a region: in `named` */
        size_t row_pitch, slice_pitch; /* of a box */
};

struct action {
        enum action_kind kind;
        bool covers; /* it writes all of `to.bytes`, so that nothing of them has to be brought */
        struct operand from, to;
        const size_t *region;
        struct bytes pattern;
        struct host_box host; /* the application's bytes, if the command has some */
};

/* As the functions of core/command/enqueue.h. */
cl_int action_enqueue(const struct enqueue *q, const struct action *a);

/* Only its message; between command_ready and command_wrote. */
SP_NODISCARD int action_send(const struct command *m, const struct action *a);

/* `size` bytes of a buffer, from `offset` on. */
static inline struct operand operand_bytes(cl_mem buffer, size_t offset, size_t size)
{
        return (struct operand){ .mem = buffer,
                                 .named = mem_root(buffer),
                                 .bytes = mem_range(buffer, offset, size) };
}

/* A region of an image, which uses the whole image. */
static inline struct operand operand_image(cl_mem image, const size_t origin[3])
{
        return (struct operand){
                .mem = image, .named = image, .bytes = mem_all(image), .origin = origin
        };
}

#endif
