#include "backend/backend.h"

#include <string.h>

static const struct backend_ops *const all[] = { &backend_native, &backend_reference,
                                                 &backend_almaif };

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
        ret_parts[0] = ops;
        ret_parts[1] = &backend_almaif;
        ret_parts[2] = NULL;
        bool accelerators = *config_option_text(options, CONFIG_almaif);
        return accelerators && ops != &backend_almaif ? &backend_composite : ops;
}
