/* The commands of the tool. Each gets the arguments behind its name, and returns the exit status. */
#ifndef SPANCL_CLI_COMMAND_H
#define SPANCL_CLI_COMMAND_H

#include <limits.h>
#include <stdbool.h>

#include "config/server_spec.h"

struct child;

int command_list(int argc, char **argv);
int command_ping(int argc, char **argv);
int command_run(int argc, char **argv);
int command_top(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_pair(int argc, char **argv);
int command_unpair(int argc, char **argv);
int command_use(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_discover(int argc, char **argv);
int command_keys(int argc, char **argv);
int command_config(int argc, char **argv);
int command_protocol(int argc, char **argv);
int command_document(int argc, char **argv);

struct command {
        const char *name;
        const char *arguments; /* as the help shows them: cli/arguments.h */
        const char *help;
        int (*run)(int argc, char **argv);
};

/* Get the command number `i`; NULL behind the last one. */
const struct command *command_at(size_t i);

/* The explanation of a server's name. */
extern const char command_servers_help[];

/* Write the names that `document` takes, separated by blanks. */
void document_names(char *text, size_t size);

/* Functions that several commands share. */

/* Print the arguments of a command to standard error, and return 2. */
int command_usage(const char *name);

/* Print the faults of the configuration to standard error. */
void command_faults(void);

/* Add a server to those that this user's programs see. Returns the exit status; it has printed the
 * result or the error. */
int use_also(const char *server);

/* Take "--server S" (which may come several times) off the front of the arguments, in any order
 * with the flags in `flags` (NULL-terminated; ret_flags[i] is set to true). "--" ends the
 * options. *ret_servers: the servers in the form of SPANCL_SERVERS; the caller frees it with
 * mem_free; NULL: none. Returns the index of the first other argument; if negative, an error was
 * printed. */
int command_options(int argc, char **argv, const char *const *flags, bool *ret_flags,
                    char **ret_servers);

/* Parse the servers in `text`, or the configured ones if it is NULL. On an error it has printed
 * it. */
SP_NODISCARD int command_servers(const char *text, struct server_spec **ret, size_t *ret_count);

/* SPANCL_CONNECT_TIMEOUT in ms. */
int command_timeout(void);

/* Parse the arguments of a command that queries servers and takes, besides "--server S", only
 * flags (as command_options has them). The caller frees the servers with config_servers_free. On an
 * error it has printed it. */
struct looked_at {
        struct server_spec *servers;
        size_t count;
        int timeout_ms;
};
SP_NODISCARD int command_look(const char *name, int argc, char **argv, const char *const *flags,
                              bool *ret_flags, struct looked_at *ret);

/* Print the remedy after a failure, if no server was configured. */
void command_hint(const struct looked_at *at);

/* Check the servers' names. Set up the environment so that a program's ICD loader finds only SpanCL, with
 * these servers (NULL: as configured). On an error it has printed it. */
SP_NODISCARD int command_prepare(const char *servers);

/* Find libspancl relative to this program: in the build tree, or in the installation prefix. */
bool command_library(char out[PATH_MAX]);

/* Execute another program in place of this one. Returns the exit status after an error, which it
 * has printed. */
int command_execute(char **argv);

/* Start another program, whose output this process reads (os/process/child.h). If it can't be executed, its exit
 * status says so, as a shell's does, and the error is printed. SP_E_LIMIT: errno gives the reason. */
SP_NODISCARD int command_start(char *const argv[], struct child *ret);

#endif
