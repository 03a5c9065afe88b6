#include "config/variables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool config_is_set(enum config_id id)
{
        const char *v = getenv(config_entry(id)->name);
        return v && *v;
}

const char *config_text(enum config_id id)
{
        return config_is_set(id) ? getenv(config_entry(id)->name) : config_entry(id)->fallback;
}

int config_number(enum config_id id, uint64_t *ret, char **ret_error)
{
        const char *text = config_text(id);
        return config_convert(id, text, ret) ? 0 : config_check(id, text, ret_error);
}

int config_on_loss(uint64_t *ret_ns, char **ret_error)
{
        const char *text = config_text(CONFIG_on_loss);
        uint64_t seconds;
        *ret_ns = 0;
        if (!strcmp(text, "fail"))
                return 0;
        if (!strcmp(text, "wait"))
                *ret_ns = UINT64_MAX;
        else if (!strncmp(text, "wait:", 5) && config_parse_number(text + 5, &seconds) &&
                 seconds <= 86400)
                *ret_ns = seconds * 1000000000;
        else
                return config_fail(ret_error,
                                   "%s: '%s' is not allowed: it takes fail, wait or wait:SECONDS",
                                   config_entry(CONFIG_on_loss)->name, text);
        return 0;
}

static const char *copy(enum config_id id, char *to, size_t size)
{
        snprintf(to, size, "%s", config_text(id));
        return to;
}

void config_local_options(const char *accelerators, struct config_local *ret)
{
        ret->options = (struct config_options){
                .values = { [CONFIG_almaif] = accelerators,
                            [CONFIG_cache_size] = copy(CONFIG_client_cache_size, ret->cache_size,
                                                       sizeof(ret->cache_size)),
                            [CONFIG_contexts] = copy(CONFIG_client_contexts, ret->contexts,
                                                     sizeof(ret->contexts)),
                            [CONFIG_compression] = copy(CONFIG_client_compression, ret->compression,
                                                        sizeof(ret->compression)),
                            [CONFIG_clear_memory] = "off",
                            [CONFIG_share] = "off",
                            [CONFIG_checksum] = "off",
                            [CONFIG_spin] = "0",
                            [CONFIG_answer_timeout] = "0",
                            [CONFIG_linger] = "0" },
        };
}

const char *config_cache_folder(const char *given, char *path, size_t size)
{
        const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
        int n;
        if (*given)
                return given;
        if (base && *base == '/')
                n = snprintf(path, size, "%s/spancl", base);
        else if (home && *home == '/')
                n = snprintf(path, size, "%s/.cache/spancl", home);
        else
                return NULL;
        return n > 0 && (size_t)n < size ? path : NULL;
}
