/* Ids of objects: 64 bits, chosen by the client, the same on each of its servers. The top byte is
 * the type, the rest a counter that is never reused. 0 names nothing. */
#ifndef SPANCL_PROTO_OBJECT_ID_H
#define SPANCL_PROTO_OBJECT_ID_H

#include <stdbool.h>
#include <stdint.h>

enum object_type {
        OBJECT_NONE = 0,
#define OBJECT(name, value, doc) OBJECT_##name = value,
#include "proto/schema/types.def"
        OBJECT_TYPES
};

static inline uint64_t object_id(enum object_type type, uint64_t counter)
{
        return (uint64_t)type << 56 | (counter & 0x00FFFFFFFFFFFFFFu);
}

static inline enum object_type object_id_type(uint64_t id)
{
        return (enum object_type)(id >> 56);
}

static inline bool object_id_valid(uint64_t id)
{
        uint64_t type = id >> 56;
        return type > OBJECT_NONE && type < OBJECT_TYPES && (id & 0x00FFFFFFFFFFFFFFu);
}

/* The peer that is the server itself. */
#define PEER_SELF object_id(OBJECT_PEER, 0x00FFFFFFFFFFFFFFu)

const char *object_type_name(enum object_type type);

#endif
