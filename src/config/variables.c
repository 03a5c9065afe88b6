#include "config/variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "config/settings.h"
#include "os/process/environment.h"

/* The value that counts, which may be empty, and its origin; NULL: none is given. */
static const char *given(enum config_id id, struct config_origin *ret)
{
        const char *text = environment_get(config_entry(id)->name);
        if (text) {
                *ret = (struct config_origin){ .kind = CONFIG_ENVIRONMENT };
                return text;
        }
        const struct config_setting *s = config_setting(id);
        *ret = (struct config_origin){ .kind = s->value ? CONFIG_FILE : CONFIG_DEFAULT,
                                       .file = s->file,
                                       .line = s->line };
        return s->value;
}

struct config_origin config_origin(enum config_id id)
{
        struct config_origin origin;
        (void)given(id, &origin);
        return origin;
}

void config_place(enum config_id id, char *ret, size_t size)
{
        struct config_origin o = config_origin(id);
        const char *name = config_entry(id)->name;
        if (o.kind == CONFIG_FILE)
                snprintf(ret, size, "%s:%u: %s", o.file, o.line, name);
        else
                snprintf(ret, size, "%s", name);
}

bool config_is_set(enum config_id id)
{
        struct config_origin origin;
        const char *text = given(id, &origin);
        return text && *text;
}

const char *config_text(enum config_id id)
{
        struct config_origin origin;
        const char *text = given(id, &origin);
        return text && *text ? text : config_entry(id)->fallback;
}

uint64_t config_number(enum config_id id)
{
        uint64_t value = 0;
        if (!config_convert(id, config_text(id), &value))
                (void)config_convert(id, config_entry(id)->fallback, &value);
        return value;
}

static const char *copy(enum config_id id, char *to, size_t size)
{
        uint64_t value;
        const char *text = config_text(id);
        snprintf(to, size, "%s",
                 config_convert(id, text, &value) ? text : config_entry(id)->fallback);
        return to;
}

void config_local_options(const char *accelerators, bool media, struct config_local *ret)
{
        ret->options = (struct config_options){
                .values = { [CONFIG_almaif] = accelerators,
                            [CONFIG_media] = media ? copy(CONFIG_client_media, ret->media,
                                                          sizeof(ret->media))
                                                   : NULL,
                            [CONFIG_cache_size] = copy(CONFIG_client_cache_size, ret->cache_size,
                                                       sizeof(ret->cache_size)),
                            [CONFIG_contexts] = copy(CONFIG_client_contexts, ret->contexts,
                                                     sizeof(ret->contexts)),
                            [CONFIG_compression] = copy(CONFIG_client_compression, ret->compression,
                                                        sizeof(ret->compression)),
                            [CONFIG_clear_memory] = "off",
                            [CONFIG_share] = "off",
                            [CONFIG_checksum] = "off",
                            [CONFIG_spin] = copy(CONFIG_client_spin, ret->spin, sizeof(ret->spin)),
                            [CONFIG_answer_timeout] = "0",
                            [CONFIG_linger] = "0" },
        };
}

/* Find spancl in the folder that the variable names, or in `usual` of the home folder. */
static int find_folder(const char *variable, const char *usual, char *ret, size_t size)
{
        const char *base = environment_get(variable), *home = environment_get("HOME");
        int n;
        if (base && *base == '/')
                n = snprintf(ret, size, "%s/spancl", base);
        else if (home && *home == '/')
                n = snprintf(ret, size, "%s/%s/spancl", home, usual);
        else
                return SP_E_NOENT;
        return n >= 0 && (size_t)n < size ? 0 : SP_E_LIMIT;
}

int config_user_folder(char *ret, size_t size)
{
        return find_folder("XDG_CONFIG_HOME", ".config", ret, size);
}

const char *config_cache_folder(const char *given, char *path, size_t size)
{
        if (*given)
                return given;
        return find_folder("XDG_CACHE_HOME", ".cache", path, size) < 0 ? NULL : path;
}
