/* TLS in the kernel (kTLS, Linux' Documentation/networking/tls.rst). A connected TCP socket is
 * given the keys of one or both directions. From then on the process writes and reads plain
 * content, and the kernel seals and opens the records. One thread may send while another
 * receives. */
#ifndef SPANCL_OS_NET_KTLS_H
#define SPANCL_OS_NET_KTLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "os/iovec.h"

enum ktls_cipher { KTLS_AES_128_GCM, KTLS_CHACHA20_POLY1305 };

/* Attach kTLS to this socket; alone that changes nothing. False: the kernel does not have it. Root
 * must have loaded its module. */
bool ktls_attach(int fd);

/* Have the kernel seal sent records (`send`) or open received ones, from record number `seq` on.
 * `key` has 32 bytes, of which AES-128 takes the first half; `iv` has 12. Called at the boundary of
 * a record. A second call sets the key that follows, which kernels before 6.14 refuse. False:
 * nothing changed. */
bool ktls_key(int fd, bool send, enum ktls_cipher cipher, const uint8_t *key, const uint8_t *iv,
              uint64_t seq);

/* Get the number of the next record to be sent. False: the kernel does not say. */
bool ktls_next_record(int fd, uint64_t *ret);

/* Send content in records of `type`. Returns the bytes taken, SP_E_AGAIN or SP_E_LINK. */
ssize_t ktls_send(int fd, uint8_t type, const struct iovec *iov, int n);

/* Receive content of records of *ret_type, at least one byte. Content that did not fit is returned
 * by the next call. SP_E_AGAIN; SP_E_LINK, also if a record was not genuine. */
ssize_t ktls_recv(int fd, const struct iovec *iov, int n, uint8_t *ret_type);

#endif
