/* A counter of energy, as a driver or the processor has it, and the division of energy among sessions. The readings
 * may be wrong: counters wrap, begin anew, go backwards or jump. No I/O, clock or state beside the struct. */
#ifndef SPANCL_DAEMON_ENERGY_COUNTER_H
#define SPANCL_DAEMON_ENERGY_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

/* No device takes more, in watts. A counter that rises faster is not believed. */
#define ENERGY_POWER_MAX 20000

/* Zeroed memory is a counter that was never read. */
struct energy_counter {
        bool read;
        uint64_t at_ns;   /* of the last reading */
        uint64_t last_uj; /* the last reading, in microjoules */
};

/* Take a reading. `range_uj`: the counter goes on with 0 above this value; 0: it does not wrap. Return the energy since
 * the reading before, in microjoules. It is 0 for the first one, and if the counter began anew, went backwards, or
 * rose faster than ENERGY_POWER_MAX. */
uint64_t energy_counter_take(struct energy_counter *c, uint64_t value_uj, uint64_t range_uj,
                             uint64_t now_ns);

/* Return the part of a session that used the device for `busy_ns` of an interval. `all_ns`: the sum of all sessions.
 * The parts of all sessions together are at most `energy_uj`, and less if they did not use all of the interval. */
uint64_t energy_share(uint64_t energy_uj, uint64_t busy_ns, uint64_t all_ns, uint64_t interval_ns);

#endif
