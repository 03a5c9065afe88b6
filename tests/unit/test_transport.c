/* One set of claims over every transport: tcp over IPv4 and IPv6, unix, shared memory, in-process buffered,
 * in-process rendezvous, TLS, vsock, and libfabric's providers beside a socket. With TEST_TRANSPORT=NAME
 * only these claims, over the kinds whose names begin so; status 77: this host lacks all of them. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "os/passing.h"
#include "transport/checked.h"
#include "transport/fabric.h"
#include "transport/inproc.h"
#include "transport/shm.h"
#include "transport/tls.h"

struct kind {
        const char *name;
        const char *listen;
        const char *suffix; /* behind the listener's address to connect */
        bool optional;      /* the host may lack it */
        bool shared;        /* and then over shared memory */
        const char *fabric; /* and then with this provider beside it */
        int checked; /* 1: and then with checksums; 2: large records go straight into their place */
};

static char unix_address[64];

static const struct kind kinds[] = {
        { "tcp4", "tcp:127.0.0.1:0", "", false, false },
        { "tcp6", "tcp:[::1]:0", "", true, false },
        { "unix", unix_address, "", false, false },
        { "shm", unix_address, "", false, true },
        { "inproc", "inproc:test", "", false, false },
        { "inproc rendezvous", "inproc:test", "/bulk", false, false },
        { "tls", "tls:127.0.0.1:0", "", true, false },
        { "vsock", "vsock-plain:1:0", "", true, false },
        { "vsock, tls", "vsock:1:0", "", true, false },
        { "checked", "tcp:127.0.0.1:0", "", false, false, NULL, 1 },
        { "checked, placed", "tcp:127.0.0.1:0", "", false, false, NULL, 2 },
        /* Not shm, which within one process uses memory of an endpoint that is closed: tests/system/fabric.py. */
        { "fabric tcp", "tcp:127.0.0.1:0", "", false, false, "tcp" },
        { "fabric tcp, unix", unix_address, "", false, false, "tcp" },
        { "fabric tcp, tls", "tls:127.0.0.1:0", "", true, false, "tcp" },
};

enum { SHARED_SIZE = 64 << 10 };

/* ThreadSanitizer watches each access to a byte, and finds a race in a part of the data, too. All of it is many times
 * what a socket or shared memory holds. */
#ifdef __SANITIZE_THREAD__
enum { LARGE = 8 << 20, BOTH = 1 << 20, FRAMES = 8 << 20 };
#else
enum { LARGE = 64 << 20, BOTH = 8 << 20, FRAMES = 24 << 20 };
#endif

struct fixture {
        struct listener *listener;
        struct conn *a, *b;
};

/* Also in threads, where cmocka would end the process without a word. A wake-up may be for what has been seen
 * already: the other side's bell came late. */
static void wait_for(struct conn *c, bool in, bool out)
{
        enum { LONG_S = 20 };
        time_t end = time(NULL) + LONG_S;
        while (conn_wait(c, in, out, LONG_S * 1000) != 0) {
                if (time(NULL) >= end) {
                        fprintf(stderr, "nothing has happened for %d s\n", LONG_S);
                        abort();
                }
        }
}

struct dialling {
        const struct transport_ops *transport;
        const char *address;
        struct conn *conn;
        int status;
        atomic_bool done;
};

static void *dial(void *arg)
{
        struct dialling *d = arg;
        d->status = d->transport->connect(d->address, 5000, &d->conn);
        d->done = true;
        return NULL;
}

/* Go on with both sides of a connection between servers after their hellos. False: there is no such provider. */
static bool begin_fabric(const char *provider, struct fixture *f)
{
        char offer[FABRIC_NAMES_MAX];
        fabric_configure(provider);
        fabric_offer(f->a, fabric_chosen(), offer);
        if (!*offer)
                return false;
        uint64_t form;
        struct rma *theirs = fabric_open(f->b, bytes_str(offer));
        assert_non_null(theirs);
        assert_string_equal(rma_provider(theirs), provider);
        uint8_t at[RMA_ADDRESS_MAX];
        struct bytes address = rma_address(theirs, &form);
        memcpy(at, address.data, address.size);
        struct rma *ours = fabric_open(f->a, bytes_str(offer));
        assert_non_null(ours);
        assert_int_equal(fabric_begin(&f->b, theirs, bytes_of(NULL, 0), 0), 0);
        assert_int_equal(fabric_begin(&f->a, ours, bytes_of(at, address.size), form), 0);
        assert_ptr_equal(f->a->ops, &transport_fabric);
        wait_for(f->b, false, true); /* it has heard where the other endpoint is */
        return true;
}

static void close_pair(struct fixture *f);

static unsigned opened; /* pairs so far */

/* False: this host lacks the transport, or the caller wants another one. */
static bool open_pair(const struct kind *k, struct fixture *f)
{
        const char *only = getenv("TEST_TRANSPORT");
        memset(f, 0, sizeof(*f));
        if (only && strncmp(k->name, only, strlen(only)) != 0)
                return false;
        int r = transport_of(k->listen)->listen(k->listen, &f->listener);
        if (r < 0 && k->optional)
                return false;
        assert_int_equal(r, 0);
        char address[300];
        snprintf(address, sizeof(address), "%s%s", f->listener->address, k->suffix);
        const struct transport_ops *t = transport_of(address);
        assert_ptr_equal(t, f->listener->ops);
        struct conn *none = NULL;
        assert_int_equal(t->accept(f->listener, &none), SP_E_AGAIN);
        struct dialling d = { t, address, NULL, -1, false };
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, dial, &d), 0);
        struct pollfd p = { .fd = f->listener->fd, .events = POLLIN };
        assert_int_equal(poll(&p, 1, 20000), 1);
        assert_int_equal(t->accept(f->listener, &f->b), 0);
        assert_int_equal(t->accept(f->listener, &none), SP_E_AGAIN);
        uint8_t early;
        while (!d.done) { /* a handshake is made by receiving */
                struct iovec iov = { &early, 1 };
                assert_int_equal(f->b->ops->recvv(f->b, &iov, 1), SP_E_AGAIN);
                p = (struct pollfd){ .fd = f->b->fd, .events = POLLIN };
                (void)poll(&p, 1, 1);
        }
        pthread_join(thread, NULL);
        assert_int_equal(d.status, 0);
        f->a = d.conn;
        struct iovec iov = { &early, 1 };
        assert_int_equal(f->b->ops->recvv(f->b, &iov, 1), SP_E_AGAIN);
        if (k->shared) {
                assert_int_equal(shm_accept(&f->a), SP_E_AGAIN);
                assert_int_equal(shm_offer(&f->b, SHARED_SIZE, 0), 0);
                assert_int_equal(shm_accept(&f->a), 0);
                assert_ptr_equal(f->a->ops, &transport_shm);
                wait_for(f->b, false, true); /* it has heard that the offer was taken */
        }
        if (k->checked) {
                assert_int_equal(checked_begin(&f->a, k->checked > 1), 0);
                assert_int_equal(checked_begin(&f->b, k->checked > 1), 0);
        }
        if (k->fabric && !begin_fabric(k->fabric, f)) {
                close_pair(f);
                return false;
        }
        opened++;
        return true;
}

static void close_pair(struct fixture *f)
{
        f->a = conn_close(f->a);
        f->b = conn_close(f->b);
        f->listener = listener_close(f->listener);
}

/* Run `claim` over each kind. */
static void each_kind(void (*claim)(struct fixture *f))
{
        for (size_t i = 0; i < array_size(kinds); i++) {
                struct fixture f;
                if (!open_pair(&kinds[i], &f)) {
                        print_message("  %s: not on this host\n", kinds[i].name);
                        continue;
                }
                claim(&f);
                close_pair(&f);
        }
}

/* ---- streams -------------------------------------------------------------------------------- */

static uint8_t pattern(uint64_t i, unsigned seed)
{
        return (uint8_t)((i * 2654435761u + seed) >> 11);
}

struct stream {
        struct conn *conn;
        size_t size, step; /* step: 0: the whole rest in each call */
        unsigned seed;
        int pieces; /* per call */
        bool ok;
};

static void *send_stream(void *arg)
{
        struct stream *s = arg;
        uint8_t *data = mem_alloc(s->size);
        for (size_t i = 0; i < s->size; i++)
                data[i] = pattern(i, s->seed);
        for (size_t at = 0; at < s->size;) {
                struct iovec iov[8];
                int n = 0;
                size_t rest = s->size - at, step = s->step ? s->step : rest / (size_t)s->pieces + 1;
                for (size_t o = 0; o < rest && n < s->pieces; n++) {
                        size_t len = rest - o < step ? rest - o : step;
                        iov[n] = (struct iovec){ data + at + o, len };
                        o += len;
                }
                ssize_t r = s->conn->ops->sendv(s->conn, iov, n);
                if (r == SP_E_AGAIN) {
                        wait_for(s->conn, false, true);
                        continue;
                }
                if (r <= 0) {
                        mem_free(data);
                        return NULL;
                }
                at += (size_t)r;
        }
        mem_free(data);
        s->ok = true;
        return NULL;
}

static void *receive_stream(void *arg)
{
        struct stream *s = arg;
        uint8_t *data = mem_zalloc(s->size);
        for (size_t at = 0; at < s->size;) {
                struct iovec iov[2] = { { data + at, s->size - at } };
                int n = 1;
                if (s->step && s->step < s->size - at) {
                        iov[0].iov_len = s->step;
                        iov[1] = (struct iovec){ data + at + s->step, s->size - at - s->step };
                        n = 2;
                }
                ssize_t r = s->conn->ops->recvv(s->conn, iov, n);
                if (r == SP_E_AGAIN) {
                        wait_for(s->conn, true, false);
                        continue;
                }
                if (r <= 0) {
                        mem_free(data);
                        return NULL;
                }
                at += (size_t)r;
        }
        bool same = true;
        for (size_t i = 0; i < s->size && same; i++)
                same = data[i] == pattern(i, s->seed);
        mem_free(data);
        s->ok = same;
        return NULL;
}

static void run_streams(struct stream *streams, size_t count)
{
        pthread_t threads[8];
        for (size_t i = 0; i < count; i++)
                assert_int_equal(pthread_create(&threads[i], NULL,
                                                i % 2 ? receive_stream : send_stream, &streams[i]),
                                 0);
        for (size_t i = 0; i < count; i++)
                pthread_join(threads[i], NULL);
        for (size_t i = 0; i < count; i++)
                assert_true(streams[i].ok);
}

/* ---- claims --------------------------------------------------------------------------------- */

static void small(struct fixture *f)
{
        for (int round = 0; round < 50; round++) {
                struct stream s[] = {
                        { .conn = f->a, .size = 40, .seed = 1, .pieces = 1 },
                        { .conn = f->b, .size = 40, .seed = 1 },
                        { .conn = f->b, .size = 7, .seed = 2, .pieces = 1 },
                        { .conn = f->a, .size = 7, .seed = 2 },
                };
                run_streams(s, 4);
        }
}

static void small_messages_cross_both_ways(void **state)
{
        (void)state;
        each_kind(small);
}

static void gather(struct fixture *f)
{
        struct stream s[] = {
                { .conn = f->a, .size = 3000000, .step = 1237, .seed = 5, .pieces = 8 },
                { .conn = f->b, .size = 3000000, .step = 4099, .seed = 5 },
        };
        run_streams(s, 2);
}

static void pieces_are_gathered_and_scattered_in_order(void **state)
{
        (void)state;
        each_kind(gather);
}

static void large(struct fixture *f)
{
        struct stream s[] = {
                { .conn = f->a, .size = LARGE, .seed = 9, .pieces = 2 },
                { .conn = f->b, .size = LARGE, .seed = 9 },
        };
        run_streams(s, 2);
}

static void a_large_stream_arrives_unchanged(void **state)
{
        (void)state;
        each_kind(large);
}

struct both {
        struct conn *conn;
        unsigned out_seed, in_seed;
        bool ok;
};

/* One thread that sends and receives. */
static void *run_both(void *arg)
{
        struct both *s = arg;
        uint8_t *out = mem_alloc(BOTH), *in = mem_zalloc(BOTH);
        for (size_t i = 0; i < BOTH; i++)
                out[i] = pattern(i, s->out_seed);
        for (size_t sent = 0, got = 0; sent < BOTH || got < BOTH;) {
                struct iovec o = { out + sent, BOTH - sent }, i = { in + got, BOTH - got };
                ssize_t w = sent < BOTH ? s->conn->ops->sendv(s->conn, &o, 1) : SP_E_AGAIN;
                ssize_t r = got < BOTH ? s->conn->ops->recvv(s->conn, &i, 1) : SP_E_AGAIN;
                sent += w > 0 ? (size_t)w : 0;
                got += r > 0 ? (size_t)r : 0;
                if (w == SP_E_LINK || r == SP_E_LINK)
                        break;
                if (w == SP_E_AGAIN && r == SP_E_AGAIN)
                        wait_for(s->conn, got < BOTH, sent < BOTH);
        }
        s->ok = true;
        for (size_t i = 0; i < BOTH && s->ok; i++)
                s->ok = in[i] == pattern(i, s->in_seed);
        mem_free(out);
        mem_free(in);
        return NULL;
}

static void both_ways(struct fixture *f)
{
        struct both a = { f->a, 3, 4, false }, b = { f->b, 4, 3, false };
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, run_both, &a), 0);
        run_both(&b);
        pthread_join(thread, NULL);
        assert_true(a.ok && b.ok);
}

static void both_directions_flow_at_once(void **state)
{
        (void)state;
        each_kind(both_ways);
}

/* Headers and what they announce, in turn. */
static void *send_frames(void *arg)
{
        struct stream *s = arg;
        uint8_t *data = mem_alloc(s->size);
        for (size_t i = 0; i < s->size; i++)
                data[i] = pattern(i, s->seed);
        s->ok = true;
        for (size_t at = 0, frame = 0; at < s->size && s->ok; frame++) {
                size_t header = 24, rest = (frame % 5) * s->step + frame;
                struct iovec iov[2] = { { data + at, header }, { data + at + header, rest } };
                if (at + header + rest > s->size)
                        iov[0].iov_len = s->size - at, iov[1].iov_len = 0;
                while (s->ok && (iov[0].iov_len || iov[1].iov_len)) {
                        ssize_t r = s->conn->ops->sendv(s->conn, iov, iov[1].iov_len ? 2 : 1);
                        if (r == SP_E_AGAIN)
                                wait_for(s->conn, false, true);
                        s->ok = r > 0 || r == SP_E_AGAIN;
                        for (int i = 0; i < 2 && r > 0; i++) {
                                size_t n = (size_t)r < iov[i].iov_len ? (size_t)r : iov[i].iov_len;
                                iov[i].iov_base = (uint8_t *)iov[i].iov_base + n;
                                iov[i].iov_len -= n;
                                at += n;
                                r -= (ssize_t)n;
                        }
                }
        }
        mem_free(data);
        return NULL;
}

static void frames(struct fixture *f)
{
        struct stream out = { .conn = f->a, .size = FRAMES, .seed = 11, .step = 400000 };
        struct stream in = { .conn = f->b, .size = FRAMES, .seed = 11, .step = 300001 };
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, send_frames, &out), 0);
        receive_stream(&in);
        pthread_join(thread, NULL);
        assert_true(out.ok && in.ok);
}

static void frames_of_any_size_arrive_in_order(void **state)
{
        (void)state;
        each_kind(frames);
}

static void closed(struct fixture *f)
{
        uint8_t data[100] = { 0 };
        struct iovec iov = { data, sizeof(data) };
        assert_int_equal(f->b->ops->recvv(f->b, &iov, 1), SP_E_AGAIN);
        f->a = conn_close(f->a);
        wait_for(f->b, true, false);
        assert_int_equal(f->b->ops->recvv(f->b, &iov, 1), SP_E_LINK);
        ssize_t r = 0;
        for (int i = 0; i < 1000 && r != SP_E_LINK; i++)
                r = f->b->ops->sendv(f->b, &iov, 1); /* a socket may take the first */
        assert_int_equal(r, SP_E_LINK);
}

static void a_close_is_seen_by_the_other_side(void **state)
{
        (void)state;
        each_kind(closed);
}

static void *close_soon(void *arg)
{
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
        conn_close(arg);
        return NULL;
}

static void closed_when_full(struct fixture *f)
{
        size_t size = 32 << 20;
        uint8_t *data = mem_zalloc(size);
        struct iovec iov = { data, size };
        pthread_t thread;
        assert_int_equal(pthread_create(&thread, NULL, close_soon, f->b), 0);
        f->b = NULL;
        ssize_t r;
        while ((r = f->a->ops->sendv(f->a, &iov, 1)) != SP_E_LINK)
                if (r == SP_E_AGAIN)
                        wait_for(f->a, false, true);
        pthread_join(thread, NULL);
        mem_free(data);
}

static void a_sender_that_waits_for_room_learns_of_the_close(void **state)
{
        (void)state;
        each_kind(closed_when_full);
}

static void in_flight(struct fixture *f)
{
        uint8_t data[64] = "last words", got[64];
        struct iovec out = { data, sizeof(data) }, in = { got, sizeof(got) };
        ssize_t r = f->a->ops->sendv(f->a, &out, 1);
        if (r == SP_E_AGAIN) /* rendezvous: what nobody took is the sender's */
                return;
        assert_int_equal(r, sizeof(data));
        f->a = conn_close(f->a);
        wait_for(f->b, true, false);
        assert_int_equal(f->b->ops->recvv(f->b, &in, 1), sizeof(data));
        assert_memory_equal(data, got, sizeof(data));
        assert_int_equal(f->b->ops->recvv(f->b, &in, 1), SP_E_LINK);
}

static void data_sent_before_a_close_arrives(void **state)
{
        (void)state;
        each_kind(in_flight);
}

static void refused_and_wrong_addresses_have_their_own_errors(void **state)
{
        (void)state;
        static const struct {
                const char *address;
                int status;
        } cases[] = {
                { "tcp:127.0.0.1:1", SP_E_REFUSED },
                { "tcp:localhost:1", SP_E_REFUSED },
                { "tcp:no-such-host.invalid:7777", SP_E_HOST },
                { "tcp:127.0.0.1", SP_E_INVAL },
                { "tcp::7777", SP_E_INVAL },
                { "tcp:::1:7777", SP_E_INVAL },
                { "tcp:127.0.0.1:77777777", SP_E_INVAL },
                { "tcp:127.0.0.1:http", SP_E_INVAL },
                { "unix:/nowhere/there/is/a/socket", SP_E_REFUSED },
                { "unix:", SP_E_INVAL },
                { "vsock-plain:any:7777", SP_E_INVAL },
                { "vsock-plain:4294967295:7777", SP_E_INVAL },
                { "vsock-plain:name:7777", SP_E_INVAL },
                { "inproc:nobody", SP_E_REFUSED },
                { "inproc:", SP_E_INVAL },
                { "inproc:x/y", SP_E_INVAL },
        };
        for (size_t i = 0; i < array_size(cases); i++) {
                struct conn *c = NULL;
                int r = transport_of(cases[i].address)->connect(cases[i].address, 3000, &c);
                if (r != cases[i].status)
                        print_error("%s: %s\n", cases[i].address, status_text(r));
                assert_int_equal(r, cases[i].status);
                assert_null(c);
        }
        assert_null(transport_of("smoke:signals"));
}

static void an_address_in_use_is_busy(void **state)
{
        (void)state;
        for (size_t i = 0; i < array_size(kinds); i++) {
                struct listener *l, *again = NULL;
                int r = transport_of(kinds[i].listen)->listen(kinds[i].listen, &l);
                if (r < 0 && kinds[i].optional)
                        continue;
                assert_int_equal(r, 0);
                assert_int_equal(l->ops->listen(l->address, &again), SP_E_BUSY);
                assert_null(again);
                listener_close(l);
        }
}

static void a_stale_socket_file_is_replaced(void **state)
{
        (void)state;
        struct listener *l;
        assert_int_equal(transport_unix.listen(unix_address, &l), 0);
        int fd = l->fd;
        close(fd); /* as when its process was killed: the file stays */
        mem_free(l);
        assert_int_equal(transport_unix.listen(unix_address, &l), 0);
        listener_close(l);
        assert_int_not_equal(access(unix_address + 5, F_OK), 0);
}

/* A port that accepts no connection: its backlog is full. */
static void an_address_that_does_not_answer_times_out(void **state)
{
        (void)state;
        int fd = socket(AF_INET, SOCK_STREAM, 0);
        struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
        socklen_t len = sizeof(a);
        assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
        assert_int_equal(listen(fd, 0), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
        char address[64];
        snprintf(address, sizeof(address), "tcp:127.0.0.1:%u", ntohs(a.sin_port));
        struct conn *held[8];
        int count = 0, r = 0;
        while (count < 8 && !(r = transport_tcp.connect(address, 300, &held[count])))
                count++;
        assert_int_equal(r, SP_E_TIMEOUT);
        while (count)
                conn_close(held[--count]);
        close(fd);
}

static void a_conn_is_made_from_a_descriptor(void **state)
{
        (void)state;
        int fds[2];
        struct conn *c[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        assert_int_equal(conn_from_fd(fds[0], &c[0]), 0);
        assert_int_equal(conn_from_fd(fds[1], &c[1]), 0);
        struct fixture f = { .a = c[0], .b = c[1] };
        small(&f);
        conn_close(c[0]);
        conn_close(c[1]);
        assert_int_equal(pipe(fds), 0);
        assert_int_equal(conn_from_fd(fds[0], &c[0]), SP_E_INVAL);
        close(fds[1]);
        assert_null(conn_close(NULL));
        assert_null(listener_close(NULL));
}

/* ---- shared memory: the other side is not trusted -------------------------------------------- */

static void socket_conns(struct conn *ret[2])
{
        int fds[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
        assert_int_equal(conn_from_fd(fds[0], &ret[0]), 0);
        assert_int_equal(conn_from_fd(fds[1], &ret[1]), 0);
}

/* Sends one byte, with a descriptor if there is one. */
static void tell(int socket, char what, int fd)
{
        struct iovec iov = { &what, 1 };
        assert_int_equal(passing_send(socket, &iov, 1, &fd, fd >= 0), 1);
}

static int hear_descriptor(int socket)
{
        char what;
        int fd;
        struct iovec iov = { &what, 1 };
        assert_int_equal(passing_receive(socket, &iov, 1, &fd, 1), 1);
        assert_int_equal(what, 'M');
        return fd;
}

static void without_the_descriptor_both_go_on_over_the_socket(void **state)
{
        (void)state;
        struct conn *c[2];
        char byte;
        uint8_t data[10] = { 0 };
        struct iovec iov = { data, sizeof(data) };
        socket_conns(c);
        assert_int_equal(shm_offer(&c[0], SHARED_SIZE, 0), 0);
        assert_int_equal(c[0]->ops->sendv(c[0], &iov, 1), SP_E_AGAIN);
        assert_int_equal(recv(c[1]->fd, &byte, 1, 0), 1); /* what is between loses it */
        tell(c[0]->fd, 'M', -1);
        assert_int_equal(shm_accept(&c[1]), 0);
        assert_ptr_equal(c[1]->ops, &transport_unix);
        conn_close(c[0]);
        conn_close(c[1]);

        socket_conns(c);
        assert_int_equal(shm_offer(&c[0], SHARED_SIZE, 0), 0);
        assert_int_equal(recv(c[1]->fd, &byte, 1, 0), 1);
        assert_int_equal(conn_wait(c[0], false, true, 0), SP_E_AGAIN);
        tell(c[1]->fd, 'N', -1);
        assert_int_equal(conn_wait(c[0], false, true, 20000), 0);
        struct fixture f = { .a = c[0], .b = c[1] };
        small(&f);
        large(&f);
        conn_close(c[0]);
        conn_close(c[1]);
}

static void memory_that_can_shrink_is_not_taken(void **state)
{
        (void)state;
        static const unsigned seals[] = { 0, F_SEAL_GROW, F_SEAL_SHRINK };
        static const long sizes[] = { 4096 + 2 * 65536, 4096 + 2 * 65535, 0, 4096, 1 };
        for (size_t i = 0; i < array_size(seals) + array_size(sizes); i++) {
                struct conn *c[2];
                char byte;
                bool sized = i >= array_size(seals);
                int fd = memfd_create("test", MFD_ALLOW_SEALING);
                assert_int_equal(ftruncate(fd, sized ? sizes[i - array_size(seals)] : sizes[0]), 0);
                assert_int_equal(
                        fcntl(fd, F_ADD_SEALS, sized ? F_SEAL_GROW | F_SEAL_SHRINK : seals[i]), 0);
                socket_conns(c);
                tell(c[0]->fd, 'M', fd);
                assert_int_equal(shm_accept(&c[1]), 0);
                bool good = sized && i == array_size(seals);
                assert_ptr_equal(c[1]->ops, good ? &transport_shm : &transport_unix);
                assert_int_equal(recv(c[0]->fd, &byte, 1, 0), 1);
                assert_int_equal(byte, good ? 'Y' : 'N');
                close(fd);
                conn_close(c[0]);
                conn_close(c[1]);
        }
}

/* A side maps memory beside the rings if it asks for it: it is there whenever it is touched, or is not taken. */
static void common_memory_that_may_be_missing_is_not_taken(void **state)
{
        (void)state;
        enum { GOOD, SHRINKS, HUGE, SOCKET, KINDS };
        const int seals = F_SEAL_GROW | F_SEAL_SHRINK;
        for (int kind = 0; kind < KINDS; kind++) {
                struct conn *c[2];
                uint64_t size = 0;
                int fds[2] = { memfd_create("rings", MFD_ALLOW_SEALING), -1 };
                assert_int_equal(ftruncate(fds[0], 4096 + 2 * 65536), 0);
                assert_int_equal(fcntl(fds[0], F_ADD_SEALS, seals), 0);
                fds[1] = kind == SOCKET
                                 ? socket(AF_UNIX, SOCK_STREAM, 0)
                                 : memfd_create("common", MFD_ALLOW_SEALING |
                                                                  (kind == HUGE ? MFD_HUGETLB : 0));
                if (fds[1] < 0) { /* a kernel without huge pages */
                        close(fds[0]);
                        continue;
                }
                if (kind != SOCKET)
                        assert_int_equal(ftruncate(fds[1], 4 << 20), 0);
                if (kind == GOOD || kind == HUGE)
                        assert_int_equal(fcntl(fds[1], F_ADD_SEALS, seals), 0);
                socket_conns(c);
                struct iovec offer = { (char[]){ 'M' }, 1 };
                assert_int_equal(passing_send(c[0]->fd, &offer, 1, fds, 2), 1);
                assert_int_equal(shm_accept(&c[1]), 0);
                assert_ptr_equal(c[1]->ops, &transport_shm);
                assert_int_equal(conn_arena(c[1], &size) >= 0, kind == GOOD);
                close(fds[0]);
                close(fds[1]);
                conn_close(c[0]);
                conn_close(c[1]);
        }
}

static int open_descriptors(void)
{
        int n = 0;
        for (int fd = 0; fd < 1024; fd++)
                n += fcntl(fd, F_GETFD) >= 0;
        return n;
}

static void descriptors_are_passed_beside_the_bytes(void **state)
{
        (void)state;
        int before = open_descriptors();
        for (int side = 0; side < 2; side++) {
                struct conn *c[2];
                socket_conns(c);
                assert_int_equal(conn_pass(c[0], 0), SP_E_UNSUPP);
                assert_int_equal(conn_take(c[0]), SP_E_NOENT);
                assert_int_equal(shm_offer(&c[0], SHARED_SIZE, 0), 0);
                assert_int_equal(shm_accept(&c[1]), 0);
                assert_int_equal(conn_wait(c[0], false, true, 20000), 0);
                struct fixture f = { .a = c[side], .b = c[!side] };
                int fd = memfd_create("passed", 0), got;
                assert_int_equal(pwrite(fd, &side, sizeof(side), 0), sizeof(side));
                /* Most conns take none, even if the other side passes some. */
                int held = open_descriptors();
                assert_int_equal(conn_pass(f.a, fd), 0);
                small(&f);
                assert_int_equal(conn_take(f.b), SP_E_NOENT);
                (void)conn_wait(f.b, true, false, 0);
                assert_int_equal(open_descriptors(), held);
                conn_take_passed(f.b);
                while (conn_take(f.b) >= 0) /* if no bell was taken meanwhile */
                        ;
                assert_int_equal(conn_pass(f.a, fd), 0);
                small(&f); /* the bytes behind it come, whoever takes it when */
                got = conn_take(f.b);
                assert_true(got >= 0 && got != fd);
                int value = -1;
                assert_int_equal(pread(got, &value, sizeof(value), 0), sizeof(value));
                assert_int_equal(value, side);
                close(got);
                /* A side that floods the other one has it keep one descriptor. */
                int r = 0, passed = 0;
                held = open_descriptors();
                for (; passed < 5000 && r != SP_E_AGAIN; passed++) {
                        r = conn_pass(f.a, fd);
                        if (passed % 100 == 99)
                                (void)conn_wait(f.b, true, false, 0);
                }
                assert_true(open_descriptors() <= held + 1);
                got = conn_take(f.b);
                assert_true(got >= 0);
                close(got);
                small(&f);
                large(&f);
                close(fd);
                assert_int_equal(conn_pass(f.a, 0), 0);
                conn_close(c[0]); /* with a descriptor that nobody has taken */
                conn_close(c[1]);
        }
        assert_int_equal(open_descriptors(), before);
}

/* With any bytes in the memory that both share, no place beyond it is touched, and calls return. */
static void nothing_in_the_memory_is_believed(void **state)
{
        (void)state;
        uint64_t random = 88172645463325252ull;
        uint8_t *data = mem_zalloc(SHARED_SIZE * 2);
        for (int round = 0; round < 2000; round++) {
                struct conn *c[2];
                socket_conns(c);
                assert_int_equal(shm_offer(&c[0], 4096, 0), 0);
                int fd = hear_descriptor(c[1]->fd);
                uint64_t *shared = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
                assert_ptr_not_equal(shared, MAP_FAILED);
                close(fd);
                tell(c[1]->fd, 'Y', -1);
                for (int step = 0; step < 20; step++) {
                        struct iovec iov[2] = { { data, round % 5000 }, { data + 5000, 4000 } };
                        for (int k = 0; k < 8; k++) {
                                random ^= random << 13;
                                random ^= random >> 7;
                                random ^= random << 17;
                                uint64_t value = random >> 8;
                                if (round % 2)
                                        value %= 10000; /* as a position may be */
                                shared[random % 96] = value;
                        }
                        ssize_t r = step % 2 ? c[0]->ops->sendv(c[0], iov, 2)
                                             : c[0]->ops->recvv(c[0], iov, 2);
                        assert_true(r > 0 ? r <= round % 5000 + 4000
                                          : r == SP_E_AGAIN || r == SP_E_LINK);
                        (void)conn_wait(c[0], true, step % 3, 0);
                }
                munmap(shared, 3 * 4096);
                conn_close(c[0]);
                conn_close(c[1]);
        }
        mem_free(data);
}

static void threads_awake_are_not_woken(void **state)
{
        (void)state;
        struct conn *c[2];
        uint8_t data[8] = { 0 }, byte;
        struct iovec iov = { data, sizeof(data) };
        struct pollfd p[2];
        socket_conns(c);
        assert_int_equal(shm_offer(&c[0], SHARED_SIZE, 0), 0);
        assert_int_equal(shm_accept(&c[1]), 0);
        assert_int_equal(conn_wait(c[0], true, true, 20000), 0);
        for (int i = 0; i < 1000; i++) {
                assert_int_equal(c[0]->ops->sendv(c[0], &iov, 1), 8);
                assert_int_equal(conn_poll(c[1], true, false, p), 1);
                assert_true(conn_peek(c[1]));
                assert_int_equal(c[1]->ops->recvv(c[1], &iov, 1), 8);
                assert_false(conn_peek(c[1]));
        }
        assert_int_equal(recv(c[1]->fd, &byte, 1, MSG_DONTWAIT), -1);
        assert_false(conn_arm(c[1]));
        assert_int_equal(c[0]->ops->sendv(c[0], &iov, 1), 8);
        assert_int_equal(c[0]->ops->sendv(c[0], &iov, 1), 8);
        assert_int_equal(recv(c[1]->fd, data, 8, MSG_DONTWAIT), 1); /* once */
        conn_close(c[0]);
        conn_close(c[1]);
}

static void out_of_memory_leaves_nothing_behind(void **state)
{
        (void)state;
        int r = SP_E_NOMEM;
        for (unsigned long n = 1; r == SP_E_NOMEM; n++) {
                struct conn *pair[2];
                mem_fail_at(n);
                r = inproc_pair(false, pair);
                mem_fail_at(0);
                if (!r) {
                        conn_close(pair[0]);
                        conn_close(pair[1]);
                }
        }
        assert_int_equal(r, 0);
}

int main(void)
{
        snprintf(unix_address, sizeof(unix_address), "unix:/tmp/spancl-test-%d.sock",
                 (int)getpid());
        char keys[] = "/tmp/spancl-test-keys.XXXXXX";
        assert_non_null(mkdtemp(keys));
        setenv("SPANCL_KEYS", keys, 1);
        const struct CMUnitTest matrix[] = {
                cmocka_unit_test(small_messages_cross_both_ways),
                cmocka_unit_test(pieces_are_gathered_and_scattered_in_order),
                cmocka_unit_test(a_large_stream_arrives_unchanged),
                cmocka_unit_test(both_directions_flow_at_once),
                cmocka_unit_test(frames_of_any_size_arrive_in_order),
                cmocka_unit_test(a_close_is_seen_by_the_other_side),
                cmocka_unit_test(a_sender_that_waits_for_room_learns_of_the_close),
                cmocka_unit_test(data_sent_before_a_close_arrives),
        };
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(refused_and_wrong_addresses_have_their_own_errors),
                cmocka_unit_test(an_address_in_use_is_busy),
                cmocka_unit_test(a_stale_socket_file_is_replaced),
                cmocka_unit_test(an_address_that_does_not_answer_times_out),
                cmocka_unit_test(a_conn_is_made_from_a_descriptor),
                cmocka_unit_test(without_the_descriptor_both_go_on_over_the_socket),
                cmocka_unit_test(memory_that_can_shrink_is_not_taken),
                cmocka_unit_test(common_memory_that_may_be_missing_is_not_taken),
                cmocka_unit_test(descriptors_are_passed_beside_the_bytes),
                cmocka_unit_test(nothing_in_the_memory_is_believed),
                cmocka_unit_test(threads_awake_are_not_woken),
                cmocka_unit_test(out_of_memory_leaves_nothing_behind),
        };
        int r = cmocka_run_group_tests(matrix, NULL, NULL);
        if (getenv("TEST_TRANSPORT"))
                r = r || opened ? r : 77;
        else
                r += cmocka_run_group_tests(tests, NULL, NULL);
        keys_remove(keys, KEYS_IDENTITY);
        rmdir(keys);
        return r;
}
