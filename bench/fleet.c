/* Many servers in one process, as cheap as they can be: each session that begins gets an engine with the reference
 * backend, a loop and its thread. They listen on one port of all loopback addresses. Lane 0 alone: nothing large can
 * be moved. Prints the port, and ends with standard input.
 *
 *     bench_fleet DEVICES [sessions]        (of each server: 1, 2 or 4; "sessions": they describe no devices) */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "backend/backend.h"
#include "config/options.h"
#include "loop/server_loop.h"
#include "session/hello.h"

enum { SERVERS_MAX = 512 };

static struct server_loop *loops[SERVERS_MAX];
static size_t loop_count;
static struct config_options options;
static struct backend_ops backend; /* the reference backend, perhaps with each device twice */
static struct buf description;

/* Read the whole hello of a connection that blocks. False: it is none. */
static bool read_hello(int fd, struct buf *ret)
{
        for (;;) {
                int whole = hello_size(bytes_of(ret->data, ret->size));
                if (whole < 0 || ret->size == (size_t)whole)
                        return whole > 0;
                size_t left = (size_t)whole - ret->size;
                if (buf_reserve(ret, left) < 0)
                        return false;
                ssize_t n = read(fd, ret->data + ret->size, left);
                if (n <= 0)
                        return false;
                ret->size += (size_t)n;
        }
}

static unsigned four(struct backend *b)
{
        (void)b;
        return 4;
}

static int info_of_four(struct backend *b, unsigned device, struct buf *out)
{
        return backend_find("reference")->device.info(b, device % 2, out);
}

static unsigned domain_of_four(struct backend *b, unsigned device)
{
        return backend_find("reference")->device.domain(b, device % 2);
}

static void choose_backend(int devices)
{
        backend = *backend_find("reference");
        options.values[CONFIG_devices] = devices == 1 ? "0" : "";
        if (devices != 4)
                return;
        backend.device.count = four;
        backend.device.info = info_of_four;
        backend.device.domain = domain_of_four;
        backend.device.label = NULL;
}

static void describe(void)
{
        struct server_loop *l;
        const struct server_loop_params params = { .options = &options,
                                                   .backend = &backend,
                                                   .output_fd = -1 };
        if (server_loop_new(&params, &l) < 0 || server_loop_describe(l, &description) < 0) {
                fprintf(stderr, "bench_fleet: no description of the devices\n");
                exit(1);
        }
        server_loop_free(l);
}

/* Answer a hello for which a description will do. */
static void answer(int fd)
{
        struct buf out = { 0 };
        const struct wire_hello_reply m = { .version = WIRE_VERSION,
                                            .features = FEATURE_DESCRIPTION };
        if (hello_put_reply(&out, &m) < 0 ||
            hello_put_devices(&out, bytes_of(description.data, description.size), 0) < 0 ||
            write(fd, out.data, out.size) != (ssize_t)out.size)
                fprintf(stderr, "bench_fleet: a client gets no description\n");
        buf_fini(&out);
        close(fd);
}

static void serve(int fd)
{
        struct buf hello = { 0 };
        struct conn *conn;
        const struct server_loop_params params = {
                .options = &options,
                .backend = &backend,
                .output_fd = -1,
        };
        struct wire_hello m;
        bool whole = read_hello(fd, &hello);
        if (whole && description.size && hello_get(bytes_of(hello.data, hello.size), &m) == 0 &&
            m.features & FEATURE_DESCRIPTION) {
                buf_fini(&hello);
                answer(fd);
                return;
        }
        if (!whole || loop_count == SERVERS_MAX || conn_from_fd(fd, &conn) < 0 ||
            server_loop_new(&params, &loops[loop_count]) < 0 ||
            server_loop_attach(loops[loop_count++], conn, bytes_of(hello.data, hello.size)) < 0) {
                fprintf(stderr, "bench_fleet: no server for a connection\n");
                exit(1);
        }
        buf_fini(&hello);
}

int main(int argc, char **argv)
{
        struct sockaddr_in at = { .sin_family = AF_INET };
        socklen_t size = sizeof(at);
        struct rlimit limit = { 8192, 8192 };
        (void)setrlimit(RLIMIT_NOFILE, &limit);
        choose_backend(argc > 1 ? atoi(argv[1]) : 2);
        if (argc < 3 || strcmp(argv[2], "sessions") != 0)
                describe();
        int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 ||
            listen(listener, SERVERS_MAX) < 0 ||
            getsockname(listener, (struct sockaddr *)&at, &size) < 0) {
                perror("bench_fleet");
                return 1;
        }
        printf("%u\n", ntohs(at.sin_port));
        fflush(stdout);
        for (;;) {
                struct pollfd p[] = { { .fd = STDIN_FILENO, .events = POLLIN },
                                      { .fd = listener, .events = POLLIN } };
                if (poll(p, 2, -1) < 0 || p[0].revents)
                        break;
                int fd = accept(listener, NULL, NULL);
                if (fd >= 0)
                        serve(fd);
        }
        _exit(0);
}
