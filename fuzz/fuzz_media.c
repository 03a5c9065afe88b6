/* Packets for the decoders of the media device: the kernels, on the decoders' real libraries. The input is a number of
 * commands: a byte for the codec and the flags, two for the size of the packet, the packet. */
#include "fuzz/target.h"

#include <string.h>

#include "backend/media/kernels.h"
#include "base/bytes.h"

extern const struct codec_module spancl_media_module;

enum { COMMANDS_MAX = 16, SIDE = 256, ROOM = SIDE * SIDE * 3, ARGUMENTS = 8 };

static uint8_t picture[ROOM], rgba[SIDE * SIDE * 4];

static void check_result(cl_int r, const uint8_t *status, const uint8_t *picture_size)
{
        int32_t result = (int32_t)bytes_get_u32(status);
        uint64_t size = bytes_get_u64(picture_size),
                 bytes = bytes_get_u32(status + 4 * MEDIA_BYTES);
        fuzz_check(r == CL_SUCCESS ? result >= 0 && result <= MEDIA_END : result == r);
        fuzz_check(result == MEDIA_PICTURE ? size == bytes && size && size <= ROOM : size == 0);
}

/* Conversion believes no status. */
static void convert(const uint8_t *status, uint32_t matrix)
{
        uint8_t size[8];
        struct registry_launch l = { .dims = 1, .global = { 1, 1, 1 } };
        l.args[0] = (struct registry_value){ picture, sizeof(picture), NULL };
        l.args[1] =
                (struct registry_value){ (void *)(uintptr_t)status, 4 * MEDIA_STATUS_WORDS, NULL };
        l.args[2] = (struct registry_value){ rgba, sizeof(rgba), NULL };
        l.args[3] = (struct registry_value){ size, sizeof(size), NULL };
        l.args[4] = (struct registry_value){ &matrix, sizeof(matrix), NULL };
        (void)media_convert_kernel.run(&l);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct media media = {
                .settings = { .limits = { .threads = 1, .pixels = SIDE * SIDE }, .streams = 1 },
        };
        const char *name;
        for (size_t i = 0; media_decode_kernel(i, &name); i++)
                for (const struct codec *const *c = spancl_media_module.codecs; *c; c++)
                        if (!strcmp((*c)->name, name))
                                media.codecs[i] = *c;
        struct registry_attachment stream = { 0 };
        for (unsigned i = 0; i < COMMANDS_MAX && size >= 3; i++) {
                uint32_t format = data[0] >> 2 & 1, flags = data[0] >> 3 & 3;
                size_t which = data[0] & 3 /* those of the module */,
                       packet_size = data[1] | (size_t)data[2] << 8;
                uint8_t said[8], picture_size[8], status[4 * MEDIA_STATUS_WORDS], state = 0;
                data += 3;
                size -= 3;
                packet_size = packet_size < size ? packet_size : size;
                bytes_put_u64(said, packet_size + (format && flags == 3));
                const struct registry_kernel *k = media_decode_kernel(which, &name);
                if (!k || !media.codecs[which])
                        break;
                struct registry_launch l = { .dims = 1, .global = { 1, 1, 1 }, .user = &media };
                struct registry_value args[ARGUMENTS] = {
                        { (void *)(uintptr_t)data, packet_size, NULL },
                        { said, sizeof(said), NULL },
                        { picture, sizeof(picture), NULL },
                        { picture_size, sizeof(picture_size), NULL },
                        { status, sizeof(status), NULL },
                        { &state, sizeof(state), &stream },
                        { &format, sizeof(format), NULL },
                        { &flags, sizeof(flags), NULL },
                };
                memcpy(l.args, args, sizeof(args));
                check_result(k->run(&l), status, picture_size);
                convert(status, flags);
                if (packet_size >= sizeof(status))
                        convert(data, format);
                data += packet_size;
                size -= packet_size;
        }
        if (stream.free)
                stream.free(stream.data);
        return 0;
}
