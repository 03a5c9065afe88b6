#include "cli/json_output.h"

#include <stdio.h>

#include "base/quote.h"

void json_output_text(const char *text)
{
        char out[QUOTE_CHARACTER];
        putchar('"');
        for (struct bytes left = bytes_str(text); left.size;)
                fwrite(out, 1, quote_character(&left, out), stdout);
        putchar('"');
}

void json_output_member(char before, const char *name, const char *text)
{
        printf("%c\"%s\":", before, name);
        json_output_text(text);
}
