/* A server that says anything to the TLS of the nano client. If the input's first byte is even, the rest are the bytes
 * that the client receives. If it is odd, the server has the client's key: its hello is valid, the second byte chooses
 * between valid extensions and those of the first record, and the records that follow are sealed. A record is its type,
 * two bytes of size, and its content. The client must end, keep within its memory, and seal what it sends. */
#include "fuzz/target.h"

#include <string.h>

#include "tls/handshake.h"

enum { TURNS = 4000, SENT = 700 };

static const uint8_t key[SPANCL_NANO_TLS_KEY] = { 1, 2, 3 }, zero[TLS_HASH];

static struct {
        const uint8_t *data;
        size_t size, at;
        bool has_key;
        uint8_t out[2048]; /* what the client receives next */
        size_t out_at, out_end;
        uint8_t in[8192]; /* what the client has sent */
        size_t in_end;
        unsigned state; /* flights that were sent */
        mbedtls_sha256_context said;
        uint8_t secret[TLS_HASH], end[TLS_HASH];
        struct spancl_nano_tls_half tx, rx;
        uint64_t now_ms;
} server;

static size_t take(uint8_t *to, size_t size)
{
        const size_t left = server.size - server.at;
        size = size < left ? size : left;
        memcpy(to, server.data + server.at, size);
        server.at += size;
        return size;
}

/* Take the next record of the input. Returns its size. */
static size_t next_content(uint8_t to[1024], uint8_t *ret_type)
{
        uint8_t head[3] = { 0 };
        (void)take(head, sizeof(head));
        *ret_type = head[0];
        return take(to, (head[1] | (size_t)head[2] << 8) % 1024);
}

static void put_sealed(const void *content, size_t size, uint8_t type)
{
        memcpy(server.out + TLS_HEAD, content, size);
        server.out_end = tls_seal(&server.tx, server.out, size, (enum tls_type)type);
        server.out_at = 0;
}

static void advance(const char *client, const char *name)
{
        uint8_t salt[TLS_HASH], hash[TLS_HASH];
        tls_derive_empty(server.secret, "derived", salt);
        tls_hmac(salt, TLS_HASH, zero, TLS_HASH, server.secret);
        tls_hash_end(&server.said, hash);
        tls_expand(server.secret, client, hash, server.rx.secret, TLS_HASH);
        tls_expand(server.secret, name, hash, server.tx.secret, TLS_HASH);
        tls_half_start(&server.rx);
        tls_half_start(&server.tx);
}

static void answer_hello(void)
{
        static const uint8_t extensions[] = { 0, 0x2b, 0, 2, 3, 4, 0, 0x29, 0, 2, 0, 0 };
        uint8_t *p = server.out;
        const size_t hello = server.in[3] << 8 | server.in[4];
        tls_hash_begin(&server.said);
        tls_hash_add(&server.said, server.in + TLS_HEAD, hello);
        memcpy(server.in, server.in + TLS_HEAD + hello, server.in_end -= TLS_HEAD + hello);
        memset(p, 7, 96);
        memcpy(p, "\x16\x03\x03\x00\x38\x02\x00\x00\x34\x03\x03", 11);
        memcpy(p + 43, "\x00\x13\x03\x00\x00\x0c", 6);
        memcpy(p + 49, extensions, sizeof(extensions));
        server.out_end = 49 + sizeof(extensions);
        tls_hash_add(&server.said, p + TLS_HEAD, server.out_end - TLS_HEAD);
        tls_hmac(zero, TLS_HASH, key, sizeof(key), server.secret);
        advance("c hs traffic", "s hs traffic");
}

static void finish(void)
{
        static const uint8_t valid[] =
                "\x08\x00\x00\x17\x00\x15\x00\x10\x00\x0b\x00\x09\x08spancl/1"
                "\x00\x1c\x00\x02\x40\x01";
        uint8_t message[1024 + 64], choice = 0, type, finished[TLS_HASH], hash[TLS_HASH];
        size_t size = sizeof(valid) - 1;
        memcpy(message, valid, size);
        (void)take(&choice, 1);
        if (choice & 1)
                size = next_content(message, &type);
        tls_hash_add(&server.said, message, size);
        tls_expand(server.tx.secret, "finished", NULL, finished, TLS_HASH);
        tls_hash_end(&server.said, hash);
        memcpy(message + size, "\x14\x00\x00\x20", 4);
        tls_hmac(finished, TLS_HASH, hash, TLS_HASH, message + size + 4);
        tls_hash_add(&server.said, message + size, 4 + TLS_HASH);
        put_sealed(message, size + 4 + TLS_HASH, TLS_HANDSHAKE);
}

/* The client has sent a record: it must be genuine. */
static void check_sent(void)
{
        while (server.in_end >= TLS_HEAD && server.state >= 2) {
                const size_t size = TLS_HEAD + (server.in[3] << 8 | server.in[4]);
                uint8_t type;
                if (server.in_end < size)
                        return;
                if (server.state == 2)
                        server.state = 3; /* the client's Finished, with the old keys */
                const int n = tls_open(&server.rx, server.in, size, &type);
                fuzz_check(n > 0);
                if (server.state == 3) {
                        fuzz_check(type == TLS_HANDSHAKE && n == 4 + TLS_HASH);
                        advance("c ap traffic", "s ap traffic");
                        server.state = 4;
                } else if (type == TLS_HANDSHAKE) {
                        fuzz_check(n == 5);
                        tls_half_renew(&server.rx);
                } else {
                        for (int i = 0; i < n; i++)
                                fuzz_check(server.in[TLS_HEAD + i] == 0x55);
                }
                memmove(server.in, server.in + size, server.in_end -= size);
        }
}

static void say_more(void)
{
        uint8_t content[1024], type;
        if (server.out_at < server.out_end)
                return;
        if (!server.has_key) {
                server.out_at = 0;
                server.out_end = take(server.out, 7);
        } else if (server.state == 0 && server.in_end > TLS_HEAD) {
                answer_hello();
                server.out_at = 0;
                server.state = 1;
        } else if (server.state == 1) {
                finish();
                server.state = 2;
        } else if (server.state == 4 && server.at < server.size) {
                const size_t size = next_content(content, &type);
                put_sealed(content, size, type);
                if (type == TLS_HANDSHAKE && size == 5 && !memcmp(content, "\x18\x00\x00\x01", 4))
                        tls_half_renew(&server.tx);
        }
}

static int lane_open(void *user, unsigned lane)
{
        (void)user;
        (void)lane;
        return 0;
}

static int lane_send(void *user, unsigned lane, const void *data, size_t size)
{
        (void)user;
        (void)lane;
        const size_t some = size > 100 ? 100 : size;
        if (some > sizeof(server.in) - server.in_end)
                return -1;
        memcpy(server.in + server.in_end, data, some);
        server.in_end += some;
        if (server.has_key)
                check_sent();
        else
                server.in_end = 0;
        return (int)some;
}

static int lane_receive(void *user, unsigned lane, void *data, size_t size)
{
        (void)user;
        (void)lane;
        say_more();
        const size_t left = server.out_end - server.out_at, some = size < left ? size : left;
        memcpy(data, server.out + server.out_at, some);
        server.out_at += some;
        return !some && server.at == server.size && (!server.has_key || server.state == 4)
                       ? -1
                       : (int)some;
}

static uint64_t lanes_wait(void *user, unsigned timeout_ms)
{
        (void)user;
        return server.now_ms += timeout_ms;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static struct spancl_nano_tls tls;
        const struct spancl_nano_transport below = { lane_open, lane_send, lane_receive, lanes_wait,
                                                     NULL };
        uint8_t some[SENT];
        size_t sent = 0;
        if (!size)
                return 0;
        memset(&server, 0, sizeof(server));
        server.data = data;
        server.size = size;
        server.at = 1;
        server.has_key = data[0] & 1;
        const struct spancl_nano_transport t = spancl_nano_tls(&tls, &below, key, zero);
        const int r = t.open(t.user, 0);
        fuzz_check(r <= 0 && !r == !*spancl_nano_tls_error(&tls) && (server.has_key || r));
        for (unsigned i = 0; !r && i < TURNS; i++) {
                memset(some, 0x55, sizeof(some));
                const int out = sent < SENT ? t.send(t.user, 0, some, SENT - sent) : 0;
                fuzz_check(out <= SENT);
                sent += out > 0 ? (size_t)out : 0;
                const size_t want = 1 + i * 37 % sizeof(some);
                const int in = t.receive(t.user, 0, some, want);
                fuzz_check(in <= (int)want);
                if (out < 0 || in < 0)
                        break;
                (void)t.wait(t.user, in ? 0 : 10);
        }
        mbedtls_sha256_free(&server.said);
        return 0;
}
