#include "config/lines.h"

#include <string.h>

#define BLANKS " \t\r"

/* Cut the blanks off both ends. */
static char *trim(char *from, char *end)
{
        from += strspn(from, BLANKS);
        while (end > from && strchr(BLANKS, end[-1]))
                end--;
        *end = 0;
        return from;
}

static char *unquote(char *value)
{
        size_t n = strlen(value);
        if (n < 2 || !strchr("\"'", *value) || value[n - 1] != *value)
                return value;
        value[n - 1] = 0;
        return value + 1;
}

bool config_lines_next(char **text, unsigned *number, struct config_line *ret)
{
        while (**text) {
                char *line = *text, *end = line + strcspn(line, "\n");
                *text = *end ? end + 1 : end;
                *end = 0;
                ++*number;
                line = trim(line, end);
                if (!*line || *line == '#')
                        continue;
                *ret = (struct config_line){ .number = *number };
                char *equals = strchr(line, '=');
                if (equals && equals > line) {
                        ret->value = unquote(trim(equals + 1, equals + strlen(equals)));
                        ret->key = trim(line, equals);
                }
                return true;
        }
        return false;
}
