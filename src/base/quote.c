#include "base/quote.h"

#include <string.h>

enum { REPLACEMENT = 0xfffd };

size_t quote_character(struct bytes *text, char ret[QUOTE_CHARACTER])
{
        static const char digits[] = "0123456789abcdef";
        const char *from = text->data;
        uint32_t c;
        size_t size = bytes_utf8(*text, &c);
        bool bad = !size;
        if (bad) {
                c = REPLACEMENT;
                size = 1;
        }
        *text = bytes_of(from + size, text->size - size);
        if (bad || !bytes_printable(c)) { /* such characters have at most 16 bits */
                memcpy(ret, "\\u", 2);
                for (int i = 0; i < 4; i++)
                        ret[2 + i] = digits[c >> (12 - 4 * i) & 15];
                return 6;
        }
        size_t escaped = c == '"' || c == '\\';
        ret[0] = '\\';
        memcpy(ret + escaped, from, size);
        return escaped + size;
}

char *quote_text(char *p, const char *end, struct bytes text)
{
        *p++ = '"';
        while (text.size && end - p > QUOTE_CHARACTER)
                p += quote_character(&text, p);
        *p++ = '"';
        return p;
}
