#include "picture.h"

#include <png.h>

const char *picture_write(const char *path, const uint8_t *rgba, int width, int height)
{
        static png_image image;
        image = (png_image){
                .version = PNG_IMAGE_VERSION,
                .width = (png_uint_32)width,
                .height = (png_uint_32)height,
                .format = PNG_FORMAT_RGBA,
        };
        return png_image_write_to_file(&image, path, 0, rgba, 0, NULL) ? NULL : image.message;
}
