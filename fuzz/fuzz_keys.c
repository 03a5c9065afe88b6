/* The files of a folder of keys, and codes as users type them. */
#include <stdlib.h>
#include <string.h>

#include "fuzz/target.h"
#include "transport/keys.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        char *text = malloc(size + 1), code[KEYS_CODE_MAX];
        memcpy(text, data, size);
        text[size] = 0;
        const char *p = text;
        struct keys_entry e, again;
        struct keys_pairing pairing;
        unsigned bad = 0;
        while (keys_next(&p, &e, &bad)) {
                fuzz_check(*e.name && strlen(e.name) <= KEYS_NAME_MAX);
                fuzz_check(keys_find(text, e.fingerprint, e.name, &again));
                fuzz_check(keys_knows(text, e.name));
                const char *left = e.settings;
                struct keys_setting setting;
                while (keys_setting(&left, &setting))
                        fuzz_check(setting.key.size && setting.value.size);
                fuzz_check(!*left);
        }
        if (keys_code_parse(text, code))
                fuzz_check(strlen(code) == KEYS_CODE_LETTERS);
        (void)keys_pairing_parse(text, &pairing);
        free(text);
        return 0;
}
