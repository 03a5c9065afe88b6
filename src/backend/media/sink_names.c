#include "backend/media/sink_names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "backend/media/source_names.h"

enum { MIB_MAX = 1 << 24 };

static bool take_number(const char *at, const char *end, unsigned max, unsigned *ret)
{
        char *rest;
        unsigned long n = isdigit((unsigned char)*at) ? strtoul(at, &rest, 10) : 0;
        if (!n || n > max || rest != end)
                return false;
        *ret = (unsigned)n;
        return true;
}

/* Parse the setting from `at` to `end`. */
static bool take_setting(const char *at, const char *end, struct media_sink *s)
{
        static const char overwrite[] = "overwrite",
                          format[] = "format:", mib[] = "mib:", files[] = "files:";
        size_t n = (size_t)(end - at);
        if (n == strlen(overwrite) && !memcmp(at, overwrite, n))
                return s->overwrite = true;
        if (!strncmp(at, mib, strlen(mib)))
                return take_number(at + strlen(mib), end, MIB_MAX, &s->mib);
        if (!strncmp(at, files, strlen(files)))
                return take_number(at + strlen(files), end, MEDIA_SINK_FILES_MAX, &s->files);
        if (strncmp(at, format, strlen(format)) != 0)
                return false;
        at += strlen(format);
        n = (size_t)(end - at);
        if (!n || n >= sizeof(s->format))
                return false;
        memcpy(s->format, at, n);
        s->format[n] = 0;
        return true;
}

/* Find the path of a URL, and the number in it. */
static bool take_url(struct media_sink *s)
{
        const char *path = !strncmp(s->url, "file:", 5) ? s->url + 5 : s->url;
        if (*path != '/') /* a path has to be absolute */
                return path == s->url && strstr(s->url, "://") && !s->files && !s->overwrite &&
                       !s->mib;
        const char *number = strstr(path, MEDIA_SINK_NUMBER);
        const char *name = strrchr(path, '/') + 1;
        s->path = path;
        if (!*name || (number && (number < name || strstr(number + 1, MEDIA_SINK_NUMBER))))
                return false;
        if (number ? s->overwrite : s->files)
                return false;
        s->mib = s->mib ? s->mib : MEDIA_SINK_MIB;
        s->files = s->files ? s->files : number ? MEDIA_SINK_FILES : 1;
        return true;
}

bool media_sink_parse(const char *value, struct media_sink *ret)
{
        struct media_sink s = { 0 };
        size_t n = media_name_length(value);
        if (!n)
                return false;
        memcpy(s.name, value, n);
        const char *at = value + n;
        while (*at == ',') {
                const char *end = at + 1 + strcspn(at + 1, ",=");
                if (!take_setting(at + 1, end, &s))
                        return false;
                at = end;
        }
        s.url = at + 1;
        if (*at != '=' || !take_url(&s))
                return false;
        *ret = s;
        return true;
}

size_t media_sink_name(const char *value)
{
        struct media_sink s;
        return media_sink_parse(value, &s) ? strlen(s.name) : 0;
}

bool media_sinks_check(const struct config_options *o, char *ret_wrong, size_t size)
{
        return media_names_check(o, CONFIG_media_sink, media_sink_name,
                                 "NAME[,SETTING]...=URL as docs/MEDIA.md describes it", ret_wrong,
                                 size);
}
