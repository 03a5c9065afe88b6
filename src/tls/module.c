/* The table of transport/crypto.h over OpenSSL 3: a module of its own, which nothing links with. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/kdf.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "gcm.h"
#include "transport/crypto.h"

#define PROTOCOL "\x08spancl/1" /* RFC 7301: another service's TLS is not taken for ours */

enum {
        RECORD_SIZE_LIMIT = 28, /* the extension of RFC 8449 */
        SERIAL_BITS = 127,
        LABEL_MAX = 32,
        /* Limit of the certificates that a stranger may make us store and verify: far more than a
         * usual chain. */
        CERTIFICATES_BYTES = 16 << 10,
        CERTIFICATES_DEPTH = 8,
};

struct crypto_context {
        atomic_uint refs; /* its owner's and its handshakes' */
        SSL_CTX *ssl;
        bool server, authority;
};

struct crypto_shake {
        SSL *ssl;
        BIO *in, *out;                  /* the SSL's */
        struct crypto_context *context; /* held */
        struct crypto_psk psk;
        bool (*find)(void *user, struct crypto_psk *psk);
        void *user;
        uint8_t client_secret[CRYPTO_SECRET], server_secret[CRYPTO_SECRET];
        unsigned secrets;       /* how many of them are known */
        struct crypto_psk used; /* without its secret */
        unsigned record_max;
};

struct crypto_key {
        struct gcm *gcm;        /* NULL: `cipher` it is */
        EVP_CIPHER_CTX *cipher; /* NULL: `gcm` it is */
        uint8_t iv[CRYPTO_NONCE];
};

/* Why OpenSSL failed, in its words. */
static void explain(char text[CRYPTO_TEXT_MAX], const char *otherwise)
{
        unsigned long e = ERR_peek_last_error();
        const char *reason = e ? ERR_reason_error_string(e) : NULL;
        snprintf(text, CRYPTO_TEXT_MAX, "%s", reason ? reason : otherwise);
        ERR_clear_error();
}

/* Why a handshake failed, in words that tell a user what to do. */
static void explain_handshake(char text[CRYPTO_TEXT_MAX])
{
        unsigned long e = ERR_peek_last_error();
        int reason = ERR_GET_REASON(e);
        const char *why = "the handshake failed: are both sides of the same version?";
        if (e && ERR_GET_LIB(e) == ERR_LIB_SSL && reason >= SSL_AD_REASON_OFFSET)
                why = "the other side refused the handshake: its keys, its token or its code are others; its log "
                      "says more";
        else if (e && ERR_GET_LIB(e) == ERR_LIB_SSL && reason == SSL_R_WRONG_VERSION_NUMBER)
                why = "the other side does not encrypt (TLS): is it spancld, and the right port?";
        snprintf(text, CRYPTO_TEXT_MAX, "%s", why);
        ERR_clear_error();
}

static bool fingerprint_of(X509 *cert, uint8_t ret[CRYPTO_FINGERPRINT])
{
        unsigned char *der = NULL;
        int n = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(cert), &der);
        bool ok = n > 0 && EVP_Digest(der, (size_t)n, ret, NULL, EVP_sha256(), NULL) == 1;
        OPENSSL_free(der);
        return ok;
}

/* ---- contexts ------------------------------------------------------------------------------- */

/* Certificates are judged by their fingerprint, or by the authority, when the handshake is over. */
static int accept_any(int ok, X509_STORE_CTX *store)
{
        (void)ok;
        (void)store;
        return 1;
}

static int select_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_size,
                           const unsigned char *in, unsigned in_size, void *user)
{
        (void)ssl;
        (void)user;
        unsigned char *found;
        if (SSL_select_next_proto(&found, out_size, (const unsigned char *)PROTOCOL,
                                  sizeof(PROTOCOL) - 1, in, in_size) != OPENSSL_NPN_NEGOTIATED)
                return SSL_TLSEXT_ERR_ALERT_FATAL;
        *out = found;
        return SSL_TLSEXT_ERR_OK;
}

static int hex_digit(char c)
{
        return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* "LABEL CLIENT_RANDOM SECRET", the format of SSLKEYLOGFILE, in which OpenSSL reports its
 * secrets. */
static void on_secret(const SSL *ssl, const char *line)
{
        struct crypto_shake *s = SSL_get_app_data(ssl);
        static const char client[] = "CLIENT_TRAFFIC_SECRET_0 ",
                          server[] = "SERVER_TRAFFIC_SECRET_0 ";
        bool is_client = !strncmp(line, client, sizeof(client) - 1);
        if (!is_client && strncmp(line, server, sizeof(server) - 1) != 0)
                return;
        const char *hex = strrchr(line, ' ') + 1;
        if (strlen(hex) != 2 * CRYPTO_SECRET)
                return; /* a cipher that we did not offer */
        uint8_t *out = is_client ? s->client_secret : s->server_secret;
        for (int i = 0; i < CRYPTO_SECRET; i++)
                out[i] = (uint8_t)(hex_digit(hex[2 * i]) << 4 | hex_digit(hex[2 * i + 1]));
        s->secrets |= is_client ? 1 : 2;
}

static SSL_SESSION *session_of(SSL *ssl, const struct crypto_psk *psk)
{
        /* A secret belongs to a hash, and both ciphers have that of this one. */
        static const unsigned char aes_128_gcm_sha256[] = { 0x13, 0x01 };
        const SSL_CIPHER *cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
        SSL_SESSION *session = SSL_SESSION_new();
        if (session && cipher && SSL_SESSION_set1_master_key(session, psk->secret, CRYPTO_SECRET) &&
            SSL_SESSION_set_cipher(session, cipher) &&
            SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION))
                return session;
        SSL_SESSION_free(session);
        return NULL;
}

static int offer_psk(SSL *ssl, const EVP_MD *md, const unsigned char **id, size_t *id_size,
                     SSL_SESSION **ret)
{
        struct crypto_shake *s = SSL_get_app_data(ssl);
        *ret = NULL;
        if (!s->psk.name[0] || (md && !EVP_MD_is_a(md, "SHA256")))
                return 1;
        *ret = session_of(ssl, &s->psk);
        *id = (const unsigned char *)s->psk.name;
        *id_size = strlen(s->psk.name);
        return *ret != NULL;
}

static int find_psk(SSL *ssl, const unsigned char *id, size_t size, SSL_SESSION **ret)
{
        struct crypto_shake *s = SSL_get_app_data(ssl);
        struct crypto_psk psk = { 0 };
        *ret = NULL;
        if (!s->find || size > CRYPTO_NAME_MAX)
                return 1;
        memcpy(psk.name, id, size);
        if (!s->find(s->user, &psk))
                return 1;
        *ret = session_of(ssl, &psk);
        s->used = psk;
        OPENSSL_cleanse(s->used.secret, sizeof(s->used.secret));
        OPENSSL_cleanse(&psk, sizeof(psk));
        return *ret != NULL;
}

/* The limit of the client's records (RFC 8449, 4), which counts the byte of the type, too. */
static int take_limit(SSL *ssl, unsigned type, unsigned context, const unsigned char *in,
                      size_t size, X509 *cert, size_t index, int *alert, void *user)
{
        struct crypto_shake *s = SSL_get_app_data(ssl);
        const unsigned limit = size == 2 ? (unsigned)in[0] << 8 | in[1] : 0;
        (void)type;
        (void)context;
        (void)cert;
        (void)index;
        (void)user;
        *alert = SSL_AD_ILLEGAL_PARAMETER;
        if (limit <= CRYPTO_RECORD_MIN)
                return 0;
        s->record_max = limit <= CRYPTO_RECORD_MAX ? limit - 1 : CRYPTO_RECORD_MAX;
        return 1;
}

/* Our own limit is the protocol's. */
static int answer_limit(SSL *ssl, unsigned type, unsigned context, const unsigned char **out,
                        size_t *size, X509 *cert, size_t index, int *alert, void *user)
{
        static const unsigned char largest[] = { (CRYPTO_RECORD_MAX + 1) >> 8,
                                                 (CRYPTO_RECORD_MAX + 1) & 255 };
        (void)ssl;
        (void)type;
        (void)context;
        (void)cert;
        (void)index;
        (void)alert;
        (void)user;
        *out = largest;
        *size = sizeof(largest);
        return 1;
}

/* The private key and the certificates, leaf first, of one text. */
static bool use_identity(SSL_CTX *ssl, const char *pem)
{
        BIO *b = BIO_new_mem_buf(pem, -1);
        EVP_PKEY *key = b ? PEM_read_bio_PrivateKey(b, NULL, NULL, NULL) : NULL;
        bool ok = key && BIO_reset(b) == 1 && SSL_CTX_use_PrivateKey(ssl, key) == 1;
        bool leaf = true;
        for (X509 *cert; ok && (cert = PEM_read_bio_X509(b, NULL, NULL, NULL)); leaf = false) {
                ok = (leaf ? SSL_CTX_use_certificate(ssl, cert)
                           : (int)SSL_CTX_add1_chain_cert(ssl, cert)) == 1;
                X509_free(cert);
        }
        ok = ok && !leaf;
        EVP_PKEY_free(key);
        BIO_free(b);
        if (ok)
                ERR_clear_error(); /* of the end of the text */
        return ok && SSL_CTX_check_private_key(ssl) == 1;
}

static bool use_authority(SSL_CTX *ssl, const char *pem)
{
        BIO *b = BIO_new_mem_buf(pem, -1);
        X509_STORE *store = SSL_CTX_get_cert_store(ssl);
        bool ok = b && store, any = false;
        for (X509 *cert; ok && (cert = PEM_read_bio_X509(b, NULL, NULL, NULL)); any = true) {
                ok = X509_STORE_add_cert(store, cert) == 1;
                X509_free(cert);
        }
        BIO_free(b);
        if (ok && any)
                ERR_clear_error();
        return ok && any;
}

/* Whichever this processor computes faster comes first. */
static const char *suites(void)
{
#if defined(__x86_64__) || defined(__i386__)
        bool aes = __builtin_cpu_supports("aes");
#elif defined(__aarch64__)
        bool aes = true;
#else
        bool aes = false;
#endif
        return aes ? "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256"
                   : "TLS_CHACHA20_POLY1305_SHA256:TLS_AES_128_GCM_SHA256";
}

static void context_free(struct crypto_context *c)
{
        if (!c || atomic_fetch_sub(&c->refs, 1) != 1)
                return;
        SSL_CTX_free(c->ssl);
        free(c);
}

static bool context_init(struct crypto_context *c, const struct crypto_params *p)
{
        SSL_CTX *s = c->ssl = SSL_CTX_new(p->server ? TLS_server_method() : TLS_client_method());
        if (!s || !SSL_CTX_set_min_proto_version(s, TLS1_3_VERSION) ||
            !SSL_CTX_set_ciphersuites(s, suites()) || !SSL_CTX_set_num_tickets(s, 0))
                return false;
        SSL_CTX_set_session_cache_mode(s, SSL_SESS_CACHE_OFF);
        SSL_CTX_set_options(s, SSL_OP_NO_TICKET | SSL_OP_PRIORITIZE_CHACHA |
                                       SSL_OP_CIPHER_SERVER_PREFERENCE);
        SSL_CTX_set_verify(s, SSL_VERIFY_PEER, accept_any);
        SSL_CTX_set_verify_depth(s, CERTIFICATES_DEPTH);
        SSL_CTX_set_max_cert_list(s, CERTIFICATES_BYTES);
        SSL_CTX_set_keylog_callback(s, on_secret);
        if (p->server) {
                /* OpenSSL wants one for secrets, which it treats as sessions. */
                if (!SSL_CTX_set_session_id_context(s, (const unsigned char *)"spancl", 6))
                        return false;
                SSL_CTX_set_alpn_select_cb(s, select_protocol, NULL);
                SSL_CTX_set_psk_find_session_callback(s, find_psk);
                SSL_CTX_set_options(s, SSL_OP_ALLOW_NO_DHE_KEX); /* lacks_exchange */
                /* A version of OpenSSL that knows the extension takes no other handler for it. */
                if (!SSL_extension_supported(RECORD_SIZE_LIMIT) &&
                    !SSL_CTX_add_custom_ext(s, RECORD_SIZE_LIMIT,
                                            SSL_EXT_TLS1_3_ONLY | SSL_EXT_CLIENT_HELLO |
                                                    SSL_EXT_TLS1_3_ENCRYPTED_EXTENSIONS,
                                            answer_limit, NULL, NULL, take_limit, NULL))
                        return false;
        } else {
                if (SSL_CTX_set_alpn_protos(s, (const unsigned char *)PROTOCOL,
                                            sizeof(PROTOCOL) - 1))
                        return false;
                SSL_CTX_set_psk_use_session_callback(s, offer_psk);
        }
        c->server = p->server;
        c->authority = p->authority != NULL;
        return (!p->identity || use_identity(s, p->identity)) &&
               (!p->authority || use_authority(s, p->authority));
}

static struct crypto_context *context_new(const struct crypto_params *p, char text[CRYPTO_TEXT_MAX])
{
        struct crypto_context *c = calloc(1, sizeof(*c));
        ERR_clear_error();
        if (c)
                atomic_init(&c->refs, 1);
        if (c && context_init(c, p))
                return c;
        explain(text, "not a private key with its certificate");
        context_free(c);
        return NULL;
}

/* ---- handshakes ----------------------------------------------------------------------------- */

static void shake_free(struct crypto_shake *s)
{
        if (!s)
                return;
        SSL_free(s->ssl); /* and its BIOs */
        context_free(s->context);
        OPENSSL_cleanse(s, sizeof(*s));
        free(s);
}

/* An IP address is no name to ask for (RFC 6066), but one to verify. */
static bool set_host(struct crypto_shake *s, const char *host)
{
        X509_VERIFY_PARAM *param = SSL_get0_param(s->ssl);
        if (X509_VERIFY_PARAM_set1_ip_asc(param, host))
                return true;
        ERR_clear_error();
        return X509_VERIFY_PARAM_set1_host(param, host, 0) == 1 &&
               SSL_set_tlsext_host_name(s->ssl, host) == 1;
}

static struct crypto_shake *shake_new(struct crypto_context *c, const char *host,
                                      const struct crypto_psk *psk,
                                      bool (*find)(void *user, struct crypto_psk *psk), void *user)
{
        struct crypto_shake *s = calloc(1, sizeof(*s));
        if (!s)
                return NULL;
        s->context = c;
        s->record_max = CRYPTO_RECORD_MAX;
        atomic_fetch_add(&c->refs, 1);
        s->find = find;
        s->user = user;
        if (psk)
                s->psk = *psk;
        s->ssl = SSL_new(c->ssl);
        s->in = BIO_new(BIO_s_mem());
        s->out = BIO_new(BIO_s_mem());
        if (!s->ssl || !s->in || !s->out || (host && !set_host(s, host))) {
                BIO_free(s->in);
                BIO_free(s->out);
                shake_free(s);
                return NULL;
        }
        SSL_set_bio(s->ssl, s->in, s->out);
        SSL_set_app_data(s->ssl, s);
        if (c->server)
                SSL_set_accept_state(s->ssl);
        else
                SSL_set_connect_state(s->ssl);
        return s;
}

/* Return true if the secrets of the connection depend on a shared secret alone, whose owner may not do without a
 * Diffie-Hellman exchange. */
static bool lacks_exchange(const struct crypto_shake *s)
{
        return s->context->server && SSL_session_reused(s->ssl) && !s->used.known &&
               !SSL_get_negotiated_group(s->ssl);
}

static int shake_step(struct crypto_shake *s, const void *data, size_t size,
                      char text[CRYPTO_TEXT_MAX])
{
        ERR_clear_error();
        if (size && BIO_write(s->in, data, (int)size) != (int)size) {
                explain(text, "out of memory");
                return -1;
        }
        int r = SSL_do_handshake(s->ssl);
        if (r == 1 && lacks_exchange(s)) {
                snprintf(text, CRYPTO_TEXT_MAX, "the client made no Diffie-Hellman exchange");
                return -1;
        }
        if (r == 1)
                return s->secrets == 3 ? 1 : -1;
        if (SSL_get_error(s->ssl, r) == SSL_ERROR_WANT_READ)
                return 0;
        explain_handshake(text);
        return -1;
}

static size_t shake_output(struct crypto_shake *s, void *out, size_t size)
{
        int n = BIO_read(s->out, out, size > 65536 ? 65536 : (int)size);
        return n > 0 ? (size_t)n : 0;
}

/* The keys that handed over to the key of `cert`, one after the other. */
static void find_before(X509 *cert, STACK_OF(X509) * chain, struct crypto_result *r)
{
        int n = sk_X509_num(chain);
        for (int i = 0; i < n && r->before_count < CRYPTO_BEFORE_MAX; i++) {
                X509 *other = sk_X509_value(chain, i);
                if (!i && !X509_cmp(other, cert))
                        continue; /* a client's chain begins with it */
                if (X509_verify(cert, X509_get0_pubkey(other)) != 1 ||
                    !fingerprint_of(other, r->before[r->before_count]))
                        break;
                r->before_count++;
                cert = other;
        }
        ERR_clear_error();
}

static long shake_result(struct crypto_shake *s, struct crypto_result *ret, void *rest, size_t size)
{
        struct crypto_result r = { .cipher = CRYPTO_AES_128_GCM, .record_max = s->record_max };
        bool server = s->context->server;
        if (SSL_CIPHER_get_protocol_id(SSL_get_current_cipher(s->ssl)) == 0x1303)
                r.cipher = CRYPTO_CHACHA20_POLY1305;
        memcpy(r.send, server ? s->server_secret : s->client_secret, CRYPTO_SECRET);
        memcpy(r.receive, server ? s->client_secret : s->server_secret, CRYPTO_SECRET);
        if (SSL_session_reused(s->ssl))
                memcpy(r.psk, server ? s->used.name : s->psk.name, sizeof(r.psk));
        X509 *cert = SSL_get1_peer_certificate(s->ssl);
        if (cert && !r.psk[0]) {
                r.known = fingerprint_of(cert, r.fingerprint);
                find_before(cert, SSL_get_peer_cert_chain(s->ssl), &r);
                r.vouched = s->context->authority && SSL_get_verify_result(s->ssl) == X509_V_OK;
        }
        if (server && r.psk[0] && s->used.known) {
                r.known = true;
                memcpy(r.fingerprint, s->used.fingerprint, CRYPTO_FINGERPRINT);
        }
        X509_free(cert);
        if (BIO_pending(s->in) > (long)size)
                return -1;
        *ret = r;
        OPENSSL_cleanse(&r, sizeof(r));
        int n = BIO_read(s->in, rest, (int)size);
        return n > 0 ? n : 0;
}

/* ---- keys and records ----------------------------------------------------------------------- */

/* HKDF-Expand-Label (RFC 8446, 7.1) with an empty context; at most one block of SHA-256. */
static bool expand(const uint8_t secret[CRYPTO_SECRET], const char *label, uint8_t *out,
                   size_t size)
{
        uint8_t info[4 + 6 + LABEL_MAX + 1], block[32];
        size_t n = strlen(label), at = 0;
        info[at++] = 0;
        info[at++] = (uint8_t)size;
        info[at++] = (uint8_t)(6 + n);
        memcpy(info + at, "tls13 ", 6);
        memcpy(info + at + 6, label, n);
        at += 6 + n;
        info[at++] = 0; /* the context's length */
        info[at++] = 1; /* the block's number (RFC 5869) */
        unsigned len = sizeof(block);
        bool ok = HMAC(EVP_sha256(), secret, CRYPTO_SECRET, info, at, block, &len) != NULL;
        if (ok)
                memcpy(out, block, size);
        OPENSSL_cleanse(block, sizeof(block));
        return ok;
}

static void key_free(struct crypto_key *k)
{
        if (!k)
                return;
        gcm_free(k->gcm);
        EVP_CIPHER_CTX_free(k->cipher);
        OPENSSL_cleanse(k, sizeof(*k));
        free(k);
}

static bool key_raw(enum crypto_cipher cipher, const uint8_t secret[CRYPTO_SECRET],
                    struct crypto_raw *ret)
{
        size_t size = cipher == CRYPTO_AES_128_GCM ? GCM_KEY : sizeof(ret->key);
        return expand(secret, "key", ret->key, size) &&
               expand(secret, "iv", ret->iv, sizeof(ret->iv));
}

static struct crypto_key *key_new(enum crypto_cipher cipher, bool seal,
                                  const uint8_t secret[CRYPTO_SECRET])
{
        struct crypto_raw raw;
        struct crypto_key *k = calloc(1, sizeof(*k));
        bool aes = cipher == CRYPTO_AES_128_GCM;
        bool ok = k && key_raw(cipher, secret, &raw);
        if (ok)
                memcpy(k->iv, raw.iv, sizeof(k->iv));
        if (ok && aes)
                k->gcm = gcm_new(raw.key);
        if (ok && !k->gcm)
                ok = (k->cipher = EVP_CIPHER_CTX_new()) &&
                     EVP_CipherInit_ex(k->cipher, aes ? EVP_aes_128_gcm() : EVP_chacha20_poly1305(),
                                       NULL, raw.key, NULL, seal) == 1;
        OPENSSL_cleanse(&raw, sizeof(raw));
        if (ok)
                return k;
        key_free(k);
        return NULL;
}

/* RFC 8446, 5.3 */
static void nonce_of(const struct crypto_key *k, uint64_t seq, uint8_t ret[CRYPTO_NONCE])
{
        memcpy(ret, k->iv, CRYPTO_NONCE);
        for (int i = 0; i < 8; i++)
                ret[CRYPTO_NONCE - 1 - i] ^= (uint8_t)(seq >> 8 * i);
}

static bool begin(struct crypto_key *k, const uint8_t nonce[CRYPTO_NONCE], const uint8_t head[5],
                  int seal)
{
        int n;
        return EVP_CipherInit_ex(k->cipher, NULL, NULL, NULL, nonce, seal) == 1 &&
               EVP_CipherUpdate(k->cipher, NULL, &n, head, 5) == 1;
}

static bool seal(struct crypto_key *k, uint64_t seq, const uint8_t head[5],
                 const struct iovec *pieces, int n, uint8_t type, uint8_t *out)
{
        uint8_t nonce[CRYPTO_NONCE];
        int len;
        nonce_of(k, seq, nonce);
        if (k->gcm) {
                gcm_seal(k->gcm, nonce, head, pieces, n, type, out);
                return true;
        }
        if (!begin(k, nonce, head, 1))
                return false;
        for (int i = 0; i < n; i++) {
                if (!pieces[i].iov_len)
                        continue;
                if (EVP_CipherUpdate(k->cipher, out, &len, pieces[i].iov_base,
                                     (int)pieces[i].iov_len) != 1)
                        return false;
                out += len;
        }
        if (EVP_CipherUpdate(k->cipher, out, &len, &type, 1) != 1)
                return false;
        out += len;
        return EVP_CipherFinal_ex(k->cipher, out, &len) == 1 &&
               EVP_CIPHER_CTX_ctrl(k->cipher, EVP_CTRL_AEAD_GET_TAG, CRYPTO_TAG, out) == 1;
}

static bool open_record(struct crypto_key *k, uint64_t seq, const uint8_t head[5],
                        const uint8_t *in, size_t size, const struct iovec *places, int n,
                        uint8_t *ret_type)
{
        uint8_t nonce[CRYPTO_NONCE], tag[CRYPTO_TAG], end[CRYPTO_TAG];
        int len;
        nonce_of(k, seq, nonce);
        if (k->gcm)
                return gcm_open(k->gcm, nonce, head, in, places, n, ret_type);
        memcpy(tag, in + size - CRYPTO_TAG, CRYPTO_TAG);
        if (!begin(k, nonce, head, 0) ||
            EVP_CIPHER_CTX_ctrl(k->cipher, EVP_CTRL_AEAD_SET_TAG, CRYPTO_TAG, tag) != 1)
                return false;
        for (int i = 0; i < n; i++) {
                if (!places[i].iov_len)
                        continue;
                if (EVP_CipherUpdate(k->cipher, places[i].iov_base, &len, in,
                                     (int)places[i].iov_len) != 1)
                        return false;
                in += places[i].iov_len;
        }
        return EVP_CipherUpdate(k->cipher, ret_type, &len, in, 1) == 1 &&
               EVP_CipherFinal_ex(k->cipher, end, &len) == 1;
}

static bool next_secret(uint8_t secret[CRYPTO_SECRET])
{
        return expand(secret, "traffic upd", secret, CRYPTO_SECRET);
}

/* ---- identities ----------------------------------------------------------------------------- */

/* `issuer` (NULL: `key` itself) says with `signer` that it is `name`'s. */
static X509 *certify(EVP_PKEY *key, const char *name, X509 *issuer, EVP_PKEY *signer)
{
        X509 *cert = X509_new();
        BIGNUM *serial = BN_new();
        X509_NAME *subject = cert ? X509_get_subject_name(cert) : NULL;
        /* It is known by its fingerprint and valid until it is replaced (RFC 5280, 4.1.2.5). */
        bool ok = cert && serial && X509_set_version(cert, X509_VERSION_3) &&
                  BN_rand(serial, SERIAL_BITS, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) &&
                  BN_to_ASN1_INTEGER(serial, X509_get_serialNumber(cert)) &&
                  ASN1_TIME_set_string(X509_getm_notBefore(cert), "20000101000000Z") &&
                  ASN1_TIME_set_string(X509_getm_notAfter(cert), "99991231235959Z") &&
                  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8,
                                             (const unsigned char *)name, -1, -1, 0) &&
                  X509_set_issuer_name(cert, issuer ? X509_get_subject_name(issuer) : subject) &&
                  X509_set_pubkey(cert, key) && X509_sign(cert, signer, NULL) > 0;
        BN_free(serial);
        if (ok)
                return cert;
        X509_free(cert);
        return NULL;
}

/* A new key with its certificate, and the certificates of `before`, as PEM. */
static char *identity_make(const char *name, STACK_OF(X509) * before, EVP_PKEY *signer)
{
        int old = before ? sk_X509_num(before) : 0;
        EVP_PKEY *key = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
        X509 *issuer = old ? sk_X509_value(before, 0) : NULL;
        X509 *cert = key ? certify(key, name, issuer, signer ? signer : key) : NULL;
        BIO *b = BIO_new(BIO_s_mem());
        char *text = NULL, *data;
        bool ok = cert && b && PEM_write_bio_PrivateKey(b, key, NULL, NULL, 0, NULL, NULL) == 1 &&
                  PEM_write_bio_X509(b, cert) == 1;
        for (int i = 0; ok && i < old && i < CRYPTO_BEFORE_MAX; i++)
                ok = PEM_write_bio_X509(b, sk_X509_value(before, i)) == 1;
        if (ok) {
                long n = BIO_get_mem_data(b, &data);
                text = strndup(data, (size_t)n);
                OPENSSL_cleanse(data, (size_t)n);
        }
        BIO_free(b);
        X509_free(cert);
        EVP_PKEY_free(key);
        ERR_clear_error();
        return text;
}

static char *identity_new(const char *name)
{
        return identity_make(name, NULL, NULL);
}

static void free_chain(STACK_OF(X509) * chain)
{
        sk_X509_pop_free(chain, X509_free);
}

/* The certificates of a text, when each is signed by the next one's key and the last by its own: no authority has a
 * part in it. The eldest may have been left out. */
static STACK_OF(X509) * own_chain(BIO *b)
{
        STACK_OF(X509) *chain = sk_X509_new_null();
        bool ok = chain && BIO_reset(b) == 1;
        for (X509 *cert; ok && (cert = PEM_read_bio_X509(b, NULL, NULL, NULL));) {
                int n = sk_X509_num(chain);
                ok = (!n ||
                      X509_verify(sk_X509_value(chain, n - 1), X509_get0_pubkey(cert)) == 1) &&
                     sk_X509_push(chain, cert);
                if (!ok)
                        X509_free(cert);
        }
        int n = ok ? sk_X509_num(chain) : 0;
        X509 *last = n ? sk_X509_value(chain, n - 1) : NULL;
        if (last && (n > CRYPTO_BEFORE_MAX || X509_verify(last, X509_get0_pubkey(last)) == 1))
                return chain;
        free_chain(chain);
        return NULL;
}

static char *identity_next(const char *pem, const char *name)
{
        BIO *b = BIO_new_mem_buf(pem, -1);
        EVP_PKEY *key = b ? PEM_read_bio_PrivateKey(b, NULL, NULL, NULL) : NULL;
        STACK_OF(X509) *chain = key ? own_chain(b) : NULL;
        char *text = chain ? identity_make(name, chain, key) : NULL;
        free_chain(chain);
        EVP_PKEY_free(key);
        BIO_free(b);
        ERR_clear_error();
        return text;
}

static bool identity_fingerprint(const char *pem, uint8_t ret[CRYPTO_FINGERPRINT])
{
        BIO *b = BIO_new_mem_buf(pem, -1);
        X509 *cert = b ? PEM_read_bio_X509(b, NULL, NULL, NULL) : NULL;
        bool ok = cert && fingerprint_of(cert, ret);
        X509_free(cert);
        BIO_free(b);
        ERR_clear_error();
        return ok;
}

static EVP_PKEY *signing_key(const char *pem)
{
        BIO *b = BIO_new_mem_buf(pem, -1);
        EVP_PKEY *key = b ? PEM_read_bio_PrivateKey(b, NULL, NULL, NULL) : NULL;
        BIO_free(b);
        if (key && EVP_PKEY_is_a(key, "ED25519"))
                return key;
        EVP_PKEY_free(key);
        return NULL;
}

static bool identity_public(const char *pem, uint8_t ret[CRYPTO_PUBLIC])
{
        EVP_PKEY *key = signing_key(pem);
        size_t n = CRYPTO_PUBLIC;
        bool ok = key && EVP_PKEY_get_raw_public_key(key, ret, &n) == 1 && n == CRYPTO_PUBLIC;
        EVP_PKEY_free(key);
        ERR_clear_error();
        return ok;
}

static bool identity_sign(const char *pem, const void *data, size_t size,
                          uint8_t ret[CRYPTO_SIGNATURE])
{
        EVP_PKEY *key = signing_key(pem);
        EVP_MD_CTX *c = EVP_MD_CTX_new();
        size_t n = CRYPTO_SIGNATURE;
        bool ok = key && c && EVP_DigestSignInit(c, NULL, NULL, NULL, key) == 1 &&
                  EVP_DigestSign(c, ret, &n, data, size) == 1 && n == CRYPTO_SIGNATURE;
        EVP_MD_CTX_free(c);
        EVP_PKEY_free(key);
        ERR_clear_error();
        return ok;
}

static bool verify(const uint8_t public[CRYPTO_PUBLIC], const void *data, size_t size,
                   const uint8_t signature[CRYPTO_SIGNATURE], uint8_t ret[CRYPTO_FINGERPRINT])
{
        EVP_PKEY *key =
                EVP_PKEY_new_raw_public_key_ex(NULL, "ED25519", NULL, public, CRYPTO_PUBLIC);
        EVP_MD_CTX *c = EVP_MD_CTX_new();
        uint8_t *der = NULL;
        int n = key ? i2d_PUBKEY(key, &der) : 0;
        bool ok = c && n > 0 && EVP_DigestVerifyInit(c, NULL, NULL, NULL, key) == 1 &&
                  EVP_DigestVerify(c, signature, CRYPTO_SIGNATURE, data, size) == 1 &&
                  EVP_Digest(der, (size_t)n, ret, NULL, EVP_sha256(), NULL) == 1;
        OPENSSL_free(der);
        EVP_MD_CTX_free(c);
        EVP_PKEY_free(key);
        ERR_clear_error();
        return ok;
}

static bool stretch(const char *text, const char *salt, unsigned rounds, uint8_t ret[CRYPTO_SECRET])
{
        return PKCS5_PBKDF2_HMAC(text, (int)strlen(text), (const unsigned char *)salt,
                                 (int)strlen(salt), (int)rounds, EVP_sha256(), CRYPTO_SECRET,
                                 ret) == 1;
}

/* The application's threads may go on while the process exits, and it may use OpenSSL itself. */
__attribute__((constructor)) static void start(void)
{
        OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT | OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
}

__attribute__((visibility("default"))) const struct crypto_ops spancl_crypto = {
        .version = CRYPTO_VERSION,
        .context_new = context_new,
        .context_free = context_free,
        .shake_new = shake_new,
        .shake_free = shake_free,
        .shake_step = shake_step,
        .shake_output = shake_output,
        .shake_result = shake_result,
        .key_new = key_new,
        .key_free = key_free,
        .key_raw = key_raw,
        .seal = seal,
        .open = open_record,
        .next_secret = next_secret,
        .identity_new = identity_new,
        .identity_next = identity_next,
        .identity_fingerprint = identity_fingerprint,
        .identity_public = identity_public,
        .identity_sign = identity_sign,
        .verify = verify,
        .stretch = stretch,
};
