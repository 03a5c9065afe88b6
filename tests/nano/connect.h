/* The connections of a test program, by its first arguments: HOST PORT, or KEY@HOST PORT with the 64 hexadecimal digits
 * of the device's key, for TLS. */
#ifndef SPANCL_TESTS_NANO_CONNECT_H
#define SPANCL_TESTS_NANO_CONNECT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "posix/transport.h"
#ifdef HAVE_NANO_TLS
#include "tls/tls.h"
#endif

struct connect {
        struct posix_transport tcp;
        struct spancl_nano_transport plain, used;
#ifdef HAVE_NANO_TLS
        struct spancl_nano_tls tls;
        uint8_t key[SPANCL_NANO_TLS_KEY];
#endif
};

/* Return the functions to use. `random`: 32 bytes. Wrong arguments end the program. */
static inline const struct spancl_nano_transport *connect_by(struct connect *c, const char *host,
                                                             const char *port,
                                                             const uint8_t *random)
{
        const char *at = strchr(host, '@');
        *c = (struct connect){ .tcp = { .host = at ? at + 1 : host,
                                        .port = (unsigned)atoi(port) } };
        c->plain = c->used = posix_transport(&c->tcp);
        if (!at)
                return &c->used;
#ifdef HAVE_NANO_TLS
        for (unsigned i = 0; i < sizeof(c->key); i++) {
                unsigned byte;
                if (at - host != 2 * (int)sizeof(c->key) || sscanf(host + 2 * i, "%2x", &byte) != 1)
                        exit(2);
                c->key[i] = (uint8_t)byte;
        }
        c->used = spancl_nano_tls(&c->tls, &c->plain, c->key, random);
        return &c->used;
#else
        (void)random;
        exit(2);
#endif
}

/* Say why there is no connection. */
static inline void connect_explain(const struct connect *c)
{
#ifdef HAVE_NANO_TLS
        fprintf(stderr, "TLS: %s\n", spancl_nano_tls_error(&c->tls));
#else
        (void)c;
#endif
}

#endif
