#include "daemon/dialler/dial_message.h"

#include <string.h>

#include "session/hello.h"
#include "session/session.h"

enum { TIMEOUT_MS = 10000, HEAD = 16, FLAG_OWN_USER = 1, FLAG_NAMED = 2, CHECKS_SHIFT = 2 };

int dial_request_put(struct buf *b, uint64_t number, const struct dial_params *p)
{
        size_t length = strlen(p->address);
        uint64_t flags = (p->own_user ? FLAG_OWN_USER : 0) |
                         (p->fabric && p->fabric->named ? FLAG_NAMED : 0) |
                         (uint64_t)p->checks << CHECKS_SHIFT;
        struct wire_hello hello = dial_hello(p);
        hello.role = DIAL_PEER;
        hello.features = (p->share ? FEATURE_SHARED_MEMORY : 0) | (p->packs ? FEATURE_LZ4 : 0);
        hello.fabrics = bytes_str(p->fabric ? p->fabric->names : "");
        int r = length < DIAL_ADDRESS_MAX ? buf_put_u64(b, number) : SP_E_INVAL;
        if (!r)
                r = buf_put_u64(b, flags);
        if (!r)
                r = hello_put(b, &hello);
        return r < 0 ? r : buf_put(b, p->address, length);
}

/* Return true if `text` has only letters, digits and the signs of names, addresses and paths: no
 * space, and ASCII only. */
static bool is_plain(struct bytes text)
{
        const char *p = text.data;
        for (size_t i = 0; i < text.size; i++)
                if (p[i] <= ' ' || p[i] > '~')
                        return false;
        return true;
}

static bool take_text(struct bytes text, char *ret, size_t size)
{
        if (text.size >= size || !is_plain(text))
                return false;
        memcpy(ret, text.data, text.size);
        ret[text.size] = 0;
        return true;
}

/* Split the bytes behind the head: a hello exchange, and the rest. */
static int split(struct bytes data, struct bytes *ret_hello, struct bytes *ret_rest)
{
        struct bytes behind =
                data.size < HEAD ? bytes_of(NULL, 0)
                                 : bytes_of((const uint8_t *)data.data + HEAD, data.size - HEAD);
        int size = behind.size < HELLO_PREFIX ? SP_E_PROTO : hello_size(behind);
        if (size < 0 || (size_t)size > behind.size)
                return SP_E_PROTO;
        *ret_hello = bytes_of(behind.data, (size_t)size);
        *ret_rest = bytes_of((const uint8_t *)behind.data + size, behind.size - (size_t)size);
        return 0;
}

int dial_request_get(struct bytes data, struct dial_request *ret)
{
        struct bytes hello, address;
        struct wire_hello m;
        if (split(data, &hello, &address) < 0 || hello_get(hello, &m) < 0)
                return SP_E_PROTO;
        uint64_t flags = bytes_get_u64((const uint8_t *)data.data + 8);
        if (flags >> CHECKS_SHIFT > CHECKING_ON || m.lane >= SESSION_LANES || !address.size ||
            !take_text(address, ret->address, sizeof(ret->address)) ||
            !take_text(m.fabrics, ret->fabric.names, sizeof(ret->fabric.names)))
                return SP_E_PROTO;
        ret->number = bytes_get_u64(data.data);
        ret->fabric.named = flags & FLAG_NAMED;
        ret->params = (struct dial_params){
                .address = ret->address,
                .timeout_ms = TIMEOUT_MS,
                .role = DIAL_PEER,
                .lane = (unsigned)m.lane,
                .session_id = { m.session_hi, m.session_lo },
                .key = { m.key_hi, m.key_lo },
                .next_seq = m.next_seq,
                .generation = m.generation,
                .name = "peer",
                .own_user = flags & FLAG_OWN_USER,
                .share = m.features & FEATURE_SHARED_MEMORY,
                .packs = m.features & FEATURE_LZ4,
                .checks = (enum checking)(flags >> CHECKS_SHIFT),
                .fabric = &ret->fabric,
        };
        return 0;
}

int dial_answer_put(struct buf *b, uint64_t number, int status, const char *text)
{
        int r = buf_put_u64(b, number);
        if (!r)
                r = buf_put_u64(b, (uint64_t)(int64_t)status);
        return r < 0 || !text ? r : buf_put(b, text, strlen(text));
}

int dial_answer_get(struct bytes data, struct dial_answer *ret)
{
        if (data.size < HEAD)
                return SP_E_PROTO;
        int64_t status = (int64_t)bytes_get_u64((const uint8_t *)data.data + 8);
        if (status > 0 || status < -20000)
                return SP_E_PROTO;
        *ret = (struct dial_answer){ .number = bytes_get_u64(data.data), .status = (int)status };
        if (!status)
                return split(data, &ret->hello, &ret->state);
        ret->text = bytes_of((const uint8_t *)data.data + HEAD, data.size - HEAD);
        return 0;
}
