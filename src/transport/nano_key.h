/* Keys of nano clients (nano/tls/tls.h): 32 random bytes that one device and a server share. TLS takes such a key as a
 * pre-shared secret. The file `nano` in the folder of keys has a line "FINGERPRINT KEY" for each, and is private as
 * all files there (transport/keys.h). A key admits a device only while `clients` has its fingerprint. No state. */
#ifndef SPANCL_TRANSPORT_NANO_KEY_H
#define SPANCL_TRANSPORT_NANO_KEY_H

#include "transport/keys.h"

#define NANO_KEYS "nano"

/* The name of the secret in a handshake is NANO_KEY_PSK and the first NANO_KEY_DIGITS digits of the fingerprint. */
#define NANO_KEY_PSK "nano "
enum { NANO_KEY_DIGITS = 32 };

/* Make a key with its fingerprint. SP_E_LIMIT: there are no random numbers; SP_E_NOMEM. */
SP_NODISCARD int nano_key_new(const struct crypto_ops *crypto, uint8_t ret[CRYPTO_SECRET],
                              uint8_t ret_fingerprint[CRYPTO_FINGERPRINT]);

/* Write a key into the folder, whose lock the caller holds. Errors of keys_put. */
SP_NODISCARD int nano_key_put(const char *folder, const uint8_t key[CRYPTO_SECRET],
                              const uint8_t fingerprint[CRYPTO_FINGERPRINT],
                              char text[KEYS_TEXT_MAX]);

/* Find the secret that psk->name names, and fill in the rest of *psk. SP_E_NOENT: there is none; else as keys_read. */
SP_NODISCARD int nano_key_find(const char *folder, struct crypto_psk *psk,
                               char text[KEYS_TEXT_MAX]);

#endif
