#include "transport/nano_key.h"

#include <string.h>

#include "base/mem.h"
#include "os/random.h"

int nano_key_new(const struct crypto_ops *crypto, uint8_t ret[CRYPTO_SECRET],
                 uint8_t ret_fingerprint[CRYPTO_FINGERPRINT])
{
        char hex[KEYS_HEX + 1];
        if (!random_fill(ret, CRYPTO_SECRET))
                return SP_E_LIMIT;
        keys_hex(ret, hex);
        /* The key is random, so one round is enough. */
        bool ok = crypto->stretch(hex, "spancl nano", 1, ret_fingerprint);
        explicit_bzero(hex, sizeof(hex));
        return ok ? 0 : SP_E_NOMEM;
}

int nano_key_put(const char *folder, const uint8_t key[CRYPTO_SECRET],
                 const uint8_t fingerprint[CRYPTO_FINGERPRINT], char text[KEYS_TEXT_MAX])
{
        struct keys_entry e = { 0 };
        memcpy(e.fingerprint, fingerprint, CRYPTO_FINGERPRINT);
        keys_hex(key, e.name);
        int r = keys_put(folder, NANO_KEYS, &e, false, text);
        explicit_bzero(&e, sizeof(e));
        return r;
}

int nano_key_find(const char *folder, struct crypto_psk *psk, char text[KEYS_TEXT_MAX])
{
        const size_t prefix = sizeof(NANO_KEY_PSK) - 1;
        char *list, hex[KEYS_HEX + 1];
        struct keys_entry e;
        unsigned bad = 0;
        if (strncmp(psk->name, NANO_KEY_PSK, prefix) != 0 ||
            strlen(psk->name) != prefix + NANO_KEY_DIGITS)
                return SP_E_NOENT;
        int r = keys_read(folder, NANO_KEYS, &list, text);
        if (r < 0)
                return r;
        r = SP_E_NOENT;
        for (const char *p = list; r == SP_E_NOENT && keys_next(&p, &e, &bad);) {
                keys_hex(e.fingerprint, hex);
                if (strncmp(hex, psk->name + prefix, NANO_KEY_DIGITS) != 0 ||
                    strlen(e.name) != KEYS_HEX || !keys_unhex(e.name, psk->secret))
                        continue;
                memcpy(psk->fingerprint, e.fingerprint, CRYPTO_FINGERPRINT);
                psk->known = true;
                r = 0;
        }
        explicit_bzero(&e, sizeof(e));
        explicit_bzero(list, strlen(list));
        mem_free(list);
        return r;
}
