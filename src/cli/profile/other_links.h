/* The predictions for other links (cli/replay/what_if.h) in the reports of `spancl profile`. No state. */
#ifndef SPANCL_CLI_PROFILE_OTHER_LINKS_H
#define SPANCL_CLI_PROFILE_OTHER_LINKS_H

#include <stdio.h>

#include "base/json_writer.h"
#include "cli/replay/what_if.h"

enum { OTHER_LINKS_NAME = 96 };

/* The name of a link: the option's text, or the figures of the recorded link. */
const char *other_links_name(const struct what_if_results *r, size_t i, char ret[OTHER_LINKS_NAME]);

/* By how much the prediction for the recorded link exceeds the measured time, in percent. */
double other_links_error(const struct what_if_results *r);

/* One sentence on how exact the predictions are. */
void other_links_note(FILE *to, const struct what_if_results *r);

/* Print the predictions. `r` NULL: none were asked for. */
void other_links_text(FILE *to, const struct what_if_results *r);
void other_links_json(struct json_writer *w, const struct what_if_results *r);

#endif
