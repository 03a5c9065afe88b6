#include "session/parcel.h"

#include "base/mem.h"

void parcel_fini(struct parcel *p)
{
        mem_free(p->packed);
        mem_free(p->loose);
        *p = (struct parcel){ 0 };
}

int parcel_begin(struct parcel *p, const struct frame *f, void *place, size_t placed, uint8_t **ret)
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

uint8_t *parcel_target(const struct parcel *p)
{
        return p->placed < p->plain ? p->loose : p->place;
}
