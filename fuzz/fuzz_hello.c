/* The first bytes of a connection: what the supervisor and the client read from a stranger. */
#include "fuzz/target.h"

#include "base/mem.h"
#include "session/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        void *copy = mem_dup(data, size); /* aligned, as readers have it */
        if (!copy)
                return 0;
        struct bytes whole = { copy, size };
        if (size >= HELLO_PREFIX && size % 2) /* half of them with the right checksum */
                hello_seal(copy, size);
        struct wire_hello hello;
        struct wire_hello_reply reply;
        struct wire_session_stats stats;
        uint64_t version;
        const char *text;

        int want = hello_size(whole);
        fuzz_check(want == SP_E_PROTO || want == SP_E_VERSION ||
                   (want >= HELLO_PREFIX && want <= HELLO_PREFIX + FRAME_HELLO_MAX));
        /* A prefix that is refused stays refused with more bytes. */
        for (size_t n = 0; n < size && n < HELLO_PREFIX; n++)
                fuzz_check(hello_size(bytes_of(data, n)) > 0 || want < 0);

        struct buf again = { 0 };
        if (hello_get(whole, &hello) == 0) {
                fuzz_check(hello_put(&again, &hello) == 0);
                fuzz_check(again.size == size && !memcmp(again.data, copy, size));
                (void)!hello_negotiate(&hello, &version, &text);
        }
        again.size = 0;
        if (hello_get_reply(whole, &reply) == 0) {
                fuzz_check(hello_put_reply(&again, &reply) == 0);
                fuzz_check(again.size == size && !memcmp(again.data, copy, size));
        }
        again.size = 0;
        if (hello_get_stats(whole, &stats) == 0) {
                fuzz_check(hello_put_stats(&again, &stats) == 0);
                fuzz_check(again.size == size && !memcmp(again.data, copy, size));
        }
        buf_fini(&again);
        mem_free(copy);
        return 0;
}
