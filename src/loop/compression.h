/* The decision whether a link packs its bulk frames. It depends on the gain: the link measures how
 * fast the connection is, how long compression takes and how much it saves. Samples find frames
 * that do not shrink; after each such frame the next sample comes later. If the connection is not
 * the bottleneck, nothing is packed.
 *
 * No clock and no I/O. The thread that sends on the link owns it. */
#ifndef SPANCL_LOOP_COMPRESSION_H
#define SPANCL_LOOP_COMPRESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of SPANCL_COMPRESSION's values. */
enum compression_mode {
        COMPRESSION_OFF,
        COMPRESSION_AUTO,
        COMPRESSION_ALWAYS, /* pack every frame that shrinks */
};

enum {
        COMPRESSION_SAMPLE = 16 << 10,      /* bytes of a frame that are tried */
        COMPRESSION_SKIP_FIRST = 256 << 10, /* bytes between two samples that brought nothing */
        COMPRESSION_SKIP_MOST = 64 << 20,
};

struct compression {
        enum compression_mode mode;
        bool on;       /* frames are packed */
        uint64_t rate; /* bytes per second that the connection takes; 0: not known */

        /* The module's own. */
        bool blocked,
                idle; /* `rate` is from compression_blocked; nothing was sent since compression_idle */
        uint64_t since_ns,
                bytes; /* when the connection was full, and what it took since; 0: it was not */
        uint64_t free,
                retrial;     /* bytes packed since it was full last; after which it may be faster */
        uint64_t skip, left; /* bytes between samples; until the next */
        uint64_t unpack_ns, unpacked; /* of the last sample */
        unsigned misses;              /* frames in a row that were not worth it */
};

/* The time that compression of `plain` bytes took, and its result. packed 0: not fewer bytes;
 * unpack_ns 0: unpacking was not tried. */
struct compression_cost {
        size_t plain, packed;
        uint64_t pack_ns, unpack_ns;
};

enum compression_step { COMPRESSION_SEND, COMPRESSION_TRY, COMPRESSION_PACK };

void compression_init(struct compression *p, enum compression_mode mode);

/* Should frames be small, so that each can be packed or not? */
bool compression_small(const struct compression *p);

/* Decide on a frame of `size` bytes: send it as it is, try a sample of it first, or pack it. */
enum compression_step compression_next(struct compression *p, size_t size);

/* Take in the cost of a sample; `on` may change. */
void compression_tried(struct compression *p, const struct compression_cost *c);

/* Take in the cost of a frame. True: send it packed. */
bool compression_pays(struct compression *p, const struct compression_cost *c);

/* Events of the connection: it took `bytes`; it takes no more now; nothing is left to send. */
void compression_sent(struct compression *p, size_t bytes);
void compression_blocked(struct compression *p, uint64_t now_ns);
void compression_idle(struct compression *p);

/* Is it worth asking the system for the connection's rate? Then compression_set_rate takes the answer,
 * in bytes per second, or 0. */
bool compression_wants_rate(const struct compression *p);
void compression_set_rate(struct compression *p, uint64_t rate);

#endif
