#include "config/servers.h"

#include <string.h>

#include "base/mem.h"
#include "config/files.h"
#include "config/pocl.h"
#include "config/variables.h"

bool config_overrides_pocl(enum config_id id)
{
        return config_is_set(id) && config_origin(id).kind == CONFIG_ENVIRONMENT;
}

static int configured_servers(struct server_spec **ret, size_t *ret_count, char **ret_error)
{
        if (!config_overrides_pocl(CONFIG_servers)) {
                struct server_spec *specs;
                size_t count;
                int r = pocl_servers(&specs, &count, ret_error);
                if (r < 0)
                        return r;
                if (count) {
                        *ret = specs;
                        *ret_count = count;
                        return 0;
                }
        }
        char name[CONFIG_PATH_MAX + 64];
        config_place(CONFIG_servers, name, sizeof(name));
        int r = config_servers_parse(config_text(CONFIG_servers), name, ret, ret_count, ret_error);
        for (size_t i = 0; !r && i < *ret_count; i++)
                (*ret)[i].implied = !config_is_set(CONFIG_servers);
        return r;
}

const char *config_sources(void)
{
        const char *sources = config_overrides_pocl(CONFIG_discovery) ? "" : pocl_sources();
        if (!*sources)
                sources = config_text(CONFIG_discovery);
        return strcmp(sources, "none") ? sources : "";
}

const char *config_source_setting(enum config_id id)
{
        const char *text = config_overrides_pocl(id) ? "" : pocl_source_setting(id);
        return *text ? text : config_text(id);
}

int config_accelerators(char **ret, char **ret_error)
{
        bool here = config_is_set(CONFIG_client_almaif);
        if (!config_overrides_pocl(CONFIG_client_almaif)) {
                char *text = NULL;
                int r = pocl_accelerators(&text, ret_error);
                if (r < 0)
                        return r;
                if (text || !here) {
                        *ret = text;
                        return 0;
                }
        }
        *ret = mem_strdup(config_text(CONFIG_client_almaif));
        return *ret ? 0 : SP_E_NOMEM;
}

/* Accelerators and the media device are devices of this process. Without an in-process server they get
 * one of their own. */
int config_servers(struct server_spec **ret, size_t *ret_count, char **ret_error)
{
        struct server_specs all;
        char *accelerators = NULL;
        bool here = false;
        int r = configured_servers(&all.specs, &all.count, ret_error);
        if (r < 0)
                return r;
        for (size_t i = 0; i < all.count; i++)
                here |= all.specs[i].in_process;
        r = config_accelerators(&accelerators, ret_error);
        const char *alone = accelerators                         ? "in-process:almaif"
                            : config_is_set(CONFIG_client_media) ? "in-process:media"
                                                                 : NULL;
        if (!r && alone && !here)
                r = server_specs_add(&all, alone, strlen(alone),
                                     accelerators ? "SPANCL_ALMAIF" : "SPANCL_MEDIA", ret_error);
        mem_free(accelerators);
        if (r < 0) {
                config_servers_free(all.specs, all.count);
                return r;
        }
        *ret = all.specs;
        *ret_count = all.count;
        return 0;
}
