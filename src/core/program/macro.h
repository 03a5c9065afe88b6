/* Macros, as far as an #include line needs them: definitions by -D and #define, and the expansion of one
 * line with #, ## and arguments (C17 6.10.3). All definitions of a name are kept, because which of them
 * is in force depends on conditions that only the device's compiler can decide. Zeroed memory is an empty
 * table. No locks: one owner. */
#ifndef SPANCL_CORE_MACRO_H
#define SPANCL_CORE_MACRO_H

#include "base/bytes.h"
#include "base/map.h"

struct macro;

struct macro_table {
        struct map by_name; /* hash of the name → the newest definition of names with that hash */
};

enum {
        MACRO_ALTERNATIVES_MAX = 8, /* definitions of one name that are tried */
        MACRO_TOKENS_MAX = 65536,   /* tokens that one expansion may make */
        MACRO_DEPTH_MAX = 64,       /* arguments within arguments */
};

/* Define a macro from the text behind #define: "NAME body" or "NAME(x, y) body", without comments
 * and line ends. A malformed definition is ignored. SP_E_NOMEM. */
SP_NODISCARD int macro_define(struct macro_table *t, struct bytes text);

/* The argument of -D: NAME, NAME=body or NAME(x)=body. SP_E_NOMEM. */
SP_NODISCARD int macro_define_option(struct macro_table *t, const char *text);

/* Expand `text` with the `pick`-th newest definition of each name (or its oldest). Appends the result,
 * one space where white space stood between tokens. *ret_picks: how many picks can make a difference.
 * SP_E_LIMIT: more than the bounds above; SP_E_NOMEM. */
SP_NODISCARD int macro_expand(const struct macro_table *t, struct bytes text, unsigned pick,
                              struct buf *out, unsigned *ret_picks);

void macro_fini(struct macro_table *t);

#endif
