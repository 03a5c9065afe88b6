/* The first bytes of a connection: what the supervisor and the client read from a stranger; and descriptions of
 * devices, which follow in the same form. */
#include "fuzz/target.h"

#include "base/mem.h"
#include "session/hello.h"

/* The exchanges that the bytes begin with. A server may alter, repeat or leave out any of them. */
static void take_devices(struct bytes all)
{
        struct hello_devices d = { 0 };
        const uint8_t *p = all.data;
        int r = 0;
        for (size_t at = 0; !r && at < all.size;) {
                int size = hello_size(bytes_of(p + at, all.size - at));
                if (size < 0 || (size_t)size > all.size - at)
                        break;
                uint8_t *one = mem_dup(p + at, (size_t)size);
                if (!one)
                        break;
                hello_seal(one, (size_t)size);
                r = hello_take_devices(&d, bytes_of(one, (size_t)size));
                fuzz_check(d.info.size + d.left <= WIRE_DESCRIPTION_MAX);
                fuzz_check(r != 1 || !d.left);
                mem_free(one);
                at += (size_t)size;
        }
        if (r == 1) {
                struct buf again = { 0 };
                fuzz_check(hello_put_devices(&again, bytes_of(d.info.data, d.info.size),
                                             d.sessions) == 0);
                fuzz_check(again.size <= all.size);
                buf_fini(&again);
        }
        hello_devices_fini(&d);
}

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

        take_devices(bytes_of(data, size));
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
