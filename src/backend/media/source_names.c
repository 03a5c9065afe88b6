#include "backend/media/source_names.h"

#include <stdio.h>
#include <string.h>

#include "backend/media/av_message.h"

size_t media_name_length(const char *value)
{
        static const char allowed[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
        size_t n = strspn(value, allowed);
        return n < AV_NAME_MAX ? n : 0;
}

size_t media_source_name(const char *value)
{
        size_t n = media_name_length(value);
        return value[n] == '=' && value[n + 1] ? n : 0;
}

bool media_names_check(const struct config_options *o, enum config_id id,
                       size_t (*name_of)(const char *value), const char *form, char *ret_wrong,
                       size_t size)
{
        const char *values[MEDIA_SOURCES_MAX];
        size_t count = 0;
        for (size_t i = 0; i < o->list_count; i++) {
                const char *value = o->list[i].value;
                if (o->list[i].id != id)
                        continue;
                if (count == MEDIA_SOURCES_MAX) {
                        snprintf(ret_wrong, size, "there are more than %d", MEDIA_SOURCES_MAX);
                        return false;
                }
                size_t n = name_of(value);
                if (!n) {
                        snprintf(ret_wrong, size, "number %zu is not %s", count + 1, form);
                        return false;
                }
                for (size_t k = 0; k < count; k++)
                        if (name_of(values[k]) == n && !strncmp(values[k], value, n)) {
                                snprintf(ret_wrong, size, "there are two with the name %.*s",
                                         (int)n, value);
                                return false;
                        }
                values[count++] = value;
        }
        return true;
}

bool media_sources_check(const struct config_options *o, char *ret_wrong, size_t size)
{
        char form[120];
        snprintf(form, sizeof(form),
                 "a name of letters, digits, `-` and `_`, at most %d, `=` and a URL",
                 AV_NAME_MAX - 1);
        return media_names_check(o, CONFIG_media_source, media_source_name, form, ret_wrong, size);
}

bool media_urls_have_users(const struct config_options *o, enum config_id id)
{
        for (size_t i = 0; i < o->list_count; i++) {
                const char *host = o->list[i].id == id ? strstr(o->list[i].value, "://") : NULL;
                if (host && strchr(host, '@'))
                        return true;
        }
        return false;
}
