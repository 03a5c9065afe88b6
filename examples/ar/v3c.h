/* The parser of V-PCC streams: point clouds as three HEVC videos and patches (ISO/IEC 23090-5, V3C and V-PCC).
 *
 * A stream is a file in the sample stream format of V3C units (annex C of the standard). The parser reads the tools
 * that the encoder uvgVPCCenc uses: one atlas of one tile, I tiles with intra patches on the six axis-aligned planes,
 * two orientations, one or two maps in one video, no auxiliary video. Each other tool is V3C_E_UNSUPPORTED.
 * docs/internals/ar.md describes how points come from these structures.
 *
 * The parser does no I/O, allocates nothing and keeps no state. All of its input may be hostile. Any thread may call
 * it. */
#ifndef AR_V3C_H
#define AR_V3C_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum v3c_status {
        V3C_OK = 0,
        V3C_E_DAMAGED = -1,     /* the stream breaks the standard, or ends too early */
        V3C_E_UNSUPPORTED = -2, /* the stream uses a tool that this parser lacks */
        V3C_E_LIMIT = -3,       /* the caller's array, or a limit below, is too small */
};

#define V3C_MAPS_MAX    2
#define V3C_PATCHES_MAX 4096
#define V3C_SIDE_MAX    8192 /* pixels of an atlas, in each direction */
#define V3C_COVER_MAX   16   /* areas of the atlas that its patches have together */

/* The reason of an error: a text of static storage, and the byte of the stream at which the parser stopped. */
struct v3c_fault {
        const char *text;
        size_t offset;
};

/* Bytes of the stream. Those of a video are an access unit: NAL units, each behind 4 bytes with its size. */
struct v3c_range {
        size_t offset;
        size_t size;
};

/* The parameters by which v3c_patches() reads a tile. They come from the parameter sets. */
struct v3c_syntax {
        uint32_t afps_id;         /* of the atlas frame parameter set */
        uint8_t bits_3d, bits_2d; /* of a 3D offset, of a depth */
        uint8_t order_bits;       /* of the frame's order count */
        uint8_t list_bits;        /* of the index of a reference list */
        uint8_t log2_block;       /* of the packing block's size */
        bool lists;               /* reference lists are there */
        bool limits, range;       /* the depth offset, the depth range are quantised */
        bool sizes;               /* the patch size is quantised */
        bool output;              /* the header has an output flag */
        bool detail;              /* patches may have a level of detail */
};

/* A frame: the sizes that its pictures have, and where they lie in the stream. */
struct v3c_frame {
        uint32_t width, height; /* of the atlas, and of the pictures of geometry and attributes */
        uint32_t occupancy_width, occupancy_height; /* of the occupancy picture */
        uint32_t precision; /* atlas pixels that one occupancy sample covers, each way */
        uint32_t block;     /* atlas pixels of a packing block, each way */
        uint32_t threshold; /* an occupancy sample above it means occupied */
        uint32_t bits;      /* of a coordinate */
        uint32_t maps;      /* 1, or 2: further points by a second depth and colour */
        uint32_t patches;   /* of this frame */
        uint32_t group;     /* counts the groups of frames (V3C parameter sets) from 0 */
        bool key;           /* decoders can start here; true of each group's first frame */
        bool distinct;      /* a second map's point that equals the first's is left out */
        struct v3c_range occupancy;
        struct v3c_range geometry[V3C_MAPS_MAX];
        struct v3c_range attribute[V3C_MAPS_MAX];
        struct v3c_range tile;    /* the NAL unit with the patches */
        struct v3c_syntax syntax; /* of this NAL unit */
};

/* A patch: a rectangle of the atlas, and the equations by which its pixels become points. Pixel (x, y) of the atlas
 * with the geometry sample d is the point p with
 *     p[axis[0]] = tangent[0] * x + tangent[1] * y + tangent[2]
 *     p[axis[1]] = bitangent[0] * x + bitangent[1] * y + bitangent[2]
 *     p[axis[2]] = max(0, depth[0] * d + depth[1])
 * Orientation, 3D offset, projection plane, depth offset and level of detail are in these numbers. The parser does not
 * check that points lie in the cube of 2^bits: coordinates of a damaged stream are at least 0 and below 2^20. All
 * members have 32 bits, and the struct has 16 of them, so an OpenCL kernel can read it as int[16]. */
struct v3c_patch {
        int32_t x, y, width,
                height;  /* in atlas pixels: multiples of the block size, inside the atlas */
        int32_t axis[3]; /* of tangent, bitangent, normal: 0 is x, 1 is y, 2 is z */
        int32_t tangent[3];
        int32_t bitangent[3];
        int32_t depth[2]; /* depth[0] is 1 or -1 */
        int32_t range; /* the largest depth in the patch as the encoder states it; 0: not stated */
};

/* Read the whole stream and describe its frames, in the order of display, in `frames`. `ret_count` becomes their
 * number. With an error, `ret_fault` (may be NULL) tells the reason, and `ret_count` stays. V3C_E_LIMIT: there are more
 * frames than `capacity`. Each frame's patches have been checked with V3C_OK: v3c_patches() can't fail for them. */
int v3c_index(const uint8_t *stream, size_t size, struct v3c_frame *frames, uint32_t capacity,
              uint32_t *ret_count, struct v3c_fault *ret_fault);

/* Read the patches of a frame that v3c_index() described. V3C_E_LIMIT: more than `capacity`. */
int v3c_patches(const uint8_t *stream, size_t size, const struct v3c_frame *frame,
                struct v3c_patch *patches, uint32_t capacity, uint32_t *ret_count,
                struct v3c_fault *ret_fault);

/* Write for each block of the atlas, row by row, the number of the patch that owns it, counted from 1; 0: none.
 * `blocks` has (width / block) * (height / block) entries. Where rectangles overlap, the last patch owns the block. */
void v3c_blocks(const struct v3c_frame *frame, const struct v3c_patch *patches, uint32_t count,
                uint16_t *blocks);

/* Copy an access unit to `packet`, which has room for range.size bytes, in HEVC's byte stream format (annex B), which
 * decoders read. It has the same size: a start code replaces the 4 bytes of each NAL unit's size. */
void v3c_packet(const uint8_t *stream, struct v3c_range range, uint8_t *packet);

#endif
