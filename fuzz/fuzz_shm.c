/* Memory shared with a hostile process: it offers rings of its own making, and writes there what it likes while this
 * side sends and receives. Nothing beyond the rings may be touched, and nothing hang. Bytes of the input, after the
 * first two (what is offered): instructions with their operands. */
#include "fuzz/target.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/passing.h"
#include "transport/stage.h"
#include "transport/transport.h"

enum {
        HEADER = 4096,
        RING = 4096,
        STEPS_MAX = 200,
        PIECE = 3000,
        STAGE = 4 * STAGE_PIECE,
        LARGE = 0x8000
};

static uint8_t stage[STAGE];

struct input {
        const uint8_t *p;
        size_t left;
};

static uint64_t take(struct input *in, unsigned n)
{
        uint64_t v = 0;
        for (; n && in->left; n--, in->left--)
                v = v << 8 | *in->p++;
        return v;
}

/* Memory as it should be, or not. */
static int offer(unsigned how, size_t *ret_size)
{
        size_t size = HEADER + 2 * RING;
        int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
        fuzz_check(fd >= 0);
        if (how % 8 == 5)
                size -= 8;
        if (how % 8 == 6)
                size = HEADER;
        fuzz_check(ftruncate(fd, (off_t)size) == 0);
        if (how % 8 != 7)
                fuzz_check(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0);
        *ret_size = size;
        return fd;
}

static void say(int socket, uint8_t what, int fd)
{
        struct iovec iov = { &what, 1 };
        (void)!passing_send(socket, &iov, 1, &fd, fd >= 0);
}

static void step(struct input *in, struct conn *c, int socket, uint8_t *memory, size_t size)
{
        static uint8_t data[PIECE];
        unsigned kind = (unsigned)take(in, 2);
        struct iovec iov[2] = { { data, 1 + kind % (PIECE / 2) }, { data + PIECE / 2, 100 } };
        if (kind & LARGE) /* of the stage, or in part beyond it */
                iov[0] = (struct iovec){ stage + kind % 4 * STAGE_PIECE, STAGE_PIECE };
        uint8_t byte;
        switch (take(in, 1) % 6) {
        case 0:
                (void)!c->ops->sendv(c, iov, 2);
                break;
        case 1:
                (void)!c->ops->recvv(c, iov, 2);
                break;
        case 2: { /* a position, or whatever else is in the header */
                size_t at = take(in, 1) * 32 % HEADER;
                uint64_t value = take(in, 8);
                if (at + 8 <= size)
                        memcpy(memory + at, &value, 8);
                break;
        }
        case 3:
                byte = (uint8_t)take(in, 1);
                (void)!send(socket, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
                break;
        case 4: { /* move a position by a little */
                uint64_t value;
                size_t at = take(in, 1) % 12 * 128;
                memcpy(&value, memory + at, 8);
                value += take(in, 2);
                memcpy(memory + at, &value, 8);
                break;
        }
        default:
                (void)conn_wait(c, take(in, 1) & 1, true, 0);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input in = { data, size };
        struct conn *c;
        int pair[2];
        size_t memory_size;
        unsigned how = (unsigned)take(&in, 1);
        fuzz_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
        fuzz_check(conn_from_fd(pair[0], &c) == 0);
        int fd = offer(how, &memory_size);
        uint8_t *memory = mmap(NULL, memory_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        fuzz_check(memory != MAP_FAILED);
        say(pair[1], how & 8 ? (uint8_t)take(&in, 1) : 'M', how & 16 ? -1 : fd);
        int r = shm_accept(&c);
        if (r == 0 && how & 32)
                conn_stage(c, stage, STAGE - STAGE_PIECE / 2);
        for (unsigned i = 0; r == 0 && in.left && i < STEPS_MAX; i++)
                step(&in, c, pair[1], memory, memory_size);
        if (r == 0 || r == SP_E_AGAIN)
                conn_close(c);
        munmap(memory, memory_size);
        close(fd);
        close(pair[1]);
        return 0;
}
