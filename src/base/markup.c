#include "base/markup.h"

#include "base/bytes.h"

/* XML 1.0 forbids U+FFFE and U+FFFF, and advises against the other ones. */
static bool is_noncharacter(uint32_t c)
{
        return (c & 0xfffe) == 0xfffe || (c >= 0xfdd0 && c <= 0xfdef);
}

static void put_character(FILE *to, const char *at, size_t size)
{
        switch (size == 1 ? *at : 0) {
        case '<':
                fputs("&lt;", to);
                break;
        case '>':
                fputs("&gt;", to);
                break;
        case '&':
                fputs("&amp;", to);
                break;
        case '"':
                fputs("&quot;", to);
                break;
        case '\'':
                fputs("&#39;", to);
                break;
        default:
                fwrite(at, 1, size, to);
        }
}

void markup_put(FILE *to, const char *text, size_t letters)
{
        struct bytes left = bytes_str(text);
        for (size_t n = 1; left.size && n <= letters; n++) {
                uint32_t c;
                const char *at = left.data;
                size_t size = bytes_utf8(left, &c);
                bool shown = size && bytes_printable(c) && !is_noncharacter(c);
                size += !size;
                if (n == letters && left.size > size)
                        fputs("…", to);
                else if (shown)
                        put_character(to, at, size);
                else
                        fputs("\xef\xbf\xbd", to); /* U+FFFD */
                left = bytes_of(at + size, left.size - size);
        }
}
