#include "gcm.h"

#ifdef SPANCL_IPSEC_MB

#include <stdlib.h>
#include <string.h>

#include <intel-ipsec-mb.h>
#include <openssl/crypto.h>

#include "os/once.h"

enum { ALIGNED = 64 }; /* of keys, as the library wants it */

struct gcm {
        _Alignas(ALIGNED) struct gcm_key_data key;
        struct gcm_context_data record;
};

/* The library's functions for this processor; NULL: it has none that are worth it. */
static IMB_MGR *functions;

static void choose(void)
{
        const uint64_t wide = IMB_FEATURE_VAES | IMB_FEATURE_VPCLMULQDQ | IMB_FEATURE_AVX512_SKX;
        IMB_MGR *m = alloc_mb_mgr(0);
        if (!m)
                return;
        if ((m->features & wide) == wide)
                init_mb_mgr_auto(m, NULL);
        if ((m->features & wide) == wide && !imb_get_errno(m) && m->gcm128_enc_update)
                functions = m;
        else
                free_mb_mgr(m);
}

struct gcm *gcm_new(const uint8_t key[GCM_KEY])
{
        static struct once once = ONCE_INIT;
        once_run(&once, choose);
        if (!functions)
                return NULL;
        struct gcm *g = aligned_alloc(ALIGNED, sizeof(*g));
        if (!g)
                return NULL;
        memset(g, 0, sizeof(*g));
        IMB_AES128_GCM_PRE(functions, key, &g->key);
        return g;
}

void gcm_free(struct gcm *g)
{
        if (!g)
                return;
        OPENSSL_cleanse(g, sizeof(*g));
        free(g);
}

void gcm_seal(struct gcm *g, const uint8_t nonce[GCM_NONCE], const uint8_t head[5],
              const struct iovec *pieces, int n, uint8_t type, uint8_t *out)
{
        IMB_AES128_GCM_INIT(functions, &g->key, &g->record, nonce, head, 5);
        for (int i = 0; i < n; i++) {
                IMB_AES128_GCM_ENC_UPDATE(functions, &g->key, &g->record, out, pieces[i].iov_base,
                                          pieces[i].iov_len);
                out += pieces[i].iov_len;
        }
        IMB_AES128_GCM_ENC_UPDATE(functions, &g->key, &g->record, out, &type, 1);
        IMB_AES128_GCM_ENC_FINALIZE(functions, &g->key, &g->record, out + 1, GCM_TAG);
}

bool gcm_open(struct gcm *g, const uint8_t nonce[GCM_NONCE], const uint8_t head[5],
              const uint8_t *in, const struct iovec *places, int n, uint8_t *ret_type)
{
        uint8_t tag[GCM_TAG];
        IMB_AES128_GCM_INIT(functions, &g->key, &g->record, nonce, head, 5);
        for (int i = 0; i < n; i++) {
                IMB_AES128_GCM_DEC_UPDATE(functions, &g->key, &g->record, places[i].iov_base, in,
                                          places[i].iov_len);
                in += places[i].iov_len;
        }
        IMB_AES128_GCM_DEC_UPDATE(functions, &g->key, &g->record, ret_type, in, 1);
        IMB_AES128_GCM_DEC_FINALIZE(functions, &g->key, &g->record, tag, GCM_TAG);
        return CRYPTO_memcmp(tag, in + 1, GCM_TAG) == 0;
}

#else

struct gcm *gcm_new(const uint8_t key[GCM_KEY])
{
        (void)key;
        return NULL;
}

void gcm_free(struct gcm *g)
{
        (void)g;
}

void gcm_seal(struct gcm *g, const uint8_t nonce[GCM_NONCE], const uint8_t head[5],
              const struct iovec *pieces, int n, uint8_t type, uint8_t *out)
{
        __builtin_unreachable();
}

bool gcm_open(struct gcm *g, const uint8_t nonce[GCM_NONCE], const uint8_t head[5],
              const uint8_t *in, const struct iovec *places, int n, uint8_t *ret_type)
{
        __builtin_unreachable();
}

#endif
