/* Two sessions joined by pipes. The input chooses the sender, the bytes that move, and the places
 * where the connection breaks. In every case everything arrives exactly once and in order. */
#include "fuzz/target.h"

#include "support/pair.h"

enum { STEPS_MAX = 300, GROWING = 4 };

struct reader {
        const uint8_t *p;
        size_t left;
};

static unsigned take(struct reader *r)
{
        if (!r->left)
                return 0;
        r->left--;
        return *r->p++;
}

/* A size whose magnitude and digits the input chooses. */
static size_t take_size(struct reader *r, unsigned bits_max)
{
        unsigned a = take(r), b = take(r);
        return (size_t)(b + 1) << a % (bits_max - 7);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct reader r = { data, size };
        struct pair p;
        struct pair_transfer *growing[GROWING] = { 0 };
        if (pair_init(&p, &(struct pair_params){
                                  .seed = take(&r),
                                  .window_bytes = { take_size(&r, 22), take_size(&r, 22) },
                                  .inline_bytes = take_size(&r, 15),
                                  .pipe_room = 100 + take_size(&r, 17),
                                  .packs = take(&r) % 101,
                          }) < 0)
                abort();
        for (unsigned step = 0; r.left && step < STEPS_MAX; step++) {
                unsigned what = take(&r);
                int i = what & 1, status = 0;
                unsigned lane = what & 2 ? 1 + (what >> 5) % (SESSION_LANES - 1) : 0;
                struct pair_transfer **t = &growing[take(&r) % GROWING];
                switch (what >> 2 & 7) {
                case 0:
                        status = pair_send(&p, i, take_size(&r, 16));
                        break;
                case 1: {
                        size_t total = take_size(&r, 16), piece = take_size(&r, 16);
                        status = pair_bulk(&p, i, total, total, piece, NULL);
                        break;
                }
                case 2: {
                        if (!*t) {
                                size_t total = take_size(&r, 16), piece = take_size(&r, 16);
                                status = pair_bulk(&p, i, total, take(&r) % total, piece, t);
                                break;
                        }
                        uint64_t ready = (*t)->bulk.ready + take_size(&r, 16);
                        ready = ready < (*t)->total ? ready : (*t)->total;
                        pair_ready(*t, ready);
                        if (ready == (*t)->total)
                                *t = NULL;
                        break;
                }
                case 3:
                        pair_cut(&p);
                        status = pair_reattach(&p);
                        break;
                case 4:
                case 5:
                        status = pair_push(&p, i, lane, take_size(&r, 20));
                        break;
                default:
                        status = pair_pull(&p, i, lane, take_size(&r, 20));
                        break;
                }
                fuzz_check(status >= 0);
        }
        for (unsigned i = 0; i < GROWING; i++)
                if (growing[i])
                        pair_ready(growing[i], growing[i]->total);
        fuzz_check(pair_settle(&p) == 0);
        pair_check_complete(&p);
        pair_fini(&p);
        return 0;
}
