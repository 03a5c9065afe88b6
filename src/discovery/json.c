#include "discovery/json.h"

#include <string.h>

#include "base/bytes.h"

static bool fail(struct json *j)
{
        j->bad = true;
        return false;
}

static void blanks(struct json *j)
{
        while (j->at < j->end && memchr(" \t\r\n", *j->at, 4))
                j->at++;
}

/* The next byte that is no blank; 0: the end. */
static char next(struct json *j)
{
        blanks(j);
        return j->bad || j->at == j->end ? 0 : *j->at;
}

static bool take(struct json *j, char c)
{
        if (next(j) != c)
                return false;
        j->at++;
        return true;
}

/* ---- texts ---------------------------------------------------------------------------------- */

static int hex_digit(char c)
{
        return c >= '0' && c <= '9'   ? c - '0'
               : c >= 'a' && c <= 'f' ? c - 'a' + 10
               : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                      : -1;
}

/* Four hexadecimal digits. */
static bool hex4(struct json *j, uint32_t *ret)
{
        uint32_t v = 0;
        if (j->end - j->at < 4)
                return fail(j);
        for (int i = 0; i < 4; i++) {
                int digit = hex_digit(*j->at++);
                if (digit < 0)
                        return fail(j);
                v = v << 4 | (uint32_t)digit;
        }
        *ret = v;
        return true;
}

/* The rest of an escape, behind its backslash. */
static bool escape(struct json *j, uint32_t *ret)
{
        static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
        uint32_t low;
        if (j->at == j->end)
                return fail(j);
        char c = *j->at++;
        const char *known = c ? strchr(from, c) : NULL;
        if (known) {
                *ret = (uint8_t)to[known - from];
                return true;
        }
        if (c != 'u' || !hex4(j, ret) || (*ret >= 0xDC00 && *ret <= 0xDFFF))
                return fail(j);
        if (*ret < 0xD800 || *ret > 0xDBFF)
                return true;
        if (j->end - j->at < 6 || *j->at++ != '\\' || *j->at++ != 'u' || !hex4(j, &low) ||
            low < 0xDC00 || low > 0xDFFF)
                return fail(j);
        *ret = 0x10000 + ((*ret - 0xD800) << 10) + (low - 0xDC00);
        return true;
}

static bool character(struct json *j, uint32_t *ret)
{
        size_t n = bytes_utf8(bytes_of(j->at, (size_t)(j->end - j->at)), ret);
        j->at += n;
        return n || fail(j);
}

static size_t put_character(char to[4], uint32_t c)
{
        if (c < 0x80) {
                to[0] = (char)c;
                return 1;
        }
        size_t more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
        for (size_t i = more; i; i--, c >>= 6)
                to[i] = (char)(0x80 | (c & 0x3F));
        to[0] = (char)((0xF0u << (3 - more) & 0xFF) | c);
        return more + 1;
}

/* A text whose '"' was taken. `ret` NULL: it is passed over. *ret_whole: all of it was printable and had room. */
static bool rest_of_text(struct json *j, char *ret, size_t size, bool *ret_whole)
{
        size_t n = 0;
        *ret_whole = true;
        while (j->at < j->end && *j->at != '"') {
                uint32_t c;
                char bytes[4];
                if ((uint8_t)*j->at < 0x20)
                        return fail(j);
                if (*j->at != '\\') {
                        if (!character(j, &c))
                                return false;
                } else {
                        j->at++;
                        if (!escape(j, &c))
                                return false;
                }
                size_t k = put_character(bytes, c);
                *ret_whole = *ret_whole && bytes_printable(c) && n + k < size;
                if (ret && *ret_whole) {
                        memcpy(ret + n, bytes, k);
                        n += k;
                }
        }
        if (j->at == j->end)
                return fail(j);
        j->at++;
        if (ret)
                ret[n] = 0;
        return true;
}

bool json_text(struct json *j, char *ret, size_t size)
{
        bool whole;
        return take(j, '"') && rest_of_text(j, ret, size, &whole) && whole;
}

/* ---- numbers -------------------------------------------------------------------------------- */

static size_t digits(struct json *j)
{
        const char *from = j->at;
        while (j->at < j->end && *j->at >= '0' && *j->at <= '9')
                j->at++;
        return (size_t)(j->at - from);
}

static bool skip_number(struct json *j)
{
        if (*j->at == '-')
                j->at++;
        const char *from = j->at;
        size_t n = digits(j);
        if (!n || (n > 1 && *from == '0'))
                return fail(j);
        if (j->at < j->end && *j->at == '.') {
                j->at++;
                if (!digits(j))
                        return fail(j);
        }
        if (j->at < j->end && (*j->at == 'e' || *j->at == 'E')) {
                j->at++;
                if (j->at < j->end && (*j->at == '+' || *j->at == '-'))
                        j->at++;
                if (!digits(j))
                        return fail(j);
        }
        return true;
}

bool json_number(struct json *j, uint64_t *ret)
{
        char c = next(j);
        if (c < '0' || c > '9')
                return false;
        const char *from = j->at;
        if (!skip_number(j) || j->at - from > 16)
                return false;
        uint64_t v = 0;
        for (const char *p = from; p < j->at; p++) {
                if (*p < '0' || *p > '9')
                        return false;
                v = v * 10 + (uint64_t)(*p - '0');
        }
        if (v > 1ull << 53)
                return false;
        *ret = v;
        return true;
}

/* ---- objects, arrays, anything -------------------------------------------------------------- */

bool json_open(struct json *j, char bracket)
{
        return take(j, bracket);
}

/* Return true if another member or element stands in front of `close`. */
static bool another(struct json *j, bool *first, char close)
{
        if (j->bad || take(j, close))
                return false;
        if (!*first && !take(j, ','))
                return fail(j);
        *first = false;
        return true;
}

bool json_member(struct json *j, bool *first, char *ret_name, size_t size)
{
        bool whole;
        if (!another(j, first, '}'))
                return false;
        if (!take(j, '"') || !rest_of_text(j, ret_name, size, &whole) || !take(j, ':'))
                return fail(j);
        if (!whole)
                *ret_name = 0;
        return true;
}

bool json_element(struct json *j, bool *first)
{
        return another(j, first, ']');
}

static bool skip_word(struct json *j, const char *word)
{
        size_t n = strlen(word);
        if ((size_t)(j->end - j->at) < n || memcmp(j->at, word, n) != 0)
                return fail(j);
        j->at += n;
        return true;
}

static bool skip(struct json *j, unsigned depth)
{
        bool first = true, whole;
        char name[2];
        char c = next(j);
        if (depth > JSON_DEPTH_MAX)
                return fail(j);
        switch (c) {
        case '"':
                j->at++;
                return rest_of_text(j, NULL, 0, &whole);
        case '{':
                j->at++;
                while (json_member(j, &first, name, sizeof(name)))
                        if (!skip(j, depth + 1))
                                return false;
                return !j->bad;
        case '[':
                j->at++;
                while (json_element(j, &first))
                        if (!skip(j, depth + 1))
                                return false;
                return !j->bad;
        case 't':
                return skip_word(j, "true");
        case 'f':
                return skip_word(j, "false");
        case 'n':
                return skip_word(j, "null");
        case 0:
                return fail(j);
        default:
                return skip_number(j);
        }
}

bool json_skip(struct json *j)
{
        return skip(j, 2);
}

bool json_ends(struct json *j)
{
        blanks(j);
        return !j->bad && j->at == j->end;
}
