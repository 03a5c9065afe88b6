/* The messages between a worker and the dialler (daemon/dialler/dial_message.h), neither of which trusts
 * the other. The first byte of the input chooses the sender of the rest:
 * - 0: a worker, which sends a request;
 * - 1: the dialler, which answers a waiting worker without a descriptor;
 * - 2: the dialler, with a descriptor;
 * - 3: the dialler, with a descriptor and the number that the worker waits for.
 *
 * No descriptor stays open. */
#include "fuzz/target.h"

#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/control.h"
#include "daemon/dialler/dial_message.h"
#include "daemon/worker/dialling.h"
#include "session/session.h"
#include "transport/address.h"

enum { NUMBER = 8 };

static _Alignas(8) uint8_t aligned[CONTROL_MAX];

static int next_descriptor(void)
{
        int fd = dup(STDERR_FILENO);
        close(fd);
        return fd;
}

/* A worker's address is none, or is the same after it was written. So is a client's. */
static void address(const char *text)
{
        struct address a, again;
        char out[ADDRESS_MAX];
        if (!address_of_peer(text, 7, &a)) {
                address_put(&a, out);
                fuzz_check(a.ops->caps & TRANSPORT_HOSTS || !strcmp(out, text));
        }
        if (address_parse(text, &a) < 0)
                return;
        address_put(&a, out);
        fuzz_check(!address_parse(out, &again) && again.ops == a.ops && again.port == a.port &&
                   !strcmp(again.host, a.host) && !strcmp(again.key, a.key));
}

static void request(size_t size)
{
        static struct dial_request q, again;
        struct buf b = { 0 };
        if (dial_request_get(bytes_of(aligned, size), &q) < 0)
                return;
        const struct dial_params *p = &q.params;
        fuzz_check(p->address == q.address && *q.address && p->role == DIAL_PEER &&
                   p->lane < SESSION_LANES && !strcmp(p->name, "peer") && !p->early.size);
        for (const char *c = q.address; *c; c++)
                fuzz_check(*c > ' ' && *c <= '~');
        for (const char *c = q.fabric.names; *c; c++)
                fuzz_check(*c > ' ' && *c <= '~');
        address(q.address);
        /* It can be said again. */
        fuzz_check(dial_request_put(&b, q.number, p) == 0);
        fuzz_check(dial_request_get(bytes_of(b.data, b.size), &again) == 0);
        fuzz_check(again.number == q.number && !strcmp(again.address, q.address) &&
                   !strcmp(again.fabric.names, q.fabric.names) &&
                   again.params.next_seq == p->next_seq &&
                   again.params.generation == p->generation && again.params.share == p->share &&
                   again.params.packs == p->packs && again.params.own_user == p->own_user);
        buf_fini(&b);
}

struct waiting {
        int status;
        struct conn *conn;
        struct dial_reply reply;
};

static void *wait_for_link(void *arg)
{
        struct waiting *w = arg;
        const struct dial_params p = { .address = "tcp:127.0.0.1:1", .packs = true, .lane = 1 };
        w->status = dialling_connect(NULL, &p, &w->conn, &w->reply);
        return NULL;
}

static void answer(unsigned how, size_t size)
{
        static struct control c;
        struct waiting w = { 0 };
        pthread_t thread;
        int pair[2], link[2];
        fuzz_check(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) ==
                   0);
        fuzz_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, link) == 0);
        dialling_begin(pair[0]);
        fuzz_check(pthread_create(&thread, NULL, wait_for_link, &w) == 0);
        struct pollfd asked = { .fd = pair[1], .events = POLLIN };
        fuzz_check(poll(&asked, 1, -1) == 1 && control_receive(pair[1], &c) == 0);
        fuzz_check(c.kind == CONTROL_DIAL && c.size >= NUMBER);
        if (how == 3 && size >= NUMBER)
                memcpy(aligned, c.data, NUMBER);
        fuzz_check(control_send(pair[1], CONTROL_DIAL, bytes_of(aligned, size),
                                how > 1 ? link[0] : -1) == 0);
        close(link[0]);
        dialling_receive();
        /* A dialler that ends leaves no worker waiting. */
        dialling_begin(-1);
        pthread_join(thread, NULL);
        fuzz_check((w.status == 0) == (w.conn != NULL) && (w.status == 0) == !w.reply.text[0]);
        conn_close(w.conn);
        close(link[1]);
        close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        int free_one = next_descriptor();
        if (!size)
                return 0;
        size_t n = size - 1 < sizeof(aligned) ? size - 1 : sizeof(aligned);
        memcpy(aligned, data + 1, n);
        if (data[0] % 4)
                answer(data[0] % 4, n);
        else
                request(n);
        fuzz_check(next_descriptor() == free_one);
        return 0;
}
