/* The parts of mbedTLS that nano/tls needs, for mbedTLS's compilation (MBEDTLS_CONFIG_FILE). */
#ifndef SPANCL_NANO_PORT_MBEDTLS_H
#define SPANCL_NANO_PORT_MBEDTLS_H

#define MBEDTLS_CHACHA20_C
#define MBEDTLS_POLY1305_C
#define MBEDTLS_CHACHAPOLY_C
#define MBEDTLS_SHA256_C
#define MBEDTLS_SHA256_SMALLER

#endif
