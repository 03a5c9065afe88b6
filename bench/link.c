/* A TCP proxy that is as slow as a link. For each PORT of loopback it listens on a port of its own. It passes bytes on
 * after half of the round trip, at the rate of the link in each direction. All connections share the link: the bytes of
 * one wait behind those of the others, and the proxy reads no more than the link takes. A new connection takes a round
 * trip before the first bytes leave, as TCP's own handshake does.
 *
 *     bench_link ROUND_TRIP_MS MBIT PORT...
 *     bench_link ROUND_TRIP_MS MBIT --measure
 *
 * MBIT: 0: without limit. Prints its ports in one line, then serves until it is ended. It loses nothing. --measure: 64
 * bytes there and back through the link, by threads that sleep; prints one JSON object.
 *
 * A real link does not compete for the host's processors. So the kernel tells when bytes arrived, and the threads have
 * a real-time priority if they may. They sleep until shortly before small messages are due, and then spin. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
        PIECE_MAX = 64 << 10,
        QUEUE_NS = 2000000, /* of bytes that wait for the link */
        LATE_NS = 20000000, /* by which this process may be late */
        WAKE_NS = 100000,   /* by which a sleeper may wake up late */
};

/* A direction of the link. */
struct way {
        pthread_mutex_t lock;
        uint64_t free_ns; /* when the link has sent all that it has taken */
};

static struct way ways[2] = { { PTHREAD_MUTEX_INITIALIZER, 0 }, { PTHREAD_MUTEX_INITIALIZER, 0 } };
static uint64_t delay_ns;
static double ns_per_byte;
static size_t piece_size = PIECE_MAX;

struct piece {
        struct piece *next;
        uint64_t due_ns;
        size_t size; /* 0: the end */
        uint8_t bytes[];
};

/* A direction of a connection. */
struct pipe {
        int from, to;
        struct way *way;
        uint64_t begin_ns;
        pthread_mutex_t lock;
        pthread_cond_t more;
        struct piece *first, *last;
};

static uint64_t in_ns(const struct timespec *t)
{
        return (uint64_t)t->tv_sec * 1000000000 + (uint64_t)t->tv_nsec;
}

static uint64_t clock_ns(clockid_t clock)
{
        struct timespec t;
        clock_gettime(clock, &t);
        return in_ns(&t);
}

static uint64_t now_ns(void)
{
        return clock_ns(CLOCK_MONOTONIC);
}

static void sleep_until(uint64_t ns)
{
        struct timespec t = { (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR) {
        }
}

/* Wait until the link takes more. */
static void wait_room(struct way *w)
{
        for (;;) {
                pthread_mutex_lock(&w->lock);
                uint64_t until = w->free_ns > QUEUE_NS ? w->free_ns - QUEUE_NS : 0;
                pthread_mutex_unlock(&w->lock);
                if (now_ns() >= until)
                        return;
                sleep_until(until);
        }
}

/* Have the link take bytes that came at `at_ns` or, if this process is late, before. Returns when they are on the other
 * side. */
static uint64_t take(struct way *w, uint64_t at_ns, size_t size)
{
        pthread_mutex_lock(&w->lock);
        uint64_t begin = w->free_ns > at_ns ? w->free_ns : at_ns;
        uint64_t left = begin + (uint64_t)((double)size * ns_per_byte);
        w->free_ns = ns_per_byte > 0 ? left : 0;
        pthread_mutex_unlock(&w->lock);
        return left + delay_ns;
}

static void put(struct pipe *p, struct piece *e)
{
        pthread_mutex_lock(&p->lock);
        if (p->last)
                p->last->next = e;
        else
                p->first = e;
        p->last = e;
        pthread_cond_signal(&p->more);
        pthread_mutex_unlock(&p->lock);
}

/* Receive bytes. *ret_at: when they arrived at this host. */
static ssize_t receive_at(int fd, void *bytes, size_t size, uint64_t *ret_at)
{
        union {
                struct cmsghdr head;
                uint8_t room[CMSG_SPACE(sizeof(struct timespec))];
        } control;
        struct iovec v = { bytes, size };
        struct msghdr m = { .msg_iov = &v,
                            .msg_iovlen = 1,
                            .msg_control = &control,
                            .msg_controllen = sizeof(control) };
        ssize_t n = recvmsg(fd, &m, 0);
        uint64_t now = now_ns(), real = clock_ns(CLOCK_REALTIME);
        struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
        struct timespec t;
        *ret_at = now;
        if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS)
                return n;
        memcpy(&t, CMSG_DATA(c), sizeof(t));
        uint64_t ago = real > in_ns(&t) ? real - in_ns(&t) : 0;
        if (ago < LATE_NS) /* or the clock was set */
                *ret_at = now - ago;
        return n;
}

static void *receive(void *user)
{
        struct pipe *p = user;
        for (ssize_t n = 1; n > 0;) {
                wait_room(p->way);
                struct piece *e = malloc(sizeof(*e) + piece_size);
                if (!e)
                        abort();
                uint64_t at;
                n = receive_at(p->from, e->bytes, piece_size, &at);
                e->size = n > 0 ? (size_t)n : 0;
                if (e->size == piece_size) /* more than a piece waited for this thread */
                        at -= LATE_NS;
                e->due_ns = take(p->way, at > p->begin_ns ? at : p->begin_ns, e->size);
                e->next = NULL;
                put(p, e);
        }
        return NULL;
}

static struct piece *get(struct pipe *p)
{
        pthread_mutex_lock(&p->lock);
        while (!p->first)
                pthread_cond_wait(&p->more, &p->lock);
        struct piece *e = p->first;
        p->first = e->next;
        if (!p->first)
                p->last = NULL;
        pthread_mutex_unlock(&p->lock);
        return e;
}

static void *deliver(void *user)
{
        struct pipe *p = user;
        for (size_t size = 1; size;) {
                struct piece *e = get(p);
                size = e->size;
                if (size == piece_size) { /* others follow it: the link's rate is all that counts */
                        sleep_until(e->due_ns);
                } else {
                        sleep_until(e->due_ns - WAKE_NS);
                        while (now_ns() < e->due_ns) {
                        }
                }
                for (size_t at = 0; at < size;) {
                        ssize_t n = send(p->to, e->bytes + at, size - at, MSG_NOSIGNAL);
                        if (n <= 0)
                                break;
                        at += (size_t)n;
                }
                free(e);
        }
        shutdown(p->to, SHUT_WR);
        return NULL; /* the descriptors stay open: a benchmark has few connections */
}

static void start(void *(*fn)(void *), void *user)
{
        pthread_t t;
        if (pthread_create(&t, NULL, fn, user))
                abort();
        pthread_detach(t);
}

static void carry(int from, int to, struct way *w, uint64_t begin_ns)
{
        struct pipe *p = calloc(1, sizeof(*p));
        if (!p)
                abort();
        p->from = from;
        p->to = to;
        p->way = w;
        p->begin_ns = begin_ns;
        pthread_mutex_init(&p->lock, NULL);
        pthread_cond_init(&p->more, NULL);
        start(receive, p);
        start(deliver, p);
}

struct listener {
        int fd;
        uint16_t target;
};

static void *accept_all(void *user)
{
        struct listener *l = user;
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_port = htons(l->target),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        for (int near, one = 1; (near = accept(l->fd, NULL, NULL)) >= 0;) {
                int far = socket(AF_INET, SOCK_STREAM, 0);
                if (far < 0 || connect(far, (struct sockaddr *)&to, sizeof(to)) < 0) {
                        close(near);
                        continue;
                }
                setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
                setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
                setsockopt(near, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
                setsockopt(far, SOL_SOCKET, SO_TIMESTAMPNS, &one, sizeof(one));
                carry(near, far, &ways[0], now_ns() + 2 * delay_ns);
                carry(far, near, &ways[1], 0);
        }
        return NULL;
}

/* Listen at a free port. */
static uint16_t listen_at(int *ret_fd)
{
        struct sockaddr_in own = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(own);
        *ret_fd = socket(AF_INET, SOCK_STREAM, 0);
        if (*ret_fd < 0 || bind(*ret_fd, (struct sockaddr *)&own, size) < 0 ||
            listen(*ret_fd, 64) < 0 || getsockname(*ret_fd, (struct sockaddr *)&own, &size) < 0) {
                perror("bench_link");
                exit(1);
        }
        return ntohs(own.sin_port);
}

static uint16_t listen_for(uint16_t port)
{
        struct listener *l = calloc(1, sizeof(*l));
        if (!l)
                abort();
        l->target = port;
        uint16_t own = listen_at(&l->fd);
        start(accept_all, l);
        return own;
}

/* ---- --measure ------------------------------------------------------------------------------ */

enum { PING_BYTES = 64, PINGS = 50 };

static void *echo(void *user)
{
        char bytes[PING_BYTES];
        int fd = accept(*(int *)user, NULL, NULL);
        for (ssize_t n; (n = recv(fd, bytes, sizeof(bytes), 0)) > 0;)
                if (send(fd, bytes, (size_t)n, MSG_NOSIGNAL) != n)
                        break;
        return NULL;
}

static int by_value(const void *a, const void *b)
{
        uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
        return (x > y) - (x < y);
}

static int measure(void)
{
        int listener, fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
        struct sockaddr_in to = { .sin_family = AF_INET,
                                  .sin_port = htons(listen_for(listen_at(&listener))),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        char bytes[PING_BYTES] = "";
        uint64_t took[PINGS];
        start(echo, &listener);
        if (fd < 0 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
                return 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
        for (int i = -1; i < PINGS; i++) { /* the first one connects */
                uint64_t begin = now_ns();
                if (send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL) != sizeof(bytes) ||
                    recv(fd, bytes, sizeof(bytes), MSG_WAITALL) != sizeof(bytes))
                        return 1;
                if (i >= 0)
                        took[i] = now_ns() - begin;
        }
        qsort(took, PINGS, sizeof(*took), by_value);
        printf("{\"round_trip_us\": {\"p10\": %.1f, \"median\": %.1f, \"p90\": %.1f}}\n",
               (double)took[PINGS / 10] * 1e-3, (double)took[PINGS / 2] * 1e-3,
               (double)took[PINGS * 9 / 10] * 1e-3);
        return 0;
}

int main(int argc, char **argv)
{
        if (argc < 4) {
                fprintf(stderr, "usage: bench_link ROUND_TRIP_MS MBIT PORT... | --measure\n");
                return 2;
        }
        double rate = atof(argv[2]) * 125e3; /* bytes a second */
        delay_ns = (uint64_t)(atof(argv[1]) * 1e6 / 2);
        ns_per_byte = rate > 0 ? 1e9 / rate : 0;
        if (rate > 0 && rate * 0.0005 < PIECE_MAX) /* half a millisecond: connections take turns */
                piece_size = rate * 0.0005 > 2048 ? (size_t)(rate * 0.0005) : 2048;
        const struct sched_param priority = { .sched_priority = 1 };
        (void)sched_setscheduler(0, SCHED_FIFO, &priority); /* only root may */
        (void)prctl(PR_SET_TIMERSLACK, 1UL);
        if (!strcmp(argv[3], "--measure"))
                return measure();
        for (int i = 3; i < argc; i++)
                printf("%u ", listen_for((uint16_t)atoi(argv[i])));
        printf("\n");
        fflush(stdout);
        for (;;)
                pause();
}
