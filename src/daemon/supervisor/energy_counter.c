#include "daemon/supervisor/energy_counter.h"

/* Return the most that a device can take in this time, in microjoules; at least that of a second, because drivers
 * update their counters late. */
static double most_uj(uint64_t ns)
{
        double seconds = (double)ns / 1e9;
        return (seconds > 1 ? seconds : 1) * ENERGY_POWER_MAX * 1e6;
}

uint64_t energy_counter_take(struct energy_counter *c, uint64_t value_uj, uint64_t range_uj,
                             uint64_t now_ns)
{
        uint64_t more = 0, since = now_ns > c->at_ns ? now_ns - c->at_ns : 0;
        if (value_uj >= c->last_uj)
                more = value_uj - c->last_uj;
        else if (range_uj && c->last_uj <= range_uj)
                more = range_uj - c->last_uj + value_uj;
        if (!c->read || (double)more > most_uj(since))
                more = 0;
        *c = (struct energy_counter){ .read = true, .at_ns = now_ns, .last_uj = value_uj };
        return more;
}

uint64_t energy_share(uint64_t energy_uj, uint64_t busy_ns, uint64_t all_ns, uint64_t interval_ns)
{
        double whole = (double)(all_ns > interval_ns ? all_ns : interval_ns);
        double part = whole > 0 ? (double)busy_ns / whole : 0;
        uint64_t share = (uint64_t)((double)energy_uj * (part < 1 ? part : 1));
        return share < energy_uj ? share : energy_uj;
}
