/* A server that answers the client with anything. A random program runs in the simulator over real
 * engines, and the input changes bytes of what they send on their way to the client: records of 8 bytes,
 * {u24 offset on the lane, u8 lane and how, u32 value}. Calls may fail; the client must not crash, hang,
 * leak or lose a callback. The first two bytes choose the program. */
#include "fuzz/target.h"

#include <string.h>

#include "base/log.h"
#include "support/program.h"

enum { RECORD = 8, RECORDS_MAX = 64 };

struct changes {
        const uint8_t *records;
        size_t count;
};

static void change(uint8_t *at, size_t room, unsigned how, const uint8_t value[4])
{
        size_t n = how & 2 ? 4 : 1;
        for (size_t i = 0; i < n && i < room; i++)
                at[i] = how & 4 ? at[i] ^ value[i] : how & 8 ? at[i] + value[i] : value[i];
}

static void tamper(void *user, unsigned lane, uint64_t offset, uint8_t *data, size_t size)
{
        const struct changes *c = user;
        for (size_t i = 0; i < c->count; i++) {
                const uint8_t *r = c->records + i * RECORD;
                uint64_t at = r[0] | r[1] << 8 | (uint64_t)r[2] << 16;
                if ((r[3] & 1u) == lane && at >= offset && at - offset < size)
                        change(data + (at - offset), size - (size_t)(at - offset), r[3], r + 4);
        }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        if (size < 2)
                return 0;
        struct changes changes = { data + 2, (size - 2) / RECORD };
        if (changes.count > RECORDS_MAX)
                changes.count = RECORDS_MAX;
        log_threshold = LOG_NONE;
        struct sim *sim = sim_new(&(struct sim_params){
                .seed = data[0],
                .servers = 1 + data[1] % 2,
                .room = 1 << 20,
                .delay_ns = 1000,
                .forgiving = true,
                .tamper = tamper,
                .tamper_user = &changes,
        });
        program_run(sim,
                    &(struct program_params){ .seed = data[1], .commands = 20, .broken = true });
        sim_free(sim);
        return 0;
}
