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
        uint64_t
                used; /* bit i: words[i] is not 0. Most sets are empty, and are asked for each command. */
};

static inline bool server_set_has(const struct server_set *s, unsigned number)
{
        return s->words[number / 64] >> number % 64 & 1;
}

static inline void server_set_add(struct server_set *s, unsigned number)
{
        s->words[number / 64] |= 1ull << number % 64;
        s->used |= 1ull << number / 64;
}

static inline void server_set_remove(struct server_set *s, unsigned number)
{
        s->words[number / 64] &= ~(1ull << number % 64);
        if (!s->words[number / 64])
                s->used &= ~(1ull << number / 64);
}

/* The least number of the set that is not below `from`; CLIENT_SERVERS_MAX: there is none. */
static inline unsigned server_set_next(const struct server_set *s, unsigned from)
{
        if (from >= CLIENT_SERVERS_MAX)
                return CLIENT_SERVERS_MAX;
        uint64_t word = s->words[from / 64] >> from % 64 << from % 64;
        unsigned i = from / 64;
        if (!word) {
                uint64_t later = s->used & ~0ull << (i + 1);
                if (!later)
                        return CLIENT_SERVERS_MAX;
                i = (unsigned)__builtin_ctzll(later);
                word = s->words[i];
        }
        return i * 64 + (unsigned)__builtin_ctzll(word);
}

/* For each number `i` of the set, in ascending order. The body may remove it. */
#define server_set_each(i, set)                                              \
        for (unsigned i = server_set_next((set), 0); i < CLIENT_SERVERS_MAX; \
             i = server_set_next((set), i + 1))

static inline bool server_set_is_empty(const struct server_set *s)
{
        return !s->used;
}

#endif
