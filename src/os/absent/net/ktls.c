/* For systems without TLS in their kernel that a socket could be given. */
#include "os/net/ktls.h"

bool ktls_attach(int fd)
{
        (void)fd;
        return false;
}

bool ktls_key(int fd, bool send, enum ktls_cipher cipher, const uint8_t *key, const uint8_t *iv,
              uint64_t seq)
{
        (void)fd, (void)send, (void)cipher, (void)key, (void)iv, (void)seq;
        return false;
}

bool ktls_next_record(int fd, uint64_t *ret)
{
        (void)fd, (void)ret;
        return false;
}

ssize_t ktls_send(int fd, uint8_t type, const struct iovec *iov, int n)
{
        (void)fd, (void)type, (void)iov, (void)n;
        return SP_E_LINK;
}

ssize_t ktls_recv(int fd, const struct iovec *iov, int n, uint8_t *ret_type)
{
        (void)fd, (void)iov, (void)n, (void)ret_type;
        return SP_E_LINK;
}
