/* A connection after its hello: any bytes on lane 0 and lane 1 of a session. The first byte says
 * how the stream is cut. Each piece then starts with a byte that chooses its lane, and with its
 * length. */
#include "fuzz/target.h"

#include "base/lz4.h"
#include "base/mem.h"
#include "session/session.h"

struct sink {
        struct session *session;
        uint8_t place[64];
        unsigned messages;
};

static int on_message(void *user, struct bytes msg)
{
        struct sink *s = user;
        char text[256];
        wire_print(msg, text, sizeof(text));
        if (++s->messages % 3 == 0)
                return session_send(s->session, clock_reply, .time_ns = s->messages);
        session_bulk_retry(s->session);
        return 0;
}

static int on_place(void *user, uint64_t transfer, uint64_t offset, bool inlined, size_t *len,
                    void **ret)
{
        struct sink *s = user;
        if (transfer % 5 == 4)
                return SP_E_AGAIN;
        if (transfer % 5 == 3)
                return SP_E_PROTO;
        *len = *len < sizeof(s->place) ? *len : sizeof(s->place);
        *ret = s->place;
        return 0;
}

static int on_arrived(void *user, uint64_t transfer, uint64_t offset, size_t len,
                      uint64_t *ret_below)
{
        *ret_below = offset + len;
        return transfer % 5 == 1 && offset + len >= 100;
}

static const void *bulk_at(struct session_bulk *b, uint64_t offset, size_t *ret_len)
{
        static const uint8_t data[1000];
        *ret_len = sizeof(data) - (size_t)offset % sizeof(data);
        return data + offset % sizeof(data);
}

static void bulk_done(struct session_bulk *b, int status)
{
        b->total = 0; /* its owner may use it again */
}

static void drain(struct session *s)
{
        struct iovec iov[4];
        int n;
        for (unsigned lane = 0; lane < SESSION_LANES; lane++)
                while ((n = session_lane_pending(s, lane, iov, 4)) > 0)
                        session_lane_sent(s, lane, iov[0].iov_len);
}

/* False when the session has ended. */
static bool feed(struct session *s, unsigned lane, struct bytes data)
{
        const uint8_t *p = data.data;
        while (data.size) {
                struct iovec iov[2];
                int n = session_lane_want(s, lane, iov);
                if (n <= 0)
                        return n == 0;
                size_t given = 0;
                for (int i = 0; i < n && given < data.size; i++) {
                        size_t len = iov[i].iov_len;
                        len = len < data.size - given ? len : data.size - given;
                        memcpy(iov[i].iov_base, p + given, len);
                        given += len;
                }
                p += given;
                data.size -= given;
                if (session_lane_received(s, lane, given) < 0)
                        return false;
                struct session_packed_frame u;
                if (lane && session_lane_closed(s, lane, &u)) {
                        bool good = lz4_is_here() &&
                                    lz4_unpack(u.packed.data, u.packed.size, u.to, u.size);
                        if (session_lane_unpacked(s, lane, good) < 0)
                                return false;
                }
        }
        return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct session_ops ops = { on_message, on_place, on_arrived };
        struct sink sink = { 0 };
        struct session_bulk bulk = {
                .transfer = 6, .total = 50000, .at = bulk_at, .done = bulk_done
        };
        struct session_params params = { .ops = &ops, .user = &sink, .window_bytes = 1000 };
        if (session_new(&params, &sink.session) < 0)
                return 0;
        struct session *s = sink.session;
        for (unsigned lane = 0; lane < SESSION_LANES; lane++)
                fuzz_check(session_lane_up(s, lane, 0) == 0);
        session_lane_packs(s, 1);
        fuzz_check(session_send(s, clock_query, .time_ns = 1) == 0);
        fuzz_check(session_bulk_send(s, &bulk, 50000) == 0);
        drain(s);
        while (size > 1) {
                unsigned lane = data[0] & 1;
                bool cut = data[0] == 0xFE;
                size_t len = data[0] & 2 ? data[1] * 64u : data[1];
                data += 2;
                size -= 2;
                len = len < size ? len : size;
                if (!feed(s, lane, bytes_of(data, len)))
                        break;
                data += len;
                size -= len;
                drain(s);
                if (cut) {
                        session_lane_down(s, lane);
                        if (session_lane_up(s, lane, len) < 0)
                                break;
                        if (lane)
                                session_lane_packs(s, lane);
                }
        }
        session_free(s);
        return 0;
}
