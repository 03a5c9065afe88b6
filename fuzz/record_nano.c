/* record_nano HOST PORT FILE [built-in]: records what a server sends the program of nano_program.h, as an input of
 * fuzz_nano.c. */
#include <stdio.h>

#include "nano_program.h"
#include "posix/transport.h"

enum { HELLO_HEAD = 32, LANES = 2 };

static struct spancl_nano_transport real;
static FILE *file;
static size_t sent;
/* Bytes of the answer to the hello that come, and of it the number; they are not recorded. */
static size_t answer_left[LANES], head_left[LANES];

static int lane_open(void *user, unsigned lane)
{
        head_left[lane] = HELLO_HEAD;
        answer_left[lane] = 0;
        return real.open(user, lane);
}

static int lane_send(void *user, unsigned lane, const void *data, size_t size)
{
        int n = real.send(user, lane, data, size);
        sent += n > 0 ? (size_t)n : 0;
        return n;
}

static int lane_receive(void *user, unsigned lane, void *data, size_t size)
{
        const uint8_t *p = data;
        int n = real.receive(user, lane, data, size);
        if (n <= 0)
                return n;
        if (head_left
                    [lane]) { /* the client asks for the head alone, and for no byte behind the answer */
                head_left[lane] -= (size_t)n;
                if (!head_left[lane])
                        answer_left[lane] = p[n - 24] | (size_t)p[n - 23] << 8;
        } else if (answer_left[lane]) {
                answer_left[lane] -= (size_t)n;
        } else {
                const uint8_t head[NANO_RECORD] = { (uint8_t)lane,        (uint8_t)sent,
                                                    (uint8_t)(sent >> 8), (uint8_t)(sent >> 16),
                                                    (uint8_t)n,           (uint8_t)(n >> 8) };
                fwrite(head, sizeof(head), 1, file);
                fwrite(data, (size_t)n, 1, file);
        }
        return n;
}

int main(int argc, char **argv)
{
        static uint64_t arena[3000];
        struct posix_transport p = { 0 };
        if (argc < 4 || !(file = fopen(argv[3], "wb")))
                return 2;
        p.host = argv[1];
        p.port = (unsigned)atoi(argv[2]);
        real = posix_transport(&p);
        const struct spancl_nano_transport t = { lane_open, lane_send, lane_receive, real.wait,
                                                 &p };
        fputc(argc > 4, file);
        nano_program(&t, arena, sizeof(arena), argc > 4);
        posix_transport_close(&p);
        return fclose(file) ? 1 : 0;
}
