#include "backend/backend.h"

#include <string.h>

static const struct backend_ops *const all[] = { &backend_native, &backend_reference,
                                                 &backend_almaif, &backend_media };

const struct backend_ops *backend_find(const char *name)
{
        for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
                if (!strcmp(name, all[i]->name))
                        return all[i];
        return NULL;
}

const struct backend_ops *backend_with(const struct backend_ops *ops,
                                       const struct config_options *options,
                                       const struct backend_ops *ret_parts[BACKEND_PARTS_MAX])
{
        static const struct {
                const struct backend_ops *ops;
                enum config_id option; /* empty: it has no devices */
        } further[] = { { &backend_almaif, CONFIG_almaif }, { &backend_media, CONFIG_media } };
        size_t count = 0;
        bool several = false;
        ret_parts[count++] = ops;
        for (size_t i = 0; i < sizeof(further) / sizeof(further[0]); i++) {
                if (ops == further[i].ops)
                        continue;
                several |= *config_option_text(options, further[i].option) != 0;
                ret_parts[count++] = further[i].ops;
        }
        ret_parts[count] = NULL;
        return several ? &backend_composite : ops;
}
