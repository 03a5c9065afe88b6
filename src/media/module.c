/* libspancl-media.so: the table behind backend/media/codec.h. */
#include "codecs.h"

static const struct codec *const codecs[] = {
#ifdef SPANCL_OPENH264
        &codec_h264,
#endif
#ifdef SPANCL_DE265
        &codec_hevc,
#endif
#ifdef SPANCL_DAV1D
        &codec_av1,
#endif
        NULL,
};

__attribute__((visibility("default"))) extern const struct codec_module spancl_media_module;

const struct codec_module spancl_media_module = {
        .version = CODEC_VERSION,
        .codecs = codecs,
};
