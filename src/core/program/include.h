/* Include collection: find every file of the client that a program source can include, and put
 * source text and options into a form that means the same on another machine.
 *
 * The source is scanned as a preprocessor reads it (comments, strings, continued lines). Both
 * branches of each condition are taken, because only the device's compiler can decide conditions.
 * So more files may be sent than are used. Files that can't be found are left for the compiler to
 * miss or to supply.
 *
 * Macros in an #include line are expanded with the definitions of -D and of the #defines seen so
 * far. "x" is looked for in the folder of the including file, then as <x>; <x> in the -I folders in
 * their order. For the program's source, which is no file, the including folder is the current one.
 *
 * No state, no locks: reads files anew at each call. */
#ifndef SPANCL_CORE_INCLUDE_H
#define SPANCL_CORE_INCLUDE_H

#include <stdbool.h>

#include "base/bytes.h"

enum {
        INCLUDE_TOTAL_MAX = 64 << 20, /* bytes of all files */
        INCLUDE_FILES_MAX = 16384,
        INCLUDE_DEPTH_MAX = 64,
};

struct include_result {
        struct buf headers; /* INFO_HEADER records; paths absolute and normalised */
        struct buf
                options; /* text with a final NUL: relative -I folders made absolute, and what else
                               the compiler needs to find the files */
        /* The source with names of files by absolute path made relative to a folder that `options`
         * names; empty: it has none. Headers are treated likewise. */
        struct buf source;
        unsigned files;
        unsigned missing; /* #include lines for which no file was found */
};

/* A header that is no file: clCompileProgram's. It is found before all folders. */
struct include_embedded {
        const char *name;
        struct bytes text;
};

struct include_params {
        struct bytes source;
        const char *options;                     /* as given to clBuildProgram; NULL: none */
        const char *folder;                      /* the current folder, absolute */
        const struct include_embedded *embedded; /* of one name: the first counts */
        size_t embedded_count;
};

/* SP_E_LIMIT: one of the bounds above; SP_E_INVAL: an option lacks its argument; SP_E_NOMEM. On
 * failure *ret is empty. include_fini frees it. */
SP_NODISCARD int include_collect(const struct include_params *params, struct include_result *ret);
void include_fini(struct include_result *r);

#endif
