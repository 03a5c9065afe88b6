#include "session/packed_frame.h"

#include "base/mem.h"

void packed_frame_fini(struct packed_frame *p)
{
        mem_free(p->packed);
        mem_free(p->loose);
        *p = (struct packed_frame){ 0 };
}

int packed_frame_begin(struct packed_frame *p, const struct frame *f, void *place, size_t placed,
                       uint8_t **ret)
{
        if (!p->packed)
                p->packed = mem_alloc(FRAME_PLAIN_MAX);
        if (!p->loose && placed < frame_plain(f))
                p->loose = mem_alloc(FRAME_PLAIN_MAX);
        if (!p->packed || (!p->loose && placed < frame_plain(f)))
                return SP_E_NOMEM;
        p->transfer = f->seq;
        p->offset = f->ack;
        p->size = f->size;
        p->plain = frame_plain(f);
        p->place = place;
        p->placed = placed;
        *ret = p->packed;
        return 0;
}

uint8_t *packed_frame_target(const struct packed_frame *p)
{
        return p->placed < p->plain ? p->loose : p->place;
}
