#include "loop/compression.h"

/* A core packs hardly faster than faster connections send, and has better things to do. */
#define RATE_MOST 400000000ull

enum {
        WINDOW_BYTES = 64 << 10, /* a measurement is at least so much in so long */
        WINDOW_NS = 1000000,
        RETRIAL_FIRST = 16 << 20,
        RETRIAL_MOST = 1 << 30,
        MISSES = 2,
        SAMPLES_SHARE =
                256, /* samples take at most this part of the time of what is sent between them */
};

void compression_init(struct compression *p, enum compression_mode mode)
{
        *p = (struct compression){
                .mode = mode,
                .on = mode == COMPRESSION_ALWAYS,
                .idle = true,
                .retrial = RETRIAL_FIRST,
                .skip = COMPRESSION_SKIP_FIRST,
        };
}

static uint64_t wire_ns(const struct compression *p, size_t bytes)
{
        return bytes * 1000000000ull / p->rate;
}

/* Compression, sending and unpacking one after the other must take less than sending. */
static bool pays(const struct compression *p, const struct compression_cost *c)
{
        if (!c->packed)
                return false;
        if (p->mode == COMPRESSION_ALWAYS)
                return true;
        if (!p->rate)
                return false;
        uint64_t plain = wire_ns(p, c->plain);
        uint64_t unpack = p->unpacked ? p->unpack_ns * c->plain / p->unpacked : c->pack_ns;
        return c->pack_ns + wire_ns(p, c->packed) + unpack < plain - plain / 8;
}

bool compression_small(const struct compression *p)
{
        return p->on || (p->mode == COMPRESSION_AUTO && p->rate && p->rate <= RATE_MOST);
}

enum compression_step compression_next(struct compression *p, size_t size)
{
        if (p->on)
                return COMPRESSION_PACK;
        if (!compression_small(p))
                return COMPRESSION_SEND;
        if (p->left > size) {
                p->left -= size;
                return COMPRESSION_SEND;
        }
        p->left = p->skip;
        return COMPRESSION_TRY;
}

/* For longer than the last time while samples cost more than they may. */
static void turn_off(struct compression *p, uint64_t sample_ns)
{
        uint64_t enough = sample_ns * SAMPLES_SHARE * p->rate / 1000000000ull;
        p->on = false;
        if (p->skip < enough)
                p->skip = 2 * p->skip < COMPRESSION_SKIP_MOST ? 2 * p->skip : COMPRESSION_SKIP_MOST;
        else if (p->skip / 2 > enough && p->skip > COMPRESSION_SKIP_FIRST)
                p->skip /= 2;
        p->left = p->skip;
}

void compression_tried(struct compression *p, const struct compression_cost *c)
{
        p->unpack_ns = c->unpack_ns;
        p->unpacked = c->plain;
        p->misses = p->free = 0;
        if (pays(p, c))
                p->on = true;
        else
                turn_off(p, c->pack_ns + c->unpack_ns);
}

bool compression_pays(struct compression *p, const struct compression_cost *c)
{
        bool it_does = pays(p, c);
        p->misses = it_does ? 0 : p->misses + 1;
        if (it_does)
                p->skip = COMPRESSION_SKIP_FIRST;
        else if (p->mode == COMPRESSION_AUTO && p->misses == MISSES)
                turn_off(p, c->pack_ns * COMPRESSION_SAMPLE / c->plain);
        p->free += c->plain;
        /* The connection was never full: it may take more than compression produces. */
        if (p->on && p->mode == COMPRESSION_AUTO && p->free >= p->retrial) {
                p->rate *= 2;
                p->retrial = 2 * p->retrial < RETRIAL_MOST ? 2 * p->retrial : RETRIAL_MOST;
                p->free = 0;
        }
        return it_does;
}

void compression_sent(struct compression *p, size_t bytes)
{
        p->bytes += bytes;
        p->idle = false;
}

void compression_blocked(struct compression *p, uint64_t now_ns)
{
        p->free = 0;
        if (p->since_ns) {
                uint64_t ns = now_ns - p->since_ns;
                if (p->bytes < WINDOW_BYTES || ns < WINDOW_NS)
                        return;
                uint64_t rate = (uint64_t)((double)p->bytes * 1e9 / (double)ns);
                /* Hosts that are busy make it look slow, and little makes it look fast. */
                p->rate = !p->blocked || rate > p->rate ? rate : (7 * p->rate + rate) / 8;
                p->blocked = true;
        }
        p->since_ns = now_ns;
        p->bytes = 0;
}

void compression_idle(struct compression *p)
{
        p->idle = true;
        p->since_ns = p->free = 0;
}

bool compression_wants_rate(const struct compression *p)
{
        return p->mode == COMPRESSION_AUTO && p->idle && !p->blocked;
}

void compression_set_rate(struct compression *p, uint64_t rate)
{
        p->rate = rate ? rate : p->rate;
        p->idle = false;
}
