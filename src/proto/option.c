#include "proto/option.h"

#include <ctype.h>

static bool is_space(char c)
{
        return c && strchr(OPTION_SPACES, c);
}

int option_next(const char **options, struct buf *word, const char **ret_begin,
                const char **ret_end)
{
        const char *p = *options;
        while (is_space(*p))
                p++;
        word->size = 0;
        if (!*p) {
                *options = p;
                return 0;
        }
        *ret_begin = p;
        char quote = 0;
        for (; *p && (quote || !is_space(*p)); p++) {
                if (quote ? *p == quote : (*p == '"' || *p == '\'')) {
                        quote = quote ? 0 : *p;
                        continue;
                }
                if (*p == '\\' && quote != '\'' && p[1] && strchr("\"'\\ ", p[1]))
                        p++;
                int r = buf_put(word, p, 1);
                if (r < 0)
                        return r;
        }
        *options = *ret_end = p;
        int r = buf_put(word, "", 1);
        return r < 0 ? r : 1;
}

const char *option_argument(const char **options, struct buf *word, const char **ret_end,
                            int *ret_error)
{
        *ret_error = 0;
        if (word->data[2])
                return (const char *)word->data + 2;
        const char *begin;
        int r = option_next(options, word, &begin, ret_end);
        if (r <= 0 || !word->data[0]) {
                *ret_error = r < 0 ? r : 0;
                return NULL;
        }
        return (const char *)word->data;
}

char option_with_argument(const struct buf *word)
{
        const char *s = (const char *)word->data;
        return s[0] == '-' && (s[1] == 'I' || s[1] == 'D' || s[1] == 'U') ? s[1] : 0;
}

bool options_valid(const char *options)
{
        struct buf word = { 0 };
        const char *begin, *end;
        bool valid = true;
        while (options && valid && option_next(&options, &word, &begin, &end) > 0) {
                char kind = option_with_argument(&word);
                if (!kind)
                        continue;
                int error;
                const char *a = option_argument(&options, &word, &end, &error);
                valid = a && (kind == 'I' || !isdigit((unsigned char)*a));
        }
        buf_fini(&word);
        return valid;
}

static bool has_word(const char *options, const char *wanted)
{
        struct buf word = { 0 };
        const char *begin, *end;
        bool found = false;
        while (options && !found && option_next(&options, &word, &begin, &end) > 0)
                found = !strcmp((const char *)word.data, wanted);
        buf_fini(&word);
        return found;
}

bool options_library(const char *options)
{
        return has_word(options, "-create-library");
}

bool options_uniform(const char *options, bool source)
{
        struct buf word = { 0 };
        const char *begin, *end;
        bool old = source, uniform = false;
        while (options && option_next(&options, &word, &begin, &end) > 0) {
                const char *text = (const char *)word.data;
                if (source && !strncmp(text, "-cl-std=", 8))
                        old = !strncmp(text + 8, "CL1.", 4);
                uniform |= !strcmp(text, "-cl-uniform-work-group-size");
        }
        buf_fini(&word);
        return old || uniform;
}
