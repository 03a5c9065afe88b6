#include "support/ktls.h"

#include <errno.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/evp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { SOCKETS = 1024, HEAD = 5, RECORD = 16384, CIPHER_MAX = RECORD + 256, TAG = 16, DATA = 23 };

struct way {
        bool ready, waits; /* for a new key, after a KeyUpdate */
        const EVP_CIPHER *cipher;
        uint8_t key[32], iv[12];
        uint64_t seq;
        union {
                struct tls_crypto_info base;
                struct tls12_crypto_info_aes_gcm_128 aes;
                struct tls12_crypto_info_chacha20_poly1305 chacha;
        } info;
};

struct sock {
        bool attached;
        struct way tx, rx;
        uint8_t out[HEAD + CIPHER_MAX], in[HEAD + CIPHER_MAX], plain[CIPHER_MAX];
        size_t out_at, out_end, in_end, at, end;
        uint8_t type; /* of plain */
};

struct ktls_kernel ktls_kernel;
static struct sock *sockets[SOCKETS];

int __real_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *size);
ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __real_recvmsg(int fd, struct msghdr *m, int flags);
int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);

void ktls_kernel_reset(void)
{
        for (int i = 0; i < SOCKETS; i++) {
                free(sockets[i]);
                sockets[i] = NULL;
        }
}

static int fail(int error)
{
        errno = error;
        return -1;
}

static struct sock *sock_of(int fd)
{
        return fd >= 0 && fd < SOCKETS ? sockets[fd] : NULL;
}

/* ---- keys ----------------------------------------------------------------------------------- */

static int take_key(struct way *w, const void *value, socklen_t size)
{
        const uint8_t *seq;
        if (w->ready && !ktls_kernel.rekeys)
                return fail(EBUSY);
        if (size < sizeof(w->info.base) || size > sizeof(w->info))
                return fail(EINVAL);
        memcpy(&w->info, value, size);
        if (w->info.base.version != TLS_1_3_VERSION)
                return fail(EINVAL);
        if (w->info.base.cipher_type == TLS_CIPHER_AES_GCM_128 && size == sizeof(w->info.aes)) {
                w->cipher = EVP_aes_128_gcm();
                memcpy(w->key, w->info.aes.key, 16);
                memcpy(w->iv, w->info.aes.salt, 4);
                memcpy(w->iv + 4, w->info.aes.iv, 8);
                seq = w->info.aes.rec_seq;
        } else if (w->info.base.cipher_type == TLS_CIPHER_CHACHA20_POLY1305 &&
                   size == sizeof(w->info.chacha)) {
                w->cipher = EVP_chacha20_poly1305();
                memcpy(w->key, w->info.chacha.key, 32);
                memcpy(w->iv, w->info.chacha.iv, 12);
                seq = w->info.chacha.rec_seq;
        } else {
                return fail(EINVAL);
        }
        w->seq = 0;
        for (int i = 0; i < 8; i++)
                w->seq = w->seq << 8 | seq[i];
        w->ready = true;
        w->waits = false;
        ktls_kernel.keys_taken++;
        return 0;
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
        if (ktls_kernel.real || (level != SOL_TLS && (level != IPPROTO_TCP || name != TCP_ULP)))
                return __real_setsockopt(fd, level, name, value, size);
        if (level == IPPROTO_TCP) {
                ktls_kernel.asked++;
                if (!ktls_kernel.offered || fd >= SOCKETS)
                        return fail(ENOENT);
                if (sockets[fd])
                        return fail(EEXIST);
                sockets[fd] = calloc(1, sizeof(struct sock));
                return sockets[fd] ? 0 : fail(ENOMEM);
        }
        struct sock *s = sock_of(fd);
        if (!s || (name != TLS_TX && name != TLS_RX))
                return fail(ENOPROTOOPT);
        if (name == TLS_TX ? ktls_kernel.no_tx : ktls_kernel.no_rx)
                return fail(ENOENT);
        return take_key(name == TLS_TX ? &s->tx : &s->rx, value, size);
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
        if (ktls_kernel.real || level != SOL_TLS)
                return __real_getsockopt(fd, level, name, value, size);
        struct sock *s = sock_of(fd);
        if (!s || name != TLS_TX || !s->tx.ready)
                return fail(EBUSY);
        struct way *w = &s->tx;
        bool aes = w->info.base.cipher_type == TLS_CIPHER_AES_GCM_128;
        size_t all = aes ? sizeof(w->info.aes) : sizeof(w->info.chacha);
        if (*size != sizeof(w->info.base) && *size != all)
                return fail(EINVAL);
        for (int i = 0; i < 8; i++)
                (aes ? w->info.aes.rec_seq : w->info.chacha.rec_seq)[i] =
                        (uint8_t)(w->seq >> (56 - 8 * i));
        memcpy(value, &w->info, *size);
        return 0;
}

/* ---- records -------------------------------------------------------------------------------- */

/* `size` bytes of `data` in their place, with the tag behind them. */
static bool crypt(struct way *w, bool seal, const uint8_t head[HEAD], uint8_t *data, size_t size)
{
        uint8_t nonce[12];
        int n = 0;
        memcpy(nonce, w->iv, sizeof(nonce));
        for (int i = 0; i < 8; i++)
                nonce[11 - i] ^= (uint8_t)(w->seq >> 8 * i);
        w->seq++;
        EVP_CIPHER_CTX *c = EVP_CIPHER_CTX_new();
        bool ok = c && EVP_CipherInit_ex(c, w->cipher, NULL, w->key, nonce, seal) == 1 &&
                  (seal || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, TAG, data + size) == 1) &&
                  EVP_CipherUpdate(c, NULL, &n, head, HEAD) == 1 &&
                  EVP_CipherUpdate(c, data, &n, data, (int)size) == 1 &&
                  EVP_CipherFinal_ex(c, data + n, &n) == 1 &&
                  (!seal || EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, TAG, data + size) == 1);
        EVP_CIPHER_CTX_free(c);
        return ok;
}

static void flush(int fd)
{
        struct sock *s = sockets[fd];
        while (s->out_at < s->out_end) {
                ssize_t n = send(fd, s->out + s->out_at, s->out_end - s->out_at,
                                 MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n <= 0)
                        return;
                s->out_at += (size_t)n;
        }
}

static void flush_all(void)
{
        for (int i = 0; i < SOCKETS; i++)
                if (sockets[i])
                        flush(i);
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
        struct sock *s = ktls_kernel.real ? NULL : sock_of(fd);
        if (!s || !s->tx.ready)
                return __real_sendmsg(fd, m, flags);
        flush_all();
        if (s->out_at < s->out_end)
                return fail(EAGAIN);
        struct cmsghdr *c = CMSG_FIRSTHDR(m);
        size_t size = 0;
        for (size_t i = 0; i < m->msg_iovlen && size < RECORD; i++) {
                size_t n = m->msg_iov[i].iov_len;
                n = n < RECORD - size ? n : RECORD - size;
                if (n)
                        memcpy(s->out + HEAD + size, m->msg_iov[i].iov_base, n);
                size += n;
        }
        if (c && (c->cmsg_level != SOL_TLS || c->cmsg_type != TLS_SET_RECORD_TYPE))
                return fail(EINVAL);
        s->out[HEAD + size] = c ? *CMSG_DATA(c) : DATA;
        const uint8_t head[HEAD] = { DATA, 3, 3, (uint8_t)((size + 1 + TAG) >> 8),
                                     (uint8_t)(size + 1 + TAG) };
        memcpy(s->out, head, HEAD);
        if (!crypt(&s->tx, true, head, s->out + HEAD, size + 1))
                return fail(EBADMSG);
        s->out_at = 0;
        s->out_end = HEAD + size + 1 + TAG;
        flush_all();
        return (ssize_t)size;
}

/* 1: there is a record's content; 0: the other side has closed; -1. */
static int next_record(int fd, struct sock *s)
{
        while (s->at == s->end) {
                size_t size = s->in_end < HEAD ? 0 : (size_t)s->in[3] << 8 | s->in[4];
                size_t want = s->in_end < HEAD ? HEAD : HEAD + size;
                if (s->rx.waits)
                        return fail(EKEYEXPIRED);
                if (size > CIPHER_MAX || (s->in_end >= HEAD && size <= TAG))
                        return fail(EBADMSG);
                if (s->in_end < want) {
                        ssize_t n = recv(fd, s->in + s->in_end, want - s->in_end, MSG_DONTWAIT);
                        if (n <= 0)
                                return (int)n;
                        s->in_end += (size_t)n;
                        continue;
                }
                s->in_end = 0;
                if (s->in[0] != DATA || !crypt(&s->rx, false, s->in, s->in + HEAD, size - TAG))
                        return fail(EBADMSG);
                size -= TAG;
                memcpy(s->plain, s->in + HEAD, size);
                while (size && !s->plain[size - 1])
                        size--; /* padding */
                if (!size)
                        return fail(EBADMSG);
                s->type = s->plain[--size];
                s->at = 0;
                s->end = size;
                s->rx.waits = ktls_kernel.rekeys && s->type == 22 && size && s->plain[0] == 24;
        }
        return 1;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags)
{
        struct sock *s = ktls_kernel.real ? NULL : sock_of(fd);
        if (!s || !s->rx.ready)
                return __real_recvmsg(fd, m, flags);
        flush_all();
        size_t done = 0, piece = 0, in_piece = 0;
        uint8_t type = 0;
        while (piece < m->msg_iovlen) {
                if (in_piece == m->msg_iov[piece].iov_len) {
                        piece++;
                        in_piece = 0;
                        continue;
                }
                int r = next_record(fd, s);
                if (r <= 0 && done)
                        break;
                if (r <= 0)
                        return r;
                if (done && (s->type != type || type != DATA))
                        break;
                type = s->type;
                size_t left = m->msg_iov[piece].iov_len - in_piece, n = s->end - s->at;
                n = n < left ? n : left;
                memcpy((uint8_t *)m->msg_iov[piece].iov_base + in_piece, s->plain + s->at, n);
                s->at += n;
                in_piece += n;
                done += n;
        }
        struct cmsghdr *c = m->msg_control;
        if (!c || m->msg_controllen < CMSG_SPACE(1))
                return type == DATA ? (ssize_t)done : fail(EIO);
        c->cmsg_len = CMSG_LEN(1);
        c->cmsg_level = SOL_TLS;
        c->cmsg_type = TLS_GET_RECORD_TYPE;
        *CMSG_DATA(c) = type;
        m->msg_controllen = CMSG_SPACE(1);
        m->msg_flags = 0;
        return (ssize_t)done;
}
