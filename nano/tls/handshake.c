#include "tls/handshake.h"

#include <string.h>

enum {
        SHAKE_MS = 5000,
        HELLO_MAX = 170, /* the client's hello, with the head of its record */
        IDENTITY = 5 + 32,
        BINDERS = 2 + 1 + TLS_HASH, /* with their lengths */
        CLIENT_HELLO = 1,
        SERVER_HELLO = 2,
        ENCRYPTED_EXTENSIONS = 8,
        FINISHED = 20,
        EXT_ALPN = 16,
        EXT_GROUPS = 10,
        EXT_RECORD_LIMIT = 28,
        EXT_PSK = 41,
        EXT_VERSIONS = 43,
        EXT_MODES = 45,
        LIMIT_MIN = 64, /* RFC 8449, 4 */
};

#define PROTOCOL "\x08spancl/1"

/* The server must take the largest record of ours, and our hello must fit where records are made. */
typedef char tls_sizes_are_valid[SPANCL_NANO_TLS_SEND + SPANCL_NANO_TLS_OVERHEAD >= HELLO_MAX &&
                                                 SPANCL_NANO_TLS_RECORD >= 256 &&
                                                 SPANCL_NANO_TLS_RECORD <= 16384 &&
                                                 SPANCL_NANO_TLS_SEND <= 16384
                                         ? 1
                                         : -1];

/* The handshake, while it lasts. */
struct shake {
        struct spancl_nano_tls *t;
        struct spancl_nano_tls_lane *l;
        unsigned lane;
        uint64_t until_ms;
        mbedtls_sha256_context said; /* the messages of both sides */
        uint8_t secret[TLS_HASH];    /* the schedule's present one */
        bool changed;                /* the record for old middleboxes has come */
};

/* ---- bytes ------------------------------------------------------------------------------------ */

struct put {
        uint8_t *at;
};

static void put(struct put *p, const void *data, size_t size)
{
        memcpy(p->at, data, size);
        p->at += size;
}

static void put16(struct put *p, unsigned value)
{
        const uint8_t bytes[] = { (uint8_t)(value >> 8), (uint8_t)value };
        put(p, bytes, 2);
}

static void put_extension(struct put *p, unsigned type, const void *data, unsigned size)
{
        put16(p, type);
        put16(p, size);
        put(p, data, size);
}

/* Received bytes that have not been read yet. */
struct get {
        const uint8_t *at;
        size_t left;
};

static bool get(struct get *g, size_t size, struct get *ret)
{
        if (size > g->left)
                return false;
        *ret = (struct get){ g->at, size };
        g->at += size;
        g->left -= size;
        return true;
}

static bool get16(struct get *g, unsigned *ret)
{
        struct get two;
        if (!get(g, 2, &two))
                return false;
        *ret = (unsigned)two.at[0] << 8 | two.at[1];
        return true;
}

static bool get_extension(struct get *g, unsigned *ret_type, struct get *ret)
{
        unsigned size;
        return get16(g, ret_type) && get16(g, &size) && get(g, size, ret);
}

static bool is(const struct get *g, const void *data, size_t size)
{
        return g->left == size && !memcmp(g->at, data, size);
}

/* ---- connections ------------------------------------------------------------------------------ */

bool tls_flush(struct spancl_nano_tls *t, unsigned lane)
{
        struct spancl_nano_tls_lane *l = &t->lanes[lane];
        while (l->out_at < l->out_end) {
                const size_t left = l->out_end - l->out_at;
                const int n = t->below->send(t->below->user, lane, l->out + l->out_at, left);
                if (n < 0 || (size_t)n > left)
                        l->broken = true;
                if (l->broken || !n)
                        break;
                l->out_at = (uint16_t)(l->out_at + n);
        }
        return !l->broken;
}

int tls_receive_record(struct spancl_nano_tls *t, unsigned lane)
{
        struct spancl_nano_tls_lane *l = &t->lanes[lane];
        for (;;) {
                const uint8_t *in = l->in;
                size_t whole = TLS_HEAD;
                if (l->in_have >= TLS_HEAD) {
                        whole += (size_t)in[3] << 8 | in[4];
                        if (in[1] != 3 || in[2] != 3 || whole == TLS_HEAD || whole > sizeof(l->in))
                                return -1;
                }
                if (l->in_have >= TLS_HEAD && l->in_have == whole) {
                        l->in_have = 0;
                        return (int)whole;
                }
                const size_t left = whole - l->in_have;
                const int n = t->below->receive(t->below->user, lane, l->in + l->in_have, left);
                if (n <= 0 || (size_t)n > left)
                        return n > 0 ? -1 : n;
                l->in_have = (uint16_t)(l->in_have + n);
        }
}

static bool pause(struct shake *s)
{
        struct spancl_nano_tls *t = s->t;
        if (t->now_ms >= s->until_ms)
                return false;
        t->now_ms = t->below->wait(t->below->user, (unsigned)(s->until_ms - t->now_ms));
        return true;
}

static bool send_out(struct shake *s, size_t size)
{
        s->l->out_at = 0;
        s->l->out_end = (uint16_t)size;
        while (tls_flush(s->t, s->lane) && s->l->out_at < s->l->out_end)
                if (!pause(s))
                        return false;
        return !s->l->broken;
}

/* Receive a record. Returns its size; negative: none comes. */
static int receive(struct shake *s)
{
        int n;
        while (!(n = tls_receive_record(s->t, s->lane)))
                if (!pause(s))
                        return -1;
        return n;
}

/* ---- hellos ----------------------------------------------------------------------------------- */

/* The name of the key: its fingerprint is PBKDF2 of one round (RFC 8018) of the key's hexadecimal digits. */
static void name_key(const uint8_t *key, uint8_t ret[IDENTITY])
{
        static const char digits[] = "0123456789abcdef", salt[] = "spancl nano\0\0\0\1";
        uint8_t hex[2 * SPANCL_NANO_TLS_KEY], fingerprint[TLS_HASH];
        for (unsigned i = 0; i < SPANCL_NANO_TLS_KEY; i++) {
                hex[2 * i] = (uint8_t)digits[key[i] >> 4];
                hex[2 * i + 1] = (uint8_t)digits[key[i] & 15];
        }
        tls_hmac(hex, sizeof(hex), salt, sizeof(salt) - 1, fingerprint);
        tls_wipe(hex, sizeof(hex));
        memcpy(ret, "nano ", 5);
        for (unsigned i = 0; i < 16; i++) {
                ret[5 + 2 * i] = (uint8_t)digits[fingerprint[i] >> 4];
                ret[6 + 2 * i] = (uint8_t)digits[fingerprint[i] & 15];
        }
}

/* Each connection has other random bytes: else its keys could be those of an earlier one. */
static void next_random(struct spancl_nano_tls *t, uint8_t ret[TLS_HASH])
{
        uint8_t number[4];
        t->opened++;
        for (unsigned i = 0; i < 4; i++)
                number[i] = (uint8_t)(t->opened >> 8 * i);
        tls_hmac(t->random, sizeof(t->random), number, sizeof(number), ret);
}

/* Hash the messages up to `data`, and make the HMAC of that with a key derived from `secret`. */
static void finish_with(const mbedtls_sha256_context *said, const uint8_t secret[TLS_HASH],
                        uint8_t ret[TLS_HASH])
{
        uint8_t key[TLS_HASH], hash[TLS_HASH];
        tls_expand(secret, "finished", NULL, key, TLS_HASH);
        tls_hash_end(said, hash);
        tls_hmac(key, TLS_HASH, hash, TLS_HASH, ret);
        tls_wipe(key, sizeof(key));
}

static bool send_hello(struct shake *s)
{
        static const uint8_t version[] = { 2, 3, 4 }, modes[] = { 1, 0 }; /* psk_ke */
        static const uint8_t alpn[] = "\0\x09" PROTOCOL;
        static const uint8_t suites[] = { 0, 2, 0x13, 3, 1, 0 }; /* and no compression */
        static const uint8_t limit[] = { (SPANCL_NANO_TLS_RECORD + 1) >> 8,
                                         (SPANCL_NANO_TLS_RECORD + 1) & 255 };
        static const uint8_t zero[TLS_HASH];
        uint8_t random[TLS_HASH], name[IDENTITY], binder_key[TLS_HASH];
        uint8_t *const record = s->l->out, *const message = record + TLS_HEAD;
        struct put p = { message + 4 };
        next_random(s->t, random);
        name_key(s->t->key, name);
        put16(&p, 0x0303);
        put(&p, random, sizeof(random));
        put(&p, zero, 1); /* no session id */
        put(&p, suites, sizeof(suites));
        struct put extensions = p;
        p.at += 2;
        put_extension(&p, EXT_VERSIONS, version, sizeof(version));
        put_extension(&p, EXT_ALPN, alpn, sizeof(alpn) - 1);
        put_extension(&p, EXT_RECORD_LIMIT, limit, sizeof(limit));
        put_extension(&p, EXT_MODES, modes, sizeof(modes));
        put16(&p, EXT_PSK);
        put16(&p, 2 + 2 + IDENTITY + 4 + BINDERS);
        put16(&p, 2 + IDENTITY + 4);
        put16(&p, IDENTITY);
        put(&p, name, IDENTITY);
        put(&p, zero, 4); /* the ticket's age: it is none */
        uint8_t *const binders = p.at;
        p.at += BINDERS;
        put16(&extensions, (unsigned)(p.at - extensions.at - 2));
        const unsigned size = (unsigned)(p.at - message);
        p.at = message;
        put16(&p, CLIENT_HELLO << 8);
        put16(&p, size - 4);
        p.at = record;
        put16(&p, TLS_HANDSHAKE << 8 | 3);
        put16(&p, 1 << 8 | size >> 8);
        record[4] = (uint8_t)size;

        tls_hmac(zero, TLS_HASH, s->t->key, SPANCL_NANO_TLS_KEY, s->secret);
        tls_derive_empty(s->secret, "ext binder", binder_key);
        tls_hash_add(&s->said, message, (size_t)(binders - message));
        p.at = binders;
        put16(&p, 1 + TLS_HASH);
        *p.at++ = TLS_HASH;
        finish_with(&s->said, binder_key, p.at);
        tls_wipe(binder_key, sizeof(binder_key));
        tls_hash_add(&s->said, binders, BINDERS);
        return send_out(s, TLS_HEAD + size);
}

/* Check the server's hello. NULL: the server has chosen what we offered, and nothing else. */
static const char *take_server_hello(struct shake *s)
{
        static const uint8_t begin[] = { 3, 3 }, chosen[] = { 0, 0x13, 3, 0 }, version[] = { 3, 4 };
        static const char *const invalid = "the server's hello is not valid";
        const int n = receive(s);
        struct get g = { s->l->in + TLS_HEAD, n < 0 ? 0 : (size_t)n - TLS_HEAD }, part;
        unsigned size, type, found = 0;
        if (n < 0)
                return "the server closed the connection, or sent no TLS";
        if (s->l->in[0] == TLS_ALERT)
                return "the server refused the handshake: does it have this key?";
        if (s->l->in[0] != TLS_HANDSHAKE)
                return invalid;
        tls_hash_add(&s->said, g.at, g.left);
        /* One message, which fills the record. */
        if (!get(&g, 2, &part) || part.at[0] != SERVER_HELLO || part.at[1] || !get16(&g, &size) ||
            size != g.left || !get(&g, 2, &part) || !is(&part, begin, 2) || !get(&g, 32, &part) ||
            !get(&g, 4, &part))
                return invalid;
        if (!is(&part, chosen, 4))
                return "the server chose another cipher";
        if (!get16(&g, &size) || size != g.left)
                return invalid;
        while (g.left) {
                if (!get_extension(&g, &type, &part))
                        return invalid;
                if (type == EXT_VERSIONS && is(&part, version, 2))
                        found |= 1;
                else if (type == EXT_PSK && is(&part, "\0", 2))
                        found |= 2;
                else
                        return "the server chose another version or key"; /* or asks for another hello */
        }
        return found == 3 ? NULL : "the server did not take this key";
}

/* ---- the encrypted part ----------------------------------------------------------------------- */

/* Derive the traffic secrets of both sides from the schedule's secret. The client's label comes first. */
static void traffic(struct shake *s, const char *client, const char *server)
{
        uint8_t hash[TLS_HASH];
        tls_hash_end(&s->said, hash);
        tls_expand(s->secret, client, hash, s->l->tx.secret, TLS_HASH);
        tls_expand(s->secret, server, hash, s->l->rx.secret, TLS_HASH);
}

/* Derive the schedule's next secret, without a Diffie-Hellman exchange. */
static void advance(struct shake *s)
{
        static const uint8_t zero[TLS_HASH];
        uint8_t salt[TLS_HASH];
        tls_derive_empty(s->secret, "derived", salt);
        tls_hmac(salt, TLS_HASH, zero, TLS_HASH, s->secret);
        tls_wipe(salt, sizeof(salt));
}

static bool are_valid_extensions(struct get g)
{
        static const uint8_t alpn[] = "\0\x09" PROTOCOL;
        struct get part;
        unsigned size, type, limit, found = 0;
        if (!get16(&g, &size) || size != g.left)
                return false;
        while (g.left) {
                if (!get_extension(&g, &type, &part))
                        return false;
                if (type == EXT_ALPN && is(&part, alpn, sizeof(alpn) - 1))
                        found |= 1;
                else if (type == EXT_RECORD_LIMIT && get16(&part, &limit) && !part.left &&
                         limit >= LIMIT_MIN && limit > SPANCL_NANO_TLS_SEND)
                        found |= 2;
                else if (type != EXT_GROUPS)
                        return false;
        }
        return found == 3;
}

static bool is_same(const uint8_t *a, const uint8_t *b, size_t size)
{
        uint8_t differs = 0;
        while (size--)
                differs |= (uint8_t)(*a++ ^ *b++);
        return !differs;
}

/* Return the next message, of the present record or of the next one. NULL: no whole message comes. */
static const char *next_message(struct shake *s, struct get *record, unsigned type, struct get *ret)
{
        uint8_t kind = TLS_ALERT;
        int n = 0;
        struct get head;
        unsigned size;
        while (!record->left) {
                n = receive(s);
                if (n < 0)
                        return "the server closed the connection in the handshake";
                /* For old middleboxes (RFC 8446, D.4). */
                if (s->l->in[0] == TLS_CHANGE && n == TLS_HEAD + 1 && s->l->in[TLS_HEAD] == 1 &&
                    !s->changed) {
                        s->changed = true;
                        continue;
                }
                n = s->l->in[0] == TLS_DATA ? tls_open(&s->l->rx, s->l->in, (size_t)n, &kind) : -1;
                if (n <= 0 || kind != TLS_HANDSHAKE)
                        return "the server does not have this key, or the bytes were changed";
                *record = (struct get){ s->l->in + TLS_HEAD, (size_t)n };
        }
        if (!get(record, 2, &head) || head.at[0] != type || head.at[1] || !get16(record, &size) ||
            !get(record, size, ret))
                return "the server's handshake is not valid";
        return NULL;
}

static const char *take_encrypted(struct shake *s)
{
        struct get record = { NULL, 0 }, extensions, end;
        uint8_t expected[TLS_HASH];
        const char *error = next_message(s, &record, ENCRYPTED_EXTENSIONS, &extensions);
        if (error)
                return error;
        if (!are_valid_extensions(extensions))
                return "the server does not speak SpanCL's protocol, or makes records of any size";
        tls_hash_add(&s->said, extensions.at - 4, extensions.left + 4);
        finish_with(&s->said, s->l->rx.secret, expected);
        error = next_message(s, &record, FINISHED, &end);
        if (error)
                return error;
        if (end.left != TLS_HASH || !is_same(end.at, expected, TLS_HASH) || record.left)
                return "the server does not have this key, or the bytes were changed";
        tls_hash_add(&s->said, end.at - 4, TLS_HASH + 4);
        return NULL;
}

static bool finish(struct shake *s)
{
        static const uint8_t head[] = { FINISHED, 0, 0, TLS_HASH };
        uint8_t *message = s->l->out + TLS_HEAD;
        memcpy(message, head, sizeof(head));
        finish_with(&s->said, s->l->tx.secret, message + sizeof(head));
        const size_t size = tls_seal(&s->l->tx, s->l->out, sizeof(head) + TLS_HASH, TLS_HANDSHAKE);
        advance(s);
        traffic(s, "c ap traffic", "s ap traffic");
        tls_half_start(&s->l->tx);
        tls_half_start(&s->l->rx);
        return size && send_out(s, size);
}

static const char *run(struct shake *s)
{
        if (!send_hello(s))
                return "the connection was lost";
        const char *error = take_server_hello(s);
        if (error)
                return error;
        advance(s);
        traffic(s, "c hs traffic", "s hs traffic");
        tls_half_start(&s->l->tx);
        tls_half_start(&s->l->rx);
        error = take_encrypted(s);
        if (!error && !finish(s))
                error = "the connection was lost";
        return error;
}

const char *tls_shake_hands(struct spancl_nano_tls *t, unsigned lane)
{
        struct shake s = { .t = t, .l = &t->lanes[lane], .lane = lane };
        t->now_ms = t->below->wait(t->below->user, 0);
        s.until_ms = t->now_ms + SHAKE_MS;
        tls_hash_begin(&s.said);
        const char *error = run(&s);
        tls_wipe(&s, sizeof(s));
        return error;
}
