/* A kernel's TLS, played in this process: of the sockets that are given to it with setsockopt it seals what sendmsg takes and
 * opens what recvmsg gives, with OpenSSL and nothing of ours. A program that links this is linked with
 * -Wl,--wrap= of these and getsockopt. As the kernel does, sendmsg takes what the socket below has no room for yet; it goes out with
 * any later call. One thread. */
#ifndef SPANCL_TESTS_SUPPORT_KTLS_H
#define SPANCL_TESTS_SUPPORT_KTLS_H

#include <stdbool.h>

struct ktls_kernel {
        bool real;           /* all goes to the kernel of this host instead */
        bool offered;        /* it knows "tls" */
        bool no_tx, no_rx;   /* it refuses the keys of this direction */
        bool rekeys;         /* it takes new keys, as from Linux 6.14 on */
        unsigned asked;      /* how often it was asked for "tls" */
        unsigned keys_taken; /* of both directions, all sockets */
};
extern struct ktls_kernel ktls_kernel;

/* Forget all sockets; before they are closed or afterwards. */
void ktls_kernel_reset(void);

#endif
