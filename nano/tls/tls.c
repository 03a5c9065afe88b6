#include "tls/tls.h"

#include <string.h>

#include "tls/handshake.h"

static const uint8_t key_update[] = { 24, 0, 0, 1, 0 }; /* RFC 8446, 4.6.3 */

static void reset(struct spancl_nano_tls_lane *l)
{
        tls_wipe(l, sizeof(*l));
        l->broken = true;
}

static int lane_open(void *user, unsigned lane)
{
        struct spancl_nano_tls *t = user;
        struct spancl_nano_tls_lane *l = &t->lanes[lane];
        reset(l);
        if (!lane)
                reset(&t->lanes[1]);
        t->error = "there is no connection";
        if (t->below->open(t->below->user, lane) < 0)
                return -1;
        l->broken = false;
        t->error = tls_shake_hands(t, lane);
        if (!t->error)
                return 0;
        reset(l);
        return -1;
}

static void seal_out(struct spancl_nano_tls_lane *l, const void *data, size_t size,
                     enum tls_type type)
{
        memcpy(l->out + TLS_HEAD, data, size);
        l->out_at = 0;
        l->out_end = (uint16_t)tls_seal(&l->tx, l->out, size, type);
        l->broken |= !l->out_end;
}

static int lane_send(void *user, unsigned lane, const void *data, size_t size)
{
        struct spancl_nano_tls *t = user;
        struct spancl_nano_tls_lane *l = &t->lanes[lane];
        if (!tls_flush(t, lane))
                return -1;
        if (l->out_at == l->out_end && l->update_owed) {
                seal_out(l, key_update, sizeof(key_update), TLS_HANDSHAKE);
                tls_half_renew(&l->tx);
                l->update_owed = false;
                if (!tls_flush(t, lane))
                        return -1;
        }
        if (l->out_at < l->out_end)
                return 0;
        size = size < SPANCL_NANO_TLS_SEND ? size : SPANCL_NANO_TLS_SEND;
        seal_out(l, data, size, TLS_DATA);
        return tls_flush(t, lane) ? (int)size : -1;
}

/* Open the record in l->in, of `size` bytes. False: the connection ends. */
static bool take_record(struct spancl_nano_tls_lane *l, size_t size)
{
        uint8_t type;
        const int n = l->in[0] == TLS_DATA ? tls_open(&l->rx, l->in, size, &type) : -1;
        const uint8_t *content = l->in + TLS_HEAD;
        if (n < 0)
                return false;
        if (type == TLS_DATA) {
                l->plain_at = TLS_HEAD;
                l->plain_end = (uint16_t)(TLS_HEAD + n);
                return true;
        }
        /* An alert ends the connection, too. Of the messages of a handshake the server sends only this one. */
        if (type != TLS_HANDSHAKE || n != sizeof(key_update) ||
            memcmp(content, key_update, sizeof(key_update) - 1) != 0 || content[4] > 1)
                return false;
        l->update_owed |= content[4];
        tls_half_renew(&l->rx);
        return true;
}

static int lane_receive(void *user, unsigned lane, void *data, size_t size)
{
        struct spancl_nano_tls *t = user;
        struct spancl_nano_tls_lane *l = &t->lanes[lane];
        /* Received bytes count, even if nothing can be sent any more. */
        while (l->plain_at == l->plain_end) {
                int n = l->broken ? -1 : tls_receive_record(t, lane);
                if (n > 0 && !take_record(l, (size_t)n))
                        n = -1;
                if (n < 0)
                        l->broken = true;
                if (n <= 0)
                        return n < 0 ? -1 : 0;
        }
        const size_t left = l->plain_end - l->plain_at;
        size = size < left ? size : left;
        memcpy(data, l->in + l->plain_at, size);
        l->plain_at = (uint16_t)(l->plain_at + size);
        return (int)size;
}

static uint64_t lanes_wait(void *user, unsigned timeout_ms)
{
        struct spancl_nano_tls *t = user;
        for (unsigned i = 0; i < 2; i++) {
                struct spancl_nano_tls_lane *l = &t->lanes[i];
                /* A connection that was lost just now is seen by the next call. */
                if ((!l->broken && !tls_flush(t, i)) || l->plain_at < l->plain_end)
                        timeout_ms = 0;
        }
        t->now_ms = t->below->wait(t->below->user, timeout_ms);
        return t->now_ms;
}

struct spancl_nano_transport spancl_nano_tls(struct spancl_nano_tls *t,
                                             const struct spancl_nano_transport *below,
                                             const uint8_t *key, const uint8_t *random)
{
        memset(t, 0, sizeof(*t));
        t->below = below;
        t->key = key;
        memcpy(t->random, random, sizeof(t->random));
        t->lanes[0].broken = t->lanes[1].broken = true;
        return (struct spancl_nano_transport){ lane_open, lane_send, lane_receive, lanes_wait, t };
}

const char *spancl_nano_tls_error(const struct spancl_nano_tls *t)
{
        return t->error ? t->error : "";
}
