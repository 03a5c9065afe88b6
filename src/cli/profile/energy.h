/* The energy part of a profile's report: joules by device. No state. */
#ifndef SPANCL_CLI_PROFILE_ENERGY_H
#define SPANCL_CLI_PROFILE_ENERGY_H

#include "base/json_writer.h"
#include "cli/profile/ledger.h"

/* Write a table; nothing if no device has a counter. */
void energy_text(FILE *to, const struct ledger_file *l);

/* Write the member `energy`. */
void energy_json(struct json_writer *w, const struct ledger_file *l);

#endif
