/* The commands of the tool. Each takes what stands behind its name and returns the exit status. */
#ifndef SPANCL_CLI_COMMAND_H
#define SPANCL_CLI_COMMAND_H

#include <limits.h>
#include <stdbool.h>

#include "base/config.h"

int command_list(int argc, char **argv);
int command_ping(int argc, char **argv);
int command_run(int argc, char **argv);
int command_top(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_pair(int argc, char **argv);
int command_keys(int argc, char **argv);
int command_config(int argc, char **argv);
int command_protocol(int argc, char **argv);

/* What commands share. */

/* Take "--server S" (which may come several times) off the front of the arguments, in any order with
 * the flags in `flags` (NULL-terminated; ret_flags[i] is set to true). *ret_servers: the servers given
 * as SPANCL_SERVERS has them, to be freed with mem_free; NULL: none. Returns the index of the first
 * other argument; an error was printed when negative. "--" ends the options. */
int command_options(int argc, char **argv, const char *const *flags, bool *ret_flags,
                    char **ret_servers);

/* The servers named by `text`, else the configured ones. An error was printed. */
SP_NODISCARD int command_servers(const char *text, struct server_spec **ret, size_t *ret_count);

/* SPANCL_CONNECT_TIMEOUT in ms. An error was printed. */
SP_NODISCARD int command_timeout(int *ret_ms);

/* For commands that look at servers and take, besides "--server S", only one flag: both of these, of the
 * arguments. The servers are to be freed with config_servers_free. An error was printed. */
struct looked_at {
        struct server_spec *servers;
        size_t count;
        int timeout_ms;
};
SP_NODISCARD int command_look(const char *name, int argc, char **argv, const char *flag,
                              bool *ret_flag, struct looked_at *ret);

/* After a failure: tell what to do if no server was configured. */
void command_hint(const struct looked_at *at);

/* Set up the environment so that a program's ICD loader finds SpanCL alone, with these servers (NULL:
 * as configured). An error was printed. */
SP_NODISCARD int command_environment(const char *servers);

/* The same, after a look at the servers' names. */
SP_NODISCARD int command_prepare(const char *servers);

/* The folder of this program, without a slash at the end. */
bool command_folder(char out[PATH_MAX]);

/* Become another program. Returns the exit status for the error that was printed. */
int command_execute(char **argv);

#endif
