/* The files of a folder of keys, with reservations in the list of clients, and codes as users type them. */
#include <stdlib.h>
#include <string.h>

#include "daemon/reservation.h"
#include "fuzz/target.h"
#include "transport/keys.h"

/* An accepted reservation is written in one form, and read from it as the same. */
static void check_reservations(const char *text)
{
        enum { NOW_S = 1800000000 };
        struct reservation one, again;
        while (reservation_next(&text, NOW_S, &one) > 0) {
                char put[64], end[RESERVATION_DATE];
                const char *p = put;
                fuzz_check(reservation_put(&one, put, sizeof(put)) < (int)sizeof(put));
                fuzz_check(reservation_is_list(put) && reservation_next(&p, 0, &again) == 1 && !*p);
                fuzz_check(one.device == again.device && one.until_s == again.until_s &&
                           one.device <= RESERVATION_DEVICE_MAX);
                fuzz_check(!*reservation_end(&one, end) == !one.until_s);
        }
}

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
        check_reservations(text);
        free(text);
        return 0;
}
