/* A played kernel TLS in this process. It takes over sockets that setsockopt gives to it. It
 * seals the bytes that sendmsg takes and opens those that recvmsg gives, with OpenSSL and nothing
 * of ours. A program that uses it is linked with -Wl,--wrap= of these functions and getsockopt.
 * As in the kernel, sendmsg takes bytes that the socket below has no room for yet; they go out
 * with any later call. One thread. */
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
