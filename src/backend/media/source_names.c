#include "backend/media/source_names.h"

#include <stdio.h>
#include <string.h>

#include "backend/media/av_message.h"

size_t media_source_name(const char *value)
{
        static const char allowed[] =
                "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
        size_t n = strspn(value, allowed);
        return n < AV_NAME_MAX && value[n] == '=' && value[n + 1] ? n : 0;
}

bool media_sources_check(const struct config_options *o, char *ret_wrong, size_t size)
{
        const char *values[MEDIA_SOURCES_MAX];
        size_t count = 0;
        for (size_t i = 0; i < o->list_count; i++) {
                const char *value = o->list[i].value;
                if (o->list[i].id != CONFIG_media_source)
                        continue;
                if (count == MEDIA_SOURCES_MAX) {
                        snprintf(ret_wrong, size, "there are more than %d", MEDIA_SOURCES_MAX);
                        return false;
                }
                size_t n = media_source_name(value);
                if (!n) {
                        snprintf(ret_wrong, size,
                                 "number %zu is not a name of letters, digits, `-` and `_`, at "
                                 "most %d, `=` and a URL",
                                 count + 1, AV_NAME_MAX - 1);
                        return false;
                }
                for (size_t k = 0; k < count; k++)
                        if (!strncmp(values[k], value, n + 1)) {
                                snprintf(ret_wrong, size, "there are two with the name %.*s",
                                         (int)n, value);
                                return false;
                        }
                values[count++] = value;
        }
        return true;
}

bool media_sources_have_users(const struct config_options *o)
{
        for (size_t i = 0; i < o->list_count; i++) {
                const char *host = o->list[i].id == CONFIG_media_source
                                           ? strstr(o->list[i].value, "://")
                                           : NULL;
                if (host && strchr(host, '@'))
                        return true;
        }
        return false;
}
