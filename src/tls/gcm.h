/* AES-128-GCM for TLS 1.3 records by libipsec-mb, which uses the wide AES instructions (VAES, AVX-512) that OpenSSL has
 * code for from 3.1 on only: with them a core seals and opens about three times as much. Keys and nonces are the
 * caller's. One owner at a time. */
#ifndef SPANCL_TLS_GCM_H
#define SPANCL_TLS_GCM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/iovec.h"

enum { GCM_KEY = 16, GCM_NONCE = 12, GCM_TAG = 16 };

struct gcm;

/* NULL: OpenSSL is as good here (the library was not there when this was built, or the processor has no such
 * instructions), or there is no memory. */
struct gcm *gcm_new(const uint8_t key[GCM_KEY]);
void gcm_free(struct gcm *g); /* NULL allowed */

/* The pieces, `type` behind them, and their tag to `out`; `head` is authenticated, too. */
void gcm_seal(struct gcm *g, const uint8_t nonce[GCM_NONCE], const uint8_t head[5],
              const struct iovec *pieces, int n, uint8_t type, uint8_t *out);

/* Open: `in` is the content for the places, then the type and the tag. False: not genuine; the
 * places were written nevertheless. */
bool gcm_open(struct gcm *g, const uint8_t nonce[GCM_NONCE], const uint8_t head[5],
              const uint8_t *in, const struct iovec *places, int n, uint8_t *ret_type);

#endif
