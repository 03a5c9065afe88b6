/* Entries of the configuration: every option and environment variable stands in config/config.def.
 * The error of a wrong value is a sentence that names the variable and the values allowed.
 *
 * Error texts are allocated; the caller frees them with mem_free. Any thread. */
#ifndef SPANCL_CONFIG_ENTRIES_H
#define SPANCL_CONFIG_ENTRIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum config_side {
        CONFIG_CLIENT, /* environment variable of the client */
        CONFIG_SERVER, /* command-line option of spancld */
};

enum config_kind {
        CONFIG_TEXT,   /* anything */
        CONFIG_NUMBER, /* lo ... hi */
        CONFIG_CHOICE, /* one of the words in `allowed`, separated by | */
        CONFIG_WAIT, /* fail, wait, wait:SECONDS with lo ... hi, or auto if `allowed` begins with it */
        CONFIG_FLAG,   /* variable: 0 or 1; option: without a value */
        CONFIG_LIST,   /* an option that may be given several times */
        CONFIG_FILTER, /* config/device_filter.h */
};

enum config_id {
#define CONFIG(side, id, name, value, kind, fallback, lo, hi, allowed, doc) CONFIG_##id,
#include "config/config.def"
        CONFIG_COUNT
};

struct config_entry {
        enum config_side side;
        const char *name; /* "SPANCL_SERVERS", "--listen" */
        /* The name of its value in help texts; "" for flags of options. "[=NAME]": the option may come without a
         * value, and then has the last choice. */
        const char *value;
        enum config_kind kind;
        const char *fallback; /* the default, as a user would write it; "" for none */
        uint64_t lo, hi;
        const char *allowed; /* choices; words of a wait */
        const char *doc;
};

/* The entry of `id`; static. */
const struct config_entry *config_entry(enum config_id id);

/* Find the entry of this side whose name is the first `size` bytes of `name`; CONFIG_COUNT: none. */
enum config_id config_find(enum config_side side, const char *name, size_t size);

/* The value of `auto`: a wait, unless the application asks to be told of lost servers. */
#define CONFIG_WAIT_AUTO (UINT64_MAX - 1)

/* Convert a value. Choices give their index in `allowed`, flags 0 or 1, texts and filters 0, waits their
 * time in ns: 0 for fail, UINT64_MAX for wait, CONFIG_WAIT_AUTO for auto. False: `text` is not allowed. */
bool config_convert(enum config_id id, const char *text, uint64_t *ret);

/* Check that `text` is allowed as a value. SP_E_INVAL with *ret_error, SP_E_NOMEM. */
SP_NODISCARD int config_check(enum config_id id, const char *text, char **ret_error);

/* Return true if config_allowed limits the values. It does not limit filters: their grammar is in `doc`. */
bool config_is_limited(enum config_id id);

/* Describe the allowed values in `text`, for example "a number from 1 to 10". */
void config_allowed(enum config_id id, char *text, size_t size);

/* Convert decimal digits, at most 18 of them. False: `text` is anything else. */
bool config_parse_number(const char *text, uint64_t *ret);

/* Write a sentence of at most 1023 bytes to *ret_error and return SP_E_INVAL, or SP_E_NOMEM. */
SP_NODISCARD __attribute__((format(printf, 2, 3))) int config_fail(char **ret_error,
                                                                   const char *fmt, ...);

#endif
