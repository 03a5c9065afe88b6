/* The report of `spancl profile`, as text for people and as JSON (docs/JSON.md). */
#ifndef SPANCL_CLI_PROFILE_REPORT_H
#define SPANCL_CLI_PROFILE_REPORT_H

#include <stdio.h>

#include "cli/profile/answers.h"

/* Text behind "Bound by": it names the bound. */
const char *report_bound(enum answers_bound b);

void report_text(FILE *to, const struct ledger_file *l, const struct answers *a);
void report_json(FILE *to, const struct ledger_file *l, const struct answers *a);

#endif
