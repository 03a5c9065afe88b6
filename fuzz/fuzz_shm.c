/* Memory shared with a hostile process. It offers rings of its own making, or takes those that
 * this side offers, as a client does to a server. It writes there any bytes while this side sends
 * and receives. This side touches nothing beyond the rings and never hangs. If this side took
 * memory beside the rings, the test touches it: it must be there. The first two bytes of the
 * input choose the offer. The others are instructions with their operands. */
#include "fuzz/target.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "os/passing.h"
#include "os/vm.h"
#include "transport/bounce.h"
#include "transport/shm.h"
#include "transport/transport.h"

enum {
        HEADER = 4096,
        RING = 4096,
        STEPS_MAX = 200,
        PIECE = 3000,
        BOUNCE = 4 * BOUNCE_PIECE,
        ARENA = 2 << 20, /* a huge page, so that it can be one */
        LARGE = 0x8000,
        /* Bits of the first byte. */
        SAYS_ANYTHING = 8,
        NO_MEMORY = 16,
        BOUNCED = 32,
        THIS_SIDE_OFFERS = 64,
        HAS_COMMON = 128,
};

static uint8_t bounce[BOUNCE];

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

/* Memory beside the rings, or anything else; -1: the kernel has none of this kind. */
static int offer_common(unsigned how)
{
        int fd, unused[2];
        switch (how % 6) {
        case 0: /* as it should be */
        case 1: /* without seals */
        case 2: /* of huge pages, of which there may be none */
                fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING |
                                                     (how % 6 == 2 ? MFD_HUGETLB : 0));
                if (fd >= 0 &&
                    (ftruncate(fd, ARENA) < 0 ||
                     (how % 6 != 1 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) < 0)))
                        fuzz_check(false);
                return fd;
        case 3:
                return open("/dev/zero", O_RDWR | O_CLOEXEC);
        case 4:
                if (pipe2(unused, O_CLOEXEC) < 0)
                        return -1;
                close(unused[1]);
                return unused[0];
        default: /* this cannot be written to */
                fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
                fuzz_check(ftruncate(fd, ARENA) == 0);
                fuzz_check(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) == 0);
                return fd;
        }
}

static void say(int socket, uint8_t what, const int *fds, size_t count)
{
        struct iovec iov = { &what, 1 };
        (void)!passing_send(socket, &iov, 1, fds, count);
}

/* Touch memory that was taken. It is there, whatever the other side does to its descriptor `fd`
 * of it. */
static void touch_common(struct conn *c, int fd, bool punched)
{
        uint64_t size = 0, address;
        int common = conn_arena(c, &size);
        if (common < 0 || !size || vm_map_file(common, 0, size, &address) < 0)
                return;
        (void)!ftruncate(fd, 0);
        if (punched)
                (void)!fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)size);
        for (uint64_t at = 0; at < size; at += ARENA / 8)
                ((volatile uint8_t *)(uintptr_t)address)[at]++;
        vm_unmap(address, size);
}

static void step(struct input *in, struct conn *c, int socket, uint8_t *memory, size_t size)
{
        static uint8_t data[PIECE];
        unsigned kind = (unsigned)take(in, 2);
        struct iovec iov[2] = { { data, 1 + kind % (PIECE / 2) }, { data + PIECE / 2, 100 } };
        if (kind & LARGE) /* of the bounce buffer, or in part beyond it */
                iov[0] = (struct iovec){ bounce + kind % 4 * BOUNCE_PIECE, BOUNCE_PIECE };
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

/* The hostile side offers: its memory, as this process sees it. */
static int be_offered(struct input *in, unsigned how, struct conn **c, int socket,
                      uint8_t **ret_memory, size_t *ret_size)
{
        int fds[3] = { offer(how, ret_size), -1, -1 };
        size_t count = how & NO_MEMORY ? 0 : 1;
        unsigned common = how & HAS_COMMON ? (unsigned)take(in, 1) : 0;
        *ret_memory = mmap(NULL, *ret_size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
        fuzz_check(*ret_memory != MAP_FAILED);
        if (how & HAS_COMMON)
                fds[1] = offer_common(common);
        if (count && fds[1] >= 0)
                count = 2;
        if (count == 2 && common & 0x40) { /* more than are expected */
                fds[2] = fds[1];
                count = 3;
        }
        say(socket, how & SAYS_ANYTHING ? (uint8_t)take(in, 1) : 'M', fds, count);
        int r = shm_accept(c);
        if (r == 0 && fds[1] >= 0)
                touch_common(*c, fds[1], common & 0x80);
        close(fds[0]);
        if (fds[1] >= 0)
                close(fds[1]);
        return r;
}

/* This side offers. The hostile side sends something, and may write to the memory that it got. */
static int make_offer(struct input *in, unsigned how, struct conn **c, int socket,
                      uint8_t **ret_memory, size_t *ret_size)
{
        uint8_t what;
        int fds[2] = { -1, -1 };
        struct iovec iov = { &what, 1 };
        int r = shm_offer(c, RING, how & HAS_COMMON ? ARENA : 0);
        fuzz_check(r == 0 && passing_receive(socket, &iov, 1, fds, 2) == 1);
        *ret_size = HEADER + 2 * RING;
        *ret_memory = mmap(NULL, *ret_size, PROT_READ | PROT_WRITE, MAP_SHARED, fds[0], 0);
        fuzz_check(*ret_memory != MAP_FAILED);
        /* It cannot take the memory away, nor the seals. */
        fuzz_check(ftruncate(fds[0], 0) < 0 && fcntl(fds[0], F_ADD_SEALS, F_SEAL_WRITE) < 0);
        if (fds[1] >= 0) {
                fuzz_check(ftruncate(fds[1], 0) < 0);
                touch_common(*c, fds[1], false);
                close(fds[1]);
        }
        say(socket, how & SAYS_ANYTHING ? (uint8_t)take(in, 1) : 'Y', fds, how & NO_MEMORY ? 1 : 0);
        close(fds[0]);
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        struct input in = { data, size };
        struct conn *c;
        int pair[2];
        size_t memory_size;
        uint8_t *memory;
        unsigned how = (unsigned)take(&in, 1);
        fuzz_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
        fuzz_check(conn_from_fd(pair[0], &c) == 0);
        int r = (how & THIS_SIDE_OFFERS ? make_offer : be_offered)(&in, how, &c, pair[1], &memory,
                                                                   &memory_size);
        if (r == 0 && how & BOUNCED)
                conn_bounce(c, bounce, BOUNCE - BOUNCE_PIECE / 2);
        for (unsigned i = 0; r == 0 && in.left && i < STEPS_MAX; i++)
                step(&in, c, pair[1], memory, memory_size);
        if (r == 0 || r == SP_E_AGAIN)
                conn_close(c);
        munmap(memory, memory_size);
        close(pair[1]);
        return 0;
}
