/* The text of build options: words, in which quotes ("..." and '...') and backslashes keep spaces. A
 * backslash takes the meaning from a quote, a space or itself only: paths and values of other systems
 * have it as a plain character. A quote that is not closed reaches to the end.
 *
 * Client and server read options with this; the native compilers have ways of their own. */
#ifndef SPANCL_PROTO_OPTION_H
#define SPANCL_PROTO_OPTION_H

#include <stdbool.h>

#include "base/bytes.h"

/* What stands between words: a macro, to be joined with other characters. */
#define OPTION_SPACES " \t\n\v\f\r"

/* The next word without its quotes. 1: in *word (terminated, the caller's to reuse), and *ret_begin,
 * *ret_end are where it stood; 0: the end; or SP_E_NOMEM. */
SP_NODISCARD int option_next(const char **options, struct buf *word, const char **ret_begin,
                             const char **ret_end);

/* 'I', 'D' or 'U' if the word is an option that takes an argument, or begins with one; 0: it is not. */
char option_with_argument(const struct buf *word);

/* The argument of the option that `word` begins with ("-I"): behind it, or the next word. The word is
 * reused. NULL: there is none (*ret_error 0), or an error. */
const char *option_argument(const char **options, struct buf *word, const char **ret_end,
                            int *ret_error);

/* Is -create-library among the linker's options? */
bool options_library(const char *options);

/* Must the work-groups of a program with these options be of one size? `source`: it is of OpenCL C, whose
 * version counts. */
bool options_uniform(const char *options, bool source);

/* Are all options that take an argument given one? The names of -D and -U are the compiler's to judge, but no
 * compiler takes one that begins with a digit. */
bool options_valid(const char *options);

#endif
