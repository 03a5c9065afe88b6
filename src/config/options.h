/* Options of spancld, from the arguments of its command line. They travel whole, as a pointer, to the
 * code that reads them. An engine inside the client gets a set of them, too, some with the values of
 * the client's variables. Any thread may read a set. */
#ifndef SPANCL_CONFIG_OPTIONS_H
#define SPANCL_CONFIG_OPTIONS_H

#include "config/entries.h"

/* Zeroed memory: every option has its default. */
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

/* Parse argv[1..]: "--name value", "--name=value", "--flag", "--flag=0". Of several values of one
 * option the last counts. SP_E_INVAL with *ret_error, SP_E_NOMEM. The caller frees *ret_error with
 * mem_free, and the result with config_options_fini, also after an error. */
SP_NODISCARD int config_options_parse(int argc, char **argv, struct config_options *ret,
                                      char **ret_error);
void config_options_fini(struct config_options *o);

/* A command line with the options of the file that --config names in front of its own. */
struct config_command_line {
        int argc;
        char **argv; /* borrowed strings, and those in `text` */
        char *text;
        /* "FILE:LINE: NAME, ...": the addresses and sockets of the file, which do not count because the
         * command line has some; NULL: none. */
        char *overridden;
};

/* Read the file that `given`, parsed from this command line, names. The result reads no file when it is
 * parsed, so a process that gets it needs none. SP_E_INVAL with *ret_error: a line is wrong, others may
 * write the file, or a file that --config names does not exist; SP_E_NOMEM. The caller frees *ret_error
 * with mem_free, and the result with config_command_line_fini, also after an error. */
SP_NODISCARD int config_options_file(const struct config_options *given, int argc, char **argv,
                                     struct config_command_line *ret, char **ret_error);
void config_command_line_fini(struct config_command_line *c);

/* Return true if the option is an address or a socket to listen on. Those of a command line replace those of a file,
 * and the default of --listen counts if none is given. */
bool config_is_address(enum config_id id);
bool config_options_have_address(const struct config_options *o);

/* The value given or its default; `o` NULL: the default. Numbers are converted at each call. */
const char *config_option_text(const struct config_options *o, enum config_id id);
uint64_t config_option_number(const struct config_options *o, enum config_id id);
bool config_option_flag(const struct config_options *o, enum config_id id);

#endif
