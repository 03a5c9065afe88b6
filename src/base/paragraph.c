#include "base/paragraph.h"

#include <string.h>

enum { WIDTH = 76 };

void paragraph_print(FILE *to, unsigned indent, const char *text)
{
        size_t column = 0;
        for (const char *p = text; *p;) {
                size_t n = strcspn(p, " ");
                if (column && column + 1 + n > WIDTH) {
                        fprintf(to, "\n");
                        column = 0;
                }
                if (column)
                        fprintf(to, " %.*s", (int)n, p);
                else
                        fprintf(to, "%*s%.*s", (int)indent, "", (int)n, p);
                column += n + (column ? 1 : indent);
                p += n + strspn(p + n, " ");
        }
        fprintf(to, "\n");
}
