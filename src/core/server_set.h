/* A set of servers, by their numbers in the client. A value; zeros are the empty set. */
#ifndef SPANCL_CORE_SERVER_SET_H
#define SPANCL_CORE_SERVER_SET_H

#include <stdbool.h>
#include <stdint.h>

enum {
        /* Servers with which a client has sessions (CONFIG_SERVERS_MAX). */
        CLIENT_FIRST_MAX = 256,
        /* Sessions: one with each server, and 64 that follow others whose contexts are still there. */
        CLIENT_SERVERS_MAX = 320,
};

struct server_set {
        uint64_t words[CLIENT_SERVERS_MAX / 64];
};

static inline bool server_set_has(const struct server_set *s, unsigned number)
{
        return s->words[number / 64] >> number % 64 & 1;
}

static inline void server_set_add(struct server_set *s, unsigned number)
{
        s->words[number / 64] |= 1ull << number % 64;
}

static inline void server_set_remove(struct server_set *s, unsigned number)
{
        s->words[number / 64] &= ~(1ull << number % 64);
}

/* The least number of the set that is not below `from`; CLIENT_SERVERS_MAX: there is none. */
static inline unsigned server_set_next(const struct server_set *s, unsigned from)
{
        for (unsigned i = from / 64; i < CLIENT_SERVERS_MAX / 64; i++) {
                uint64_t word =
                        i == from / 64 ? s->words[i] >> from % 64 << from % 64 : s->words[i];
                if (word)
                        return i * 64 + (unsigned)__builtin_ctzll(word);
        }
        return CLIENT_SERVERS_MAX;
}

static inline bool server_set_is_empty(const struct server_set *s)
{
        uint64_t all = 0;
        for (unsigned i = 0; i < CLIENT_SERVERS_MAX / 64; i++)
                all |= s->words[i];
        return !all;
}

#endif
