/* The options that several commands share, and the servers that they name. */
#ifndef SPANCL_CLI_OPTIONS_H
#define SPANCL_CLI_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "config/server_spec.h"

/* Take "--server S" (which may come several times) off the front of the arguments, in any order with the flags in
 * `flags` (NULL-terminated; ret_flags[i] is set to true). "--" ends the options. *ret_servers: the servers in the form
 * of SPANCL_SERVERS; the caller frees it with mem_free; NULL: none. Returns the index of the first other argument; if
 * negative, an error was printed. */
int options_take(int argc, char **argv, const char *const *flags, bool *ret_flags,
                 char **ret_servers);

enum { OPTIONS_REPEATED = 16 };

/* An option with a value, such as "--output FILE"; a row without name ends the table. */
struct option_value {
        const char *name;
        const char *brief; /* "-o"; NULL: it has no short form */
        const char **ret;  /* borrows the argument; the last one counts */
        bool *ret_given;   /* is set to true; not NULL: the value may be missing */
        size_t *ret_count; /* not NULL: the option may be repeated; `ret` has OPTIONS_REPEATED places, *ret_count may be more */
};

/* The same, with options that have a value. */
int options_take_values(int argc, char **argv, const char *const *flags, bool *ret_flags,
                        const struct option_value *values, char **ret_servers);

/* Parse the servers in `text`, or the configured ones if it is NULL. On an error it has printed it;
 * `origin` is the option or command that has the text. */
SP_NODISCARD int options_servers(const char *text, const char *origin, struct server_spec **ret,
                                 size_t *ret_count);

/* Print that the command does not take an argument, which may be meant as a server. */
void options_refuse(const char *command, const char *arg);

/* SPANCL_CONNECT_TIMEOUT in ms. */
int options_timeout(void);

/* The servers that a command queries. */
struct queried {
        struct server_spec *servers;
        size_t count;
        int timeout_ms;
};

/* Parse the arguments of a command that queries servers and takes, besides "--server S", only flags, as options_take
 * has them. The caller frees the servers with config_servers_free. On an error it has printed it. */
SP_NODISCARD int options_query(const char *name, int argc, char **argv, const char *const *flags,
                               bool *ret_flags, struct queried *ret);

/* Print the remedy after a failure, if no server was configured. */
void options_hint(const struct queried *at);

/* Print the faults of the configuration to standard error. */
void options_faults(void);

#endif
