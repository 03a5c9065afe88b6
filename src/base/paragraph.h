/* Text for people: a paragraph in lines of bounded width. Stateless. */
#ifndef SPANCL_BASE_PARAGRAPH_H
#define SPANCL_BASE_PARAGRAPH_H

#include <stdio.h>

/* Print the text in lines of at most 76 columns, each behind `indent` blanks. A longer word has a line of
 * its own. */
void paragraph_print(FILE *to, unsigned indent, const char *text);

#endif
