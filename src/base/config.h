/* Configuration: every option and environment variable stands in base/config.def and is read and
 * checked here. The error of a wrong value is a sentence that names the variable and the values
 * allowed.
 *
 * Error texts are allocated; the caller frees them with mem_free. The functions read the
 * environment, so no thread may change it meanwhile. */
#ifndef SPANCL_BASE_CONFIG_H
#define SPANCL_BASE_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
        CONFIG_PORT = 7777,
        CONFIG_SERVERS_MAX = 64,
};

enum config_side {
        CONFIG_CLIENT, /* environment variable of the client */
        CONFIG_SERVER, /* command-line option of spancld */
};

enum config_kind {
        CONFIG_TEXT,   /* anything */
        CONFIG_NUMBER, /* lo ... hi */
        CONFIG_CHOICE, /* one of the words in `allowed`, separated by | */
        CONFIG_FLAG,   /* variable: 0 or 1; option: without a value */
        CONFIG_LIST,   /* an option that may be given several times */
};

enum config_id {
#define CONFIG(side, id, name, value, kind, fallback, lo, hi, allowed, doc) CONFIG_##id,
#include "base/config.def"
        CONFIG_COUNT
};

struct config_entry {
        enum config_side side;
        const char *name;  /* "SPANCL_SERVERS", "--listen" */
        const char *value; /* the name of its value in help texts; "" for flags of options */
        enum config_kind kind;
        const char *fallback; /* the default, as a user would write it; "" for none */
        uint64_t lo, hi;
        const char *allowed; /* choices */
        const char *doc;
};

/* The entry of `id`; static. */
const struct config_entry *config_entry(enum config_id id);

/* Is `text` allowed as a value? SP_E_INVAL with *ret_error, SP_E_NOMEM. */
SP_NODISCARD int config_check(enum config_id id, const char *text, char **ret_error);

/* ---- client: environment variables ---------------------------------------------------------- */

/* The variable's value, or its default when unset or empty; never NULL. Borrowed from the environment. */
const char *config_text(enum config_id id);
bool config_is_set(enum config_id id);

/* The value, checked and converted. Choices give their index in `allowed`, flags 0 or 1. SP_E_INVAL
 * with *ret_error, SP_E_NOMEM. */
SP_NODISCARD int config_number(enum config_id id, uint64_t *ret, char **ret_error);

/* SPANCL_ON_LOSS: how long calls wait, in ns. 0: not at all; UINT64_MAX: for ever. SP_E_INVAL with
 * *ret_error, SP_E_NOMEM. */
SP_NODISCARD int config_on_loss(uint64_t *ret_ns, char **ret_error);

/* One server of SPANCL_SERVERS (or of POCL_REMOTE<n>_PARAMETERS when that is unset). */
struct server_spec {
        char *name;      /* as it was written, without devices and peer host: for messages */
        bool implied;    /* not named: the default when nothing is configured */
        bool in_process; /* the client's own devices */
        bool accelerators; /* it also has the devices of config_accelerators: the first in_process server */
        char *address; /* of the transport: "tcp:HOST:PORT", "tls:HOST:PORT", "loopback:HOST:PORT",
                               "vsock:CID:PORT", "vsock-plain:CID:PORT", "unix:PATH"; NULL if in_process */
        char *backend; /* in_process: "native", "reference" or "almaif"; else NULL */
        char *devices; /* "0,2", as it was written; NULL: all */
        unsigned *device_list;
        size_t device_count; /* 0: all */
        char *peer_host; /* where other servers reach it, as in peer_open: host, "tls:HOST", "tcp:HOST",
                             "unix:PATH"; NULL if in_process, or nowhere */
        unsigned peer_port; /* 0 with unix: */
        bool peer_given;    /* the user named it */
};

/* The servers configured. SP_E_INVAL with *ret_error, SP_E_NOMEM. */
SP_NODISCARD int config_servers(struct server_spec **ret, size_t *ret_count, char **ret_error);

/* The accelerators that are devices of this process, in the grammar of SPANCL_ALMAIF, also if
 * POCL_ALMAIF<n>_PARAMETERS name them. NULL: none. The caller frees it with mem_free. SP_E_INVAL
 * with *ret_error, SP_E_NOMEM. */
SP_NODISCARD int config_accelerators(char **ret, char **ret_error);

/* The same from a text with the grammar of SPANCL_SERVERS; `origin` names it in messages. */
SP_NODISCARD int config_servers_parse(const char *text, const char *origin,
                                      struct server_spec **ret, size_t *ret_count,
                                      char **ret_error);
void config_servers_free(struct server_spec *servers, size_t count);

/* ---- server: options ------------------------------------------------------------------------ */

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
 * result is freed with config_options_fini, also after an error. */
SP_NODISCARD int config_options_parse(int argc, char **argv, struct config_options *ret,
                                      char **ret_error);
void config_options_fini(struct config_options *o);

/* The value given or its default. */
const char *config_option_text(const struct config_options *o, enum config_id id);
uint64_t config_option_number(const struct config_options *o, enum config_id id);
bool config_option_flag(const struct config_options *o, enum config_id id);

/* ---- both ----------------------------------------------------------------------------------- */

/* The folder of a compile cache: `given`, or if that is empty the user's own folder, written to
 * `path`. NULL: there is none. */
const char *config_cache_folder(const char *given, char *path, size_t size);

/* ---- documentation -------------------------------------------------------------------------- */

/* Rows of the documents beside the entries: the variables of PoCL that are read, and the
 * commands of spancld with their arguments. A row without name ends each table. */
struct config_note {
        const char *name;
        const char *doc;
};
extern const struct config_note config_pocl[];
extern const struct config_note config_commands[];

/* All entries as Markdown (docs/CONFIG.md): calls `out` piecewise. */
void config_document(void (*out)(void *user, const char *text), void *user);

/* Describe the allowed values in `text`, for example "a number from 1 to 10". */
void config_allowed(enum config_id id, char *text, size_t size);

#endif
