/* The frames of a figure: descriptions that the kernels of reconstruction need, and the packets of their pictures. They
 * come from a V-PCC stream. Without one, a kernel draws the pictures of a figure of balls. */
#ifndef AR_SOURCE_H
#define AR_SOURCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shared.h"
#include "v3c.h"

enum video { OCCUPANCY, GEOMETRY, ATTRIBUTE, VIDEOS };

struct packet {
        const uint8_t *bytes;
        uint64_t size;
};

struct source_frame {
        int32_t atlas[ATLAS_WORDS];
        const int32_t *patches; /* PATCH_WORDS each */
        size_t patch_count;
        bool key; /* decoders can start here */
        struct packet packets[VIDEOS][V3C_MAPS_MAX];
};

struct source {
        size_t frame_count;
        struct source_frame *frames;
        /* The largest numbers of all frames. */
        size_t block_count, patch_count, voxels;
        size_t picture_sizes[VIDEOS]; /* bytes */
        size_t packet_size;           /* bytes of a packet; 0: no stream */
        bool libavcodec;              /* decodes them, not the module */
        size_t capacity;              /* points of a frame, at most */
        struct v3c_frame *v3c;        /* of a stream: as the parser describes them */
        void *owned[2];
};

/* `path` NULL: the figure of balls, in a cube of `voxels` (even, at most 1024). Ends the program on errors. */
void source_open(struct source *s, const char *path, size_t voxels, size_t capacity);
void source_close(struct source *s);
size_t maps_of(const struct source *s);

/* Return the number of blocks of the block map. */
size_t blocks_of(const struct source_frame *f);

#endif
