/* A what-if: another link between client and servers, and the time that a recorded run would take over it. No state. */
#ifndef SPANCL_CLI_REPLAY_WHAT_IF_H
#define SPANCL_CLI_REPLAY_WHAT_IF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

struct fit;

enum { WHAT_IF_MAX = 16, WHAT_IF_ERROR_MAX = 200 };

/* A value that is not given stays as it was recorded. */
struct what_if {
        const char *text; /* as given; borrowed */
        bool has_round_trip, has_rate;
        uint64_t round_trip_ns, bytes_per_s;
};

/* Read "rtt=5ms,bw=1Gbit". Times: ns, us, ms, s. Rates: bit, kbit, Mbit, Gbit, B/s, kB/s, MB/s, GB/s.
 * SP_E_INVAL: `ret_error` says why. */
SP_NODISCARD int what_if_parse(const char *text, struct what_if *ret,
                               char ret_error[WHAT_IF_ERROR_MAX]);

/* The part of a run without which it would be shortest. */
enum what_if_bound {
        WHAT_IF_LATENCY,
        WHAT_IF_BANDWIDTH,
        WHAT_IF_DEVICE,  /* devices that compute */
        WHAT_IF_PROGRAM, /* the program, its calls, and the servers' own work */
        WHAT_IF_BOUNDS
};
const char *what_if_bound_name(enum what_if_bound b);

struct what_if_result {
        struct what_if link;
        uint64_t ns;
        enum what_if_bound bound;
};

/* The predictions for all links. The first result is the recorded link, which tells how exact the others are. */
struct what_if_results {
        uint64_t measured_ns;
        uint64_t round_trip_ns,
                bytes_per_s; /* of the slowest recorded link; 0: the rate is not known */
        double share;        /* of the run that was recorded; the rest is taken to be like it */
        size_t count;
        struct what_if_result all[WHAT_IF_MAX + 1];
};

/* Errors as replay's. */
SP_NODISCARD int what_if_run(const struct fit *f, uint64_t wall_ns, const struct what_if *links,
                             size_t count, struct what_if_results *ret);

struct ledger_file;

/* Read the timeline at `path`, and predict. `ledger`: of the same run. SP_E_NOENT: nothing was recorded. Other errors
 * are those of trace_file_load, recording_read, fit_make and replay. */
SP_NODISCARD int what_if_read(const char *path, const struct ledger_file *ledger,
                              const struct what_if *links, size_t count,
                              struct what_if_results *ret);

#endif
