#include "av/pool.h"

#include <libavutil/imgutils.h>

#include "av/picture.h"

enum {
        PIECES_MAX = 64,
        PLANES = 4,
        ALIGN = 64, /* of planes: the longest vectors */
        SPARE = 16, /* bytes behind a plane that libavcodec may read or write, as in its own frames */
        PAGE = 4096,
};

void pool_init(struct pool *p, uint8_t *memory, uint64_t room)
{
        uint64_t begin = -(uintptr_t)memory % PAGE; /* pieces begin with pages */
        p->memory = memory + begin;
        p->room = room > begin ? room - begin : 0;
        p->size = 0;
        atomic_init(&p->used, 0);
}

static uint64_t round_up(uint64_t n, uint64_t to)
{
        return (n + to - 1) / to * to;
}

static void give_back(void *opaque, uint8_t *data)
{
        struct pool *p = opaque;
        uint64_t piece = (uint64_t)(data - p->memory) / p->size;
        (void)atomic_fetch_and(&p->used, ~(UINT64_C(1) << piece));
}

/* Take a piece; NULL: none is free, or all are too small. */
static AVBufferRef *take(struct pool *p, uint64_t size)
{
        uint64_t used = atomic_load(&p->used), piece = 0;
        if (!used)
                p->size = round_up(size, PAGE);
        if (size > p->size)
                return NULL;
        while (piece < PIECES_MAX && used >> piece & 1)
                piece++;
        if (piece == PIECES_MAX || (piece + 1) * p->size > p->room)
                return NULL;
        AVBufferRef *b =
                av_buffer_create(p->memory + piece * p->size, (size_t)p->size, give_back, p, 0);
        if (b)
                (void)atomic_fetch_or(&p->used, UINT64_C(1) << piece);
        return b;
}

/* Lay the planes out one behind the other, with the strides of libavcodec's own frames. `align`: of strides. */
static int get(struct pool *p, AVFrame *f, int width, int height, const int *align)
{
        ptrdiff_t strides[PLANES];
        size_t sizes[PLANES], total = 0, places[PLANES];
        int unaligned;
        do {
                int r = av_image_fill_linesizes(f->linesize, f->format, width);
                if (r < 0)
                        return r;
                width += width & -width; /* the next one that is more aligned */
                unaligned = 0;
                for (int i = 0; i < PLANES; i++)
                        unaligned |= f->linesize[i] % align[i];
        } while (unaligned);
        for (int i = 0; i < PLANES; i++)
                strides[i] = f->linesize[i];
        int r = av_image_fill_plane_sizes(sizes, f->format, height, strides);
        if (r < 0)
                return r;
        for (int i = 0; i < PLANES; i++) {
                places[i] = total;
                total += sizes[i] ? (size_t)round_up(sizes[i] + SPARE + ALIGN, ALIGN) : 0;
        }
        f->buf[0] = take(p, total);
        if (!f->buf[0])
                f->buf[0] = av_buffer_allocz(total + ALIGN);
        if (!f->buf[0])
                return AVERROR(ENOMEM);
        uint8_t *begin = f->buf[0]->data;
        begin += -(uintptr_t)begin % ALIGN;
        for (int i = 0; i < PLANES; i++)
                f->data[i] = sizes[i] ? begin + places[i] : NULL;
        f->extended_data = f->data;
        return 0;
}

int pool_get(struct pool *p, AVFrame *f, int width, int height)
{
        static const int align[PLANES] = { ALIGN, ALIGN, ALIGN, ALIGN };
        return get(p, f, width, height, align);
}

int pool_get_buffer(AVCodecContext *c, AVFrame *f, int flags)
{
        int width = f->width, height = f->height, align[AV_NUM_DATA_POINTERS];
        if (!(c->codec->capabilities & AV_CODEC_CAP_DR1) || !picture_bits(f->format))
                return avcodec_default_get_buffer2(c, f, flags);
        avcodec_align_dimensions2(c, &width, &height, align);
        return get(c->opaque, f, width, height, align);
}
