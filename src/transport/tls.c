#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/net/ktls.h"
#include "os/net/socket.h"
#include "os/wakeup.h"
#include "transport/stream.h"
#include "transport/tls_conn.h"
#include "transport/tls_dial.h"

#define LOG "tls"

enum {
        HEAD = 5, /* content type, version, length (RFC 8446, 5.1) */
        RECORD_MAX = CRYPTO_RECORD_MAX,
        SEALED_MAX = HEAD + RECORD_MAX + 1 + CRYPTO_TAG,
        CIPHER_MAX = RECORD_MAX + 256, /* what a record may have behind its head */
        BATCH = 16,                    /* records of one send */
        IN_MIN = 20 << 10,
        IN_MAX = 256 << 10,
        DIRECT_MIN =
                1024, /* content that is opened in its place; less goes through memory of our own */
        PIECES = 32,
        SHAKE_READ = 4 << 10,
        TYPE_ALERT = 21,
        TYPE_HANDSHAKE = 22,
        TYPE_DATA = 23,
};

uint64_t tls_records_per_key = 1 << 24; /* RFC 8446, 5.5: AES-GCM may seal 2^24.5 */
bool tls_by_kernel = true;
bool tls_for_others;

/* KeyUpdate (RFC 8446, 4.6.3): what follows is sealed with the next key. */
static const uint8_t key_update[] = { 24, 0, 0, 1, 0 };

/* The keys of one direction. */
struct half {
        struct crypto_key *key;
        bool kernel;  /* which has the key; `key` is NULL */
        uint64_t seq; /* of the next record; of the kernel's not below it, or receiving not known */
        uint8_t secret[CRYPTO_SECRET];
};

struct tls_conn {
        struct conn base; /* fd: the socket, or `ready` while something is left in memory */
        const struct crypto_ops *crypto;
        int socket;
        int ready;                  /* a wake-up that is always readable; -1: not made yet */
        struct crypto_shake *shake; /* NULL: done */
        enum crypto_cipher cipher;
        unsigned record_max; /* content of one record that the other side takes */
        struct tls_peer peer;

        /* The sender's. */
        struct half tx;
        uint8_t *out; /* sealed records that the socket did not take yet */
        size_t out_cap, out_at, out_end;
        size_t taken; /* content of these records */

        /* The receiver's. */
        struct half rx;
        uint8_t *in; /* what came: records, the last one perhaps in part */
        size_t in_cap, in_at, in_end;
        uint8_t *plain; /* content of one record that did not fit its place */
        size_t plain_at, plain_end;
        bool broken;        /* what came can't be understood */
        bool rx_later;      /* the kernel may have the key when nothing is in memory */
        size_t update_have; /* bytes of a KeyUpdate from the kernel */
        /* Nothing is read beyond the record that is being received: of it so much of the head and so much else came. */
        bool careful;
        uint8_t head[HEAD];
        size_t head_have, body_left;
};

static struct tls_conn *tls_of(const struct conn *c)
{
        return container_of(c, struct tls_conn, base);
}

/* ---- keys ----------------------------------------------------------------------------------- */

static bool half_start(struct tls_conn *t, struct half *h, bool seal)
{
        struct crypto_key *key = t->crypto->key_new(t->cipher, seal, h->secret);
        if (!key)
                return false;
        t->crypto->key_free(h->key);
        h->key = key;
        return true;
}

/* False: all is as it was. */
static bool half_to_kernel(struct tls_conn *t, struct half *h, bool seal)
{
        struct crypto_raw raw;
        enum ktls_cipher cipher =
                t->cipher == CRYPTO_AES_128_GCM ? KTLS_AES_128_GCM : KTLS_CHACHA20_POLY1305;
        bool ok = t->crypto->key_raw(t->cipher, h->secret, &raw) &&
                  ktls_key(t->socket, seal, cipher, raw.key, raw.iv, h->seq);
        explicit_bzero(&raw, sizeof(raw));
        if (!ok)
                return false;
        t->crypto->key_free(h->key);
        h->key = NULL;
        h->kernel = true;
        return true;
}

/* RFC 8446, 7.2 */
static bool half_renew(struct tls_conn *t, struct half *h, bool seal)
{
        h->seq = 0;
        if (!t->crypto->next_secret(h->secret))
                return false;
        if (!h->kernel)
                return half_start(t, h, seal);
        bool ok = half_to_kernel(t, h, seal);
        if (!ok)
                log_info(
                        LOG,
                        "a key has to be renewed, and this kernel takes no second one: the connection ends");
        return ok;
}

static void half_fini(struct tls_conn *t, struct half *h)
{
        t->crypto->key_free(h->key);
        explicit_bzero(h, sizeof(*h));
}

/* Start with both keys, at the boundary of a record. The kernel gets the keys that it can take,
 * unless the conn may still be exported. */
static int start_keys(struct tls_conn *t)
{
        if (!half_start(t, &t->tx, true) || !half_start(t, &t->rx, false))
                return SP_E_NOMEM;
        if (t->careful)
                return 0;
        if (tls_by_kernel && ktls_attach(t->socket)) {
                /* The kernel makes records of the largest size. */
                if (t->record_max == RECORD_MAX)
                        (void)half_to_kernel(t, &t->tx, true);
                t->rx_later = t->in_at < t->in_end || !half_to_kernel(t, &t->rx, false);
        }
        log_info(LOG, "records are sealed by the %s and opened by the %s",
                 t->tx.kernel ? "kernel" : "process", t->rx.kernel ? "kernel" : "process");
        return 0;
}

/* ---- no more than a record ------------------------------------------------------------------- */

/* Like recv, but a careful conn does not read beyond the present record, because another process
 * may read the rest. */
static ssize_t read_some(struct tls_conn *t, uint8_t *out, size_t size)
{
        size_t most = t->head_have < HEAD ? HEAD - t->head_have : t->body_left;
        if (t->careful)
                size = size < most ? size : most;
        ssize_t n = socket_receive(t->socket, out, size);
        if (n <= 0 || !t->careful)
                return n;
        if (t->head_have == HEAD) {
                t->body_left -= (size_t)n;
        } else {
                memcpy(t->head + t->head_have, out, (size_t)n);
                t->head_have += (size_t)n;
                if (t->head_have == HEAD)
                        t->body_left = (size_t)t->head[3] << 8 | t->head[4];
        }
        if (t->head_have == HEAD && !t->body_left)
                t->head_have = 0;
        return n;
}

/* ---- the handshake -------------------------------------------------------------------------- */

/* A handshake's few bytes fit into the socket of a new connection. */
static int shake_send(struct tls_conn *t)
{
        uint8_t data[SHAKE_READ];
        size_t n;
        while ((n = t->crypto->shake_output(t->shake, data, sizeof(data))))
                for (size_t at = 0; at < n;) {
                        ssize_t r = socket_send(t->socket, data + at, n - at);
                        if (r <= 0)
                                return SP_E_LINK;
                        at += (size_t)r;
                }
        return 0;
}

static int shake_done(struct tls_conn *t)
{
        struct crypto_result r;
        t->in = mem_alloc(IN_MIN);
        if (!t->in)
                return SP_E_NOMEM;
        t->in_cap = IN_MIN;
        long rest = t->crypto->shake_result(t->shake, &r, t->in, t->in_cap);
        if (rest < 0)
                return SP_E_PROTO;
        t->in_end = (size_t)rest;
        t->cipher = r.cipher;
        t->record_max = r.record_max;
        memcpy(t->tx.secret, r.send, CRYPTO_SECRET);
        memcpy(t->rx.secret, r.receive, CRYPTO_SECRET);
        t->peer.known = r.known;
        t->peer.vouched = r.vouched;
        t->peer.before_count = r.before_count;
        memcpy(t->peer.before, r.before, sizeof(r.before));
        memcpy(t->peer.fingerprint, r.fingerprint, CRYPTO_FINGERPRINT);
        memcpy(t->peer.psk, r.psk, sizeof(t->peer.psk));
        explicit_bzero(&r, sizeof(r));
        t->crypto->shake_free(t->shake);
        t->shake = NULL;
        return start_keys(t);
}

int tls_conn_shake(struct conn *c)
{
        struct tls_conn *t = tls_of(c);
        uint8_t data[SHAKE_READ];
        char text[CRYPTO_TEXT_MAX] = "";
        size_t got = 0;
        for (;;) {
                int step = t->crypto->shake_step(t->shake, data, got, text);
                int r = shake_send(t);
                if (step < 0) {
                        tls_because("%s", text);
                        return SP_E_AUTH;
                }
                if (r < 0 || step > 0)
                        return r < 0 ? r : shake_done(t);
                ssize_t n = read_some(t, data, sizeof(data));
                if (n <= 0)
                        return n < 0 && errno == EAGAIN ? SP_E_AGAIN : SP_E_LINK;
                got = (size_t)n;
        }
}

/* ---- sending -------------------------------------------------------------------------------- */

static void put_head(uint8_t head[HEAD], size_t size)
{
        head[0] = TYPE_DATA;
        head[1] = head[2] = 3;
        head[3] = (uint8_t)(size >> 8);
        head[4] = (uint8_t)size;
}

static bool seal(struct tls_conn *t, const struct iovec *pieces, int n, size_t size, uint8_t type)
{
        uint8_t *out = t->out + t->out_end;
        put_head(out, size + 1 + CRYPTO_TAG);
        if (!t->crypto->seal(t->tx.key, t->tx.seq++, out, pieces, n, type, out + HEAD))
                return false;
        t->out_end += HEAD + size + 1 + CRYPTO_TAG;
        return true;
}

static const struct iovec update_iov = { (void *)(uintptr_t)key_update, sizeof(key_update) };

static bool renew(struct tls_conn *t)
{
        return seal(t, &update_iov, 1, sizeof(key_update), TYPE_HANDSHAKE) &&
               half_renew(t, &t->tx, true);
}

/* 0, SP_E_AGAIN, SP_E_LINK. */
static int renew_in_kernel(struct tls_conn *t)
{
        uint64_t seq;
        if (ktls_next_record(t->socket, &seq) && seq < tls_records_per_key) {
                t->tx.seq = seq;
                return 0;
        }
        ssize_t r = ktls_send(t->socket, TYPE_HANDSHAKE, &update_iov, 1);
        if (r < 0)
                return (int)r;
        return r == sizeof(key_update) && half_renew(t, &t->tx, true) ? 0 : SP_E_LINK;
}

static ssize_t send_by_kernel(struct tls_conn *t, const struct iovec *iov, int n)
{
        /* A record ends with the call, or when it is full: of bytes, or of pages, of which it has 16 at least, and a piece
         * may touch two of. */
        enum { BYTES_MIN = 8 << 10, PIECES_MIN = 8 };
        int r = t->tx.seq >= tls_records_per_key ? renew_in_kernel(t) : 0;
        if (r < 0)
                return r;
        ssize_t taken = ktls_send(t->socket, TYPE_DATA, iov, n);
        if (taken > 0)
                t->tx.seq +=
                        1 + ((uint64_t)taken + (uint64_t)n * (BYTES_MIN / PIECES_MIN)) / BYTES_MIN;
        return taken;
}

/* A place in a list of pieces. */
struct cursor {
        const struct iovec *iov;
        int n, i;
        size_t at; /* in piece i */
};

static size_t cursor_left(const struct cursor *c)
{
        size_t left = 0;
        for (int i = c->i; i < c->n; i++)
                left += c->iov[i].iov_len;
        return left - c->at;
}

/* The next at most `max` bytes as pieces; the cursor moves behind them. Returns their number. */
static int cursor_take(struct cursor *c, size_t max, struct iovec ret[PIECES], size_t *ret_size)
{
        int n = 0;
        size_t size = 0;
        while (c->i < c->n && size < max && n < PIECES) {
                size_t left = c->iov[c->i].iov_len - c->at;
                size_t len = left < max - size ? left : max - size;
                ret[n++] = (struct iovec){ (uint8_t *)c->iov[c->i].iov_base + c->at, len };
                size += len;
                c->at += len;
                if (len == left) {
                        c->i++;
                        c->at = 0;
                }
        }
        *ret_size = size;
        return n;
}

/* Seal what fits into one batch. */
static int pack(struct tls_conn *t, const struct iovec *iov, int n)
{
        struct cursor c = { iov, n, 0, 0 };
        size_t wanted = (cursor_left(&c) + t->record_max - 1) / t->record_max;
        wanted = wanted < BATCH ? wanted : BATCH;
        size_t cap = (wanted + 1) * SEALED_MAX; /* and a KeyUpdate */
        if (!wanted || t->out_cap < cap) {
                uint8_t *more = mem_realloc(t->out, cap);
                if (!more)
                        return SP_E_LINK;
                t->out = more;
                t->out_cap = cap;
        }
        t->out_at = t->out_end = t->taken = 0;
        for (size_t i = 0; i < wanted; i++) {
                struct iovec pieces[PIECES];
                size_t size;
                int k = cursor_take(&c, t->record_max, pieces, &size);
                if (!size)
                        break;
                if (t->tx.seq >= tls_records_per_key && !renew(t))
                        return SP_E_LINK;
                if (!seal(t, pieces, k, size, TYPE_DATA))
                        return SP_E_LINK;
                t->taken += size;
        }
        return 0;
}

/* Bytes are "taken" when the socket has taken the whole batch they are in: until then the caller offers
 * them again (transport.h), and calls us again. */
static ssize_t tls_sendv(struct conn *c, const struct iovec *iov, int n)
{
        struct tls_conn *t = tls_of(c);
        if (t->shake)
                return SP_E_AGAIN;
        if (t->tx.kernel)
                return send_by_kernel(t, iov, n);
        if (t->out_at == t->out_end && pack(t, iov, n) < 0)
                return SP_E_LINK;
        while (t->out_at < t->out_end) {
                ssize_t r = socket_send(t->socket, t->out + t->out_at, t->out_end - t->out_at);
                if (r <= 0)
                        return r < 0 && socket_would_wait(errno) ? SP_E_AGAIN : SP_E_LINK;
                t->out_at += (size_t)r;
        }
        return t->taken ? (ssize_t)t->taken : SP_E_LINK;
}

/* ---- receiving ------------------------------------------------------------------------------ */

/* The size of the record at the front, its head included; 0: not all of it is there. */
static size_t record_size(struct tls_conn *t)
{
        const uint8_t *p = t->in + t->in_at;
        size_t have = t->in_end - t->in_at;
        if (have < HEAD)
                return 0;
        size_t size = (size_t)p[3] << 8 | p[4];
        if (p[0] != TYPE_DATA || p[1] != 3 || p[2] != 3 || size > CIPHER_MAX ||
            size < 1 + CRYPTO_TAG + 1)
                t->broken = true;
        return !t->broken && have >= HEAD + size ? HEAD + size : 0;
}

/* Handle a record of the other side's TLS itself. 0; SP_E_LINK: the connection ends. */
static int control(struct tls_conn *t, uint8_t type, const uint8_t *p, size_t size)
{
        if (type == TYPE_HANDSHAKE && size == sizeof(key_update) && !memcmp(p, key_update, size) &&
            half_renew(t, &t->rx, false))
                return 0;
        t->broken = true; /* an alert, too: nobody goes on after it */
        return SP_E_LINK;
}

/* Open the record at the front, of `size` bytes: into the caller's places if it fits there. Returns how many
 * bytes went there. */
static ssize_t open_record(struct tls_conn *t, size_t size, struct cursor *c)
{
        const uint8_t *head = t->in + t->in_at;
        size_t content = size - HEAD - 1 - CRYPTO_TAG;
        bool direct = content >= DIRECT_MIN && content <= cursor_left(c);
        struct iovec places[PIECES];
        int n = 1;
        uint8_t type = 0;
        if (direct) {
                struct cursor moved = *c;
                size_t got;
                n = cursor_take(&moved, content, places, &got);
                direct = got == content;
                if (direct)
                        *c = moved;
        }
        if (!direct) {
                if (!t->plain)
                        t->plain = mem_alloc(CIPHER_MAX);
                if (!t->plain)
                        return SP_E_LINK;
                places[0] = (struct iovec){ t->plain, content };
                n = 1;
        }
        bool ok = t->crypto->open(t->rx.key, t->rx.seq++, head, head + HEAD, size - HEAD, places, n,
                                  &type);
        t->in_at += size;
        if (!ok || (direct && type != TYPE_DATA))
                t->broken = true;
        if (t->broken)
                return SP_E_LINK;
        if (direct)
                return (ssize_t)content;
        if (type != TYPE_DATA)
                return control(t, type, t->plain, content);
        t->plain_at = 0;
        t->plain_end = content;
        return 0;
}

static size_t take_plain(struct tls_conn *t, struct cursor *c)
{
        struct iovec places[PIECES];
        size_t done = 0;
        while (t->plain_at < t->plain_end) {
                size_t size;
                int n = cursor_take(c, t->plain_end - t->plain_at, places, &size);
                for (int i = 0; i < n; i++) {
                        memcpy(places[i].iov_base, t->plain + t->plain_at, places[i].iov_len);
                        t->plain_at += places[i].iov_len;
                }
                done += size;
                if (!size)
                        break;
        }
        return done;
}

/* Read from the socket. 1: all that fits came, there may be more; 0: that was all for now; SP_E_AGAIN:
 * nothing is there; SP_E_LINK. */
static int fill(struct tls_conn *t)
{
        if (t->in_at) {
                memmove(t->in, t->in + t->in_at, t->in_end - t->in_at);
                t->in_end -= t->in_at;
                t->in_at = 0;
        }
        size_t room = t->in_cap - t->in_end;
        ssize_t n = read_some(t, t->in + t->in_end, room);
        if (n <= 0)
                return n < 0 && errno == EAGAIN ? SP_E_AGAIN : SP_E_LINK;
        t->in_end += (size_t)n;
        if (t->careful)
                return 1;
        if ((size_t)n < room)
                return 0;
        if (t->in_cap < IN_MAX) { /* much at once: larger reads are worth it */
                uint8_t *more = mem_realloc(t->in, IN_MAX);
                if (more) {
                        t->in = more;
                        t->in_cap = IN_MAX;
                }
        }
        return 1;
}

/* Let poll(2) know whether something is left for the next recvv. */
static bool show_rest(struct tls_conn *t)
{
        bool rest = t->plain_at < t->plain_end || record_size(t) || t->broken;
        if (rest && t->ready < 0) {
                t->ready = wakeup_new();
                if (t->ready < 0)
                        return false;
                wakeup_set(t->ready);
        }
        t->base.fd = rest ? t->ready : t->socket;
        return true;
}

/* Handle such a record that the kernel has opened: its `size` bytes are in `iov`. 0; SP_E_LINK. */
static int control_from_kernel(struct tls_conn *t, uint8_t type, const struct iovec *iov,
                               size_t size)
{
        for (size_t at = 0; size; size--, at++) {
                while (at == iov->iov_len) {
                        iov++;
                        at = 0;
                }
                if (type != TYPE_HANDSHAKE ||
                    ((const uint8_t *)iov->iov_base)[at] != key_update[t->update_have++])
                        return SP_E_LINK;
                if (t->update_have < sizeof(key_update))
                        continue;
                t->update_have = 0;
                if (!half_renew(t, &t->rx, false))
                        return SP_E_LINK;
        }
        return 0;
}

static ssize_t recv_by_kernel(struct tls_conn *t, const struct iovec *iov, int n)
{
        while (!t->broken) {
                uint8_t type = 0;
                ssize_t r = ktls_recv(t->socket, iov, n, &type);
                if (r < 0)
                        return r;
                if (type == TYPE_DATA && !t->update_have)
                        return r;
                t->broken = type == TYPE_DATA || control_from_kernel(t, type, iov, (size_t)r) < 0;
        }
        return SP_E_LINK;
}

/* Let the kernel open records, once the bytes behind the handshake have been read. */
static bool rest_to_kernel(struct tls_conn *t)
{
        if (!t->rx_later || t->in_at < t->in_end)
                return false;
        t->rx_later = false;
        return half_to_kernel(t, &t->rx, false);
}

static ssize_t tls_recvv(struct conn *c, const struct iovec *iov, int n)
{
        struct tls_conn *t = tls_of(c);
        struct cursor at = { iov, n, 0, 0 };
        ssize_t done = 0, r = 0;
        int more = 1;
        if (t->shake) {
                int status = tls_conn_shake(c);
                if (status < 0)
                        return status == SP_E_AGAIN ? SP_E_AGAIN : SP_E_LINK;
        }
        if (t->rx.kernel)
                return recv_by_kernel(t, iov, n);
        while (r >= 0 && cursor_left(&at)) {
                done += (ssize_t)take_plain(t, &at);
                if (t->careful && !cursor_left(&at))
                        break;
                size_t size = t->plain_at < t->plain_end ? 0 : record_size(t);
                if (t->broken) {
                        r = SP_E_LINK;
                } else if (size) {
                        r = open_record(t, size, &at);
                        done += r > 0 ? r : 0;
                } else if (t->plain_at == t->plain_end && more > 0) {
                        if (rest_to_kernel(t))
                                break;
                        more = fill(t);
                        r = more < 0 ? more : 0;
                } else if (t->plain_at == t->plain_end) {
                        r = SP_E_AGAIN;
                }
        }
        if (!show_rest(t))
                return SP_E_LINK;
        if (!done && t->rx.kernel)
                return recv_by_kernel(t, iov, n);
        return done ? done : r;
}

/* ---- conns ---------------------------------------------------------------------------------- */

static void tls_close(struct conn *c)
{
        struct tls_conn *t = tls_of(c);
        t->crypto->shake_free(t->shake);
        half_fini(t, &t->tx);
        half_fini(t, &t->rx);
        (void)file_close(t->socket);
        if (t->ready >= 0)
                (void)file_close(t->ready);
        mem_free(t->out);
        mem_free(t->in);
        mem_free(t->plain);
        mem_free(t);
}

static int make(const struct crypto_ops *crypto, int fd, struct tls_conn **ret)
{
        struct conn *plain;
        struct tls_conn *t = mem_zalloc(sizeof(*t));
        int r = stream_conn_new(&transport_tcp, fd, &plain); /* its options */
        if (r < 0 || !t) {
                if (!r)
                        conn_close(plain);
                mem_free(t);
                return r < 0 ? r : SP_E_NOMEM;
        }
        mem_free(plain); /* but not its descriptor */
        t->base = (struct conn){
                .ops = &transport_tls, .fd = fd, .room_fd = fd, .room_events = POLLOUT
        };
        t->crypto = crypto;
        t->socket = fd;
        t->ready = -1;
        *ret = t;
        return 0;
}

int tls_conn_new(const struct crypto_ops *crypto, int fd, struct crypto_shake *shake,
                 struct conn **ret)
{
        struct tls_conn *t;
        int r = make(crypto, fd, &t);
        if (r < 0) {
                crypto->shake_free(shake);
                return r;
        }
        t->shake = shake;
        t->careful = tls_for_others;
        *ret = &t->base;
        return 0;
}

void tls_be_careful(struct conn *c)
{
        tls_of(c)->careful = true;
}

const struct tls_peer *tls_peer(const struct conn *c)
{
        return c->ops == &transport_tls ? &tls_of(c)->peer : NULL;
}

const char *tls_name(const struct conn *c)
{
        static const char *const names[] = { "tls", "ktls receives", "ktls sends", "ktls" };
        const struct tls_conn *t = c->ops == &transport_tls ? tls_of(c) : NULL;
        return t ? names[t->shake ? 0 : 2 * t->tx.kernel + t->rx.kernel] : NULL;
}

/* ---- from process to process ---------------------------------------------------------------- */

struct state {
        uint32_t cipher, record_max;
        uint64_t tx_seq, rx_seq;
        uint8_t tx_secret[CRYPTO_SECRET], rx_secret[CRYPTO_SECRET];
};

_Static_assert(sizeof(struct state) == TLS_STATE_SIZE, "the size in tls.h");

int tls_export(struct conn *c, uint8_t ret[TLS_STATE_SIZE])
{
        struct tls_conn *t = tls_of(c);
        if (t->shake || t->broken || t->tx.kernel || t->rx.kernel || t->in_at < t->in_end ||
            t->plain_at < t->plain_end || t->out_at < t->out_end)
                return SP_E_BUSY;
        struct state s = { .cipher = t->cipher,
                           .record_max = t->record_max,
                           .tx_seq = t->tx.seq,
                           .rx_seq = t->rx.seq };
        memcpy(s.tx_secret, t->tx.secret, CRYPTO_SECRET);
        memcpy(s.rx_secret, t->rx.secret, CRYPTO_SECRET);
        memcpy(ret, &s, sizeof(s));
        explicit_bzero(&s, sizeof(s));
        return 0;
}

int tls_import(int fd, const uint8_t state[TLS_STATE_SIZE], struct conn **ret)
{
        char text[KEYS_TEXT_MAX];
        const struct crypto_ops *crypto = tls_crypto(text);
        struct tls_conn *t;
        struct state s;
        if (!crypto) {
                (void)file_close(fd);
                return SP_E_UNSUPP;
        }
        int r = make(crypto, fd, &t);
        if (r < 0)
                return r;
        memcpy(&s, state, sizeof(s));
        t->cipher = s.cipher == CRYPTO_AES_128_GCM ? CRYPTO_AES_128_GCM : CRYPTO_CHACHA20_POLY1305;
        t->record_max = s.record_max >= CRYPTO_RECORD_MIN && s.record_max < RECORD_MAX
                                ? s.record_max
                                : RECORD_MAX;
        t->tx.seq = s.tx_seq;
        t->rx.seq = s.rx_seq;
        memcpy(t->tx.secret, s.tx_secret, CRYPTO_SECRET);
        memcpy(t->rx.secret, s.rx_secret, CRYPTO_SECRET);
        explicit_bzero(&s, sizeof(s));
        t->in = mem_alloc(IN_MIN);
        t->in_cap = IN_MIN;
        if (!t->in || start_keys(t) < 0) {
                tls_close(&t->base);
                return SP_E_NOMEM;
        }
        *ret = &t->base;
        return 0;
}

const struct transport_ops transport_tls = {
        .name = "tls",
        .caps = TRANSPORT_ENCRYPTED | TRANSPORT_PEERS | TRANSPORT_HOSTS | TRANSPORT_ACKNOWLEDGES,
        .below = &transport_tcp,
        .connect = tls_connect,
        .listen = tls_listen,
        .accept = tls_listener_accept,
        .listener_close = tls_listener_close,
        .sendv = tls_sendv,
        .recvv = tls_recvv,
        .close = tls_close,
};
