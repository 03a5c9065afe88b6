#include "os/net/ktls.h"

#include <errno.h>
#include <linux/tls.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

enum { EXPECT_NO_PAD = 4 }; /* TLS_RX_EXPECT_NO_PAD, since Linux 6.0 */

union info {
        struct tls_crypto_info base;
        struct tls12_crypto_info_aes_gcm_128 aes;
        struct tls12_crypto_info_chacha20_poly1305 chacha;
};

/* With room for one byte. */
union ancillary {
        struct cmsghdr head;
        uint8_t space[CMSG_SPACE(1)];
};

bool ktls_attach(int fd)
{
        return setsockopt(fd, IPPROTO_TCP, TCP_ULP, "tls", sizeof("tls")) == 0;
}

static void put_seq(uint8_t out[8], uint64_t seq)
{
        for (int i = 0; i < 8; i++)
                out[i] = (uint8_t)(seq >> (56 - 8 * i));
}

bool ktls_key(int fd, bool send, enum ktls_cipher cipher, const uint8_t *key, const uint8_t *iv,
              uint64_t seq)
{
        static const int no_padding = 1;
        union info info = { .base.version = TLS_1_3_VERSION };
        socklen_t size;
        if (cipher == KTLS_AES_128_GCM) {
                info.base.cipher_type = TLS_CIPHER_AES_GCM_128;
                memcpy(info.aes.key, key, sizeof(info.aes.key));
                memcpy(info.aes.salt, iv, sizeof(info.aes.salt));
                memcpy(info.aes.iv, iv + sizeof(info.aes.salt), sizeof(info.aes.iv));
                put_seq(info.aes.rec_seq, seq);
                size = sizeof(info.aes);
        } else {
                info.base.cipher_type = TLS_CIPHER_CHACHA20_POLY1305;
                memcpy(info.chacha.key, key, sizeof(info.chacha.key));
                memcpy(info.chacha.iv, iv, sizeof(info.chacha.iv));
                put_seq(info.chacha.rec_seq, seq);
                size = sizeof(info.chacha);
        }
        bool ok = setsockopt(fd, SOL_TLS, send ? TLS_TX : TLS_RX, &info, size) == 0;
        explicit_bzero(&info, sizeof(info));
        /* Nobody here pads, so records are opened in the reader's places; one with padding costs a second try. */
        if (ok && !send)
                (void)setsockopt(fd, SOL_TLS, EXPECT_NO_PAD, &no_padding, sizeof(no_padding));
        return ok;
}

bool ktls_next_record(int fd, uint64_t *ret)
{
        union info info = { 0 };
        socklen_t size = sizeof(info);
        const uint8_t *at = NULL;
        bool ok =
                getsockopt(fd, SOL_TLS, TLS_TX, &info.base, &(socklen_t){ sizeof(info.base) }) == 0;
        if (ok && info.base.cipher_type == TLS_CIPHER_AES_GCM_128) {
                size = sizeof(info.aes);
                at = info.aes.rec_seq;
        } else if (ok && info.base.cipher_type == TLS_CIPHER_CHACHA20_POLY1305) {
                size = sizeof(info.chacha);
                at = info.chacha.rec_seq;
        }
        ok = at && getsockopt(fd, SOL_TLS, TLS_TX, &info, &size) == 0;
        uint64_t seq = 0;
        for (int i = 0; ok && i < 8; i++)
                seq = seq << 8 | at[i];
        explicit_bzero(&info, sizeof(info));
        if (ok)
                *ret = seq;
        return ok;
}

ssize_t ktls_send(int fd, uint8_t type, const struct iovec *iov, int n)
{
        enum { DATA = 23 };
        union ancillary a = { .head = { .cmsg_len = CMSG_LEN(1),
                                        .cmsg_level = SOL_TLS,
                                        .cmsg_type = TLS_SET_RECORD_TYPE } };
        struct msghdr m = { .msg_iov = (struct iovec *)(uintptr_t)iov, .msg_iovlen = (size_t)n };
        if (type != DATA) {
                *CMSG_DATA(&a.head) = type;
                m.msg_control = &a;
                m.msg_controllen = sizeof(a);
        }
        ssize_t r;
        do
                r = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        while (r < 0 && errno == EINTR);
        if (r > 0)
                return r;
        return r < 0 && (errno == EAGAIN || errno == ENOBUFS) ? SP_E_AGAIN : SP_E_LINK;
}

ssize_t ktls_recv(int fd, const struct iovec *iov, int n, uint8_t *ret_type)
{
        union ancillary a;
        struct msghdr m;
        ssize_t r;
        do {
                m = (struct msghdr){ .msg_iov = (struct iovec *)(uintptr_t)iov,
                                     .msg_iovlen = (size_t)n,
                                     .msg_control = &a,
                                     .msg_controllen = sizeof(a) };
                r = recvmsg(fd, &m, MSG_DONTWAIT);
        } while (r < 0 && errno == EINTR);
        if (r <= 0)
                return r < 0 && errno == EAGAIN ? SP_E_AGAIN : SP_E_LINK;
        struct cmsghdr *c = CMSG_FIRSTHDR(&m);
        if (!c || c->cmsg_level != SOL_TLS || c->cmsg_type != TLS_GET_RECORD_TYPE ||
            c->cmsg_len != CMSG_LEN(1) || m.msg_flags & MSG_CTRUNC)
                return SP_E_LINK;
        *ret_type = *CMSG_DATA(c);
        return r;
}
