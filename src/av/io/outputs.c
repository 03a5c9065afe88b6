#include "av/io/outputs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "av/io/sink.h"
#include "base/log.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/folder.h"

#define LOG "media-io"

bool output_take(char *value, struct output *ret)
{
        struct output o = { .value = value };
        if (!media_sink_parse(value, &o.sink))
                return false;
        if (o.sink.path) {
                o.folder = mem_strdup(o.sink.path);
                if (!o.folder)
                        return false;
                char *end = strrchr(o.folder, '/');
                end[end == o.folder] = 0;
                o.bytes_max = (uint64_t)o.sink.mib << 20;
        }
        *ret = o;
        return true;
}

void outputs_check(const struct output *outputs, size_t count)
{
        for (size_t i = 0; i < count; i++) {
                const struct output *o = &outputs[i];
                if (!sink_has_format(o->sink.format, o->sink.url))
                        log_error(LOG, "libavformat has no format for the sink %s: see `format:`",
                                  o->sink.name);
                if (o->folder && !folder_exists(o->folder))
                        log_error(LOG, "the folder of the sink %s does not exist", o->sink.name);
        }
}

/* Write the path of the file with this number. False: it is too long. */
static bool path_of(const struct output *o, unsigned number, char ret[PATH_MAX])
{
        const char *path = o->sink.path, *place = strstr(path, MEDIA_SINK_NUMBER);
        size_t before = place ? (size_t)(place - path) : strlen(path);
        int n = place ? snprintf(ret, PATH_MAX, "%.*s%u%s", (int)before, path, number,
                                 place + strlen(MEDIA_SINK_NUMBER))
                      : snprintf(ret, PATH_MAX, "%s", path);
        return n > 0 && n < PATH_MAX;
}

int output_open(const struct output *o)
{
        char path[PATH_MAX];
        int fd = -1;
        errno = ENAMETOOLONG;
        for (unsigned i = 1; fd < 0 && i <= o->sink.files && path_of(o, i, path); i++)
                fd = file_take(path, o->sink.overwrite);
        if (fd < 0)
                log_warn(LOG, "the sink %s can't be opened: %s", o->sink.name, strerror(errno));
        else
                log_info(LOG, "the sink %s is written to %s", o->sink.name, path);
        return fd;
}

void output_forget(struct output *o)
{
        char *url = strchr(o->value, '=');
        if (url)
                explicit_bzero(url + 1, strlen(url + 1));
        if (o->folder)
                explicit_bzero(o->folder, strlen(o->folder));
}
