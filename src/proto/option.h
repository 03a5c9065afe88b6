/* The grammar of build options. Options are words; quotes ("..." and '...') and backslashes keep
 * spaces in a word. A backslash escapes only a quote, a space or itself, because paths and values
 * of other systems have it as a plain character. An open quote reaches to the end.
 *
 * Client and server read options with this; the native compilers have their own rules. */
#ifndef SPANCL_PROTO_OPTION_H
#define SPANCL_PROTO_OPTION_H

#include <stdbool.h>

#include "base/bytes.h"

/* The characters between words. This is a macro, so that it can be joined with other characters. */
#define OPTION_SPACES " \t\n\v\f\r"

/* Give the next word without its quotes. 1: it is in *word (terminated; the caller reuses the
 * buffer), and *ret_begin and *ret_end are its place in the text; 0: the end; or SP_E_NOMEM. */
SP_NODISCARD int option_next(const char **options, struct buf *word, const char **ret_begin,
                             const char **ret_end);

/* 'I', 'D' or 'U' if the word is an option that takes an argument, or begins with one; 0: it is not. */
char option_with_argument(const struct buf *word);

/* Return the argument of the option that `word` begins with ("-I"): the rest of the word, or the
 * next word, for which `word` is reused. NULL: there is none (*ret_error 0), or an error. */
const char *option_argument(const char **options, struct buf *word, const char **ret_end,
                            int *ret_error);

/* Is -create-library among the linker's options? */
bool options_library(const char *options);

/* Must the work-groups of a program with these options be of one size? `source`: it is OpenCL C, so
 * its version counts. */
bool options_uniform(const char *options, bool source);

/* Do all options that take an argument have one? The compiler checks the names of -D and -U, but
 * here a name must not begin with a digit, which no compiler accepts. */
bool options_valid(const char *options);

#endif
