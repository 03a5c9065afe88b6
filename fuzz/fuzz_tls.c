/* TLS: the bytes before and after a handshake. The first byte chooses.
 *
 * Even: bytes of a stranger for the server's handshake. Odd: a connection whose other side has
 * the keys. It sends records of any type and length, well sealed, among bytes that are no
 * records. The received data is the data that was sent. With 2 in the byte a played kernel
 * (support/ktls.h) opens the records. With 4 that kernel takes new keys. */
#include "fuzz/target.h"

#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/ktls.h"
#include "transport/tls.h"

enum { HEAD = 5, RECORDS_MAX = 64, ROOM = 20000 };

static struct tls_server *server;
static const struct crypto_ops *crypto;

static void prepare(void)
{
        char text[KEYS_TEXT_MAX] = "", folder[4096];
        ssize_t n = readlink("/proc/self/exe", folder, sizeof(folder) - 8);
        fuzz_check(n > 0);
        strcpy(folder + n, ".keys");
        (void)mkdir(folder, 0700);
        crypto = tls_crypto(text);
        if (!crypto || tls_server_new(folder, NULL, NULL, &server, text) < 0) {
                fprintf(stderr, "%s\n", text);
                abort();
        }
}

static struct conn *connect_pair(int ret[2])
{
        struct conn *c;
        fuzz_check(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret) == 0);
        fuzz_check(conn_from_fd(ret[0], &c) == 0);
        return c;
}

static void shake(const uint8_t *data, size_t size)
{
        static uint8_t place[100];
        struct iovec iov = { place, sizeof(place) };
        int pair[2];
        struct conn *plain = connect_pair(pair), *c;
        plain->ops = &transport_tcp;
        fuzz_check(tls_accept(server, plain, &c) == 0);
        int r = SP_E_AGAIN;
        while (size && r == SP_E_AGAIN) { /* in parts, since each is parsed for itself */
                size_t n = 1 + (size_t)*data * 8;
                n = n < size ? n : size;
                (void)!send(pair[1], data, n, MSG_NOSIGNAL);
                data += n;
                size -= n;
                r = (int)c->ops->recvv(c, &iov, 1);
                fuzz_check(r < 0); /* nobody can have come this far without our key's signature */
        }
        conn_close(c);
        close(pair[1]);
}

/* The other side's, and what it has sent as data. */
struct sender {
        struct crypto_key *key;
        uint64_t seq;
        int socket;
        uint8_t sent[ROOM], got[ROOM];
        size_t sent_size, got_size;
};

static void receive(struct sender *s, struct conn *c, bool *alive)
{
        while (*alive) {
                struct iovec iov[2] = {
                        { s->got + s->got_size, (sizeof(s->got) - s->got_size) / 2 }, { NULL, 0 }
                };
                iov[1] = (struct iovec){ (uint8_t *)iov[0].iov_base + iov[0].iov_len,
                                         sizeof(s->got) - s->got_size - iov[0].iov_len };
                if (s->got_size + 2 > sizeof(s->got))
                        return;
                ssize_t n = c->ops->recvv(c, iov, 2);
                if (n > 0)
                        s->got_size += (size_t)n;
                else
                        *alive = n == SP_E_AGAIN;
                if (n <= 0)
                        return;
        }
}

static void send_record(struct sender *s, uint8_t type, const uint8_t *data, size_t size)
{
        uint8_t out[HEAD + 256 + 1 + CRYPTO_TAG] = { 23, 3, 3 };
        struct iovec iov = { (void *)(uintptr_t)data, size };
        out[3] = (uint8_t)((size + 1 + CRYPTO_TAG) >> 8);
        out[4] = (uint8_t)(size + 1 + CRYPTO_TAG);
        fuzz_check(crypto->seal(s->key, s->seq++, out, &iov, 1, type, out + HEAD));
        (void)!send(s->socket, out, HEAD + size + 1 + CRYPTO_TAG, MSG_NOSIGNAL);
}

static void talk(uint8_t kernel, const uint8_t *data, size_t size)
{
        static const uint8_t zeros[CRYPTO_SECRET];
        static struct sender s;
        uint8_t state[TLS_STATE_SIZE] = { CRYPTO_AES_128_GCM };
        int pair[2];
        struct conn *plain = connect_pair(pair), *c;
        int fd = dup(plain->fd);
        conn_close(plain);
        ktls_kernel = (struct ktls_kernel){ .offered = kernel & 2, .rekeys = kernel & 4 };
        fuzz_check(tls_import(fd, state, &c) == 0);
        s = (struct sender){ .socket = pair[1] };
        s.key = crypto->key_new(CRYPTO_AES_128_GCM, true, zeros);
        fuzz_check(s.key);
        bool alive = true, honest = true;
        for (unsigned i = 0; size > 2 && i < RECORDS_MAX && alive; i++) {
                unsigned how = data[0], type = data[1];
                size_t n = data[2] < size - 3 ? data[2] : size - 3;
                data += 3;
                size -= 3;
                if (how % 8 == 7) { /* no record */
                        (void)!send(pair[1], data, n, MSG_NOSIGNAL);
                        honest = honest && !n;
                } else {
                        type = how % 8 < 5 ? 23 : type;
                        if (type == 23 && honest && s.sent_size + n <= sizeof(s.sent)) {
                                memcpy(s.sent + s.sent_size, data, n);
                                s.sent_size += n;
                        } else {
                                honest = false;
                        }
                        send_record(&s, (uint8_t)type, data, n);
                }
                data += n;
                size -= n;
                if (how & 8)
                        receive(&s, c, &alive);
        }
        receive(&s, c, &alive);
        fuzz_check(s.got_size <= s.sent_size || !honest);
        size_t same = s.got_size < s.sent_size ? s.got_size : s.sent_size;
        fuzz_check(!memcmp(s.got, s.sent, same));
        crypto->key_free(s.key);
        ktls_kernel_reset();
        conn_close(c);
        close(pair[1]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (!server)
                prepare();
        if (!size)
                return 0;
        if (data[0] & 1)
                talk(data[0], data + 1, size - 1);
        else
                shake(data + 1, size - 1);
        return 0;
}
