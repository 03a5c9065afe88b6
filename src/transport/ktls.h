/* The kernel's TLS (kTLS, Linux' Documentation/networking/tls.rst): a connected TCP socket is given the keys of one or
 * both directions, and from then on takes and gives contents; the kernel makes records of them, or what they were.
 * Private to src/transport. One thread may send while another receives. */
#ifndef SPANCL_TRANSPORT_KTLS_H
#define SPANCL_TRANSPORT_KTLS_H

#include "base/status.h"
#include "transport/crypto.h"

/* Whether the kernel has it (its module must have been loaded by root), and it is for this socket now. Alone it changes
 * nothing. */
bool ktls_attach(int fd);

/* From now on the kernel seals what is sent (`send`) or opens what comes, beginning with record number `seq`: called at a record's
 * boundary. For a second time: with the key that follows, which kernels before 6.14 do not take. False: nothing
 * changed. */
bool ktls_key(int fd, bool send, enum crypto_cipher cipher, const struct crypto_raw *key,
              uint64_t seq);

/* The number of the next record to be sent. False: the kernel does not say. */
bool ktls_next_record(int fd, uint64_t *ret);

/* Content of records of `type`. Bytes taken, SP_E_AGAIN, SP_E_LINK. */
ssize_t ktls_send(int fd, uint8_t type, const struct iovec *iov, int n);

/* Content of records of *ret_type, at least a byte; what did not fit is given the next time. SP_E_AGAIN; SP_E_LINK, also
 * where a record was not genuine. */
ssize_t ktls_recv(int fd, const struct iovec *iov, int n, uint8_t *ret_type);

#endif
