#include "engine/transfer/relay.h"

#include "base/mem.h"

enum {
        LANES = 2,
        PIECES = 8,
        TELL_EVERY = WIRE_RELAY_WINDOW / 4, /* bytes taken after which the other side is notified */
};

struct relay {
        bool up; /* both sides have said hello */
        struct {
                struct buf in; /* received, but not taken yet, from `head` on */
                size_t head;
                size_t taken; /* bytes taken, not yet reported to the other side */
                size_t room;  /* bytes that may be sent */
        } lanes[LANES];
};

struct relay *engine_relay_free(struct relay *r)
{
        if (!r)
                return NULL;
        for (unsigned i = 0; i < LANES; i++)
                buf_fini(&r->lanes[i].in);
        mem_free(r);
        return NULL;
}

void engine_relay_end(struct peer *p)
{
        if (!p->relay)
                return;
        for (unsigned i = 0; i < LANES; i++)
                session_lane_down(p->session, i);
        p->relay = engine_relay_free(p->relay);
}

void engine_relay_again(struct peer *p)
{
        if (p->relays && !p->relay)
                peer_send(engine_client(p->engine), relay_again, .peer = p->id,
                          .number = p->relays);
}

/* ---- messages ------------------------------------------------------------------------------- */

int engine_handle_peer_relay(void *user, const struct wire_peer_relay *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct peer *p;
        int r = engine_peer_known(e, m->peer, &p);
        if (r < 0 || p->lost)
                return r;
        engine_relay_end(p);
        p->relays = m->number;
        p->relay = mem_zalloc(sizeof(*p->relay));
        if (!p->relay)
                return SP_E_NOMEM;
        for (unsigned i = 0; i < LANES; i++)
                p->relay->lanes[i].room = WIRE_RELAY_WINDOW;
        e->params.ops->relayed(e->params.user, p->session);
        peer_send(engine_client(e), relay_hello, .peer = p->id, .number = m->number,
                  .generation = session_generation(p->session),
                  .next_seq = session_next_seq(p->session));
        return 0;
}

int engine_handle_relay_hello(void *user, const struct wire_relay_hello *m)
{
        struct engine *e = ((struct peer *)user)->engine;
        struct peer *p;
        int r = engine_peer_known(e, m->peer, &p);
        /* A connection may have been made meanwhile. */
        if (r < 0 || p->lost || !p->relay || p->relay->up || m->number != p->relays)
                return r;
        uint64_t mine = session_generation(p->session);
        uint64_t acked = session_acked_seq(p->session); /* more, if it has connected since */
        r = session_lane_up(p->session, 0, m->next_seq < acked ? acked : m->next_seq);
        if (r == 0)
                r = session_resume(p->session, (m->generation > mine ? m->generation : mine) + 1);
        if (r == 0)
                r = session_lane_up(p->session, 1, 0);
        p->relay->up = r == 0;
        p->dirty = true;
        return r;
}

/* Find a relayed peer. NULL: it is lost, or the bytes are of an ended relay, since not all sides
 * know of its end yet. */
static int relay_of(struct engine *e, uint64_t id, struct peer **ret) REQUIRES(engine_held)
{
        struct peer *p = engine_peer_find(e, id);
        if (!p || !id)
                return SP_E_PROTO;
        *ret = !p->lost && p->relay && p->relay->up ? p : NULL;
        return 0;
}

int engine_handle_relay_data(void *user, const struct wire_relay_data *m)
{
        struct peer *p;
        int r = relay_of(((struct peer *)user)->engine, m->peer, &p);
        if (r < 0 || !p)
                return r;
        struct buf *in = &p->relay->lanes[m->lane].in;
        size_t head = p->relay->lanes[m->lane].head;
        if (in->size - head + m->data.size > WIRE_RELAY_WINDOW)
                return SP_E_PROTO;
        if (head) {
                buf_consume(in, head);
                p->relay->lanes[m->lane].head = 0;
        }
        p->dirty = true;
        return buf_put(in, m->data.data, m->data.size);
}

int engine_handle_relay_taken(void *user, const struct wire_relay_taken *m)
{
        struct peer *p;
        int r = relay_of(((struct peer *)user)->engine, m->peer, &p);
        if (r < 0 || !p)
                return r;
        size_t *room = &p->relay->lanes[m->lane].room;
        if (m->size > WIRE_RELAY_WINDOW - *room)
                return SP_E_PROTO;
        *room += (size_t)m->size;
        p->dirty = true;
        return 0;
}

/* ---- the loop's side ------------------------------------------------------------------------ */

bool engine_peer_connected(struct engine *e, struct session *s)
{
        struct peer *p = engine_peer_of(e, s);
        if (!p || !p->relay)
                return false;
        engine_relay_end(p);
        return true;
}

void engine_peer_direct(struct engine *e, struct session *s)
{
        struct peer *p = engine_peer_of(e, s);
        if (p && p->relays && !p->relay)
                peer_send(engine_client(e), peer_direct, .peer = p->id, .number = p->relays);
}

void engine_peer_disconnected(struct engine *e, struct session *s)
{
        struct peer *p = engine_peer_of(e, s);
        if (!p || p->lost)
                return;
        engine_relay_again(p);
        engine_settle(e);
}

/* ---- moving bytes --------------------------------------------------------------------------- */

/* Negative: the session has ended. */
static int receive(struct peer *p, unsigned lane)
{
        struct relay *r = p->relay;
        struct buf *in = &r->lanes[lane].in;
        size_t *head = &r->lanes[lane].head;
        while (*head < in->size && !p->lost) {
                struct iovec iov[2];
                size_t got = 0;
                int n = session_lane_want(p->session, lane, iov);
                if (n <= 0)
                        return n;
                for (int i = 0; i < n && *head < in->size; i++) {
                        size_t len = in->size - *head;
                        len = len < iov[i].iov_len ? len : iov[i].iov_len;
                        memcpy(iov[i].iov_base, in->data + *head, len);
                        *head += len;
                        got += len;
                }
                r->lanes[lane].taken += got;
                n = session_lane_received(p->session, lane, got);
                if (n < 0)
                        return n;
        }
        if (*head == in->size)
                *head = in->size = 0;
        return 0;
}

void engine_relay_receive_all(struct engine *e)
{
        for (size_t i = 0; i < e->peers.count; i++) {
                struct peer *p = e->peers.all[i];
                for (unsigned lane = 0; p->relay && lane < LANES && !p->lost; lane++) {
                        int r = receive(p, lane);
                        if (r < 0)
                                engine_peer_failed(e, p->session, r, status_text(r));
                        if (p->lost || p->relay->lanes[lane].taken < TELL_EVERY)
                                continue;
                        peer_send(engine_client(e), relay_taken, .peer = p->id, .lane = lane,
                                  .size = p->relay->lanes[lane].taken);
                        p->relay->lanes[lane].taken = 0;
                }
        }
}

static void send_piece(struct peer *p, unsigned lane, struct bytes piece) REQUIRES(engine_held)
{
        peer_send(engine_client(p->engine), relay_data, .peer = p->id, .lane = lane, .data = piece);
        session_lane_sent(p->session, lane, piece.size);
        p->relay->lanes[lane].room -= piece.size;
}

static void send_all(struct peer *p, unsigned lane) REQUIRES(engine_held)
{
        size_t *room = &p->relay->lanes[lane].room;
        struct iovec iov[PIECES];
        while (*room && session_lane_pending(p->session, lane, iov, PIECES) > 0) {
                size_t len = iov[0].iov_len < WIRE_RELAY_MAX ? iov[0].iov_len : WIRE_RELAY_MAX;
                send_piece(p, lane, bytes_of(iov[0].iov_base, len < *room ? len : *room));
        }
}

void engine_relay_send_all(struct engine *e)
{
        for (size_t i = 0; i < e->peers.count; i++) {
                struct peer *p = e->peers.all[i];
                for (unsigned lane = 0; p->relay && p->relay->up && lane < LANES && !p->lost;
                     lane++)
                        send_all(p, lane);
        }
}
