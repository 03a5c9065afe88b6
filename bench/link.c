/* A TCP proxy that is as slow as a link. For each PORT of loopback it listens on a port of its own. It passes bytes on
 * after half of the round trip, at the rate of the link in each direction. All connections share the link: the bytes of
 * one wait behind those of the others, and the proxy reads no more than the link takes. A new connection takes a round
 * trip before the first bytes leave, as TCP's own handshake does.
 *
 *     bench_link ROUND_TRIP_MS MBIT PORT...
 *
 * MBIT: 0: without limit. Prints its ports in one line, then serves until it is ended. It loses nothing. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
        PIECE_MAX = 64 << 10,
        QUEUE_NS = 2000000, /* of bytes that wait for the link */
        LATE_NS = 20000000, /* by which this process may be late */
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

static uint64_t now_ns(void)
{
        struct timespec t;
        clock_gettime(CLOCK_MONOTONIC, &t);
        return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
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

static void *receive(void *user)
{
        struct pipe *p = user;
        for (ssize_t n = 1; n > 0;) {
                wait_room(p->way);
                struct piece *e = malloc(sizeof(*e) + piece_size);
                if (!e)
                        abort();
                n = recv(p->from, e->bytes, piece_size, 0);
                uint64_t now = now_ns();
                e->size = n > 0 ? (size_t)n : 0;
                /* More than a piece waited for this thread. */
                uint64_t at = e->size == piece_size ? now - LATE_NS : now;
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
                sleep_until(e->due_ns);
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
                carry(near, far, &ways[0], now_ns() + 2 * delay_ns);
                carry(far, near, &ways[1], 0);
        }
        return NULL;
}

static void listen_for(const char *port)
{
        struct listener *l = calloc(1, sizeof(*l));
        struct sockaddr_in own = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t size = sizeof(own);
        if (!l)
                abort();
        l->fd = socket(AF_INET, SOCK_STREAM, 0);
        l->target = (uint16_t)atoi(port);
        if (l->fd < 0 || bind(l->fd, (struct sockaddr *)&own, size) < 0 || listen(l->fd, 64) < 0 ||
            getsockname(l->fd, (struct sockaddr *)&own, &size) < 0) {
                perror("bench_link");
                exit(1);
        }
        printf("%u ", ntohs(own.sin_port));
        start(accept_all, l);
}

int main(int argc, char **argv)
{
        if (argc < 4) {
                fprintf(stderr, "usage: bench_link ROUND_TRIP_MS MBIT PORT...\n");
                return 2;
        }
        double rate = atof(argv[2]) * 125e3; /* bytes a second */
        delay_ns = (uint64_t)(atof(argv[1]) * 1e6 / 2);
        ns_per_byte = rate > 0 ? 1e9 / rate : 0;
        if (rate > 0 && rate * 0.0005 < PIECE_MAX) /* half a millisecond: connections take turns */
                piece_size = rate * 0.0005 > 2048 ? (size_t)(rate * 0.0005) : 2048;
        for (int i = 3; i < argc; i++)
                listen_for(argv[i]);
        printf("\n");
        fflush(stdout);
        for (;;)
                pause();
}
