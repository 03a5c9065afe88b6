/* Options of spancld, from the arguments of its command line. A parsed set is read by any thread. */
#ifndef SPANCL_CONFIG_OPTIONS_H
#define SPANCL_CONFIG_OPTIONS_H

#include "config/entries.h"

struct config_options {
        /* Indexed by config_id: the last value given; NULL: not given. Borrowed from argv. */
        const char *values[CONFIG_COUNT];
        /* Options of kind CONFIG_LIST in the order given. */
        struct {
                enum config_id id;
                const char *value;
        } * list;
        size_t list_count;
};

/* Parse argv[1..]: "--name value", "--name=value", flags. SP_E_INVAL with *ret_error, SP_E_NOMEM. The
 * caller frees *ret_error with mem_free, and the result with config_options_fini, also after an error. */
SP_NODISCARD int config_options_parse(int argc, char **argv, struct config_options *ret,
                                      char **ret_error);
void config_options_fini(struct config_options *o);

/* The value given or its default. */
const char *config_option_text(const struct config_options *o, enum config_id id);
uint64_t config_option_number(const struct config_options *o, enum config_id id);
bool config_option_flag(const struct config_options *o, enum config_id id);

#endif
