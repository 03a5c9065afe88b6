#include "core/command/action.h"
#include "core/command/operands.h"

#include "core/command/command.h"
#include "core/command/enqueue.h"
#include "core/command/transfer.h"
#include "core/memory/content_size.h"
#include "core/memory/host_watch.h"
#include "core/memory/mem.h"

/* ---- messages ------------------------------------------------------------------------------- */

/* send_NAME: send the message NAME with these fields, besides those of every command. */
#define SENDER(name, ...)                                                                    \
        static int send_##name(const struct command *m, const struct action *a)              \
        {                                                                                    \
                return session_send(m->session, name, .event = m->id, .queue = m->queue->id, \
                                    .flags = command_flags(m), .waits = command_waits(m),    \
                                    __VA_ARGS__);                                            \
        }

/* Where, with the names that a message has for it. */
#define WIRE_OF(v)                                              \
        {                                                       \
                (const uint64_t[]){ (v)[0], (v)[1], (v)[2] }, 3 \
        }
#define BYTES_OF(operand)                                               \
        .buffer = (operand).named->id, .offset = (operand).bytes.begin, \
        .size = (operand).bytes.end - (operand).bytes.begin
#define REGION_OF(operand) .origin = WIRE_OF((operand).origin), .region = WIRE_OF(a->region)
#define BOX_OF(operand)                                                                      \
        .buffer = (operand).named->id, REGION_OF(operand), .row_pitch = (operand).row_pitch, \
        .slice_pitch = (operand).slice_pitch
#define PIXELS_OF(operand) .image = (operand).named->id, REGION_OF(operand)
#define BOTH               .src = a->from.named->id, .dst = a->to.named->id
#define BOTH_REGIONS                                                                \
        .src_origin = WIRE_OF(a->from.origin), .dst_origin = WIRE_OF(a->to.origin), \
        .region = WIRE_OF(a->region)
#define BULK .transfer = m->id

SENDER(buffer_write, BYTES_OF(a->to), BULK)
SENDER(buffer_read, BYTES_OF(a->from), BULK)
SENDER(buffer_write_rect, BOX_OF(a->to), BULK)
SENDER(buffer_read_rect, BOX_OF(a->from), BULK)
SENDER(buffer_copy, BOTH, .src_offset = a->from.bytes.begin, .dst_offset = a->to.bytes.begin,
       .size = a->to.bytes.end - a->to.bytes.begin)
SENDER(buffer_copy_rect, BOTH, BOTH_REGIONS, .src_row_pitch = a->from.row_pitch,
       .src_slice_pitch = a->from.slice_pitch, .dst_row_pitch = a->to.row_pitch,
       .dst_slice_pitch = a->to.slice_pitch)
SENDER(buffer_fill, BYTES_OF(a->to), .pattern = a->pattern)
SENDER(image_write, PIXELS_OF(a->to), BULK)
SENDER(image_read, PIXELS_OF(a->from), BULK)
SENDER(image_copy, BOTH, BOTH_REGIONS)
SENDER(image_fill, PIXELS_OF(a->to), .color = a->pattern)
SENDER(image_to_buffer, PIXELS_OF(a->from), .buffer = a->to.named->id, .offset = a->to.bytes.begin)
SENDER(buffer_to_image, PIXELS_OF(a->to), .buffer = a->from.named->id,
       .offset = a->from.bytes.begin)

static const struct kind {
        int (*send)(const struct command *m, const struct action *a);
        enum { NO_BULK, TAKES, GIVES } bulk; /* the application's bytes go to the server, or come */
        bool content; /* bytes that mean nothing may be left out (content_size.h) */
} kinds[] = {
        [ACTION_BUFFER_WRITE] = { send_buffer_write, TAKES },
        [ACTION_BUFFER_READ] = { send_buffer_read, GIVES, .content = true },
        [ACTION_BUFFER_WRITE_RECT] = { send_buffer_write_rect, TAKES },
        [ACTION_BUFFER_READ_RECT] = { send_buffer_read_rect, GIVES },
        [ACTION_BUFFER_COPY] = { send_buffer_copy, .content = true },
        [ACTION_BUFFER_COPY_RECT] = { send_buffer_copy_rect },
        [ACTION_BUFFER_FILL] = { send_buffer_fill },
        [ACTION_IMAGE_WRITE] = { send_image_write, TAKES },
        [ACTION_IMAGE_READ] = { send_image_read, GIVES },
        [ACTION_IMAGE_COPY] = { send_image_copy },
        [ACTION_IMAGE_FILL] = { send_image_fill },
        [ACTION_IMAGE_TO_BUFFER] = { send_image_to_buffer },
        [ACTION_BUFFER_TO_IMAGE] = { send_buffer_to_image },
};

/* ---- steps ---------------------------------------------------------------------------------- */

int action_send(const struct command *m, const struct action *a)
{
        return kinds[a->kind].send(m, a);
}

/* Does the client need an event object, even if the application wants none? */
static bool needs_event(const struct enqueue *q, const struct kind *kind, const struct action *a)
{
        switch (kind->bulk) {
        case TAKES:
                return transfer_needs_event(q, host_size(&a->host));
        case GIVES:
                return true;
        default:
                return q->blocking;
        }
}

/* For the ledger: the bytes that the command moves. */
static uint64_t action_size(const struct kind *kind, const struct action *a)
{
        const struct range *r = a->from.mem ? &a->from.bytes : &a->to.bytes;
        return kind->bulk ? host_size(&a->host) : r->end - r->begin;
}

cl_int action_enqueue(const struct enqueue *q, const struct action *a)
{
        const struct kind *kind = &kinds[a->kind];
        cl_mem from = a->from.mem, to = a->to.mem;
        size_t content = kind->content ? (size_t)(a->from.bytes.end - a->from.bytes.begin) : 0;
        struct command m;
        int r = command_begin(&m, q);
        if (profile_is_on())
                m.profile.bytes = action_size(kind, a);
        if (kind->bulk)
                host_watch_end(from ? from : to);
        if (r == 0 && from)
                r = command_use(&m, a->from.named, a->from.bytes, true);
        if (r == 0 && to)
                r = command_use(&m, a->to.named, a->to.bytes, !a->covers);
        if (r == 0 && content)
                r = content_size_use(&m, from, content);
        if (r == 0)
                r = command_ready(&m, needs_event(q, kind, a));
        if (r == 0 && kind->bulk == GIVES)
                r = transfer_expect(&m, a->host, from);
        if (r == 0 && content)
                r = content_size_send(&m, from, content);
        if (r == 0)
                r = kind->send(&m, a);
        if (r < 0 && kind->bulk == GIVES)
                incoming_cancel(m.client, m.id);
        if (r == 0 && to)
                r = command_wrote(&m, to, a->to.bytes, a->covers);
        return kind->bulk == TAKES ? transfer_finish_write(&m, r, a->host)
                                   : command_end(&m, r, q->blocking);
}
