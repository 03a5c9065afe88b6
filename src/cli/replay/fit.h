/* A fit: a recording as the run of a replay (cli/replay/replay.h). The round trip of a link comes from the ledger, its
 * rate from the fastest transfer. The rest of each recorded time is a constant of the command, the wait or the
 * program. So a replay over the recorded links takes as long as the recording. No state. */
#ifndef SPANCL_CLI_REPLAY_FIT_H
#define SPANCL_CLI_REPLAY_FIT_H

#include "cli/replay/recording.h"
#include "cli/replay/replay.h"

struct fit {
        struct replay_run run;     /* its arrays are the fit's */
        struct replay_link *links; /* those of the recording, one for each server of the ledger */
        uint64_t span_ns;          /* the part of the run that the recording has */
        bool is_part;              /* records are missing: it is not the whole run */
};

/* Make the fit. SP_E_NOENT: the recording has no waits or commands; SP_E_LIMIT: too many threads or steps;
 * SP_E_NOMEM. */
SP_NODISCARD int fit_make(const struct recording *r, const struct ledger_file *ledger,
                          struct fit *ret);
void fit_fini(struct fit *f);

#endif
