/* Does a link pack its bulk frames? By what it gains: how fast the connection is, how long packing takes and what
 * it brings are measured on the link itself. Frames whose bytes don't get fewer are found out by samples of
 * them, ever more seldom. Where the connection is not what one waits for, nothing is packed.
 *
 * No clock and no I/O; who sends on the link owns it. */
#ifndef SPANCL_LOOP_PACKING_H
#define SPANCL_LOOP_PACKING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In the order of SPANCL_COMPRESSION's values. */
enum packing_mode {
        PACKING_OFF,
        PACKING_AUTO,
        PACKING_ALWAYS, /* whatever gets smaller */
};

enum {
        PACKING_SAMPLE = 16 << 10,      /* bytes of a frame that are tried */
        PACKING_SKIP_FIRST = 256 << 10, /* bytes between two samples that brought nothing */
        PACKING_SKIP_MOST = 64 << 20,
};

struct packing {
        enum packing_mode mode;
        bool on;       /* frames are packed */
        uint64_t rate; /* bytes per second that the connection takes; 0: not known */

        /* The module's own. */
        bool blocked,
                idle; /* `rate` is from packing_blocked; nothing was sent since packing_idle */
        uint64_t since_ns,
                bytes; /* when the connection was full, and what it took since; 0: it was not */
        uint64_t free,
                patience;    /* bytes packed since it was full last; after which it may be faster */
        uint64_t skip, left; /* bytes between samples; until the next */
        uint64_t unpack_ns, unpacked; /* of the last sample */
        unsigned misses;              /* frames in a row that were not worth it */
};

/* What packing `plain` bytes took and brought. packed 0: not fewer bytes. unpack_ns 0: not tried. */
struct packing_cost {
        size_t plain, packed;
        uint64_t pack_ns, unpack_ns;
};

enum packing_step { PACKING_SEND, PACKING_TRY, PACKING_PACK };

void packing_init(struct packing *p, enum packing_mode mode);

/* Are frames to be small, so that each can be packed or not? */
bool packing_small(const struct packing *p);

/* What to do with a frame of `size` bytes: send it as it is, try a sample of it first, pack it. */
enum packing_step packing_next(struct packing *p, size_t size);

/* The sample's cost: now `on` may be another. */
void packing_tried(struct packing *p, const struct packing_cost *c);

/* A frame's cost: send it packed? */
bool packing_pays(struct packing *p, const struct packing_cost *c);

/* The connection took `bytes`; it takes no more now; nothing is left to send. */
void packing_sent(struct packing *p, size_t bytes);
void packing_blocked(struct packing *p, uint64_t now_ns);
void packing_idle(struct packing *p);

/* Is it worth asking the system how fast the connection was so far? What it says, in bytes per second, or 0. */
bool packing_asks(const struct packing *p);
void packing_told(struct packing *p, uint64_t rate);

#endif
