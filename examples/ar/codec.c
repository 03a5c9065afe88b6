#include "codec.h"

#include <stdio.h>
#include <string.h>

enum { STATUS_WORDS = 8, RGBA = 2, RATE = 30, QUALITY = 85 };

void codec_open(struct codec *c, struct machine *m, const char *name, struct device *far,
                struct device *near, size_t width, size_t height, const struct codec *first)
{
        char encode[64], decode[64];
        *c = (struct codec){ .far = far, .near = near, .width = width, .height = height };
        snprintf(encode, sizeof(encode), "org.spancl.encode.%s", name);
        snprintf(decode, sizeof(decode), "org.spancl.decode.%s", name);
        c->encoder = media_device(m, encode, false);
        c->decoder = media_device(m, decode, true);
        device_build(m, far);
        device_build(m, near);
        c->stack = new_kernel(far, "stack_layer");
        c->unstack = new_kernel(near, "unstack_layer");
        c->encode = media_kernel(m, c->encoder, encode);
        c->decode = media_kernel(m, c->decoder, decode);
        c->convert = media_kernel(m, c->decoder, "org.spancl.convert.rgba");
        size_t pixels = width * height * 2;
        c->stacked = new_buffer(m, pixels * 4, NULL);
        c->packet = new_buffer(m, pixels * 4, NULL);
        c->packet_bytes = new_buffer(m, sizeof(cl_ulong), NULL);
        c->encoded = new_buffer(m, STATUS_WORDS * 4, NULL);
        c->encoder_stream = first ? first->encoder_stream : new_buffer(m, 4, NULL);
        c->picture = new_buffer(m, pixels * 3 / 2, NULL);
        c->picture_bytes = new_buffer(m, sizeof(cl_ulong), NULL);
        c->decoded = new_buffer(m, STATUS_WORDS * 4, NULL);
        c->decoder_stream = first ? first->decoder_stream : new_buffer(m, 4, NULL);
        c->rgba = new_buffer(m, pixels * 4, NULL);
        c->layer = new_buffer(m, width * height * 4, NULL);
        if (first) {
                check(clRetainMemObject(c->encoder_stream), "clRetainMemObject");
                check(clRetainMemObject(c->decoder_stream), "clRetainMemObject");
        }
        if (m->set_content_size)
                check(m->set_content_size(c->packet, c->packet_bytes),
                      "clSetContentSizeBufferPoCL");

        set_buffers(c->stack, 1, &c->stacked, 1);
        set_buffers(
                c->encode, 0,
                (cl_mem[]){ c->stacked, c->packet, c->packet_bytes, c->encoded, c->encoder_stream },
                5);
        const int32_t values[] = { (int32_t)width, (int32_t)height * 2, RGBA, RATE, 0, QUALITY, 0 };
        for (cl_uint i = 0; i < 7; i++)
                set_int(c->encode, 5 + i, values[i]);
        set_buffers(c->decode, 0,
                    (cl_mem[]){ c->packet, c->packet_bytes, c->picture, c->picture_bytes,
                                c->decoded, c->decoder_stream },
                    6);
        set_int(c->decode, 6, 0);
        set_int(c->decode, 7, 0);
        set_buffers(c->convert, 0, (cl_mem[]){ c->picture, c->decoded, c->rgba, NULL }, 4);
        set_int(c->convert, 4, strcmp(name, "mjpeg") == 0 ? 2 : 0);
        set_buffers(c->unstack, 0, (cl_mem[]){ c->rgba, c->layer }, 2);
}

void codec_close(struct codec *c)
{
        cl_kernel kernels[] = { c->stack, c->encode, c->decode, c->convert, c->unstack };
        cl_mem buffers[] = { c->stacked,        c->packet,  c->packet_bytes,  c->encoded,
                             c->encoder_stream, c->picture, c->picture_bytes, c->decoded,
                             c->decoder_stream, c->rgba,    c->layer };
        for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
                clReleaseKernel(kernels[i]);
        for (size_t i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
                clReleaseMemObject(buffers[i]);
}

void codec_run(struct codec *c, cl_mem layer)
{
        size_t pixels = c->width * c->height;
        set_buffers(c->stack, 0, &layer, 1);
        launch(c->far, c->stack, pixels, 0);
        device_follow(c->encoder, c->far);
        launch(c->encoder, c->encode, 1, 0);
        device_follow(c->decoder, c->encoder);
        launch(c->decoder, c->decode, 1, 0);
        launch(c->decoder, c->convert, 1, 0);
        device_follow(c->near, c->decoder);
        launch(c->near, c->unstack, pixels, 0);
}

void codec_check(struct codec *c)
{
        int32_t status[STATUS_WORDS];
        read_buffer(c->encoder, c->encoded, sizeof(status), status);
        if (status[0] != 0)
                die("the encoder delivered no packet: status %d", status[0]);
        read_buffer(c->decoder, c->decoded, sizeof(status), status);
        if (status[0] != 0)
                die("the decoder delivered no picture: status %d", status[0]);
}
