/* Streams of point clouds as the AR example reads them: the input is a stream. */
#include "fuzz/target.h"

#include <string.h>

#include "examples/ar/v3c.h"

enum { FRAMES_MAX = 64, SIDE = 512 };

static struct v3c_frame frames[FRAMES_MAX];
static struct v3c_patch patches[V3C_PATCHES_MAX];
static uint16_t blocks[SIDE * SIDE];

/* Copies a packet to memory of its exact size. */
static void check_packet(const uint8_t *data, size_t size, struct v3c_range range)
{
        fuzz_check(range.size > 4 && range.offset <= size && range.size <= size - range.offset);
        uint8_t *packet = malloc(range.size);
        v3c_packet(data, range, packet);
        fuzz_check(!memcmp(packet, "\0\0\0\1", 4));
        free(packet);
}

static void check_patches(const struct v3c_frame *f, uint32_t count)
{
        for (uint32_t i = 0; i < count; i++) {
                const struct v3c_patch *p = &patches[i];
                fuzz_check(p->x >= 0 && p->y >= 0 && p->width > 0 && p->height > 0);
                fuzz_check((uint32_t)(p->x + p->width) <= f->width);
                fuzz_check((uint32_t)(p->y + p->height) <= f->height);
                /* An axis for each coordinate. */
                fuzz_check((1 << p->axis[0] | 1 << p->axis[1] | 1 << p->axis[2]) == 7);
                /* Each coordinate in the patch is at least 0 and below 2^20. */
                int64_t low = p->tangent[2] + p->tangent[0] * (int64_t)p->x +
                              p->tangent[1] * (int64_t)p->y;
                fuzz_check(low >= 0 && low < 1 << 16);
                int64_t other = p->bitangent[2] + p->bitangent[0] * (int64_t)p->x +
                                p->bitangent[1] * (int64_t)p->y;
                fuzz_check(other >= 0 && other < 1 << 16);
                int64_t reach = (p->tangent[0] + p->tangent[1]) * (int64_t)V3C_SIDE_MAX;
                int64_t breadth = (p->bitangent[0] + p->bitangent[1]) * (int64_t)V3C_SIDE_MAX;
                fuzz_check(reach > 0 && low + reach < 1 << 20);
                fuzz_check(breadth > 0 && other + breadth < 1 << 20);
                fuzz_check(p->depth[1] >= 0 && p->depth[1] < 1 << 16);
        }
        if (f->width / f->block * (f->height / f->block) <= SIDE * SIDE)
                v3c_blocks(f, patches, count, blocks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        uint32_t count = 0, patch_count = 0;
        struct v3c_fault fault = { NULL, 0 };
        int r = v3c_index(data, size, frames, FRAMES_MAX, &count, &fault);
        if (r < 0) {
                fuzz_check(count == 0 && fault.text && fault.offset <= size);
                return 0;
        }
        fuzz_check(count > 0 && count <= FRAMES_MAX);
        for (uint32_t i = 0; i < count; i++) {
                const struct v3c_frame *f = &frames[i];
                check_packet(data, size, f->occupancy);
                for (uint32_t map = 0; map < f->maps; map++) {
                        check_packet(data, size, f->geometry[map]);
                        check_packet(data, size, f->attribute[map]);
                }
                r = v3c_patches(data, size, f, patches, V3C_PATCHES_MAX, &patch_count, &fault);
                fuzz_check(r == V3C_OK && patch_count == f->patches);
                check_patches(f, patch_count);
                r = patch_count == 0 ? V3C_E_LIMIT
                                     : v3c_patches(data, size, f, patches, patch_count - 1,
                                                   &patch_count, &fault);
                fuzz_check(r == V3C_E_LIMIT && patch_count == f->patches);
        }
        return 0;
}
