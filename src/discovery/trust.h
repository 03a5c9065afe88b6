/* Decides which discovered servers this user may be connected to. */
#ifndef SPANCL_DISCOVERY_TRUST_H
#define SPANCL_DISCOVERY_TRUST_H

#include "config/server_spec.h"
#include "discovery/discovered.h"

enum discovered_use {
        DISCOVERED_USED,       /* encrypted, with a key that this user knows */
        DISCOVERED_USED_HERE,  /* on this host's loopback, in the clear */
        DISCOVERED_NOT_PAIRED, /* its key is not known, or it has none */
        DISCOVERED_FOREIGN,    /* a PoCL-R server */
        DISCOVERED_OTHER,      /* speaks another version of the protocol */
};

/* The keys that the user knows: those in the list `servers` (transport/keys.h), and the user's own.
 * One owner. */
struct trust {
        char *servers;
        char own[DISCOVERED_KEY + 1]; /* "": none */
        bool logged;                  /* the error that the keys can't be read */
};

/* Read the keys. On an error, which is logged once, no key is known. */
void trust_read(struct trust *t);
void trust_fini(struct trust *t);

/* Watch the folder of the keys (os/watch.h), or its parent while there is none. -1: nothing can be watched. */
int trust_watch(void);

/* Decide whether the server may be used. `local`: the record is this user's word (a file, a program), not the
 * network's. Only such a record may name a server without a known key, and only on loopback:
 * anybody on the network can announce that 127.0.0.1 is a server. */
enum discovered_use trust_judge(const struct trust *t, const struct discovered *d, bool local);

/* Make the specification of the server at its address number `i`. The link is encrypted, and the
 * server there must have the record's key, unless `use` is USED_HERE. server_spec_fini frees it.
 * SP_E_INVAL, SP_E_NOMEM. */
SP_NODISCARD int discovered_spec(const struct discovered *d, enum discovered_use use, unsigned i,
                                 struct server_spec *ret);

#endif
