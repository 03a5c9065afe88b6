/* Texts in XML and HTML. No text can end its element or attribute, hide a part of itself, or turn the direction of
 * the text around it. Stateless. */
#ifndef SPANCL_BASE_MARKUP_H
#define SPANCL_BASE_MARKUP_H

#include <stdint.h>
#include <stdio.h>

/* Write at most `letters` characters, the last of them an ellipsis if there are more. Bytes that are no UTF-8 and
 * characters that must not be shown (bytes_printable) become U+FFFD. Errors of the file are the stream's. */
void markup_put(FILE *to, const char *text, size_t letters);

/* Write all of it. */
static inline void markup_put_all(FILE *to, const char *text)
{
        markup_put(to, text, SIZE_MAX);
}

#endif
