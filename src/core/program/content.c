#include "core/program/content.h"

#include "core/link/server.h"

int content_name(struct server *s, struct bytes data, enum content_mode mode,
                 struct content_name *ret)
{
        *ret = (struct content_name){ .data = data };
        if (data.size <= CONTENT_INLINE_MAX)
                return 0;
        blake2b_of(data, ret->bytes);
        /* A digest is as good a hash as any. */
        uint64_t key = bytes_get_u64(ret->bytes) | 1;
        bool known = mode != CONTENT_SEND && map_get(&s->contents, key);
        if (mode == CONTENT_HOPE)
                known |= data.size >= CONTENT_LARGE && !s->spec->in_process;
        if (!known) {
                struct session *session = server_session(s);
                int r = session ? session_send(session, content, .data = data) : SP_E_GONE;
                if (r < 0)
                        return r;
                if (s->contents.count >= CONTENT_KNOWN_MAX)
                        map_fini(&s->contents);
                /* Not remembered, it is sent again. */
                (void)!map_put(&s->contents, key, s);
        }
        ret->data = bytes_of(NULL, 0);
        ret->digest = bytes_of(ret->bytes, sizeof(ret->bytes));
        return 0;
}
