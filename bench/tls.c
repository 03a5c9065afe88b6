/* Measures the cost of TLS beside plain TCP, in turn: a small message there and back, and a
 * stream. The process makes the records, and where it can, the kernel. Both sides are threads of
 * this process. The CPU time is that of both together, so other work on the machine does not
 * matter. Prints one JSON object.
 *
 *     bench_tls [ADDRESS NETNS]
 *
 * With these arguments the other side is in that network namespace, where ADDRESS is its own. TLS
 * is meant for links between hosts, whose congestion control differs from that within a host
 * (docs/internals/transport.md). */
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "samples.h"
#include "transport/tls.h"

enum {
        ROUNDS = 40,
        TRIPS = 500,
        MESSAGE = 128,
        STREAM = 64 << 20,
        PIECE = 1 << 20, /* of one send and one receive: a frame of bulk data */
        WAIT_MS = 10000,
};

static void need(int ok, const char *what)
{
        if (ok)
                return;
        fprintf(stderr, "bench_tls: %s: %s\n", what, tls_reason());
        exit(1);
}

static void give(struct conn *c, const char *data, size_t size)
{
        while (size) {
                struct iovec iov = { (void *)(uintptr_t)data, size };
                ssize_t n = c->ops->sendv(c, &iov, 1);
                if (n == SP_E_AGAIN) {
                        (void)conn_wait(c, false, true, WAIT_MS);
                        continue;
                }
                need(n > 0, "send");
                data += n;
                size -= (size_t)n;
        }
}

static void take(struct conn *c, char *data, size_t size)
{
        while (size) {
                struct iovec iov = { data, size };
                ssize_t n = c->ops->recvv(c, &iov, 1);
                if (n == SP_E_AGAIN) {
                        (void)conn_wait(c, true, false, WAIT_MS);
                        continue;
                }
                need(n > 0, "receive");
                data += n;
                size -= (size_t)n;
        }
}

/* The other side. It echoes TRIPS messages, then takes a stream. It does so ROUNDS times, and one
 * more to warm up. */
static void *other(void *arg)
{
        static char data[PIECE];
        struct conn *c = arg;
        for (int round = 0; round <= ROUNDS; round++) {
                for (int i = 0; i < TRIPS; i++) {
                        take(c, data, MESSAGE);
                        give(c, data, MESSAGE);
                }
                for (size_t got = 0; got < STREAM; got += PIECE)
                        take(c, data, PIECE);
                give(c, data, 1);
        }
        return NULL;
}

struct side {
        const char *name;
        struct conn *conn;
        pthread_t thread;
        struct samples trip_us, trip_cpu_us, stream, stream_core;
};

static void *accept_one(void *arg)
{
        struct listener *l = arg;
        struct conn *c;
        int r;
        while ((r = l->ops->accept(l, &c)) == SP_E_AGAIN) {
                struct pollfd p = { .fd = l->fd, .events = POLLIN };
                (void)poll(&p, 1, WAIT_MS);
        }
        need(r == 0, "accept");
        return other(c);
}

static const char *host = "127.0.0.1", *namespace;

static void enter(int fd)
{
        if (fd < 0 || setns(fd, CLONE_NEWNET) < 0) {
                perror("bench_tls: network namespace");
                exit(1);
        }
        close(fd);
}

/* Sockets stay in the namespace they were made in. */
static struct listener *listen_there(const struct transport_ops *t, const char *kind)
{
        struct listener *l;
        char path[256];
        int ours = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
        snprintf(path, sizeof(path), "/run/netns/%s", namespace ? namespace : "");
        if (namespace)
                enter(open(path, O_RDONLY | O_CLOEXEC));
        snprintf(path, sizeof(path), "%s:%s:0", kind, host);
        need(t->listen(path, &l) == 0, "listen");
        if (namespace)
                enter(ours);
        return l;
}

static void connect_to(struct side *s, const struct transport_ops *t, const char *kind)
{
        struct listener *l = listen_there(t, kind);
        need(pthread_create(&s->thread, NULL, accept_one, l) == 0, "thread");
        need(t->connect(l->address, WAIT_MS, &s->conn) == 0, "connect");
}

static double cpu_us(void)
{
        struct rusage u;
        getrusage(RUSAGE_SELF, &u);
        return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
               (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void measure(struct side *s, int warm)
{
        static char data[PIECE];
        double at = now_us(), cpu = cpu_us();
        for (int i = 0; i < TRIPS; i++) {
                give(s->conn, data, MESSAGE);
                take(s->conn, data, MESSAGE);
        }
        if (!warm) {
                samples_add(&s->trip_us, (now_us() - at) / TRIPS);
                samples_add(&s->trip_cpu_us, (cpu_us() - cpu) / TRIPS);
        }
        at = now_us();
        cpu = cpu_us();
        for (size_t sent = 0; sent < STREAM; sent += PIECE)
                give(s->conn, data, PIECE);
        take(s->conn, data, 1);
        if (!warm) {
                samples_add(&s->stream, STREAM / (now_us() - at) * 1e-3);
                samples_add(&s->stream_core, STREAM / (cpu_us() - cpu) * 1e-3);
        }
}

static void print(struct side *s)
{
        char name[64];
        struct {
                struct samples *values;
                const char *what, *unit;
        } all[] = {
                { &s->trip_us, "round_trip", "us" },
                { &s->trip_cpu_us, "round_trip_cpu", "us" },
                { &s->stream, "stream", "GB/s" },
                { &s->stream_core, "stream_of_a_core", "GB/s" },
        };
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
                snprintf(name, sizeof(name), "%s_%s", s->name, all[i].what);
                samples_print(all[i].values, name, all[i].unit);
        }
}

static void judge(struct side *s, struct side *plain)
{
        double trip = samples_at(&s->trip_cpu_us, 0.5) - samples_at(&plain->trip_cpu_us, 0.5);
        double core = samples_at(&s->stream_core, 0.5) / samples_at(&plain->stream_core, 0.5);
        fprintf(stderr, "%s: a small command and its answer: %.1f us more (goal 4): %s\n", s->name,
                trip, trip <= 4 ? "met" : "missed");
        fprintf(stderr, "%s: bandwidth of a core: %.0f %% of plain (goal 60): %s\n", s->name,
                core * 100, core >= 0.6 ? "met" : "missed");
}

int main(int argc, char **argv)
{
        if (argc == 3) {
                host = argv[1];
                namespace = argv[2];
        } else if (argc != 1) {
                fprintf(stderr, "usage: bench_tls [ADDRESS NETNS]\n");
                return 2;
        }
        static struct side sides[] = { { .name = "tcp" }, { .name = "tls" }, { .name = "ktls" } };
        char folder[] = "/tmp/bench-tls.XXXXXX", file[64];
        int n = 2;
        need(mkdtemp(folder) != NULL, "a folder");
        setenv("SPANCL_KEYS", folder, 1);
        connect_to(&sides[0], &transport_tcp, "tcp");
        tls_by_kernel = false;
        connect_to(&sides[1], &transport_tls, "tls");
        measure(&sides[1], 1); /* with which the other side's handshake ends */
        tls_by_kernel = true;
        connect_to(&sides[2], &transport_tls, "tls");
        if (!strcmp(conn_name(sides[2].conn), sides[2].name))
                n = 3;
        for (int i = 0; i < n; i++)
                if (i != 1)
                        measure(&sides[i], 1);
        for (int round = 0; round < ROUNDS; round++)
                for (int i = 0; i < n; i++)
                        measure(&sides[i], 0);
        for (int i = 1; i < n; i++)
                judge(&sides[i], &sides[0]); /* before printing, which lets go of the values */
        for (int i = 0; i < n; i++) {
                print(&sides[i]);
                pthread_join(sides[i].thread, NULL);
        }
        printf("\n}\n");
        snprintf(file, sizeof(file), "%s/identity.pem", folder);
        unlink(file);
        rmdir(folder);
        return 0;
}
