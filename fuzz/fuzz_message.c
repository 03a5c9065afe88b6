/* Messages of a client, or of a peer, to a real engine with the reference backend. The input is a
 * sequence of messages as on the wire; their size fields are corrected, so that what arrives are whole
 * frames with messages that may be anything. Ids that the schema does not know are instructions:
 *
 *   0xFF00 + k   what follows the header are raw bytes for lane 1, as transfer k in one BULK frame
 *   0xFC00 + k   the same on lane 2, with the frame's size and its offset (u32 each) in front: perhaps not all of the
 *                bytes come
 *   0xFB00       more bytes for lane 2
 *   0xFE00       let the backend run commands
 *   0xFD00 + k   the messages behind it come from the k-th session (0: the client, others: peers)
 */
#include "fuzz/target.h"

#include "backend/reference/reference.h"
#include "base/log.h"
#include "base/mem.h"
#include "engine/engine.h"

enum {
        MESSAGES_MAX = 200,
        BULK = 0xFF00,
        STEP = 0xFE00,
        SESSION = 0xFD00,
        PART = 0xFC00,
        REST = 0xFB00
};

static void on_flush(void *user, struct session *s)
{
}

static void on_dial(void *user, struct session *s, uint64_t peer, const char *host, unsigned port,
                    const char *local_path, const uint64_t session_id[2], const uint64_t token[2])
{
        fuzz_check(strlen(host) <= 1024 && port <= 65535);
        for (unsigned lane = 0; peer % 2 && lane < SESSION_LANES; lane++)
                fuzz_check(session_lane_up(s, lane, 0) == 0);
}

static void on_hang_up(void *user, struct session *s)
{
        for (unsigned lane = 0; lane < SESSION_LANES; lane++)
                session_lane_down(s, lane);
}

static uint64_t on_now(void *user)
{
        return ++*(uint64_t *)user;
}

static const struct engine_ops ops = {
        .flush = on_flush,
        .dial = on_dial,
        .hang_up = on_hang_up,
        .relayed = on_hang_up,
        .now_ns = on_now,
};

/* Discard the session's output. */
static void drain(struct session *s)
{
        struct iovec iov[16];
        for (unsigned lane = 0; lane < SESSION_LANES; lane++) {
                int n;
                while ((n = session_lane_pending(s, lane, iov, 16)) > 0) {
                        size_t size = 0;
                        for (int i = 0; i < n; i++)
                                size += iov[i].iov_len;
                        session_lane_sent(s, lane, size);
                }
        }
}

static int feed(struct session *s, unsigned lane, const void *data, size_t size)
{
        const uint8_t *p = data;
        while (size) {
                struct iovec iov[2];
                int n = session_lane_want(s, lane, iov);
                if (n <= 0)
                        return n; /* a bulk lane that waits drops the rest */
                size_t len = iov[0].iov_len < size ? iov[0].iov_len : size;
                memcpy(iov[0].iov_base, p, len);
                p += len;
                size -= len;
                int r = session_lane_received(s, lane, len);
                if (r < 0)
                        return r;
        }
        return 0;
}

static int feed_frame(struct session *s, unsigned lane, struct frame *f, const void *payload)
{
        uint8_t h[FRAME_HEADER_SIZE];
        frame_put(h, f);
        int r = feed(s, lane, h, sizeof(h));
        return r < 0 ? r : feed(s, lane, payload, f->size);
}

/* One message of the input to session s, or one instruction. */
static int one(struct engine *e, struct session **s, uint64_t *now, uint8_t *msg, size_t size)
        REQUIRES(engine_held)
{
        unsigned id = wire_message_id(msg), k = id & 0xFF;
        switch (id & 0xFF00) {
        case BULK: {
                struct frame f = { (uint32_t)(size - WIRE_HEADER_SIZE), FRAME_BULK, 0, k, 0 };
                return k && f.size ? feed_frame(*s, 1, &f, msg + WIRE_HEADER_SIZE) : 0;
        }
        case PART: {
                const uint8_t *p = msg + WIRE_HEADER_SIZE;
                uint8_t h[FRAME_HEADER_SIZE];
                if (!k || size < WIRE_HEADER_SIZE + 8)
                        return 0;
                struct frame f = { bytes_get_u32(p), FRAME_BULK, 0, k, bytes_get_u32(p + 4) };
                frame_put(h, &f);
                int r = feed(*s, 2, h, sizeof(h));
                return r < 0 ? r : feed(*s, 2, p + 8, size - WIRE_HEADER_SIZE - 8);
        }
        case REST:
                return feed(*s, 2, msg + WIRE_HEADER_SIZE, size - WIRE_HEADER_SIZE);
        case STEP:
                engine_settle(e);
                engine_unlock(e);
                backend_reference_step(engine_backend(e), 10);
                engine_lock(e);
                return engine_deadline(e) == UINT64_MAX ? 0 : engine_expire(e, on_now(now));
        case SESSION: {
                struct session *other = engine_session_at(e, k);
                if (!other)
                        return 0;
                *s = other;
                for (unsigned lane = 0; lane < SESSION_LANES; lane++)
                        if (!session_lane_is_up(other, lane) && session_lane_up(other, lane, 0) < 0)
                                return SP_E_GONE;
                return 0;
        }
        default: {
                bytes_put_u32(msg + 4, (uint32_t)size);
                struct frame f = { (uint32_t)size, FRAME_DATA, 1, session_next_seq(*s), 0 };
                return feed_frame(*s, 0, &f, msg);
        }
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        uint64_t now = 0;
        struct engine *e;
        log_threshold = LOG_ERROR;
        backend_reference_manual = true;
        backend_reference_seed = size + 1;
        uint8_t *copy = mem_dup(data, size);
        /* Some sessions may have little. */
        const struct engine_limits few = {
                .max = { [LIMIT_OBJECTS] = 12,
                         [LIMIT_PROGRAMS] = 2,
                         [LIMIT_STORAGE] = 1 << 16,
                         [LIMIT_TRANSFERS] = 1 << 16,
                         [LIMIT_RUN_NS] = size % 8 == 7 ? 100 : 0 },
        };
        struct engine_limits limits = { .max = { 0 } };
        if (size % 4 == 3)
                limits = few;
        if (!copy || engine_new(&(struct engine_params){ .backend = &backend_reference,
                                                         .limits = limits,
                                                         .ops = &ops,
                                                         .user = &now,
                                                         .single_threaded = true },
                                &e) < 0)
                abort();
        engine_lock(e);
        struct session *s = engine_session(e);
        for (unsigned lane = 0; lane < SESSION_LANES; lane++)
                fuzz_check(session_lane_up(s, lane, 0) == 0);

        unsigned messages = 0;
        for (size_t at = 0; size - at >= WIRE_HEADER_SIZE && messages < MESSAGES_MAX; messages++) {
                size_t len = wire_message_size(copy + at) & ~(size_t)7;
                size_t left = (size - at) & ~(size_t)7;
                len = len < WIRE_HEADER_SIZE ? WIRE_HEADER_SIZE : len;
                len = len < left ? len : left;
                int r = one(e, &s, &now, copy + at, len);
                for (size_t i = 0; engine_session_at(e, i); i++)
                        drain(engine_session_at(e, i));
                if (r < 0)
                        break;
                at += len;
        }
        engine_settle(e);
        engine_unlock(e);
        backend_reference_step(engine_backend(e), SIZE_MAX);
        engine_lock(e);
        for (size_t i = 0; engine_session_at(e, i); i++)
                drain(engine_session_at(e, i));
        engine_unlock(e);
        engine_free(e);
        mem_free(copy);
        return 0;
}

/* ---- a mutator that knows messages ---------------------------------------------------------- */

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size) __attribute__((weak));
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed);

/* Where the k-th message begins, and its length; 0: there is none. */
static size_t message_at(const uint8_t *data, size_t size, size_t k, size_t *ret_at)
{
        for (size_t at = 0; size - at >= WIRE_HEADER_SIZE; k--) {
                size_t len = wire_message_size(data + at) & ~(size_t)7;
                len = len < WIRE_HEADER_SIZE ? WIRE_HEADER_SIZE : len;
                len = len < size - at ? len : size - at;
                *ret_at = at;
                if (!k)
                        return len;
                at += len;
        }
        return 0;
}

static unsigned next(unsigned *seed)
{
        *seed = *seed * 1103515245u + 12345u;
        return *seed >> 8;
}

/* Values that mean something in some field. */
static uint64_t any_value(unsigned *seed)
{
        static const uint64_t plain[] = { 0,         1,          2,          3,
                                          8,         64,         4096,       16384,
                                          1u << 20,  1ull << 32, UINT64_MAX, UINT64_MAX - 7,
                                          1ull << 63 };
        unsigned how = next(seed) % 4;
        if (how == 0)
                return plain[next(seed) % array_size(plain)];
        if (how == 1)
                return next(seed) % 64;
        return object_id(1 + next(seed) % (OBJECT_TYPES - 1), 1 + next(seed) % 8);
}

static size_t insert(uint8_t *data, size_t size, size_t max, size_t at, struct bytes msg)
{
        if (!msg.size || size + msg.size > max)
                return size;
        memmove(data + at + msg.size, data + at, size - at);
        memcpy(data + at, msg.data, msg.size);
        return size + msg.size;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size, unsigned seed)
{
        size_t count = 0, at = 0, len, grown = size;
        struct buf fresh = { 0 };
        while ((len = message_at(data, size, count, &at)))
                count++;
        len = count ? message_at(data, size, next(&seed) % count, &at) : 0;
        switch (next(&seed) % 8) {
        case 0: { /* a new message */
                unsigned kinds = 0;
                while (wire_id_at(kinds))
                        kinds++;
                (void)!wire_sample(&fresh, wire_id_at(next(&seed) % kinds));
                grown = insert(data, size, max_size, at, bytes_of(fresh.data, fresh.size));
                break;
        }
        case 1: /* an instruction */
                (void)!buf_put_u64(&fresh,
                                   (0xFB + next(&seed) % 5) << 8 | next(&seed) % 8 | 24ull << 32);
                (void)!buf_put_u64(&fresh, any_value(&seed));
                (void)!buf_put_u64(&fresh, any_value(&seed));
                grown = insert(data, size, max_size, at, bytes_of(fresh.data, fresh.size));
                break;
        case 2: /* the same once more */
                (void)!buf_put(&fresh, data + at, len);
                grown = insert(data, size, max_size, size, bytes_of(fresh.data, fresh.size));
                break;
        case 3: /* without it */
                memmove(data + at, data + at + len, size - at - len);
                grown = size - len;
                break;
        case 4:
                grown = LLVMFuzzerMutate ? LLVMFuzzerMutate(data, size, max_size) : size;
                break;
        default: /* another value in one of its slots */
                if (len >= 16)
                        bytes_put_u64(data + at + 8 * (1 + next(&seed) % (len / 8 - 1)),
                                      any_value(&seed));
        }
        buf_fini(&fresh);
        return grown;
}
