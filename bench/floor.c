/* The limits of this machine's loopback and memory, which no runtime over them can beat. Measures
 * TCP ping-pong with sleeping and with spinning receivers, one TCP stream, and one copy in
 * memory. Two processes take part, as a client and a server do. Prints one JSON object. */

#include "samples.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define PING_BYTES   64
#define STREAM_BYTES ((size_t)256 << 20)

struct request {
        uint32_t kind; /* 0: ping; 1: take `bytes`, then answer; 2: the end */
        uint32_t spin;
        uint64_t bytes;
        uint8_t pad[PING_BYTES - 16];
};

static struct samples samples;

static void die(const char *what)
{
        perror(what);
        exit(1);
}

static void send_all(int fd, const void *data, size_t size)
{
        const uint8_t *p = data;
        while (size) {
                ssize_t n = send(fd, p, size, MSG_NOSIGNAL);
                if (n < 0)
                        die("send");
                p += n;
                size -= (size_t)n;
        }
}

static int recv_all(int fd, void *data, size_t size, int spin)
{
        uint8_t *p = data;
        while (size) {
                ssize_t n = recv(fd, p, size, spin ? MSG_DONTWAIT : 0);
                if (n < 0 && (errno == EAGAIN || errno == EINTR))
                        continue;
                if (n < 0)
                        die("recv");
                if (n == 0)
                        return -1;
                p += n;
                size -= (size_t)n;
        }
        return 0;
}

static void serve(int fd)
{
        uint8_t *sink = malloc(STREAM_BYTES);
        if (!sink)
                die("malloc");
        memset(sink, 1, STREAM_BYTES);
        struct request r;
        int spin = 0;
        while (recv_all(fd, &r, sizeof(r), spin) == 0 && r.kind != 2) {
                spin = (int)r.spin;
                if (r.kind == 1 && recv_all(fd, sink, r.bytes, 0) < 0)
                        break;
                send_all(fd, &r, sizeof(r));
        }
        free(sink);
}

static void ping(int fd, int spin, int count, const char *name)
{
        struct request r = { .spin = (uint32_t)spin };
        for (int i = 0; i < count; i++) {
                double start = now_us();
                r.bytes = (uint64_t)i;
                send_all(fd, &r, sizeof(r));
                struct request answer;
                if (recv_all(fd, &answer, sizeof(answer), spin) < 0 || answer.bytes != r.bytes) {
                        fprintf(stderr, "floor: wrong answer\n");
                        exit(1);
                }
                if (i >= count / 10)
                        samples_add(&samples, now_us() - start);
        }
        samples_print(&samples, name, "us");
}

static void stream(int fd, const void *data, size_t size, int count, const char *name)
{
        for (int i = 0; i < count; i++) {
                struct request r = { .kind = 1, .bytes = size };
                double start = now_us();
                send_all(fd, &r, sizeof(r));
                send_all(fd, data, size);
                if (recv_all(fd, &r, sizeof(r), 0) < 0)
                        die("stream");
                if (i)
                        samples_add(&samples, (double)size / (now_us() - start) * 1e-3);
        }
        samples_print(&samples, name, "GB/s");
}

int main(void)
{
        int listener = socket(AF_INET, SOCK_STREAM, 0);
        struct sockaddr_in at = { .sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t at_size = sizeof(at);
        int one = 1;
        if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
            listen(listener, 1) < 0 || getsockname(listener, (struct sockaddr *)&at, &at_size) < 0)
                die("listen");

        pid_t child = fork();
        if (child < 0)
                die("fork");
        if (child == 0) {
                int fd = accept(listener, NULL, NULL);
                if (fd < 0)
                        die("accept");
                setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
                serve(fd);
                _exit(0);
        }

        int fd = socket(AF_INET, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) < 0)
                die("connect");
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));

        uint8_t *data = malloc(STREAM_BYTES);
        uint8_t *copy = malloc(STREAM_BYTES);
        if (!data || !copy)
                die("malloc");
        memset(data, 1, STREAM_BYTES);
        memset(copy, 2, STREAM_BYTES);

        ping(fd, 0, 3000, "tcp_round_trip");
        /* Spinning needs a CPU for each side; the process may be pinned to one. */
        cpu_set_t cpus;
        if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0 && CPU_COUNT(&cpus) > 1)
                ping(fd, 1, 3000, "tcp_round_trip_spinning");
        /* The last spinning request made the other side spin; one more stops it. */
        ping(fd, 0, 20, "tcp_round_trip_after");
        stream(fd, data, 1 << 20, 60, "tcp_stream_1m");
        stream(fd, data, 16 << 20, 12, "tcp_stream_16m");
        stream(fd, data, STREAM_BYTES, 3, "tcp_stream_256m");
        for (int i = 0; i < 8; i++) {
                double start = now_us();
                memcpy(copy, data, 16 << 20);
                samples_add(&samples, (double)(16 << 20) / (now_us() - start) * 1e-3);
                data[i] ^= copy[i];
        }
        samples_print(&samples, "memcpy_16m", "GB/s");
        printf("\n}\n");

        struct request end = { .kind = 2 };
        send_all(fd, &end, sizeof(end));
        close(fd);
        waitpid(child, NULL, 0);
        free(data);
        free(copy);
        return 0;
}
